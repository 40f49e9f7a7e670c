/** Encodes a request's images, sounds and videos on the engine's side: decodes files, creates the encoder on first use, and
 * caches by content. */
import type { EncodeOptions, Encoder, Media, MediaKind } from "./encoder.js";
import type { Pixels } from "./chat_types.js";
import { BezelError } from "./errors.js";
import type { PortableFrame, PortableImage, PortableMedia, PortableSound, PortableVideo } from "./request_media.js";
import type { Model } from "./model.js";
import type { EncoderStats } from "./options.js";
import { onWhite, openImage, readPixels, readSize } from "./image.js";
import { Sha256 } from "./sha256.js";
import { RemoteVideo } from "./video_file.js";

/** Cached images and sounds: every request of a conversation contains all of its media again. */
const MAX_CACHED = 32;
/** Into which the progress of a video counts each frame. */
const FRAME_STEPS = 100;

export interface MediaOptions {
    signal?: AbortSignal | undefined;
    /** First with 0 once the input is accepted; not called for a cached file. */
    onProgress: (done: number, total: number) => void;
    /** A sentence to show to the user. */
    onNotice: (text: string) => void;
}

const kindNames: Record<MediaKind, string> = { image: "images", audio: "sound", video: "videos" };

/** Writes pixels with 3 or 4 bytes each. */
function copyPixels({ data, width, height }: Pixels, to: Uint8Array): void {
    const step = data.length / (width * height);
    for (let i = 0, at = 0; i < data.length; i += step) {
        const alpha = step === 4 ? (data[i + 3] as number) : 255;
        to[at++] = onWhite(data[i] as number, alpha);
        to[at++] = onWhite(data[i + 1] as number, alpha);
        to[at++] = onWhite(data[i + 2] as number, alpha);
    }
}

/** Fails if the file was removed since it was chosen. */
async function readBytes(file: Blob): Promise<Uint8Array> {
    try {
        return new Uint8Array(await file.arrayBuffer());
    } catch (reason) {
        const name = "name" in file ? String(file.name) : "The file";
        throw new BezelError("bad_file", `${name} can no longer be read: it was moved, changed or deleted. Choose it again.`, { cause: reason });
    }
}

export class MediaEncoder {
    readonly #model: Model;
    readonly #budget: number | null;
    #encoder: Encoder | null = null;
    /** By budget and SHA-256 of the file, least recently used first. */
    readonly #cache = new Map<string, Media>();
    #cacheHits = 0;
    #noticeSent = false;

    /** `budget`: maximum tokens of an image; null: the model's default. */
    constructor(model: Model, budget: number | null) {
        this.#model = model;
        this.#budget = budget;
    }

    /** Refuses media that the model does not support, before anything is decoded. */
    check(kinds: MediaKind[]): void {
        for (const kind of kinds) {
            if (!this.#model.takes(kind)) {
                throw new BezelError(
                    "unsupported_model",
                    `This model takes no ${kindNames[kind]}; if it has an mmproj file, load both files together, else choose a model that does.`,
                );
            }
        }
    }

    /** The caller frees the result. */
    async encode(item: PortableMedia, options: MediaOptions): Promise<Media> {
        this.#encoder ??= await this.#model.newEncoder({ keep: MAX_CACHED, ...(this.#budget !== null && { budget: this.#budget }) });
        const media = await this.#encodeOne(this.#encoder, item, options);
        const { notice } = this.#encoder;
        if (notice !== null && !this.#noticeSent) {
            this.#noticeSent = true;
            options.onNotice(notice);
        }
        return media;
    }

    #encodeOne(encoder: Encoder, item: PortableMedia, options: MediaOptions): Promise<Media> {
        switch (item.kind) {
            case "image":
                return this.#encodeImage(encoder, item, options);
            case "audio":
                return this.#encodeSound(encoder, item, options);
            case "video":
                return this.#encodeVideo(encoder, item, options);
        }
    }

    // ---- images -----------------------------------------------------------------------------

    async #encodeImage(encoder: Encoder, item: PortableImage, options: MediaOptions): Promise<Media> {
        const budget = item.detail === "auto" ? (this.#budget ?? this.#model.budgetOf("auto")) : this.#model.budgetOf(item.detail);
        const control = { budget, ...toEncodeOptions(options) };
        if ("pixels" in item) {
            const { pixels } = item;
            return encoder.encodeImage(pixels.width, pixels.height, (rgb) => copyPixels(pixels, rgb()), control);
        }
        if ("bitmap" in item) {
            return this.#encodeBitmap(encoder, item.bitmap, control, false);
        }
        const key = `${budget} ${await this.#digestOf(item.file)}`;
        const cached = this.#find(key);
        if (cached) {
            return cached;
        }
        const size = await readSize(item.file);
        if (size) {
            encoder.check(size.width, size.height, budget);
        }
        const bitmap = await openImage(item.file);
        try {
            return this.#store(key, await this.#encodeBitmap(encoder, bitmap, control, true));
        } finally {
            bitmap.close();
        }
    }

    /** `owned`: the bitmap is closed as soon as its pixels have been copied. */
    #encodeBitmap(encoder: Encoder, bitmap: ImageBitmap, control: EncodeOptions, owned: boolean): Promise<Media> {
        const read = (rgb: () => Uint8Array): void => {
            readPixels(bitmap, rgb());
            if (owned) {
                bitmap.close();
            }
        };
        return encoder.encodeImage(bitmap.width, bitmap.height, read, control);
    }

    // ---- videos ---------------------------------------------------------------------------------

    async #encodeVideo(encoder: Encoder, item: PortableVideo, options: MediaOptions): Promise<Media> {
        if ("frames" in item) {
            const { frames, seconds } = item;
            return this.#encodeFrames(encoder, seconds, (i) => Promise.resolve(frames[i] as PortableFrame), options);
        }
        const key = `video ${item.most} ${await this.#digestOf(item.file)}`;
        const cached = this.#find(key);
        if (cached) {
            return cached;
        }
        const video = new RemoteVideo(item.port, options.signal);
        const seconds = await video.open();
        return this.#store(key, await this.#encodeFrames(encoder, seconds, async (i) => ({ bitmap: await video.frame(i), owned: true }), options));
    }

    async #encodeFrames(encoder: Encoder, seconds: number[], read: (i: number) => Promise<PortableFrame & { owned?: boolean }>, options: MediaOptions): Promise<Media> {
        const frames: Media[] = [];
        try {
            for (const i of seconds.keys()) {
                const onProgress = (done: number, total: number): void => options.onProgress(Math.round(FRAME_STEPS * (i + done / total)), FRAME_STEPS * seconds.length);
                frames.push(await this.#encodeFrame(encoder, await read(i), toEncodeOptions({ ...options, onProgress })));
            }
            return encoder.joinFrames(frames, seconds);
        } finally {
            frames.forEach((frame) => frame.free());
        }
    }

    async #encodeFrame(encoder: Encoder, frame: PortableFrame & { owned?: boolean }, control: EncodeOptions): Promise<Media> {
        if ("pixels" in frame) {
            const { pixels } = frame;
            return encoder.encodeFrame(pixels.width, pixels.height, (rgb) => copyPixels(pixels, rgb()), control);
        }
        const owned = "file" in frame || frame.owned === true;
        const bitmap = "file" in frame ? await openImage(frame.file) : frame.bitmap;
        try {
            return await encoder.encodeFrame(bitmap.width, bitmap.height, (rgb) => readPixels(bitmap, rgb()), control);
        } finally {
            if (owned) {
                bitmap.close();
            }
        }
    }

    // ---- sound ----------------------------------------------------------------------------------

    async #encodeSound(encoder: Encoder, item: PortableSound, options: MediaOptions): Promise<Media> {
        const { pcm, rate, cut } = "wav" in item ? await this.#readWav(item.wav) : { ...item, cut: false };
        const { encoded } = encoder.stats;
        const media = await encoder.encodeAudio(pcm, rate, toEncodeOptions(options));
        const fresh = encoder.stats.encoded > encoded; // send notices only once, not with every request of the conversation
        if (fresh && cut) {
            options.onNotice(`The sound file is truncated: only ${(pcm.length / rate).toFixed(1)} seconds of it can be used.`);
        }
        if (fresh && media.pieces > 1) {
            options.onNotice(`The sound is longer than 30 seconds: it is processed in ${media.pieces} pieces.`);
        }
        return media;
    }

    async #readWav(file: Blob): Promise<{ pcm: Float32Array; rate: number; cut: boolean }> {
        const { engine } = this.#model;
        const { exports, host, memory } = engine;
        return engine.withBytes(await readBytes(file), (address, length) => {
            engine.check(exports.wav_read(host, address, length));
            const [at, frames, rate, cut] = [0, 1, 2, 3].map((i) => engine.reported(i)) as [number, number, number, number];
            const pcm = memory.floats(at, frames);
            exports.free(at);
            return { pcm, rate, cut: cut !== 0 };
        });
    }

    // ---- cache ----------------------------------------------------------------------------------

    async #digestOf(file: Blob): Promise<string> {
        const bytes = await readBytes(file);
        const sha = new Sha256(this.#model.engine);
        try {
            sha.add(bytes);
            return sha.end();
        } finally {
            sha.free();
        }
    }

    #find(key: string): Media | null {
        const media = this.#cache.get(key);
        if (!media) {
            return null;
        }
        this.#cacheHits++;
        this.#cache.delete(key);
        this.#cache.set(key, media);
        return media.held();
    }

    #store(key: string, media: Media): Media {
        for (const [oldest, old] of this.#cache) {
            if (this.#cache.size < MAX_CACHED) {
                break;
            }
            this.#cache.delete(oldest);
            old.free();
        }
        this.#cache.set(key, media.held());
        return media;
    }

    get stats(): EncoderStats {
        const { encoded, cached } = this.#encoder?.stats ?? { encoded: 0, cached: 0 };
        return { encoded, cached: cached + this.#cacheHits };
    }

    /** Free it before the model. */
    free(): void {
        this.#cache.forEach((media) => media.free());
        this.#cache.clear();
        this.#encoder?.free();
        this.#encoder = null;
    }
}

function toEncodeOptions({ signal, onProgress }: MediaOptions): { signal?: AbortSignal; onProgress: MediaOptions["onProgress"] } {
    return { onProgress, ...(signal && { signal }) };
}
