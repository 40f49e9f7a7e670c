/** Calls to the engine, wherever it runs: directly, or in a worker by messages.
 *
 *   to the worker:    { call, method, argument }   { abort }
 *   from the worker:  { alive }   { event, value }   { result, value }   { error, code, message }
 *
 * where call, abort, event, result and error are the number of the call. */
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

/** Where calls go. */
export interface Caller {
    call<M extends Method>(method: M, argument: Argument<M>, options?: CallOptions<M>): Promise<Result<M>>;
    /** Ends what runs there; pending calls are rejected. */
    close(): void;
}

/** Who answers them. */
export type Handlers = {
    [M in Method]: (argument: Argument<M>, emit: (event: Event<M>) => void, signal: AbortSignal) => Promise<Result<M>>;
};

/** The part of Worker that is used, so that other kinds can stand in. */
export interface WorkerLike {
    postMessage(message: unknown, transfer: Transferable[]): void;
    addEventListener(type: "message" | "error" | "messageerror", listener: (event: MessageEvent & ErrorEvent) => void): void;
    terminate(): unknown;
}

/** A worker's own side. */
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

    /** `free` is called at the end. */
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
            // What a crash took along has its cause, and so has what was ended with the model.
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
    forget: () => void;
}

export class WorkerCaller implements Caller {
    readonly #worker: WorkerLike;
    readonly #pending = new Map<number, Pending>();
    #next = 1;
    #dead: BezelError | null = null;
    #alive = false;

    constructor(worker: WorkerLike) {
        this.#worker = worker;
        worker.addEventListener("message", ({ data }) => this.#receive(data as FromWorker));
        worker.addEventListener("messageerror", () => this.#die("a message could not be read"));
        worker.addEventListener("error", (event) => {
            event.preventDefault();
            this.#die(event.message || (this.#alive ? "it crashed" : "its script could not be loaded"));
        });
    }

    #die(cause: string): void {
        const what = this.#alive
            ? `The worker that runs the model ended: ${cause}, perhaps for lack of memory. Load the model again.`
            : `The worker could not start: ${cause}. Where scripts are bundled, pass the option worker.`;
        this.#fail(new BezelError(this.#alive ? "device_lost" : "network", what));
    }

    #fail(reason: BezelError): void {
        this.#dead ??= reason;
        this.#worker.terminate();
        this.#pending.forEach(({ reject, forget }) => {
            forget();
            reject(reason);
        });
        this.#pending.clear();
    }

    #take(id: number): Pending | undefined {
        const pending = this.#pending.get(id);
        this.#pending.delete(id);
        pending?.forget();
        return pending;
    }

    #receive(message: FromWorker): void {
        if ("event" in message) {
            this.#pending.get(message.event)?.onEvent?.(message.value as never);
        } else if ("result" in message) {
            this.#take(message.result)?.resolve(message.value as never);
        } else if ("error" in message) {
            this.#take(message.error)?.reject(new BezelError(message.code, message.message));
        } else {
            this.#alive = true;
            if (message.alive !== null) {
                // The worker holds this lock as long as it lives, however it ends.
                void navigator.locks.request(message.alive, () => this.#dead ?? this.#die("it was stopped"));
            }
        }
    }

    call<M extends Method>(method: M, argument: Argument<M>, options: CallOptions<M> = {}): Promise<Result<M>> {
        const { signal, onEvent, transfer = [] } = options;
        if (this.#dead) {
            return Promise.reject(this.#dead);
        }
        if (signal?.aborted) {
            return Promise.reject(abortedBy(signal));
        }
        const id = this.#next++;
        return new Promise((resolve, reject) => {
            // The worker answers an abort as soon as it can; that answer ends the call.
            const abort = (): void => this.#worker.postMessage({ abort: id } satisfies ToWorker, []);
            const forget = (): void => signal?.removeEventListener("abort", abort);
            signal?.addEventListener("abort", abort);
            this.#pending.set(id, { resolve, reject, onEvent, forget });
            try {
                this.#worker.postMessage({ call: id, method, argument } satisfies ToWorker, transfer);
            } catch (reason) {
                this.#take(id)?.reject(errorFrom(reason)); // what cannot be copied into a message
            }
        });
    }

    close(): void {
        this.#fail(closed());
    }
}

/** Values that a handler wants moved, not copied. */
const moved = new WeakMap<object, Transferable[]>();

export function moving<T extends object>(value: T, transfer: Transferable[]): T {
    moved.set(value, transfer);
    return value;
}

function transferOf(value: unknown): Transferable[] {
    return typeof value === "object" && value !== null ? (moved.get(value) ?? []) : [];
}

/** Answers calls inside a worker. */
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
                scope.close(); // what else is under way ends with the worker
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
