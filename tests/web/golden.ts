/** Reads tests/golden like the C tests: tensors of a golden.gguf, entries of synth/manifest.txt. */
import { readBytes } from "./platform.js";

export const goldenFolder = "build/golden";
export const modelFolder = "build/models";

interface TensorInfo {
    offset: number;
    count: number;
    /** In GGUF order, innermost first. */
    shape: number[];
}

/** A GGUF file of tensors; its metadata is skipped. */
export class Golden {
    readonly #bytes: Uint8Array<ArrayBuffer>;
    readonly #tensors = new Map<string, TensorInfo>();

    private constructor(bytes: Uint8Array<ArrayBuffer>) {
        this.#bytes = bytes;
        const view = new DataView(bytes.buffer);
        const decoder = new TextDecoder();
        let at = 8;
        const u32 = (): number => view.getUint32((at += 4) - 4, true);
        const u64 = (): number => Number(view.getBigUint64((at += 8) - 8, true));
        const text = (): string => {
            const n = u64();
            return decoder.decode(bytes.subarray(at, (at += n)));
        };
        const sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
        const skip = (type: number): void => {
            if (type === 8) {
                text();
            } else if (type === 9) {
                const item = u32();
                for (let n = u64(); n > 0; n--) {
                    skip(item);
                }
            } else {
                at += sizes[type] ?? 0;
            }
        };
        const nTensors = u64();
        for (let n = u64(); n > 0; n--) {
            text();
            skip(u32());
        }
        for (let i = 0; i < nTensors; i++) {
            const name = text();
            const shape = Array.from({ length: u32() }, u64);
            u32();
            this.#tensors.set(name, { offset: u64(), count: shape.reduce((a, b) => a * b, 1), shape });
        }
        const data = Math.ceil(at / 32) * 32;
        this.#tensors.forEach((place) => (place.offset += data));
    }

    static async open(path: string): Promise<Golden> {
        return new Golden(await readBytes(path));
    }

    #slice(name: string): ArrayBuffer | null {
        const place = this.#tensors.get(name);
        return place ? this.#bytes.buffer.slice(place.offset, place.offset + 4 * place.count) : null;
    }

    /** [height][width][3] */
    image(name: string): { data: Uint8Array<ArrayBuffer>; width: number; height: number } {
        const { offset, count, shape } = this.#tensors.get(name) as TensorInfo;
        return { data: this.#bytes.slice(offset, offset + count), width: shape[1] ?? 0, height: shape[2] ?? 0 };
    }

    /** 16-bit samples as floats from -1 to 1. */
    sound(name: string): Float32Array<ArrayBuffer> {
        const { offset, count } = this.#tensors.get(name) as TensorInfo;
        return Float32Array.from(new Int16Array(this.#bytes.buffer.slice(offset, offset + 2 * count)), (x) => x / 32768);
    }

    floats(name: string): Float32Array {
        return new Float32Array(this.#slice(name) ?? new ArrayBuffer(0));
    }

    ints(name: string): Int32Array | null {
        const slice = this.#slice(name);
        return slice && new Int32Array(slice);
    }
}

export interface Synth {
    name: string;
    preset: string;
    answer: string;
    vocab: number;
    tokens: Int32Array;
    stride: number;
    /** llama.cpp's error on the same values. */
    peerRms: number;
    peerMedian: number;
}

export async function readSynth(): Promise<Synth[]> {
    const text = new TextDecoder().decode(await readBytes(`${goldenFolder}/synth/manifest.txt`));
    const entries: Synth[] = [];
    for (const line of text.split("\n")) {
        const [key, ...rest] = line.split(" ");
        const last = entries.at(-1);
        if (key === "model") {
            const [name = "", , preset = "", , vocab = ""] = rest;
            const empty = { answer: name, tokens: new Int32Array(), stride: 1, peerRms: 0, peerMedian: 0 };
            entries.push({ name, preset, vocab: Number(vocab), ...empty });
        } else if (last && key === "answer") {
            last.answer = rest[0] ?? "";
        } else if (last && key === "tokens") {
            last.tokens = Int32Array.from(rest, Number);
        } else if (last && key === "stride") {
            last.stride = Number(rest[0]);
        } else if (last && key === "peer_rms") {
            last.peerRms = Number(rest[2]);
        } else if (last && key === "peer_median") {
            last.peerMedian = Number(rest[2]);
        }
    }
    return entries;
}

/** Expected logits 0, stride, 2 * stride, ... at every position, [tokens][columns]. */
export async function readAnswer(entry: Synth): Promise<Float32Array> {
    return new Float32Array((await readBytes(`${goldenFolder}/synth/${entry.answer}.all.f32`)).buffer);
}

/** Selects from logits [tokens][vocabulary] those that readAnswer returns. */
export function sampled(entry: Synth, all: Float32Array): Float32Array {
    const columns = Math.ceil(entry.vocab / entry.stride);
    return Float32Array.from({ length: entry.tokens.length * columns }, (_, i) => {
        const row = Math.floor(i / columns);
        return all[row * entry.vocab + (i % columns) * entry.stride] ?? NaN;
    });
}

/** The error with rounded activations, as a multiple of llama.cpp's error on the same file. For MoE models the median
 * row is used, because a different expert choice changes a whole row. */
export function errorRatio(entry: Synth, got: Float32Array, want: Float32Array): number {
    const columns = Math.ceil(entry.vocab / entry.stride);
    const squares = want.map((x, i) => ((got[i] ?? NaN) - x) ** 2);
    const mean = (x: Float32Array): number => x.reduce((sum, value) => sum + value, 0) / x.length;
    if (!entry.preset.includes("moe")) {
        return Math.sqrt(mean(squares)) / entry.peerRms;
    }
    const rows = Array.from(entry.tokens, (_, t) =>
        Math.sqrt(mean(squares.subarray(t * columns, (t + 1) * columns))),
    );
    rows.sort((a, b) => a - b);
    const middle = [rows[(rows.length - 1) >> 1] ?? NaN, rows[rows.length >> 1] ?? NaN];
    return ((middle[0] ?? NaN) + (middle[1] ?? NaN)) / 2 / entry.peerMedian;
}
