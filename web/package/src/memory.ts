/** Views of a WebAssembly memory, recreated after it has grown. Addresses are as exports return them: negative above
 * 2 GiB. */
export class Memory {
    readonly #memory: WebAssembly.Memory;
    #bytes: Uint8Array<ArrayBuffer>;
    #doubles: Float64Array<ArrayBuffer>;
    readonly #decoder = new TextDecoder();
    readonly #encoder = new TextEncoder();

    constructor(memory: WebAssembly.Memory) {
        this.#memory = memory;
        this.#bytes = new Uint8Array(this.#buffer);
        this.#doubles = new Float64Array(this.#buffer);
    }

    get #buffer(): ArrayBuffer {
        return this.#memory.buffer as ArrayBuffer;
    }

    /** Size in bytes; the memory never shrinks, so this is also its peak. */
    get size(): number {
        return this.#buffer.byteLength;
    }

    get bytes(): Uint8Array<ArrayBuffer> {
        if (this.#bytes.buffer !== this.#buffer) {
            this.#bytes = new Uint8Array(this.#buffer);
        }
        return this.#bytes;
    }

    get doubles(): Float64Array<ArrayBuffer> {
        if (this.#doubles.buffer !== this.#buffer) {
            this.#doubles = new Float64Array(this.#buffer);
        }
        return this.#doubles;
    }

    put(address: number, bytes: Uint8Array): void {
        this.bytes.set(bytes, address >>> 0);
    }

    /** A view of `n` doubles, valid until the next call into the module. */
    doublesAt(address: number, n: number): Float64Array<ArrayBuffer> {
        const at = (address >>> 0) / 8;
        return this.doubles.subarray(at, at + n);
    }

    doubleAt(address: number): number {
        return this.doubles[(address >>> 0) / 8] ?? 0;
    }

    uint32At(address: number): number {
        return new DataView(this.#buffer).getUint32(address >>> 0, true);
    }

    /** A copy of `n` values. */
    int32s(address: number, n: number): Int32Array<ArrayBuffer> {
        return new Int32Array(this.#buffer, address >>> 0, n).slice();
    }

    /** A copy of `n` values. */
    floats(address: number, n: number): Float32Array<ArrayBuffer> {
        return new Float32Array(this.#buffer, address >>> 0, n).slice();
    }

    /** A copy of `length` bytes. */
    slice(address: number, length: number): Uint8Array<ArrayBuffer> {
        return this.bytes.slice(address >>> 0, (address >>> 0) + length);
    }

    text(address: number, length: number): string {
        const { bytes } = this;
        const at = address >>> 0;
        // TextDecoder does not accept shared memory.
        const shared = typeof SharedArrayBuffer !== "undefined" && this.#memory.buffer instanceof SharedArrayBuffer;
        return this.#decoder.decode(shared ? bytes.slice(at, at + length) : bytes.subarray(at, at + length));
    }

    /** A NUL-terminated string. */
    cString(address: number): string {
        return this.text(address, this.bytes.indexOf(0, address >>> 0) - (address >>> 0));
    }

    /** Writes a NUL-terminated string into `capacity` bytes, truncated at a character boundary. */
    putCString(address: number, capacity: number, text: string): void {
        const at = address >>> 0;
        const { written } = this.#encoder.encodeInto(text, this.bytes.subarray(at, at + capacity - 1));
        this.bytes[at + written] = 0;
    }
}
