/** Extracts a request's images, sounds and videos on the caller's side: fetches them, and decodes sound and videos, which
 * workers cannot do. The messages keep their indexes into the list of media. */
import type { ChatRequest, Pixels, VideoFrames } from "./chat_types.js";
import { BezelError, errorFrom } from "./errors.js";
import { bytesOfBase64, bytesOfDataUrl } from "./data_url.js";
import { soundOf, type Sound } from "./sound.js";
import { closeVideo, serveVideo } from "./video_file.js";

/** Media in a form that postMessage can carry. */
export type PortableMedia = PortableImage | PortableSound | PortableVideo;

export type PortableImage = { kind: "image"; detail: "auto" | "low" | "high" } & (
    | { file: Blob }
    | { bitmap: ImageBitmap }
    | { pixels: Pixels }
);

export type PortableSound = { kind: "audio" } & Sound;

/** A file with a port to its frames (video_file.ts), of which at most `most` are taken; or the frames themselves. */
export type PortableVideo = { kind: "video" } & ({ file: Blob; most: number; port: MessagePort } | { frames: PortableFrame[]; seconds: number[] });

export type PortableFrame = { file: Blob } | { bitmap: ImageBitmap } | { pixels: Pixels };

/** Ends what is still read of media. */
export function closeMedia(media: PortableMedia[]): void {
    media.forEach((item) => "port" in item && closeVideo(item.port));
}

export interface ExtractedMedia {
    request: ChatRequest;
    media: PortableMedia[];
    transfer: Transferable[];
}

const MAX_FILE_BYTES = 256 * 1024 * 1024;
/** As BZ_VIDEO_FRAMES, BZ_VIDEO_MAX_FRAMES and BZ_VIDEO_RATE. */
const VIDEO_FRAMES = 32;
const MAX_VIDEO_FRAMES = 1024;
const VIDEO_RATE = 24;

const imageTypes = ["image_url", "image", "input_image"];
const soundTypes = ["input_audio", "audio", "audio_url"];
const videoTypes = ["video_url", "video", "input_video"];

type Fields = Record<string, unknown>;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;
const isClass = (value: unknown, name: string): boolean => {
    const constructor = (globalThis as Fields)[name];
    return typeof constructor === "function" && value instanceof constructor;
};

/** Whether a value is itself an image or sound, not an object with a field for it. */
function isSource(value: unknown): boolean {
    return (
        typeof value === "string" ||
        value instanceof URL ||
        value instanceof Blob ||
        value instanceof Float32Array ||
        ["ImageBitmap", "ImageData", "AudioBuffer"].some((name) => isClass(value, name)) ||
        (isObject(value) && "width" in value && "data" in value) ||
        (isObject(value) && Array.isArray(value["frames"]))
    );
}

/** The part's source, and the object with its other fields. */
function sourceOf(part: Fields, types: string[]): { source: unknown; fields: Fields } {
    for (const name of [String(part["type"]), ...types]) {
        const inner = part[name];
        if (isSource(inner)) {
            return { source: inner, fields: part };
        }
        if (isObject(inner)) {
            return { source: inner["url"] ?? inner["data"], fields: inner };
        }
    }
    return { source: part["url"] ?? part["data"], fields: part };
}

// ---- URLs -----------------------------------------------------------------------------------------

async function fetchFile(source: string, what: string, signal: AbortSignal | undefined): Promise<Blob> {
    const page = (globalThis as { location?: Location }).location;
    const short = source.length > 100 ? `${source.slice(0, 100)}\u2026` : source;
    let url: URL;
    try {
        url = new URL(source, page?.href);
    } catch (reason) {
        throw new BezelError("bad_request", `The ${what}'s URL '${short}' is not valid.`, { cause: reason });
    }
    // The text of a conversation must not trigger requests to other origins.
    if (url.protocol !== "blob:" && url.origin !== page?.origin) {
        throw new BezelError("bad_request", `The ${what} at '${short}' is on another site; fetch it yourself and pass a Blob.`);
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
    if (file.size > MAX_FILE_BYTES) {
        throw new BezelError("bad_request", `The ${what}'s file has ${Math.round(file.size / 1e6)} MB; the limit is ${Math.round(MAX_FILE_BYTES / 1e6)} MB.`);
    }
    return file;
}

// ---- images ---------------------------------------------------------------------------------------

function checkPixels({ data, width, height }: Pixels): Pixels {
    const whole = Number.isInteger(width) && Number.isInteger(height) && width > 0 && height > 0;
    const bytes = data instanceof Uint8Array || data instanceof Uint8ClampedArray;
    if (!whole || !bytes || (data.length !== 3 * width * height && data.length !== 4 * width * height)) {
        throw new BezelError("bad_request", "Pixels must be a Uint8Array of width times height pixels with 3 or 4 bytes each.");
    }
    return { data, width, height };
}

async function imageOf(source: unknown, fields: Fields, base64: boolean, signal: AbortSignal | undefined): Promise<PortableImage> {
    const detail = fields["detail"] ?? "auto";
    if (detail !== "auto" && detail !== "low" && detail !== "high") {
        throw new BezelError("bad_request", "An image's detail must be auto, low or high.");
    }
    const base = { kind: "image", detail } as const;
    if (typeof source === "string" || source instanceof URL) {
        return { ...base, file: checkBytes(await fileOf(source, "image", base64, signal), "image") };
    }
    if (source instanceof Blob) {
        return { ...base, file: checkBytes(source, "image") };
    }
    if (isClass(source, "ImageBitmap")) {
        return { ...base, bitmap: source as ImageBitmap };
    }
    if (isObject(source) && "data" in source) {
        return { ...base, pixels: checkPixels(source as unknown as Pixels) };
    }
    throw new BezelError("bad_request", "An image must be a URL, a Blob, an ImageBitmap, ImageData or {data, width, height}.");
}

// ---- sounds -----------------------------------------------------------------------------------------

async function extractSound(source: unknown, fields: Fields, signal: AbortSignal | undefined): Promise<PortableSound> {
    const loaded =
        typeof source === "string" || source instanceof URL
            ? await fileOf(source, "sound", true, signal)
            : source;
    if (loaded instanceof Blob) {
        checkBytes(loaded, "sound");
    }
    return { kind: "audio", ...(await soundOf(loaded, fields["rate"] ?? fields["sampleRate"] ?? fields["sample_rate"])) };
}

// ---- videos -------------------------------------------------------------------------------------------

function frameOf(frame: unknown): PortableFrame {
    if (frame instanceof Blob) {
        return { file: checkBytes(frame, "frame") };
    }
    if (isClass(frame, "ImageBitmap")) {
        return { bitmap: frame as ImageBitmap };
    }
    if (isObject(frame) && "data" in frame) {
        return { pixels: checkPixels(frame as unknown as Pixels) };
    }
    throw new BezelError("bad_request", "A frame of a video must be a Blob, an ImageBitmap, ImageData or {data, width, height}.");
}

function framesOf({ frames, seconds, fps = VIDEO_RATE }: VideoFrames): PortableVideo {
    if (!(typeof fps === "number" && fps > 0) || (seconds !== undefined && seconds.length !== frames.length)) {
        throw new BezelError("bad_request", "A video's frames have one time each in seconds, or fps, a number above 0.");
    }
    const times = seconds ? Array.from(seconds, Number) : frames.map((_, i) => i / fps);
    if (!times.every((time) => time >= 0 && Number.isFinite(time))) {
        throw new BezelError("bad_request", "The times of a video's frames are from 0 on, in seconds.");
    }
    return { kind: "video", frames: frames.map(frameOf), seconds: times };
}

async function videoOf(source: unknown, fields: Fields, signal: AbortSignal | undefined): Promise<PortableVideo> {
    if (isObject(source) && Array.isArray(source["frames"])) {
        return framesOf(source as unknown as VideoFrames);
    }
    const most = Array.isArray(fields["frames"]) ? VIDEO_FRAMES : (fields["frames"] ?? VIDEO_FRAMES);
    if (typeof most !== "number" || !Number.isInteger(most) || most < 1 || most > MAX_VIDEO_FRAMES) {
        throw new BezelError("bad_request", `A video's frames are a whole number from 1 to ${MAX_VIDEO_FRAMES}, or a list of frames.`);
    }
    const file = typeof source === "string" || source instanceof URL ? await fileOf(source, "video", false, signal) : source;
    if (!(file instanceof Blob)) {
        throw new BezelError("bad_request", "A video must be a URL, a Blob or {frames, seconds}.");
    }
    if (typeof document === "undefined") {
        throw new BezelError("bad_request", "Video files can only be decoded on a page: pass frames, as {frames, seconds}.");
    }
    return { kind: "video", file: checkBytes(file, "video"), most, port: serveVideo(file, most) };
}

// ---- the request --------------------------------------------------------------------------------------

/** Adds the message's number to an error. */
function inMessage(message: number, reason: unknown): unknown {
    return reason instanceof BezelError && reason.code !== "aborted"
        ? new BezelError(reason.code, `Message ${message + 1}: ${reason.message}`, { cause: reason })
        : reason;
}

export async function extractMedia(request: ChatRequest, signal?: AbortSignal): Promise<ExtractedMedia> {
    const media: PortableMedia[] = [];
    const transfer: Transferable[] = [];
    const add = (item: PortableMedia): string => {
        media.push(item);
        if (item.kind === "audio" && "pcm" in item && item.owned) {
            transfer.push(item.pcm.buffer);
        }
        if ("port" in item) {
            transfer.push(item.port);
        }
        return String(media.length - 1);
    };
    const extractPart = async (part: unknown): Promise<unknown> => {
        const type = isObject(part) ? part["type"] : null;
        if (isObject(part) && imageTypes.includes(type as string)) {
            const { source, fields } = sourceOf(part, imageTypes);
            return { type: "image", image: add(await imageOf(source, fields, false, signal)) };
        }
        if (isObject(part) && soundTypes.includes(type as string)) {
            const { source, fields } = sourceOf(part, soundTypes);
            return { type: "audio", audio: add(await extractSound(source, fields, signal)) };
        }
        if (isObject(part) && videoTypes.includes(type as string)) {
            const { source, fields } = sourceOf(part, videoTypes);
            return { type: "video", video: add(await videoOf(source, fields, signal)) };
        }
        return part;
    };
    const extractMessage = async (message: unknown): Promise<unknown> => {
        const { content, images } = isObject(message) ? message : ({} as Fields);
        if (!Array.isArray(content) && !Array.isArray(images)) {
            return message;
        }
        const copy: Fields = { ...(message as Fields) };
        if (Array.isArray(images)) {
            const list: string[] = [];
            for (const image of images) {
                list.push(add(await imageOf(image, {}, true, signal)));
            }
            copy["images"] = list;
        }
        if (Array.isArray(content)) {
            const parts: unknown[] = [];
            for (const part of content) {
                parts.push(await extractPart(part));
            }
            copy["content"] = parts;
        }
        return copy;
    };
    if (!Array.isArray(request.messages)) {
        return { request, media, transfer }; // the engine reports what is wrong
    }
    const messages: unknown[] = [];
    for (const [i, message] of request.messages.entries()) {
        try {
            messages.push(await extractMessage(message));
        } catch (reason) {
            closeMedia(media);
            throw inMessage(i, reason);
        }
    }
    return { request: { ...request, messages } as ChatRequest, media, transfer };
}
