/** Runs beside the page, in the audio thread: samples of the microphone as they come, one channel, in pieces. */
declare class AudioWorkletProcessor {
    readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

const PIECE = 2048;

class Capture extends AudioWorkletProcessor {
    #piece = new Float32Array(PIECE);
    #filled = 0;
    #ended = false;

    constructor() {
        super();
        this.port.onmessage = () => {
            this.#send();
            this.port.postMessage("end");
            this.#ended = true;
        };
    }

    process([channels = []]: Float32Array[][]): boolean {
        const length = channels[0]?.length ?? 0;
        for (let i = 0; i < length && !this.#ended; i++) {
            let sum = 0;
            for (const channel of channels) {
                sum += channel[i] ?? 0;
            }
            this.#piece[this.#filled++] = sum / channels.length;
            if (this.#filled === PIECE) {
                this.#send();
            }
        }
        return !this.#ended;
    }

    #send(): void {
        const piece = this.#piece.slice(0, this.#filled);
        this.#filled = 0;
        this.port.postMessage(piece, [piece.buffer]);
    }
}

registerProcessor("capture", Capture);
