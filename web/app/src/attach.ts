/** The attachments of the next message: read, checked, kept until it is sent. No DOM rendering here. */
import { imageSize } from "./bezel.js";
import type { ModelManager } from "./model.js";
import { Signal } from "./signal.js";
import type { MediaItem } from "./store.js";

/** Size limit of one file. */
const MAX_FILE_BYTES = 100e6;
/** The engine's limit, checked here so that the browser does not decode a huge image first. */
const MAX_PIXELS = 2 ** 26;
/** Per message. */
const MAX_ITEMS = 16;
/** Longest sound that the model encodes in one piece. */
const MAX_PIECE_SECONDS = 30;
/** Longer side of a rasterised SVG, in pixels. */
const SVG_PIXELS = 768;
/** Refusals that are shown in full; further ones are only counted. */
const MAX_SHOWN = 2;

const imageNames = /\.(jpe?g|png|gif|webp|bmp|avif|heic|heif|svg)$/i;
const soundNames = /\.(wav|mp3|m4a|aac|ogg|oga|opus|flac|weba)$/i;
const videoNames = /\.(mp4|m4v|mov|webm|mkv|ogv)$/i;

/** By MIME type, else by extension; null: none of them. */
export function kindOfFile({ type, name }: { type: string; name: string }): MediaItem["kind"] | null {
    if (type.startsWith("image/") || imageNames.test(name)) {
        return "image";
    }
    if (type.startsWith("video/") || (videoNames.test(name) && !type.startsWith("audio/"))) {
        return "video";
    }
    return type.startsWith("audio/") || soundNames.test(name) ? "audio" : null;
}

/** Duration; also checks that the browser can decode it. */
async function readSeconds(blob: Blob, name: string): Promise<number> {
    try {
        const context = new OfflineAudioContext(1, 1, 16000);
        return (await context.decodeAudioData(await blob.arrayBuffer())).duration;
    } catch {
        throw new Error(`${name} cannot be read as sound: it is damaged, or its format is not supported by this browser.`);
    }
}

async function readImage(blob: Blob, name: string): Promise<{ width: number; height: number }> {
    const header = imageSize(new Uint8Array(await blob.slice(0, 1 << 20).arrayBuffer()));
    if (header && header.width * header.height > MAX_PIXELS) {
        const size = `${header.width.toLocaleString("en")} \u00d7 ${header.height.toLocaleString("en")}`;
        throw new Error(`${name} has ${size} pixels; at most ${Math.floor(MAX_PIXELS / 1e6)} megapixels are supported, so scale it down first.`);
    }
    try {
        const bitmap = await createImageBitmap(blob);
        const { width, height } = bitmap;
        bitmap.close();
        return { width, height };
    } catch {
        throw new Error(`${name} cannot be read as an image: it is damaged, or its format is not supported by this browser.`);
    }
}

/** Also checks that the browser can decode it. */
async function readVideo(blob: Blob, name: string): Promise<Pick<MediaItem, "width" | "height" | "seconds">> {
    const video = document.createElement("video");
    const url = URL.createObjectURL(blob);
    try {
        await new Promise((resolve, reject) => {
            video.addEventListener("loadedmetadata", resolve, { once: true });
            video.addEventListener("error", reject, { once: true });
            Object.assign(video, { preload: "metadata", muted: true, src: url });
        });
        const { videoWidth: width, videoHeight: height, duration } = video;
        if (width === 0) {
            throw new Error("no pictures");
        }
        return { width, height, ...(Number.isFinite(duration) && { seconds: duration }) };
    } catch {
        throw new Error(`${name} cannot be read as a video: it is damaged, or its format is not supported by this browser.`);
    } finally {
        video.removeAttribute("src");
        URL.revokeObjectURL(url);
    }
}

/** Rasterises an SVG, which workers cannot decode; on white, as images with alpha are. */
async function rasterizeSvg(blob: Blob, name: string): Promise<Blob> {
    const image = new Image();
    const url = URL.createObjectURL(new Blob([blob], { type: "image/svg+xml" }));
    try {
        image.src = url;
        await image.decode();
        const { naturalWidth: width, naturalHeight: height } = image;
        const scale = SVG_PIXELS / Math.max(width, height);
        const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
        const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
        context.fillStyle = "#fff";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return await canvas.convertToBlob({ type: "image/png" });
    } catch {
        throw new Error(`${name} cannot be drawn: it is damaged, or has no size.`);
    } finally {
        URL.revokeObjectURL(url);
    }
}

const isSvg = ({ type, name }: { type: string; name: string }): boolean => type === "image/svg+xml" || /\.svg$/i.test(name);

/** A copy in memory, independent of later changes to the file on disk. */
async function copyOf(file: Blob, name: string): Promise<Blob> {
    if (file.size === 0 || file.size > MAX_FILE_BYTES) {
        throw new Error(file.size === 0 ? `${name} is empty.` : `${name} is too large: the limit is ${MAX_FILE_BYTES / 1e6} MB.`);
    }
    try {
        return new Blob([await file.arrayBuffer()], { type: file.type });
    } catch {
        throw new Error(`${name} could not be read: it was moved, changed or deleted.`);
    }
}

/** Where attachments go: the next message, or one being edited. */
export interface Tray {
    readonly count: number;
    put(item: MediaItem): void;
}

/** Pasted images, sounds and videos; empty if the clipboard's text should be pasted instead. */
export function pastedFiles({ clipboardData }: ClipboardEvent): File[] {
    const files = [...(clipboardData?.files ?? [])].filter((file) => kindOfFile(file));
    // Office programs add an image of copied text; file managers add the file's name as text.
    const text = clipboardData?.getData("text/plain").trim() ?? "";
    const textMatters = text !== "" && !files.some(({ name }) => name && text.includes(name));
    return textMatters ? [] : files;
}

export class Attachments {
    readonly items = new Signal<MediaItem[]>([]);
    /** A message to show: refusals, or how a long sound is processed. */
    readonly note = new Signal<string | null>(null);
    /** Number of add() calls in progress. */
    readonly busy = new Signal(0);
    readonly #models: ModelManager;
    readonly #nextMessage: Tray;

    constructor(models: ModelManager) {
        this.#models = models;
        const { items } = this;
        this.#nextMessage = {
            get count() {
                return items.value.length;
            },
            put: (item) => items.set([...items.value, item]),
        };
    }

    /** Why the model does not accept it; null: it does. */
    reasonAgainst(kind: MediaItem["kind"]): string | null {
        const info = this.#models.loaded?.info;
        const what = { image: "images", audio: "sound", video: "videos" }[kind];
        if (!info) {
            return `Load a model first: not every model takes ${what}.`;
        }
        if ({ image: info.vision, audio: info.audio, video: info.video }[kind]) {
            return null;
        }
        return `${this.#models.loadedName} takes no ${what}. If it has an mmproj file, open both files together.`;
    }

    /** Why the model does not accept the attachments, as after loading another model; null: it does. */
    get reasonAgainstItems(): string | null {
        const found = this.items.value.map(({ kind, name }) => ({ name, reason: this.reasonAgainst(kind) })).find(({ reason }) => reason);
        return found ? `${found.name} cannot be sent: ${found.reason}` : null;
    }

    /** Adds dropped, pasted or chosen files; a refused one does not stop the others. `refusals`: messages about files
     * that were refused earlier. */
    async add(files: File[], refusals: string[] = [], tray: Tray = this.#nextMessage): Promise<void> {
        this.#showRefusals(refusals);
        this.busy.set(this.busy.value + 1);
        for (const file of files) {
            try {
                await this.#addOne(file, tray);
            } catch (reason) {
                refusals = [...refusals, reason instanceof Error ? reason.message : String(reason)];
                this.#showRefusals(refusals);
            }
        }
        this.busy.set(this.busy.value - 1);
    }

    /** Without duplicates. */
    #showRefusals(refusals: string[]): void {
        const sentences = [...new Set(refusals)];
        const more = sentences.length - MAX_SHOWN;
        const summary = more > 0 ? [`${more === 1 ? "Another one was" : `${more} more were`} refused.`] : [];
        this.note.set(sentences.length > 0 ? [...sentences.slice(0, MAX_SHOWN), ...summary].join(" ") : null);
    }

    async #addOne(file: File, tray: Tray): Promise<void> {
        const kind = kindOfFile(file);
        const name = file.name || "The file";
        if (!kind) {
            throw new Error(`${name} is neither an image nor a sound nor a video.`);
        }
        const against = this.reasonAgainst(kind);
        if (against) {
            throw new Error(against);
        }
        if (tray.count >= MAX_ITEMS) {
            throw new Error(`A message can have at most ${MAX_ITEMS} images, sounds and videos.`);
        }
        const copy = await copyOf(file, name);
        const blob = isSvg(file) ? await rasterizeSvg(copy, name) : copy;
        if (kind === "image") {
            tray.put({ kind, name, blob, ...(await readImage(blob, name)) });
        } else if (kind === "video") {
            tray.put({ kind, name, blob, ...(await readVideo(blob, name)) });
        } else {
            this.addSound(blob, name, await readSeconds(blob, name), tray);
        }
    }

    /** Opens a file dialog for the kinds that the model accepts; shows a note if there are none. */
    choose(tray: Tray = this.#nextMessage): Promise<void> {
        const takes = (["image", "audio", "video"] as const).filter((kind) => !this.reasonAgainst(kind));
        if (takes.length === 0) {
            this.note.set(this.reasonAgainst("image"));
            return Promise.resolve();
        }
        const input = document.createElement("input");
        Object.assign(input, { type: "file", multiple: true, accept: takes.map((kind) => `${kind}/*`).join(",") });
        return new Promise((resolve) => {
            input.addEventListener("cancel", () => resolve());
            input.addEventListener("change", () => void this.add([...(input.files ?? [])], [], tray).then(resolve));
            input.click();
        });
    }

    /** Adds a sound of known duration. */
    addSound(blob: Blob, name: string, seconds: number, tray: Tray = this.#nextMessage): void {
        tray.put({ kind: "audio", name, blob, seconds });
        if (seconds > MAX_PIECE_SECONDS) {
            const pieces = Math.ceil(seconds / MAX_PIECE_SECONDS);
            this.note.set(`${name} is longer than ${MAX_PIECE_SECONDS} seconds: the model processes it in ${pieces} pieces.`);
        }
    }

    remove(item: MediaItem): void {
        this.note.set(null);
        this.items.set(this.items.value.filter((one) => one !== item));
    }

    /** Removes and returns all attachments, to be sent. */
    take(): MediaItem[] {
        const { value } = this.items;
        this.items.set([]);
        this.note.set(null);
        return value;
    }
}
