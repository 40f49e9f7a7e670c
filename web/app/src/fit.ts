/** Whether a model of a certain size fits this device, from what the browser says before anything is downloaded. */
import type { Capabilities } from "./bezel.js";
import { formatBytes } from "./format.js";

export interface Fit {
    /** "unknown": browsers do not say how much memory a GPU has. */
    verdict: "fits" | "unknown" | "not";
    /** A sentence. */
    because: string;
}

/** Without a GPU all weights are in WebAssembly's memory (web/package/src/service.ts). */
export const MAX_ON_CPU = 3.5e9;
/** Part of a machine's memory that a model can have beside the system and the browser. */
const USABLE = 0.7;
/** Browsers report at most this much memory, in GB. */
const MAX_REPORTED = 8;
/** Buffers for the conversation and for computing. */
const WORK = 0.5e9;

/** `text`, `media`: bytes of the text model and of its separate encoders. */
export function fitOf({ text, media }: { text: number; media: number }, { webgpu, adapter, deviceMemory, storage, opfs }: Capabilities): Fit {
    const bytes = text + media;
    const free = storage ? storage.quota - storage.usage : Infinity;
    if (opfs && bytes > free) {
        return { verdict: "not", because: `It needs ${formatBytes(bytes)} of storage, and this browser allows the page ${formatBytes(Math.max(0, free))} more.` };
    }
    const onGpu = webgpu && adapter !== null && !adapter.software;
    if (!onGpu) {
        const why = webgpu ? "WebGPU found no usable GPU" : "this browser has no WebGPU";
        if (text > MAX_ON_CPU) {
            return { verdict: "not", because: `Here ${why}, and on the CPU a model may have at most ${formatBytes(MAX_ON_CPU)}.` };
        }
        return bytes > MAX_ON_CPU
            ? { verdict: "fits", because: `On the CPU, as ${why}: slowly, and only without images and sound.` }
            : { verdict: "fits", because: `On the CPU, as ${why}: slowly.` };
    }
    const needed = bytes + WORK;
    if (deviceMemory !== null && deviceMemory < MAX_REPORTED && needed > USABLE * 1e9 * deviceMemory) {
        return { verdict: "not", because: `It needs about ${formatBytes(needed)} of memory, and this machine has about ${deviceMemory} GB.` };
    }
    if (needed <= USABLE * 1e9 * (deviceMemory ?? 0)) {
        return { verdict: "fits", because: `It needs about ${formatBytes(needed)} of memory, and this machine has at least ${deviceMemory} GB.` };
    }
    return { verdict: "unknown", because: `It needs about ${formatBytes(needed)} of memory; browsers do not say how much a GPU has.` };
}
