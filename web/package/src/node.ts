/** File access in Node. */
import { open, stat, type FileHandle } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Source } from "./source.js";

export interface FileSource extends Source {
    /** Ends reading. Optional: no file stays open between reads. */
    close(): Promise<void>;
}

/** Identifies a version of the file. */
interface Version {
    readonly size: number;
    readonly mtimeMs: number;
    readonly ino: number;
}

const same = (a: Version, b: Version): boolean => a.size === b.size && a.mtimeMs === b.mtimeMs && a.ino === b.ino;

/** A file that is open only while it is being read: a model may live as long as its program, and inspected files are
 * never closed explicitly. */
class ReopenedFile {
    readonly #path: string;
    readonly #version: Version;
    #file: Promise<FileHandle> | null = null;
    #readers = 0;

    constructor(path: string, version: Version) {
        this.#path = path;
        this.#version = version;
    }

    async #open(): Promise<FileHandle> {
        const file = await open(this.#path, "r");
        if (!same(await file.stat(), this.#version)) {
            await file.close();
            throw new Error("the file has changed since it was opened");
        }
        return file;
    }

    async use<T>(read: (file: FileHandle) => Promise<T>): Promise<T> {
        this.#readers++;
        const opening = (this.#file ??= this.#open());
        try {
            return await read(await opening);
        } finally {
            if (--this.#readers === 0) {
                this.#file = null;
                await opening.then((file) => file.close(), () => undefined);
            }
        }
    }
}

export async function fileSource(path: string): Promise<FileSource> {
    const version = await stat(path);
    const reopened = new ReopenedFile(resolve(path), version);
    let closed = false;
    return {
        name: basename(path),
        size: version.size,
        fresh: true,
        close: () => {
            closed = true;
            return Promise.resolve();
        },
        read: (offset, length) => {
            if (closed) {
                return Promise.reject(new Error("the file was closed"));
            }
            return reopened.use(async (file) => {
                const bytes = new Uint8Array(length);
                let n = 0;
                while (n < length) {
                    const { bytesRead } = await file.read(bytes, n, length - n, offset + n);
                    if (bytesRead === 0) {
                        throw new Error(`the file ends at byte ${offset + n}`);
                    }
                    n += bytesRead;
                }
                return bytes;
            });
        },
    };
}
