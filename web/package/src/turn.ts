/** A turn of a conversation: C renders its prompt and takes its answer apart. */
import { mediaKinds, type Media, type MediaKind } from "./encoder.js";
import type { Engine } from "./engine.js";

export type PartKind = "thinking" | "answer" | "callBegin" | "call" | "brokenCall" | "end";

export interface Part {
    kind: PartKind;
    /** Of a call: its name, then {"name", "arguments"} as JSON. */
    text: string;
}

const partKinds: (PartKind | null)[] = [null, "thinking", "answer", "callBegin", "call", "brokenCall", "end"];

/** From a request to the last word of its answer: attach its pictures and sounds, prefill, push every token, then -1. */
export class Turn {
    readonly #engine: Engine;
    readonly address: number;
    /** In the order of the prompt; `source` is what the request says. */
    readonly media: { kind: MediaKind; source: string }[];

    constructor(engine: Engine, address: number) {
        const { exports, host, memory } = engine;
        this.#engine = engine;
        this.address = address;
        this.media = Array.from({ length: exports.turn_media(address) }, (_, i) => {
            const kind = mediaKinds[exports.turn_media_source(host, address, i)] ?? "image";
            return { kind, source: memory.text(engine.reported(0), engine.reported(1)) };
        });
    }

    attach(index: number, media: Media): void {
        const { exports, host } = this.#engine;
        this.#engine.check(exports.turn_attach(host, this.address, index, media.address));
    }

    /** Once all media are attached. */
    get prompt(): Int32Array {
        const { exports, host, memory } = this.#engine;
        exports.turn_prompt(host, this.address);
        return memory.int32s(this.#engine.reported(0), this.#engine.reported(1));
    }

    get snapshotAt(): number {
        this.#engine.exports.turn_prompt(this.#engine.host, this.address);
        return this.#engine.reported(2);
    }

    /** What the token completes; token -1 ends the turn. After "end" nothing more comes. */
    push(token: number): Part[] {
        const { exports, host } = this.#engine;
        this.#engine.check(exports.turn_push(host, this.address, token));
        const parts: Part[] = [];
        for (;;) {
            const kind = partKinds[exports.turn_next(host, this.address)];
            if (!kind) {
                return parts;
            }
            parts.push({
                kind,
                text: this.#engine.memory.text(this.#engine.reported(0), this.#engine.reported(1)),
            });
        }
    }

    free(): void {
        this.#engine.exports.turn_free(this.address);
    }
}
