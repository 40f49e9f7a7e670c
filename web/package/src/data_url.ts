/** Decodes base64 and data: URLs. Not with fetch: a Content-Security-Policy may forbid data: URLs. */
import { BezelError } from "./errors.js";

function badBase64(what: string, cause: unknown): BezelError {
    return new BezelError("bad_request", `The ${what} is not valid base64.`, { cause });
}

export function bytesOfBase64(text: string, what: string): Uint8Array<ArrayBuffer> {
    // Also accept the URL-safe alphabet and line breaks.
    const plain = text.replace(/\s+/g, "").replace(/-/g, "+").replace(/_/g, "/");
    let binary: string;
    try {
        binary = atob(plain);
    } catch (reason) {
        throw badBase64(what, reason);
    }
    const bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) {
        bytes[i] = binary.charCodeAt(i);
    }
    return bytes;
}

function bytesOfEscapes(text: string): Uint8Array<ArrayBuffer> {
    const bytes: number[] = [];
    for (let i = 0; i < text.length; i++) {
        const escape = text[i] === "%" ? Number.parseInt(text.slice(i + 1, i + 3), 16) : NaN;
        if (Number.isNaN(escape)) {
            bytes.push(text.charCodeAt(i) & 255);
        } else {
            bytes.push(escape);
            i += 2;
        }
    }
    return Uint8Array.from(bytes);
}

/** data:image/png;base64,... */
export function bytesOfDataUrl(url: string, what: string): Uint8Array<ArrayBuffer> {
    const comma = url.indexOf(",");
    if (comma < 0) {
        throw new BezelError("bad_request", `The ${what}'s data: URL has no comma before its data.`);
    }
    const body = url.slice(comma + 1);
    if (!/;\s*base64\s*$/i.test(url.slice(0, comma))) {
        return bytesOfEscapes(body);
    }
    try {
        return bytesOfBase64(body.includes("%") ? decodeURIComponent(body) : body, what);
    } catch (reason) {
        throw reason instanceof BezelError ? reason : badBase64(what, reason);
    }
}
