/** Where a model's bytes come from. Slices are read as the engine asks for them, several at once. */
export interface Source {
    /** For messages. */
    readonly name: string;
    readonly size: number;
    /** Exactly `length` bytes; rejects when it cannot. */
    read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** A file that the user chose, or any other Blob. */
export function blobSource(blob: Blob, name = "name" in blob ? String(blob.name) : "blob"): Source {
    return {
        name,
        size: blob.size,
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
