/** Continues a text without the chat template, for the older endpoints: /v1/completions, and /api/generate with `raw`. */
import type { BezelModel } from "./bezel.js";
import { Refusal, type Fields } from "./http_reply.js";
import type { GenerateOptions } from "./options.js";

interface RawEnd {
    finish: "stop" | "length";
    usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** The engine's name, and the values that are allowed. */
const numbers: Record<string, [name: keyof GenerateOptions, low: number, high: number, whole: boolean]> = {
    temperature: ["temperature", 0, 100, false],
    top_p: ["topP", 0, 1, false],
    top_k: ["topK", -1, 2 ** 30, true],
    min_p: ["minP", 0, 1, false],
    repetition_penalty: ["repetition", 0.01, 100, false],
    repeat_penalty: ["repetition", 0.01, 100, false],
    repeat_last_n: ["window", -1, 2 ** 30, true],
    presence_penalty: ["presence", -100, 100, false],
    frequency_penalty: ["frequency", -100, 100, false],
    max_tokens: ["maxTokens", 1, 2 ** 30, true],
    num_predict: ["maxTokens", -2, 2 ** 30, true],
    seed: ["seed", -1, Number.MAX_SAFE_INTEGER, true],
};
/** Fields of which only these values can be obeyed. */
const only: Record<string, unknown[]> = { n: [1], best_of: [1], echo: [false], suffix: [""], store: [false], logprobs: [false], stream: [true, false] };

function bad(message: string): Refusal {
    return new Refusal(400, message, "bad_request");
}

function readStop(stop: unknown): string[] {
    const list: unknown[] = Array.isArray(stop) ? stop : [stop];
    if (!list.every((one) => typeof one === "string")) {
        throw bad("stop is a text, or a list of texts.");
    }
    return list;
}

function readOptions(fields: Fields): GenerateOptions {
    const options: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(fields)) {
        const number = numbers[key];
        if (value === null || value === undefined || key === "prompt") {
            continue;
        }
        if (number) {
            const [name, low, high, whole] = number;
            if (typeof value !== "number" || !(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
                throw bad(`${key} is a ${whole ? "whole " : ""}number from ${low} to ${high}.`);
            }
            options[name] = value;
        } else if (key === "stop") {
            options["stop"] = readStop(value);
        } else if (!(only[key]?.includes(value) ?? false)) {
            throw bad(key in only ? `${key} is ${JSON.stringify(only[key]?.[0])} here.` : `The request has "${key}", which is not a setting of this endpoint.`);
        }
    }
    const { temperature, maxTokens, seed, ...rest } = options as GenerateOptions;
    return {
        ...rest,
        ...(temperature === 0 ? { greedy: true } : temperature !== undefined && { temperature }),
        ...(maxTokens !== undefined && maxTokens > 0 && { maxTokens }),
        seed: seed !== undefined && seed >= 0 ? seed : Math.floor(Math.random() * Number.MAX_SAFE_INTEGER),
    };
}

async function readPrompt(model: BezelModel, prompt: unknown): Promise<Int32Array> {
    if (typeof prompt === "string" || (Array.isArray(prompt) && prompt.length === 1 && typeof prompt[0] === "string")) {
        return model.tokenize(typeof prompt === "string" ? prompt : String(prompt[0]), { specials: true, bos: true });
    }
    if (Array.isArray(prompt) && prompt.length > 0 && prompt.every((id) => Number.isInteger(id) && (id as number) >= 0 && (id as number) < model.info.vocabulary)) {
        return Int32Array.from(prompt as number[]);
    }
    throw bad("prompt is one text, or one list of tokens.");
}

/** Frees what a completion holds that is not read to its end. */
export async function endOf(tokens: AsyncGenerator<string, RawEnd>): Promise<void> {
    await tokens.return({ finish: "stop", usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } });
}

/** The texts of the tokens. Its session is its own and is freed at the end. */
export async function* completeRaw(model: BezelModel, fields: Fields, signal: AbortSignal): AsyncGenerator<string, RawEnd> {
    const options = readOptions(fields);
    const prompt = await readPrompt(model, fields["prompt"]);
    const context = Math.min(model.contextLength, prompt.length + (options.maxTokens ?? model.contextLength));
    if (prompt.length >= context) {
        throw new Refusal(400, `The prompt has ${prompt.length} tokens; the context has ${model.contextLength}.`, "context_length_exceeded");
    }
    const session = await model.newSession({ context });
    try {
        await session.prefill(prompt, { signal });
        let generated = 0;
        for await (const { text } of session.generate(options, signal)) {
            generated++;
            if (text !== "") {
                yield text;
            }
        }
        const finish = session.finish === "length" || session.finish === "context" ? "length" : "stop";
        return { finish, usage: { prompt_tokens: prompt.length, completion_tokens: generated, total_tokens: prompt.length + generated } };
    } finally {
        await session.free();
    }
}
