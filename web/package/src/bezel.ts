/// <reference lib="esnext.disposable" preserve="true" />
/** Gemma 4 in a web page: load a model, chat with it.
 *
 *   const model = await Bezel.load(file, { onProgress });
 *   const stream = model.chat.completions.create({ messages, stream: true });
 *   for await (const chunk of await stream) { ... }
 *   model.close();
 */
import type { Capabilities } from "./capabilities.js";
import type { ChatChunk, ChatCompletion, ChatRequest, StreamRequest, WholeRequest } from "./chat_types.js";
import type { DownloadedModel, DownloadProgress } from "./download.js";
import type { EmbeddingRequest, EmbeddingResponse } from "./embeddings.js";
import { BezelError } from "./errors.js";
import type { Inspection } from "./inspect.js";
import { extractMedia } from "./request_media.js";
import { localFetch, type LocalFetch } from "./local_fetch.js";
import type { LoraInfo } from "./lora.js";
import type { DeviceChoice, LoraNumber, ModelInfo, Progress } from "./methods.js";
import type { WasmLocation } from "./module.js";
import type { StoredModel } from "./opfs.js";
import type { Canvas, EncoderStats, Finish, GenerateOptions, JobControl, PrefillOptions, SessionOptions, SessionStats, Token } from "./options.js";
import { checkRequest } from "./request_check.js";
import { LocalCaller, WorkerCaller, type Caller, type WorkerLike } from "./rpc.js";
import { runTools, type ToolRun, type ToolsRequest } from "./run_tools.js";
import { Service } from "./service.js";
import { asList, toPortable, type ModelSource, type PortableSource } from "./sources.js";
import { streamOf } from "./stream.js";
import type { UnfinishedDownload } from "./unfinished.js";
import { nameOfUrl, type Fetch } from "./url_source.js";
import type { GpuEntry } from "./webgpu_names.js";

/** Where the engine runs and what it loads. */
export interface RuntimeOptions {
    /** true: in a worker, so that the page stays responsive; false: in the calling thread; a function: creates the
     * worker, for pages that bundle worker.js themselves. Default: true where Worker exists. */
    worker?: boolean | (() => WorkerLike);
    /** bezel.wasm: URL, bytes or module. Default: the file next to this script. */
    wasm?: string | URL | BufferSource | WebAssembly.Module;
    /** bezel-mt.wasm, likewise; null: no threads. Default: the file next to this script, or null if `wasm` is given. */
    threadedWasm?: string | URL | BufferSource | WebAssembly.Module | null;
    /** Only without a worker: replaces navigator.gpu, as in Node; null: no GPU. */
    gpu?: GpuEntry | null;
    /** Only without a worker: replaces fetch. */
    fetch?: Fetch;
}

export interface LoadOptions extends RuntimeOptions {
    onProgress?: (progress: Progress) => void;
    signal?: AbortSignal;
    /** Tokens of a conversation, capped at the model's limit. Default: that limit, at most 32,768. */
    contextLength?: number;
    /** Default: "auto": the GPU if a usable one is found, else the CPU; model.notice then says why. */
    device?: DeviceChoice;
    /** Per-layer embeddings: on the GPU, or read from the file on demand. Default: "auto", whichever fits. */
    ple?: "resident" | "file" | "auto";
    /** Maximum number of CPU threads; needs shared memory (COOP and COEP). Default: one per core, at most 16. */
    threads?: number;
    /** The mmproj file (vision and audio encoders), if it is separate; same as an additional source. */
    mmproj?: ModelSource;
    /** The file of the model's drafter, a small model that guesses its next tokens: the same answers, sooner. As an additional
     * source, but refused if it is no drafter. */
    drafter?: ModelSource;
    /** Maximum tokens per image, 70 to 1120. Default: the model's own, usually 280. */
    imageTokens?: number;
    /** Further session options. */
    session?: Omit<SessionOptions, "context">;
}

export interface RequestOptions {
    signal?: AbortSignal;
}

export interface ChatOptions extends RequestOptions {
    /** Adapters for this answer; their effects add up. Another list than the last request's computes the whole
     * conversation again. */
    loras?: readonly AppliedLora[];
}

export interface DownloadOptions extends RuntimeOptions {
    /** Name to store it under. Default: the last path segment of the URL. */
    name?: string;
    /** Expected SHA-256 of the whole file, in hexadecimal. Default: the one that the host sends (X-Linked-ETag), if it does. */
    sha256?: string;
    /** Parallel requests. Default: 4. */
    parallel?: number;
    onProgress?: (progress: DownloadProgress) => void;
    signal?: AbortSignal;
}

/** Made absolute here: a worker would resolve a relative URL against its own script. */
function toLocation(wasm: NonNullable<RuntimeOptions["wasm"]>): WasmLocation {
    const absolute = typeof wasm === "string" && "location" in globalThis ? new URL(wasm, location.href) : wasm;
    return absolute instanceof URL ? absolute.href : absolute;
}

async function startCaller(options: RuntimeOptions): Promise<Caller> {
    const { worker = typeof Worker !== "undefined", gpu, fetch } = options;
    const wasm = options.wasm ?? new URL("./bezel.wasm", import.meta.url);
    const { threadedWasm = options.wasm === undefined ? new URL("./bezel-mt.wasm", import.meta.url) : null } = options;
    let caller: Caller;
    if (worker === false) {
        const service = new Service({ gpu, fetch });
        caller = new LocalCaller(service.handlers, () => service.close());
    } else if (gpu !== undefined || fetch !== undefined) {
        throw new BezelError("bad_request", "The options gpu and fetch do not work with a worker; pass worker: false as well.");
    } else {
        try {
            const created = worker === true ? new Worker(new URL("./worker.js", import.meta.url), { type: "module" }) : worker();
            caller = new WorkerCaller(created);
        } catch (reason) {
            const cause = reason instanceof Error ? reason.message : String(reason);
            throw new BezelError("network", `The worker could not start: ${cause}. Use worker: false.`, { cause: reason });
        }
    }
    try {
        await caller.call("start", { wasm: toLocation(wasm), threaded: threadedWasm && toLocation(threadedWasm) });
    } catch (reason) {
        caller.close();
        throw reason;
    }
    return caller;
}

interface EngineSources {
    sources: (ModelSource | PortableSource)[];
    transfer: Transferable[];
    /** Closes the ports of sources that are read on this side. */
    close: () => void;
}

/** Sources in the form that the engine's thread needs: unchanged, or portable through postMessage. */
function toEngineSources(sources: ModelSource | ModelSource[], options: RuntimeOptions): EngineSources {
    const list = asList(sources);
    if ((options.worker ?? typeof Worker !== "undefined") === false) {
        return { sources: list, transfer: [], close: () => undefined };
    }
    const portable = list.map(toPortable);
    return {
        sources: portable.map(({ source }) => source),
        transfer: portable.flatMap(({ transfer }) => transfer),
        close: () => portable.forEach(({ close }) => close()),
    };
}

/** Runs one call on a caller of its own, closed afterwards. */
async function withCaller<T>(options: RuntimeOptions, act: (caller: Caller) => Promise<T>): Promise<T> {
    const caller = await startCaller(options);
    try {
        return await act(caller);
    } finally {
        caller.close();
    }
}

// ---- adapters -------------------------------------------------------------------------------------

/** A LoRA adapter of a model, from `BezelModel.loadLora`. */
export class BezelLora {
    readonly #caller: Caller;
    readonly info: LoraInfo;
    readonly #number: number;

    constructor(caller: Caller, number: number, info: LoraInfo) {
        this.#caller = caller;
        this.#number = number;
        this.info = info;
    }

    /** For the engine that `caller` calls, whose numbers mean nothing to another one. */
    numberFor(caller: Caller): number {
        if (caller !== this.#caller) {
            throw new BezelError("bad_request", "This adapter belongs to another model; load it with loadLora of this one.");
        }
        return this.#number;
    }

    /** Sessions that use it keep it. */
    free(): Promise<void> {
        return this.#caller.call("loraFree", { lora: this.#number });
    }
}

/** An adapter, alone for its full strength. */
export type AppliedLora = BezelLora | { lora: BezelLora; scale?: number };

function toNumbers(loras: readonly AppliedLora[], caller: Caller): LoraNumber[] {
    return loras.map((use) => {
        const { lora, scale = 1 } = use instanceof BezelLora ? { lora: use } : use;
        return { lora: lora.numberFor(caller), scale };
    });
}

// ---- chat -----------------------------------------------------------------------------------------

/** Same interface as in the npm package `openai`. */
export class Completions {
    readonly #caller: Caller;

    constructor(caller: Caller) {
        this.#caller = caller;
    }

    /** Requests are answered one at a time, in order. A request that continues the previous conversation computes only
     * its new tokens. Leaving the loop over a stream stops the answer. */
    create(request: StreamRequest, options?: ChatOptions): Promise<AsyncIterableIterator<ChatChunk>>;
    create(request: WholeRequest, options?: ChatOptions): Promise<ChatCompletion>;
    create(request: ChatRequest, options?: ChatOptions): Promise<AsyncIterableIterator<ChatChunk> | ChatCompletion>;
    async create(request: ChatRequest, options: ChatOptions = {}): Promise<AsyncIterableIterator<ChatChunk> | ChatCompletion> {
        checkRequest(request);
        const loras = toNumbers(options.loras ?? [], this.#caller);
        if (!request.stream) {
            const { transfer, ...argument } = await extractMedia(request, options.signal);
            return this.#caller.call("chatWhole", { ...argument, loras }, { signal: options.signal, transfer });
        }
        const stream = streamOf<ChatChunk>(options.signal, async (signal, onEvent) => {
            const { transfer, ...argument } = await extractMedia(request, signal);
            return this.#caller.call("chat", { ...argument, loras }, { signal, onEvent, transfer });
        });
        await stream.started; // a refused request rejects here, as with a server
        return stream;
    }

    /** Answers, runs the functions that the model calls, and goes on with their results until it calls none. */
    runTools(request: ToolsRequest, options: ChatOptions = {}): Promise<ToolRun> {
        return runTools((whole) => this.create(whole, options), request, options.signal);
    }
}

/** Vectors of texts, with a model of embeddings; the same interface as in the npm package `openai`. */
export class Embeddings {
    readonly #caller: Caller;

    constructor(caller: Caller) {
        this.#caller = caller;
    }

    /** Each vector has length 1. Also taken: `task` and `title`, which put the model's words before every text, and
     * `truncate`. */
    create(request: EmbeddingRequest, options: RequestOptions = {}): Promise<EmbeddingResponse> {
        return this.#caller.call("embed", { request }, { signal: options.signal });
    }
}

// ---- tokens ---------------------------------------------------------------------------------------

/** One token sequence over the model: prefill, then generate. */
export class BezelSession {
    readonly #caller: Caller;
    readonly #id: number;
    /** Why the last answer ended. */
    finish: Finish = "none";

    constructor(caller: Caller, id: number) {
        this.#caller = caller;
        this.#id = id;
    }

    /** Replaces all adapters. If they change, the session forgets its tokens. */
    async setLoras(loras: readonly AppliedLora[]): Promise<void> {
        return this.#caller.call("sessionLoras", { session: this.#id, loras: toNumbers(loras, this.#caller) });
    }

    /** Makes the session hold exactly these tokens. The common prefix with what it already holds is not computed
     * again. */
    prefill(tokens: ArrayLike<number>, options: Omit<PrefillOptions, "onReload"> = {}): Promise<SessionStats> {
        const { snapshotAt = 0, onLogits, onProgress, signal } = options;
        const argument = { session: this.#id, tokens: Int32Array.from(tokens), snapshotAt, logits: onLogits !== undefined };
        return this.#caller.call("sessionPrefill", argument, {
            signal,
            onEvent: (event) => {
                if ("logits" in event) {
                    onLogits?.(event.logits, event.position, event.rows);
                } else {
                    onProgress?.(event.done, event.total);
                }
            },
        });
    }

    /** Continues after the tokens held; leaving the loop stops. `onCanvas`: the steps of a diffusion model. */
    generate(options: GenerateOptions & Pick<JobControl, "onCanvas"> = {}, signal?: AbortSignal): AsyncIterableIterator<Token> {
        const { onCanvas, ...settings } = options;
        this.finish = "none";
        return streamOf<Token>(signal, async (stop, onToken) => {
            const onEvent = (event: Token | { canvas: Canvas }): void => ("canvas" in event ? onCanvas?.(event.canvas) : onToken(event));
            const { finish } = await this.#caller.call("sessionGenerate", { session: this.#id, options: settings }, { signal: stop, onEvent });
            this.finish = finish;
        });
    }

    /** Logits after the last token held, [vocabulary]; null before the first prefill. */
    logits(): Promise<Float32Array | null> {
        return this.#caller.call("sessionLogits", { session: this.#id });
    }

    stats(): Promise<SessionStats> {
        return this.#caller.call("sessionStats", { session: this.#id });
    }

    free(): Promise<void> {
        return this.#caller.call("sessionFree", { session: this.#id });
    }
}

// ---- models ---------------------------------------------------------------------------------------

export class BezelModel {
    readonly #caller: Caller;
    readonly info: ModelInfo;
    readonly chat: { completions: Completions };
    readonly embeddings: Embeddings;
    /** In the place of `fetch`: lets clients of OpenAI's and Ollama's APIs talk to this model, without a network. */
    readonly fetch: LocalFetch;
    readonly #runtime: RuntimeOptions;
    readonly #closeSources: () => void;

    constructor(caller: Caller, info: ModelInfo, runtime: RuntimeOptions, closeSources: () => void) {
        this.#caller = caller;
        this.#runtime = runtime;
        this.#closeSources = closeSources;
        this.info = info;
        this.chat = { completions: new Completions(caller) };
        this.embeddings = new Embeddings(caller);
        this.fetch = localFetch(this);
    }

    get name(): string {
        return this.info.name;
    }

    /** The device it runs on. */
    get device(): ModelInfo["device"] {
        return this.info.device;
    }

    /** A sentence to show if "auto" could not use the GPU; else null. */
    get notice(): string | null {
        return this.info.notice;
    }

    get contextLength(): number {
        return this.info.contextLength;
    }

    /** `specials`: parse control tokens in the text; never use it for untrusted text. */
    tokenize(text: string, options: { specials?: boolean; bos?: boolean } = {}): Promise<Int32Array> {
        return this.#caller.call("tokenize", { text, specials: options.specials ?? false, bos: options.bos ?? false });
    }

    detokenize(tokens: ArrayLike<number>, options: { showControl?: boolean } = {}): Promise<string> {
        return this.#caller.call("detokenize", { tokens: Int32Array.from(tokens), showControl: options.showControl ?? false });
    }

    /** How many images and sounds were encoded, and how many came from the cache. */
    mediaStats(): Promise<EncoderStats> {
        return this.#caller.call("mediaStats", null);
    }

    /** Reads a LoRA adapter, a GGUF file made for this model. It changes nothing until a request or a session uses it. */
    async loadLora(source: ModelSource, options: RequestOptions = {}): Promise<BezelLora> {
        const { sources, transfer, close } = toEngineSources(source, this.#runtime);
        try {
            const [file] = sources as [ModelSource | PortableSource];
            const { lora, info } = await this.#caller.call("loraLoad", { source: file }, { signal: options.signal, transfer });
            return new BezelLora(this.#caller, lora, info);
        } finally {
            close();
        }
    }

    async newSession(options: SessionOptions = {}): Promise<BezelSession> {
        return new BezelSession(this.#caller, await this.#caller.call("sessionNew", { options }));
    }

    /** Frees everything. Calls in flight reject with "aborted". */
    close(): void {
        this.#caller.close();
        this.#closeSources();
    }

    [Symbol.asyncDispose](): Promise<void> {
        this.close();
        return Promise.resolve();
    }
}

export const Bezel = {
    /** Several sources: the parts of a split model in any order, its mmproj file and its drafter. */
    async load(source: ModelSource | ModelSource[], options: LoadOptions = {}): Promise<BezelModel> {
        const { onProgress, signal, contextLength, device = "auto", ple = "auto", threads = null, imageTokens = null, mmproj, drafter } = options;
        const caller = await startCaller(options);
        const { sources, transfer, close } = toEngineSources([...asList(source), ...[mmproj, drafter].filter((one) => one !== undefined)], options);
        try {
            const session: SessionOptions = { ...options.session, ...(contextLength !== undefined && { context: contextLength }) };
            const info = await caller.call("load", { sources, device, ple, session, threads, imageTokens, drafter: drafter !== undefined }, { signal, onEvent: onProgress, transfer });
            return new BezelModel(caller, info, options, close);
        } catch (reason) {
            caller.close();
            close();
            throw reason;
        }
    },

    capabilities(options: RuntimeOptions = {}): Promise<Capabilities> {
        return withCaller({ worker: false, ...options }, (caller) => caller.call("capabilities", null));
    },

    /** Reads the header only. */
    inspect(source: ModelSource | ModelSource[], options: RuntimeOptions & { signal?: AbortSignal } = {}): Promise<Inspection> {
        return withCaller(options, (caller) => {
            const { sources, transfer, close } = toEngineSources(source, options);
            return caller.call("inspect", { sources }, { signal: options.signal, transfer }).finally(close);
        });
    },

    /** Stores a model in the browser; calling it again resumes an interrupted download. Load it as opfs:NAME. */
    download(url: string | URL, options: DownloadOptions = {}): Promise<DownloadedModel> {
        const { sha256 = null, parallel = 4, onProgress, signal } = options;
        const absolute = "location" in globalThis ? new URL(url, location.href).href : String(url);
        const name = options.name ?? nameOfUrl(absolute);
        void (globalThis.navigator as Navigator | undefined)?.storage?.persist?.().catch(() => false); // best effort: without it the browser may evict the file
        return withCaller(options, (caller) => caller.call("download", { url: absolute, name, sha256, parallel }, { signal, onEvent: onProgress }));
    },

    /** Downloads that were begun and not completed: `download` resumes them, `remove` deletes them. */
    unfinished(): Promise<UnfinishedDownload[]> {
        return withCaller({ worker: false }, (caller) => caller.call("unfinished", null));
    },

    /** Completely downloaded models. */
    models(): Promise<StoredModel[]> {
        return withCaller({ worker: false }, (caller) => caller.call("models", null));
    },

    /** Removes a stored model, complete or not. */
    remove(name: string): Promise<void> {
        return withCaller({ worker: false }, (caller) => caller.call("remove", { name }));
    },
} as const;
