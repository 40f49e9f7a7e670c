/** A file that arrives in one response from its beginning: for small files, which ranges would only delay, and for servers
 * that do not support requests for ranges. */
import { abortedBy, BezelError } from "./errors.js";
import type { Source } from "./source.js";

/** Connections in a row that break before the first new byte: a server without ranges sends the old ones again. */
const MAX_USELESS = 3;

export interface Stream {
    /** For error messages. */
    name: string;
    size: number;
    /** A reader of the file's bytes from `from` on. Called again after the connection broke. */
    open: (from: number, signal: AbortSignal) => Promise<ReadableStreamDefaultReader<Uint8Array>>;
    /** A read that takes longer than a connection may be silent rejects. */
    within: <T>(arriving: Promise<T>) => Promise<T>;
    signal: AbortSignal | undefined;
}

interface Waiting {
    end: number;
    resolve: () => void;
    reject: (reason: unknown) => void;
}

/** The stream starts with the first read and goes on to its end, or until `close`. All bytes stay in memory, as the GPU may
 * be lost later and the file read again. */
export function streamedSource(stream: Stream): Source {
    const { name, size } = stream;
    const closed = new AbortController();
    const signal = stream.signal ? AbortSignal.any([stream.signal, closed.signal]) : closed.signal;
    const bytes = new Uint8Array(size);
    let arrived = 0;
    let failure: unknown = null;
    let running = false;
    let waiting: Waiting[] = [];

    const wake = (): void => {
        const now = waiting.filter(({ end }) => failure !== null || end <= arrived);
        waiting = waiting.filter((one) => !now.includes(one));
        now.forEach(({ resolve, reject }) => (failure === null ? resolve() : reject(failure)));
    };
    /** Up to the end of one connection. */
    const receive = async (): Promise<void> => {
        const reader = await stream.open(arrived, signal);
        try {
            while (arrived < size) {
                const { done, value } = await stream.within(reader.read());
                if (done || signal.aborted) {
                    return;
                }
                bytes.set(value.subarray(0, size - arrived), arrived);
                arrived += Math.min(value.byteLength, size - arrived);
                wake();
            }
        } finally {
            void reader.cancel().catch(() => undefined);
        }
    };
    const run = async (): Promise<void> => {
        running = true;
        let reason: unknown = null;
        // Connections that bring something may break any number of times.
        for (let useless = 0; arrived < size && useless < MAX_USELESS && !signal.aborted; ) {
            const before = arrived;
            try {
                await receive();
            } catch (error) {
                reason = error;
                if (error instanceof BezelError) {
                    break; // `open` has retried already
                }
            }
            useless = arrived > before ? 0 : useless + 1;
        }
        running = false;
        if (arrived < size) {
            const broken = `${name}: the connection broke after ${arrived} of ${size} bytes.`;
            failure = signal.aborted ? abortedBy(signal) : reason instanceof BezelError ? reason : new BezelError("network", broken, { cause: reason });
            wake();
            failure = null; // a later read tries again
        }
    };
    return {
        name,
        size,
        fresh: true,
        read: async (offset, length) => {
            const end = offset + length;
            if (end > arrived) {
                await new Promise<void>((resolve, reject) => {
                    waiting.push({ end, resolve, reject });
                    if (!running) {
                        void run();
                    }
                });
            }
            return bytes.slice(offset, end);
        },
        close: () => closed.abort(),
    };
}
