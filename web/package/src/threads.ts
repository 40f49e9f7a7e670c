/** Threads for bezel-mt.wasm: workers that run the same module on the same memory. Each of them sleeps in C
 * (src/base/os_wasm_threads.c) until there is work; all of them are there before C counts on them. */
import type { WorkerLike, WorkerScope } from "./rpc.js";
import { osImports, type Exports } from "./wasm.js";

/** What the module needs to begin with: --initial-memory in web/web.mk. Pages are 64 KiB. */
const FIRST_PAGES = 256;
/** Some browsers do not reserve the whole 4 GiB for memory that is shared. */
const MOST_PAGES = [65536, 32768, 16384];
/** A worker that is not there after so many milliseconds does not come. */
const PATIENCE = 10_000;
/** More do not make memory faster. */
const MOST_THREADS = 16;
/** By this name a worker's script knows what it is for. */
export const THREAD = "bezel-thread";

interface ThreadStart {
    module: WebAssembly.Module;
    memory: WebAssembly.Memory;
    thread: number;
    stack: number;
    tls: number;
}

/** Whether the page is cross-origin isolated, or there is no page. */
export function canShareMemory(): boolean {
    return typeof SharedArrayBuffer !== "undefined" && (!("crossOriginIsolated" in globalThis) || crossOriginIsolated);
}

/** How many to use, where `wanted` need not be said. */
export function threadCount(wanted: number | null): number {
    const processors = (globalThis.navigator as Navigator | undefined)?.hardwareConcurrency ?? 1;
    return Math.floor(Math.min(MOST_THREADS, wanted ?? processors));
}

/** Null: there is no room for it. */
export function sharedMemory(): WebAssembly.Memory | null {
    for (const maximum of MOST_PAGES) {
        try {
            return new WebAssembly.Memory({ initial: FIRST_PAGES, maximum, shared: true });
        } catch {
            // the next one is smaller
        }
    }
    return null;
}

/** The threads of one engine. */
export class Threads {
    /** What a session uses, with the engine's own. */
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

    /** Those that no session has. */
    get free(): number {
        return this.#exports.threads_free();
    }

    /** As many as another session wants, or fewer; tells how many are free then. A session keeps its own until it is freed. */
    async reserve(): Promise<number> {
        const missing = this.#refused ? 0 : this.count - 1 - this.free;
        const begun = await Promise.all(Array.from({ length: Math.max(0, missing) }, () => this.#start()));
        this.#refused ||= begun.includes(false);
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
            const end = (good: boolean): void => {
                clearTimeout(timer);
                if (good) {
                    this.#exports.thread_ready(thread);
                    this.#workers.push(worker);
                } else {
                    worker?.terminate();
                }
                resolve(good);
            };
            const timer = setTimeout(() => end(false), PATIENCE);
            try {
                worker = this.#make();
            } catch {
                end(false);
                return;
            }
            worker.addEventListener("message", () => end(true));
            worker.addEventListener("error", (event) => {
                event.preventDefault();
                end(false);
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

/** The whole life of a worker that is a thread. */
export function serveThread(scope: WorkerScope): void {
    scope.addEventListener("message", ({ data }: MessageEvent<ThreadStart>) => {
        const nothing = new Proxy({}, { get: () => () => 0 }); // threads only compute
        const imports = { env: { memory: data.memory }, os: osImports(), gpu: nothing };
        const { exports } = new WebAssembly.Instance(data.module, imports) as unknown as { exports: Exports };
        exports.__stack_pointer.value = data.stack;
        exports.__wasm_init_tls(data.tls);
        scope.postMessage("ready", []);
        try {
            exports.thread_main(data.thread);
        } catch {
            exports.thread_broke(); // whoever waits for this thread traps as well
        }
    });
}
