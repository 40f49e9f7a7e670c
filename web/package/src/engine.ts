/** The WebAssembly module with its GPU and threads, and the calls into it. */
import type { DeviceCounts } from "./device.js";
import { BezelError, errorOf } from "./errors.js";
import { Gpu } from "./gpu.js";
import { runJob } from "./jobs.js";
import { Memory } from "./memory.js";
import { Model } from "./model.js";
import type { OpenOptions } from "./options.js";
import type { WorkerLike } from "./rpc.js";
import type { Source } from "./source.js";
import { Threads } from "./threads.js";
import { instantiate, type Exports, type WasmSource } from "./wasm.js";

export interface EngineOptions {
    /** bezel.wasm: compiled, as bytes, or as a response. */
    wasm: WasmSource;
    /** Default: navigator.gpu; null: no GPU. */
    gpu?: GPU | null;
    /** Requires a compiled bezel-mt.wasm in `wasm`. */
    threads?: { count: number; memory: WebAssembly.Memory; make: () => WorkerLike };
}

export class Engine {
    readonly gpu: Gpu;
    readonly exports: Exports;
    readonly memory: Memory;
    readonly host: number;
    /** Null: single-threaded. */
    readonly threads: Threads | null;
    readonly #encoder = new TextEncoder();
    /** The last error reported by C. */
    #lastError: BezelError | null = null;

    private constructor(gpu: Gpu, exports: Exports, memory: Memory, threads: Threads | null) {
        this.gpu = gpu;
        this.exports = exports;
        this.memory = memory;
        this.threads = threads;
        this.host = exports.host_new();
    }

    static async load(options: EngineOptions): Promise<Engine> {
        const defaultGpu = (globalThis.navigator as Navigator | undefined)?.gpu ?? null;
        let memory: Memory | undefined;
        const gpu = new Gpu(options.gpu === undefined ? defaultGpu : options.gpu, () => memory as Memory);
        const { wasm, threads } = options;
        const exports = await instantiate(wasm, gpu, threads?.memory);
        memory = new Memory(threads?.memory ?? (exports.memory as WebAssembly.Memory));
        exports._initialize();
        const pool = threads && new Threads(threads.count, threads.make, wasm as WebAssembly.Module, exports, threads.memory);
        return new Engine(gpu, exports, memory, pool ?? null);
    }

    get version(): string {
        return this.memory.cString(this.exports.version());
    }

    /** Totals of the GPU work so far. */
    get counts(): DeviceCounts {
        return this.gpu.counts;
    }

    /** All files of one model, in any order. */
    async openModel(sources: Source[], options: OpenOptions = {}): Promise<Model> {
        const { device, ple, drafter, onProgress, signal } = options;
        const job = this.#startOpening(sources, { device, ple, drafter });
        try {
            for await (const event of runJob(this, job, sources, signal)) {
                if (event.kind === "progress") {
                    onProgress?.(event.done, event.total);
                }
            }
            return new Model(this, this.exports.job_model(job), sources);
        } finally {
            this.exports.job_free(job);
        }
    }

    #startOpening(sources: Source[], options: object): number {
        for (const { name, size } of sources) {
            this.withText(name, (address, length) =>
                this.check(this.exports.input_add(this.host, address, length, size)),
            );
        }
        return this.withText(JSON.stringify(options), (address, length) =>
            this.check(this.exports.model_open(this.host, address, length)),
        );
    }

    /** The header's contents as JSON (src/api/inspect.c), including the reason if the engine refuses the model. `limits`:
     * of the GPU in question. */
    async inspect(sources: Source[], limits: { buffer: number; binding: number }, signal?: AbortSignal): Promise<string> {
        const { exports, host } = this;
        const job = this.#startOpening(sources, {});
        let refused = false;
        try {
            const model = exports.job_header_only(job);
            try {
                await runJob(this, job, sources, signal).next(); // emits no events
            } catch (reason) {
                if (reason !== this.#lastError) {
                    throw reason; // a read error or an abort, not a verdict about the model
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

    // ---- calls into C -------------------------------------------------------------------------

    /** Throws the last call's error if it returned 0 or -1. */
    check(result: number): number {
        if (result === 0 || result === -1) {
            throw this.lastError();
        }
        return result;
    }

    lastError(): BezelError {
        const { host, exports, memory } = this;
        this.#lastError = errorOf(exports.error_code(host), memory.cString(exports.error_text(host)));
        return this.#lastError;
    }

    /** Copies bytes into the module's memory for the duration of a call. */
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

    /** Element `index` of the last call's report. */
    reported(index: number): number {
        return this.memory.doubleAt(this.exports.report(this.host) + 8 * index);
    }
}
