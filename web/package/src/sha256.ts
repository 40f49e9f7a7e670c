/** SHA-256 as bytes come, computed by C: browsers hash only what is in memory as a whole. */
import type { Engine } from "./engine.js";
import { BezelError } from "./errors.js";

const PIECE = 1 << 20;

export class Sha256 {
    readonly #engine: Engine;
    readonly #state: number;
    readonly #buffer: number;

    constructor(engine: Engine) {
        this.#engine = engine;
        this.#state = engine.exports.sha256_new();
        this.#buffer = engine.exports.alloc(PIECE);
        if (!this.#state || !this.#buffer) {
            throw new BezelError("out_of_memory", "No memory for a checksum.");
        }
    }

    add(bytes: Uint8Array): void {
        const { exports, memory } = this.#engine;
        for (let at = 0; at < bytes.byteLength; at += PIECE) {
            const piece = bytes.subarray(at, at + PIECE);
            memory.put(this.#buffer, piece);
            exports.sha256_add(this.#state, this.#buffer, piece.byteLength);
        }
    }

    /** In hexadecimal; nothing more can be added. */
    end(): string {
        const { exports, memory, host } = this.#engine;
        return memory.cString(exports.sha256_end(host, this.#state));
    }

    free(): void {
        this.#engine.exports.free(this.#state);
        this.#engine.exports.free(this.#buffer);
    }
}
