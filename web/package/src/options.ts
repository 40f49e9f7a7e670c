/** Options. What is left out has the default that include/bezel.h names; C reads them (src/wasm/options.c). */

export interface OpenOptions {
    /** "gpu-baseline": no features, least limits. Default: cpu. */
    device?: "cpu" | "gpu" | "gpu-baseline";
    /** Per-layer embeddings: all on the GPU, or rows read from the file as they are needed. Default: what fits. */
    ple?: "resident" | "file" | "auto";
    /** Bytes that the weights may take on the GPU; layers that do not fit are read from the file for every pass. */
    gpuMemory?: number;
    /** Bytes. */
    onProgress?: (done: number, total: number) => void;
    signal?: AbortSignal;
}

/** A diffusion model's canvas after a step over it. Its tokens come when it is settled. */
export interface Canvas {
    /** What it reads like at this moment, up to an end token. */
    text: string;
    /** Of at most `steps`, from 1. */
    step: number;
    steps: number;
    /** Of its first token in the sequence, and how many it has. */
    position: number;
    tokens: number;
}

export interface JobControl {
    signal?: AbortSignal;
    /** A diffusion model: every step over a canvas, while generating. */
    onCanvas?: (canvas: Canvas) => void;
    /** The GPU was lost; done of total bytes are loaded again, then the job goes on. */
    onReload?: (done: number, total: number) => void;
}

export interface SessionOptions {
    /** Positions. Default: the model's limit, at most 32,768. */
    context?: number;
    /** Prompt tokens per pass, at most 512. */
    chunk?: number;
    kernels?: string;
    /** One kernel per step, for checking. */
    noFuse?: boolean;
    /** Float activations and an f32 cache: slower, nothing rounded. */
    exact?: boolean;
    /** Places a conversation can go back to. */
    snapshots?: number;
}

export interface EncoderOptions {
    /** Tokens of a picture, at most: 70 to 1120. Default: what the model is made for, mostly 280. */
    budget?: number;
    /** Pictures and sounds remembered by their content. Default: 16. */
    keep?: number;
    kernels?: string;
    /** On the GPU nothing is rounded to f16, as it is where subgroup matrices are faster for that. */
    exact?: boolean;
}

export interface EncoderStats {
    /** Pictures and sounds that went through a tower, and that were known already. */
    encoded: number;
    remembered: number;
}

export interface PrefillOptions extends JobControl {
    /** Keep a way back to this many tokens. */
    snapshotAt?: number;
    /** Every new row's logits, in order. */
    onLogits?: (logits: Float32Array, position: number, rows: number) => void;
    onProgress?: (done: number, total: number) => void;
}

export interface Sampling {
    greedy?: boolean;
    temperature?: number;
    topK?: number;
    topP?: number;
    minP?: number;
    repetition?: number;
    presence?: number;
    frequency?: number;
    window?: number;
    seed?: number;
    /** [token, what is added to its logit]; -Infinity: never chosen. */
    bias?: [number, number][];
}

export interface GenerateOptions extends Sampling {
    maxTokens?: number;
    ignoreEnd?: boolean;
    showControl?: boolean;
    logProbs?: boolean;
    topLogProbs?: number;
    stopIds?: number[];
    stop?: string[];
}

export interface TokenProb {
    token: number;
    logProb: number;
}

export interface Token {
    token: number;
    /** What can be shown now: whole characters. */
    text: string;
    /** With logProbs. */
    logProb: number;
    /** With topLogProbs: best first. */
    top: TokenProb[];
}

export type Finish = "none" | "end" | "stop" | "length" | "context";

export interface SessionStats {
    position: number;
    prefilled: number;
    reused: number;
    generated: number;
    restores: number;
    cacheBytes: number;
    /** Rows of per-layer embeddings kept in the file: there already, and fetched. */
    pleHits: number;
    pleMisses: number;
}
