/** A model on a web server: read with range requests, or with one request if it is small or the server supports no ranges. */
import { abortedBy, BezelError } from "./errors.js";
import type { Source } from "./source.js";
import { streamedSource } from "./streamed_source.js";

const MAX_TRIES = 3;
/** Files of this size and above bypass the browser's cache: they would evict everything else. */
const UNCACHED_FROM = 64e6;
/** Files up to this size are read with one request: each range would wait for the server once more. */
const WHOLE_UP_TO = 32 << 20;
/** Files up to this size are kept in memory if the server does not support ranges. */
const MAX_WITHOUT_RANGES = 512 << 20;
/** Doubled with every retry. */
const FIRST_PAUSE_MS = 500;

/** A connection that delivers nothing for `afterMs` counts as broken. Tests shorten it. */
export const stall = { afterMs: 60_000 };

/** Rejects when nothing arrives in time. */
export async function withStallTimeout<T>(arriving: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("the server stopped sending")), stall.afterMs);
    });
    try {
        return await Promise.race([arriving, timeout]);
    } finally {
        clearTimeout(timer);
    }
}

/** The body of a response, [length]. */
async function readBody(response: Response, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    const reader = response.body?.getReader();
    let at = 0;
    try {
        for (;;) {
            const { done, value } = reader ? await withStallTimeout(reader.read()) : { done: true, value: undefined };
            if (done || !value) {
                return bytes.subarray(0, at);
            }
            if (value.byteLength > length - at) {
                throw new Error("the server sent more than was requested");
            }
            bytes.set(value, at);
            at += value.byteLength;
        }
    } catch (reason) {
        void reader?.cancel().catch(() => undefined);
        throw reason;
    }
}

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export interface UrlOptions {
    /** Replaces fetch: for headers, credentials or another transport. */
    fetch?: Fetch | undefined;
    signal?: AbortSignal | undefined;
    /** Only some of the file will be read: no more than that is requested where the server supports ranges. */
    partly?: boolean;
}

export function nameOfUrl(url: string): string {
    const path = url.replace(/[?#].*$/, "").replace(/\/+$/, "");
    const last = path.slice(path.lastIndexOf("/") + 1) || "model";
    try {
        return decodeURIComponent(last);
    } catch {
        return last;
    }
}

/** A successful response; rejects with the reason otherwise. */
export async function request(url: string, init: RequestInit, options: UrlOptions): Promise<Response> {
    const { signal } = options;
    let response: Response;
    try {
        response = await withStallTimeout((options.fetch ?? fetch)(url, { ...init, ...(signal && { signal }) }));
    } catch (reason) {
        if (signal?.aborted) {
            throw abortedBy(signal);
        }
        const cause = reason instanceof Error ? reason.message : String(reason);
        const why = sameOrigin(url)
            ? "there is no connection"
            : "there is no connection, or the server does not allow this site to read it (CORS: Access-Control-Allow-Origin)";
        throw new BezelError("network", `${nameOfUrl(url)} could not be fetched: ${why} (${cause}).`, { cause: reason });
    }
    if (response.ok) {
        return response;
    }
    void response.body?.cancel();
    const name = nameOfUrl(url);
    switch (response.status) {
        case 404:
        case 410:
            throw new BezelError("not_found", `${name} is not on the server (status ${response.status}).`);
        case 401:
        case 403:
            throw new BezelError("network", `${name} cannot be read: the server denies permission (status ${response.status}).`);
        case 416:
            throw new BezelError("network", `${name} has changed on the server: a requested range is past its end (status 416).`);
        default:
            throw new BezelError("network", `${name} could not be fetched: the server answered with status ${response.status}.`);
    }
}

function isTransient(reason: unknown): boolean {
    return reason instanceof BezelError && reason.code === "network" && !/permission|changed|ranges/.test(reason.message);
}

/** Retries after network errors, with growing pauses. */
async function withRetries<T>(signal: AbortSignal | undefined, act: (retry: boolean) => Promise<T>): Promise<T> {
    for (let pause = FIRST_PAUSE_MS, n = 1; ; pause *= 2, n++) {
        try {
            return await act(n > 1);
        } catch (reason) {
            if (n === MAX_TRIES || signal?.aborted || !isTransient(reason)) {
                throw reason;
            }
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
    }
}

/** What a server reports about a file in response to a request for its first byte. */
export interface UrlInfo {
    /** Null: unknown. */
    size: number | null;
    ranges: boolean;
    validator: string | null;
    /** The file's SHA-256 in hexadecimal, where the host sends it (Hugging Face, for large files); else null. */
    sha256: string | null;
}

function linkedHash(response: Response): string | null {
    return /^"?([0-9a-f]{64})"?$/i.exec(response.headers.get("X-Linked-ETag") ?? "")?.[1]?.toLowerCase() ?? null;
}

/** "bytes 0-0/1234" */
function totalOf(contentRange: string | null): number | null {
    const total = contentRange?.match(/\/(\d+)$/)?.[1];
    return total === undefined ? null : Number(total);
}

function lengthOf(response: Response): number | null {
    const length = response.headers.get("Content-Length");
    return length === null || response.headers.has("Content-Encoding") ? null : Number(length);
}

/** Identifies a version of the file: a strong ETag (bytes may differ under equal weak ones), or Last-Modified. */
export function validatorOf(response: Response): string | null {
    const etag = response.headers.get("ETag");
    return etag?.startsWith('"') ? etag : response.headers.get("Last-Modified");
}

/** Requests to the same origin may carry any header. */
export function sameOrigin(url: string): boolean {
    return !("location" in globalThis) || new URL(url, location.href).origin === location.origin;
}

export async function probeUrl(url: string, options: UrlOptions): Promise<UrlInfo> {
    // Not cached: reads of the file share the cache's entry of the URL.
    const response = await request(url, { headers: { Range: "bytes=0-0" }, cache: "no-store" }, options);
    void response.body?.cancel().catch(() => undefined);
    const validator = validatorOf(response);
    const sha256 = linkedHash(response);
    if (response.status !== 206) {
        return { size: lengthOf(response), ranges: false, validator, sha256 };
    }
    // Across origins, Content-Range may be hidden by CORS.
    const size = totalOf(response.headers.get("Content-Range")) ?? lengthOf(await request(url, { method: "HEAD" }, options));
    return { size, ranges: true, validator, sha256 };
}

/** The rest of a response, after its first `count` bytes. */
function skip(reader: ReadableStreamDefaultReader<Uint8Array>, count: number): ReadableStreamDefaultReader<Uint8Array> {
    let left = count;
    return new ReadableStream<Uint8Array>({
        pull: async (controller) => {
            for (;;) {
                const { done, value } = await reader.read();
                if (done) {
                    controller.close();
                    return;
                }
                const rest = value.subarray(Math.min(left, value.byteLength));
                left -= value.byteLength - rest.byteLength;
                if (rest.byteLength > 0) {
                    controller.enqueue(rest);
                    return;
                }
            }
        },
        cancel: (reason) => reader.cancel(reason),
    }).getReader();
}

export async function urlSource(url: string, options: UrlOptions = {}): Promise<Source> {
    const name = nameOfUrl(url);
    const { size, ranges, validator } = await withRetries(options.signal, () => probeUrl(url, options));
    if (size === null) {
        throw new BezelError("network", `${name}: the server does not report the file's size. Download it with Bezel.download.`);
    }
    if (!ranges && size > MAX_WITHOUT_RANGES) {
        throw new BezelError(
            "network",
            `${name} is too large to be read in place: the server does not support requests for ranges. Download it first with Bezel.download.`,
        );
    }
    const checkVersion = (response: Response): void => {
        const now = validatorOf(response);
        if (validator !== null && now !== null && now !== validator) {
            void response.body?.cancel().catch(() => undefined);
            throw new BezelError("network", `${name} has changed on the server while it was being read; load it again.`);
        }
    };
    if (!ranges || (size <= WHOLE_UP_TO && !options.partly)) {
        const openOnce = async (from: number, signal: AbortSignal, retry: boolean): Promise<ReadableStreamDefaultReader<Uint8Array>> => {
            const resume = from > 0 && ranges;
            const cache = (retry || from > 0) && { cache: "no-store" as const };
            const response = await request(url, { ...(resume && { headers: { Range: `bytes=${from}-${size - 1}` } }), ...cache }, { ...options, signal });
            checkVersion(response);
            const reader = (response.body ?? new ReadableStream<Uint8Array>({ start: (c) => c.close() })).getReader();
            return response.status === 206 || from === 0 ? reader : skip(reader, from);
        };
        return streamedSource({
            name,
            size,
            open: (from, signal) => withRetries(signal, (retry) => openOnce(from, signal, retry)),
            within: withStallTimeout,
            signal: options.signal,
        });
    }
    const readOnce = async (offset: number, length: number, retry: boolean): Promise<Uint8Array<ArrayBuffer>> => {
        const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
        // A retry bypasses the cache: what failed may be a cached response that was cut off.
        const response = await request(url, { headers, ...((retry || size >= UNCACHED_FROM) && { cache: "no-store" }) }, options);
        checkVersion(response);
        if (response.status !== 206) {
            void response.body?.cancel().catch(() => undefined);
            throw new BezelError("network", `${name}: the server no longer supports requests for ranges; load it again.`);
        }
        let bytes: Uint8Array<ArrayBuffer>;
        try {
            bytes = await readBody(response, length);
        } catch (reason) {
            const code = options.signal?.aborted ? "aborted" : "network";
            throw new BezelError(code, `${name}: the connection broke.`, { cause: reason });
        }
        if (bytes.byteLength !== length) {
            throw new BezelError("network", `${name}: the connection broke after ${bytes.byteLength} of ${length} bytes.`);
        }
        return bytes;
    };
    return { name, size, fresh: true, read: (offset, length) => withRetries(options.signal, (retry) => readOnce(offset, length, retry)) };
}
