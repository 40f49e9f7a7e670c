/** Reads frames of a video file with a <video> element, on the page: workers have none. The engine's side asks for one
 * frame at a time, so that only one is in memory, and for none if it has encoded the video before.
 *
 *   from the engine:  { open }   { frame }
 *   from the page:    { seconds }   { bitmap }   { code, message } */
import { abortedBy, BezelError, errorFrom, type ErrorCode } from "./errors.js";

/** Frames per second that are assumed of a short video, to take no frame twice. As BZ_VIDEO_RATE. */
const ASSUMED_RATE = 24;
/** A frame's time may be rounded down in the file. */
const PAST_BEGIN_SECONDS = 0.001;
/** A player of a recording without a length finds it when it is sent to its end. */
const FAR_SECONDS = 1e9;

export type ToPage = { open: true } | { frame: number };
export type FromPage = { seconds: number[] } | { bitmap: ImageBitmap } | { code: ErrorCode; message: string };

function unreadable(name: string, cause?: unknown): BezelError {
    return new BezelError("bad_file", `${name} cannot be read as a video: it is damaged, or its format is not supported by this browser.`, { cause });
}

/** Waits for an event of the player. */
function once(video: HTMLVideoElement, type: string, name: string): Promise<void> {
    return new Promise((resolve, reject) => {
        video.addEventListener(type, () => resolve(), { once: true });
        video.addEventListener("error", () => reject(unreadable(name, video.error)), { once: true });
    });
}

/** When the frames are shown that are taken: evenly spread from the first one on, as the models were trained. */
export function frameTimes(duration: number, most: number): number[] {
    const count = Math.max(1, Math.min(most, Math.floor(duration * ASSUMED_RATE + 1e-6)));
    return Array.from({ length: count }, (_, i) => (i * duration) / count);
}

export class VideoFile {
    readonly #video: HTMLVideoElement;
    readonly #name: string;
    readonly seconds: number[];

    private constructor(video: HTMLVideoElement, name: string, seconds: number[]) {
        this.#video = video;
        this.#name = name;
        this.seconds = seconds;
    }

    static async open(file: Blob, most: number): Promise<VideoFile> {
        const name = "name" in file ? String(file.name) : "The video";
        const video = document.createElement("video");
        Object.assign(video, { muted: true, playsInline: true, preload: "auto" });
        const loaded = once(video, "loadeddata", name);
        video.src = URL.createObjectURL(file);
        try {
            await loaded;
            if (!Number.isFinite(video.duration)) {
                const found = once(video, "seeked", name);
                video.currentTime = FAR_SECONDS;
                await found;
            }
            const duration = Number.isFinite(video.duration) ? video.duration : video.currentTime;
            if (video.videoWidth === 0) {
                throw new BezelError("bad_file", `${name} has no pictures; if it is a sound, send it as one.`);
            }
            return new VideoFile(video, name, frameTimes(duration, most));
        } catch (reason) {
            release(video);
            throw reason;
        }
    }

    get size(): { width: number; height: number; duration: number } {
        const { videoWidth: width, videoHeight: height, duration } = this.#video;
        return { width, height, duration };
    }

    async frame(index: number): Promise<ImageBitmap> {
        const video = this.#video;
        const shown = once(video, "seeked", this.#name);
        video.currentTime = (this.seconds[index] ?? 0) + PAST_BEGIN_SECONDS;
        await shown;
        return createImageBitmap(video).catch((reason: unknown) => {
            throw unreadable(this.#name, reason);
        });
    }

    close(): void {
        release(this.#video);
    }
}

function release(video: HTMLVideoElement): void {
    URL.revokeObjectURL(video.src);
    video.removeAttribute("src");
    video.load();
}

/** A port that answers with the frames of a file. */
export function serveVideo(file: Blob, most: number): MessagePort {
    const { port1, port2 } = new MessageChannel();
    let opened: Promise<VideoFile> | null = null;
    const answer = async (request: ToPage): Promise<void> => {
        try {
            opened ??= VideoFile.open(file, most);
            const video = await opened;
            if ("open" in request) {
                port1.postMessage({ seconds: video.seconds } satisfies FromPage);
            } else {
                const bitmap = await video.frame(request.frame);
                port1.postMessage({ bitmap } satisfies FromPage, [bitmap]);
            }
        } catch (reason) {
            const { code, message } = errorFrom(reason, "bad_file");
            port1.postMessage({ code, message } satisfies FromPage);
        }
    };
    const end = (): void => {
        port1.close();
        void opened?.then((video) => video.close(), () => undefined);
    };
    port1.onmessage = ({ data }: MessageEvent<ToPage | { close: true }>) => {
        if ("close" in data) {
            end();
        } else {
            void answer(data);
        }
    };
    return port2;
}

// ---- on the engine's side -----------------------------------------------------------------------------

/** Asks a page for frames, one after the other. */
export class RemoteVideo {
    readonly #port: MessagePort;
    readonly #signal: AbortSignal | undefined;

    constructor(port: MessagePort, signal: AbortSignal | undefined) {
        this.#port = port;
        this.#signal = signal;
    }

    #ask(request: ToPage): Promise<FromPage> {
        const signal = this.#signal;
        return new Promise((resolve, reject) => {
            const stop = (): void => reject(abortedBy(signal as AbortSignal));
            signal?.addEventListener("abort", stop, { once: true });
            this.#port.onmessage = ({ data }: MessageEvent<FromPage>) => {
                signal?.removeEventListener("abort", stop);
                if ("code" in data) {
                    reject(new BezelError(data.code, data.message));
                } else {
                    resolve(data);
                }
            };
            if (signal?.aborted) {
                stop();
            } else {
                this.#port.postMessage(request);
            }
        });
    }

    async open(): Promise<number[]> {
        return ((await this.#ask({ open: true })) as { seconds: number[] }).seconds;
    }

    async frame(index: number): Promise<ImageBitmap> {
        return ((await this.#ask({ frame: index })) as { bitmap: ImageBitmap }).bitmap;
    }
}

/** Ends the reading, whether it has begun or not. */
export function closeVideo(port: MessagePort): void {
    port.postMessage({ close: true });
    port.close();
}
