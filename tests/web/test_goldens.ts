/** Whole models through WebAssembly and WebGPU against Hugging Face's outputs, within the bounds of
 * tests/gpu/test_model.c. A missing adapter is a failure. */
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { Golden, goldenFolder, modelFolder } from "./golden.js";
import { greedy, logitsOf, newEngine, withModel } from "./models.js";
import { hostName, quick } from "./platform.js";

const BOUND = 2e-3;

/** Chunks of prompt 2: of many rows, of few and decoding. A short run omits the small ones: the greedy answers decode too,
 * and the native test_model compares decoded logits in every run. `sameWeights`: an earlier model has them in another layout;
 * its small chunks are not repeated. */
function chunksOf(prompt: number, sameWeights: boolean): number[] {
    return prompt !== 2 || sameWeights || quick ? [512] : [512, 7, 1];
}

async function testGolden(name: string, path: string, reference: string, sameWeights = false): Promise<void> {
    const golden = await Golden.open(`${goldenFolder}/${reference}/golden.gguf`);
    const engine = await newEngine();
    await withModel(engine, path, { device: "gpu" }, async (model) => {
        for (const k of [0, 1, 2]) {
            const ids = golden.ints(`text.${k}.tokens`) as Int32Array;
            for (const chunk of chunksOf(k, sameWeights)) {
                await test(`${hostName} ${name} prompt ${k} chunk ${chunk}`, async () => {
                    const before = engine.counts.dispatches;
                    const got = await logitsOf(model, { exact: true, chunk }, ids);
                    check(engine.counts.dispatches > before, "it did not run on the GPU");
                    const d = maxDifference(got, golden.floats(`text.${k}.logits`));
                    check(d <= BOUND, `logits off by ${d}`);
                });
            }
            const want = golden.ints(`text.${k}.greedy`);
            if (want) {
                await test(`${hostName} ${name} greedy ${k}`, async () => {
                    checkEqual(await greedy(model, { exact: true }, ids, want.length), [...want], "tokens");
                });
            }
        }
    });
}

/** A device as on Safari, Firefox and phones: no features, default limits. */
async function testBaseline(name: string): Promise<void> {
    const golden = await Golden.open(`${goldenFolder}/${name}/golden.gguf`);
    const engine = await newEngine();
    await withModel(
        engine,
        `${goldenFolder}/${name}/text.gguf`,
        { device: "gpu-baseline" },
        async (model) => {
            for (const chunk of quick ? [512] : [512, 1]) {
                await test(`${hostName} baseline ${name} chunk ${chunk}`, async () => {
                    const limits = engine.gpu.devices[0];
                    check(limits?.features.f16 === false && !limits.features.subgroups, "it has features");
                    checkEqual(limits?.object.limits.maxStorageBufferBindingSize, 128 << 20, "binding limit");
                    checkEqual(
                        limits?.object.limits.maxComputeWorkgroupStorageSize,
                        16384,
                        "workgroup memory",
                    );
                    const got = await logitsOf(
                        model,
                        { exact: true, chunk },
                        golden.ints("text.2.tokens") as Int32Array,
                    );
                    const d = maxDifference(got, golden.floats("text.2.logits"));
                    check(d <= BOUND, `logits off by ${d}`);
                });
            }
            await test(`${hostName} baseline ${name} greedy`, async () => {
                const want = golden.ints("text.1.greedy") as Int32Array;
                const got = await greedy(model, { exact: true }, golden.ints("text.1.tokens") as Int32Array, want.length);
                checkEqual(got, [...want], "tokens");
            });
        },
    );
}

/** Keys and values in 8 and 4 bits, in WebAssembly and on the GPU, with the bounds of tests/test_golden.c. */
async function testCaches(name: string): Promise<void> {
    const golden = await Golden.open(`${goldenFolder}/${name}/golden.gguf`);
    const ids = golden.ints("text.2.tokens") as Int32Array;
    const path = `${goldenFolder}/${name}/text.gguf`;
    for (const kv of ["q8", "q4"] as const) {
        await test(`${hostName} ${name} with keys and values in ${kv}`, async () => {
            const options = { exact: true, kv };
            const got: Float32Array[] = [];
            await withModel(await newEngine(null), path, {}, async (model) => void got.push(await logitsOf(model, options, ids)));
            await withModel(await newEngine(), path, { device: "gpu" }, async (model) => void got.push(await logitsOf(model, options, ids)));
            const want = golden.floats("text.2.logits") as Float32Array;
            for (const logits of got) {
                let error = 0;
                let all = 0;
                want.forEach((x, k) => {
                    error += (x - (logits[k] as number)) ** 2;
                    all += x * x;
                });
                const relative = Math.sqrt(error / all);
                check(relative < (kv === "q8" ? 0.05 : 0.6) && relative > (kv === "q8" ? 0.005 : 0.05), `off by ${relative}`);
            }
        });
    }
}

await testGolden("e-like (llama.cpp layout)", `${goldenFolder}/e-like/text.gguf`, "e-like");
await testGolden("moe-like", `${goldenFolder}/moe-like/text.gguf`, "moe-like");
await testGolden("dense-like", `${goldenFolder}/dense-like/text.gguf`, "dense-like");
await testGolden("unified", `${goldenFolder}/unified/text.gguf`, "unified");
await testBaseline("e-like");
await testCaches("e-like");
// Node's Dawn compiles the kernels as the native one does, which test_model runs for all models; Deno's wgpu has another
// compiler. The layouts are read by the code that is tested natively.
if (!quick || hostName !== "node") {
    await testBaseline("moe-like");
    await testBaseline("dense-like");
}
if (!quick) {
    await testGolden("e-like (Ollama layout)", `${modelFolder}/e-like-whole.gguf`, "e-like", true);
    await testGolden("moe-like (early Ollama layout)", `${modelFolder}/moe-like-early.gguf`, "moe-like", true);
}
finish();
