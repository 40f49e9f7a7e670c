/** The methods that the engine's side implements, called directly or through a worker's messages. */
import type { Capabilities } from "./capabilities.js";
import type { ChatChunk, ChatCompletion, ChatRequest } from "./chat_types.js";
import type { EmbeddingRequest, EmbeddingResponse } from "./embeddings.js";
import type { DownloadedModel, DownloadRequest, DownloadProgress } from "./download.js";
import type { Inspection } from "./inspect.js";
import type { LoraInfo } from "./lora.js";
import type { PortableMedia } from "./request_media.js";
import type { WasmLocation } from "./module.js";
import type { Canvas, EncoderStats, Finish, GenerateOptions, OpenOptions, SessionOptions, SessionStats, Token } from "./options.js";
import type { StoredModel } from "./opfs.js";
import type { ModelSource, PortableSource } from "./sources.js";
import type { UnfinishedDownload } from "./unfinished.js";

export type DeviceChoice = "auto" | "gpu" | "gpu-baseline" | "cpu";

export interface Progress {
    /** Units of `done` and `total`: weights in bytes, compile in kernels; the other stages go from 0 to 1. */
    stage: "engine" | "header" | "weights" | "session" | "compile";
    done: number;
    total: number;
}

/** Properties of a loaded model. */
export interface ModelInfo {
    name: string;
    vocabulary: number;
    /** Maximum tokens of a conversation. */
    contextLength: number;
    /** The model's own limit. */
    trainedContext: number;
    bytes: number;
    device: "gpu" | "gpu-baseline" | "cpu";
    deviceName: string;
    /** Number of computing threads; more than 1 only on the CPU with shared memory. */
    threads: number;
    /** Accepts images; sound; videos. */
    vision: boolean;
    audio: boolean;
    video: boolean;
    /** A diffusion model: chunks carry a canvas, and sampling settings other than the seed have no effect. */
    diffusion: boolean;
    /** It was loaded with a drafter. */
    drafter: boolean;
    /** Numbers of a text's vector (embeddings.create); 0: the model writes text (chat.completions.create). */
    embedding: number;
    /** A sentence to show if "auto" did not choose the GPU, or if the file's vectors are peculiar; else null. */
    notice: string | null;
}

export interface LoadRequest {
    sources: (ModelSource | PortableSource)[];
    device: DeviceChoice;
    ple: NonNullable<OpenOptions["ple"]>;
    session: SessionOptions;
    /** Maximum; null: automatic. */
    threads: number | null;
    /** Maximum tokens of an image; null: the model's default. */
    imageTokens: number | null;
    /** The last source has to be the model's drafter. */
    drafter: boolean;
}

/** An adapter by its number, and its strength. */
export interface LoraNumber {
    lora: number;
    scale: number;
}

interface M<A, R, E = never> {
    argument: A;
    result: R;
    event: E;
}

export interface Methods {
    /** Must be called first: the locations of bezel.wasm and bezel-mt.wasm; null: no threads. */
    start: M<{ wasm: WasmLocation; threaded: WasmLocation | null }, void>;
    capabilities: M<null, Capabilities>;
    inspect: M<{ sources: (ModelSource | PortableSource)[] }, Inspection>;
    load: M<LoadRequest, ModelInfo, Progress>;
    /** In the messages, images, sounds and videos are indexes into `media`. */
    chat: M<{ request: ChatRequest; media: PortableMedia[]; loras: LoraNumber[] }, void, ChatChunk>;
    chatWhole: M<{ request: ChatRequest; media: PortableMedia[]; loras: LoraNumber[] }, ChatCompletion>;
    loraLoad: M<{ source: ModelSource | PortableSource }, { lora: number; info: LoraInfo }>;
    loraFree: M<{ lora: number }, void>;
    embed: M<{ request: EmbeddingRequest }, EmbeddingResponse>;
    mediaStats: M<null, EncoderStats>;

    tokenize: M<{ text: string; specials: boolean; bos: boolean }, Int32Array>;
    detokenize: M<{ tokens: number[] | Int32Array; showControl: boolean }, string>;

    sessionNew: M<{ options: SessionOptions }, number>;
    sessionLoras: M<{ session: number; loras: LoraNumber[] }, void>;
    sessionFree: M<{ session: number }, void>;
    sessionPrefill: M<
        { session: number; tokens: Int32Array; snapshotAt: number; logits: boolean },
        SessionStats,
        { done: number; total: number } | { logits: Float32Array; position: number; rows: number }
    >;
    sessionGenerate: M<{ session: number; options: GenerateOptions }, { finish: Finish }, Token | { canvas: Canvas }>;
    sessionLogits: M<{ session: number }, Float32Array | null>;
    sessionStats: M<{ session: number }, SessionStats>;

    download: M<DownloadRequest, DownloadedModel, DownloadProgress>;
    unfinished: M<null, UnfinishedDownload[]>;
    models: M<null, StoredModel[]>;
    remove: M<{ name: string }, void>;
}

export type Method = keyof Methods;
