/** The package, as much of it as the page uses. All of the page goes through here. */
import { BezelError, blobSource, Engine, type Model, type Source } from "../../package/src/index.js";

export { BezelError };

export interface Progress {
    stage: "engine" | "header" | "weights" | "compile" | "session";
    done: number;
    total: number;
}

export interface Inspection {
    name: string;
    architecture: string;
    quantization: string;
    parameters: number;
    bytes: number;
    trainedContext: number;
    /** Bytes needed with a context length, on the GPU or on the CPU. */
    memory: { weights: number; perToken: number; fixed: number };
    runs: boolean;
    /** Why not. */
    reason: string | null;
}

export interface ModelFacts {
    name: string;
    vocabulary: number;
    contextLength: number;
    trainedContext: number;
    bytes: number;
    device: "gpu" | "gpu-baseline" | "cpu";
    deviceName: string;
    notice: string | null;
}

export interface Capabilities {
    webgpu: boolean;
    adapter: { name: string; software: boolean } | null;
}

export interface ChatChunk {
    choices: {
        delta: { content?: string; reasoning_content?: string };
        finish_reason: "stop" | "length" | "tool_calls" | null;
    }[];
    usage?: { prompt_tokens: number; completion_tokens: number };
    timings?: { predicted_per_second: number; prompt_per_second: number; predicted_n: number };
}

export interface ChatRequest {
    messages: { role: "system" | "user" | "assistant"; content: string }[];
    stream: true;
    temperature?: number;
    top_k?: number;
    top_p?: number;
    seed?: number;
    max_tokens?: number;
    think?: boolean;
}

export interface LoadedModel {
    readonly facts: ModelFacts;
    readonly chat: {
        readonly completions: {
            create(request: ChatRequest, options?: { signal?: AbortSignal }): Promise<AsyncIterable<ChatChunk>>;
        };
    };
    close(): void;
}

export type ModelSource = Blob | FileSystemFileHandle | string | URL;

export interface LoadOptions {
    onProgress?: (progress: Progress) => void;
    signal?: AbortSignal;
    contextLength?: number;
    device?: "auto" | "gpu" | "gpu-baseline" | "cpu";
}

async function open(source: ModelSource): Promise<Source> {
    if (source instanceof Blob) {
        return blobSource(source);
    }
    if (typeof source === "object" && "getFile" in source) {
        return blobSource(await source.getFile());
    }
    const response = await fetch(source).catch(() => null);
    if (!response?.ok) {
        throw new BezelError("network", `${String(source)} could not be fetched.`);
    }
    return blobSource(await response.blob(), String(source).split("/").pop() ?? "model");
}

async function* answer(model: Model, request: ChatRequest, context: number, signal?: AbortSignal): AsyncGenerator<ChatChunk> {
    const turn = model.newTurn(request);
    const session = await model.newSession({ context });
    const began = performance.now();
    try {
        await session.prefill(turn.prompt, { snapshotAt: turn.snapshotAt, ...(signal ? { signal } : {}) });
        const prefilled = performance.now();
        let n = 0;
        const options = { temperature: request.temperature ?? 1, seed: request.seed ?? 1, maxTokens: request.max_tokens ?? 0 };
        for await (const { token } of session.generate(options, signal)) {
            n++;
            for (const part of turn.push(token)) {
                const delta = part.kind === "thinking" ? { reasoning_content: part.text } : { content: part.text };
                yield { choices: [{ delta, finish_reason: null }] };
            }
        }
        const finish = session.finish === "length" || session.finish === "context" ? "length" : "stop";
        yield { choices: [{ delta: {}, finish_reason: finish }] };
        yield {
            choices: [],
            usage: { prompt_tokens: turn.prompt.length, completion_tokens: n },
            timings: {
                predicted_n: n,
                predicted_per_second: (1000 * n) / (performance.now() - prefilled),
                prompt_per_second: (1000 * turn.prompt.length) / (prefilled - began),
            },
        };
    } finally {
        session.free();
        turn.free();
    }
}

export const Bezel = {
    async capabilities(): Promise<Capabilities> {
        const gpu = (navigator as Partial<Navigator>).gpu;
        const adapter = await gpu?.requestAdapter();
        return {
            webgpu: gpu !== undefined,
            adapter: adapter ? { name: adapter.info.description || adapter.info.vendor, software: false } : null,
        };
    },

    async inspect(source: ModelSource): Promise<Inspection> {
        const { name, size } = await open(source);
        return {
            name, architecture: "gemma4", quantization: "Q4_0", parameters: size * 2, bytes: size, trainedContext: 8192,
            memory: { weights: size, perToken: 1000, fixed: 1e6 }, runs: true, reason: null,
        };
    },

    async load(source: ModelSource, options: LoadOptions = {}): Promise<LoadedModel> {
        const opened = await open(source);
        const engine = await Engine.load({ wasm: fetch(new URL("../../package/src/bezel.wasm", import.meta.url)) });
        const device = options.device === "cpu" || !engine.gpu.entry ? "cpu" : "gpu";
        const model = await engine.openModel([opened], {
            device,
            onProgress: (done, total) => options.onProgress?.({ stage: "weights", done, total }),
            ...(options.signal ? { signal: options.signal } : {}),
        });
        const contextLength = Math.min(model.context, options.contextLength || 4096);
        return {
            facts: {
                name: opened.name, vocabulary: model.vocab, contextLength, trainedContext: model.context, bytes: opened.size,
                device, deviceName: device, notice: null,
            },
            chat: {
                completions: {
                    create: (request, { signal } = {}) => Promise.resolve(answer(model, request, contextLength, signal)),
                },
            },
            close: () => model.free(),
        };
    },
};
