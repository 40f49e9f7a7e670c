/** Decodes sound for the engine. WAV files are passed on unchanged: C reads them, as it does natively. All other formats
 * are decoded by the browser, on the page, since workers cannot. */
import { BezelError } from "./errors.js";
import { isPlainWav, rateOfFile } from "./sound_header.js";

export type Sound =
    | { wav: Blob }
    /** Mono. `owned`: the caller has no reference to the samples, so they may be transferred. */
    | { pcm: Float32Array<ArrayBuffer>; rate: number; owned: boolean };

/** Bytes that are read to detect the format. */
const HEADER_BYTES = 65536;

interface Channels {
    readonly numberOfChannels: number;
    readonly length: number;
    readonly sampleRate: number;
    getChannelData(channel: number): Float32Array;
}

/** The mean of all channels, as C computes it. */
function toMono(buffer: Channels): Float32Array<ArrayBuffer> {
    const { length, numberOfChannels: n } = buffer;
    const mono = new Float32Array(length);
    for (let channel = 0; channel < n; channel++) {
        const samples = buffer.getChannelData(channel);
        for (let i = 0; i < length; i++) {
            mono[i] = (mono[i] ?? 0) + (samples[i] ?? 0) / n;
        }
    }
    return mono;
}

async function decode(file: Blob, head: Uint8Array): Promise<Sound> {
    const name = "name" in file ? String(file.name) : "The sound";
    if (typeof OfflineAudioContext === "undefined") {
        throw new BezelError("bad_request", `${name} cannot be decoded here: pass a WAV file, or samples as {data: Float32Array, rate}.`);
    }
    // At the file's own rate, so that C does all the resampling.
    const context = new OfflineAudioContext(1, 1, rateOfFile(head) ?? 48000);
    let buffer: AudioBuffer;
    try {
        buffer = await context.decodeAudioData(await file.arrayBuffer());
    } catch (reason) {
        throw new BezelError("bad_file", `${name} cannot be read as sound: it is damaged, or its format is not supported by this browser.`, { cause: reason });
    }
    return { pcm: toMono(buffer), rate: buffer.sampleRate, owned: true };
}

export async function soundOf(source: unknown, rate: unknown): Promise<Sound> {
    if (source instanceof Float32Array) {
        if (typeof rate !== "number" || !(rate > 0)) {
            throw new BezelError("bad_request", "Samples need a rate: {data: Float32Array, rate: 16000}.");
        }
        return { pcm: source as Float32Array<ArrayBuffer>, rate, owned: false };
    }
    if (typeof AudioBuffer !== "undefined" && source instanceof AudioBuffer) {
        return { pcm: toMono(source), rate: source.sampleRate, owned: true };
    }
    if (source instanceof Blob) {
        const head = new Uint8Array(await source.slice(0, HEADER_BYTES).arrayBuffer());
        return isPlainWav(head) ? { wav: source } : decode(source, head);
    }
    throw new BezelError("bad_request", "A sound must be base64, a URL, a Blob, an AudioBuffer or {data: Float32Array, rate}.");
}
