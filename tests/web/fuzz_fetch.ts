/** Random requests to model.fetch: fields of the right and of other kinds, in each endpoint. Whatever comes, it replies in the
 * API's form, with a status that fits, and the model answers afterwards. */
import { Bezel, bytesSource, type BezelModel } from "../../web/package/src/index.js";
import { check } from "./check.js";
import { localOptions, nano } from "./package.js";
import { readBytes } from "./platform.js";

type Random = (n: number) => number;

const PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/models", "/v1/models/%", "/api/chat", "/api/generate", "/api/embed", "/api/embeddings", "/api/show", "/api/tags", "/api/pull", "/x"];
const WORDS = ["hi", "", "\u0000", "é漢😀", "system", "user", "assistant", "tool", "function_call", "message", "json_object", "json_schema", "auto", "required", "a".repeat(500)];
const NUMBERS = [0, 1, 2, -1, 0.5, 1e308, NaN, 2 ** 31, 2 ** 53, 7];
const KEYS = [
    "messages", "model", "stream", "stream_options", "n", "seed", "stop", "logprobs", "top_logprobs", "temperature", "top_p", "tools", "tool_choice", "response_format", "think", "reasoning", "options", "format",
    "prompt", "input", "instructions", "raw", "suffix", "images", "context", "system", "truncation", "text", "include", "keep_alive", "truncate", "max_output_tokens", "echo", "best_of", "nothing",
    "role", "content", "type", "name", "call_id", "arguments", "output", "tool_calls", "function", "parameters", "num_ctx", "mirostat", "effort", "include_usage", "__proto__",
];

class Maker {
    readonly random: Random;

    constructor(random: Random) {
        this.random = random;
    }

    pick<T>(list: readonly T[]): T {
        return list[this.random(list.length)] as T;
    }

    value(depth: number): unknown {
        switch (this.random(depth > 0 ? 7 : 5)) {
            case 0:
                return this.pick(WORDS);
            case 1:
                return this.pick(NUMBERS);
            case 2:
                return this.random(2) === 0;
            case 3:
                return null;
            case 4:
                return { role: this.pick(["user", "assistant", "tool", "system"]), content: this.pick(WORDS) };
            case 5:
                return Array.from({ length: this.random(4) }, () => this.value(depth - 1));
            default:
                return this.object(depth - 1);
        }
    }

    object(depth: number): Record<string, unknown> {
        return Object.fromEntries(Array.from({ length: this.random(6) }, () => [this.pick(KEYS), this.value(depth)]));
    }

    /** Mostly a request that gets far, with some fields of chance. Few tokens, for speed. */
    body(path: string): object {
        const more = this.random(3) === 0 ? this.object(3) : Object.fromEntries(Object.entries(this.object(2)).slice(0, 1));
        const messages = [{ role: "user", content: "hi" }];
        const fitting = path.startsWith("/api/")
            ? { messages, prompt: "hi", input: "hi" }
            : path === "/v1/chat/completions" ? { messages } : path === "/v1/completions" ? { prompt: "hi" } : { input: "hi" };
        const limit = path.startsWith("/api/") ? { options: { num_predict: 2 } } : path === "/v1/responses" ? { max_output_tokens: 2 } : path === "/v1/embeddings" ? {} : { max_tokens: 2 };
        return this.random(5) === 0 ? { ...this.object(3), ...limit } : { ...fitting, ...more, ...limit };
    }
}

let loaded: Promise<BezelModel> | null = null;

async function load(): Promise<BezelModel> {
    return Bezel.load(bytesSource(await readBytes(nano)), await localOptions({ device: "cpu", contextLength: 128 }));
}

export async function fuzzFetch(random: Random): Promise<void> {
    loaded ??= load();
    const model = await loaded;
    const make = new Maker(random);
    for (let i = 0; i < 10; i++) {
        const path = make.pick(PATHS);
        const method = random(10) ? (/models|tags/.test(path) ? "GET" : "POST") : make.pick(["GET", "PUT", "DELETE", "POST"]);
        const text = random(20) ? JSON.stringify(make.body(path)) : make.pick(["", "{", "[]", "null", "\u0000"]);
        const response = await model.fetch(`http://bezel.example${path}`, { method, ...(method !== "GET" && { body: text }) });
        const what = `${method} ${path} ${text}`;
        check([200, 400, 404, 405, 501].includes(response.status), `${response.status} for ${what}: ${response.status === 200 ? "" : await response.clone().text()}`);
        const body = await response.text();
        const type = response.headers.get("Content-Type");
        const lines = type === "text/event-stream" ? body.split("\n").flatMap((line) => (line.startsWith("data: {") ? [line.slice(6)] : [])) : type === "application/x-ndjson" ? body.trim().split("\n") : [body];
        const parsed = lines.map((line) => JSON.parse(line) as { error?: unknown });
        check(response.status === 200 || parsed.some(({ error }) => error !== undefined), `no error for ${what}: ${body}`);
    }
    const { usage } = await model.chat.completions.create({ messages: [{ role: "user", content: "hi" }], max_tokens: 1 });
    check(usage.completion_tokens <= 1, "it answers");
}
