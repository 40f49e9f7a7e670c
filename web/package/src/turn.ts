/** A turn of a conversation: C renders its prompt and parses its answer. */
import { mediaKinds, type Media, type MediaKind } from "./encoder.js";
import type { Engine } from "./engine.js";
import { finishes, type Finish } from "./options.js";
import type { Session } from "./session.js";

export type PartKind = "thinking" | "answer" | "callBegin" | "call" | "brokenCall" | "end";

export interface Part {
    kind: PartKind;
    /** callBegin: the function's name; call: {"name", "arguments"} as JSON. */
    text: string;
}

const partKinds: (PartKind | null)[] = [null, "thinking", "answer", "callBegin", "call", "brokenCall", "end"];

/** Usage: attach the media, prefill, push every generated token, then push -1. */
export class Turn {
    readonly #engine: Engine;
    readonly address: number;

    constructor(engine: Engine, address: number) {
        this.#engine = engine;
        this.address = address;
    }

    /** In prompt order; `source` as in the request. */
    get media(): { kind: MediaKind; source: string }[] {
        const { exports, host, memory } = this.#engine;
        return Array.from({ length: exports.turn_media(this.address) }, (_, i) => {
            const kind = mediaKinds[exports.turn_media_source(host, this.address, i)] ?? "image";
            return { kind, source: memory.text(this.#engine.reported(0), this.#engine.reported(1)) };
        });
    }

    attach(index: number, media: Media): void {
        const { exports, host } = this.#engine;
        this.#engine.check(exports.turn_attach(host, this.address, index, media.address));
    }

    /** Leaves out the oldest turns if there is no room for an answer in the session's context, unless the request forbids
     * it. How many messages; their media are no longer in the list. Once, when all media are attached. */
    fit(session: Session): number {
        const { exports, host } = this.#engine;
        const messages = exports.turn_fit(host, this.address, session.address);
        if (messages < 0) {
            throw this.#engine.lastError();
        }
        return messages;
    }

    /** Valid once all media are attached. */
    get prompt(): Int32Array {
        const { exports, host, memory } = this.#engine;
        exports.turn_prompt(host, this.address);
        return memory.int32s(this.#engine.reported(0), this.#engine.reported(1));
    }

    get snapshotAt(): number {
        this.#engine.exports.turn_prompt(this.#engine.host, this.address);
        return this.#engine.reported(2);
    }

    /** The parts that the token completes; token -1 ends the turn. "end" is the last part. */
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

    /** Why the answer ended; `generated`: why its tokens ended. */
    finish(generated: Finish): Finish {
        return finishes[this.#engine.exports.turn_finish(this.address, finishes.indexOf(generated))] ?? "none";
    }

    free(): void {
        this.#engine.exports.turn_free(this.address);
    }
}
