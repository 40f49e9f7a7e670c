/** Dawn's null adapter, which has every feature and computes nothing: it validates the WGSL of all kernels, and shows how
 * subgroup matrices are detected, which no software adapter supports. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Gpu } from "../../web/package/src/index.js";
import { MATRICES, MATRIX_PROBE, offersMatrices } from "../../web/package/src/matrices.js";
import { Memory } from "../../web/package/src/memory.js";
import { check, checkEqual, finish, test } from "./check.js";
import { gpuEntry } from "./platform.js";
import { testWgslTexts } from "./wgsl_texts.js";

const READY = 1;
const FIELDS = 131072;
const MATRICES_BIT = 32;

const nullGpu = await gpuEntry(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);

/** A new adapter each time: it can create only one device. */
async function freshAdapter(): Promise<GPUAdapter> {
    const found = await nullGpu.requestAdapter();
    check(found !== null, "Dawn has no null adapter");
    return found as GPUAdapter;
}

const nullAdapter = await freshAdapter();

await testWgslTexts(nullGpu);

const KERNELS = ["linear_matrix", "tower_attend_matrix"];

async function textOf(kernel: string): Promise<string> {
    return (await promisify(execFile)("build/bezel", ["show", "--wgsl", kernel])).stdout;
}

async function errorsOf(device: GPUDevice, code: string): Promise<string[]> {
    device.pushErrorScope("validation");
    const info = await device.createShaderModule({ code }).getCompilationInfo();
    await device.popErrorScope();
    return info.messages.filter((m) => m.type === "error").map((m) => `line ${m.lineNum}: ${m.message}`);
}

const device = await nullAdapter.requestDevice({ requiredFeatures: [MATRICES, "shader-f16", "subgroups"] });

for (const name of KERNELS) {
    await test(`matrices: ${name} compiles`, async () => {
        const code = await textOf(name);
        checkEqual(await errorsOf(device, code), [], "errors");
        const broken = code.replace("subgroupMatrixMultiplyAccumulate(l0", "subgroupMatrixMultiplyAccumulate(r0");
        check(broken !== code && (await errorsOf(device, broken)).length > 0, "a wrong operand is not reported");
    });
}

await test("matrices: the probe compiles", async () => {
    checkEqual(await errorsOf(device, MATRIX_PROBE), [], "errors");
});

const CONFIG = { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 };

/** The null adapter with other properties. */
function adapterWith(configs: object[], size = 32, lacks = "", adapter = nullAdapter): GPUAdapter {
    const info = { ...{ vendor: "", architecture: "", device: "", description: "" }, subgroupMinSize: size, subgroupMaxSize: 32 };
    const features = { has: (name: string) => name !== lacks && adapter.features.has(name) };
    return new Proxy(adapter, {
        get(target, key) {
            if (key === "info") {
                return { ...info, subgroupMatrixConfigs: configs };
            }
            const value = Reflect.get(target, key, target) as unknown;
            return key === "features" ? features : typeof value === "function" ? value.bind(target) : value;
        },
    });
}

await test("matrices: only the configuration of the kernels is accepted", () => {
    check(offersMatrices(adapterWith([{ ...CONFIG, K: 8 }, CONFIG])), "supported configuration");
    check(!offersMatrices(adapterWith([])), "no configuration");
    check(!offersMatrices(adapterWith([{ ...CONFIG, M: 8, N: 8, K: 8 }])), "8 by 8 by 8");
    check(!offersMatrices(adapterWith([{ ...CONFIG, resultComponentType: "f16" }])), "sums in f16");
    check(!offersMatrices(adapterWith([CONFIG], 16)), "subgroups of 16 or 32");
    check(!offersMatrices(adapterWith([CONFIG], 32, "shader-f16")), "without f16");
    check(!offersMatrices(nullAdapter), "the null adapter, which reports no configuration");
});

for (const [flags, reported] of [
    [0, true],
    [1, false],
    [2, false],
    [4, false],
] as const) {
    await test(`matrices: ${reported ? "reported" : "not reported"} to the engine with flags ${flags}`, async () => {
        const memory = new Memory(new WebAssembly.Memory({ initial: 64 }));
        const requestAdapter = async () => adapterWith([CONFIG], 32, "", await freshAdapter());
        const entry = { requestAdapter } as unknown as GPU;
        const gpu = new Gpu(entry, () => memory);
        const handle = gpu.imports.open(flags);
        while (gpu.imports.state(handle) === 0) {
            await gpu.changed();
        }
        checkEqual(gpu.imports.state(handle), READY, "state");
        gpu.imports.describe(handle, FIELDS, 1024, 128);
        checkEqual(((memory.doublesAt(FIELDS, 11)[10] ?? 0) & MATRICES_BIT) !== 0, reported, "matrices");
    });
}

finish();
