/** An audio worklet: posts the microphone's samples, mixed to mono, in blocks. */
declare class AudioWorkletProcessor {
    readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

const BLOCK = 2048;

class Capture extends AudioWorkletProcessor {
    #block = new Float32Array(BLOCK);
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
            this.#block[this.#filled++] = sum / channels.length;
            if (this.#filled === BLOCK) {
                this.#send();
            }
        }
        return !this.#ended;
    }

    #send(): void {
        const block = this.#block.slice(0, this.#filled);
        this.#filled = 0;
        this.port.postMessage(block, [block.buffer]);
    }
}

registerProcessor("capture", Capture);
