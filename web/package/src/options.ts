/** Options, parsed by C (src/wasm/options.c). Defaults are those of include/bezel.h. */

export interface OpenOptions {
    /** "gpu-baseline": no optional features, default limits. Default: cpu. */
    device?: "cpu" | "gpu" | "gpu-baseline";
    /** Per-layer embeddings: all on the GPU, or rows read from the file on demand. Default: whichever fits. */
    ple?: "resident" | "file" | "auto";
    /** Name of the source that has to be the model's drafter. */
    drafter?: string;
    /** Maximum bytes of weights on the GPU; layers that do not fit are read from the file in every pass. */
    gpuMemory?: number;
    /** In bytes. */
    onProgress?: (done: number, total: number) => void;
    signal?: AbortSignal;
}

/** A diffusion model's canvas after a denoising step. Its tokens follow once they are final. */
export interface Canvas {
    /** Its current text, up to an end token. */
    text: string;
    /** From 1, at most `steps`. */
    step: number;
    steps: number;
    /** Position of its first token in the sequence, and its length. */
    position: number;
    tokens: number;
}

export interface JobControl {
    signal?: AbortSignal;
    /** Called after every denoising step of a diffusion model. */
    onCanvas?: (canvas: Canvas) => void;
    /** The GPU was lost: `done` of `total` bytes are loaded again, then the job resumes. */
    onReload?: (done: number, total: number) => void;
}

export interface SessionOptions {
    /** Capacity in tokens. Default: the model's limit, at most 32,768. */
    context?: number;
    /** Prompt tokens per pass, at most 512. */
    chunk?: number;
    kernels?: string;
    /** No fused kernels, for tests. */
    noFuse?: boolean;
    /** f32 activations and, unless `kv` is set, cache: slower, without rounding. */
    exact?: boolean;
    /** How keys and values are kept; q8 takes about half of the memory of f16, q4 a quarter. Default: f16. */
    kv?: "f16" | "q8" | "q4";
    /** Number of positions that a conversation can rewind to. */
    snapshots?: number;
}

export interface EncoderOptions {
    /** Maximum tokens of an image, 70 to 1120. Default: the model's own, usually 280. */
    budget?: number;
    /** Cached images and sounds. Default: 16. */
    keep?: number;
    kernels?: string;
    /** No rounding to f16 on the GPU, hence no subgroup matrices. */
    exact?: boolean;
}

export interface EmbedderOptions {
    kernels?: string;
    /** GPU: one kernel per step. */
    noFuse?: boolean;
    /** No rounding of activations. */
    exact?: boolean;
}

export interface EmbedOptions {
    /** How many numbers of each vector are kept, from the first on; brought to length 1 again. EmbeddingGemma is trained for 768, 512,
     * 256 and 128. Default: all. */
    dimensions?: number | undefined;
    /** Of a text that is too long, the beginning counts. Default: it is refused. */
    truncate?: boolean | undefined;
    /** Puts the model's words for this task before every text: "query", "document", "question-answering",
     * "fact-checking", "classification", "clustering", "similarity", "code-retrieval" or "summarization". */
    task?: string | undefined;
    /** The title of the documents. */
    title?: string | undefined;
}

export interface EncoderStats {
    /** Images and sounds that were encoded, and that came from the cache. */
    encoded: number;
    cached: number;
}

export interface PrefillOptions extends JobControl {
    /** Position to keep a snapshot of, for rewinding. */
    snapshotAt?: number;
    /** Logits of every new position, [rows][vocabulary], in order. */
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
    /** [token, value added to its logit]; -Infinity: never sampled. */
    bias?: [number, number][];
}

/** Who guesses the next tokens, several of which one pass verifies; the text is the same. "model": the model's drafter;
 * "lookup": whatever followed the last tokens where they occurred before. */
export type Draft = "model" | "lookup" | "off";

export interface GenerateOptions extends Sampling {
    maxTokens?: number;
    ignoreEnd?: boolean;
    showControl?: boolean;
    logProbs?: boolean;
    topLogProbs?: number;
    stopIds?: number[];
    stop?: string[];
    /** Default: the drafter of a model that was loaded with one. */
    draft?: Draft;
    /** Tokens that are guessed for a pass, at most 7. Default: as many as pay, measured while generating. */
    drafts?: number;
}

export interface TokenProb {
    token: number;
    logProb: number;
}

export interface Token {
    token: number;
    /** Text that is complete with this token, in whole characters. */
    text: string;
    /** Set with logProbs. */
    logProb: number;
    /** Set with topLogProbs; likeliest first. */
    top: TokenProb[];
}

export type Finish = "none" | "end" | "stop" | "length" | "context";
/** In the order of bz_finish. */
export const finishes: Finish[] = ["none", "end", "stop", "length", "context"];

export interface SessionStats {
    position: number;
    prefilled: number;
    reused: number;
    generated: number;
    restores: number;
    cacheBytes: number;
    /** Rows of per-layer embeddings in the file: found in the cache, and read. */
    pleHits: number;
    pleMisses: number;
    /** Tokens that were guessed, and of them those that were right. */
    drafted: number;
    accepted: number;
}
