/** Summarizes a model's header and its memory needs before it is loaded. */
import type { Capabilities, Inspection } from "./bezel.js";
import { formatBytes, formatCount } from "./format.js";
import type { Settings } from "./store.js";

export interface ModelSummary {
    /** [name, value] */
    facts: [string, string][];
    /** Possible context lengths, with the total memory for each. */
    lengths: { context: number; bytes: number }[];
    /** The preselected context length. */
    defaultLength: number;
    /** The device that it will run on. */
    device: string;
    /** A warning, or empty. */
    warning: string;
}

const CPU = "the CPU";
/** Memory of a conversation, as a share of that in full size. */
const cacheShares: Record<Settings["cache"], number> = { f16: 1, q8: 0.53, q4: 0.28 };

/** The tensor types of most bytes, largest first: "Q4_K, Q6_K". */
function typesOf({ types, bytes }: Inspection): string {
    const large = types.filter((one) => one.bytes > 0.04 * bytes).sort((a, b) => b.bytes - a.bytes);
    return large.map(({ type }) => type).join(", ");
}

/** The kinds of input that a message can contain. */
export function inputKinds({ vision, audio }: { vision: boolean; audio: boolean }): string {
    return vision && audio ? "text, images and sound" : vision ? "text and images" : audio ? "text and sound" : "text";
}

function deviceFor(device: Settings["device"], { webgpu, adapter }: Capabilities): [string, string] {
    const slow = "slower, with the same answers";
    if (device === "cpu") {
        return [CPU, ""];
    }
    if (device === "auto" && !webgpu) {
        return [CPU, `This browser has no WebGPU, so the model runs on the CPU: ${slow}.`];
    }
    if (device === "auto" && (!adapter || adapter.software)) {
        return [CPU, `WebGPU found no usable GPU, so the model runs on the CPU: ${slow}.`];
    }
    return [adapter?.name ?? "the GPU", ""];
}

/** For a model that the engine supports. */
export function summarize(inspection: Inspection, capabilities: Capabilities, settings: Settings): ModelSummary {
    const { bytes, parameters, name, model, memory, gpu, files } = inspection;
    const drafter = files.find((file) => file.drafter);
    const [device, cpuWarning] = deviceFor(settings.device, capabilities);
    const onGpu = device !== CPU && gpu;
    const fixed = onGpu ? gpu.weights + gpu.work : memory ? memory.weights + memory.activations : bytes;
    const lengths = (memory?.caches ?? []).map((cache) => ({ context: cache.context, bytes: fixed + Math.round(cacheShares[settings.cache] * cache.bytes) }));
    const wanted = settings.contextLength || 32768;
    const chosen = lengths.findLast(({ context }) => context <= wanted) ?? lengths[0];
    const { deviceMemory } = capabilities;
    // Browsers report at most 8 GB, so only smaller values are informative.
    const tight = deviceMemory !== null && deviceMemory < 8 && (chosen?.bytes ?? fixed) > 0.6e9 * deviceMemory;
    return {
        facts: [
            ["Model", name ?? ""],
            ["Parameters", parameters ? formatCount(parameters) : ""],
            ["Weights", typesOf(inspection)],
            ["Context", model ? `up to ${model.context.toLocaleString("en")} tokens` : ""],
            ["Input", inputKinds(inspection)],
            ["Drafter", drafter ? formatBytes(drafter.bytes) : ""],
            [files.length > 1 ? `${files.length} files` : "File", formatBytes(bytes)],
        ],
        lengths,
        defaultLength: chosen?.context ?? 0,
        device,
        warning: onGpu && !gpu.fits ? gpu.text : tight ? `This machine has about ${deviceMemory} GB of memory, so the model may not fit.` : cpuWarning,
    };
}
