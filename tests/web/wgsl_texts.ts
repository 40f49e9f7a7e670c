/** Every WGSL text that a GPU may get, kernel by kernel, block type by block type, with and without subgroup operations,
 * validated by Dawn's compiler on a device with only the features that the text enables. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { check, checkEqual, test } from "./check.js";

interface Kernel {
    kernel: string;
    type: string | null;
    subgroups: boolean;
    text: string;
}

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

    await test("wgsl: a wrong text is reported, and a feature that is not enabled", async () => {
        const { text } = kernels.find(({ subgroups }) => subgroups) as Kernel;
        const plain = text.replace(/^enable subgroups;$/m, "");
        check(plain !== text && (await errorsOf(await deviceWith([]), plain)).length > 0, "subgroup operations without the feature");
        check((await errorsOf(await deviceWith(["subgroups"]), `${text}\nfn wrong() -> u32 { return 1.5; }`)).length > 0, "a wrong type");
        checkEqual(kernels.length > 300, true, "number of texts");
    });
}
