/** Every block type through WebAssembly and WebGPU against float64, within the bounds of tests/gpu/test_model.c. */
import { check, finish, maxDifference, test } from "./check.js";
import { errorRatio, modelFolder, readAnswer, readSynth, sampled } from "./golden.js";
import { logitsOf, newEngine, withModel } from "./models.js";
import { hostName } from "./platform.js";

const BOUND = 2e-3;
const ratios = new Map<string, number[]>();

// Nothing rounded against float64, 8-bit activations against llama.cpp's error. Files that differ in their
// seed only are judged together, as in tests/support/synth.c.
for (const entry of await readSynth()) {
    const want = await readAnswer(entry);
    const engine = await newEngine();
    await withModel(engine, `${modelFolder}/${entry.name}.gguf`, { device: "gpu" }, async (model) => {
        await test(`${hostName} ${entry.name} f32`, async () => {
            const got = sampled(entry, await logitsOf(model, { exact: true }, entry.tokens));
            const most = maxDifference(got, want);
            check(most <= BOUND, `off by ${most}`);
        });
        await test(`${hostName} ${entry.name} 8-bit activations`, async () => {
            const got = sampled(entry, await logitsOf(model, { chunk: 8 }, entry.tokens));
            const ratio = errorRatio(entry, got, want);
            check(Number.isFinite(ratio), `${ratio} times llama.cpp's error`);
            const group = entry.name.replace(/-s\d+$/, "");
            ratios.set(group, [...(ratios.get(group) ?? []), ratio]);
        });
    });
}
for (const [group, all] of ratios) {
    await test(`${hostName} ${group} with 8-bit activations: error against llama.cpp's`, () => {
        const ratio = Math.exp(all.reduce((sum, x) => sum + Math.log(x), 0) / all.length);
        check(ratio <= 1.1, `${ratio.toFixed(2)} times over ${all.length} files`);
    });
}

finish();
