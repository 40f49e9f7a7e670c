/** Ollama's endpoints: what is loaded, chat, generate, and embeddings. Streams are one JSON object per line. */
import type { BezelModel } from "./bezel.js";
import type { ChatChunk, ChatRequest, ContextShift, FinishReason, Timings, TokenLogProb, Usage } from "./chat_types.js";
import type { EmbeddingRequest } from "./embeddings.js";
import type { Call } from "./http_openai.js";
import { isObject, jsonReply, readBoolean, Refusal, streamReply, without, type Fields } from "./http_reply.js";
import { completeRaw, endOf } from "./raw_completion.js";

function bad(message: string): Refusal {
    return new Refusal(400, message, "bad_request");
}

// ---- models -------------------------------------------------------------------------------------------

function details(): object {
    return { parent_model: "", format: "gguf", family: "gemma4", families: ["gemma4"], parameter_size: "", quantization_level: "" };
}

function capabilities({ info }: BezelModel): string[] {
    const writes = info.embedding > 0 ? ["embedding"] : ["completion", "tools", "thinking"];
    return [...writes, ...(info.vision ? ["vision"] : []), ...(info.audio ? ["audio"] : [])];
}

/** Digest and time of a model are not known: it may be a file that the user has chosen. */
const unknownTime = new Date(0).toISOString();

function entry(model: BezelModel): object {
    return { name: model.name, model: model.name, size: model.info.bytes, digest: "", details: details() };
}

export function tags(model: BezelModel): Response {
    return jsonReply({ models: [{ ...entry(model), modified_at: unknownTime, capabilities: capabilities(model) }] });
}

export function loadedModels(model: BezelModel): Response {
    const { bytes, device } = model.info;
    const forever = new Date(Date.now() + 3_153_600_000_000).toISOString();
    return jsonReply({ models: [{ ...entry(model), expires_at: forever, size_vram: device === "cpu" ? 0 : bytes, context_length: model.contextLength }] });
}

export function show({ model }: Call): Response {
    const { vocabulary, trainedContext } = model.info;
    const info = { "general.architecture": "gemma4", "gemma4.context_length": trainedContext, "gemma4.vocab_size": vocabulary };
    return jsonReply({ modelfile: "", parameters: "", template: "", system: "", details: details(), model_info: info, capabilities: capabilities(model), modified_at: unknownTime });
}

// ---- requests -----------------------------------------------------------------------------------------

const ofEngine = ["temperature", "top_k", "top_p", "min_p", "seed", "num_predict", "stop", "repeat_penalty", "repeat_last_n", "presence_penalty", "frequency_penalty"];
/** Options for which only the value that turns them off can be obeyed. */
const off: Fields = { mirostat: 0, tfs_z: 1, typical_p: 1 };
const ofMirostat = ["mirostat_tau", "mirostat_eta"];
/** Say how a server runs the model, and change no answer. */
const ofRuntime = ["num_ctx", "num_thread", "num_keep", "num_batch", "num_gpu", "main_gpu", "use_mmap", "use_mlock", "low_vram", "numa", "f16_kv", "vocab_only",
    "logits_all", "embedding_only", "penalize_newline"];

/** Those that the engine reads. */
function readOptions(body: Fields, model: BezelModel): Fields {
    const given = body["options"] ?? {};
    if (!isObject(given)) {
        throw bad("options is an object.");
    }
    for (const [key, value] of Object.entries(given)) {
        const obeyed = [...ofEngine, ...ofRuntime, ...ofMirostat].includes(key) || (Object.hasOwn(off, key) && value === off[key]);
        if (value !== null && value !== undefined && !obeyed) {
            throw bad(`The option '${key.slice(0, 100)}' is not supported.`);
        }
    }
    const context = given["num_ctx"] ?? 0;
    if (typeof context !== "number" || !Number.isInteger(context) || context < 0) {
        throw bad("num_ctx is a whole number.");
    }
    if (context > model.contextLength) {
        throw bad(`num_ctx is ${context}, and the model was loaded with a context of ${model.contextLength} tokens: load it with a larger contextLength.`);
    }
    return without(given, [...ofRuntime, ...Object.keys(off), ...ofMirostat]);
}

// ---- answers ------------------------------------------------------------------------------------------

interface CallObject {
    function: { index: number; name: string; arguments: unknown };
}

interface Line {
    content: string;
    thinking: string;
    calls: CallObject[];
    logprobs: TokenLogProb[];
}

interface End {
    reason: string;
    usage: Usage;
    timings: Timings;
    shift: ContextShift | null;
}

const nanoseconds = (ms: number): number => Math.round(ms * 1e6);

/** Chunks to what the lines of Ollama's streams say. */
async function* linesOf(chunks: AsyncIterable<ChatChunk>): AsyncGenerator<Line, End> {
    let name = "";
    let finish: FinishReason = "stop";
    let shift: ContextShift | null = null;
    let last: ChatChunk | null = null;
    for await (const chunk of chunks) {
        last = chunk;
        shift = chunk.context_shift ?? shift;
        const [choice] = chunk.choices;
        finish = choice?.finish_reason ?? finish;
        const { content = "", reasoning_content: thinking = "", tool_calls: calls = [] } = choice?.delta ?? {};
        const line: Line = { content, thinking, calls: [], logprobs: choice?.logprobs?.content ?? [] };
        for (const { index, function: { name: begun, arguments: text = "" } } of calls) {
            name = begun ?? name;
            if (text === "") {
                continue;
            }
            try {
                line.calls.push({ function: { index, name, arguments: JSON.parse(text) as unknown } });
            } catch {
                line.content += text; // the model has not completed the call
            }
        }
        if (line.content || line.thinking || line.calls.length > 0 || line.logprobs.length > 0) {
            yield line;
        }
    }
    const { usage, timings } = last as { usage: Usage; timings: Timings };
    return { reason: finish === "length" ? "length" : "stop", usage, timings, shift };
}

function endFields({ reason, usage, timings, shift }: End): object {
    return {
        done: true,
        done_reason: reason,
        total_duration: nanoseconds(timings.media_ms + timings.prompt_ms + timings.predicted_ms),
        load_duration: 0,
        ...(shift && { context_shift: shift }),
        prompt_eval_count: usage.prompt_tokens,
        prompt_eval_duration: nanoseconds(timings.prompt_ms),
        eval_count: usage.completion_tokens,
        eval_duration: nanoseconds(timings.predicted_ms),
    };
}

/** How an endpoint words a line. */
type Form = (line: Line) => object;

const chatForm: Form = ({ content, thinking, calls }) => ({
    message: { role: "assistant", content, ...(thinking && { thinking }), ...(calls.length > 0 && { tool_calls: calls }) },
});
const generateForm: Form = ({ content, thinking, calls }) => ({ response: content, ...(thinking && { thinking }), ...(calls.length > 0 && { tool_calls: calls }) });

const nothing: Line = { content: "", thinking: "", calls: [], logprobs: [] };

async function reply({ model, signal, cancel }: Call, chunks: AsyncIterable<ChatChunk>, stream: boolean, form: Form): Promise<Response> {
    const frame = (): object => ({ model: model.name, created_at: new Date().toISOString() });
    const withProbs = (line: Line): object => ({ ...form(line), ...(line.logprobs.length > 0 && { logprobs: line.logprobs }) });
    const lines = linesOf(chunks);
    if (stream) {
        const text = async function* (): AsyncGenerator<string> {
            // The chunks end with their signal, which fires when the reader leaves.
            for (;;) {
                const { value, done } = await lines.next();
                yield `${JSON.stringify({ ...frame(), ...(done ? { ...form(nothing), ...endFields(value) } : { ...withProbs(value), done: false }) })}\n`;
                if (done) {
                    return;
                }
            }
        };
        return streamReply("ollama", text(), signal, cancel);
    }
    const all: Line = { content: "", thinking: "", calls: [], logprobs: [] };
    for (;;) {
        const { value, done } = await lines.next();
        if (done) {
            return jsonReply({ ...frame(), ...withProbs(all), ...endFields(value) });
        }
        all.content += value.content;
        all.thinking += value.thinking;
        all.calls.push(...value.calls);
        all.logprobs.push(...value.logprobs);
    }
}

/** Of a request that would load or unload the model, which a page does itself. */
function loadReply({ model, body }: Call, form: Form): Response {
    const reason = body["keep_alive"] === 0 ? "unload" : "load";
    if (reason === "unload") {
        throw bad("The page that has loaded the model unloads it, with model.close().");
    }
    return jsonReply({ model: model.name, created_at: new Date().toISOString(), ...form(nothing), done: true, done_reason: reason, total_duration: 0, load_duration: 0 });
}

export async function chat(call: Call): Promise<Response> {
    const { model, body, signal } = call;
    const stream = readBoolean(body, "stream", true);
    const { messages } = body;
    if (messages === undefined || messages === null || (Array.isArray(messages) && messages.length === 0)) {
        return loadReply(call, chatForm);
    }
    if (readBoolean(body, "shift", false)) {
        throw bad("shift is false: an answer that fills the context ends there, with the done_reason length.");
    }
    const request = {
        ...without(body, ["stream", "keep_alive", "truncate", "shift", "name"]),
        options: readOptions(body, model),
        context_shift: readBoolean(body, "truncate", true),
        stream: true,
    } as unknown as ChatRequest & { stream: true };
    return reply(call, await model.chat.completions.create(request, { signal }), stream, chatForm);
}

// ---- generate -----------------------------------------------------------------------------------------

function checkGenerate(body: Fields, raw: boolean): void {
    const advice: Record<string, string> = { suffix: "text cannot be inserted in the middle", template: "the model's own template is used; for another one send raw: true" };
    for (const [key, why] of Object.entries(advice)) {
        if ((body[key] ?? "") !== "") {
            throw bad(`${key} is not supported: ${why}.`);
        }
    }
    if (Array.isArray(body["context"]) && body["context"].length > 0) {
        throw bad("context is not supported: send the conversation to /api/chat.");
    }
    for (const key of ["prompt", "system"]) {
        if (body[key] !== undefined && body[key] !== null && typeof body[key] !== "string") {
            throw bad(`${key} is a text.`);
        }
    }
    if (raw && Array.isArray(body["images"]) && body["images"].length > 0) {
        throw bad("A raw prompt has no images.");
    }
}

async function generateRaw({ model, body, signal, cancel }: Call, stream: boolean): Promise<Response> {
    const began = performance.now();
    const tokens = completeRaw(model, { ...readOptions(body, model), prompt: body["prompt"] }, signal);
    const first = await tokens.next();
    const frame = (): object => ({ model: model.name, created_at: new Date().toISOString() });
    async function* lines(): AsyncGenerator<object> {
        try {
            for (let step = first; ; step = await tokens.next()) {
                if (step.done) {
                    const { finish, usage } = step.value;
                    const total = nanoseconds(performance.now() - began);
                    yield { ...frame(), response: "", done: true, done_reason: finish, total_duration: total, load_duration: 0, prompt_eval_count: usage.prompt_tokens, eval_count: usage.completion_tokens };
                    return;
                }
                yield { ...frame(), response: step.value, done: false };
            }
        } finally {
            await endOf(tokens);
        }
    }
    if (stream) {
        const text = async function* (): AsyncGenerator<string> {
            for await (const line of lines()) {
                yield `${JSON.stringify(line)}\n`;
            }
        };
        return streamReply("ollama", text(), signal, cancel);
    }
    let response = "";
    let last: object = {};
    for await (const line of lines()) {
        response += (line as { response: string }).response;
        last = line;
    }
    return jsonReply({ ...last, response });
}

export async function generate(call: Call): Promise<Response> {
    const { model, body, signal } = call;
    const stream = readBoolean(body, "stream", true);
    const raw = readBoolean(body, "raw", false);
    checkGenerate(body, raw);
    const { prompt = "", system = "", images } = body;
    const hasImages = Array.isArray(images) && images.length > 0;
    if (prompt === "" && !hasImages) {
        return loadReply(call, generateForm);
    }
    if (raw) {
        return generateRaw(call, stream);
    }
    const request = {
        ...without(body, ["prompt", "system", "images", "raw", "context", "stream", "keep_alive", "suffix", "template", "name", "truncate", "shift"]),
        options: readOptions(body, model),
        messages: [...(system === "" ? [] : [{ role: "system", content: system }]), { role: "user", content: prompt, ...(hasImages && { images }) }],
        context_shift: false,
        stream: true,
    } as unknown as ChatRequest & { stream: true };
    return reply(call, await model.chat.completions.create(request, { signal }), stream, generateForm);
}

// ---- embeddings ---------------------------------------------------------------------------------------

/** `input`, or the one `prompt` of the older endpoint. */
export async function embed({ model, body, signal }: Call, one: boolean): Promise<Response> {
    const { dimensions } = body;
    readOptions(body, model);
    const request = {
        input: body[one ? "prompt" : "input"],
        truncate: readBoolean(body, "truncate", true),
        ...(typeof dimensions === "number" && dimensions > 0 && { dimensions: Math.min(dimensions, model.info.embedding) }),
    } as EmbeddingRequest;
    const began = performance.now();
    const { data, usage } = await model.embeddings.create(request, { signal });
    const vectors = data.map(({ embedding }) => embedding);
    return jsonReply(
        one ? { embedding: vectors[0] } : { model: model.name, embeddings: vectors, total_duration: nanoseconds(performance.now() - began), load_duration: 0, prompt_eval_count: usage.prompt_tokens },
    );
}
