/** The microphone: recorded as samples, never compressed, and kept as a WAV file, which every browser plays and the
 * engine reads itself. Nothing here draws. */
import { Signal } from "./signal.js";

export type RecorderState =
    | { kind: "idle" }
    /** The browser asks the user. */
    | { kind: "asking" }
    | { kind: "recording"; seconds: number; levels: number[] };

export interface Recording {
    blob: Blob;
    seconds: number;
}

/** A recording that nobody stops ends by itself. */
const MOST_SECONDS = 300;
/** Shorter ones are slips of the finger. */
const LEAST_SECONDS = 0.3;
/** Loudness of the last moments, for a meter. */
export const LEVELS = 32;
/** Below this nothing was said. */
const SILENCE = 1e-4;

/** Peaks below this are lifted to it, as far as noise allows. */
const QUIET = 0.4;
const MOST_GAIN = 20;

function whyNot(reason: unknown): string {
    const name = reason instanceof DOMException ? reason.name : "";
    if (name === "NotAllowedError" || name === "SecurityError") {
        return "The browser does not let this page hear the microphone. Allow it beside the address, then try again.";
    }
    if (name === "NotFoundError" || name === "OverconstrainedError") {
        return "There is no microphone here. Connect one, or attach a sound file.";
    }
    if (name === "NotReadableError" || name === "AbortError") {
        return "The microphone cannot be used: another program may have it.";
    }
    return `The microphone cannot be used: ${reason instanceof Error ? reason.message : String(reason)}.`;
}

/** A faint recording is made louder as a whole. */
function gainFor(pieces: Float32Array[]): number {
    const peak = pieces.reduce((most, piece) => piece.reduce((a, x) => Math.max(a, Math.abs(x)), most), 0);
    return peak > 0 && peak < QUIET ? Math.min(MOST_GAIN, QUIET / peak) : 1;
}

/** 16 bits, one channel. */
function wavOf(pieces: Float32Array[], rate: number): Blob {
    const gain = gainFor(pieces);
    const n = pieces.reduce((sum, { length }) => sum + length, 0);
    const view = new DataView(new ArrayBuffer(44 + 2 * n));
    const text = (at: number, value: string): void => [...value].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    text(0, "RIFF");
    view.setUint32(4, 36 + 2 * n, true);
    text(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true); // whole numbers
    view.setUint16(22, 1, true); // one channel
    view.setUint32(24, rate, true);
    view.setUint32(28, 2 * rate, true);
    view.setUint16(32, 2, true);
    view.setUint16(34, 16, true);
    text(36, "data");
    view.setUint32(40, 2 * n, true);
    let at = 44;
    for (const piece of pieces) {
        for (const x of piece) {
            view.setInt16(at, Math.max(-32768, Math.min(32767, Math.round(gain * x * 32768))), true);
            at += 2;
        }
    }
    return new Blob([view.buffer], { type: "audio/wav" });
}

export class Recorder {
    readonly state = new Signal<RecorderState>({ kind: "idle" });
    /** Why there is nothing, or null. */
    readonly problem = new Signal<string | null>(null);
    /** It ended by itself: too long, or the microphone went away. */
    onEnd: () => void = () => undefined;
    #context: AudioContext | null = null;
    #stream: MediaStream | null = null;
    #node: AudioWorkletNode | null = null;
    #pieces: Float32Array[] = [];
    #levels: number[] = [];
    #loudest = 0;
    /** Counts attempts: what an earlier one still waits for is not this one's. */
    #attempt = 0;

    async start(): Promise<void> {
        if (this.state.value.kind !== "idle") {
            return;
        }
        const attempt = ++this.#attempt;
        this.problem.set(null);
        const devices = navigator.mediaDevices as MediaDevices | undefined;
        if (!devices?.getUserMedia || typeof AudioWorkletNode === "undefined") {
            this.problem.set(
                window.isSecureContext
                    ? "This browser cannot record sound; attach a sound file instead."
                    : "Browsers give the microphone only to pages served by https; attach a sound file instead.",
            );
            return;
        }
        this.state.set({ kind: "asking" });
        try {
            // As the microphone hears it: what browsers do for telephone calls bends speech.
            const stream = await devices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
            if (attempt !== this.#attempt) {
                stream.getTracks().forEach((track) => track.stop());
                return; // cancelled meanwhile
            }
            this.#stream = stream;
            await this.#connect(stream, attempt);
        } catch (reason) {
            if (attempt === this.#attempt) {
                this.#release();
                this.problem.set(whyNot(reason));
            }
        }
    }

    async #connect(stream: MediaStream, attempt: number): Promise<void> {
        const context = new AudioContext();
        this.#context = context;
        await context.audioWorklet.addModule(new URL("./capture.js", import.meta.url));
        await context.resume();
        if (attempt !== this.#attempt) {
            return;
        }
        const node = new AudioWorkletNode(context, "capture", { numberOfOutputs: 1 });
        context.createMediaStreamSource(stream).connect(node).connect(context.destination); // of silence, which keeps it running
        this.#node = node;
        this.#pieces = [];
        this.#levels = [];
        this.#loudest = 0;
        node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => {
            if (this.#node === node) {
                this.#take(data, context.sampleRate);
            }
        };
        stream.getAudioTracks().forEach((track) => (track.onended = () => this.onEnd()));
        this.#tell(context.sampleRate);
    }

    get #samples(): number {
        return this.#pieces.reduce((sum, { length }) => sum + length, 0);
    }

    #take(piece: Float32Array, rate: number): void {
        this.#pieces.push(piece);
        const loudness = Math.sqrt(piece.reduce((sum, x) => sum + x * x, 0) / Math.max(1, piece.length));
        this.#loudest = Math.max(this.#loudest, loudness);
        // From a whisper (-60 dB) to full.
        this.#levels.push(Math.max(0, Math.min(1, 1 + Math.log10(loudness + 1e-9) / 3)));
        this.#levels = this.#levels.slice(-LEVELS);
        this.#tell(rate);
        if (this.#samples / rate >= MOST_SECONDS) {
            this.onEnd();
        }
    }

    #tell(rate: number): void {
        this.state.set({ kind: "recording", seconds: this.#samples / rate, levels: this.#levels });
    }

    /** What was recorded; null: too little of it, and `problem` says so. */
    async stop(): Promise<Recording | null> {
        const [context, node] = [this.#context, this.#node];
        if (this.state.value.kind !== "recording" || !context || !node) {
            this.cancel();
            return null;
        }
        const rate = context.sampleRate;
        await new Promise<void>((resolve) => {
            const enough = setTimeout(resolve, 500);
            node.port.onmessage = ({ data }: MessageEvent<Float32Array | "end">) => {
                if (data === "end") {
                    clearTimeout(enough);
                    resolve();
                } else {
                    this.#pieces.push(data);
                }
            };
            node.port.postMessage("end");
        });
        const [pieces, seconds, loudest] = [this.#pieces, this.#samples / rate, this.#loudest];
        this.cancel();
        if (seconds < LEAST_SECONDS || loudest < SILENCE) {
            this.problem.set(seconds < LEAST_SECONDS ? "The recording was too short." : "Nothing was heard: the microphone may be muted.");
            return null;
        }
        return { blob: wavOf(pieces, rate), seconds };
    }

    /** Gives the microphone back and forgets what was recorded. */
    cancel(): void {
        this.#attempt++;
        this.#release();
    }

    #release(): void {
        this.#stream?.getTracks().forEach((track) => {
            track.onended = null;
            track.stop();
        });
        void this.#context?.close().catch(() => undefined);
        this.#stream = null;
        this.#context = null;
        this.#node = null;
        this.#pieces = [];
        this.state.set({ kind: "idle" });
    }
}
