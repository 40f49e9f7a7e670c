/** Implements the methods on the engine's side: one model, its sessions, one job at a time. The same in a worker and
 * on the page. */
import { defaultGpu, findAdapter, findCapabilities } from "./capabilities.js";
import { answerChat, Collector } from "./chat.js";
import type { ChatChunk, ChatRequest } from "./chat_types.js";
import { download } from "./download.js";
import type { Embedder } from "./embedder.js";
import { embeddingResponse, readEmbeddingRequest, type EmbeddingRequest, type EmbeddingResponse } from "./embeddings.js";
import { Engine } from "./engine.js";
import { abortedBy, BezelError } from "./errors.js";
import type { Inspection } from "./inspect.js";
import { Lora, type LoraUse } from "./lora.js";
import { MediaEncoder } from "./media_encoder.js";
import type { DeviceChoice, LoadRequest, LoraNumber, ModelInfo, Progress } from "./methods.js";
import type { Model } from "./model.js";
import { compileModule, type WasmLocation } from "./module.js";
import { removeStored, storedModels } from "./opfs.js";
import type { Canvas, SessionOptions } from "./options.js";
import { closeMedia, type PortableMedia } from "./request_media.js";
import { withTransfer, type Handlers, type WorkerLike } from "./rpc.js";
import type { Session } from "./session.js";
import type { Source } from "./source.js";
import { closeSource, openSource } from "./sources.js";
import { canShareMemory, sharedMemory, threadCount } from "./threads.js";
import { unfinishedDownloads } from "./unfinished.js";
import type { Fetch } from "./url_source.js";

/** On the CPU all weights are in the module's memory, which is limited to 4 GiB. */
const MAX_CPU_BYTES = 3.5e9;

export interface ServiceOptions {
    gpu?: GPU | null | undefined;
    fetch?: Fetch | undefined;
    /** Creates a worker that runs serveThread. Without it, a single thread computes. */
    makeThread?: () => WorkerLike;
}

interface Choice {
    device: ModelInfo["device"];
    /** Why "auto" did not choose the GPU. */
    notice: string | null;
}

interface Loaded {
    engine: Engine;
    model: Model;
    info: ModelInfo;
    sources: Source[];
    /** Session 0 answers chat requests. */
    sessions: Map<number, Session>;
    encoder: MediaEncoder;
    loras: Map<number, Lora>;
    /** Of a model of embeddings, which has no sessions. */
    embedder: Embedder | null;
}

function gigabytes(bytes: number): string {
    return `${(bytes / 1e9).toFixed(1)} GB`;
}

export class Service {
    readonly #gpu: GPU | null;
    readonly #fetch: Fetch | undefined;
    readonly #makeThread: (() => WorkerLike) | null;
    #wasm: WasmLocation | null = null;
    #threadedWasm: WasmLocation | null = null;
    #engine: Promise<Engine> | null = null;
    #loaded: Loaded | null = null;
    #loading = false;
    #nextSession = 1;
    #nextLora = 1;
    /** Aborts requests of URL sources. */
    #sourceAbort = new AbortController();
    /** Resolves when all queued operations have ended. */
    #queueEnd: Promise<unknown> = Promise.resolve();

    constructor(options: ServiceOptions = {}) {
        this.#gpu = options.gpu === undefined ? defaultGpu() : options.gpu;
        this.#fetch = options.fetch;
        this.#makeThread = options.makeThread ?? null;
    }

    #startEngine(): Promise<Engine> {
        const wasm = this.#wasm;
        if (wasm === null) {
            throw new BezelError("bad_request", "The engine does not know where bezel.wasm is.");
        }
        this.#engine ??= compileModule(wasm)
            .then((module) => Engine.load({ wasm: module, gpu: this.#gpu }))
            .catch((reason: unknown) => {
                this.#engine = null; // the next call may retry
                throw reason;
            });
        return this.#engine;
    }

    /** The engine for the CPU, with threads if memory can be shared. */
    async #startForCpu(wanted: number | null): Promise<Engine> {
        const [make, wasm] = [this.#makeThread, this.#threadedWasm];
        const count = threadCount(wanted);
        const memory = make && wasm !== null && count > 1 && canShareMemory() ? sharedMemory() : null;
        if (!make || wasm === null || !memory) {
            return this.#startEngine();
        }
        return Engine.load({ wasm: await compileModule(wasm), gpu: null, threads: { count, memory, make } });
    }

    #current(): Loaded {
        if (!this.#loaded) {
            throw new BezelError("bad_request", "No model is loaded.");
        }
        return this.#loaded;
    }

    #session(id: number): Session {
        const session = this.#current().sessions.get(id);
        if (!session) {
            throw new BezelError("bad_request", "This session has been freed.");
        }
        return session;
    }

    /** Runs operations one after the other, in call order. */
    async #enqueue<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
        const before = this.#queueEnd;
        let release = (): void => undefined;
        this.#queueEnd = new Promise<void>((resolve) => (release = resolve)).then(() => before);
        try {
            await new Promise<void>((resolve, reject) => {
                const stop = (): void => reject(abortedBy(signal));
                signal.addEventListener("abort", stop, { once: true });
                void before.then(() => {
                    signal.removeEventListener("abort", stop);
                    resolve();
                });
                if (signal.aborted) {
                    stop();
                }
            });
            return await act();
        } finally {
            release();
        }
    }

    // ---- loading ------------------------------------------------------------------------------

    async #choose(choice: DeviceChoice): Promise<Choice> {
        if (choice !== "auto") {
            return { device: choice, notice: null };
        }
        const onCpu = "so the model runs on the CPU, many times slower than on a GPU";
        if (!this.#gpu) {
            const insecure = "isSecureContext" in globalThis && !globalThis.isSecureContext;
            const why = insecure ? "WebGPU is not available because this page is not served over https" : "WebGPU is not available";
            return { device: "cpu", notice: `${why}, ${onCpu}.` };
        }
        const adapter = await findAdapter(this.#gpu);
        if (!adapter) {
            return { device: "cpu", notice: `WebGPU found no usable GPU, ${onCpu}.` };
        }
        return adapter.software
            ? { device: "cpu", notice: `WebGPU runs on a software adapter (${adapter.name}), ${onCpu}.` }
            : { device: "gpu", notice: null };
    }

    async #load(request: LoadRequest, emit: (p: Progress) => void, signal: AbortSignal): Promise<ModelInfo> {
        const { sources: wanted, device, session, threads, imageTokens } = request;
        if (this.#loaded || this.#loading) {
            throw new BezelError("bad_request", "A model is already loaded; close it before loading another.");
        }
        this.#loading = true;
        // `signal` cancels loading only: files are read again later if the GPU is lost.
        const abort = (): void => this.#sourceAbort.abort(signal.reason);
        signal.addEventListener("abort", abort);
        let model: Model | null = null;
        let chat: Session | null = null;
        let embedder: Embedder | null = null;
        let engine: Engine | null = null;
        try {
            emit({ stage: "engine", done: 0, total: 1 });
            let choice = await this.#choose(device);
            engine = choice.device === "cpu" ? await this.#startForCpu(threads) : await this.#startEngine();
            emit({ stage: "engine", done: 1, total: 1 });
            emit({ stage: "header", done: 0, total: 1 });
            const options = { fetch: this.#fetch, signal: this.#sourceAbort.signal };
            const sources = await Promise.all(wanted.map((source) => openSource(source, options)));
            const bytes = sources.reduce((sum, { size }) => sum + size, 0);
            engine.gpu.onCompile = (done, total): void => emit({ stage: "compile", done, total });
            try {
                model = await this.#open(engine, sources, bytes, choice, request, emit, signal);
            } catch (reason) {
                const unusable = reason instanceof BezelError && (reason.code === "no_webgpu" || reason.code === "no_adapter");
                if (device !== "auto" || !unusable) {
                    throw reason;
                }
                const notice = `The GPU cannot be used (${reason.message.replace(/\.$/, "")}), so the model runs on the CPU.`;
                choice = { device: "cpu", notice };
                engine = await this.#startForCpu(threads);
                model = await this.#open(engine, sources, bytes, choice, request, emit, signal);
            }
            emit({ stage: "session", done: 0, total: 1 });
            const context = Math.min(session.context ?? 0, model.context); // 0: the engine's default
            if (model.embedding > 0) {
                embedder = await model.newEmbedder({ exact: session.exact ?? false });
            } else {
                chat = await model.newSession({ ...session, context });
            }
            emit({ stage: "session", done: 1, total: 1 });
            if (chat && choice.device !== "cpu") {
                // Prefilling the BOS token compiles the kernels now instead of with the first request.
                await chat.prefill(model.tokenize("", { bos: true }), { signal });
            }
            const info: ModelInfo = {
                name: model.name.replace(/(-00001-of-\d{5})?\.gguf$/i, ""),
                vocabulary: model.vocab,
                contextLength: chat?.context ?? embedder?.longest ?? 0,
                trainedContext: model.context,
                bytes,
                device: choice.device,
                deviceName: choice.device === "cpu" ? "CPU" : (engine.gpu.devices[0]?.name ?? "GPU"),
                threads: chat?.threads ?? embedder?.threads ?? 1,
                vision: model.takes("image"),
                audio: model.takes("audio"),
                video: model.takes("video"),
                diffusion: model.diffusion,
                drafter: model.drafts,
                embedding: model.embedding,
                notice: this.#noticeOf(choice, engine) ?? embedder?.notice ?? null,
            };
            const sessions = new Map(chat ? [[0, chat] as const] : []);
            this.#loaded = { engine, model, info, sources, sessions, encoder: new MediaEncoder(model, imageTokens), loras: new Map(), embedder };
            return info;
        } catch (reason) {
            this.#sourceAbort.abort(reason); // what still arrives is not needed
            this.#sourceAbort = new AbortController();
            chat?.free();
            embedder?.free();
            model?.free();
            engine?.threads?.close();
            wanted.forEach((source) => closeSource(source as Source));
            throw reason;
        } finally {
            this.#loading = false;
            signal.removeEventListener("abort", abort);
            if (engine) {
                engine.gpu.onCompile = null;
            }
        }
    }

    /** The notice, with a hint on how to get more threads. */
    #noticeOf({ notice }: Choice, engine: Engine): string | null {
        const singleThreaded = notice !== null && !engine.threads && this.#makeThread !== null && !canShareMemory();
        return singleThreaded ? `${notice} It uses a single core: the page is not cross-origin isolated (COOP and COEP headers).` : notice;
    }

    async #open(engine: Engine, sources: Source[], bytes: number, choice: Choice, { ple, drafter }: LoadRequest,
        emit: (p: Progress) => void, signal: AbortSignal): Promise<Model> {
        if (choice.device === "cpu" && bytes > MAX_CPU_BYTES) {
            throw new BezelError(
                "out_of_memory",
                `A model of ${gigabytes(bytes)} is too large for the CPU, whose limit is ${gigabytes(MAX_CPU_BYTES)}. ` +
                    (choice.notice ?? "Use a GPU, or a smaller model."),
            );
        }
        let first = true;
        return engine.openModel(sources, {
            device: choice.device,
            ple,
            ...(drafter && { drafter: sources.at(-1)?.name ?? "" }),
            signal,
            onProgress: (done, total) => {
                if (first) {
                    first = false;
                    emit({ stage: "header", done: 1, total: 1 });
                }
                emit({ stage: "weights", done, total });
            },
        });
    }

    /** Frees the model when the queued operations have ended. */
    close(): void {
        this.#sourceAbort.abort();
        void this.#queueEnd.then(() => {
            const loaded = this.#loaded;
            this.#loaded = null;
            loaded?.sessions.forEach((session) => session.free());
            loaded?.loras.forEach((lora) => lora.free());
            loaded?.encoder.free();
            loaded?.embedder?.free();
            loaded?.model.free();
            loaded?.engine.threads?.close();
        });
    }

    // ---- chat ---------------------------------------------------------------------------------

    /** Adapters by their numbers. */
    #loras(list: LoraNumber[]): LoraUse[] {
        return list.map(({ lora: number, scale }) => {
            const lora = this.#current().loras.get(number);
            if (!lora) {
                throw new BezelError("bad_request", "This adapter has been freed, or belongs to another model.");
            }
            return { lora, scale };
        });
    }

    async #chat(request: ChatRequest, media: PortableMedia[], loras: LoraNumber[], signal: AbortSignal, send: (chunk: ChatChunk) => void): Promise<void> {
        try {
            await this.#answer(request, media, loras, signal, send);
        } finally {
            closeMedia(media);
        }
    }

    #answer(request: ChatRequest, media: PortableMedia[], loras: LoraNumber[], signal: AbortSignal, send: (chunk: ChatChunk) => void): Promise<void> {
        const { model, encoder, info, embedder } = this.#current();
        if (embedder) {
            throw new BezelError("unsupported_model", "This model computes vectors of texts and writes none; use embeddings.create, or load a chat model.");
        }
        const context = { model, encoder, session: this.#session(0), name: info.name };
        return this.#enqueue(signal, () => {
            context.session.setLoras(this.#loras(loras));
            return answerChat(context, request, media, signal, send);
        });
    }

    async #embed(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingResponse> {
        const { embedder, info } = this.#current();
        if (!embedder) {
            throw new BezelError("unsupported_model", "This model writes text and computes no vectors; load an EmbeddingGemma model for that.");
        }
        const { inputs, options, base64 } = readEmbeddingRequest(request);
        return this.#enqueue(signal, async () => embeddingResponse(await embedder.embed(inputs, options, signal), info.name, base64));
    }

    // ---- the methods ----------------------------------------------------------------------------

    readonly handlers: Handlers = {
        start: ({ wasm, threaded }) => {
            this.#wasm = wasm;
            this.#threadedWasm = threaded;
            return Promise.resolve();
        },
        capabilities: () => findCapabilities(this.#gpu),
        inspect: async ({ sources }, _, signal) => {
            const engine = await this.#startEngine();
            const opened = await Promise.all(sources.map((source) => openSource(source, { fetch: this.#fetch, signal, partly: true })));
            const adapter = await findAdapter(this.#gpu);
            const limits = { buffer: adapter?.maxBufferSize ?? 0, binding: adapter?.maxStorageBufferBindingSize ?? 0 };
            try {
                return JSON.parse(await engine.inspect(opened, limits, signal)) as Inspection;
            } finally {
                opened.filter((source, i) => source !== sources[i]).forEach((source) => source.close?.()); // the caller's own stay open
            }
        },
        load: (request, emit, signal) => this.#load(request, emit, signal),
        chat: ({ request, media, loras }, emit, signal) => this.#chat(request, media, loras, signal, emit),
        chatWhole: async ({ request, media, loras }, _, signal) => {
            const collector = new Collector();
            await this.#chat(request, media, loras, signal, (chunk) => collector.add(chunk));
            return collector.whole(request);
        },

        embed: ({ request }, _, signal) => this.#embed(request, signal),

        loraLoad: async ({ source }, _, signal) => {
            const opened = await openSource(source, { fetch: this.#fetch, signal });
            try {
                return await this.#enqueue(signal, async () => {
                    const { model, loras } = this.#current();
                    const lora = await Lora.open(model, opened, signal);
                    const number = this.#nextLora++;
                    loras.set(number, lora);
                    return { lora: number, info: lora.info };
                });
            } finally {
                if (opened !== source) { // the caller's own stays open
                    opened.close?.();
                }
            }
        },
        loraFree: ({ lora }, _, signal) =>
            this.#enqueue(signal, () => {
                const { loras } = this.#current();
                loras.get(lora)?.free();
                loras.delete(lora);
                return Promise.resolve();
            }),

        mediaStats: () => Promise.resolve(this.#current().encoder.stats),

        tokenize: ({ text, specials, bos }) => Promise.resolve(this.#current().model.tokenize(text, { specials, bos })),
        detokenize: ({ tokens, showControl }) => Promise.resolve(this.#current().model.textOf(tokens, showControl)),

        sessionNew: async ({ options }: { options: SessionOptions }) => {
            const { model, sessions } = this.#current();
            const id = this.#nextSession++;
            sessions.set(id, await model.newSession(options));
            return id;
        },
        sessionLoras: ({ session, loras }, _, signal) =>
            this.#enqueue(signal, () => {
                this.#session(session).setLoras(this.#loras(loras));
                return Promise.resolve();
            }),
        sessionFree: ({ session }, _, signal) =>
            this.#enqueue(signal, () => {
                this.#session(session).free();
                this.#current().sessions.delete(session);
                return Promise.resolve();
            }),
        sessionPrefill: ({ session, tokens, snapshotAt, logits }, emit, signal) =>
            this.#enqueue(signal, async () => {
                const target = this.#session(session);
                await target.prefill(tokens, {
                    snapshotAt,
                    signal,
                    onProgress: (done, total) => emit({ done, total }),
                    ...(logits && {
                        onLogits: (rows, position, n) => emit(withTransfer({ logits: rows, position, rows: n }, [rows.buffer])),
                    }),
                });
                return target.stats;
            }),
        sessionGenerate: ({ session, options }, emit, signal) =>
            this.#enqueue(signal, async () => {
                const target = this.#session(session);
                const onCanvas = (canvas: Canvas): void => emit({ canvas });
                for await (const token of target.generate(options, { signal, onCanvas })) {
                    emit(token);
                }
                return { finish: target.finish };
            }),
        sessionLogits: ({ session }) => {
            const logits = this.#session(session).logits;
            return Promise.resolve(logits && withTransfer(logits, [logits.buffer]));
        },
        sessionStats: ({ session }) => Promise.resolve(this.#session(session).stats),

        download: (request, onProgress, signal) =>
            download(request, { fetch: this.#fetch, signal, engine: () => this.#startEngine(), onProgress }),
        unfinished: () => unfinishedDownloads(),
        models: () => storedModels(),
        remove: ({ name }) => removeStored(name),
    };
}
