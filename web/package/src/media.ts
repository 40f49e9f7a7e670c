/** A request's pictures and sounds, on the side of whoever asks: taken out of the messages, fetched, and sound
 * decoded, which only a page can. What is left in the messages are their numbers. */
import type { ChatRequest, Pixels } from "./chat_types.js";
import { BezelError, errorFrom } from "./errors.js";
import { bytesOfBase64, bytesOfDataUrl } from "./data_url.js";
import { soundOf, type Sound } from "./sound.js";

/** As it goes to the engine, also in a message. */
export type PortableMedia = PortablePicture | PortableSound;

export type PortablePicture = { kind: "image"; detail: "auto" | "low" | "high" } & (
    | { file: Blob }
    | { bitmap: ImageBitmap }
    | { pixels: Pixels }
);

export type PortableSound = { kind: "audio" } & Sound;

export interface Taken {
    request: ChatRequest;
    media: PortableMedia[];
    transfer: Transferable[];
}

/** Bytes of a file; nothing that people send is larger. */
const MOST_BYTES = 256 * 1024 * 1024;

const pictureTypes = ["image_url", "image", "input_image"];
const soundTypes = ["input_audio", "audio", "audio_url"];

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const isClass = (value: unknown, name: string): boolean => {
    const made = (globalThis as Fields)[name];
    return typeof made === "function" && value instanceof made;
};

/** What stands for the thing itself, not an object that has it. */
function isSource(value: unknown): boolean {
    return (
        typeof value === "string" ||
        value instanceof URL ||
        value instanceof Blob ||
        value instanceof Float32Array ||
        ["ImageBitmap", "ImageData", "AudioBuffer"].some((name) => isClass(value, name)) ||
        (isObject(value) && "width" in value && "data" in value)
    );
}

/** The part's source, and what is said beside it. */
function sourceOf(part: Fields, types: string[]): { source: unknown; beside: Fields } {
    for (const name of [String(part["type"]), ...types]) {
        const inner = part[name];
        if (isSource(inner)) {
            return { source: inner, beside: part };
        }
        if (isObject(inner)) {
            return { source: inner["url"] ?? inner["data"], beside: inner };
        }
    }
    return { source: part["url"] ?? part["data"], beside: part };
}

// ---- addresses ------------------------------------------------------------------------------------

async function fetchFile(address: string, what: string, signal: AbortSignal | undefined): Promise<Blob> {
    const page = (globalThis as { location?: Location }).location;
    const short = address.length > 100 ? `${address.slice(0, 100)}\u2026` : address;
    let url: URL;
    try {
        url = new URL(address, page?.href);
    } catch (reason) {
        throw new BezelError("bad_request", `The ${what} at '${short}' has no address that can be read.`, { cause: reason });
    }
    // Words of a conversation must not make requests to other sites.
    if (url.protocol !== "blob:" && url.origin !== page?.origin) {
        throw new BezelError("bad_request", `The ${what} at '${short}' is not of this site; fetch it yourself and give its bytes (a Blob).`);
    }
    try {
        const response = await fetch(url, signal ? { signal } : {});
        if (!response.ok) {
            throw new Error(`the server answered with status ${response.status}`);
        }
        return await response.blob();
    } catch (reason) {
        const { code, message } = errorFrom(reason, "network");
        throw code === "aborted"
            ? reason
            : new BezelError("network", `The ${what} at '${short}' could not be fetched: ${message}.`, { cause: reason });
    }
}

async function fileOf(source: string | URL, what: string, base64: boolean, signal: AbortSignal | undefined): Promise<Blob> {
    const text = String(source);
    if (/^data:/i.test(text)) {
        return new Blob([bytesOfDataUrl(text, what)]);
    }
    if (base64 && !/^(blob|https?):/i.test(text)) {
        return new Blob([bytesOfBase64(text, what)]);
    }
    return fetchFile(text, what, signal);
}

function checkBytes(file: Blob, what: string): Blob {
    if (file.size === 0) {
        throw new BezelError("bad_file", `The ${what}'s file is empty.`);
    }
    if (file.size > MOST_BYTES) {
        throw new BezelError("bad_request", `The ${what}'s file has ${Math.round(file.size / 1e6)} MB; at most ${Math.round(MOST_BYTES / 1e6)} are taken.`);
    }
    return file;
}

// ---- pictures ---------------------------------------------------------------------------------------

function checkPixels({ data, width, height }: Pixels): Pixels {
    const whole = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
    const bytes = data instanceof Uint8Array || data instanceof Uint8ClampedArray;
    if (!whole || !bytes || (data.length !== 3 * width * height && data.length !== 4 * width * height)) {
        throw new BezelError("bad_request", "Pixels are 3 or 4 bytes each (a Uint8Array), as many as width times height.");
    }
    return { data, width, height };
}

async function pictureOf(source: unknown, beside: Fields, base64: boolean, signal: AbortSignal | undefined): Promise<PortablePicture> {
    const wish = beside["detail"] ?? "auto";
    if (wish !== "auto" && wish !== "low" && wish !== "high") {
        throw new BezelError("bad_request", "A picture's detail is auto, low or high.");
    }
    const base = { kind: "image", detail: wish } as const;
    if (typeof source === "string" || source instanceof URL) {
        return { ...base, file: checkBytes(await fileOf(source, "picture", base64, signal), "picture") };
    }
    if (source instanceof Blob) {
        return { ...base, file: checkBytes(source, "picture") };
    }
    if (isClass(source, "ImageBitmap")) {
        return { ...base, bitmap: source as ImageBitmap };
    }
    if (isObject(source) && "data" in source) {
        return { ...base, pixels: checkPixels(source as unknown as Pixels) };
    }
    throw new BezelError("bad_request", "A picture is an address, a Blob, an ImageBitmap, ImageData or {data, width, height}.");
}

// ---- sounds -----------------------------------------------------------------------------------------

async function takeSound(source: unknown, beside: Fields, signal: AbortSignal | undefined): Promise<PortableSound> {
    const given =
        typeof source === "string" || source instanceof URL
            ? await fileOf(source, "sound", true, signal)
            : source;
    if (given instanceof Blob) {
        checkBytes(given, "sound");
    }
    return { kind: "audio", ...(await soundOf(given, beside["rate"] ?? beside["sampleRate"] ?? beside["sample_rate"])) };
}

// ---- the request --------------------------------------------------------------------------------------

/** Says which message an error is about. */
function about(message: number, reason: unknown): unknown {
    return reason instanceof BezelError && reason.code !== "aborted"
        ? new BezelError(reason.code, `Message ${message + 1}: ${reason.message}`, { cause: reason })
        : reason;
}

export async function takeMedia(request: ChatRequest, signal?: AbortSignal): Promise<Taken> {
    const media: PortableMedia[] = [];
    const transfer: Transferable[] = [];
    const add = (one: PortableMedia): string => {
        media.push(one);
        if (one.kind === "audio" && "pcm" in one && one.own) {
            transfer.push(one.pcm.buffer);
        }
        return String(media.length - 1);
    };
    const takePart = async (part: unknown): Promise<unknown> => {
        const type = isObject(part) ? part["type"] : null;
        if (isObject(part) && pictureTypes.includes(type as string)) {
            const { source, beside } = sourceOf(part, pictureTypes);
            return { type: "image", image: add(await pictureOf(source, beside, false, signal)) };
        }
        if (isObject(part) && soundTypes.includes(type as string)) {
            const { source, beside } = sourceOf(part, soundTypes);
            return { type: "audio", audio: add(await takeSound(source, beside, signal)) };
        }
        return part;
    };
    const takeMessage = async (message: unknown): Promise<unknown> => {
        const { content, images } = isObject(message) ? message : ({} as Fields);
        if (!Array.isArray(content) && !Array.isArray(images)) {
            return message;
        }
        const taken: Fields = { ...(message as Fields) };
        if (Array.isArray(images)) {
            const list: string[] = [];
            for (const image of images) {
                list.push(add(await pictureOf(image, {}, true, signal)));
            }
            taken["images"] = list;
        }
        if (Array.isArray(content)) {
            const parts: unknown[] = [];
            for (const part of content) {
                parts.push(await takePart(part));
            }
            taken["content"] = parts;
        }
        return taken;
    };
    if (!Array.isArray(request.messages)) {
        return { request, media, transfer }; // the engine says what is wrong with it
    }
    const messages: unknown[] = [];
    for (const [i, message] of request.messages.entries()) {
        try {
            messages.push(await takeMessage(message));
        } catch (reason) {
            throw about(i, reason);
        }
    }
    return { request: { ...request, messages } as ChatRequest, media, transfer };
}
