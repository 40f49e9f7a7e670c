/** What can go wrong, in words, and what to do about it. The sentence of the error itself is shown with it. */
import { BezelError } from "./bezel.js";

export type Remedy =
    | "retry" // the same again
    | "cpu" // load on the CPU
    | "shorter" // load with less context
    | "choose" // another model
    | "file" // a file from disk
    | "more" // another file of the same model
    | "new-chat"
    | "regenerate"
    | "resume"; // more of the same answer

export interface Explanation {
    title: string;
    advice: string;
    remedies: Remedy[];
}

export interface Failure {
    code: string;
    message: string;
}

/** Other sentences follow. */
const ended = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

export function failureOf(reason: unknown): Failure {
    if (reason instanceof BezelError) {
        return { code: reason.code, message: ended(reason.message) };
    }
    const text = reason instanceof Error ? reason.message : String(reason);
    return { code: "unknown", message: ended(text) };
}

const loading: Record<string, Explanation> = {
    no_webgpu: {
        title: "This browser has no WebGPU",
        advice: "The model can run on the processor instead: slower, with the same answers. For the GPU, use a current Chrome, Edge, Firefox or Safari, over https or on this machine.",
        remedies: ["cpu", "choose"],
    },
    no_adapter: {
        title: "No usable GPU was found",
        advice: "WebGPU is there, but it offers no GPU; its driver may be blocked. The model can run on the processor instead: slower, with the same answers.",
        remedies: ["cpu", "retry", "choose"],
    },
    out_of_memory: {
        title: "There is not enough memory for this model",
        advice: "A shorter context needs less memory, and so does a smaller or more strongly quantised model. Closing other tabs and programs helps too.",
        remedies: ["shorter", "choose"],
    },
    device_lost: {
        title: "The GPU was reset",
        advice: "Its driver restarted, another program took it, or it was asked for too much. Nothing of the conversation is lost.",
        remedies: ["retry", "cpu"],
    },
    bad_file: {
        title: "This file cannot be read as a model",
        advice: "It is damaged, incomplete or not a GGUF file. If it was downloaded, download it again.",
        remedies: ["choose", "retry"],
    },
    checksum: {
        title: "The file is damaged",
        advice: "Its bytes are not those that were published. Download it again.",
        remedies: ["retry", "choose"],
    },
    unsupported_model: {
        title: "This is not a model that Bezel runs",
        advice: "Bezel runs Gemma 4 in GGUF files, of any size and quantisation.",
        remedies: ["choose"],
    },
    not_found: {
        title: "The model is not there any more",
        advice: "The file was moved, renamed or deleted. Choose it again where it is now.",
        remedies: ["file", "choose"],
    },
    network: {
        title: "The model could not be fetched",
        advice: "The address may be wrong, the connection may be down, or the site does not let other pages read its files. A file that you download yourself always works.",
        remedies: ["retry", "file", "choose"],
    },
    numeric: {
        title: "The model computes something that is not a number",
        advice: "The file may be damaged, or the GPU's driver faulty. The processor gives a second opinion.",
        remedies: ["cpu", "choose"],
    },
    bad_request: {
        title: "The model cannot be loaded like this",
        advice: "Something in the settings is not possible with this model or on this machine.",
        remedies: ["choose", "retry"],
    },
    quota: {
        title: "The browser has no room for this model",
        advice: "Free some disk space or delete models that are stored here. A file from disk is used where it is and takes no room.",
        remedies: ["file", "retry", "choose"],
    },
};

/** Of files that were just chosen: some of a model's may be missing. */
const incomplete: Record<string, Explanation> = {
    bad_request: {
        title: "These files are not one model",
        advice: "A model is one GGUF file, or all parts of one, and its mmproj file if there is one. Choose them together.",
        remedies: ["more", "choose"],
    },
    not_found: {
        title: "A part of this model is missing",
        advice: "It was split into several files, and all of them are needed. Choose them together.",
        remedies: ["more", "choose"],
    },
};

const answering: Record<string, Explanation> = {
    context_full: {
        title: "This conversation is full",
        advice: "It no longer fits into the model's context. Begin a new one, shorten an earlier message, or load the model with a longer context.",
        remedies: ["new-chat"],
    },
    out_of_memory: {
        title: "Memory ran out",
        advice: "Load the model again with a shorter context, or begin a new conversation.",
        remedies: ["shorter", "new-chat"],
    },
    device_lost: {
        title: "The GPU was reset",
        advice: "The model is loaded again by itself. What was written so far is kept.",
        remedies: ["resume", "regenerate"],
    },
    numeric: {
        title: "The model computed something that is not a number",
        advice: "The file may be damaged, or the GPU's driver faulty. The processor gives a second opinion.",
        remedies: ["cpu", "regenerate"],
    },
    unsupported_model: {
        title: "This model cannot see or hear that",
        advice: "You can also edit the message, or begin a new conversation.",
        remedies: ["choose", "new-chat"],
    },
    network: {
        title: "Something could not be fetched",
        advice: "The connection may be down. If the model's file is another one by now, load it again.",
        remedies: ["regenerate", "choose"],
    },
    bad_file: {
        title: "A picture or sound cannot be read",
        advice: "Edit the message and remove it.",
        remedies: ["regenerate"],
    },
    bad_request: {
        title: "The request was refused",
        advice: "Something in the settings or in the message is not possible with this model.",
        remedies: ["regenerate"],
    },
};

const unknown: Explanation = {
    title: "Something went wrong",
    advice: "It was not expected. Loading the model again often helps.",
    remedies: ["retry", "choose"],
};

/** `chosen`: files that the user has just pointed to. */
export function explainLoading({ code }: Failure, chosen = false): Explanation {
    return (chosen ? incomplete[code] : undefined) ?? loading[code] ?? unknown;
}

export function explainAnswering({ code }: Failure): Explanation {
    return answering[code] ?? { ...unknown, remedies: ["regenerate"] };
}
