/** What a model can be loaded from, and how it crosses to a worker. */
import { BezelError, errorFrom } from "./errors.js";
import { storedFile } from "./opfs.js";
import { blobSource, type Source } from "./source.js";
import { urlSource, type UrlOptions } from "./url_source.js";

/** A file that the user chose, a handle of one, an address ("https:...", or one relative to the
 * page), "opfs:NAME" for a model that was downloaded, or an object that reads. */
export type ModelSource = Blob | FileSystemFileHandle | string | URL | Source;

/** The same in a message: an object that reads stays where it is, behind a port. */
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
        const why = missing ? "is no longer where it was" : "may not be read any more; ask for permission or choose it again";
        throw new BezelError(missing ? "not_found" : "bad_file", `${handle.name} ${why}.`, { cause: reason });
    }
}

/** Readers of a file; errors say what is wrong with it. */
export async function openSource(source: ModelSource | PortableSource, options: UrlOptions): Promise<Source> {
    if (typeof source === "string" || source instanceof URL) {
        const address = String(source);
        return address.startsWith(OPFS) ? blobSource(await storedFile(address.slice(OPFS.length))) : urlSource(address, options);
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
    throw new BezelError("bad_request", "A model is loaded from a file, an address, opfs:NAME or an object that reads.");
}

export function closeSource(source: Source | PortableSource): void {
    if (typeof source === "object" && "port" in source) {
        source.port.close();
    }
}

// ---- across to a worker -----------------------------------------------------------------------

type ReadRequest = { id: number; offset: number; length: number };
type ReadAnswer = { id: number; bytes: Uint8Array<ArrayBuffer> } | { id: number; code: string; message: string };

/** Relative addresses become the page's: a worker would take them for its own. */
export function toPortable(source: ModelSource): { source: PortableSource; transfer: Transferable[]; end: () => void } {
    const end = (): void => undefined;
    if (typeof source === "string" || source instanceof URL) {
        const address = String(source);
        const absolute = address.startsWith(OPFS) || !("location" in globalThis) ? address : new URL(address, location.href).href;
        return { source: absolute, transfer: [], end };
    }
    if (source instanceof Blob || !isReader(source)) {
        return { source: source as Blob | FileSystemFileHandle, transfer: [], end };
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }: MessageEvent<ReadRequest>) => {
        source.read(data.offset, data.length).then(
            (bytes) => {
                const copy = bytes.slice(); // what is transferred is gone, and the source may keep its own
                port1.postMessage({ id: data.id, bytes: copy } satisfies ReadAnswer, [copy.buffer]);
            },
            (reason: unknown) => {
                const { code, message } = errorFrom(reason, "bad_file");
                port1.postMessage({ id: data.id, code, message } satisfies ReadAnswer);
            },
        );
    };
    return { source: { name: source.name, size: source.size, port: port2 }, transfer: [port2], end: () => port1.close() };
}

function portSource(port: MessagePort, name: string, size: number): Source {
    const waiting = new Map<number, { resolve: (bytes: Uint8Array<ArrayBuffer>) => void; reject: (reason: unknown) => void }>();
    let next = 0;
    port.onmessage = ({ data }: MessageEvent<ReadAnswer>) => {
        const one = waiting.get(data.id);
        waiting.delete(data.id);
        if ("bytes" in data) {
            one?.resolve(data.bytes);
        } else {
            one?.reject(new BezelError(data.code as BezelError["code"], data.message));
        }
    };
    return {
        name,
        size,
        fresh: true,
        read: (offset, length) =>
            new Promise((resolve, reject) => {
                waiting.set(next, { resolve, reject });
                port.postMessage({ id: next++, offset, length } satisfies ReadRequest);
            }),
    };
}
