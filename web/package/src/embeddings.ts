/** Vectors of texts in OpenAI's format. */
import { BezelError } from "./errors.js";
import type { Vectors } from "./embedder.js";
import type { EmbedOptions } from "./options.js";

export interface EmbeddingRequest extends EmbedOptions {
    /** One text or several, or their tokens. */
    input: string | string[] | number[] | number[][];
    /** "base64": the numbers as bytes, float32, little-endian. Default: "float". */
    encoding_format?: "float" | "base64" | undefined;
    /** Not looked at: a model object is one model, and has one user. */
    model?: string | undefined;
    user?: string | undefined;
}

export interface EmbeddingResponse {
    object: "list";
    data: { object: "embedding"; index: number; embedding: number[] | string }[];
    model: string;
    usage: { prompt_tokens: number; total_tokens: number };
}

const known = new Set(["input", "encoding_format", "model", "user", "dimensions", "truncate", "task", "title"]);

export interface EmbeddingInputs {
    inputs: (string | readonly number[])[];
    options: EmbedOptions;
    base64: boolean;
}

function isTokens(input: unknown[]): input is number[] {
    return input.length > 0 && input.every((item) => typeof item === "number");
}

/** What C needs of a request; it checks the rest. */
export function readEmbeddingRequest(request: EmbeddingRequest): EmbeddingInputs {
    for (const [key, value] of Object.entries(request)) {
        if (!known.has(key) && value !== undefined) {
            throw new BezelError("bad_request", `The request has "${key}", which embeddings do not have.`);
        }
    }
    const { input, encoding_format: format = "float", dimensions, truncate, task, title } = request;
    if (format !== "float" && format !== "base64") {
        throw new BezelError("bad_request", `"encoding_format" is ${JSON.stringify(format)}; it can be "float" or "base64".`);
    }
    const list = typeof input === "string" ? [input] : Array.isArray(input) ? (isTokens(input) ? [input] : input) : null;
    if (!list?.every((item) => typeof item === "string" || (Array.isArray(item) && isTokens(item)))) {
        throw new BezelError("bad_request", '"input" is not a text, a list of texts, or lists of tokens.');
    }
    const options: EmbedOptions = {
        ...(dimensions !== undefined && { dimensions }),
        ...(truncate !== undefined && { truncate }),
        ...(task !== undefined && { task }),
        ...(title !== undefined && { title }),
    };
    return { inputs: list, options, base64: format === "base64" };
}

function toBase64(values: Float32Array<ArrayBuffer>): string {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

export function embeddingResponse(vectors: Vectors, model: string, base64: boolean): EmbeddingResponse {
    const { values, dimensions, tokens } = vectors;
    const total = tokens.reduce((sum, n) => sum + n, 0);
    return {
        object: "list",
        data: tokens.map((_, index) => {
            const vector = values.slice(index * dimensions, (index + 1) * dimensions);
            return { object: "embedding", index, embedding: base64 ? toBase64(vector) : Array.from(vector) };
        }),
        model,
        usage: { prompt_tokens: total, total_tokens: total },
    };
}
