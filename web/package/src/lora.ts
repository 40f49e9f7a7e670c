/** A LoRA adapter: a small file that changes what a model writes. Sessions apply it beside the model's weights. */
import { BezelError } from "./errors.js";
import type { Model } from "./model.js";
import type { Source } from "./source.js";

const SLICE = 16 << 20;
/** The module's memory has 4 GiB in all. */
const MAX_BYTES = 2 ** 31;

/** Properties of an adapter's file. */
export interface LoraInfo {
    /** As the file says; "" if it does not. */
    name: string;
    /** 0: the file has none. */
    alpha: number;
    minRank: number;
    maxRank: number;
    /** Weights that it changes. */
    pairs: number;
    /** Further ones that the model never reads. */
    idle: number;
    /** Of memory. */
    bytes: number;
}

/** An adapter with its strength in a session: 1 as it was trained, 0 without effect. */
export interface LoraUse {
    lora: Lora;
    scale: number;
}

export class Lora {
    readonly model: Model;
    readonly address: number;
    readonly info: LoraInfo;

    private constructor(model: Model, address: number) {
        const { engine } = model;
        this.model = model;
        this.address = address;
        engine.exports.adapter_info(engine.host, address);
        const [name, alpha, minRank, maxRank, pairs, idle, bytes] = [0, 1, 2, 3, 4, 5, 6].map((i) => engine.reported(i)) as [
            number, number, number, number, number, number, number,
        ];
        this.info = { name: engine.memory.cString(name), alpha, minRank, maxRank, pairs, idle, bytes };
    }

    /** Reads all of the file; its bytes are in memory only during the call. */
    static async open(model: Model, source: Source, signal?: AbortSignal): Promise<Lora> {
        const { engine } = model;
        const { exports, host, memory } = engine;
        const at = source.size > MAX_BYTES ? 0 : exports.alloc(source.size);
        if (at === 0) {
            throw new BezelError("out_of_memory", `There is not enough memory for the adapter ${source.name} (${(source.size / 1e6).toFixed(0)} MB).`);
        }
        try {
            for (let offset = 0; offset < source.size; offset += SLICE) {
                signal?.throwIfAborted();
                memory.put(at + offset, await source.read(offset, Math.min(SLICE, source.size - offset)));
            }
            const address = engine.withText(source.name, (name, length) => engine.check(exports.adapter_open(host, model.address, at, source.size, name, length)));
            return new Lora(model, address);
        } finally {
            exports.free(at);
        }
    }

    /** Sessions that use it keep it. */
    free(): void {
        this.model.engine.exports.adapter_free(this.address);
    }
}
