/** The events of a call as an async iterator: events are queued until they are read, and leaving the loop aborts the
 * call. */
export interface Stream<T> extends AsyncIterableIterator<T> {
    /** Resolves with the first event or the end; rejects if the call failed before either. */
    readonly started: Promise<void>;
}

export function streamOf<T>(
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal, onEvent: (event: T) => void) => Promise<unknown>,
): Stream<T> {
    const control = new AbortController();
    const abort = (): void => control.abort(signal?.reason);
    const queue: T[] = [];
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
    const call = start(control.signal, (event) => {
        queue.push(event);
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
    const started = changed.then(() => {
        if (failure && !queue.length) {
            throw failure.reason;
        }
    });
    started.catch(() => undefined); // next() rejects as well
    return {
        started,
        [Symbol.asyncIterator]() {
            return this;
        },
        async next(): Promise<IteratorResult<T>> {
            while (!queue.length && !ended) {
                await changed;
            }
            if (queue.length) {
                return { value: queue.shift() as T, done: false };
            }
            if (failure) {
                const { reason } = failure;
                failure = null; // reported once
                throw reason;
            }
            return { value: undefined, done: true };
        },
        async return(): Promise<IteratorResult<T>> {
            control.abort();
            queue.length = 0;
            await call; // until the session can be used again
            failure = null;
            return { value: undefined, done: true };
        },
    };
}
