/** The engine in JavaScript: exports and imports, the CPU path, sources, cancelling, errors, memory. */
import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { promisify } from "node:util";
import {
    BezelError,
    blobSource,
    bytesSource,
    Gpu,
    statusNames,
    type Canvas,
    type Engine,
    type Source,
} from "../../web/package/src/index.js";
import { Memory } from "../../web/package/src/memory.js";
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { lostAfter, withBrokenShader, withLittleMemory } from "./faults.js";
import { fuzzTargets } from "./fuzz_targets.js";
import { errorRatio, Golden, goldenFolder, modelFolder, readAnswer, readSynth, sampled } from "./golden.js";
import { greedy, logitsOf, newEngine, wasmPath, withModel } from "./models.js";
import { fileSource, gpuEntry, readBytes } from "./platform.js";

const nano = `${modelFolder}/nano-e-q4_0.gguf`;
const largeVocabulary = `${modelFolder}/large-vocab.gguf`;

async function codeOf(act: () => Promise<unknown>): Promise<string> {
    try {
        await act();
    } catch (reason) {
        check(reason instanceof BezelError, `not a BezelError: ${String(reason)}`);
        return (reason as BezelError).code;
    }
    return "none";
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) {
        all.push(item);
    }
    return all;
}

const prompt = (n: number): Int32Array =>
    Int32Array.from({ length: n }, (_, i) => (i ? 494 + ((i * 37) % 139) : 2));

// ---- the module ---------------------------------------------------------------------------------

await test("bezel.wasm is below 1 MB", async () => {
    const { size } = await stat(wasmPath);
    check(size < 1e6, `${size} bytes`);
});

await test("the module imports only what the package provides", async () => {
    const module = await WebAssembly.compile(await readBytes(wasmPath));
    const wanted = WebAssembly.Module.imports(module).map(({ module: from, name }) => `${from}.${name}`);
    const provided = Object.keys(
        new Gpu(null, () => new Memory(new WebAssembly.Memory({ initial: 1 }))).imports,
    );
    const known = new Set([...provided.map((name) => `gpu.${name}`), "os.now"]);
    checkEqual(
        wanted.filter((name) => !known.has(name)),
        [],
        "unknown imports",
    );
    check(wanted.includes("gpu.replay") && wanted.includes("os.now"), `imports: ${String(wanted)}`);
});

await test("error codes have the same names as in C", async () => {
    const { exports, memory } = await newEngine(null);
    statusNames.forEach((name, i) => checkEqual(memory.cString(exports.status_name(i)), name, `code ${i}`));
    checkEqual(memory.cString(exports.status_name(statusNames.length)), "unknown", "past the end");
});

await test("the number of imported calls per token is bounded", async () => {
    const { instantiate } = WebAssembly;
    let calls = 0;
    const counted = (imports: WebAssembly.Imports): WebAssembly.Imports =>
        Object.fromEntries(
            Object.entries(imports).map(([module, functions]) => [
                module,
                Object.fromEntries(
                    Object.entries(functions).map(([name, call]) => [
                        name,
                        (...args: unknown[]): unknown => {
                            calls++;
                            return (call as (...a: unknown[]) => unknown)(...args);
                        },
                    ]),
                ),
            ]),
        );
    WebAssembly.instantiate = ((source: WebAssembly.Module, imports: WebAssembly.Imports) =>
        instantiate(source, counted(imports))) as typeof WebAssembly.instantiate;
    let engine: Engine;
    try {
        engine = await newEngine();
    } finally {
        WebAssembly.instantiate = instantiate;
    }
    await withModel(engine, nano, { device: "gpu" }, async (model) => {
        const session = await model.newSession();
        await session.prefill(prompt(8));
        const at: number[] = [];
        for await (const { token } of session.generate({ greedy: true, ignoreEnd: true, maxTokens: 24 })) {
            at.push(token < 0 ? 0 : calls);
        }
        const perToken = ((at[23] ?? 0) - (at[8] ?? 0)) / 15;
        check(perToken > 0 && perToken < 25, `${perToken} calls per token`);
        session.free();
    });
});

// ---- the CPU path -------------------------------------------------------------------------------

for (const name of ["e-like", "moe-like", "dense-like"]) {
    await test(`cpu ${name}`, async () => {
        const golden = await Golden.open(`${goldenFolder}/${name}/golden.gguf`);
        const ids = golden.ints("text.2.tokens") as Int32Array;
        await withModel(
            await newEngine(null),
            `${goldenFolder}/${name}/text.gguf`,
            { device: "cpu" },
            async (model) => {
                const d = maxDifference(
                    await logitsOf(model, { exact: true }, ids),
                    golden.floats("text.2.logits"),
                );
                check(d <= 1e-3, `logits off by ${d}`);
                const want = [...(golden.ints("text.2.greedy") ?? [])];
                checkEqual(await greedy(model, { exact: true }, ids, want.length), want, "greedy tokens");
            },
        );
    });
}

await test("cpu block types", async () => {
    const entries = (await readSynth()).filter(({ name }) => /tiny-e-(q4_k_m|q6_k|iq4_xs|q8_0)$/.test(name));
    checkEqual(entries.length, 4, "models");
    for (const entry of entries) {
        const want = await readAnswer(entry);
        await withModel(await newEngine(null), `${modelFolder}/${entry.name}.gguf`, {}, async (model) => {
            for (const kernels of ["simd128", "plain"]) {
                const exact = sampled(entry, await logitsOf(model, { exact: true, kernels }, entry.tokens));
                const d = maxDifference(exact, want);
                check(d <= 1e-3, `${entry.name}, ${kernels}: off by ${d}`);
                const ratio = errorRatio(
                    entry,
                    sampled(entry, await logitsOf(model, { kernels }, entry.tokens)),
                    want,
                );
                check(ratio <= 1.1, `${entry.name}, ${kernels}: ${ratio} times llama.cpp's error`);
            }
        });
    }
});

/** What the native program prints. Its standard input ends at once: it would be part of the prompt. */
async function printed(...options: string[]): Promise<string> {
    const running = promisify(execFile)("build/bezel", options);
    running.child.stdin?.end();
    return (await running).stdout;
}

// ---- chat ---------------------------------------------------------------------------------------

for (const device of ["gpu", "cpu"] as const) {
    await test(`a chat on the ${device} gives the native program's answer`, async () => {
        const path = nano;
        const question = "Name three gems.";
        const native = await printed(
            "run",
            path,
            question,
            "--temp",
            "0",
            "-n",
            "24",
            "--no-think",
            "-q",
            "--device",
            device,
            "--exact", // int8 activations can round differently between two WebGPU libraries
            ...(device === "cpu" ? ["--kernels", "plain"] : []),
        );
        await withModel(
            await newEngine(device === "cpu" ? null : undefined),
            path,
            { device },
            async (model) => {
                const turn = model.newTurn({ messages: [{ role: "user", content: question }], think: false });
                const session = await model.newSession({
                    exact: true,
                    ...(device === "cpu" ? { kernels: "plain" } : {}),
                });
                await session.prefill(turn.prompt, { snapshotAt: turn.snapshotAt });
                let text = "";
                const push = (token: number): void => {
                    for (const part of turn.push(token)) {
                        text += part.kind === "answer" ? part.text : "";
                    }
                };
                for await (const { token } of session.generate({ temperature: -1, maxTokens: 24 })) {
                    push(token);
                }
                push(-1);
                turn.free();
                session.free();
                check(text.length > 10, `an answer: ${JSON.stringify(text)}`);
                checkEqual(text.trim(), native.trim(), "answer");
            },
        );
    });
}

await test("tokens: control tokens are parsed only on request", async () => {
    await withModel(await newEngine(null), nano, {}, async (model) => {
        const plain = model.tokenize("<bos>");
        const special = model.tokenize("<bos>", { specials: true });
        check(
            plain.length > 1 && special.length === 1 && special[0] === 2,
            `${String(plain)} and ${String(special)}`,
        );
        checkEqual(model.tokenize("", { bos: true })[0], 2, "bos");
        const text = "Gems: \u00e9t\u00e9, \u{1F48E}!";
        checkEqual(model.textOf(model.tokenize(text)), text, "round trip");
        checkEqual(model.textOf([2]), "", "control tokens are hidden");
        checkEqual(new TextDecoder().decode(model.pieceOf(2)), "<bos>", "piece");
    });
});

for (const device of ["cpu", "gpu"] as const) {
    await test(`a diffusion model on the ${device}: every denoising step, then its tokens`, async () => {
        const path = `${goldenFolder}/diffusion/text.gguf`;
        const prompt = (await Golden.open(`${goldenFolder}/diffusion/golden.gguf`)).ints("prompt") ?? new Int32Array();
        const engine = await newEngine(device === "cpu" ? null : undefined);
        await withModel(engine, path, device === "cpu" ? {} : { device }, async (model) => {
            const session = await model.newSession({ exact: true });
            const canvases: Canvas[] = [];
            await session.prefill(prompt);
            const options = { maxTokens: 32, ignoreEnd: true, seed: 1 };
            const tokens = await collect(session.generate(options, { onCanvas: (c) => canvases.push(c) }));
            checkEqual(tokens.length, 32, "tokens");
            checkEqual(canvases.map((c) => c.step).join(), "1,2,3,4,5,6,1,2,3,4,5,6", "steps");
            checkEqual(canvases[6]?.position, prompt.length + 16, "position of the second canvas");
            check(
                canvases.every((c) => c.steps === 6 && c.tokens === 16),
                "shape",
            );
            const native = await printed("diffuse", path, "-t", prompt.join(), "-n", "32", "--ignore-end", "--seed", "1");
            checkEqual(tokens.map((t) => t.token).join(), native.trim(), "tokens of the native program");
            session.free();
        });
    });
}

await test("a diffusion model larger than its memory limit: layers are read from the file in every pass", async () => {
    const path = `${goldenFolder}/diffusion/text.gguf`;
    const prompt = (await Golden.open(`${goldenFolder}/diffusion/golden.gguf`)).ints("prompt") ?? new Int32Array();
    const outputs: string[] = [];
    for (const gpuMemory of [0, 900_000]) {
        await withModel(await newEngine(), path, { device: "gpu", gpuMemory }, async (model) => {
            // exact: with the kernels of the test before; the native test_stream has int8 activations
            const session = await model.newSession({ exact: true });
            await session.prefill(prompt);
            const tokens = await collect(session.generate({ maxTokens: 32, ignoreEnd: true, seed: 1 }));
            outputs.push(tokens.map((t) => t.token).join());
            session.free();
        });
    }
    checkEqual(outputs[1], outputs[0], "tokens");
});

// ---- options, sources, cancelling ---------------------------------------------------------------

await test("unknown and invalid options are refused", async () => {
    await withModel(await newEngine(null), nano, {}, async (model) => {
        checkEqual(
            await codeOf(async () => model.newSession({ contxt: 3 } as object)),
            "bad_request",
            "unknown",
        );
        checkEqual(await codeOf(async () => model.newSession({ context: -1 })), "bad_request", "negative");
        checkEqual(await codeOf(async () => model.newSession({ context: 1e9 })), "bad_request", "too large");
        const session = await model.newSession();
        await session.prefill(prompt(4));
        for (const wrong of [
            { stop: "x" },
            { bias: [[1]] },
            { stopIds: [1.5] },
            { seed: -1 },
            { greedy: 1 },
        ]) {
            const run = async (): Promise<void> => {
                await session.generate(wrong as object).next();
            };
            checkEqual(await codeOf(run), "bad_request", JSON.stringify(wrong));
        }
        session.free();
    });
    const engine = await newEngine(null);
    const open = async (): Promise<unknown> =>
        withModel(engine, nano, { device: "tpu" as "gpu" }, () => Promise.resolve());
    checkEqual(await codeOf(open), "bad_request", "device");
});

await test("options reach the sampler", async () => {
    await withModel(await newEngine(null), nano, {}, async (model) => {
        const session = await model.newSession();
        await session.prefill(prompt(4));
        const [first] = await collect(
            session.generate({ greedy: true, maxTokens: 1, logProbs: true, topLogProbs: 3 }),
        );
        check(first !== undefined && first.logProb < 0 && first.top.length === 3, "log-probabilities");
        checkEqual(first?.top[0]?.token, first?.token, "the likeliest");
        await session.prefill(prompt(4));
        const bias: [number, number][] = [[first?.token ?? 0, -Infinity]];
        const [second] = await collect(session.generate({ greedy: true, maxTokens: 1, bias }));
        checkEqual(second?.token, first?.top[1]?.token, "the next likeliest");
        await session.prefill(prompt(4));
        const stopped = await collect(
            session.generate({ greedy: true, maxTokens: 9, stopIds: [first?.token ?? 0] }),
        );
        checkEqual([stopped.length, session.finish], [1, "stop"], "stop ids");
        session.free();
    });
});

await test("sources: blobs and bytes equal a file; a split model", async () => {
    const engine = await newEngine(null);
    const bytes = await readBytes(nano);
    const want = await withModel(engine, nano, {}, (model) => logitsOf(model, {}, prompt(6)));
    for (const source of [blobSource(new Blob([bytes]), "blob.gguf"), bytesSource(bytes)]) {
        const model = await engine.openModel([source]);
        checkEqual(maxDifference(await logitsOf(model, {}, prompt(6)), want), 0, source.name);
        model.free();
    }
    const parts = await Promise.all(
        [3, 1, 2].map((i) => fileSource(`${modelFolder}/nano-e-f32-0000${i}-of-00003.gguf`)),
    );
    const model = await engine.openModel(parts);
    check(model.vocab > 0, "vocabulary");
    model.free();
    await Promise.all(parts.map((part) => part.close()));
});

await test("invalid files, truncated files, and failing sources", async () => {
    const engine = await newEngine(null);
    const bytes = await readBytes(nano);
    const open = (source: Source) => async (): Promise<void> => (await engine.openModel([source])).free();
    checkEqual(
        await codeOf(open(bytesSource(new TextEncoder().encode("<html>not a model</html>")))),
        "bad_file",
        "text",
    );
    checkEqual(await codeOf(open(bytesSource(bytes.slice(0, bytes.length / 2)))), "bad_file", "half");
    const failing: Source = {
        ...bytesSource(bytes),
        read: () => Promise.reject(new Error("the cable is out")),
    };
    checkEqual(await codeOf(open(failing)), "bad_file", "failing");
    const short: Source = {
        ...bytesSource(bytes),
        read: (offset, n) => Promise.resolve(bytes.slice(offset, offset + n - 1)),
    };
    checkEqual(await codeOf(open(short)), "bad_file", "short");
    const offline: Source = {
        ...bytesSource(bytes),
        read: () => Promise.reject(new BezelError("network", "No network.")),
    };
    checkEqual(await codeOf(open(offline)), "network", "a BezelError is passed on");
    await open(bytesSource(bytes))(); // the engine still works
});

await test("cancelling, and continuing afterwards", async () => {
    await withModel(await newEngine(), nano, { device: "gpu" }, async (model) => {
        const session = await model.newSession();
        const stopped = AbortSignal.abort();
        checkEqual(
            await codeOf(() => session.prefill(prompt(8), { signal: stopped })),
            "aborted",
            "before the start",
        );
        await session.prefill(prompt(8));
        let n = 0;
        for await (const { token } of session.generate({ greedy: true, ignoreEnd: true })) {
            n += Number(token >= 0);
            if (n === 3) {
                break;
            }
        }
        const control = new AbortController();
        const run = async (): Promise<void> => {
            await session.prefill(prompt(8));
            for await (const { token } of session.generate({ greedy: true, ignoreEnd: true }, control)) {
                n += Number(token >= 0);
                control.abort();
            }
        };
        checkEqual(await codeOf(run), "aborted", "while generating");
        const fresh = await greedy(model, {}, prompt(8), 6);
        await session.prefill(prompt(8));
        const again = await collect(session.generate({ greedy: true, ignoreEnd: true, maxTokens: 6 }));
        checkEqual(
            again.map(({ token }) => token),
            fresh,
            "the same tokens",
        );
        session.free();
    });
});

await test("per-layer embeddings in the file give the same tokens as resident ones", async () => {
    const outputs: number[][] = [];
    for (const ple of ["resident", "file"] as const) {
        await withModel(await newEngine(), nano, { device: "gpu", ple }, async (model) => {
            const session = await model.newSession({ exact: true });
            await session.prefill(prompt(30));
            const tokens = await collect(session.generate({ greedy: true, ignoreEnd: true, maxTokens: 12 }));
            outputs.push(tokens.map(({ token }) => token));
            check(
                session.stats.pleMisses > 0 === (ple === "file"),
                `${session.stats.pleMisses} rows fetched`,
            );
            session.free();
        });
    }
    checkEqual(outputs[1], outputs[0], "tokens");
});

// ---- GPU faults ---------------------------------------------------------------------------------

const entry = await gpuEntry();

/** Generates tokens; returns them with the number of reloads and of submits for opening the model. */
async function useGpu(gpu: GPU | null): Promise<{ generated: number[]; reloads: number; opening: number }> {
    const engine = await newEngine(gpu);
    return withModel(engine, nano, { device: "gpu" }, async (model) => {
        const opening = engine.counts.submits;
        let reloads = 0;
        const onReload = (done: number, total: number): void => {
            reloads += Number(done === total);
        };
        const session = await model.newSession({ exact: true });
        await session.prefill(prompt(40), { onReload });
        const generated = await collect(
            session.generate({ greedy: true, ignoreEnd: true, maxTokens: 12 }, { onReload }),
        );
        session.free();
        return { generated: generated.map(({ token }) => token), reloads, opening };
    });
}

await test("gpu: no fault", async () => {
    checkEqual(await codeOf(() => useGpu(entry)), "none", "code");
});
await test("gpu: no WebGPU, no adapter, no device", async () => {
    checkEqual(await codeOf(() => useGpu(null)), "no_webgpu", "none");
    const empty = { requestAdapter: () => Promise.resolve(null) } as unknown as GPU;
    checkEqual(await codeOf(() => useGpu(empty)), "no_adapter", "no adapter");
    const refusing = { requestAdapter: () => Promise.reject(new Error("no")) } as unknown as GPU;
    checkEqual(await codeOf(() => useGpu(refusing)), "no_adapter", "refused");
});
await test("gpu: lost repeatedly", async () => {
    for (const submits of [1, 2]) {
        checkEqual(await codeOf(() => useGpu(lostAfter(entry, submits))), "device_lost", `after ${submits}`);
    }
});
await test("gpu: lost once, during prefill and during generation: the tokens are the same", async () => {
    const want = await useGpu(entry);
    checkEqual([want.generated.length, want.reloads], [12, 0], "without a loss");
    for (const submits of [1, 2, 9]) {
        const { generated, reloads } = await useGpu(lostAfter(entry, want.opening + submits, 1));
        checkEqual([generated, reloads], [want.generated, 1], `lost ${submits} submits after opening`);
    }
    checkEqual(await codeOf(() => useGpu(lostAfter(entry, 0, 1))), "device_lost", "while opening");
});
await test("gpu: out of memory, while opening and later", async () => {
    for (const bytes of [100_000, 400_000, 700_000]) {
        checkEqual(
            await codeOf(() => useGpu(withLittleMemory(entry, bytes))),
            "out_of_memory",
            `${bytes} bytes`,
        );
    }
});
await test("gpu: a kernel that does not compile", async () => {
    checkEqual(await codeOf(() => useGpu(withBrokenShader(entry, "norm"))), "bad_request", "norm");
});

// ---- memory ---------------------------------------------------------------------------------------

await test("a model with a vocabulary of 262,144 and weights on the GPU needs less than 64 MB of heap", async () => {
    const engine = await newEngine();
    const file = await fileSource(largeVocabulary);
    let [inFlight, maxInFlight, progress] = [0, 0, 0];
    const watched: Source = {
        ...file,
        read: async (offset, length) => {
            inFlight += length;
            maxInFlight = Math.max(maxInFlight, inFlight);
            const bytes = await file.read(offset, length);
            inFlight -= length;
            return bytes;
        },
    };
    const model = await engine.openModel([watched], {
        device: "gpu",
        onProgress: (done, total) => (progress = done / total),
    });
    const opened = engine.memory.size;
    checkEqual(model.vocab, 262144, "vocabulary");
    checkEqual(progress, 1, "progress");
    check(file.size > 100e6 && engine.counts.bufferBytes > 100e6, "the weights are on the GPU");
    check(opened < 64e6, `${opened} bytes after opening`);
    check(maxInFlight <= 64 << 20, `${maxInFlight} bytes in flight`);
    const session = await model.newSession({ context: 512 });
    await session.prefill(prompt(4));
    await collect(session.generate({ maxTokens: 2, ignoreEnd: true }));
    check(engine.memory.size < 64e6, `${engine.memory.size} bytes at the end`);
    session.free();
    model.free();
    await file.close();
});

for (const { name, run } of fuzzTargets) {
    await test(`random inputs: ${name}`, async () => {
        for (let seed = 1; seed <= 40; seed++) {
            await run(seed);
        }
    });
}

finish();
