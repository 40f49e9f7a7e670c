/** Incremental SHA-256, computed by C: the browser's own API needs all bytes at once. */
import type { Engine } from "./engine.js";
import { BezelError } from "./errors.js";

const BUFFER_BYTES = 1 << 20;

export class Sha256 {
    readonly #engine: Engine;
    readonly #state: number;
    readonly #buffer: number;

    constructor(engine: Engine) {
        this.#engine = engine;
        this.#state = engine.exports.sha256_new();
        this.#buffer = engine.exports.alloc(BUFFER_BYTES);
        if (!this.#state || !this.#buffer) {
            throw new BezelError("out_of_memory", "Not enough memory for computing a checksum.");
        }
    }

    add(bytes: Uint8Array): void {
        const { exports, memory } = this.#engine;
        for (let at = 0; at < bytes.byteLength; at += BUFFER_BYTES) {
            const piece = bytes.subarray(at, at + BUFFER_BYTES);
            memory.put(this.#buffer, piece);
            exports.sha256_add(this.#state, this.#buffer, piece.byteLength);
        }
    }

    /** The digest in hexadecimal; no more bytes can be added. */
    end(): string {
        const { exports, memory, host } = this.#engine;
        return memory.cString(exports.sha256_end(host, this.#state));
    }

    free(): void {
        this.#engine.exports.free(this.#state);
        this.#engine.exports.free(this.#buffer);
    }
}
