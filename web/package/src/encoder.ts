/** A model's vision and audio encoders: pixels and samples to soft tokens, which take positions in a prompt. A video is
 * a list of encoded frames with their times. */
import type { Engine } from "./engine.js";
import { BezelError } from "./errors.js";
import { runJob } from "./jobs.js";
import type { Model } from "./model.js";
import type { EncoderStats } from "./options.js";

export type MediaKind = "image" | "audio" | "video";

/** Indexed by C's enum value. */
export const mediaKinds: MediaKind[] = ["image", "audio", "video"];

/** Maximum tokens of a frame of a video, as the models were trained. */
const FRAME_BUDGET = 70;

export interface EncodeOptions {
    signal?: AbortSignal;
    /** First with 0 when the input is accepted, then per step of the encoder. */
    onProgress?: (done: number, total: number) => void;
    /** The encoder's input, [rows][columns]; not called for cached media. */
    onFeatures?: (values: Float32Array, rows: number, columns: number) => void;
    /** Maximum tokens of an image. */
    budget?: number;
}

/** A handle of an encoded image, sound or video. Turns and sessions hold their own references. */
export class Media {
    readonly #engine: Engine;
    readonly address: number;
    readonly rows: number;
    readonly width: number;
    /** Of sound: more than 1 if it is longer than 30 seconds. Of a video: its frames. */
    readonly pieces: number;

    constructor(engine: Engine, address: number) {
        this.#engine = engine;
        this.address = address;
        engine.exports.media_rows(engine.host, address);
        this.rows = engine.reported(1);
        this.width = engine.reported(2);
        this.pieces = engine.reported(3);
    }

    /** [rows][width], a copy; empty for a video, whose frames have them. */
    get values(): Float32Array<ArrayBuffer> {
        const { exports, host, memory } = this.#engine;
        exports.media_rows(host, this.address);
        const at = this.#engine.reported(0);
        return memory.floats(at, at === 0 ? 0 : this.rows * this.width);
    }

    /** Another handle of the same media, freed separately. */
    held(): Media {
        return new Media(this.#engine, this.#engine.exports.media_hold(this.address));
    }

    free(): void {
        this.#engine.exports.media_free(this.address);
    }
}

export class Encoder {
    readonly #model: Model;
    readonly #address: number;

    constructor(model: Model, address: number) {
        this.#model = model;
        this.#address = address;
    }

    /** Refuses unsupported sizes before the pixels are decoded. */
    check(width: number, height: number, budget = 0): void {
        const { engine } = this.#model;
        engine.check(engine.exports.image_check(engine.host, width, height, budget));
    }

    /** `fill` writes the pixels, [height][width][3], directly into the module's memory, which avoids a second copy. */
    async encodeImage(width: number, height: number, fill: (rgb: () => Uint8Array) => void | Promise<void>, options: EncodeOptions = {}): Promise<Media> {
        this.check(width, height, options.budget);
        const { exports, host } = this.#model.engine;
        return this.#encodePixels(width, height, fill, (at) => exports.encode_image(host, this.#address, at, width, height, options.budget ?? 0), options);
    }

    /** Likewise a frame of a video. */
    async encodeFrame(width: number, height: number, fill: (rgb: () => Uint8Array) => void | Promise<void>, options: Omit<EncodeOptions, "budget"> = {}): Promise<Media> {
        this.check(width, height, FRAME_BUDGET);
        const { exports, host } = this.#model.engine;
        return this.#encodePixels(width, height, fill, (at) => exports.encode_frame(host, this.#address, at, width, height), options);
    }

    async #encodePixels(width: number, height: number, fill: (rgb: () => Uint8Array) => void | Promise<void>, begin: (at: number) => number, options: EncodeOptions): Promise<Media> {
        const { exports, memory } = this.#model.engine;
        const n = 3 * width * height;
        const at = this.#allocate(n);
        try {
            await fill(() => memory.bytes.subarray(at, at + n));
            return await this.#run(() => begin(at), options);
        } finally {
            exports.free(at);
        }
    }

    /** Frames of one size, with the times in seconds at which they are shown. They may be freed afterwards. */
    joinFrames(frames: Media[], seconds: number[]): Media {
        const { engine } = this.#model;
        const { exports, host } = engine;
        const addresses = Uint32Array.from(frames, ({ address }) => address);
        const video = engine.withBytes(new Uint8Array(addresses.buffer), (list) =>
            engine.withBytes(new Uint8Array(Float64Array.from(seconds).buffer), (times) => engine.check(exports.video_new(host, list, frames.length, times))),
        );
        return new Media(engine, video);
    }

    /** Mono samples, [samples], at `rate` Hz. */
    async encodeAudio(pcm: Float32Array, rate: number, options: EncodeOptions = {}): Promise<Media> {
        const { exports, host, memory } = this.#model.engine;
        const at = this.#allocate(pcm.byteLength);
        try {
            memory.put(at, new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));
            return await this.#run(() => exports.encode_audio(host, this.#address, at, pcm.length, rate), options);
        } finally {
            exports.free(at);
        }
    }

    #allocate(bytes: number): number {
        const at = this.#model.engine.exports.alloc(bytes) >>> 0;
        if (at === 0) {
            throw new BezelError("out_of_memory", `No memory for ${Math.ceil(bytes / 1e6)} MB of pixels or samples; use a smaller image or a shorter sound.`);
        }
        return at;
    }

    async #run(begin: () => number, options: EncodeOptions): Promise<Media> {
        const { engine, sources } = this.#model;
        const { exports, host, memory } = engine;
        const job = engine.check(begin());
        try {
            options.onProgress?.(0, 1);
            for await (const event of runJob(engine, job, sources, options.signal)) {
                if (event.kind === "progress") {
                    options.onProgress?.(event.done, event.total);
                }
            }
            exports.job_features(host, job);
            const [at, rows, columns] = [engine.reported(0), engine.reported(1), engine.reported(2)];
            if (at !== 0) {
                options.onFeatures?.(memory.floats(at, rows * columns), rows, columns);
            }
            return new Media(engine, exports.job_media(job));
        } finally {
            exports.job_free(job);
        }
    }

    get stats(): EncoderStats {
        const { engine } = this.#model;
        engine.exports.encoder_stats(engine.host, this.#address);
        return { encoded: engine.reported(0), cached: engine.reported(1) };
    }

    /** Why something was encoded on the CPU although the model is on a GPU; null: nothing was. */
    get notice(): string | null {
        const { engine } = this.#model;
        engine.exports.encoder_notice(engine.host, this.#address);
        const [at, length] = [engine.reported(0), engine.reported(1)];
        return at === 0 ? null : engine.memory.text(at, length);
    }

    /** Free it before the model. Encoded media stay valid. */
    free(): void {
        this.#model.engine.exports.encoder_free(this.#address);
    }
}
