/** What a model's header says, and whether it can run here. C reads it (src/inspect.c). */
import type { StatusName } from "./errors.js";

export interface Inspection {
    /** Opening would get past the header: else `code` and `text` say why not. Whether the GPU has room
     * is known only when it is asked. */
    runs: boolean;
    code: StatusName;
    text: string;
    /** Of all files. */
    bytes: number;
    architecture: string | null;
    name: string | null;
    /** "E2B", if the file says so. */
    sizeLabel: string | null;
    vision: boolean;
    audio: boolean;
    parameters: number;
    /** How the weights are written; `runs`: the engine can compute with it. */
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
        /** Of them, tables of which a token needs a row. */
        tables: number;
        /** Of them, read for each token. */
        perToken: number;
        activations: number;
        /** Of a conversation, by its length in tokens. */
        caches: { context: number; bytes: number }[];
    } | null;
    /** On this machine's GPU, or the least that there is. Null when it does not run. */
    gpu: {
        /** As far as can be known: browsers do not say how much memory there is. */
        fits: boolean;
        text: string;
        /** Bytes, all of them. */
        weights: number;
        /** Of the towers for pictures and sound. */
        towers: number;
        /** Of the weights, per-layer embeddings, which can stay in the file. */
        perLayer: number;
        /** What passes compute in. */
        work: number;
    } | null;
    /** `media`: an mmproj file, towers for pictures and sound. */
    files: { name: string; bytes: number; headerBytes: number; tensors: number; media: boolean }[];
}
