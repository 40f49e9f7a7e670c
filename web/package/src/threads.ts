/** Threads for bezel-mt.wasm: workers that run the same module on the same memory. Each one sleeps in C
 * (src/base/os_wasm_threads.c) until there is work. C uses a thread only after it has reported ready. */
import type { WorkerLike, WorkerScope } from "./rpc.js";
import { osImports, type Exports } from "./wasm.js";

/** Equals --initial-memory in web/web.mk; a page is 64 KiB. */
const INITIAL_PAGES = 256;
/** Tried in order: some browsers cannot reserve 4 GiB of shared memory. */
const MAX_PAGES = [65536, 32768, 16384];
/** A worker that is not ready after this time counts as failed. */
const START_TIMEOUT_MS = 10_000;
/** More are not faster: memory bandwidth is the limit. */
const MAX_THREADS = 16;
/** Name of workers that are threads; worker.ts checks it. */
export const THREAD = "bezel-thread";

interface ThreadStart {
    module: WebAssembly.Module;
    memory: WebAssembly.Memory;
    thread: number;
    stack: number;
    tls: number;
}

/** True if the page is cross-origin isolated, and outside of pages. */
export function canShareMemory(): boolean {
    return typeof SharedArrayBuffer !== "undefined" && (!("crossOriginIsolated" in globalThis) || crossOriginIsolated);
}

/** `wanted` or the number of cores, at most MAX_THREADS. */
export function threadCount(wanted: number | null): number {
    const processors = (globalThis.navigator as Navigator | undefined)?.hardwareConcurrency ?? 1;
    return Math.floor(Math.min(MAX_THREADS, wanted ?? processors));
}

/** Null: it cannot be allocated. */
export function sharedMemory(): WebAssembly.Memory | null {
    for (const maximum of MAX_PAGES) {
        try {
            return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum, shared: true });
        } catch {
            // try a smaller maximum
        }
    }
    return null;
}

/** The thread pool of one engine. */
export class Threads {
    /** Threads per session, including the engine's own. */
    readonly count: number;
    readonly #make: () => WorkerLike;
    readonly #module: WebAssembly.Module;
    readonly #exports: Exports;
    readonly #memory: WebAssembly.Memory;
    readonly #workers: WorkerLike[] = [];
    #refused = false;

    constructor(count: number, make: () => WorkerLike, module: WebAssembly.Module, exports: Exports, memory: WebAssembly.Memory) {
        this.count = count;
        this.#make = make;
        this.#module = module;
        this.#exports = exports;
        this.#memory = memory;
    }

    /** Threads that no session uses. */
    get free(): number {
        return this.#exports.threads_free();
    }

    /** Starts threads for another session and returns how many are free, which may be fewer than `count` - 1. A session
     * keeps its threads until it is freed. */
    async reserve(): Promise<number> {
        const missing = this.#refused ? 0 : this.count - 1 - this.free;
        const started = await Promise.all(Array.from({ length: Math.max(0, missing) }, () => this.#start()));
        this.#refused ||= started.includes(false);
        this.#exports.threads_use(Math.min(this.count, this.free + 1));
        return this.free;
    }

    #start(): Promise<boolean> {
        const thread = this.#exports.thread_new();
        if (thread === 0) {
            return Promise.resolve(false);
        }
        return new Promise((resolve) => {
            let worker: WorkerLike;
            const finish = (ok: boolean): void => {
                clearTimeout(timer);
                if (ok) {
                    this.#exports.thread_ready(thread);
                    this.#workers.push(worker);
                } else {
                    worker?.terminate();
                }
                resolve(ok);
            };
            const timer = setTimeout(() => finish(false), START_TIMEOUT_MS);
            try {
                worker = this.#make();
            } catch {
                finish(false);
                return;
            }
            worker.addEventListener("message", () => finish(true));
            worker.addEventListener("error", (event) => {
                event.preventDefault();
                finish(false);
            });
            const start: ThreadStart = {
                module: this.#module,
                memory: this.#memory,
                thread,
                stack: this.#exports.thread_stack(thread),
                tls: this.#exports.thread_tls(thread),
            };
            worker.postMessage(start, []);
        });
    }

    close(): void {
        this.#workers.forEach((worker) => worker.terminate());
    }
}

/** Runs in a worker that is a thread. */
export function serveThread(scope: WorkerScope): void {
    scope.addEventListener("message", ({ data }: MessageEvent<ThreadStart>) => {
        const noGpu = new Proxy({}, { get: () => () => 0 }); // threads never call the GPU imports
        const imports = { env: { memory: data.memory }, os: osImports(), gpu: noGpu };
        const { exports } = new WebAssembly.Instance(data.module, imports) as unknown as { exports: Exports };
        exports.__stack_pointer.value = data.stack;
        exports.__wasm_init_tls(data.tls);
        scope.postMessage("ready", []);
        try {
            exports.thread_main(data.thread);
        } catch {
            exports.thread_broke(); // makes the thread that waits for this one trap as well
        }
    });
}
