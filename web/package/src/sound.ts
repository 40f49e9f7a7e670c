/** Sound on its way to the engine. WAV files go as they are: C reads them, the same as natively. All else is the browser's
 * to decode, on the page, since workers cannot. */
import { BezelError } from "./errors.js";
import { isPlainWav, rateOfFile } from "./sound_header.js";

export type Sound =
    | { wav: Blob }
    /** One channel. `own`: nobody else looks at the samples, so they may be moved. */
    | { pcm: Float32Array<ArrayBuffer>; rate: number; own: boolean };

/** Bytes that tell of what kind a file is. */
const HEAD = 65536;

interface Channels {
    readonly numberOfChannels: number;
    readonly length: number;
    readonly sampleRate: number;
    getChannelData(channel: number): Float32Array;
}

/** The mean of all channels, as C makes it. */
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
        throw new BezelError("bad_request", `${name} cannot be decoded here: give a WAV file, or samples as {data: Float32Array, rate}.`);
    }
    // At its own rate, so that C does all the resampling.
    const context = new OfflineAudioContext(1, 1, rateOfFile(head) ?? 48000);
    let buffer: AudioBuffer;
    try {
        buffer = await context.decodeAudioData(await file.arrayBuffer());
    } catch (reason) {
        throw new BezelError("bad_file", `${name} cannot be read as sound: it is damaged, or of a kind that this browser does not know.`, { cause: reason });
    }
    return { pcm: toMono(buffer), rate: buffer.sampleRate, own: true };
}

export async function soundOf(source: unknown, rate: unknown): Promise<Sound> {
    if (source instanceof Float32Array) {
        if (typeof rate !== "number" || !(rate > 0)) {
            throw new BezelError("bad_request", "Samples need their rate: {data: Float32Array, rate: 16000}.");
        }
        return { pcm: source as Float32Array<ArrayBuffer>, rate, own: false };
    }
    if (typeof AudioBuffer !== "undefined" && source instanceof AudioBuffer) {
        return { pcm: toMono(source), rate: source.sampleRate, own: true };
    }
    if (source instanceof Blob) {
        const head = new Uint8Array(await source.slice(0, HEAD).arrayBuffer());
        return isPlainWav(head) ? { wav: source } : decode(source, head);
    }
    throw new BezelError("bad_request", "A sound is base64, an address, a Blob, an AudioBuffer or {data: Float32Array, rate}.");
}
