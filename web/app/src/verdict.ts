/** What is known of a model before it is loaded, in words. */
import type { Capabilities, Inspection } from "./bezel.js";
import { formatBytes, formatCount } from "./format.js";
import type { Settings } from "./store.js";

export interface Verdict {
    /** [name, value] */
    facts: [string, string][];
    /** Lengths that a conversation may have, with the memory that all of it takes then. */
    lengths: { context: number; bytes: number }[];
    /** Of them, what is taken if nobody says anything. */
    usual: number;
    /** Where it will run. */
    place: string;
    /** What to expect, if that is not what one would wish. */
    warning: string;
}

const PROCESSOR = "the processor";

/** "Q4_K, Q6_K": what most of the bytes are written in, most first. */
function typesOf({ types, bytes }: Inspection): string {
    const large = types.filter((one) => one.bytes > 0.04 * bytes).sort((a, b) => b.bytes - a.bytes);
    return large.map(({ type }) => type).join(", ");
}

/** What can be put into a message. */
export function sensesOf({ vision, audio }: { vision: boolean; audio: boolean }): string {
    return vision && audio ? "text, pictures and sound" : vision ? "text and pictures" : audio ? "text and sound" : "text";
}

function placeOf(device: Settings["device"], { webgpu, adapter }: Capabilities): [string, string] {
    const slow = "slower, with the same answers";
    if (device === "cpu") {
        return [PROCESSOR, ""];
    }
    if (device === "auto" && !webgpu) {
        return [PROCESSOR, `This browser has no WebGPU, so it runs on the processor: ${slow}.`];
    }
    if (device === "auto" && (!adapter || adapter.software)) {
        return [PROCESSOR, `There is no GPU that WebGPU can use, so it runs on the processor: ${slow}.`];
    }
    return [adapter?.name ?? "the GPU", ""];
}

/** Of a model that can be opened. */
export function verdictOf(inspection: Inspection, capabilities: Capabilities, settings: Settings): Verdict {
    const { bytes, parameters, name, model, memory, gpu } = inspection;
    const [place, unusual] = placeOf(settings.device, capabilities);
    const onGpu = place !== PROCESSOR && gpu;
    const fixed = onGpu ? gpu.weights + gpu.work : memory ? memory.weights + memory.activations : bytes;
    const lengths = (memory?.caches ?? []).map((cache) => ({ context: cache.context, bytes: fixed + cache.bytes }));
    const wanted = settings.contextLength || 32768;
    const usual = lengths.findLast(({ context }) => context <= wanted) ?? lengths[0];
    const { deviceMemory } = capabilities;
    // Browsers say at most 8 GB: only less than that tells something.
    const tight = deviceMemory !== null && deviceMemory < 8 && (usual?.bytes ?? fixed) > 0.6e9 * deviceMemory;
    return {
        facts: [
            ["Model", name ?? ""],
            ["Parameters", parameters ? formatCount(parameters) : ""],
            ["Weights", typesOf(inspection)],
            ["Context", model ? `up to ${model.context.toLocaleString("en")} tokens` : ""],
            ["Reads", sensesOf(inspection)],
            [inspection.files.length > 1 ? `${inspection.files.length} files` : "File", formatBytes(bytes)],
        ],
        lengths,
        usual: usual?.context ?? 0,
        place,
        warning: onGpu && !gpu.fits ? gpu.text : tight ? `This machine has about ${deviceMemory} GB of memory, so it may not fit.` : unusual,
    };
}
