/** Every WGSL text that a GPU may get, kernel by kernel, block type by block type, with and without subgroup operations,
 * validated by Dawn's compiler on a device with only the features that the text enables; then the pipelines that models of
 * all kinds need on nine devices, with the constants that lowering gives them: sizes of arrays and workgroups depend on those. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { check, checkEqual, test } from "./check.js";

interface Kernel {
    kernel: string;
    type: string | null;
    subgroups: boolean;
    text: string;
}

/** What build/tests/gpu/list_pipelines prints. */
interface Pipeline {
    kernel: string;
    type: string | null;
    subgroups: boolean;
    constants: Record<string, number>;
}

/** Files without weights, of the published shapes; what depends on the number of layers is found in 12 of them. */
const SHAPES = ["e2b q4_k_m", "e4b q4_0", "12b q8_0", "26b-a4b q4_k_m", "31b q6_k", "diffusion-26b q4_k_m"];
const MODELS = "build/models";
const GOLDEN = "build/golden";

const FEATURES: Record<string, string> = {
    f16: "shader-f16",
    subgroups: "subgroups",
    chromium_experimental_subgroup_matrix: "chromium-experimental-subgroup-matrix",
};

/** gpu: Dawn with its null adapter, which has every feature. */
export async function testWgslTexts(gpu: GPU): Promise<void> {
    const { stdout } = await promisify(execFile)("build/bezel", ["show", "--wgsl", "--json"], { maxBuffer: 64 << 20 });
    const kernels = JSON.parse(stdout) as Kernel[];

    const devices = new Map<string, GPUDevice>();

    async function deviceWith(features: string[]): Promise<GPUDevice> {
        const key = features.join();
        const known = devices.get(key);
        if (known) {
            return known;
        }
        const adapter = await gpu.requestAdapter(); // one that can create a device
        check(adapter !== null, "Dawn has no null adapter");
        const device = await (adapter as GPUAdapter).requestDevice({ requiredFeatures: features as GPUFeatureName[] });
        devices.set(key, device);
        return device;
    }

    async function errorsOf(device: GPUDevice, code: string): Promise<string[]> {
        device.pushErrorScope("validation");
        const info = await device.createShaderModule({ code }).getCompilationInfo();
        await device.popErrorScope();
        return info.messages.filter((m) => m.type === "error").map((m) => `line ${m.lineNum}: ${m.message}`);
    }

    const featuresOf = (text: string): string[] => [...text.matchAll(/^enable (\w+);/gm)].map(([, name = ""]) => FEATURES[name] ?? name).sort();

    const byName = new Map<string, Kernel[]>();
    for (const kernel of kernels) {
        byName.set(kernel.kernel, [...(byName.get(kernel.kernel) ?? []), kernel]);
    }

    for (const [name, forms] of byName) {
        await test(`wgsl: ${name}, ${forms.length} texts`, async () => {
            for (const { type, subgroups, text } of forms) {
                const features = featuresOf(text);
                const what = `${type ?? "any type"}, features ${features.join() || "none"}`;
                checkEqual(await errorsOf(await deviceWith(features), text), [], what);
                check(/@compute/.test(text), `${what}: no entry point`);
                check(subgroups || features.length === 0 || /matrix|tile16/.test(name), `${what}: the plain form needs a feature`);
            }
        });
    }

    const textOf = new Map(kernels.map(({ kernel, type, subgroups, text }) => [`${kernel} ${type} ${subgroups}`, text]));

    async function pipelineError({ kernel, type, subgroups, constants }: Pipeline): Promise<string> {
        const code = textOf.get(`${kernel} ${type} ${subgroups}`) ?? "";
        const device = await deviceWith(featuresOf(code));
        device.pushErrorScope("validation");
        device.createComputePipeline({ layout: "auto", compute: { module: device.createShaderModule({ code }), constants } });
        return (await device.popErrorScope())?.message ?? "";
    }

    await test("wgsl: the pipelines of all models on devices of all kinds", async () => {
        const run = promisify(execFile);
        const folder = await mkdtemp(join(tmpdir(), "bezel-shapes-"));
        try {
            const make = SHAPES.map((shape) => {
                const [name = "", type = ""] = shape.split(" ");
                return ["tools/gemma4_synth.py", name, join(folder, `${name}.gguf`), "--type", type, "--vocab", "2560", "--layers", "12", "--holes", "--quiet"];
            });
            for (const options of make) {
                await run("/usr/bin/python3", options);
            }
            const [e2b = "", drafter = "", clusters = ""] = ["e2b.gguf", "drafter.gguf", "clusters.gguf"].map((name) => join(folder, name));
            await run("/usr/bin/python3", ["tools/assistant_synth.py", e2b, drafter, "--type", "q4_0"]);
            await run("/usr/bin/python3", ["tools/assistant_synth.py", e2b, clusters, "--type", "q4_0", "--clusters", "80"]);
            const small = process.env.BEZEL_QUICK ? ["tiny-e-q4_k_m", "tiny-moe-q4_k_m"] : ["tiny-e-q4_k_m", "tiny-moe-q4_k_m", "tiny-e-iq4_xs", "tiny-e-q8_0", "tiny-dense-q6_k"];
            const models = [...make.map(([, , path = ""]) => path), ...small.map((name) => `${MODELS}/${name}.gguf`)];
            models.push(`${e2b},${drafter}`, `${e2b},${clusters}`, `${GOLDEN}/dense-like/text.gguf,${GOLDEN}/assistant/assistant.gguf`);
            models.push(`${GOLDEN}/e-like/text.gguf,${GOLDEN}/e-like/mmproj.gguf`, `${GOLDEN}/diffusion/text.gguf`,
                ...["embedding", "embedding2"].map((name) => `${GOLDEN}/${name}/text.gguf`));
            const { stdout } = await run("build/tests/gpu/list_pipelines", models, { maxBuffer: 64 << 20 });
            const pipelines = JSON.parse(stdout) as Pipeline[];
            const errors: string[] = [];
            for (const pipeline of pipelines) {
                const error = await pipelineError(pipeline);
                if (error) {
                    errors.push(`${JSON.stringify(pipeline)}: ${error}`);
                }
            }
            checkEqual(errors.slice(0, 3), [], `errors, ${errors.length} of ${pipelines.length}`);
            check(pipelines.length > 500, `only ${pipelines.length} pipelines`);
            check(pipelines.some(({ kernel }) => kernel === "best"), "no drafter was lowered");
            check(pipelines.some(({ kernel }) => kernel === "linear_listed"), "no drafter with clusters was lowered");
            const one = pipelines.find(({ kernel }) => kernel === "attend_tile") as Pipeline;
            check((await pipelineError({ ...one, constants: { ...one.constants, THREADS: 2048 } })) !== "", "a workgroup that is too large is not reported");
            check((await pipelineError({ ...one, constants: { ...one.constants, NOTHING: 1 } })) !== "", "a constant that the kernel has not is not reported");
        } finally {
            await rm(folder, { recursive: true });
        }
    });

    await test("wgsl: a wrong text is reported, and a feature that is not enabled", async () => {
        const { text } = kernels.find(({ subgroups }) => subgroups) as Kernel;
        const plain = text.replace(/^enable subgroups;$/m, "");
        check(plain !== text && (await errorsOf(await deviceWith([]), plain)).length > 0, "subgroup operations without the feature");
        check((await errorsOf(await deviceWith(["subgroups"]), `${text}\nfn wrong() -> u32 { return 1.5; }`)).length > 0, "a wrong type");
        checkEqual(kernels.length > 300, true, "number of texts");
    });
}
