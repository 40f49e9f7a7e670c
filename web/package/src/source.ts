/** A model's bytes. The engine requests ranges, several at once. */
export interface Source {
    /** For error messages. */
    readonly name: string;
    readonly size: number;
    /** Every read returns a new buffer, which the reader may detach. */
    readonly fresh?: boolean;
    /** Resolves to exactly `length` bytes. */
    read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
    /** Nothing will be read any more. */
    close?(): void;
}

/** Frees a buffer's memory now: when gigabytes are read, garbage collection lags by hundreds of megabytes. */
export function release(bytes: Uint8Array<ArrayBuffer>): void {
    const { buffer } = bytes as { buffer: ArrayBuffer & { transfer?: (length: number) => ArrayBuffer } };
    buffer.transfer?.(0);
}

/** A File or any other Blob. */
export function blobSource(blob: Blob, name = "name" in blob ? String(blob.name) : "blob"): Source {
    return {
        name,
        size: blob.size,
        fresh: true,
        read: async (offset, length) =>
            new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
    };
}

/** Bytes in memory. */
export function bytesSource(bytes: Uint8Array<ArrayBuffer>, name = "memory"): Source {
    return {
        name,
        size: bytes.byteLength,
        read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    };
}
