/** OpenAI's endpoints: models, chat completions, completions and embeddings. */
import type { BezelModel } from "./bezel.js";
import type { ChatChunk, ChatRequest } from "./chat_types.js";
import type { EmbeddingRequest } from "./embeddings.js";
import { isObject, jsonReply, readBoolean, Refusal, streamReply, without, type Fields } from "./http_reply.js";
import { completeRaw, endOf } from "./raw_completion.js";

/** A request as it arrived. */
export interface Call {
    model: BezelModel;
    body: Fields;
    signal: AbortSignal;
    /** Ends the answer, when the reader of its stream has left. */
    cancel: () => void;
}

/** In seconds. */
export const now = (): number => Math.floor(Date.now() / 1000);

export const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;

export function modelObject({ name }: BezelModel): object {
    return { id: name, object: "model", created: 0, owned_by: "local" };
}

export function listModels(model: BezelModel): Response {
    return jsonReply({ object: "list", data: [modelObject(model)] });
}

function readUsageWanted({ stream_options: options }: Fields, stream: boolean): boolean {
    if (options === undefined || options === null) {
        return false;
    }
    if (!isObject(options) || !stream) {
        throw new Refusal(400, stream ? "stream_options is an object." : "stream_options needs stream: true.", "bad_request");
    }
    return readBoolean(options, "include_usage", false);
}

// ---- chat ---------------------------------------------------------------------------------------------

/** Without the chunks that only Bezel's own clients know: many index the first choice of each. */
async function* chatEvents(chunks: AsyncIterable<ChatChunk>, withUsage: boolean): AsyncGenerator<string> {
    const more: { notices?: string[]; context_shift?: object } = {};
    for await (const { choices, usage, timings, canvas, media, notice, context_shift, ...frame } of chunks) {
        void canvas;
        void media;
        if (notice !== undefined) {
            (more.notices ??= []).push(notice);
        }
        if (context_shift) {
            more.context_shift = context_shift;
        }
        const [choice] = choices;
        if (choice) {
            yield event({ ...frame, choices, ...(withUsage && { usage: null }), ...(choice.finish_reason !== null && more) });
        } else if (usage && withUsage) {
            yield event({ ...frame, choices, usage, timings });
        }
    }
    yield "data: [DONE]\n\n";
}

export async function chatCompletions({ model, body, signal, cancel }: Call): Promise<Response> {
    const stream = readBoolean(body, "stream", false);
    const withUsage = readUsageWanted(body, stream);
    // As the server: without a word nothing is left out.
    const request = { context_shift: false, ...without(body, ["stream_options"]), stream } as unknown as ChatRequest;
    if (!stream) {
        return jsonReply(await model.chat.completions.create({ ...request, stream: false }, { signal }));
    }
    const chunks = await model.chat.completions.create({ ...request, stream: true }, { signal });
    return streamReply("openai", chatEvents(chunks, withUsage), signal, cancel);
}

// ---- completions --------------------------------------------------------------------------------------

const DEFAULT_MAX_TOKENS = 16;

export async function completions({ model, body, signal, cancel }: Call): Promise<Response> {
    const stream = readBoolean(body, "stream", false);
    const withUsage = readUsageWanted(body, stream);
    const tokens = completeRaw(model, { ...without(body, ["stream", "stream_options", "model", "user"]), max_tokens: body["max_tokens"] ?? DEFAULT_MAX_TOKENS }, signal);
    const frame = { id: `cmpl-${crypto.randomUUID().replaceAll("-", "")}`, object: "text_completion", created: now(), model: model.name };
    const choice = (text: string, finish_reason: string | null): object => ({ text, index: 0, logprobs: null, finish_reason });
    const first = await tokens.next(); // a refused request rejects here
    if (!stream) {
        let text = "";
        for (let step = first; ; step = await tokens.next()) {
            if (step.done) {
                return jsonReply({ ...frame, choices: [choice(text, step.value.finish)], usage: step.value.usage });
            }
            text += step.value;
        }
    }
    async function* events(): AsyncGenerator<string> {
        try {
            for (let step = first; ; step = await tokens.next()) {
                if (step.done) {
                    yield event({ ...frame, choices: [choice("", step.value.finish)] });
                    yield withUsage ? event({ ...frame, choices: [], usage: step.value.usage }) : "";
                    yield "data: [DONE]\n\n";
                    return;
                }
                yield event({ ...frame, choices: [choice(step.value, null)] });
            }
        } finally {
            await endOf(tokens);
        }
    }
    return streamReply("openai", events(), signal, cancel);
}

// ---- embeddings ---------------------------------------------------------------------------------------

export async function embeddings({ model, body, signal }: Call): Promise<Response> {
    return jsonReply(await model.embeddings.create(body as unknown as EmbeddingRequest, { signal }));
}
