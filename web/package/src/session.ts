/** A session: a token sequence with its KV cache; prefill, then generate. */
import type { Media } from "./encoder.js";
import { runJob } from "./jobs.js";
import type { LoraUse } from "./lora.js";
import type { Model } from "./model.js";
import { finishes, type Finish, type GenerateOptions, type JobControl, type PrefillOptions, type SessionStats, type Token } from "./options.js";
import type { Turn } from "./turn.js";

export class Session {
    readonly model: Model;
    readonly address: number;
    /** Number of computing threads. */
    readonly threads: number;
    /** Why the last answer ended. */
    finish: Finish = "none";

    constructor(model: Model, address: number, threads: number) {
        this.model = model;
        this.address = address;
        this.threads = threads;
    }

    /** Replaces all adapters. If they change, the session forgets its tokens, since they were computed with the others. */
    setLoras(uses: readonly LoraUse[]): void {
        const { engine } = this.model;
        const list = Float64Array.from(uses.flatMap(({ lora, scale }) => [lora.address >>> 0, scale]));
        engine.withBytes(new Uint8Array(list.buffer), (at) => engine.check(engine.exports.session_adapters(engine.host, this.address, at, uses.length)));
    }

    /** Makes the session hold exactly these tokens; the common prefix is not computed again. */
    async prefill(ids: Int32Array, options: PrefillOptions = {}): Promise<void> {
        const { engine } = this.model;
        const { exports, host } = engine;
        const bytes = new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength);
        const job = engine.withBytes(bytes, (address) =>
            engine.check(
                exports.prefill(
                    host,
                    this.address,
                    address,
                    ids.length,
                    options.snapshotAt ?? 0,
                    Number(options.onLogits !== undefined),
                ),
            ),
        );
        await this.#runPrefill(job, options);
    }

    /** Prefills a turn's prompt with its media, all of which must be attached. */
    async prefillTurn(turn: Turn, options: Omit<PrefillOptions, "snapshotAt" | "onLogits"> = {}): Promise<void> {
        const { engine } = this.model;
        await this.#runPrefill(engine.check(engine.exports.turn_prefill(engine.host, this.address, turn.address)), options);
    }

    /** Prefills tokens with media at their placeholder positions. */
    async prefillMedia(ids: Int32Array, media: Media[], options: Omit<PrefillOptions, "snapshotAt"> = {}): Promise<void> {
        const { engine } = this.model;
        const { exports, host } = engine;
        const all = Number(options.onLogits !== undefined);
        const bytes = (numbers: Int32Array): Uint8Array => new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
        const job = engine.withBytes(bytes(ids), (at) =>
            engine.withBytes(bytes(Int32Array.from(media, ({ address }) => address)), (list) =>
                engine.check(exports.prefill_media(host, this.address, at, ids.length, list, media.length, all)),
            ),
        );
        await this.#runPrefill(job, options);
    }

    async #runPrefill(job: number, options: PrefillOptions): Promise<void> {
        const { engine, sources, vocab } = this.model;
        try {
            for await (const event of runJob(engine, job, sources, options.signal)) {
                if (event.kind === "progress") {
                    options.onProgress?.(event.done, event.total);
                } else if (event.kind === "reload") {
                    options.onReload?.(event.done, event.total);
                } else if (event.kind === "logits") {
                    const logits = engine.memory.floats(event.address, event.rows * vocab);
                    options.onLogits?.(logits, event.position, event.rows);
                }
            }
        } finally {
            engine.exports.job_free(job);
        }
    }

    /** Continues after the prefilled tokens; leaving the loop stops. */
    async *generate(
        options: GenerateOptions = {},
        control: JobControl = {},
    ): AsyncGenerator<Token, void, void> {
        const { engine } = this.model;
        const { exports, host } = engine;
        const job = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(exports.generate(host, this.address, address, length)),
        );
        yield* this.#tokens(job, control);
    }

    /** Generates with the settings of the turn's request, which C has read. */
    async *answer(turn: Turn, seed: number, control: JobControl = {}): AsyncGenerator<Token, void, void> {
        const { engine } = this.model;
        const { exports, host } = engine;
        const job = engine.check(exports.answer(host, this.address, turn.address, seed));
        yield* this.#tokens(job, control);
    }

    async *#tokens(job: number, control: JobControl): AsyncGenerator<Token, void, void> {
        const { engine, sources } = this.model;
        const { exports } = engine;
        this.finish = "none";
        try {
            for await (const event of runJob(engine, job, sources, control.signal)) {
                if (event.kind === "token") {
                    this.finish = finishes[exports.job_finish(job)] ?? "none";
                    yield event.token;
                } else if (event.kind === "canvas") {
                    control.onCanvas?.(event.canvas);
                } else if (event.kind === "reload") {
                    control.onReload?.(event.done, event.total);
                }
            }
            this.finish = finishes[exports.job_finish(job)] ?? "none";
        } finally {
            exports.job_free(job);
        }
    }

    /** Logits after the last token held, [vocabulary]; null before the first prefill. */
    get logits(): Float32Array | null {
        const { engine, vocab } = this.model;
        const address = engine.exports.session_logits(this.address);
        return address ? engine.memory.floats(address, vocab) : null;
    }

    /** Capacity in tokens. */
    get context(): number {
        return this.model.engine.exports.session_context(this.address);
    }

    get stats(): SessionStats {
        const { engine } = this.model;
        engine.exports.session_stats(engine.host, this.address);
        const at = (index: number): number => engine.reported(index);
        return {
            position: at(0),
            prefilled: at(1),
            reused: at(2),
            generated: at(3),
            restores: at(4),
            cacheBytes: at(5),
            pleHits: at(6),
            pleMisses: at(7),
            drafted: at(8),
            accepted: at(9),
        };
    }

    free(): void {
        this.model.engine.exports.session_free(this.address);
    }
}
