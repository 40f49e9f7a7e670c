/** Subgroup matrices: experimental, so browsers offer them only with a flag. */

/** Not in the WebGPU types yet. */
export const MATRICES = "chromium-experimental-subgroup-matrix" as GPUFeatureName;

interface MatrixConfig {
    readonly componentType: string;
    readonly resultComponentType: string;
    readonly M: number;
    readonly N: number;
    readonly K: number;
}

/** Whether the configuration that the kernels need is offered: 16x16x16, subgroups of 32, f16 inputs, f32 sums. */
export function offersMatrices(adapter: GPUAdapter): boolean {
    const info = adapter.info as GPUAdapterInfo & { subgroupMatrixConfigs?: Iterable<MatrixConfig> };
    const configured = [...(info.subgroupMatrixConfigs ?? [])].some(
        (c) =>
            c.componentType === "f16" && c.resultComponentType === "f32" && c.M === 16 && c.N === 16 && c.K === 16,
    );
    const all: GPUFeatureName[] = [MATRICES, "shader-f16", "subgroups"];
    return (
        configured &&
        all.every((name) => adapter.features.has(name)) &&
        info.subgroupMinSize === 32 &&
        info.subgroupMaxSize === 32
    );
}

/** Compiles only where subgroup matrices work as the kernels use them. */
export const MATRIX_PROBE = `enable f16;
enable chromium_experimental_subgroup_matrix;
var<workgroup> x: array<f16, 256>;
@compute @workgroup_size(32) fn main() {
    let a = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>>(&x, 0u, false, 16u);
    let b = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>>(&x, 0u, true, 16u);
    _ = subgroupMatrixMultiplyAccumulate(a, b, subgroup_matrix_result<f32, 16, 16>());
}
`;
