/** The engine in JavaScript: the WebAssembly module with its GPU and threads, and how one talks to it. */
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
    /** bezel.wasm: compiled, as bytes, or on its way. */
    wasm: WasmSource;
    /** navigator.gpu, where it is not found there; null: without a GPU. */
    gpu?: GPU | null;
    /** `wasm` is bezel-mt.wasm, compiled. */
    threads?: { count: number; memory: WebAssembly.Memory; make: () => WorkerLike };
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
                await runJob(this, job, sources, signal).next(); // it has no events
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
}
