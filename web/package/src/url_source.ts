/** A model on a web server, read in ranges. */
import { abortedBy, BezelError } from "./errors.js";
import type { Source } from "./source.js";

const TRIES = 3;
/** Files from this size on would only push everything else out of the browser's cache. */
const UNCACHED = 64e6;
const FIRST_PAUSE = 500; // milliseconds; twice as long each time

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

export interface UrlOptions {
    /** For headers, credentials or another transport. */
    fetch?: Fetch | undefined;
    signal?: AbortSignal | undefined;
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

/** The answer, or why there is none. */
export async function request(url: string, init: RequestInit, options: UrlOptions): Promise<Response> {
    const { signal } = options;
    let response: Response;
    try {
        response = await (options.fetch ?? fetch)(url, { ...init, ...(signal && { signal }) });
    } catch (reason) {
        if (signal?.aborted) {
            throw abortedBy(signal);
        }
        const cause = reason instanceof Error ? reason.message : String(reason);
        const why = sameOrigin(url)
            ? "there is no connection"
            : "there is no connection, or the server does not allow other sites to read it (CORS: Access-Control-Allow-Origin)";
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
            throw new BezelError("network", `${name} may not be read: the server wants permission (status ${response.status}).`);
        case 416:
            throw new BezelError("network", `${name} has changed on the server: a range is no longer in it (status 416).`);
        default:
            throw new BezelError("network", `${name} could not be fetched: the server answered with status ${response.status}.`);
    }
}

function isPassing(reason: unknown): boolean {
    return reason instanceof BezelError && reason.code === "network" && !/permission|changed|ranges/.test(reason.message);
}

/** Again after a pause, when the network failed. */
async function retried<T>(signal: AbortSignal | undefined, act: () => Promise<T>): Promise<T> {
    for (let pause = FIRST_PAUSE, n = 1; ; pause *= 2, n++) {
        try {
            return await act();
        } catch (reason) {
            if (n === TRIES || signal?.aborted || !isPassing(reason)) {
                throw reason;
            }
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
    }
}

/** What a server says about a file, from a request for its first byte. */
export interface UrlFacts {
    /** Null: the server does not say. */
    size: number | null;
    ranges: boolean;
    validator: string | null;
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

/** By which a change can be noticed: a strong ETag, since bytes of weakly equal files may differ, or the date. */
export function validatorOf(response: Response): string | null {
    const etag = response.headers.get("ETag");
    return etag?.startsWith('"') ? etag : response.headers.get("Last-Modified");
}

/** Requests within one site may have any header. */
export function sameOrigin(url: string): boolean {
    return !("location" in globalThis) || new URL(url, location.href).origin === location.origin;
}

export async function askUrl(url: string, options: UrlOptions): Promise<UrlFacts> {
    const response = await request(url, { headers: { Range: "bytes=0-0" } }, options);
    void response.body?.cancel().catch(() => undefined);
    const validator = validatorOf(response);
    if (response.status !== 206) {
        return { size: lengthOf(response), ranges: false, validator };
    }
    // A server that allows reading from other sites need not show Content-Range to them.
    const size = totalOf(response.headers.get("Content-Range")) ?? lengthOf(await request(url, { method: "HEAD" }, options));
    return { size, ranges: true, validator };
}

export async function urlSource(url: string, options: UrlOptions = {}): Promise<Source> {
    const name = nameOfUrl(url);
    const { size, ranges, validator } = await retried(options.signal, () => askUrl(url, options));
    if (!ranges) {
        throw new BezelError(
            "network",
            `${name} cannot be read in place: the server does not answer ranges of a file. Download it first with Bezel.download.`,
        );
    }
    if (size === null) {
        throw new BezelError("network", `${name}: the server does not say how large the file is. Download it with Bezel.download.`);
    }
    const readOnce = async (offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> => {
        const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
        const response = await request(url, { headers, ...(size >= UNCACHED && { cache: "no-store" }) }, options);
        const now = validatorOf(response);
        if (response.status !== 206 || (validator !== null && now !== null && now !== validator)) {
            void response.body?.cancel().catch(() => undefined);
            throw new BezelError("network", `${name} has changed on the server while it was read; load it again.`);
        }
        try {
            return new Uint8Array(await response.arrayBuffer());
        } catch (reason) {
            const code = options.signal?.aborted ? "aborted" : "network";
            throw new BezelError(code, `${name}: the connection broke off.`, { cause: reason });
        }
    };
    return { name, size, fresh: true, read: (offset, length) => retried(options.signal, () => readOnce(offset, length)) };
}
