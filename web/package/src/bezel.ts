/// <reference lib="esnext.disposable" preserve="true" />
/** Gemma 4 in a page: load a model, chat with it.
 *
 *   const model = await Bezel.load(file, { onProgress });
 *   const stream = model.chat.completions.create({ messages, stream: true });
 *   for await (const chunk of await stream) { ... }
 *   model.close();
 */
import type { Capabilities } from "./capabilities.js";
import type { ChatChunk, ChatCompletion, ChatRequest, StreamRequest, WholeRequest } from "./chat_types.js";
import type { DownloadProgress } from "./download.js";
import { BezelError } from "./errors.js";
import type { Inspection } from "./inspect.js";
import { takeMedia } from "./media.js";
import type { DeviceChoice, ModelFacts, Progress } from "./methods.js";
import type { WasmLocation } from "./module.js";
import type { StoredModel } from "./opfs.js";
import type { Canvas, EncoderStats, Finish, GenerateOptions, JobControl, PrefillOptions, SessionOptions, SessionStats, Token } from "./options.js";
import { LocalCaller, WorkerCaller, type Caller, type WorkerLike } from "./rpc.js";
import { Service } from "./service.js";
import { asList, toPortable, type ModelSource, type PortableSource } from "./sources.js";
import { streamOf } from "./stream.js";
import { nameOfUrl, type Fetch } from "./url_source.js";

/** Where the engine runs. */
export interface PlaceOptions {
    /** In a worker, so that the page stays smooth; false: on the page. Also a function that makes
     * the worker, for those who bundle worker.js themselves. Default: where there are workers. */
    worker?: boolean | (() => WorkerLike);
    /** bezel.wasm: its address, bytes or module, where it does not lie beside this script. */
    wasm?: string | URL | BufferSource | WebAssembly.Module;
    /** bezel-mt.wasm, likewise; null: never use threads. Default: beside this script, or with `wasm` given, none. */
    threadedWasm?: string | URL | BufferSource | WebAssembly.Module | null;
    /** Without a worker: what stands for navigator.gpu, as in Node; null: no GPU. */
    gpu?: GPU | null;
    /** Without a worker: what stands for fetch. */
    fetch?: Fetch;
}

export interface LoadOptions extends PlaceOptions {
    onProgress?: (progress: Progress) => void;
    signal?: AbortSignal;
    /** Tokens of a conversation, as far as the model was made for it. Default: its limit, at most 32,768. */
    contextLength?: number;
    /** Default: "auto", the GPU if there is one that can be used, else the CPU; model.notice says so. */
    device?: DeviceChoice;
    /** Per-layer embeddings on the GPU, or read from the file as they are needed. Default: "auto", what fits. */
    ple?: "resident" | "file" | "auto";
    /** On the CPU, where memory may be shared (COOP and COEP): at most so many. Default: one per processor, at most 16. */
    threads?: number;
    /** The file with the model's eyes and ears, if it is one of its own; the same as one more source. */
    mmproj?: ModelSource;
    /** Tokens of a picture, at most: 70 to 1120. Default: what the model is made for, mostly 280. */
    imageTokens?: number;
    /** What else a session can be told. */
    session?: Omit<SessionOptions, "context">;
}

export interface RequestOptions {
    signal?: AbortSignal;
}

export interface DownloadOptions extends PlaceOptions {
    /** Under which it is stored. Default: the last part of the address. */
    name?: string;
    /** Of the whole file, in hexadecimal. */
    sha256?: string;
    /** Requests at a time. Default: 4. */
    parallel?: number;
    onProgress?: (progress: DownloadProgress) => void;
    signal?: AbortSignal;
}

/** A worker would take a relative address for its own. */
function located(wasm: NonNullable<PlaceOptions["wasm"]>): WasmLocation {
    const absolute = typeof wasm === "string" && "location" in globalThis ? new URL(wasm, location.href) : wasm;
    return absolute instanceof URL ? absolute.href : absolute;
}

async function place(options: PlaceOptions): Promise<Caller> {
    const { worker = typeof Worker !== "undefined", gpu, fetch } = options;
    const wasm = options.wasm ?? new URL("./bezel.wasm", import.meta.url);
    const { threadedWasm = options.wasm === undefined ? new URL("./bezel-mt.wasm", import.meta.url) : null } = options;
    let caller: Caller;
    if (worker === false) {
        const service = new Service({ gpu, fetch });
        caller = new LocalCaller(service.handlers, () => service.close());
    } else if (gpu !== undefined || fetch !== undefined) {
        throw new BezelError("bad_request", "The options gpu and fetch cannot follow into a worker; use worker: false with them.");
    } else {
        try {
            const made = worker === true ? new Worker(new URL("./worker.js", import.meta.url), { type: "module" }) : worker();
            caller = new WorkerCaller(made);
        } catch (reason) {
            const cause = reason instanceof Error ? reason.message : String(reason);
            throw new BezelError("network", `The worker could not start: ${cause}. Use worker: false.`, { cause: reason });
        }
    }
    try {
        await caller.call("start", { wasm: located(wasm), threaded: threadedWasm && located(threadedWasm) });
    } catch (reason) {
        caller.close();
        throw reason;
    }
    return caller;
}

interface Carried {
    sources: (ModelSource | PortableSource)[];
    transfer: Transferable[];
    /** Nothing will be read any more. */
    end: () => void;
}

/** Sources as the engine's side needs them. */
function carry(sources: ModelSource | ModelSource[], options: PlaceOptions): Carried {
    const list = asList(sources);
    if ((options.worker ?? typeof Worker !== "undefined") === false) {
        return { sources: list, transfer: [], end: () => undefined };
    }
    const portable = list.map(toPortable);
    return {
        sources: portable.map(({ source }) => source),
        transfer: portable.flatMap(({ transfer }) => transfer),
        end: () => portable.forEach(({ end }) => end()),
    };
}

/** With a place of its own, which ends with the call. */
async function once<T>(options: PlaceOptions, act: (caller: Caller) => Promise<T>): Promise<T> {
    const caller = await place(options);
    try {
        return await act(caller);
    } finally {
        caller.close();
    }
}

// ---- chat -----------------------------------------------------------------------------------------

/** As the package `openai` has it. */
export class Completions {
    readonly #caller: Caller;

    constructor(caller: Caller) {
        this.#caller = caller;
    }

    /** One at a time, in the order of asking. A request whose messages continue those before it computes
     * only what is new. Leaving the loop over a stream stops the answer. */
    create(request: StreamRequest, options?: RequestOptions): Promise<AsyncIterableIterator<ChatChunk>>;
    create(request: WholeRequest, options?: RequestOptions): Promise<ChatCompletion>;
    create(request: ChatRequest, options?: RequestOptions): Promise<AsyncIterableIterator<ChatChunk> | ChatCompletion>;
    async create(request: ChatRequest, options: RequestOptions = {}): Promise<AsyncIterableIterator<ChatChunk> | ChatCompletion> {
        if (!request.stream) {
            const { transfer, ...argument } = await takeMedia(request, options.signal);
            return this.#caller.call("chatWhole", argument, { signal: options.signal, transfer });
        }
        const stream = streamOf<ChatChunk>(options.signal, async (signal, onEvent) => {
            const { transfer, ...argument } = await takeMedia(request, signal);
            return this.#caller.call("chat", argument, { signal, onEvent, transfer });
        });
        await stream.begun; // a request that is refused is refused here, as by a server
        return stream;
    }
}

// ---- tokens ---------------------------------------------------------------------------------------

/** One timeline of tokens over the model: prefill, then generate. */
export class BezelSession {
    readonly #caller: Caller;
    readonly #id: number;
    /** Why the last answer ended. */
    finish: Finish = "none";

    constructor(caller: Caller, id: number) {
        this.#caller = caller;
        this.#id = id;
    }

    /** Makes the session hold exactly these tokens. What it holds already, from the beginning on, is
     * not computed again, so fewer or other tokens than before go back as far as needed. */
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

    /** Continues after the tokens held; leaving the loop stops. `onCanvas`: a diffusion model's steps. */
    generate(options: GenerateOptions & Pick<JobControl, "onCanvas"> = {}, signal?: AbortSignal): AsyncIterableIterator<Token> {
        const { onCanvas, ...wishes } = options;
        this.finish = "none";
        return streamOf<Token>(signal, async (stop, onToken) => {
            const onEvent = (event: Token | { canvas: Canvas }): void => ("canvas" in event ? onCanvas?.(event.canvas) : onToken(event));
            const { finish } = await this.#caller.call("sessionGenerate", { session: this.#id, options: wishes }, { signal: stop, onEvent });
            this.finish = finish;
        });
    }

    /** After the last token held, [vocabulary]; null before the first prefill. */
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
    readonly facts: ModelFacts;
    readonly chat: { completions: Completions };

    readonly #end: () => void;

    constructor(caller: Caller, facts: ModelFacts, end: () => void) {
        this.#caller = caller;
        this.#end = end;
        this.facts = facts;
        this.chat = { completions: new Completions(caller) };
    }

    get name(): string {
        return this.facts.name;
    }

    /** Where it runs. */
    get device(): ModelFacts["device"] {
        return this.facts.device;
    }

    /** A sentence to show, if "auto" could not take the GPU; else null. */
    get notice(): string | null {
        return this.facts.notice;
    }

    get contextLength(): number {
        return this.facts.contextLength;
    }

    /** `specials`: texts of control tokens become those tokens; never for text from outside. */
    tokenize(text: string, options: { specials?: boolean; bos?: boolean } = {}): Promise<Int32Array> {
        return this.#caller.call("tokenize", { text, specials: options.specials ?? false, bos: options.bos ?? false });
    }

    detokenize(tokens: ArrayLike<number>, options: { showControl?: boolean } = {}): Promise<string> {
        return this.#caller.call("detokenize", { tokens: Int32Array.from(tokens), showControl: options.showControl ?? false });
    }

    /** How many pictures and sounds were encoded, and how many were known already. */
    mediaStats(): Promise<EncoderStats> {
        return this.#caller.call("mediaStats", null);
    }

    async newSession(options: SessionOptions = {}): Promise<BezelSession> {
        return new BezelSession(this.#caller, await this.#caller.call("sessionNew", { options }));
    }

    /** Gives everything back. What is under way is rejected with "aborted". */
    close(): void {
        this.#caller.close();
        this.#end();
    }

    [Symbol.asyncDispose](): Promise<void> {
        this.close();
        return Promise.resolve();
    }
}

export const Bezel = {
    /** Several sources: the parts of a split model in any order, and its mmproj file. */
    async load(source: ModelSource | ModelSource[], options: LoadOptions = {}): Promise<BezelModel> {
        const { onProgress, signal, contextLength, device = "auto", ple = "auto", threads = null, imageTokens = null, mmproj } = options;
        const caller = await place(options);
        const { sources, transfer, end } = carry([...asList(source), ...(mmproj === undefined ? [] : [mmproj])], options);
        try {
            const session: SessionOptions = { ...options.session, ...(contextLength !== undefined && { context: contextLength }) };
            const facts = await caller.call("load", { sources, device, ple, session, threads, imageTokens }, { signal, onEvent: onProgress, transfer });
            return new BezelModel(caller, facts, end);
        } catch (reason) {
            caller.close();
            end();
            throw reason;
        }
    },

    capabilities(options: PlaceOptions = {}): Promise<Capabilities> {
        return once({ worker: false, ...options }, (caller) => caller.call("capabilities", null));
    },

    /** From the header alone: nothing else is read. */
    inspect(source: ModelSource | ModelSource[], options: PlaceOptions & { signal?: AbortSignal } = {}): Promise<Inspection> {
        return once(options, (caller) => {
            const { sources, transfer, end } = carry(source, options);
            return caller.call("inspect", { sources }, { signal: options.signal, transfer }).finally(end);
        });
    },

    /** Keeps a model in the browser; the same call goes on with what was interrupted. Load it as opfs:NAME. */
    download(url: string | URL, options: DownloadOptions = {}): Promise<StoredModel> {
        const { sha256 = null, parallel = 4, onProgress, signal } = options;
        const address = "location" in globalThis ? new URL(url, location.href).href : String(url);
        const name = options.name ?? nameOfUrl(address);
        void (globalThis.navigator as Navigator | undefined)?.storage?.persist?.().catch(() => false); // a wish: else it may be evicted
        return once(options, (caller) => caller.call("download", { url: address, name, sha256, parallel }, { signal, onEvent: onProgress }));
    },

    /** The models that are stored, whole. */
    models(): Promise<StoredModel[]> {
        return once({ worker: false }, (caller) => caller.call("models", null));
    },

    /** Removes a stored model, also an unfinished one. */
    remove(name: string): Promise<void> {
        return once({ worker: false }, (caller) => caller.call("remove", { name }));
    },
} as const;
