/** Where a model's bytes come from. Slices are read as the engine asks for them, several at once. */
export interface Source {
    /** For messages. */
    readonly name: string;
    readonly size: number;
    /** What is read is the reader's own, and gone when it has been used. */
    readonly fresh?: boolean;
    /** Exactly `length` bytes; rejects when it cannot. */
    read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** Gives a buffer's memory back now: of gigabytes that pass through, the collector would let hundreds of megabytes wait. */
export function release(bytes: Uint8Array<ArrayBuffer>): void {
    const { buffer } = bytes as { buffer: ArrayBuffer & { transfer?: (length: number) => ArrayBuffer } };
    buffer.transfer?.(0);
}

/** A file that the user chose, or any other Blob. */
export function blobSource(blob: Blob, name = "name" in blob ? String(blob.name) : "blob"): Source {
    return {
        name,
        size: blob.size,
        fresh: true,
        read: async (offset, length) =>
            new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
    };
}

/** Bytes that are in memory already. */
export function bytesSource(bytes: Uint8Array<ArrayBuffer>, name = "memory"): Source {
    return {
        name,
        size: bytes.byteLength,
        read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
    };
}
