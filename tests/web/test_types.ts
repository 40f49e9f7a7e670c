/** Every block type through WebAssembly and WebGPU against float64, within the bounds of tests/gpu/test_model.c. */
import { check, finish, maxDifference, test } from "./check.js";
import { errorRatio, modelFolder, readAnswer, readSynth, sampled } from "./golden.js";
import { logitsOf, newEngine, withModel } from "./models.js";
import { hostName } from "./platform.js";

/** Models to test with int8 activations: one per kind of kernel, because compiling dominates on a software adapter. */
const withInt8 = new Set([
    "nano-e-q8_0",
    "nano-moe-q8_0",
    "tiny-e-q4_0",
    "tiny-e-q4_k_m",
    "tiny-e-q5_k_m",
    "tiny-dense-q6_k",
    "tiny-moe-q4_k_m",
]);

for (const entry of await readSynth()) {
    const want = await readAnswer(entry);
    const engine = await newEngine();
    await withModel(engine, `${modelFolder}/${entry.name}.gguf`, { device: "gpu" }, async (model) => {
        await test(`${hostName} ${entry.name} f32`, async () => {
            const got = sampled(entry, await logitsOf(model, { exact: true }, entry.tokens));
            const max = maxDifference(got, want);
            check(max <= 2e-3, `off by ${max}`);
        });
        for (const chunk of withInt8.has(entry.name) ? [8, 512] : []) {
            await test(`${hostName} ${entry.name} int8 activations, ${chunk} rows`, async () => {
                const got = sampled(entry, await logitsOf(model, { chunk }, entry.tokens));
                const ratio = errorRatio(entry, got, want);
                check(ratio <= 1.1, `${ratio} times llama.cpp's error`);
            });
        }
    });
}
finish();
