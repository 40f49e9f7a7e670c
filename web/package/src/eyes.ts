/** The loaded model's eyes and ears, made when they are first needed: files and pixels go in, encoded media come out,
 * each encoded once. */
import type { EncodeOptions, Encoder, Media, MediaKind } from "./encoder.js";
import { BezelError } from "./errors.js";
import type { PortableMedia, PortablePicture, PortableSound } from "./media.js";
import type { Model } from "./model.js";
import type { EncoderStats } from "./options.js";
import { openPicture, readPixels, readSize } from "./picture.js";
import { Sha256 } from "./sha256.js";

/** Pictures and sounds that are remembered: those of a long conversation come along with its every question. */
const KEEP = 32;

export interface SeeOptions {
    signal?: AbortSignal | undefined;
    /** First with 0, when nothing is left that could be refused; not at all for a file that is known. */
    onProgress: (done: number, total: number) => void;
    /** What the user should know. */
    onNotice: (text: string) => void;
}

const senses: Record<MediaKind, string> = { image: "pictures", audio: "sound" };

/** A file from disk may have gone since it was chosen. */
async function bytesOf(file: Blob): Promise<Uint8Array> {
    try {
        return new Uint8Array(await file.arrayBuffer());
    } catch (reason) {
        const name = "name" in file ? String(file.name) : "The file";
        throw new BezelError("bad_file", `${name} can no longer be read: it was moved, changed or deleted. Choose it again.`, { cause: reason });
    }
}

export class Eyes {
    readonly #model: Model;
    readonly #budget: number | null;
    #made: Encoder | null = null;
    /** By the file's sum, the one used last at the end. */
    readonly #known = new Map<string, Media>();
    #recognised = 0;
    #noticed = false;

    /** `budget`: tokens of a picture, at most; null: what the model is made for. */
    constructor(model: Model, budget: number | null) {
        this.#model = model;
        this.#budget = budget;
    }

    /** Before anything is decoded: has the model what it takes? */
    check(kinds: MediaKind[]): void {
        for (const kind of kinds) {
            if (!this.#model.takes(kind)) {
                const what = senses[kind];
                throw new BezelError(
                    "unsupported_model",
                    `This model takes no ${what}; if an mmproj file belongs to it, load both files together, else choose a model that does.`,
                );
            }
        }
    }

    /** The caller frees it. */
    async see(item: PortableMedia, options: SeeOptions): Promise<Media> {
        this.#made ??= await this.#model.newEncoder({ keep: KEEP, ...(this.#budget !== null && { budget: this.#budget }) });
        const media = await (item.kind === "image" ? this.#look(this.#made, item, options) : this.#listen(this.#made, item, options));
        const { notice } = this.#made;
        if (notice !== null && !this.#noticed) {
            this.#noticed = true;
            options.onNotice(notice);
        }
        return media;
    }

    // ---- pictures -----------------------------------------------------------------------------

    async #look(encoder: Encoder, item: PortablePicture, options: SeeOptions): Promise<Media> {
        const budget = item.detail === "auto" ? (this.#budget ?? this.#model.budgetOf("auto")) : this.#model.budgetOf(item.detail);
        const control = { budget, ...controlOf(options) };
        if ("pixels" in item) {
            const { data, width, height } = item.pixels;
            const step = data.length / (width * height);
            return encoder.encodeImage(width, height, (rgb) => {
                const to = rgb();
                for (let i = 0, at = 0; i < data.length; i += step) {
                    to[at++] = data[i] as number;
                    to[at++] = data[i + 1] as number;
                    to[at++] = data[i + 2] as number;
                }
            }, control);
        }
        if ("bitmap" in item) {
            return this.#lookAt(encoder, item.bitmap, control, false);
        }
        const key = `${budget} ${await this.#sumOf(item.file)}`;
        const known = this.#recall(key);
        if (known) {
            return known;
        }
        const size = await readSize(item.file);
        if (size) {
            encoder.check(size.width, size.height, budget);
        }
        const bitmap = await openPicture(item.file);
        try {
            return this.#remember(key, await this.#lookAt(encoder, bitmap, control, true));
        } finally {
            bitmap.close();
        }
    }

    /** `ours`: the bitmap's memory is given back as soon as its pixels are in ours. */
    #lookAt(encoder: Encoder, bitmap: ImageBitmap, control: EncodeOptions, ours: boolean): Promise<Media> {
        const read = (rgb: () => Uint8Array): void => {
            readPixels(bitmap, rgb());
            if (ours) {
                bitmap.close();
            }
        };
        return encoder.encodeImage(bitmap.width, bitmap.height, read, control);
    }

    // ---- sound ----------------------------------------------------------------------------------

    async #listen(encoder: Encoder, item: PortableSound, options: SeeOptions): Promise<Media> {
        const { pcm, rate, cut } = "wav" in item ? await this.#readWav(item.wav) : { ...item, cut: false };
        const { encoded } = encoder.stats;
        const media = await encoder.encodeAudio(pcm, rate, controlOf(options));
        const fresh = encoder.stats.encoded > encoded; // what was said once is not said with every question
        if (fresh && cut) {
            options.onNotice(`The sound is cut off: ${(pcm.length / rate).toFixed(1)} seconds of it are there.`);
        }
        if (fresh && media.pieces > 1) {
            options.onNotice(`The sound lasts longer than 30 seconds: it is taken in ${media.pieces} pieces.`);
        }
        return media;
    }

    async #readWav(file: Blob): Promise<{ pcm: Float32Array; rate: number; cut: boolean }> {
        const { engine } = this.#model;
        const { exports, host, memory } = engine;
        return engine.withBytes(await bytesOf(file), (address, length) => {
            engine.check(exports.wav_read(host, address, length));
            const [at, frames, rate, cut] = [0, 1, 2, 3].map((i) => engine.reported(i)) as [number, number, number, number];
            const pcm = memory.floats(at, frames);
            exports.free(at);
            return { pcm, rate, cut: cut !== 0 };
        });
    }

    // ---- remembering ----------------------------------------------------------------------------

    async #sumOf(file: Blob): Promise<string> {
        const bytes = await bytesOf(file);
        const sha = new Sha256(this.#model.engine);
        try {
            sha.add(bytes);
            return sha.end();
        } finally {
            sha.free();
        }
    }

    #recall(key: string): Media | null {
        const media = this.#known.get(key);
        if (!media) {
            return null;
        }
        this.#recognised++;
        this.#known.delete(key);
        this.#known.set(key, media);
        return media.held();
    }

    #remember(key: string, media: Media): Media {
        for (const [oldest, one] of this.#known) {
            if (this.#known.size < KEEP) {
                break;
            }
            this.#known.delete(oldest);
            one.free();
        }
        this.#known.set(key, media.held());
        return media;
    }

    get stats(): EncoderStats {
        const { encoded, remembered } = this.#made?.stats ?? { encoded: 0, remembered: 0 };
        return { encoded, remembered: remembered + this.#recognised };
    }

    /** Before the model. */
    free(): void {
        this.#known.forEach((media) => media.free());
        this.#known.clear();
        this.#made?.free();
        this.#made = null;
    }
}

function controlOf({ signal, onProgress }: SeeOptions): { signal?: AbortSignal; onProgress: SeeOptions["onProgress"] } {
    return { onProgress, ...(signal && { signal }) };
}
