/** The package's API: OpenAI's format, streams, tool calls, cancelling, the prefix cache, errors. */
import { copyFile, mkdtemp, readdir, readlink, rm, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
    Bezel,
    bytesSource,
    Engine,
    Session,
    type BezelModel,
    type ChatChunk,
    type Message,
    type Progress,
    type Tool,
} from "../../web/package/src/index.js";
import { adapterName } from "../../web/package/src/adapter_name.js";
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { Golden, goldenFolder, modelFolder } from "./golden.js";
import { wasmPath } from "./models.js";
import { codeOf, collect, errorOf, generating, localOptions, nano, tiny, withPackage } from "./package.js";
import { fileSource, gpuEntry, readBytes } from "./platform.js";

const question: Message[] = [{ role: "user", content: "Name three gems." }];
const create = (model: BezelModel) => model.chat.completions.create.bind(model.chat.completions);

// ---- format ---------------------------------------------------------------------------------------

await test("a complete answer in OpenAI's format", async () => {
    await withPackage(tiny, {}, async (model) => {
        const got = await model.chat.completions.create({ messages: question, max_tokens: 8, temperature: 0 });
        checkEqual(got.object, "chat.completion", "object");
        check(/^chatcmpl-\w{12,}$/.test(got.id) && Math.abs(got.created - Date.now() / 1000) < 100, "id and time");
        checkEqual(got.model, "tiny-e-q8_0", "model");
        const [choice] = got.choices;
        checkEqual([choice.index, choice.message.role, choice.finish_reason, choice.logprobs], [0, "assistant", "length", null], "choice");
        check((choice.message.content?.length ?? 0) > 0, "content");
        check(got.usage.prompt_tokens > 5 && got.usage.completion_tokens === 8, JSON.stringify(got.usage));
        checkEqual(got.usage.total_tokens, got.usage.prompt_tokens + 8, "total");
        check(got.timings.predicted_ms > 0 && got.timings.prompt_n === got.usage.prompt_tokens, JSON.stringify(got.timings));
    });
});

await test("the chunks of a stream add up to the complete answer", async () => {
    await withPackage(tiny, {}, async (model) => {
        const request = { messages: question, max_tokens: 12, temperature: 0 };
        const whole = await model.chat.completions.create(request);
        const chunks: ChatChunk[] = await collect(await model.chat.completions.create({ ...request, stream: true }));
        check(chunks.length > 5, `${chunks.length} chunks`);
        checkEqual(chunks[0]?.choices[0]?.delta.role, "assistant", "first");
        checkEqual(chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), whole.choices[0].message.content, "content");
        checkEqual(chunks.at(-2)?.choices[0]?.finish_reason, "length", "finish reason");
        checkEqual([chunks.at(-1)?.choices.length, chunks.at(-1)?.usage?.completion_tokens], [0, 12], "last");
        checkEqual(new Set(chunks.map(({ id }) => id)).size, 1, "ids");
    });
});

await test("a conversation that is too long loses its oldest turns, and the answer says so", async () => {
    await withPackage(tiny, { contextLength: 256 }, async (model) => {
        const turn = (i: number): Message[] => [
            { role: "user", content: `Question ${i}: what is it?` },
            { role: "assistant", content: "It is a small red house." },
        ];
        const messages: Message[] = [{ role: "system", content: "Be brief." }, ...Array.from({ length: 20 }, (_, i) => turn(i)).flat(), { role: "user", content: "And this?" }];
        const request = { messages, max_tokens: 4, temperature: 0 };
        const got = await model.chat.completions.create(request);
        const leftOut = got.context_shift?.left_out ?? 0;
        check(leftOut > 0 && leftOut % 2 === 0 && got.usage.prompt_tokens <= 252, JSON.stringify(got));
        const rest = { ...request, messages: [messages[0] as Message, ...messages.slice(1 + leftOut)] };
        const short = await model.chat.completions.create(rest);
        checkEqual([short.choices[0].message.content, short.context_shift], [got.choices[0].message.content, undefined], "the answer to what is left");
        const chunks = await collect(await model.chat.completions.create({ ...request, stream: true }));
        checkEqual([chunks[0]?.context_shift?.left_out, chunks.filter((c) => c.context_shift).length], [leftOut, 1], "once in a stream, before the answer");
        checkEqual(await codeOf(() => model.chat.completions.create({ ...request, context_shift: false })), "context_full", "context_shift: false");
        const pinned = messages.map((message, i) => ({ ...message, pinned: i === 1 }));
        const kept = await model.chat.completions.create({ ...request, messages: pinned });
        check((kept.context_shift?.left_out ?? 0) % 2 === 0 && kept.usage.prompt_tokens <= 252, JSON.stringify(kept));
    });
});

await test("a diffusion model's canvases come before the deltas, one per step", async () => {
    await withPackage(`${goldenFolder}/diffusion/text.gguf`, {}, async (model) => {
        const request = { messages: question, max_tokens: 24, seed: 3 };
        const chunks = await collect(await model.chat.completions.create({ ...request, stream: true }));
        const canvases = chunks.flatMap(({ canvas }) => (canvas ? [canvas] : []));
        check(canvases.length > 0 && canvases[0]?.step === 1, JSON.stringify(canvases.slice(0, 2)));
        for (const { text, step, steps, tokens } of canvases) {
            check(typeof text === "string" && step >= 1 && step <= steps && tokens > 0, JSON.stringify({ step, steps, tokens }));
        }
        const first = chunks.findIndex(({ canvas }) => canvas);
        check(first < chunks.findIndex(({ choices }) => choices[0]?.delta.content), "before the text");
        const { choices } = await model.chat.completions.create(request);
        checkEqual(choices[0].message.content, chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), "the answer without canvases");
        const session = await model.newSession();
        await session.prefill(await model.tokenize("A gem", { bos: true }));
        const steps: number[] = [];
        const tokens = await collect(session.generate({ maxTokens: 4, seed: 1, ignoreEnd: true, onCanvas: ({ step }) => steps.push(step) }));
        check(tokens.length === 4 && steps[0] === 1, `${tokens.length} tokens after steps ${String(steps)}`);
    });
});

await test("log-probabilities: one entry per token, with the likeliest alternatives", async () => {
    await withPackage(tiny, {}, async (model) => {
        const request = { messages: question, max_tokens: 6, temperature: 0, logprobs: true, top_logprobs: 3 };
        const { choices } = await model.chat.completions.create(request);
        const entries = choices[0].logprobs?.content ?? [];
        checkEqual(entries.length, 6, "entries");
        for (const { token, logprob, bytes, top_logprobs } of entries) {
            check(logprob < 0 && bytes.length > 0 && top_logprobs.length === 3, token);
            checkEqual([top_logprobs[0]?.token, top_logprobs[0]?.logprob], [token, logprob], "the likeliest is the token");
            checkEqual(new TextDecoder().decode(Uint8Array.from(bytes)), token, "bytes");
        }
    });
});

await test("settings reach the sampler: seed, bias, stop, temperature", async () => {
    await withPackage(nano, {}, async (model) => {
        const ask = async (more: object): Promise<string> =>
            (await model.chat.completions.create({ messages: question, max_tokens: 12, ...more })).choices[0].message.content ?? "";
        const first = await ask({ seed: 7 });
        checkEqual(await ask({ seed: 7 }), first, "same seed");
        check((await ask({ seed: 8 })) !== first, "another seed");
        check((await ask({})) !== (await ask({})), "no seed: a new one each time");
        const [id] = await model.tokenize("x");
        checkEqual(await ask({ logit_bias: { [String(id)]: 100 } }), "x".repeat(12), "bias");
        const stopped = await model.chat.completions.create({
            messages: question,
            logit_bias: { [String(id)]: 100 },
            max_tokens: 50,
            stop: ["xxx"],
        });
        checkEqual([stopped.choices[0].message.content, stopped.choices[0].finish_reason], ["", "stop"], "stop");
        check(stopped.usage.completion_tokens < 6, `${stopped.usage.completion_tokens} tokens until the stop string`);
    });
});

await test("invalid requests are refused before anything is computed", async () => {
    await withPackage(nano, {}, async (model) => {
        const wrong: [object, string][] = [
            [{ messages: [{ role: "wizard", content: "x" }] }, "bad_request"],
            [{ messages: "x" }, "bad_request"],
            [{ messages: question, temperature: -1 }, "bad_request"],
            [{ messages: question, top_p: 2 }, "bad_request"],
            [{ messages: question, max_tokens: 0.5 }, "bad_request"],
            [{ messages: question, n: 2 }, "bad_request"],
            [{ messages: question, top_logprobs: 3 }, "bad_request"],
            [{ messages: question, logit_bias: { x: 1 } }, "bad_request"],
            [{ messages: question, logit_bias: { "-1": 1 } }, "bad_request"],
            [{ messages: question, seed: 1.5 }, "bad_request"],
            [{ messages: question, tool_choice: "required" }, "bad_request"],
            [{ messages: question, response_format: { type: "yaml" } }, "bad_schema"],
            [{ messages: question, response_format: { type: "json_schema", json_schema: { schema: { not: {} } } } }, "bad_schema"],
            [{ messages: [{ role: "user", content: "long ".repeat(20000) }] }, "context_full"],
        ];
        for (const [request, code] of wrong) {
            for (const stream of [false, true]) {
                const what = JSON.stringify(request).slice(0, 80);
                checkEqual(await codeOf(() => create(model)({ ...request, stream } as never)), code, what);
            }
        }
        const { usage } = await model.chat.completions.create({ messages: question, max_tokens: 2, temperature: 0 });
        checkEqual(usage.prompt_tokens_details.cached_tokens, 0, "nothing was computed");
    });
});

// ---- tools and thoughts -----------------------------------------------------------------------------

const weather: Tool = {
    type: "function",
    function: {
        name: "get_weather",
        description: "The weather of a place",
        parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } }, required: ["city"] },
    },
};
const call = 'Let me look.<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:12345678901234567890}<tool_call|><turn|>';

await test("a tool call, its result, and the answer", async () => {
    await withPackage(tiny, {}, async (model) => {
        const messages: Message[] = [{ role: "user", content: "How is the weather in Paris?" }];
        const first = await generating(model, call, () => model.chat.completions.create({ messages, tools: [weather] }));
        const { message, finish_reason } = first.choices[0];
        checkEqual([finish_reason, message.content, message.tool_calls?.length], ["tool_calls", "Let me look.", 1], "answer");
        const [made] = message.tool_calls ?? [];
        checkEqual([made?.type, made?.function.name], ["function", "get_weather"], "call");
        checkEqual(made?.function.arguments, '{"city":"Paris","days":12345678901234567890}', "arguments, verbatim");
        check(/^call_\w{12,}$/.test(made?.id ?? ""), "id");
        messages.push(message, { role: "tool", tool_call_id: made?.id ?? "", content: '{"sky":"clear"}' });
        const last = await generating(model, "It is clear.<turn|>", () => model.chat.completions.create({ messages, tools: [weather] }));
        checkEqual([last.choices[0].message.content, last.choices[0].finish_reason], ["It is clear.", "stop"], "answer");
        check(last.usage.prompt_tokens > first.usage.prompt_tokens + 30, "the call and its result are in the prompt");
    });
});

await test("tool calls in a stream: first the name, then the arguments; two calls have two indexes", async () => {
    await withPackage(tiny, {}, async (model) => {
        const two = '<|tool_call>call:get_weather{city:<|"|>Rome<|"|>}<tool_call|><|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|><turn|>';
        const chunks = await generating(model, two, async () =>
            collect(await model.chat.completions.create({ messages: question, tools: [weather], stream: true })),
        );
        const deltas = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
        checkEqual(deltas.map(({ index }) => index), [0, 0, 1, 1], "indexes");
        checkEqual(deltas.map((d) => d.function.name ?? d.function.arguments), ["get_weather", '{"city":"Rome"}', "get_weather", '{"city":"Oslo"}'], "parts");
        checkEqual(deltas.map(({ id }) => id !== undefined), [true, false, true, false], "ids");
        checkEqual(chunks.at(-2)?.choices[0]?.finish_reason, "tool_calls", "finish reason");
    });
});

await test("thoughts are separated from the answer, and sent only on request", async () => {
    await withPackage(tiny, {}, async (model) => {
        const text = "<|channel>thought\nDiamonds count.<channel|>Ruby.<turn|>";
        for (const [more, thought] of [
            [{ think: true }, "Diamonds count."],
            [{ reasoning: { effort: "high" } }, "Diamonds count."],
            [{ reasoning_effort: "none" as const }, undefined],
        ] as const) {
            const got = await generating(model, text, () => model.chat.completions.create({ messages: question, ...more }));
            const { message } = got.choices[0];
            checkEqual([message.content, message.reasoning_content?.trim()], ["Ruby.", thought], JSON.stringify(more));
        }
    });
});

// ---- prefix cache ------------------------------------------------------------------------------------

await test("a growing conversation computes only new tokens", async () => {
    await withPackage(tiny, {}, async (model) => {
        const messages: Message[] = [{ role: "user", content: "Tell me of gems. ".repeat(20) }];
        const first = await model.chat.completions.create({ messages, max_tokens: 10, temperature: 0 });
        checkEqual(first.usage.prompt_tokens_details.cached_tokens, 0, "the first");
        messages.push(first.choices[0].message, { role: "user", content: "And?" });
        const second = await model.chat.completions.create({ messages, max_tokens: 4, temperature: 0 });
        const { prompt_tokens, prompt_tokens_details } = second.usage;
        const least = first.usage.prompt_tokens - 8; // up to the start of the answer
        check(prompt_tokens_details.cached_tokens >= least, `${prompt_tokens_details.cached_tokens} of ${prompt_tokens}, at least ${least}`);
        checkEqual(second.timings.prompt_n, prompt_tokens - prompt_tokens_details.cached_tokens, "computed");
        const fresh = await withPackage(tiny, {}, (other) => other.chat.completions.create({ messages, max_tokens: 4, temperature: 0 }));
        checkEqual(second.choices[0].message.content, fresh.choices[0].message.content, "the same answer as without a cache");
    });
});

// ---- cancelling -----------------------------------------------------------------------------------------

await test("cancelling: before the start, while streaming, by leaving the loop, and while queued", async () => {
    await withPackage(nano, {}, async (model) => {
        const endless = { messages: question, logit_bias: { "106": -100, "1": -100 }, stream: true } as const;
        const stopped = AbortSignal.abort();
        checkEqual((await errorOf(() => model.chat.completions.create(endless, { signal: stopped })))?.name, "AbortError", "before");
        const control = new AbortController();
        let n = 0;
        const run = async (): Promise<void> => {
            for await (const chunk of await model.chat.completions.create(endless, { signal: control.signal })) {
                n += chunk.choices.length;
                if (n === 4) {
                    control.abort();
                }
            }
        };
        checkEqual(await codeOf(run), "aborted", "while streaming");
        for await (const chunk of await model.chat.completions.create(endless)) {
            if (chunk.choices[0]?.delta.content) {
                break;
            }
        }
        const long = await model.chat.completions.create(endless);
        const abortQueued = new AbortController();
        const queued = codeOf(() => model.chat.completions.create({ messages: question }, { signal: abortQueued.signal }));
        abortQueued.abort();
        checkEqual(await queued, "aborted", "while queued");
        await long.return?.();
        const { usage } = await model.chat.completions.create({ messages: question, max_tokens: 3, temperature: 0 });
        checkEqual(usage.completion_tokens, 3, "next request");
    });
});

await test("cancelling a load, and loading again", async () => {
    const bytes = await readBytes(tiny);
    const control = new AbortController();
    const slow = { ...bytesSource(bytes), read: async (offset: number, n: number) => (control.abort(), bytes.slice(offset, offset + n)) };
    checkEqual(await codeOf(async () => Bezel.load(slow, await localOptions({ signal: control.signal }))), "aborted", "code");
    (await Bezel.load(bytesSource(bytes), await localOptions())).close();
});

await test("a crash of the engine rejects all calls with the same cause", async () => {
    await withPackage(nano, {}, async (model) => {
        const real = Session.prototype.answer;
        Session.prototype.answer = function (): never {
            throw new WebAssembly.RuntimeError("unreachable");
        };
        const request = { messages: question, max_tokens: 2, temperature: 0 };
        const errors = await Promise.all([1, 2].map(() => errorOf(() => model.chat.completions.create(request))));
        Session.prototype.answer = real;
        for (const error of [...errors, await errorOf(() => model.tokenize("x"))]) {
            check(error?.code === "device_lost" && /crashed.*[Ll]oad the model again/.test(error.message), String(error?.message));
        }
    });
});

// ---- loading --------------------------------------------------------------------------------------------

await test("progress reports its stages in order and ends complete", async () => {
    const stages: Progress[] = [];
    await withPackage(tiny, { onProgress: (p) => stages.push(p) }, (model) => {
        checkEqual([...new Set(stages.map(({ stage }) => stage))], ["engine", "header", "weights", "session"], "stages");
        const weights = stages.filter(({ stage }) => stage === "weights");
        checkEqual(weights.at(-1)?.done, weights.at(-1)?.total, "weights");
        check(model.info.bytes > 1e6 && model.contextLength <= model.info.trainedContext, JSON.stringify(model.info));
        return Promise.resolve();
    });
    await withPackage(tiny, { contextLength: 1e6 }, (model) => {
        checkEqual(model.contextLength, model.info.trainedContext, "capped at the model's limit");
        return Promise.resolve();
    });
    await withPackage(tiny, { contextLength: 64 }, (model) => {
        checkEqual(model.contextLength, 64, "as requested");
        return Promise.resolve();
    });
});

await test("without WebGPU, auto uses the CPU with a notice, and gpu is an error", async () => {
    await withPackage(nano, {}, (model) => {
        checkEqual([model.device, model.info.deviceName], ["cpu", "CPU"], "device");
        check(/WebGPU is not available.*CPU/.test(model.notice ?? ""), String(model.notice));
        return Promise.resolve();
    });
    checkEqual(await codeOf(() => withPackage(nano, { device: "gpu" }, () => Promise.resolve())), "no_webgpu", "gpu");
    const empty = { requestAdapter: () => Promise.resolve(null) } as unknown as GPU;
    checkEqual(await codeOf(() => withPackage(nano, { device: "gpu", gpu: empty }, () => Promise.resolve())), "no_adapter", "gpu");
    await withPackage(nano, { gpu: empty }, (model) => {
        check(model.device === "cpu" && /no usable GPU/.test(model.notice ?? ""), String(model.notice));
        return Promise.resolve();
    });
    await withPackage(nano, { device: "cpu", gpu: empty }, (model) => {
        checkEqual(model.notice, null, "no notice for an explicit choice");
        return Promise.resolve();
    });
});

await test("a model that is too large for the CPU is refused", async () => {
    const huge = { ...bytesSource(await readBytes(nano)), size: 9.6e9 };
    const error = await errorOf(async () => Bezel.load(huge, await localOptions()));
    checkEqual(error?.code, "out_of_memory", "code");
    check(/9\.6 GB.*3\.5 GB.*WebGPU is not available/.test(error?.message ?? ""), String(error?.message));
});

await test("invalid files and invalid sources", async () => {
    const load = (source: unknown) => async (): Promise<void> => (await Bezel.load(source as Blob, await localOptions())).close();
    checkEqual(await codeOf(load(new Blob(["<html>"]))), "bad_file", "text");
    checkEqual(await codeOf(load({})), "bad_request", "an object");
    checkEqual(await codeOf(load("opfs:nothing")), "quota", "no OPFS here");
    checkEqual(await codeOf(load([])), "bad_request", "no file");
    const noModule = async (): Promise<void> => (await Bezel.load(new Blob([]), { worker: false, wasm: new Uint8Array(8) })).close();
    const error = await errorOf(noModule);
    check(error?.code === "network" && /option wasm/.test(error.message), String(error?.message));
});

await test("a split model from Blobs", async () => {
    const parts = await Promise.all([2, 1, 3].map((i) => readBytes(`${modelFolder}/nano-e-f32-0000${i}-of-00003.gguf`)));
    const blobs = parts.map((bytes, i) => new File([bytes], `part-${i}.gguf`));
    const model = await Bezel.load(blobs, await localOptions());
    checkEqual((await model.tokenize("x")).length, 1, "tokens");
    model.close();
});

await test("a file is open only while it is read; a changed file is refused", async () => {
    const folder = await mkdtemp(join(tmpdir(), "bezel-file-"));
    const path = join(folder, "model.gguf");
    await copyFile(tiny, path);
    const openNow = async (): Promise<number> => {
        const links = await Promise.all((await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
        return links.filter((to) => to === path).length;
    };
    const source = await fileSource(path);
    check((await Bezel.inspect(source, await localOptions())).runs, "it runs");
    const model = await Bezel.load(source, await localOptions());
    checkEqual(await openNow(), 0, "open files");
    const reads = [0, 100].map((offset) => source.read(offset, 4));
    checkEqual((await Promise.all(reads)).map(({ length }) => length), [4, 4], "two reads at once");
    await utimes(path, 1, 1);
    checkEqual(await source.read(0, 4).then(String, ({ message }: Error) => message), "the file has changed since it was opened", "a changed file");
    checkEqual(await openNow(), 0, "open files after the error");
    model.close();
    await rm(folder, { recursive: true });
});

await test("inspecting reads only the header", async () => {
    const file = await fileSource(tiny);
    let maxEnd = 0;
    const watched = { ...file, read: (offset: number, n: number) => ((maxEnd = Math.max(maxEnd, offset + n)), file.read(offset, n)) };
    const got = await Bezel.inspect(watched, await localOptions());
    checkEqual([got.runs, got.code, got.architecture, got.bytes], [true, "ok", "gemma4", file.size], "inspection");
    check(maxEnd < file.size / 2 && maxEnd >= (got.files[0]?.headerBytes ?? 0), `${maxEnd} bytes of ${file.size} were read`);
    check(got.types.some(({ type, runs }) => type.toLowerCase() === "q8_0" && runs), JSON.stringify(got.types));
    check((got.model?.layers ?? 0) > 1 && (got.memory?.weights ?? 0) > 1e6 && got.parameters > 1e6, JSON.stringify(got));
    const caches = got.memory?.caches ?? [];
    checkEqual(caches.at(-1)?.context, got.model?.context, "caches up to the longest context");
    await file.close();
    const page = await Bezel.inspect(new Blob(["<html>"]), await localOptions());
    check(!page.runs && page.code === "bad_file" && page.text.length > 10 && page.model === null, JSON.stringify(page));
    const cut = await Bezel.inspect(new Blob([(await readBytes(tiny)).slice(0, maxEnd)]), await localOptions());
    check(!cut.runs && cut.code === "bad_file", JSON.stringify(cut.text));
    const failing = { ...bytesSource(new Uint8Array(100)), read: () => Promise.reject(new Error("gone")) };
    checkEqual(await codeOf(async () => Bezel.inspect(failing, await localOptions())), "bad_file", "a source that fails is an error");
});

await test("several files form one model, in any order: parts, and an mmproj file", async () => {
    const text = await fileSource(`${goldenFolder}/e-like/text.gguf`);
    const media = await fileSource(`${goldenFolder}/e-like/mmproj.gguf`);
    const both = [media, text];
    const got = await Bezel.inspect(both, await localOptions());
    checkEqual([got.runs, got.vision, got.audio, got.bytes], [true, true, true, both.reduce((sum, { size }) => sum + size, 0)], "two files");
    checkEqual(got.files.map(({ media }) => media), [true, false], "which file is the mmproj file");
    check((got.gpu?.fits ?? false) && (got.gpu?.weights ?? 0) > 1e5 && (got.gpu?.work ?? 0) > 1e4, JSON.stringify(got.gpu));
    const model = await Bezel.load(both, await localOptions());
    checkEqual(model.name, "text", "named after the text model");
    const { usage } = await model.chat.completions.create({ messages: question, max_tokens: 3, temperature: 0 });
    checkEqual(usage.completion_tokens, 3, "it answers");
    model.close();
    const alone = await Bezel.inspect(both.slice(0, 1), await localOptions());
    check(!alone.runs && alone.code === "bad_request" && /text model/.test(alone.text), `${alone.code}: ${alone.text}`);
    const parts = await Promise.all([3, 1, 2].map((n) => fileSource(`${modelFolder}/nano-e-f32-0000${n}-of-00003.gguf`)));
    const split = await Bezel.load(parts, await localOptions());
    checkEqual(split.name, "nano-e-f32", "the name of all parts");
    split.close();
    const missing = await Bezel.inspect(parts.slice(1), await localOptions());
    check(!missing.runs && missing.code === "not_found", `${missing.code}: ${missing.text}`);
    await Promise.all([text, media, ...parts].map((source) => source.close()));
});

await test("memory above 2 GiB, where addresses are negative in JavaScript", async () => {
    const engine = await Engine.load({ wasm: await WebAssembly.compile(await readBytes(wasmPath)), gpu: null });
    const answer = async (): Promise<string> => {
        const model = await engine.openModel([bytesSource(await readBytes(tiny))], { device: "cpu" });
        const session = await model.newSession();
        await session.prefill(model.tokenize("A gem is", { bos: true }));
        let text = `${session.logits?.[0]} `;
        for await (const token of session.generate({ greedy: true, maxTokens: 6, ignoreEnd: true, topLogProbs: 2, logProbs: true })) {
            text += `${token.text} ${token.top[1]?.logProb} `;
        }
        session.free();
        model.free();
        return text;
    };
    const low = await answer();
    check(engine.exports.alloc(1.2e9) !== 0 && engine.exports.alloc(1.2e9) !== 0, "two large blocks, which are never touched");
    while (engine.exports.alloc(1024) > 0) {
        // fill the free blocks below 2 GiB
    }
    checkEqual(await answer(), low, "answer");
});

await test("capabilities of Node", async () => {
    const none = await Bezel.capabilities({ gpu: null });
    checkEqual([none.webgpu, none.adapter, none.simd, none.opfs], [false, null, true, false], "without a GPU");
    const { adapter } = await Bezel.capabilities({ gpu: await gpuEntry() });
    check((adapter?.maxBufferSize ?? 0) > 1e8 && typeof adapter?.f16 === "boolean", JSON.stringify(adapter));
    const named = (vendor: string, architecture: string, description = ""): string =>
        adapterName({ vendor, architecture, description, device: "" } as GPUAdapterInfo);
    checkEqual(
        [named("nvidia", "ampere"), named("amd", "rdna-3"), named("apple", "metal-3"), named("", ""), named("x", "y", "A GPU")],
        ["NVIDIA Ampere", "AMD RDNA-3", "Apple Metal-3", "unknown GPU", "A GPU"],
        "names",
    );
});

// ---- sessions -------------------------------------------------------------------------------------------

await test("sessions: prefill, generate, logits, rewinding, statistics", async () => {
    const golden = await Golden.open(`${goldenFolder}/e-like/golden.gguf`);
    const ids = golden.ints("text.2.tokens") as Int32Array;
    const want = golden.floats("text.2.logits");
    const source = await fileSource(`${goldenFolder}/e-like/text.gguf`);
    const model = await Bezel.load(source, await localOptions());
    const session = await model.newSession({ exact: true });
    const got = new Float32Array(want.length);
    const vocabulary = model.info.vocabulary;
    await session.prefill(ids, { onLogits: (rows, position) => got.set(rows, position * vocabulary) });
    const d = maxDifference(got, want);
    check(d <= 1e-3, `logits off by ${d}`);
    const after = (await session.logits()) as Float32Array;
    checkEqual(maxDifference(after, got.slice(-vocabulary)), 0, "the last row");
    const greedy = [...(golden.ints("text.2.greedy") ?? [])];
    const generated = await collect(session.generate({ greedy: true, ignoreEnd: true, maxTokens: greedy.length }));
    checkEqual(generated.map(({ token }) => token), greedy, "greedy tokens");
    checkEqual(session.finish, "length", "finish reason");
    const stats = await session.prefill(ids.slice(0, -2));
    check(stats.position === ids.length - 2, JSON.stringify(stats));
    const again = await session.prefill(ids);
    check(again.reused > 0, `reused ${again.reused}`);
    const text = "Emerald, öpal, 宝石";
    checkEqual(await model.detokenize(await model.tokenize(text)), text, "round trip");
    await session.free();
    checkEqual(await codeOf(() => session.stats()), "bad_request", "freed");
    model.close();
    checkEqual(await codeOf(() => model.tokenize("x")), "aborted", "closed");
    checkEqual(await model.tokenize("x").then(String, ({ message }: Error) => message), "The model was closed.", "message");
    await source.close();
});

await test("the golden logits on the GPU and on its baseline, through the package", async () => {
    const golden = await Golden.open(`${goldenFolder}/e-like/golden.gguf`);
    const ids = golden.ints("text.2.tokens") as Int32Array;
    const gpu = await gpuEntry();
    for (const device of ["gpu", "gpu-baseline"] as const) {
        const stages: Progress[] = [];
        const onProgress = (p: Progress): void => void stages.push(p);
        await withPackage(`${goldenFolder}/e-like/text.gguf`, { gpu, device, onProgress }, async (model) => {
            const session = await model.newSession({ exact: true });
            await session.prefill(ids);
            const want = golden.floats("text.2.logits").slice(-model.info.vocabulary);
            const d = maxDifference((await session.logits()) as Float32Array, want);
            check(d <= 1e-3, `${device}: off by ${d}`);
            checkEqual([model.device, model.notice], [device, null], "device");
            const compiled = stages.filter(({ stage }) => stage === "compile").at(-1);
            check((compiled?.total ?? 0) > 10 && compiled?.done === compiled?.total, JSON.stringify(compiled));
        });
    }
});

finish();
