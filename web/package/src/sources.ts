/** The kinds of sources that a model can be loaded from, and how they are passed to a worker. */
import { BezelError, errorFrom } from "./errors.js";
import { storedFile } from "./opfs.js";
import { blobSource, type Source } from "./source.js";
import { urlSource, type UrlOptions } from "./url_source.js";

/** A file, a file handle, a URL (absolute or relative to the page), "opfs:NAME" for a downloaded model, or an object
 * with a read method. */
export type ModelSource = Blob | FileSystemFileHandle | string | URL | Source;

/** A source in a form that postMessage can carry: an object with a read method is called through a port. */
export type PortableSource = Blob | FileSystemFileHandle | string | { name: string; size: number; port: MessagePort };

const OPFS = "opfs:";

function isHandle(source: object): source is FileSystemFileHandle {
    return "getFile" in source;
}

function isReader(source: object): source is Source {
    return "read" in source && "size" in source;
}

export function asList(sources: ModelSource | ModelSource[]): ModelSource[] {
    return Array.isArray(sources) ? sources : [sources];
}

// ---- opening --------------------------------------------------------------------------------

async function handleSource(handle: FileSystemFileHandle): Promise<Source> {
    try {
        return blobSource(await handle.getFile());
    } catch (reason) {
        const missing = reason instanceof DOMException && reason.name === "NotFoundError";
        const why = missing ? "was moved or deleted; choose it again" : "can no longer be read; request permission or choose it again";
        throw new BezelError(missing ? "not_found" : "bad_file", `${handle.name} ${why}.`, { cause: reason });
    }
}

export async function openSource(source: ModelSource | PortableSource, options: UrlOptions): Promise<Source> {
    if (typeof source === "string" || source instanceof URL) {
        const url = String(source);
        return url.startsWith(OPFS) ? blobSource(await storedFile(url.slice(OPFS.length))) : urlSource(url, options);
    }
    if (source instanceof Blob) {
        return blobSource(source);
    }
    if ("port" in source) {
        return portSource(source.port, source.name, source.size);
    }
    if (isHandle(source)) {
        return handleSource(source);
    }
    if (isReader(source)) {
        return source;
    }
    throw new BezelError("bad_request", "A model's source must be a file, a URL, opfs:NAME or an object with name, size and read.");
}

export function closeSource(source: Source | PortableSource): void {
    if (typeof source === "object" && "port" in source) {
        source.port.close();
    }
}

// ---- passing to a worker ----------------------------------------------------------------------

type ReadRequest = { id: number; offset: number; length: number };
type ReadAnswer = { id: number; bytes: Uint8Array<ArrayBuffer> } | { id: number; code: string; message: string };

/** URLs are made absolute: a worker would resolve them against its own script. `close` ends the port, if there is one. */
export function toPortable(source: ModelSource): { source: PortableSource; transfer: Transferable[]; close: () => void } {
    const close = (): void => undefined;
    if (typeof source === "string" || source instanceof URL) {
        const url = String(source);
        const absolute = url.startsWith(OPFS) || !("location" in globalThis) ? url : new URL(url, location.href).href;
        return { source: absolute, transfer: [], close };
    }
    if (source instanceof Blob || !isReader(source)) {
        return { source: source as Blob | FileSystemFileHandle, transfer: [], close };
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<ReadRequest>) => {
        source.read(data.offset, data.length).then(
            (bytes) => {
                const copy = bytes.slice(); // transferring detaches the buffer, which the source may still use
                port1.postMessage({ id: data.id, bytes: copy } satisfies ReadAnswer, [copy.buffer]);
            },
            (reason: unknown) => {
                const { code, message } = errorFrom(reason, "bad_file");
                port1.postMessage({ id: data.id, code, message } satisfies ReadAnswer);
            },
        );
    };
    return { source: { name: source.name, size: source.size, port: port2 }, transfer: [port2], close: () => port1.close() };
}

function portSource(port: MessagePort, name: string, size: number): Source {
    const pending = new Map<number, { resolve: (bytes: Uint8Array<ArrayBuffer>) => void; reject: (reason: unknown) => void }>();
    let next = 0;
    port.onmessage = ({ data }: MessageEvent<ReadAnswer>) => {
        const request = pending.get(data.id);
        pending.delete(data.id);
        if ("bytes" in data) {
            request?.resolve(data.bytes);
        } else {
            request?.reject(new BezelError(data.code as BezelError["code"], data.message));
        }
    };
    return {
        name,
        size,
        fresh: true,
        read: (offset, length) =>
            new Promise((resolve, reject) => {
                pending.set(next, { resolve, reject });
                port.postMessage({ id: next++, offset, length } satisfies ReadRequest);
            }),
    };
}
