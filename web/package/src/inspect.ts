/** A model's header, and whether the model can run here. C writes it (src/api/inspect.c). */
import type { StatusName } from "./errors.js";

export interface Inspection {
    /** The engine supports the model; otherwise `code` and `text` say why not. Whether it fits into the GPU's memory is
     * known only on loading. */
    runs: boolean;
    code: StatusName;
    text: string;
    /** Size of all files. */
    bytes: number;
    architecture: string | null;
    name: string | null;
    /** Such as "E2B"; null: not in the file. */
    sizeLabel: string | null;
    vision: boolean;
    audio: boolean;
    parameters: number;
    /** Tensor types; `runs`: supported by the engine. */
    types: { type: string; tensors: number; bytes: number; runs: boolean }[];
    /** Null when it does not run. */
    model: {
        layers: number;
        width: number;
        vocabulary: number;
        context: number;
        window: number;
        experts: number;
        expertsUsed: number;
    } | null;
    /** Bytes. Null when it does not run. */
    memory: {
        weights: number;
        /** Part of the weights: embedding tables, of which a token needs one row. */
        tables: number;
        /** Part of the weights that is read for each token. */
        perToken: number;
        activations: number;
        /** KV cache by context length in tokens. */
        caches: { context: number; bytes: number }[];
    } | null;
    /** For this machine's GPU, or for WebGPU's default limits. Null when it does not run. */
    gpu: {
        /** Within the GPU's limits; browsers do not report the amount of memory. */
        fits: boolean;
        text: string;
        /** Bytes of all weights. */
        weights: number;
        /** Bytes of the vision and audio encoders. */
        towers: number;
        /** Part of the weights: per-layer embeddings, which can stay in the file. */
        perLayer: number;
        /** Bytes of activations and scratch buffers. */
        work: number;
    } | null;
    /** `media`: an mmproj file with vision or audio encoders; `drafter`: a small model that drafts for the other files' model. */
    files: { name: string; bytes: number; headerBytes: number; tensors: number; media: boolean; drafter: boolean }[];
}
