/** Computes vectors of texts with a model of embeddings. */
import { runJob } from "./jobs.js";
import type { Model } from "./model.js";
import type { EmbedOptions } from "./options.js";

export interface Vectors {
    /** [texts][dimensions], each of length 1. */
    values: Float32Array<ArrayBuffer>;
    dimensions: number;
    /** How many tokens each text had. */
    tokens: number[];
}

export class Embedder {
    readonly #model: Model;
    readonly #address: number;
    /** Number of computing threads. */
    readonly threads: number;

    constructor(model: Model, address: number, threads: number) {
        this.#model = model;
        this.#address = address;
        this.threads = threads;
    }

    /** Tokens that a text may have. */
    get longest(): number {
        return this.#model.engine.exports.embedder_longest(this.#address);
    }

    /** What is peculiar about the file's vectors; null: nothing. */
    get notice(): string | null {
        const { exports, memory } = this.#model.engine;
        const at = exports.embedder_notice(this.#address);
        return at === 0 ? null : memory.cString(at);
    }

    /** Texts, or their tokens with those that the model expects around them. */
    async embed(inputs: (string | readonly number[])[], options: EmbedOptions = {}, signal?: AbortSignal): Promise<Vectors> {
        const { engine, sources } = this.#model;
        const { exports, host, memory } = engine;
        const job = engine.withText(JSON.stringify(inputs), (list, listLength) =>
            engine.withText(JSON.stringify(options), (json, length) => engine.check(exports.embed(host, this.#address, list, listLength, json, length))),
        );
        try {
            for await (const event of runJob(engine, job, sources, signal)) {
                void event; // progress
            }
            exports.job_vectors(host, job);
            const [at, n, dimensions, counts] = [0, 1, 2, 3].map((i) => engine.reported(i)) as [number, number, number, number];
            return { values: memory.floats(at, n * dimensions), dimensions, tokens: [...memory.int32s(counts, n)] };
        } finally {
            exports.job_free(job);
        }
    }

    /** Free it before the model. */
    free(): void {
        this.#model.engine.exports.embedder_free(this.#address);
    }
}
