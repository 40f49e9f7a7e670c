/** The engine in JavaScript: one loop that runs jobs, and thin objects over the module's exports. */
import type { DeviceCounts } from "./device.js";
import { BezelError, errorOf } from "./errors.js";
import { Gpu } from "./gpu.js";
import { Memory } from "./memory.js";
import { Encoder, type Media } from "./encoder.js";
import type {
    Canvas,
    EncoderOptions,
    Finish,
    GenerateOptions,
    JobControl,
    OpenOptions,
    PrefillOptions,
    SessionOptions,
    SessionStats,
    Token,
} from "./options.js";
import type { WorkerLike } from "./rpc.js";
import { release, type Source } from "./source.js";
import { Threads } from "./threads.js";
import { instantiate, Progress, READ_FIELDS, Report, type Exports, type WasmSource } from "./wasm.js";

/** How long the event loop may have to wait for us, in milliseconds. */
const LONGEST_TURN = 30;

export interface EngineOptions {
    /** bezel.wasm: compiled, as bytes, or on its way. */
    wasm: WasmSource;
    /** navigator.gpu, where it is not found there; null: without a GPU. */
    gpu?: GPU | null;
    /** `wasm` is bezel-mt.wasm, compiled. */
    threads?: { count: number; memory: WebAssembly.Memory; make: () => WorkerLike };
}

type Event =
    | { kind: "progress" | "reload"; done: number; total: number }
    | { kind: "token"; token: Token }
    | { kind: "logits"; address: number; position: number; rows: number }
    | { kind: "canvas"; canvas: Canvas };

interface Read {
    file: number;
    offset: number;
    length: number;
    /** An address, or 0: then `buffer`, at `bufferOffset`. */
    to: number;
    buffer: number;
    bufferOffset: number;
}

/** Lets timers, input and painting have their turn. */
function breathe(): Promise<void> {
    const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
    return scheduler?.yield ? scheduler.yield() : new Promise((resolve) => setTimeout(resolve, 0));
}

function throwIfAborted(signal: AbortSignal | undefined): void {
    if (signal?.aborted) {
        throw new BezelError("aborted", "Stopped on request.", { cause: signal.reason });
    }
}

export class Engine {
    readonly gpu: Gpu;
    readonly exports: Exports;
    readonly memory: Memory;
    readonly host: number;
    /** Null: all is computed by this one. */
    readonly threads: Threads | null;
    readonly #encoder = new TextEncoder();
    /** The last error that came from C. */
    #said: BezelError | null = null;

    private constructor(gpu: Gpu, exports: Exports, memory: Memory, threads: Threads | null) {
        this.gpu = gpu;
        this.exports = exports;
        this.memory = memory;
        this.threads = threads;
        this.host = exports.host_new();
    }

    static async load(options: EngineOptions): Promise<Engine> {
        const found = (globalThis.navigator as Navigator | undefined)?.gpu ?? null;
        let memory: Memory | undefined;
        const gpu = new Gpu(options.gpu === undefined ? found : options.gpu, () => memory as Memory);
        const { wasm, threads } = options;
        const exports = await instantiate(wasm, gpu, threads?.memory);
        memory = new Memory(threads?.memory ?? (exports.memory as WebAssembly.Memory));
        exports._initialize();
        const made = threads && new Threads(threads.count, threads.make, wasm as WebAssembly.Module, exports, threads.memory);
        return new Engine(gpu, exports, memory, made ?? null);
    }

    get version(): string {
        return this.memory.cString(this.exports.version());
    }

    /** What the GPU was asked to do so far. */
    get counts(): DeviceCounts {
        return this.gpu.counts;
    }

    /** All files of one model, in any order. */
    async openModel(sources: Source[], options: OpenOptions = {}): Promise<Model> {
        const { device, ple, onProgress, signal } = options;
        const job = this.#opening(sources, { device, ple });
        try {
            for await (const event of this.runJob(job, sources, signal)) {
                if (event.kind === "progress") {
                    onProgress?.(event.done, event.total);
                }
            }
            return new Model(this, this.exports.job_model(job), sources);
        } finally {
            this.exports.job_free(job);
        }
    }

    #opening(sources: Source[], options: object): number {
        for (const { name, size } of sources) {
            this.withText(name, (address, length) =>
                this.check(this.exports.input_add(this.host, address, length, size)),
            );
        }
        return this.withText(JSON.stringify(options), (address, length) =>
            this.check(this.exports.model_open(this.host, address, length)),
        );
    }

    /** What the header says (src/inspect.c), as JSON; that the engine refuses the model is a part of it. The limits
     * are those of the GPU to ask about. */
    async inspect(sources: Source[], limits: { buffer: number; binding: number }, signal?: AbortSignal): Promise<string> {
        const { exports, host } = this;
        const job = this.#opening(sources, {});
        let refused = false;
        try {
            const model = exports.job_header_only(job);
            try {
                await this.#steps(job, sources, signal).next(); // it has no events
            } catch (reason) {
                if (reason !== this.#said) {
                    throw reason; // not about the model: it could not be read, or we were stopped
                }
                refused = true;
            }
            const text = this.check(exports.inspect(host, model, Number(refused), limits.buffer, limits.binding));
            const copy = this.memory.text(this.reported(0), this.reported(1));
            exports.free(text);
            return copy;
        } finally {
            exports.job_free(job);
        }
    }

    // ---- the border ---------------------------------------------------------------------------

    /** The last call's error, when it returned none of what it was asked for. */
    check(result: number): number {
        if (result === 0 || result === -1) {
            throw this.lastError();
        }
        return result;
    }

    lastError(): BezelError {
        const { host, exports, memory } = this;
        this.#said = errorOf(exports.error_code(host), memory.cString(exports.error_text(host)));
        return this.#said;
    }

    /** Lends bytes to a call. */
    withBytes<T>(bytes: Uint8Array, call: (address: number, length: number) => T): T {
        const address = this.exports.alloc(bytes.byteLength);
        if (address === 0) {
            throw new BezelError("out_of_memory", `No memory for ${bytes.byteLength} bytes.`);
        }
        try {
            this.memory.put(address, bytes);
            return call(address, bytes.byteLength);
        } finally {
            this.exports.free(address);
        }
    }

    withText<T>(text: string, call: (address: number, length: number) => T): T {
        return this.withBytes(this.#encoder.encode(text), call);
    }

    /** A number of the last call's report. */
    reported(index: number): number {
        return this.memory.doubleAt(this.exports.report(this.host) + 8 * index);
    }

    // ---- jobs ---------------------------------------------------------------------------------

    /** Runs a job, which stays the caller's to free. Yields its events; leaving the loop cancels. `sources` are
     * the model's files: a job whose GPU was lost reads them again. */
    async *runJob(job: number, sources: Source[], signal?: AbortSignal): AsyncGenerator<Event, void, void> {
        try {
            yield* this.#steps(job, sources, signal);
        } finally {
            this.gpu.wake(); // another job may have waited for what this one was loading
        }
    }

    async *#steps(
        job: number,
        sources: Source[],
        signal: AbortSignal | undefined,
    ): AsyncGenerator<Event, void, void> {
        let began = performance.now();
        for (;;) {
            throwIfAborted(signal);
            switch (this.exports.job_step(this.host, job)) {
                case Progress.again:
                    if (performance.now() - began > LONGEST_TURN) {
                        await breathe();
                        began = performance.now();
                    }
                    break;
                case Progress.needBytes:
                    await this.#fetch(this.#reads(), sources);
                    began = performance.now();
                    break;
                case Progress.needGpu:
                    await this.gpu.changed();
                    began = performance.now();
                    break;
                case Progress.event:
                    yield this.#event();
                    break;
                case Progress.done:
                    return;
                default:
                    throw this.lastError();
            }
        }
    }

    #event(): Event {
        const r = this.memory.doublesAt(this.exports.report(this.host), Report.firstRead);
        const at = (index: number): number => r[index] ?? 0;
        switch (at(Report.kind)) {
            case 0:
                return { kind: "progress", done: at(Report.done), total: at(Report.total) };
            case 1:
                return {
                    kind: "token",
                    token: {
                        token: at(Report.token),
                        text: this.memory.text(at(Report.text), at(Report.textLength)),
                        logProb: at(Report.logProb),
                        top: this.#top(at(Report.top), at(Report.topCount)),
                    },
                };
            case 2:
                return {
                    kind: "logits",
                    address: at(Report.logits),
                    position: at(Report.position),
                    rows: at(Report.rows),
                };
            case 3:
                return { kind: "reload", done: at(Report.done), total: at(Report.total) };
            default:
                return {
                    kind: "canvas",
                    canvas: {
                        text: this.memory.text(at(Report.text), at(Report.textLength)),
                        step: at(Report.done),
                        steps: at(Report.total),
                        position: at(Report.position),
                        tokens: at(Report.rows),
                    },
                };
        }
    }

    /** struct bz_token_prob: an int32 and a float each. */
    #top(address: number, n: number): Token["top"] {
        const ids = this.memory.int32s(address, 2 * n);
        const probs = this.memory.floats(address, 2 * n);
        return Array.from({ length: n }, (_, i) => ({
            token: ids[2 * i] ?? 0,
            logProb: probs[2 * i + 1] ?? 0,
        }));
    }

    #reads(): Read[] {
        const report = this.exports.report(this.host);
        const n = this.memory.doubleAt(report + 8 * Report.reads);
        const r = this.memory.doublesAt(report + 8 * Report.firstRead, n * READ_FIELDS);
        return Array.from({ length: n }, (_, i) => ({
            file: r[READ_FIELDS * i] ?? 0,
            offset: r[READ_FIELDS * i + 1] ?? 0,
            length: r[READ_FIELDS * i + 2] ?? 0,
            to: r[READ_FIELDS * i + 3] ?? 0,
            buffer: r[READ_FIELDS * i + 4] ?? 0,
            bufferOffset: r[READ_FIELDS * i + 5] ?? 0,
        }));
    }

    /** Does what the job needs read. Afterwards nothing is under way, whatever happened. */
    async #fetch(reads: Read[], sources: Source[]): Promise<void> {
        const done = await Promise.allSettled(reads.map((read) => this.#fetchOne(read, sources)));
        for (const result of done) {
            if (result.status === "rejected") {
                throw result.reason;
            }
        }
    }

    async #fetchOne(read: Read, sources: Source[]): Promise<void> {
        const { file, offset, length } = read;
        const source = sources[file];
        if (!source) {
            throw new BezelError("bad_file", `The engine asked for file ${file} of ${sources.length}.`);
        }
        let bytes: Uint8Array<ArrayBuffer>;
        try {
            bytes = await source.read(offset, length);
        } catch (reason) {
            const cause = reason instanceof Error ? reason.message : String(reason);
            throw reason instanceof BezelError
                ? reason
                : new BezelError("bad_file", `${source.name} could not be read: ${cause}.`, {
                      cause: reason,
                  });
        }
        if (bytes.byteLength !== length) {
            throw new BezelError(
                "bad_file",
                `${source.name} ended early: ${bytes.byteLength} bytes of ${length} came.`,
            );
        }
        if (read.to) {
            this.memory.put(read.to, bytes);
        } else {
            this.gpu.upload(read.buffer, read.bufferOffset, bytes);
        }
        if (source.fresh) {
            release(bytes);
        }
    }
}

export class Model {
    readonly engine: Engine;
    readonly address: number;
    /** Read again when the GPU is lost: they stay open as long as the model. */
    readonly sources: Source[];

    constructor(engine: Engine, address: number, sources: Source[]) {
        this.engine = engine;
        this.address = address;
        this.sources = sources;
    }

    /** The file's that the text model is in, or its first part. */
    get name(): string {
        return this.sources[this.engine.exports.model_main(this.address)]?.name ?? "model";
    }

    get vocab(): number {
        return this.engine.exports.model_vocab(this.address);
    }

    get context(): number {
        return this.engine.exports.model_context(this.address);
    }

    tokenize(text: string, options: { specials?: boolean; bos?: boolean } = {}): Int32Array {
        const { engine } = this;
        const { exports, host } = engine;
        return engine.withText(text, (address, length) => {
            const n = exports.tokenize(
                host,
                this.address,
                address,
                length,
                Number(options.specials ?? false),
                Number(options.bos ?? false),
            );
            if (n < 0) {
                throw engine.lastError();
            }
            return engine.memory.int32s(engine.reported(0), n);
        });
    }

    /** The text of tokens, never half a character. Control tokens show nothing unless asked to. */
    textOf(tokens: Iterable<number>, showControl = false): string {
        const { engine } = this;
        const { exports, host, memory } = engine;
        const stream = engine.check(exports.stream_new());
        let text = "";
        for (const token of [...tokens, -1]) {
            const length = exports.stream_push(host, stream, this.address, token, Number(showControl));
            text += memory.text(engine.reported(0), length);
        }
        exports.free(stream);
        return text;
    }

    /** A token as the vocabulary spells it; its bytes may be part of a character. */
    pieceOf(token: number): Uint8Array {
        const { exports, host, memory } = this.engine;
        exports.token_piece(host, this.address, token);
        const address = this.engine.reported(0);
        return memory.slice(address, this.engine.reported(1));
    }

    endsAnswer(token: number): boolean {
        return this.engine.exports.token_ends(this.address, token) !== 0;
    }

    async newSession(options: SessionOptions = {}): Promise<Session> {
        const { engine } = this;
        const free = (await engine.threads?.reserve()) ?? 0;
        const session = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(engine.exports.session_new(engine.host, this.address, address, length)),
        );
        return new Session(this, session, 1 + free - (engine.threads?.free ?? 0));
    }

    /** Has it eyes, has it ears? */
    takes(kind: MediaKind): boolean {
        return this.engine.exports.model_takes(this.address, mediaKinds.indexOf(kind)) !== 0;
    }

    /** Tokens of a picture, at most, for OpenAI's `detail`. */
    budgetOf(detail: "auto" | "low" | "high"): number {
        return this.engine.exports.model_budget(this.address, ["auto", "low", "high"].indexOf(detail));
    }

    /** The model's eyes and ears. */
    async newEncoder(options: EncoderOptions = {}): Promise<Encoder> {
        const { engine } = this;
        await engine.threads?.reserve();
        const encoder = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(engine.exports.encoder_new(engine.host, this.address, address, length)),
        );
        return new Encoder(this, encoder);
    }

    /** A turn of a conversation: the request is OpenAI's or Ollama's. */
    newTurn(request: object): Turn {
        const { engine } = this;
        const turn = engine.withText(JSON.stringify(request), (address, length) =>
            engine.check(engine.exports.turn_new(engine.host, this.address, address, length)),
        );
        return new Turn(engine, turn);
    }

    /** Free sessions first. */
    free(): void {
        this.engine.exports.model_free(this.address);
    }
}

const finishes: Finish[] = ["none", "end", "stop", "length", "context"];

export class Session {
    readonly model: Model;
    readonly address: number;
    /** That compute. */
    readonly threads: number;
    /** Why the last answer ended. */
    finish: Finish = "none";

    constructor(model: Model, address: number, threads: number) {
        this.model = model;
        this.address = address;
        this.threads = threads;
    }

    /** Makes the session hold exactly these tokens; computes what differs. */
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
        await this.#fill(job, options);
    }

    /** The same with a turn's prompt and its pictures and sounds, all of them attached. */
    async prefillTurn(turn: Turn, options: Omit<PrefillOptions, "snapshotAt" | "onLogits"> = {}): Promise<void> {
        const { engine } = this.model;
        await this.#fill(engine.check(engine.exports.turn_prefill(engine.host, this.address, turn.address)), options);
    }

    /** The same with media in the places that the tokens have for them. */
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
        await this.#fill(job, options);
    }

    async #fill(job: number, options: PrefillOptions): Promise<void> {
        const { engine, sources, vocab } = this.model;
        try {
            for await (const event of engine.runJob(job, sources, options.signal)) {
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

    /** The same as a chat request wants it: OpenAI's fields, read by C. */
    async *answer(request: object, seed: number, control: JobControl = {}): AsyncGenerator<Token, void, void> {
        const { engine } = this.model;
        const { exports, host } = engine;
        const job = engine.withText(JSON.stringify(request), (address, length) =>
            engine.check(exports.answer(host, this.address, address, length, seed)),
        );
        yield* this.#tokens(job, control);
    }

    async *#tokens(job: number, control: JobControl): AsyncGenerator<Token, void, void> {
        const { engine, sources } = this.model;
        const { exports } = engine;
        this.finish = "none";
        try {
            for await (const event of engine.runJob(job, sources, control.signal)) {
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

    /** After the last token held; null before the first prefill. */
    get logits(): Float32Array | null {
        const { engine, vocab } = this.model;
        const address = engine.exports.session_logits(this.address);
        return address ? engine.memory.floats(address, vocab) : null;
    }

    /** Tokens that it can hold. */
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
        };
    }

    free(): void {
        this.model.engine.exports.session_free(this.address);
    }
}

export type PartKind = "thinking" | "answer" | "callBegin" | "call" | "brokenCall" | "end";

export interface Part {
    kind: PartKind;
    /** Of a call: its name, then {"name", "arguments"} as JSON. */
    text: string;
}

const partKinds: (PartKind | null)[] = [null, "thinking", "answer", "callBegin", "call", "brokenCall", "end"];

export type MediaKind = "image" | "audio";

const mediaKinds: MediaKind[] = ["image", "audio"];

/** From a request to the last word of its answer: attach its pictures and sounds, prefill, push every token, then -1. */
export class Turn {
    readonly #engine: Engine;
    readonly address: number;
    /** In the order of the prompt; `source` is what the request says. */
    readonly media: { kind: MediaKind; source: string }[];

    constructor(engine: Engine, address: number) {
        const { exports, host, memory } = engine;
        this.#engine = engine;
        this.address = address;
        this.media = Array.from({ length: exports.turn_media(address) }, (_, i) => {
            const kind = mediaKinds[exports.turn_media_source(host, address, i)] ?? "image";
            return { kind, source: memory.text(engine.reported(0), engine.reported(1)) };
        });
    }

    attach(index: number, media: Media): void {
        const { exports, host } = this.#engine;
        this.#engine.check(exports.turn_attach(host, this.address, index, media.address));
    }

    /** Once all media are attached. */
    get prompt(): Int32Array {
        const { exports, host, memory } = this.#engine;
        exports.turn_prompt(host, this.address);
        return memory.int32s(this.#engine.reported(0), this.#engine.reported(1));
    }

    get snapshotAt(): number {
        this.#engine.exports.turn_prompt(this.#engine.host, this.address);
        return this.#engine.reported(2);
    }

    /** What the token completes; token -1 ends the turn. After "end" nothing more comes. */
    push(token: number): Part[] {
        const { exports, host } = this.#engine;
        this.#engine.check(exports.turn_push(host, this.address, token));
        const parts: Part[] = [];
        for (;;) {
            const kind = partKinds[exports.turn_next(host, this.address)];
            if (!kind) {
                return parts;
            }
            parts.push({
                kind,
                text: this.#engine.memory.text(this.#engine.reported(0), this.#engine.reported(1)),
            });
        }
    }

    free(): void {
        this.#engine.exports.turn_free(this.address);
    }
}
