/** Replies in the forms of OpenAI's and Ollama's APIs (local_fetch.ts). */
import { BezelError, errorFrom, type ErrorCode } from "./errors.js";

export type Api = "openai" | "ollama";

/** A request that is refused with a status of HTTP. */
export class Refusal extends Error {
    readonly status: number;
    readonly code: string | null;

    constructor(status: number, message: string, code: string | null = null) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

/** As the server's (server/api/api.c). */
const statuses: Partial<Record<ErrorCode, number>> = { not_found: 404, bad_request: 400, bad_schema: 400, context_full: 400, unsupported_model: 400, bad_file: 400, out_of_memory: 503, quota: 503 };

function refusalOf(reason: unknown): Refusal {
    if (reason instanceof Refusal) {
        return reason;
    }
    const { code, message } = errorFrom(reason);
    return new Refusal(statuses[code] ?? 500, message, code === "context_full" ? "context_length_exceeded" : code);
}

function errorBody(api: Api, { status, message, code }: Refusal): object {
    const type = status < 500 ? "invalid_request_error" : "server_error";
    return api === "openai" ? { error: { message, type, param: null, code } } : { error: message };
}

export function jsonReply(value: unknown, status = 200): Response {
    return new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });
}

export function errorReply(api: Api, reason: unknown): Response {
    const refusal = refusalOf(reason);
    return jsonReply(errorBody(api, refusal), refusal.status);
}

/** What `fetch` rejects with, and its body, when the signal fires; null: it has not. */
export function abortOf(reason: unknown, signal: AbortSignal): unknown {
    const aborted = signal.aborted && (reason === signal.reason || (reason instanceof BezelError && reason.code === "aborted"));
    return aborted ? (signal.reason as unknown) : null;
}

/** A reply whose body is produced while it is read. `cancel`: the reader has left. After it has begun an error is one
 * more event, as clients expect. */
export function streamReply(api: Api, parts: AsyncGenerator<string>, signal: AbortSignal, cancel: () => void): Response {
    const encoder = new TextEncoder();
    const frame = (text: string): string => (api === "openai" ? `data: ${text}\n\n` : `${text}\n`);
    // Also when nobody is reading: what the answer has allocated is freed.
    const end = (): void => {
        cancel();
        parts.return(undefined).catch(() => undefined);
    };
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        start: (controller) => {
            const abort = (): void => {
                controller.error(signal.reason);
                end();
            };
            signal.addEventListener("abort", abort, { once: true });
        },
        pull: async (controller) => {
            try {
                const { value, done } = await parts.next();
                if (done) {
                    controller.close();
                } else {
                    controller.enqueue(encoder.encode(value));
                }
            } catch (reason) {
                if (signal.aborted) {
                    return; // the body has failed already
                }
                controller.enqueue(encoder.encode(frame(JSON.stringify(errorBody(api, refusalOf(reason))))));
                controller.close();
            }
        },
        cancel: end,
    });
    return new Response(body, { headers: { "Content-Type": api === "openai" ? "text/event-stream" : "application/x-ndjson" } });
}

// ---- fields of requests -----------------------------------------------------------------------------

export type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function readBoolean(body: Fields, key: string, otherwise: boolean): boolean {
    const value = body[key] ?? otherwise;
    if (typeof value !== "boolean") {
        throw new Refusal(400, `${key} is true or false.`, "bad_request");
    }
    return value;
}

export function without(body: Fields, keys: readonly string[]): Fields {
    return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)));
}
