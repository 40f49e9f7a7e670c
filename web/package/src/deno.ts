/** File access in Deno. */
import type { FileSource } from "./node.js";

/** The part of Deno that is used here. */
interface DenoFile {
    stat(): Promise<{ size: number }>;
    seek(offset: number, whence: number): Promise<number>;
    read(into: Uint8Array): Promise<number | null>;
    close(): void;
}
declare const Deno: { open(path: string, options: { read: boolean }): Promise<DenoFile> };

export async function fileSource(path: string): Promise<FileSource> {
    const file = await Deno.open(path, { read: true });
    const { size } = await file.stat();
    // A file has one position, so concurrent reads are queued.
    let last: Promise<unknown> = Promise.resolve();
    const readNow = async (offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> => {
        const bytes = new Uint8Array(length);
        await file.seek(offset, 0);
        for (let n = 0; n < length;) {
            const got = await file.read(bytes.subarray(n));
            if (got === null) {
                throw new Error(`the file ends at byte ${offset + n}`);
            }
            n += got;
        }
        return bytes;
    };
    return {
        name: path.slice(path.lastIndexOf("/") + 1),
        size,
        close: () => Promise.resolve(file.close()),
        read: (offset, length) => {
            const result = last.then(() => readNow(offset, length));
            last = result.catch(() => undefined);
            return result;
        },
    };
}
