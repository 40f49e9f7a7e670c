/** What only Node has. */
import { open } from "node:fs/promises";
import { basename } from "node:path";
import type { Source } from "./source.js";

export interface FileSource extends Source {
    close(): Promise<void>;
}

export async function fileSource(path: string): Promise<FileSource> {
    const file = await open(path, "r");
    const { size } = await file.stat();
    return {
        name: basename(path),
        size,
        fresh: true,
        close: () => file.close(),
        read: async (offset, length) => {
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
        },
    };
}
