/** A loaded model: tokenization, and creation of sessions, encoders and turns. */
import { Embedder } from "./embedder.js";
import { Encoder, mediaKinds, type MediaKind } from "./encoder.js";
import type { Engine } from "./engine.js";
import type { EmbedderOptions, EncoderOptions, SessionOptions } from "./options.js";
import { Session } from "./session.js";
import type { Source } from "./source.js";
import { Turn } from "./turn.js";

export class Model {
    readonly engine: Engine;
    readonly address: number;
    /** Read again when the GPU is lost, so they stay open as long as the model. */
    readonly sources: Source[];

    constructor(engine: Engine, address: number, sources: Source[]) {
        this.engine = engine;
        this.address = address;
        this.sources = sources;
    }

    /** Name of the text model's file, or of its first part. */
    get name(): string {
        return this.sources[this.engine.exports.model_main(this.address)]?.name ?? "model";
    }

    get vocab(): number {
        return this.engine.exports.model_vocab(this.address);
    }

    get context(): number {
        return this.engine.exports.model_context(this.address);
    }

    tokenize(text: string, options: { specials?: boolean; bos?: boolean } = {}): Int32Array {
        const { engine } = this;
        const { exports, host } = engine;
        return engine.withText(text, (address, length) => {
            const n = exports.tokenize(
                host,
                this.address,
                address,
                length,
                Number(options.specials ?? false),
                Number(options.bos ?? false),
            );
            if (n < 0) {
                throw engine.lastError();
            }
            return engine.memory.int32s(engine.reported(0), n);
        });
    }

    /** Detokenizes, in whole characters. Control tokens produce text only with `showControl`. */
    textOf(tokens: Iterable<number>, showControl = false): string {
        const { engine } = this;
        const { exports, host, memory } = engine;
        const stream = engine.check(exports.stream_new());
        let text = "";
        for (const token of [...tokens, -1]) {
            const length = exports.stream_push(host, stream, this.address, token, Number(showControl));
            text += memory.text(engine.reported(0), length);
        }
        exports.free(stream);
        return text;
    }

    /** A token's bytes in the vocabulary; may be part of a character. */
    pieceOf(token: number): Uint8Array {
        const { exports, host, memory } = this.engine;
        exports.token_piece(host, this.address, token);
        const address = this.engine.reported(0);
        return memory.slice(address, this.engine.reported(1));
    }

    endsAnswer(token: number): boolean {
        return this.engine.exports.token_ends(this.address, token) !== 0;
    }

    async newSession(options: SessionOptions = {}): Promise<Session> {
        const { engine } = this;
        const free = (await engine.threads?.reserve()) ?? 0;
        const session = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(engine.exports.session_new(engine.host, this.address, address, length)),
        );
        return new Session(this, session, 1 + free - (engine.threads?.free ?? 0));
    }

    /** Whether it is a diffusion model. */
    get diffusion(): boolean {
        return this.engine.exports.model_canvas(this.address) !== 0;
    }

    /** Whether it was opened with a drafter. */
    get drafts(): boolean {
        return this.engine.exports.model_drafts(this.address) !== 0;
    }

    /** Whether it accepts images or sound. */
    takes(kind: MediaKind): boolean {
        return this.engine.exports.model_takes(this.address, mediaKinds.indexOf(kind)) !== 0;
    }

    /** Maximum tokens of an image for OpenAI's `detail`. */
    budgetOf(detail: "auto" | "low" | "high"): number {
        return this.engine.exports.model_budget(this.address, ["auto", "low", "high"].indexOf(detail));
    }

    /** The model's vision and audio encoders. */
    async newEncoder(options: EncoderOptions = {}): Promise<Encoder> {
        const { engine } = this;
        await engine.threads?.reserve();
        const encoder = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(engine.exports.encoder_new(engine.host, this.address, address, length)),
        );
        return new Encoder(this, encoder);
    }

    /** Numbers of a text's vector; 0: it writes text instead. */
    get embedding(): number {
        return this.engine.exports.model_embedding(this.address);
    }

    async newEmbedder(options: EmbedderOptions = {}): Promise<Embedder> {
        const { engine } = this;
        const free = (await engine.threads?.reserve()) ?? 0;
        const embedder = engine.withText(JSON.stringify(options), (address, length) =>
            engine.check(engine.exports.embedder_new(engine.host, this.address, address, length)),
        );
        return new Embedder(this, embedder, 1 + free - (engine.threads?.free ?? 0));
    }

    /** A turn of a conversation, from a request in OpenAI's or Ollama's format. */
    newTurn(request: object): Turn {
        const { engine } = this;
        const turn = engine.withText(JSON.stringify(request), (address, length) =>
            engine.check(engine.exports.turn_new(engine.host, this.address, address, length)),
        );
        return new Turn(engine, turn);
    }

    /** Free its sessions, encoders and embedders first. */
    free(): void {
        this.engine.exports.model_free(this.address);
    }
}
