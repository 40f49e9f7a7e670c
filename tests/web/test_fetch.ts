/** model.fetch: OpenAI's and Ollama's endpoints in the place of fetch. And what is built on chat requests: a loop over
 * calls of functions, and sessions in the shape of the browsers' own API. The real clients are tried in a page
 * (tests/browser/test_clients.ts). */
import { readFile } from "node:fs/promises";
import { BezelSession, languageModel, PromptSession, type BezelModel, type ChatCompletion, type ToolsRequest } from "../../web/package/src/index.js";
import { check, checkEqual, finish, test } from "./check.js";
import { goldenFolder } from "./golden.js";
import { codeOf, collect, generating, nano, tiny, withPackage } from "./package.js";

const base = "http://bezel.example";
const question = [{ role: "user", content: "Name three gems." }];

async function post(model: BezelModel, path: string, body: unknown, init: RequestInit = {}): Promise<Response> {
    return model.fetch(`${base}${path}`, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), ...init });
}

async function jsonOf<T>(response: Response): Promise<T> {
    checkEqual([response.status, response.headers.get("Content-Type")], [200, "application/json"], "status and type");
    return (await response.json()) as T;
}

/** The objects of server-sent events; the last must be [DONE], unless the events have names. */
async function eventsOf(response: Response): Promise<Record<string, unknown>[]> {
    checkEqual(response.headers.get("Content-Type"), "text/event-stream", "type");
    const data = (await response.text()).split("\n\n").filter(Boolean).map((text) => text.replace(/^event: .*\n/, ""));
    check(data.every((text) => text.startsWith("data: ")), JSON.stringify(data));
    const done = data.at(-1) === "data: [DONE]";
    return data.slice(0, done ? -1 : undefined).map((text) => JSON.parse(text.slice(6)) as Record<string, unknown>);
}

async function linesOf(response: Response): Promise<Record<string, unknown>[]> {
    checkEqual(response.headers.get("Content-Type"), "application/x-ndjson", "type");
    return (await response.text()).trim().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
}

interface Choice {
    delta: { content?: string };
    finish_reason: string | null;
}

const look = { type: "function", function: { name: "look_up", parameters: { type: "object", properties: { word: { type: "string" } } } } };
const call = 'Wait.<|tool_call>call:look_up{word:<|"|>fox<|"|>}<tool_call|><turn|>';

// ---- OpenAI's ------------------------------------------------------------------------------------------

await test("chat completions: whole and as events, with the same text; usage only on request", () =>
    withPackage(tiny, {}, async (model) => {
        const request = { model: model.name, messages: question, max_tokens: 8, temperature: 0 };
        const whole = await jsonOf<ChatCompletion>(await post(model, "/v1/chat/completions", request));
        checkEqual([whole.object, whole.model, whole.usage.completion_tokens], ["chat.completion", model.name, 8], "whole");
        for (const include_usage of [false, true]) {
            const events = await eventsOf(await post(model, "/v1/chat/completions", { ...request, stream: true, stream_options: { include_usage } }));
            const choices = events.flatMap(({ choices }) => choices as Choice[]);
            checkEqual(choices.map(({ delta }) => delta.content ?? "").join(""), whole.choices[0].message.content, "text");
            checkEqual(choices.at(-1)?.finish_reason, "length", "finish reason");
            const last = events.at(-1) as { usage?: { completion_tokens: number } };
            checkEqual([events.filter(({ choices }) => (choices as []).length === 0).length, last.usage?.completion_tokens], include_usage ? [1, 8] : [0, undefined], "usage");
        }
    }));

await test("chat completions: a call, and a schema", () =>
    withPackage(tiny, {}, async (model) => {
        const called = await generating(model, call, async () => jsonOf<ChatCompletion>(await post(model, "/v1/chat/completions", { messages: question, tools: [look] })));
        const [made] = called.choices[0].message.tool_calls ?? [];
        checkEqual([called.choices[0].finish_reason, made?.function.name, made?.function.arguments], ["tool_calls", "look_up", '{"word":"fox"}'], "call");
        const schema = { type: "object", properties: { gems: { enum: ["ruby", "opal"] } }, required: ["gems"], additionalProperties: false };
        const fitting = await jsonOf<ChatCompletion>(await post(model, "/v1/chat/completions", { messages: question, response_format: { type: "json_schema", json_schema: { name: "g", schema } } }));
        check(["ruby", "opal"].includes((JSON.parse(fitting.choices[0].message.content ?? "") as { gems: string }).gems), "schema");
    }));

await test("a long conversation is refused, unless the request allows leaving out turns", () =>
    withPackage(tiny, { contextLength: 256 }, async (model) => {
        const messages = [...Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: "It is a small red house." })), ...question];
        const request = { messages, max_tokens: 4, temperature: 0 };
        const refused = await post(model, "/v1/chat/completions", request);
        checkEqual([refused.status, ((await refused.json()) as { error: { code: string } }).error.code], [400, "context_length_exceeded"], "by default");
        const got = await jsonOf<ChatCompletion>(await post(model, "/v1/chat/completions", { ...request, context_shift: true }));
        check((got.context_shift?.left_out ?? 0) > 0, JSON.stringify(got));
        const events = await eventsOf(await post(model, "/v1/chat/completions", { ...request, context_shift: true, stream: true }));
        checkEqual(events.filter((event) => "context_shift" in event).map(({ choices }) => (choices as Choice[])[0]?.finish_reason), ["length"], "with the finish reason");
        const lines = await linesOf(await post(model, "/api/chat", { messages, options: { num_predict: 4 } }));
        check("context_shift" in (lines.at(-1) ?? {}), "Ollama's clients expect it");
    }));

await test("completions: a text or tokens are continued without the chat template", () =>
    withPackage(tiny, {}, async (model) => {
        const request = { prompt: "A gem is", max_tokens: 6, temperature: 0 };
        interface Completion { choices: { text: string; finish_reason: string | null }[]; usage: { prompt_tokens: number; completion_tokens: number } }
        const whole = await jsonOf<Completion>(await post(model, "/v1/completions", request));
        checkEqual([whole.choices[0]?.finish_reason, whole.usage.completion_tokens], ["length", 6], "whole");
        const tokens = await model.tokenize("A gem is", { bos: true });
        checkEqual(whole.usage.prompt_tokens, tokens.length, "prompt");
        const same = await jsonOf<Completion>(await post(model, "/v1/completions", { ...request, prompt: [...tokens] }));
        checkEqual(same.choices[0]?.text, whole.choices[0]?.text, "tokens");
        const events = (await eventsOf(await post(model, "/v1/completions", { ...request, stream: true }))) as unknown as Completion[];
        checkEqual(events.map(({ choices }) => choices[0]?.text).join(""), whole.choices[0]?.text, "events");
        const raw = await jsonOf<{ response: string; eval_count: number }>(await post(model, "/api/generate", { prompt: "A gem is", raw: true, stream: false, options: { num_predict: 6, temperature: 0 } }));
        checkEqual([raw.response, raw.eval_count], [whole.choices[0]?.text, 6], "Ollama's raw prompt");
        const session = await model.newSession({ context: 64 });
        await session.prefill(tokens);
        const greedy = await collect(session.generate({ greedy: true, maxTokens: 6 }));
        checkEqual(greedy.map(({ text }) => text).join(""), whole.choices[0]?.text, "the model's own tokens");
    }));

await test("responses: items, whole and as events; input, tools, thinking", () =>
    withPackage(tiny, {}, async (model) => {
        interface Item { type: string; id: string; name?: string; arguments?: string; call_id?: string; content?: { type: string; text: string }[] }
        interface Whole { status: string; output: Item[]; usage: { output_tokens: number; output_tokens_details: { reasoning_tokens: number } }; incomplete_details: { reason: string } | null }
        const request = { model: model.name, instructions: "Be brief.", input: [{ role: "user", content: [{ type: "input_text", text: "Name three gems." }] }], max_output_tokens: 6, temperature: 0 };
        const whole = await jsonOf<Whole>(await post(model, "/v1/responses", request));
        checkEqual([whole.status, whole.incomplete_details?.reason, whole.usage.output_tokens], ["incomplete", "max_output_tokens", 6], "whole");
        const chat = await model.chat.completions.create({ messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Name three gems." }], max_tokens: 6, temperature: 0 });
        checkEqual(whole.output[0]?.content?.[0]?.text, chat.choices[0].message.content, "the same conversation as in a chat request");
        const text = "<|channel>thought\nHm.<channel|>Wait.<|tool_call>call:look_up{word:<|\"|>fox<|\"|>}<tool_call|><turn|>";
        const asked = { input: "hi", tools: [{ ...look.function, type: "function", strict: true }], reasoning: { effort: "low" } };
        const { output: items, usage } = await generating(model, text, async () => jsonOf<Whole>(await post(model, "/v1/responses", asked)));
        check(usage.output_tokens_details.reasoning_tokens > 0 && usage.output_tokens_details.reasoning_tokens < 6, JSON.stringify(usage));
        checkEqual(items.map(({ type }) => type), ["reasoning", "message", "function_call"], "items");
        checkEqual([items[2]?.name, items[2]?.arguments], ["look_up", '{"word":"fox"}'], "call");
        const events = await generating(model, text, async () => eventsOf(await post(model, "/v1/responses", { ...asked, stream: true })));
        const types = events.map(({ type }) => (type as string).replace("response.", ""));
        checkEqual(types.filter((type, i) => type !== types[i - 1]), [
            "created", "in_progress",
            "output_item.added", "reasoning_text.delta", "reasoning_text.done", "output_item.done",
            "output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done",
            "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
            "completed",
        ], "events");
        checkEqual(events.map(({ sequence_number: n }) => n), events.map((_, i) => i), "numbered");
        const again = { ...asked, input: [{ role: "user", content: "hi" }, ...items, { type: "function_call_output", call_id: items[2]?.call_id, output: "red" }] };
        const last = await generating(model, "Red.<turn|>", async () => jsonOf<Whole>(await post(model, "/v1/responses", again)));
        checkEqual(last.output.map(({ content }) => content?.[0]?.text), ["Red."], "after the result");
    }));

// ---- Ollama's --------------------------------------------------------------------------------------------

await test("Ollama: chat and generate, as lines and whole; calls, thinking, images are the same messages", () =>
    withPackage(tiny, {}, async (model) => {
        interface Line { message?: { content: string; thinking?: string; tool_calls?: { function: { name: string; arguments: object } }[] }; response?: string; done: boolean; done_reason?: string; eval_count?: number }
        const options = { num_predict: 6, temperature: 0, num_thread: 3 };
        const chat = await model.chat.completions.create({ messages: [{ role: "user", content: "Name three gems." }], max_tokens: 6, temperature: 0 });
        const text = chat.choices[0].message.content;
        const lines = (await linesOf(await post(model, "/api/chat", { model: `${model.name}:latest`, messages: question, options, keep_alive: "5m" }))) as unknown as Line[];
        checkEqual(lines.map(({ message }) => message?.content).join(""), text, "lines");
        checkEqual([lines.at(-1)?.done, lines.at(-1)?.done_reason, lines.at(-1)?.eval_count], [true, "length", 6], "the last line");
        const whole = await jsonOf<Line>(await post(model, "/api/chat", { messages: question, options, stream: false }));
        checkEqual(whole.message?.content, text, "whole");
        const generated = (await linesOf(await post(model, "/api/generate", { prompt: "Name three gems.", options }))) as unknown as Line[];
        checkEqual(generated.map(({ response }) => response).join(""), text, "generate");
        const thought = `<|channel>thought\nHm.<channel|>${call}`;
        const called = await generating(model, thought, async () => jsonOf<Line>(await post(model, "/api/chat", { messages: question, tools: [look], think: true, stream: false })));
        checkEqual([called.message?.thinking?.trim(), called.message?.content, called.message?.tool_calls?.[0]?.function], ["Hm.", "Wait.", { index: 0, name: "look_up", arguments: { word: "fox" } } as never], "call");
        const history = [...question, { role: "assistant", content: "", tool_calls: called.message?.tool_calls }, { role: "tool", tool_name: "look_up", content: "red" }];
        check((await jsonOf<Line>(await post(model, "/api/chat", { messages: history, tools: [look], options, stream: false }))).done, "its result");
        const formed = await jsonOf<Line>(await post(model, "/api/chat", { messages: question, format: { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"] }, stream: false }));
        check([1, 2].includes((JSON.parse(formed.message?.content ?? "") as { n: number }).n), "format");
        checkEqual((await jsonOf<Line>(await post(model, "/api/chat", {}))).done_reason, "load", "nothing to answer");
    }));

await test("lists of models", () =>
    withPackage(tiny, {}, async (model) => {
        const get = async (path: string): Promise<Record<string, unknown>> => jsonOf(await model.fetch(`${base}${path}`));
        checkEqual(((await get("/v1/models"))["data"] as { id: string }[]).map(({ id }) => id), [model.name], "OpenAI's");
        checkEqual((await get(`/v1/models/${model.name}`))["id"] as string, model.name, "one");
        checkEqual(((await get("/api/tags"))["models"] as { name: string }[])[0]?.name, model.name, "Ollama's");
        checkEqual(((await get("/api/ps"))["models"] as { context_length: number }[])[0]?.context_length, model.contextLength, "loaded");
        const { version } = JSON.parse(await readFile("web/package/package.json", "utf8")) as { version: string };
        checkEqual((await get("/api/version"))["version"] as string, version, "version");
        const shown = await jsonOf<{ capabilities: string[] }>(await post(model, "/api/show", { model: model.name }));
        checkEqual(shown.capabilities, ["completion", "tools", "thinking"], "capabilities");
    }));

await test("vectors of texts for both APIs", () =>
    withPackage(`${goldenFolder}/embedding/model.gguf`, {}, async (model) => {
        const direct = (await model.embeddings.create({ input: "a cat" })).data[0]?.embedding as number[];
        const own = await jsonOf<{ data: { embedding: number[] }[] }>(await post(model, "/v1/embeddings", { model: model.name, input: "a cat" }));
        checkEqual(own.data[0]?.embedding, direct, "OpenAI's");
        const theirs = await jsonOf<{ embeddings: number[][] }>(await post(model, "/api/embed", { input: ["a cat", "a dog"] }));
        checkEqual([theirs.embeddings.length, theirs.embeddings[0]], [2, direct] as never, "Ollama's");
        checkEqual((await jsonOf<{ embedding: number[] }>(await post(model, "/api/embeddings", { prompt: "a cat" }))).embedding, direct, "Ollama's older one");
        checkEqual((await post(model, "/v1/chat/completions", { messages: question })).status, 400, "it writes no text");
    }));

// ---- refusals ---------------------------------------------------------------------------------------------

await test("what cannot be obeyed is refused with the API's own status and form, and nothing reaches the network", () =>
    withPackage(nano, {}, async (model) => {
        const real = globalThis.fetch;
        globalThis.fetch = () => Promise.reject(new Error("a request left the page"));
        try {
            const cases: [path: string, body: unknown, status: number, sentence: RegExp][] = [
                ["/v1/chat/completions", { messages: question, temprature: 1 }, 400, /"temprature".*not a setting/],
                ["/v1/chat/completions", { messages: [] }, 400, /messages is empty/],
                ["/v1/chat/completions", { messages: question, n: 2 }, 400, /n is 1/],
                ["/v1/chat/completions", { messages: question, tools: [{ type: "custom", custom: { name: "x" } }] }, 400, /of type function/],
                ["/v1/chat/completions", { messages: question, stream_options: {} }, 400, /needs stream/],
                ["/v1/chat/completions", { model: "gpt-9", messages: question }, 404, /'gpt-9' not found; 'nano/],
                ["/v1/chat/completions", "{", 400, /not a JSON object/],
                ["/v1/chat/completions", { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://evil.example/x.png" } }] }] }, 400, /another site/],
                ["/v1/completions", { prompt: "x", echo: true }, 400, /echo is false/],
                ["/v1/completions", { prompt: ["a", "b"] }, 400, /one text/],
                ["/v1/responses", { input: "x", previous_response_id: "r" }, 400, /nothing is stored/],
                ["/v1/responses", { input: [{ type: "computer_call" }] }, 400, /'computer_call'/],
                ["/v1/images/generations", {}, 404, /no endpoint/],
                ["/v1/embeddings", { input: "x" }, 400, /computes no vectors/],
                ["/api/chat", { messages: question, options: { wings: 2 } }, 400, /'wings' is not supported/],
                ["/api/chat", { messages: question, options: { num_ctx: 1e9 } }, 400, /larger contextLength/],
                ["/api/chat", { messages: question, options: { mirostat: 2 } }, 400, /'mirostat'/],
                ["/api/generate", { prompt: "x", suffix: "y" }, 400, /suffix/],
                ["/api/chat", { messages: question, keep_alive: {} , shift: true }, 400, /shift/],
                ["/api/pull", { model: "x" }, 501, /Bezel.download/],
                ["/api/nothing", {}, 404, /no endpoint/],
            ];
            for (const [path, body, status, sentence] of cases) {
                const response = await post(model, path, body);
                const { error } = (await response.json()) as { error: string | { message: string } };
                const text = path.startsWith("/api/") ? error : (error as { message: string }).message;
                check(response.status === status && typeof text === "string" && sentence.test(text), `${path} ${JSON.stringify(body).slice(0, 80)}: ${response.status} ${JSON.stringify(error)}`);
            }
            checkEqual((await model.fetch(`${base}/api/chat`)).status, 405, "a wrong method");
            checkEqual((await model.fetch(`${base}/other`)).status, 404, "another path");
        } finally {
            globalThis.fetch = real;
        }
    }));

await test("aborting rejects as fetch does, and leaving a stream frees the model for the next request", () =>
    withPackage(nano, {}, async (model) => {
        const endless = { messages: question, logit_bias: { "106": -100, "1": -100 }, stream: true };
        const nameOf = (reason: unknown): string => (reason instanceof Error ? reason.name : String(reason));
        checkEqual(await post(model, "/v1/chat/completions", endless, { signal: AbortSignal.abort() }).then(String, nameOf), "AbortError", "before");
        const control = new AbortController();
        const reader = (await post(model, "/v1/chat/completions", endless, { signal: control.signal })).body?.getReader();
        await reader?.read();
        control.abort();
        const rest = async (): Promise<void> => {
            while (!(await reader?.read())?.done);
        };
        checkEqual(await rest().then(String, nameOf), "AbortError", "while streaming");
        for (const [path, body] of [["/v1/completions", { prompt: "x", max_tokens: 100000, stream: true }], ["/api/generate", { prompt: "x", raw: true }]] as const) {
            let freed = 0;
            const free = BezelSession.prototype.free;
            BezelSession.prototype.free = function (this: BezelSession): Promise<void> {
                freed++;
                return free.call(this);
            };
            const stop = new AbortController();
            const first = (await post(model, path, body, { signal: stop.signal })).body?.getReader();
            await first?.read();
            stop.abort(); // and nothing is read any more
            await model.chat.completions.create({ messages: [{ role: "user", content: "x" }], max_tokens: 1 });
            await new Promise((resolve) => setTimeout(resolve, 0));
            BezelSession.prototype.free = free;
            checkEqual(freed, 1, `${path}: its session is freed`);
        }
        const left = (await post(model, "/api/chat", { messages: question, options: { num_predict: 100000 } })).body?.getReader();
        await left?.read();
        await left?.cancel();
        checkEqual((await jsonOf<ChatCompletion>(await post(model, "/v1/chat/completions", { messages: question, max_tokens: 2 }))).usage.completion_tokens, 2, "next");
    }));

// ---- functions ----------------------------------------------------------------------------------------------

const request = (run: (args: { word: string }) => unknown, more: object = {}): ToolsRequest => ({
    messages: [{ role: "user", content: "What is a fox?" }],
    tools: [{ type: "function", function: { ...look.function, function: run } }],
    ...more,
});

await test("runTools: the functions that the model calls are run, until it answers", () =>
    withPackage(tiny, {}, async (model) => {
        const words: string[] = [];
        const texts = [call, "An animal.<turn|>"];
        const create = model.chat.completions.create.bind(model.chat.completions);
        // Each request gets the next text.
        model.chat.completions.create = ((...all: Parameters<typeof create>) => generating(model, texts.shift() ?? "", () => create(...all))) as typeof create;
        const run = await model.chat.completions.runTools(request(({ word }) => (words.push(word), { kind: "animal" })));
        checkEqual([words, run.rounds, run.completion.choices[0].message.content], [["fox"], 1, "An animal."], "result");
        checkEqual(run.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"], "messages");
        checkEqual(run.messages[2]?.content, '{"kind":"animal"}', "the result as JSON");
        texts.push(call, "Never mind.<turn|>");
        const failed = await model.chat.completions.runTools(request(() => { throw new Error("no dictionary"); }));
        checkEqual(failed.messages[2]?.content, "Error: no dictionary", "an error is told to the model");
        texts.push(call, call, call);
        const endless = await model.chat.completions.runTools(request(() => "", { maxRounds: 2 }));
        checkEqual([endless.rounds, texts.length], [2, 0], "bounded");
    }));

await test("runTools: a function is required", () =>
    withPackage(nano, {}, async (model) => {
        checkEqual(await codeOf(() => model.chat.completions.runTools({ messages: [], tools: [look as never] })), "bad_request", "code");
    }));

// ---- sessions in the shape of LanguageModel --------------------------------------------------------------------

await test("prompt sessions remember what was said, follow a constraint, stream, and can be cloned", () =>
    withPackage(tiny, {}, async (model) => {
        const session = await languageModel(model).create({ initialPrompts: [{ role: "system", content: "Be brief." }], temperature: 0 });
        checkEqual(await languageModel(model).availability(), "available", "availability");
        check(session instanceof PromptSession && session.contextUsage === 0 && session.contextWindow === model.contextLength, "new");
        const gem = await session.prompt("Name a gem.", { responseConstraint: /ruby|opal/ });
        check(gem === "ruby" || gem === "opal", gem);
        const { usage } = await model.chat.completions.create({ messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Name a gem." }, { role: "assistant", content: gem }, { role: "user", content: "Another." }], choices: ["quartz"] });
        const copy = await session.clone();
        checkEqual(await copy.prompt("Another.", { responseConstraint: { const: "quartz" } }), '"quartz"', "schema");
        check(Math.abs(copy.contextUsage - usage.total_tokens) < 4 && copy.contextUsage > session.contextUsage, `${copy.contextUsage} and ${usage.total_tokens} tokens: the conversation is in the prompt`);
        let text = "";
        for await (const piece of session.promptStreaming("And?", { responseConstraint: /topaz/ }) as unknown as AsyncIterable<string>) {
            text += piece;
        }
        checkEqual(text, "topaz", "streamed");
        checkEqual(await session.prompt([{ role: "user", content: "Go on." }, { role: "assistant", content: "am", prefix: true }], { responseConstraint: /ber/ }), "ber", "prefix");
        checkEqual(await session.measureContextUsage("A gem is"), (await model.tokenize("A gem is")).length, "measured");
        const stopped = session.prompt("Long", { signal: AbortSignal.abort() });
        checkEqual(await codeOf(() => stopped), "aborted", "aborted");
        copy.destroy();
        checkEqual(await codeOf(() => copy.prompt("x")), "aborted", "destroyed");
        check((await session.prompt("Still?", { responseConstraint: /yes/ })) === "yes", "the other one lives");
    }));

finish();
