/** Replaces web/app/src/bezel.ts in tests that need a certain answer or failure at a certain time. It follows
 * globalThis.scenario, which a test may change at any time. Imports nothing: the page loads this file alone. */
import type { Capabilities, ChatChunk, Inspection, ModelInfo, Progress, StreamRequest } from "../../web/package/src/index.js";

export interface Scenario {
    /** Error codes that these calls fail with. */
    inspect?: string;
    load?: string;
    answer?: string;
    /** Number of text pieces before `answer` fails. */
    failAfter?: number;
    /** Milliseconds between text pieces and between loading steps; "step": wait for globalThis.step(). */
    pause?: number | "step";
    text?: string;
    /** A diffusion model's canvases, before the text. */
    canvases?: string[];
    thinking?: string;
    /** Encoding progress before the text, and a notice after it. */
    media?: ChatChunk["media"][];
    notice?: string;
    webgpu?: boolean;
    /** Loading never ends. */
    endless?: boolean;
    /** Tokens of the conversation after the answer. */
    used?: number;
    /** Calls of tools that precede the text, a list for each round. */
    calls?: { name: string; arguments: string }[][];
    /** More messages than this do not fit into the context. */
    maxMessages?: number;
    /** The text is what the test gives to push(). */
    pushed?: boolean;
    /** In the place of all texts that a model's file and the machine bring. */
    metadata?: string;
    /** The answer ends because the context is full, until the request continues it. */
    cut?: boolean;
}

declare global {
    var scenario: Scenario | undefined;
    /** Continues after a pause of "step". */
    var step: (() => void) | undefined;
    /** Writes a piece of an answer with `pushed`; null ends it. */
    var push: ((piece: string | null) => void) | undefined;
    /** The requests so far. */
    var requests: StreamRequest[] | undefined;
}

const now = (): Scenario => globalThis.scenario ?? {};

function pause(): Promise<void> {
    const { pause: length = 1 } = now();
    return new Promise((resolve) => {
        if (length === "step") {
            globalThis.step = resolve;
        } else {
            setTimeout(resolve, length);
        }
    });
}

export class BezelError extends Error {
    readonly code: string;

    constructor(code: string, message: string, options?: ErrorOptions) {
        super(message, options);
        this.name = code === "aborted" ? "AbortError" : "BezelError";
        this.code = code;
    }
}

/** Knows no image formats. */
export const imageSize = (): null => null;

function refuse(code: string | undefined): void {
    if (code !== undefined) {
        throw new BezelError(code, `The engine's own sentence about ${code}.`);
    }
}

const info: ModelInfo = {
    name: "gemma-4-E2B-it-Q4_K_M",
    vocabulary: 262144,
    contextLength: 32768,
    trainedContext: 131072,
    bytes: 3.1e9,
    device: "gpu",
    deviceName: "Test GPU",
    threads: 1,
    vision: true,
    audio: true,
    video: true,
    diffusion: false,
    drafter: false,
    embedding: 0,
    notice: null,
};

const inspection: Inspection = {
    runs: true,
    code: "ok",
    text: "",
    bytes: 3.1e9,
    architecture: "gemma4",
    name: "Gemma 4 E2B it",
    sizeLabel: "E2B",
    vision: true,
    audio: true,
    parameters: 4.65e9,
    types: [
        { type: "Q4_K", tensors: 200, bytes: 2.1e9, runs: true },
        { type: "Q6_K", tensors: 30, bytes: 1e9, runs: true },
    ],
    model: { layers: 30, width: 2048, vocabulary: 262144, context: 131072, window: 1024, experts: 0, expertsUsed: 0 },
    memory: {
        weights: 3.1e9,
        tables: 1.9e9,
        perToken: 1.2e9,
        activations: 0.12e9,
        caches: [4096, 8192, 32768, 131072].map((context) => ({ context, bytes: 20e6 + 9000 * context })),
    },
    gpu: { fits: true, text: "", weights: 3.1e9, towers: 0, perLayer: 1.8e9, work: 0.2e9 },
    files: [],
};

/** Words with the space before them, like tokens. */
function* pieces(text: string): Generator<string> {
    yield* text.match(/\s*\S+|\s+$/g) ?? [];
}

/** How many rounds of calls a request has after its question. */
function roundsOf({ messages }: StreamRequest): number {
    const question = messages.findLastIndex(({ role }) => role === "user");
    return messages.slice(question).filter((message) => message.role === "assistant" && message.tool_calls).length;
}

async function* answer(request: StreamRequest, signal: AbortSignal | undefined): AsyncGenerator<ChatChunk, void, void> {
    const { text = "An answer.", thinking = "", failAfter = 0, cut = false } = now();
    const ends = cut && !request.continue_final_message;
    const { used = ends ? info.contextLength : 8192 } = now();
    const chunk = (delta: object, finish: "stop" | "length" | "tool_calls" | null = null): ChatChunk => ({
        id: "x",
        object: "chat.completion.chunk",
        created: 0,
        model: "fake",
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    });
    const { canvases = [], media = [], notice } = now();
    for (const progress of media) {
        yield { ...chunk({}), choices: [], media: progress as NonNullable<ChatChunk["media"]> };
        await pause();
    }
    if (notice !== undefined) {
        yield { ...chunk({}), choices: [], notice };
    }
    for (const [i, canvas] of canvases.entries()) {
        yield { ...chunk({}), choices: [], canvas: { text: canvas, step: i + 1, steps: canvases.length, position: 0, tokens: 8 } };
        await pause();
    }
    const calls = now().calls?.[roundsOf(request)];
    if (calls) {
        for (const [index, call] of calls.entries()) {
            yield chunk({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name: call.name, arguments: "" } }] });
            await pause();
            yield chunk({ tool_calls: [{ index, function: { arguments: call.arguments } }] });
        }
        yield chunk({}, "tool_calls");
        return;
    }
    let n = 0;
    while (now().pushed) {
        const piece = await new Promise<string | null>((resolve) => (globalThis.push = resolve));
        if (piece === null) {
            break;
        }
        n++;
        yield chunk({ content: piece });
    }
    for (const [kind, source] of [["reasoning_content", thinking], ["content", text]] as const) {
        for (const piece of pieces(source)) {
            if (now().answer !== undefined && n === failAfter) {
                refuse(now().answer);
            }
            if (signal?.aborted) {
                refuse("aborted");
            }
            n++;
            yield chunk({ [kind]: piece });
            await pause();
        }
    }
    refuse(now().answer);
    yield chunk({}, ends ? "length" : "stop");
    yield {
        ...chunk({}),
        choices: [],
        usage: { prompt_tokens: used - n, completion_tokens: n, total_tokens: used, prompt_tokens_details: { cached_tokens: 0, image_tokens: 0, audio_tokens: 0, video_tokens: 0 }, completion_tokens_details: { reasoning_tokens: 0 } },
        timings: { cache_n: 0, prompt_n: 20, prompt_ms: 10, prompt_per_second: 1840, media_n: 0, media_ms: 0, predicted_n: n, predicted_ms: 99, predicted_per_second: 61.4 },
    };
}

async function create(request: StreamRequest, options: { signal?: AbortSignal }): Promise<AsyncGenerator<ChatChunk, void, void>> {
    (globalThis.requests ??= []).push(JSON.parse(JSON.stringify(request)) as StreamRequest);
    await Promise.resolve();
    refuse(request.messages.length > (now().maxMessages ?? Infinity) ? "context_full" : undefined);
    return answer(request, options.signal);
}

export const Bezel = {
    capabilities: (): Promise<Partial<Capabilities>> => {
        const { webgpu = true } = now();
        const adapter = { name: "Test GPU", software: false } as Capabilities["adapter"];
        return Promise.resolve({ webgpu, adapter: webgpu ? adapter : null, opfs: true, deviceMemory: 8 });
    },

    inspect: async (): Promise<Inspection> => {
        await pause();
        refuse(now().inspect);
        const { metadata } = now();
        return metadata === undefined ? inspection : { ...inspection, name: metadata, sizeLabel: metadata, architecture: metadata, types: [{ type: metadata, tensors: 1, bytes: 3e9, runs: true }], gpu: { fits: false, text: metadata, weights: 3.1e9, towers: 0, perLayer: 0, work: 0 } };
    },

    load: async (_: unknown, options: { signal: AbortSignal; onProgress: (p: Progress) => void; device: string }): Promise<object> => {
        const total = 3.1e9;
        for (let done = 0; done < total || now().endless; done += total / 4) {
            await pause();
            if (options.signal.aborted) {
                refuse("aborted");
            }
            options.onProgress({ stage: "weights", done: Math.min(done, 0.62 * total), total });
        }
        if (options.device !== "cpu" || now().load === "out_of_memory") {
            refuse(now().load);
        }
        const { metadata } = now();
        return {
            info: metadata !== undefined ? { ...info, name: metadata, deviceName: metadata, notice: metadata } : options.device === "cpu" ? { ...info, device: "cpu", deviceName: "CPU" } : info,
            chat: { completions: { create } },
            close: () => undefined,
        };
    },

    download: (): Promise<never> => Promise.reject(new BezelError("quota", "The engine's own sentence about quota.")),
    models: (): Promise<never[]> => Promise.resolve([]),
    unfinished: (): Promise<never[]> => Promise.resolve([]),
    remove: (): Promise<void> => Promise.resolve(),
};
