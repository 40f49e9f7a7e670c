/** Calls to the engine: directly, or through messages to a worker.
 *
 *   to the worker:    { call, method, argument }   { abort }
 *   from the worker:  { alive }   { event, value }   { result, value }   { error, code, message }
 *
 * call, abort, event, result and error hold the call's id; alive, the name of a lock or null. */
import { abortedBy, BezelError, errorFrom, isCrash, type ErrorCode } from "./errors.js";
import type { Method, Methods } from "./methods.js";

export type Argument<M extends Method> = Methods[M]["argument"];
export type Result<M extends Method> = Methods[M]["result"];
export type Event<M extends Method> = Methods[M]["event"];

export interface CallOptions<M extends Method> {
    signal?: AbortSignal | undefined;
    onEvent?: ((event: Event<M>) => void) | undefined;
    transfer?: Transferable[];
}

/** The calling side. */
export interface Caller {
    call<M extends Method>(method: M, argument: Argument<M>, options?: CallOptions<M>): Promise<Result<M>>;
    /** Ends the engine; pending calls reject. */
    close(): void;
}

/** The answering side. */
export type Handlers = {
    [M in Method]: (argument: Argument<M>, emit: (event: Event<M>) => void, signal: AbortSignal) => Promise<Result<M>>;
};

/** The part of Worker that is used, so that others can implement it. */
export interface WorkerLike {
    postMessage(message: unknown, transfer: Transferable[]): void;
    addEventListener(type: "message" | "error" | "messageerror", listener: (event: MessageEvent & ErrorEvent) => void): void;
    terminate(): unknown;
}

/** The global scope inside a worker. */
export interface WorkerScope {
    postMessage(message: unknown, transfer: Transferable[]): void;
    addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
    close(): void;
}

type ToWorker = { call: number; method: Method; argument: unknown } | { abort: number };
type FromWorker =
    | { alive: string | null }
    | { event: number; value: unknown }
    | { result: number; value: unknown }
    | { error: number; code: ErrorCode; message: string };

const closed = (): BezelError => new BezelError("aborted", "The model was closed.");

// ---- directly -----------------------------------------------------------------------------------

export class LocalCaller implements Caller {
    readonly #handlers: Handlers;
    readonly #free: () => void;
    readonly #closing = new AbortController();
    #crash: BezelError | null = null;

    /** `free` is called on close. */
    constructor(handlers: Handlers, free: () => void) {
        this.#handlers = handlers;
        this.#free = free;
    }

    async call<M extends Method>(method: M, argument: Argument<M>, options: CallOptions<M> = {}): Promise<Result<M>> {
        const signal = options.signal ? AbortSignal.any([options.signal, this.#closing.signal]) : this.#closing.signal;
        if (this.#crash || signal.aborted) {
            throw this.#crash ?? (this.#closing.signal.aborted ? closed() : abortedBy(signal));
        }
        try {
            return await this.#handlers[method](argument, options.onEvent ?? ((): void => undefined), signal);
        } catch (reason) {
            const error = errorFrom(reason);
            if (isCrash(reason)) {
                this.#crash = error;
                this.#closing.abort(reason);
            }
            // Calls that ended because of a crash or a close report that as their cause.
            throw this.#crash ?? (error.code === "aborted" && this.#closing.signal.aborted ? closed() : error);
        }
    }

    close(): void {
        if (!this.#closing.signal.aborted) {
            this.#closing.abort();
            this.#free();
        }
    }
}

// ---- in a worker ----------------------------------------------------------------------------------

interface Pending {
    resolve: (value: never) => void;
    reject: (reason: BezelError) => void;
    onEvent: ((event: never) => void) | undefined;
    removeListener: () => void;
}

export class WorkerCaller implements Caller {
    readonly #worker: WorkerLike;
    readonly #pending = new Map<number, Pending>();
    #next = 1;
    #failure: BezelError | null = null;
    #alive = false;

    constructor(worker: WorkerLike) {
        this.#worker = worker;
        worker.addEventListener("message", ({ data }) => this.#receive(data as FromWorker));
        worker.addEventListener("messageerror", () => this.#fail("a message could not be read"));
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.#fail(event.message || (this.#alive ? "it crashed" : "its script could not be loaded"));
        });
    }

    #fail(cause: string): void {
        const message = this.#alive
            ? `The worker that runs the model ended (${cause}), perhaps because it ran out of memory. Load the model again.`
            : `The worker could not start: ${cause}. If your scripts are bundled, pass the option worker.`;
        this.#close(new BezelError(this.#alive ? "device_lost" : "network", message));
    }

    #close(reason: BezelError): void {
        this.#failure ??= reason;
        this.#worker.terminate();
        this.#pending.forEach(({ reject, removeListener }) => {
            removeListener();
            reject(reason);
        });
        this.#pending.clear();
    }

    #settle(id: number): Pending | undefined {
        const pending = this.#pending.get(id);
        this.#pending.delete(id);
        pending?.removeListener();
        return pending;
    }

    #receive(message: FromWorker): void {
        if ("event" in message) {
            this.#pending.get(message.event)?.onEvent?.(message.value as never);
        } else if ("result" in message) {
            this.#settle(message.result)?.resolve(message.value as never);
        } else if ("error" in message) {
            this.#settle(message.error)?.reject(new BezelError(message.code, message.message));
        } else {
            this.#alive = true;
            if (message.alive !== null) {
                // The worker holds this lock for its lifetime, so obtaining it means that the worker has ended.
                void navigator.locks.request(message.alive, () => this.#failure ?? this.#fail("it was stopped"));
            }
        }
    }

    call<M extends Method>(method: M, argument: Argument<M>, options: CallOptions<M> = {}): Promise<Result<M>> {
        const { signal, onEvent, transfer = [] } = options;
        if (this.#failure) {
            return Promise.reject(this.#failure);
        }
        if (signal?.aborted) {
            return Promise.reject(abortedBy(signal));
        }
        const id = this.#next++;
        return new Promise((resolve, reject) => {
            // The call ends when the worker answers the abort.
            const abort = (): void => this.#worker.postMessage({ abort: id } satisfies ToWorker, []);
            const removeListener = (): void => signal?.removeEventListener("abort", abort);
            signal?.addEventListener("abort", abort);
            this.#pending.set(id, { resolve, reject, onEvent, removeListener });
            try {
                this.#worker.postMessage({ call: id, method, argument } satisfies ToWorker, transfer);
            } catch (reason) {
                this.#settle(id)?.reject(errorFrom(reason)); // the argument cannot be cloned
            }
        });
    }

    close(): void {
        this.#close(closed());
    }
}

/** Transfer lists of results and events. */
const transferLists = new WeakMap<object, Transferable[]>();

/** Marks a handler's result or event so that it is transferred instead of copied. */
export function withTransfer<T extends object>(value: T, transfer: Transferable[]): T {
    transferLists.set(value, transfer);
    return value;
}

function transferOf(value: unknown): Transferable[] {
    return typeof value === "object" && value !== null ? (transferLists.get(value) ?? []) : [];
}

/** Answers calls in a worker. */
export function serve(scope: WorkerScope, handlers: Handlers): void {
    const running = new Map<number, AbortController>();
    const post = (message: FromWorker, transfer: Transferable[] = []): void => scope.postMessage(message, transfer);
    const answer = async <M extends Method>(id: number, method: M, argument: Argument<M>): Promise<void> => {
        const control = new AbortController();
        running.set(id, control);
        try {
            const emit = (value: Event<M>): void => post({ event: id, value }, transferOf(value));
            const value = await handlers[method](argument, emit, control.signal);
            post({ result: id, value }, transferOf(value));
        } catch (reason) {
            const { code, message } = errorFrom(reason);
            post({ error: id, code, message });
            if (isCrash(reason)) {
                scope.close(); // all other calls end with the worker
            }
        } finally {
            running.delete(id);
        }
    };
    scope.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
        if ("abort" in data) {
            running.get(data.abort)?.abort();
        } else {
            void answer(data.call, data.method, data.argument as never);
        }
    });
    const { locks } = (globalThis.navigator as Navigator | undefined) ?? {};
    if (locks) {
        const name = `bezel-${crypto.randomUUID()}`;
        void locks.request(name, () => {
            post({ alive: name });
            return new Promise<never>(() => undefined);
        });
    } else {
        post({ alive: null });
    }
}
