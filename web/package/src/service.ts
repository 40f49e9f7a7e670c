/** The engine behind the methods: one model, its sessions, one job at a time. Runs in a worker or on
 * the page, and does not know which. */
import { defaultGpu, findAdapter, findCapabilities } from "./capabilities.js";
import { answerChat, Collector } from "./chat.js";
import type { ChatChunk, ChatRequest } from "./chat_types.js";
import { download } from "./download.js";
import { Engine } from "./engine.js";
import { abortedBy, BezelError } from "./errors.js";
import { Eyes } from "./eyes.js";
import type { Inspection } from "./inspect.js";
import type { DeviceChoice, LoadRequest, ModelFacts, Progress } from "./methods.js";
import type { PortableMedia } from "./media.js";
import type { Model } from "./model.js";
import { compileModule, type WasmLocation } from "./module.js";
import { removeStored, storedModels } from "./opfs.js";
import type { Canvas, SessionOptions } from "./options.js";
import { moving, type Handlers, type WorkerLike } from "./rpc.js";
import type { Session } from "./session.js";
import type { Source } from "./source.js";
import { closeSource, openSource } from "./sources.js";
import { canShareMemory, sharedMemory, threadCount } from "./threads.js";
import type { Fetch } from "./url_source.js";

/** On the CPU all weights are in the module's memory, which ends at 4 GiB. */
const CPU_MOST = 3.5e9;

export interface ServiceOptions {
    gpu?: GPU | null | undefined;
    fetch?: Fetch | undefined;
    /** A worker whose script is serveThread; where there is none, one thread computes. */
    makeThread?: () => WorkerLike;
}

interface Choice {
    device: ModelFacts["device"];
    /** Why "auto" did not take the GPU. */
    notice: string | null;
}

interface Loaded {
    engine: Engine;
    model: Model;
    facts: ModelFacts;
    sources: Source[];
    /** 0 is the one that chats use. */
    sessions: Map<number, Session>;
    eyes: Eyes;
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
    /** Ends reading from addresses. */
    #reading = new AbortController();
    /** The end of what is in line. */
    #last: Promise<unknown> = Promise.resolve();

    constructor(options: ServiceOptions = {}) {
        this.#gpu = options.gpu === undefined ? defaultGpu() : options.gpu;
        this.#fetch = options.fetch;
        this.#makeThread = options.makeThread ?? null;
    }

    #startEngine(): Promise<Engine> {
        const wasm = this.#wasm;
        if (wasm === null) {
            throw new BezelError("bad_request", "The engine was not told where its module is.");
        }
        this.#engine ??= compileModule(wasm)
            .then((module) => Engine.load({ wasm: module, gpu: this.#gpu }))
            .catch((reason: unknown) => {
                this.#engine = null; // the next one may have a better connection
                throw reason;
            });
        return this.#engine;
    }

    /** The engine for a CPU: with threads, if the page may share memory. */
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
            throw new BezelError("bad_request", "This session was freed.");
        }
        return session;
    }

    /** One after the other, in the order of asking. */
    async #inTurn<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
        const before = this.#last;
        let leave = (): void => undefined;
        this.#last = new Promise<void>((resolve) => (leave = resolve)).then(() => before);
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
            leave();
        }
    }

    // ---- loading ------------------------------------------------------------------------------

    async #choose(choice: DeviceChoice): Promise<Choice> {
        if (choice !== "auto") {
            return { device: choice, notice: null };
        }
        const slowly = "so the model runs on the CPU, many times slower than on a GPU";
        if (!this.#gpu) {
            const insecure = "isSecureContext" in globalThis && !globalThis.isSecureContext;
            const why = insecure ? "This page is not served by https, without which there is no WebGPU" : "There is no WebGPU here";
            return { device: "cpu", notice: `${why}, ${slowly}.` };
        }
        const adapter = await findAdapter(this.#gpu);
        if (!adapter) {
            return { device: "cpu", notice: `WebGPU found no GPU that it can use, ${slowly}.` };
        }
        return adapter.software
            ? { device: "cpu", notice: `WebGPU is only simulated here (${adapter.name}), ${slowly}.` }
            : { device: "gpu", notice: null };
    }

    async #load({ sources: wanted, device, ple, session, threads, imageTokens }: LoadRequest, emit: (p: Progress) => void, signal: AbortSignal): Promise<ModelFacts> {
        if (this.#loaded || this.#loading) {
            throw new BezelError("bad_request", "A model is loaded already; this engine holds one.");
        }
        this.#loading = true;
        // Files are read again when a lost device is replaced, long after the wish to cancel loading has no meaning.
        const stop = (): void => this.#reading.abort(signal.reason);
        signal.addEventListener("abort", stop);
        let model: Model | null = null;
        let chat: Session | null = null;
        let engine: Engine | null = null;
        try {
            emit({ stage: "engine", done: 0, total: 1 });
            let choice = await this.#choose(device);
            engine = choice.device === "cpu" ? await this.#startForCpu(threads) : await this.#startEngine();
            emit({ stage: "engine", done: 1, total: 1 });
            emit({ stage: "header", done: 0, total: 1 });
            const options = { fetch: this.#fetch, signal: this.#reading.signal };
            const sources = await Promise.all(wanted.map((source) => openSource(source, options)));
            const bytes = sources.reduce((sum, { size }) => sum + size, 0);
            engine.gpu.onCompile = (done, total): void => emit({ stage: "compile", done, total });
            try {
                model = await this.#open(engine, sources, bytes, choice, ple, emit, signal);
            } catch (reason) {
                const gone = reason instanceof BezelError && (reason.code === "no_webgpu" || reason.code === "no_adapter");
                if (device !== "auto" || !gone) {
                    throw reason;
                }
                const notice = `The GPU cannot be used (${reason.message.replace(/\.$/, "")}), so the model runs on the CPU.`;
                choice = { device: "cpu", notice };
                engine = await this.#startForCpu(threads);
                model = await this.#open(engine, sources, bytes, choice, ple, emit, signal);
            }
            emit({ stage: "session", done: 0, total: 1 });
            const context = Math.min(session.context ?? 0, model.context); // 0: as the engine thinks best
            chat = await model.newSession({ ...session, context });
            emit({ stage: "session", done: 1, total: 1 });
            if (choice.device !== "cpu") {
                // The token that every conversation begins with: kernels are compiled now, and not after the first question.
                await chat.prefill(model.tokenize("", { bos: true }), { signal });
            }
            const facts: ModelFacts = {
                name: model.name.replace(/(-00001-of-\d{5})?\.gguf$/i, ""),
                vocabulary: model.vocab,
                contextLength: chat.context,
                trainedContext: model.context,
                bytes,
                device: choice.device,
                deviceName: choice.device === "cpu" ? "CPU" : (engine.gpu.devices[0]?.name ?? "GPU"),
                threads: chat.threads,
                vision: model.takes("image"),
                audio: model.takes("audio"),
                diffusion: model.diffusion,
                notice: this.#noticeOf(choice, engine),
            };
            this.#loaded = { engine, model, facts, sources, sessions: new Map([[0, chat]]), eyes: new Eyes(model, imageTokens) };
            return facts;
        } catch (reason) {
            this.#reading = new AbortController();
            chat?.free();
            model?.free();
            engine?.threads?.close();
            wanted.forEach((source) => closeSource(source as Source));
            throw reason;
        } finally {
            this.#loading = false;
            signal.removeEventListener("abort", stop);
            if (engine) {
                engine.gpu.onCompile = null;
            }
        }
    }

    /** What to say about the CPU, with what would make it faster. */
    #noticeOf({ notice }: Choice, engine: Engine): string | null {
        const alone = notice !== null && !engine.threads && this.#makeThread !== null && !canShareMemory();
        return alone ? `${notice} It uses one of its cores only: the server does not isolate the page (COOP and COEP).` : notice;
    }

    async #open(engine: Engine, sources: Source[], bytes: number, choice: Choice, ple: LoadRequest["ple"],
        emit: (p: Progress) => void, signal: AbortSignal): Promise<Model> {
        if (choice.device === "cpu" && bytes > CPU_MOST) {
            throw new BezelError(
                "out_of_memory",
                `A model of ${gigabytes(bytes)} is too large for the CPU, where at most ${gigabytes(CPU_MOST)} fit. ` +
                    (choice.notice ?? "Use a GPU, or a smaller model."),
            );
        }
        let first = true;
        return engine.openModel(sources, {
            device: choice.device,
            ple,
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

    /** Frees the model as soon as nothing runs on it. */
    close(): void {
        this.#reading.abort();
        void this.#last.then(() => {
            const loaded = this.#loaded;
            this.#loaded = null;
            loaded?.sessions.forEach((session) => session.free());
            loaded?.eyes.free();
            loaded?.model.free();
            loaded?.engine.threads?.close();
        });
    }

    // ---- chat ---------------------------------------------------------------------------------

    #chat(request: ChatRequest, media: PortableMedia[], signal: AbortSignal, send: (chunk: ChatChunk) => void): Promise<void> {
        const { model, eyes, facts } = this.#current();
        const place = { model, eyes, session: this.#session(0), name: facts.name };
        return this.#inTurn(signal, () => answerChat(place, request, media, signal, send));
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
            const opened = await Promise.all(sources.map((source) => openSource(source, { fetch: this.#fetch, signal })));
            const adapter = await findAdapter(this.#gpu);
            const limits = { buffer: adapter?.maxBufferSize ?? 0, binding: adapter?.maxStorageBufferBindingSize ?? 0 };
            return JSON.parse(await engine.inspect(opened, limits, signal)) as Inspection;
        },
        load: (request, emit, signal) => this.#load(request, emit, signal),
        chat: ({ request, media }, emit, signal) => this.#chat(request, media, signal, emit),
        chatWhole: async ({ request, media }, _, signal) => {
            const collector = new Collector();
            await this.#chat(request, media, signal, (chunk) => collector.add(chunk));
            return collector.whole(request);
        },

        mediaStats: () => Promise.resolve(this.#current().eyes.stats),

        tokenize: ({ text, specials, bos }) => Promise.resolve(this.#current().model.tokenize(text, { specials, bos })),
        detokenize: ({ tokens, showControl }) => Promise.resolve(this.#current().model.textOf(tokens, showControl)),

        sessionNew: async ({ options }: { options: SessionOptions }) => {
            const { model, sessions } = this.#current();
            const id = this.#nextSession++;
            sessions.set(id, await model.newSession(options));
            return id;
        },
        sessionFree: ({ session }, _, signal) =>
            this.#inTurn(signal, () => {
                this.#session(session).free();
                this.#current().sessions.delete(session);
                return Promise.resolve();
            }),
        sessionPrefill: ({ session, tokens, snapshotAt, logits }, emit, signal) =>
            this.#inTurn(signal, async () => {
                const one = this.#session(session);
                await one.prefill(tokens, {
                    snapshotAt,
                    signal,
                    onProgress: (done, total) => emit({ done, total }),
                    ...(logits && {
                        onLogits: (rows, position, n) => emit(moving({ logits: rows, position, rows: n }, [rows.buffer])),
                    }),
                });
                return one.stats;
            }),
        sessionGenerate: ({ session, options }, emit, signal) =>
            this.#inTurn(signal, async () => {
                const one = this.#session(session);
                const onCanvas = (canvas: Canvas): void => emit({ canvas });
                for await (const token of one.generate(options, { signal, onCanvas })) {
                    emit(token);
                }
                return { finish: one.finish };
            }),
        sessionLogits: ({ session }) => {
            const logits = this.#session(session).logits;
            return Promise.resolve(logits && moving(logits, [logits.buffer]));
        },
        sessionStats: ({ session }) => Promise.resolve(this.#session(session).stats),

        download: (wish, onProgress, signal) =>
            download(wish, { fetch: this.#fetch, signal, engine: () => this.#startEngine(), onProgress }),
        models: () => storedModels(),
        remove: ({ name }) => removeStored(name),
    };
}
