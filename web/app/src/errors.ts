/** Titles, advice and remedies for error codes. The error's own message is shown with them. */
import { BezelError } from "./bezel.js";

export type Remedy =
    | "retry" // same action again
    | "cpu" // load on the CPU
    | "shorter" // load with less context
    | "choose" // another model
    | "file" // a file from disk
    | "more" // another file of the same model
    | "new-chat"
    | "regenerate"
    | "resume"; // continue the answer

export interface Explanation {
    title: string;
    advice: string;
    remedies: Remedy[];
}

export interface Failure {
    code: string;
    message: string;
}

/** Adds a full stop if missing: other sentences follow. */
const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

export function failureOf(reason: unknown): Failure {
    if (reason instanceof BezelError) {
        return { code: reason.code, message: asSentence(reason.message) };
    }
    const text = reason instanceof Error ? reason.message : String(reason);
    return { code: "unknown", message: asSentence(text) };
}

const loading: Record<string, Explanation> = {
    no_webgpu: {
        title: "This browser has no WebGPU",
        advice: "The model can run on the CPU instead: slower, with the same answers. To use the GPU, open this page in a current Chrome, Edge, Firefox or Safari, over https or from this machine.",
        remedies: ["cpu", "choose"],
    },
    no_adapter: {
        title: "No usable GPU was found",
        advice: "WebGPU is available but offers no GPU; its driver may be blocked. The model can run on the CPU instead: slower, with the same answers.",
        remedies: ["cpu", "retry", "choose"],
    },
    out_of_memory: {
        title: "There is not enough memory for this model",
        advice: "A shorter context or a smaller model needs less memory. Closing other tabs and programs helps too.",
        remedies: ["shorter", "choose"],
    },
    device_lost: {
        title: "The GPU was reset",
        advice: "Its driver restarted, another program took it, or the model was too large for it. The conversation is not lost.",
        remedies: ["retry", "cpu"],
    },
    bad_file: {
        title: "This file cannot be read as a model",
        advice: "It is damaged, incomplete or not a GGUF file. If it was downloaded, download it again.",
        remedies: ["choose", "retry"],
    },
    checksum: {
        title: "The file is damaged",
        advice: "Its checksum does not match the published one. Download it again.",
        remedies: ["retry", "choose"],
    },
    unsupported_model: {
        title: "Bezel does not support this model",
        advice: "Bezel runs Gemma 4 models from GGUF files, in any size and quantization.",
        remedies: ["choose"],
    },
    not_found: {
        title: "The model was not found",
        advice: "The file was moved, renamed or deleted. Choose it again.",
        remedies: ["file", "choose"],
    },
    network: {
        title: "The model could not be fetched",
        advice: "The address may be wrong, the connection may be down, or the site does not let other pages read its files. You can download the file yourself and open it from disk.",
        remedies: ["retry", "file", "choose"],
    },
    numeric: {
        title: "The model computes invalid numbers (NaN)",
        advice: "The file may be damaged or the GPU driver faulty. Try it on the CPU.",
        remedies: ["cpu", "choose"],
    },
    bad_request: {
        title: "The model cannot be loaded with these settings",
        advice: "A setting is not supported by this model or on this machine.",
        remedies: ["choose", "retry"],
    },
    quota: {
        title: "The browser has too little storage for this model",
        advice: "Free some disk space or delete models that are stored here. A model opened from disk needs no browser storage.",
        remedies: ["file", "retry", "choose"],
    },
};

/** For files that were just chosen: some of the model's may be missing. */
const incomplete: Record<string, Explanation> = {
    bad_request: {
        title: "These files are not one model",
        advice: "A model is one GGUF file or all parts of a split one, plus its mmproj file and its drafter if there are any. Choose them together.",
        remedies: ["more", "choose"],
    },
    not_found: {
        title: "A part of this model is missing",
        advice: "It is split into several files, and all of them are needed. Choose them together.",
        remedies: ["more", "choose"],
    },
};

const answering: Record<string, Explanation> = {
    context_full: {
        title: "This conversation is full",
        advice: "It no longer fits into the model's context. Start a new chat, shorten an earlier message, or load the model with a longer context.",
        remedies: ["new-chat"],
    },
    out_of_memory: {
        title: "Out of memory",
        advice: "Load the model again with a shorter context, or start a new chat.",
        remedies: ["shorter", "new-chat"],
    },
    device_lost: {
        title: "The GPU was reset",
        advice: "The model is being loaded again. The text so far is kept.",
        remedies: ["resume", "regenerate"],
    },
    numeric: {
        title: "The model computed invalid numbers (NaN)",
        advice: "The file may be damaged or the GPU driver faulty. Try it on the CPU.",
        remedies: ["cpu", "regenerate"],
    },
    unsupported_model: {
        title: "This model does not support that attachment",
        advice: "You can also edit the message, or start a new chat.",
        remedies: ["choose", "new-chat"],
    },
    network: {
        title: "A file could not be fetched",
        advice: "The connection may be down. If the model's file has changed, load it again.",
        remedies: ["regenerate", "choose"],
    },
    bad_file: {
        title: "An image or sound cannot be read",
        advice: "Edit the message and remove the attachment.",
        remedies: ["regenerate"],
    },
    bad_request: {
        title: "The request was refused",
        advice: "The settings or the message contain something that this model does not support.",
        remedies: ["regenerate"],
    },
};

const unknown: Explanation = {
    title: "Something went wrong",
    advice: "This is an unexpected error. Loading the model again often helps.",
    remedies: ["retry", "choose"],
};

/** `chosen`: the user has just chosen the files. */
export function explainLoading({ code }: Failure, chosen = false): Explanation {
    return (chosen ? incomplete[code] : undefined) ?? loading[code] ?? unknown;
}

export function explainAnswering({ code }: Failure): Explanation {
    return answering[code] ?? { ...unknown, remedies: ["regenerate"] };
}
