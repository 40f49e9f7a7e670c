/** Pictures and sounds that go with the next message: taken in, looked at, kept until it is sent. Nothing here draws. */
import { sizeOfPicture } from "./bezel.js";
import type { ModelKeeper } from "./model.js";
import { Signal } from "./signal.js";
import type { MediaItem } from "./store.js";

/** Of one file. */
const MOST_BYTES = 100e6;
/** The engine's own limit; asked here so that a browser does not decode a gigabyte before it is told. */
const MOST_PIXELS = 2 ** 26;
/** With one message; more would hardly fit into a conversation. */
const MOST_ITEMS = 16;
/** Seconds that the model hears in one piece. */
const PIECE = 30;
/** Of a drawing without a size of its own: the longer side, in pixels. */
const DRAWN = 768;
/** Refusals that are told in full; of more, how many there are. */
const TOLD = 2;

const pictureNames = /\.(jpe?g|png|gif|webp|bmp|avif|heic|heif|svg)$/i;
const soundNames = /\.(wav|mp3|m4a|aac|ogg|oga|opus|flac|weba)$/i;

/** By what the system says it is, else by its name; null: neither. */
export function kindOfFile({ type, name }: { type: string; name: string }): MediaItem["kind"] | null {
    if (type.startsWith("image/") || pictureNames.test(name)) {
        return "image";
    }
    return type.startsWith("audio/") || soundNames.test(name) ? "audio" : null;
}

/** How long it is, which also tells that it can be heard. */
async function readSeconds(blob: Blob, name: string): Promise<number> {
    try {
        const context = new OfflineAudioContext(1, 1, 16000);
        return (await context.decodeAudioData(await blob.arrayBuffer())).duration;
    } catch {
        throw new Error(`${name} cannot be read as sound: it is damaged, or of a kind that this browser does not know.`);
    }
}

async function readPicture(blob: Blob, name: string): Promise<{ width: number; height: number }> {
    const said = sizeOfPicture(new Uint8Array(await blob.slice(0, 1 << 20).arrayBuffer()));
    if (said && said.width * said.height > MOST_PIXELS) {
        const size = `${said.width.toLocaleString("en")} \u00d7 ${said.height.toLocaleString("en")}`;
        throw new Error(`${name} has ${size} pixels; at most ${Math.floor(MOST_PIXELS / 1e6)} megapixels are taken, so make it smaller first.`);
    }
    try {
        const bitmap = await createImageBitmap(blob);
        const { width, height } = bitmap;
        bitmap.close();
        return { width, height };
    } catch {
        throw new Error(`${name} cannot be read as a picture: it is damaged, or of a kind that this browser does not know.`);
    }
}

/** A drawing as pixels: the engine's own thread has nothing that draws. On white, as it is meant; alpha would be dropped. */
async function drawn(blob: Blob, name: string): Promise<Blob> {
    const image = new Image();
    const url = URL.createObjectURL(new Blob([blob], { type: "image/svg+xml" }));
    try {
        image.src = url;
        await image.decode();
        const { naturalWidth: width, naturalHeight: height } = image;
        const scale = DRAWN / Math.max(width, height);
        const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale)));
        const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
        context.fillStyle = "#fff";
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return await canvas.convertToBlob({ type: "image/png" });
    } catch {
        throw new Error(`${name} cannot be drawn: it is damaged, or says no size.`);
    } finally {
        URL.revokeObjectURL(url);
    }
}

const isDrawing = ({ type, name }: { type: string; name: string }): boolean => type === "image/svg+xml" || /\.svg$/i.test(name);

/** A copy, which stays when the file on disk changes or goes. */
async function copyOf(file: Blob, name: string): Promise<Blob> {
    if (file.size === 0 || file.size > MOST_BYTES) {
        throw new Error(file.size === 0 ? `${name} is empty.` : `${name} is too large: at most ${MOST_BYTES / 1e6} MB are taken.`);
    }
    try {
        return new Blob([await file.arrayBuffer()], { type: file.type });
    } catch {
        throw new Error(`${name} could not be read: it was moved, changed or deleted.`);
    }
}

/** Where what is taken in goes: the next message, or one that is being changed. */
export interface Tray {
    readonly count: number;
    put(item: MediaItem): void;
}

/** Pictures and sounds that are pasted; none where the words beside them are what is meant. */
export function pastedFiles({ clipboardData }: ClipboardEvent): File[] {
    const files = [...(clipboardData?.files ?? [])].filter((file) => kindOfFile(file));
    // Office programs add a picture of the words that are copied; file managers, words that are the file's name.
    const words = clipboardData?.getData("text/plain").trim() ?? "";
    const wordsMatter = words !== "" && !files.some(({ name }) => name && words.includes(name));
    return wordsMatter ? [] : files;
}

export class Attachments {
    readonly items = new Signal<MediaItem[]>([]);
    /** What to tell: a refusal, or what will be done with a sound. */
    readonly note = new Signal<string | null>(null);
    /** Files being read. */
    readonly busy = new Signal(0);
    readonly #models: ModelKeeper;
    readonly #next: Tray;

    constructor(models: ModelKeeper) {
        this.#models = models;
        const { items } = this;
        this.#next = {
            get count() {
                return items.value.length;
            },
            put: (item) => items.set([...items.value, item]),
        };
    }

    /** Why the model cannot take it; null: it can. */
    reasonAgainst(kind: MediaItem["kind"]): string | null {
        const facts = this.#models.loaded?.facts;
        const what = kind === "image" ? "pictures" : "sound";
        if (!facts) {
            return `Load a model first: not every one takes ${what}.`;
        }
        if (kind === "image" ? facts.vision : facts.audio) {
            return null;
        }
        return `${this.#models.loadedName} takes no ${what}. If an mmproj file belongs to it, open both files together.`;
    }

    /** Why the model cannot take what is attached, as after a change of the model; null: it can. */
    get against(): string | null {
        const found = this.items.value.map(({ kind, name }) => ({ name, reason: this.reasonAgainst(kind) })).find(({ reason }) => reason);
        return found ? `${found.name} cannot be sent: ${found.reason}` : null;
    }

    /** Files of a drop, of the clipboard or from disk. One that is refused does not keep the others out.
     * `refusals`: what is to be told about others that came with them. */
    async add(files: File[], refusals: string[] = [], tray: Tray = this.#next): Promise<void> {
        this.#tell(refusals);
        this.busy.set(this.busy.value + 1);
        for (const file of files) {
            try {
                await this.#addOne(file, tray);
            } catch (reason) {
                refusals = [...refusals, reason instanceof Error ? reason.message : String(reason)];
                this.#tell(refusals);
            }
        }
        this.busy.set(this.busy.value - 1);
    }

    /** Each sentence once. */
    #tell(refusals: string[]): void {
        const sentences = [...new Set(refusals)];
        const more = sentences.length - TOLD;
        const rest = more > 0 ? [`${more === 1 ? "Another one was" : `${more} more were`} refused.`] : [];
        this.note.set(sentences.length > 0 ? [...sentences.slice(0, TOLD), ...rest].join(" ") : null);
    }

    async #addOne(file: File, tray: Tray): Promise<void> {
        const kind = kindOfFile(file);
        const name = file.name || "The file";
        if (!kind) {
            throw new Error(`${name} is neither a picture nor a sound.`);
        }
        const against = this.reasonAgainst(kind);
        if (against) {
            throw new Error(against);
        }
        if (tray.count >= MOST_ITEMS) {
            throw new Error(`A message takes ${MOST_ITEMS} pictures and sounds at most.`);
        }
        const copy = await copyOf(file, name);
        const blob = isDrawing(file) ? await drawn(copy, name) : copy;
        if (kind === "image") {
            tray.put({ kind, name, blob, ...(await readPicture(blob, name)) });
        } else {
            this.addSound(blob, name, await readSeconds(blob, name), tray);
        }
    }

    /** Asks for files, of kinds that the model takes; one that takes none says so. */
    choose(tray: Tray = this.#next): Promise<void> {
        const takes = (["image", "audio"] as const).filter((kind) => !this.reasonAgainst(kind));
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

    /** One whose length is known, as of a recording. */
    addSound(blob: Blob, name: string, seconds: number, tray: Tray = this.#next): void {
        tray.put({ kind: "audio", name, blob, seconds });
        if (seconds > PIECE) {
            const pieces = Math.ceil(seconds / PIECE);
            this.note.set(`${name} lasts longer than ${PIECE} seconds: the model hears it in ${pieces} pieces.`);
        }
    }

    remove(item: MediaItem): void {
        this.note.set(null);
        this.items.set(this.items.value.filter((one) => one !== item));
    }

    /** All of them, for the message that is sent. */
    take(): MediaItem[] {
        const { value } = this.items;
        this.items.set([]);
        this.note.set(null);
        return value;
    }
}
