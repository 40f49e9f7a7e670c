/** What the engine can be asked, by name; both sides of a worker's border know this list. */
import type { Capabilities } from "./capabilities.js";
import type { ChatChunk, ChatCompletion, ChatRequest } from "./chat_types.js";
import type { DownloadRequest, DownloadProgress } from "./download.js";
import type { Inspection } from "./inspect.js";
import type { PortableMedia } from "./media.js";
import type { WasmLocation } from "./module.js";
import type { Canvas, EncoderStats, Finish, GenerateOptions, OpenOptions, SessionOptions, SessionStats, Token } from "./options.js";
import type { StoredModel } from "./opfs.js";
import type { ModelSource, PortableSource } from "./sources.js";

export type DeviceChoice = "auto" | "gpu" | "gpu-baseline" | "cpu";

export interface Progress {
    /** The engine itself, the file's header, its weights (bytes), the memory for a conversation, kernels (how many). */
    stage: "engine" | "header" | "weights" | "session" | "compile";
    done: number;
    total: number;
}

/** A loaded model, in plain data. */
export interface ModelFacts {
    name: string;
    vocabulary: number;
    /** Tokens that a conversation may have. */
    contextLength: number;
    /** What the model was made for. */
    trainedContext: number;
    bytes: number;
    device: "gpu" | "gpu-baseline" | "cpu";
    deviceName: string;
    /** That compute: on the CPU with shared memory several, else 1. */
    threads: number;
    /** It takes pictures, it takes sound. */
    vision: boolean;
    audio: boolean;
    /** Its text condenses out of noise: chunks carry a canvas, and settings that draw tokens change nothing. */
    diffusion: boolean;
    /** A sentence to show when the device is not what one would expect; else null. */
    notice: string | null;
}

export interface LoadRequest {
    sources: (ModelSource | PortableSource)[];
    device: DeviceChoice;
    ple: NonNullable<OpenOptions["ple"]>;
    session: SessionOptions;
    /** At most; null: as many as are useful. */
    threads: number | null;
    /** Tokens of a picture, at most; null: what the model is made for. */
    imageTokens: number | null;
}

interface M<A, R, E = never> {
    argument: A;
    result: R;
    event: E;
}

export interface Methods {
    /** First: where the engine's module is, and the one with threads; null: there is none. */
    start: M<{ wasm: WasmLocation; threaded: WasmLocation | null }, void>;
    capabilities: M<null, Capabilities>;
    inspect: M<{ sources: (ModelSource | PortableSource)[] }, Inspection>;
    load: M<LoadRequest, ModelFacts, Progress>;
    /** Where the messages had pictures and sounds they have numbers, of `media`. */
    chat: M<{ request: ChatRequest; media: PortableMedia[] }, void, ChatChunk>;
    chatWhole: M<{ request: ChatRequest; media: PortableMedia[] }, ChatCompletion>;
    mediaStats: M<null, EncoderStats>;

    tokenize: M<{ text: string; specials: boolean; bos: boolean }, Int32Array>;
    detokenize: M<{ tokens: number[] | Int32Array; showControl: boolean }, string>;

    sessionNew: M<{ options: SessionOptions }, number>;
    sessionFree: M<{ session: number }, void>;
    sessionPrefill: M<
        { session: number; tokens: Int32Array; snapshotAt: number; logits: boolean },
        SessionStats,
        { done: number; total: number } | { logits: Float32Array; position: number; rows: number }
    >;
    sessionGenerate: M<{ session: number; options: GenerateOptions }, { finish: Finish }, Token | { canvas: Canvas }>;
    sessionLogits: M<{ session: number }, Float32Array | null>;
    sessionStats: M<{ session: number }, SessionStats>;

    download: M<DownloadRequest, StoredModel, DownloadProgress>;
    models: M<null, StoredModel[]>;
    remove: M<{ name: string }, void>;
}

export type Method = keyof Methods;
