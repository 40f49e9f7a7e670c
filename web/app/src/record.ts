/** Records the microphone as uncompressed samples into a WAV file, which every browser plays and the engine reads
 * itself. No DOM rendering here. */
import { Signal } from "./signal.js";

export type RecorderState =
    | { kind: "idle" }
    /** The browser is asking for permission. */
    | { kind: "asking" }
    | { kind: "recording"; seconds: number; levels: number[] };

export interface Recording {
    blob: Blob;
    seconds: number;
}

/** Longer recordings are ended automatically. */
const MAX_SECONDS = 300;
/** Shorter recordings are discarded as accidental. */
const MIN_SECONDS = 0.3;
/** Bars of the level meter. */
export const LEVELS = 32;
/** Recordings below this RMS level are discarded as silent. */
const SILENCE_RMS = 1e-4;

/** Recordings with a lower peak are amplified to it, by at most MAX_GAIN. */
const TARGET_PEAK = 0.4;
const MAX_GAIN = 20;

function explainMicrophoneError(reason: unknown): string {
    const name = reason instanceof DOMException ? reason.name : "";
    if (name === "NotAllowedError" || name === "SecurityError") {
        return "The browser does not let this page use the microphone. Allow it in the address bar, then try again.";
    }
    if (name === "NotFoundError" || name === "OverconstrainedError") {
        return "No microphone was found. Connect one, or attach a sound file.";
    }
    if (name === "NotReadableError" || name === "AbortError") {
        return "The microphone cannot be used: another program may be using it.";
    }
    return `The microphone cannot be used: ${reason instanceof Error ? reason.message : String(reason)}.`;
}

function gainFor(pieces: Float32Array[]): number {
    const peak = pieces.reduce((max, piece) => piece.reduce((a, x) => Math.max(a, Math.abs(x)), max), 0);
    return peak > 0 && peak < TARGET_PEAK ? Math.min(MAX_GAIN, TARGET_PEAK / peak) : 1;
}

/** A WAV file, 16-bit mono. */
function wavOf(pieces: Float32Array[], rate: number): Blob {
    const gain = gainFor(pieces);
    const n = pieces.reduce((sum, { length }) => sum + length, 0);
    const view = new DataView(new ArrayBuffer(44 + 2 * n));
    const text = (at: number, value: string): void => [...value].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    text(0, "RIFF");
    view.setUint32(4, 36 + 2 * n, true);
    text(8, "WAVEfmt ");
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true); // PCM
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
    /** Why recording failed; null: no problem. */
    readonly problem = new Signal<string | null>(null);
    /** Called when recording must end: too long, or the microphone was disconnected. */
    onEnd: () => void = () => undefined;
    #context: AudioContext | null = null;
    #stream: MediaStream | null = null;
    #node: AudioWorkletNode | null = null;
    #pieces: Float32Array[] = [];
    #levels: number[] = [];
    #loudest = 0;
    /** Identifies the current attempt, so that a cancelled one does not continue. */
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
                    : "Browsers allow the microphone only on pages served over https; attach a sound file instead.",
            );
            return;
        }
        this.state.set({ kind: "asking" });
        try {
            // Unprocessed: the browsers' filters for calls distort speech.
            const stream = await devices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
            if (attempt !== this.#attempt) {
                stream.getTracks().forEach((track) => track.stop());
                return; // cancelled in the meantime
            }
            this.#stream = stream;
            await this.#connect(stream, attempt);
        } catch (reason) {
            if (attempt === this.#attempt) {
                this.#release();
                this.problem.set(explainMicrophoneError(reason));
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
        context.createMediaStreamSource(stream).connect(node).connect(context.destination); // outputs silence; the connection keeps the node running
        this.#node = node;
        this.#pieces = [];
        this.#levels = [];
        this.#loudest = 0;
        node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => {
            if (this.#node === node) {
                this.#addBlock(data, context.sampleRate);
            }
        };
        stream.getAudioTracks().forEach((track) => (track.onended = () => this.onEnd()));
        this.#updateState(context.sampleRate);
    }

    get #samples(): number {
        return this.#pieces.reduce((sum, { length }) => sum + length, 0);
    }

    #addBlock(piece: Float32Array, rate: number): void {
        this.#pieces.push(piece);
        const loudness = Math.sqrt(piece.reduce((sum, x) => sum + x * x, 0) / Math.max(1, piece.length));
        this.#loudest = Math.max(this.#loudest, loudness);
        // -60 dB to 0 dB as 0 to 1.
        this.#levels.push(Math.max(0, Math.min(1, 1 + Math.log10(loudness + 1e-9) / 3)));
        this.#levels = this.#levels.slice(-LEVELS);
        this.#updateState(rate);
        if (this.#samples / rate >= MAX_SECONDS) {
            this.onEnd();
        }
    }

    #updateState(rate: number): void {
        this.state.set({ kind: "recording", seconds: this.#samples / rate, levels: this.#levels });
    }

    /** Ends the recording; null: too short or silent, see `problem`. */
    async stop(): Promise<Recording | null> {
        const [context, node] = [this.#context, this.#node];
        if (this.state.value.kind !== "recording" || !context || !node) {
            this.cancel();
            return null;
        }
        const rate = context.sampleRate;
        await new Promise<void>((resolve) => {
            const timeout = setTimeout(resolve, 500); // in case the worklet does not answer
            node.port.onmessage = ({ data }: MessageEvent<Float32Array | "end">) => {
                if (data === "end") {
                    clearTimeout(timeout);
                    resolve();
                } else {
                    this.#pieces.push(data);
                }
            };
            node.port.postMessage("end");
        });
        const [pieces, seconds, loudest] = [this.#pieces, this.#samples / rate, this.#loudest];
        this.cancel();
        if (seconds < MIN_SECONDS || loudest < SILENCE_RMS) {
            this.problem.set(seconds < MIN_SECONDS ? "The recording was too short." : "The recording is silent: the microphone may be muted.");
            return null;
        }
        return { blob: wavOf(pieces, rate), seconds };
    }

    /** Releases the microphone and discards the recording. */
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
