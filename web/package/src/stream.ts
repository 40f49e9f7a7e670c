/** Events of a call as an async iterator: what came waits until it is asked for, and leaving the loop
 * ends the call. */
export interface Stream<T> extends AsyncIterableIterator<T> {
    /** The first event has come, or the end; rejects if the call failed before. */
    readonly begun: Promise<void>;
}

export function streamOf<T>(
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal, onEvent: (event: T) => void) => Promise<unknown>,
): Stream<T> {
    const stop = new AbortController();
    const abort = (): void => stop.abort(signal?.reason);
    const waiting: T[] = [];
    let ended = false;
    let failure: { reason: unknown } | null = null;
    let wake: () => void = () => undefined;
    let changed = new Promise<void>((resolve) => (wake = resolve));
    const change = (): void => {
        const now = wake;
        changed = new Promise<void>((resolve) => (wake = resolve));
        now();
    };
    if (signal?.aborted) {
        abort();
    } else {
        signal?.addEventListener("abort", abort);
    }
    const call = start(stop.signal, (event) => {
        waiting.push(event);
        change();
    })
        .catch((reason: unknown) => {
            failure = { reason };
        })
        .finally(() => {
            ended = true;
            signal?.removeEventListener("abort", abort);
            change();
        });
    const begun = changed.then(() => {
        if (failure && !waiting.length) {
            throw failure.reason;
        }
    });
    begun.catch(() => undefined); // whoever iterates hears of it too
    return {
        begun,
        [Symbol.asyncIterator]() {
            return this;
        },
        async next(): Promise<IteratorResult<T>> {
            while (!waiting.length && !ended) {
                await changed;
            }
            if (waiting.length) {
                return { value: waiting.shift() as T, done: false };
            }
            if (failure) {
                const { reason } = failure;
                failure = null; // once
                throw reason;
            }
            return { value: undefined, done: true };
        },
        async return(): Promise<IteratorResult<T>> {
            stop.abort();
            waiting.length = 0;
            await call; // the session is free again
            failure = null;
            return { value: undefined, done: true };
        },
    };
}
