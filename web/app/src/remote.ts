/** Files of models on other hosts: what is known of them, and how a host is asked. */
import { BezelError } from "./bezel.js";

export interface RemoteFile {
    url: string;
    /** The file's name on its host. */
    name: string;
    /** Null: not known before it is requested. */
    size: number | null;
    /** In hexadecimal, as the host publishes it; null: it publishes none. */
    sha256: string | null;
}

/** The files of one model on a host. */
export interface RemoteModel {
    title: string;
    /** Where it comes from, for people: "huggingface.co/org/repo". */
    source: string;
    /** All parts of the text model, and what the user has named besides. */
    files: RemoteFile[];
    /** Encoders for images and sound, if they are separate files. */
    media: RemoteFile[];
    /** Its drafter, if its host has one. */
    drafter: RemoteFile[];
}

/** Where names are looked up: a site owner can name mirrors. */
export interface Hosts {
    huggingFace: string;
    ollama: string;
}

export const defaultHosts: Hosts = { huggingFace: "https://huggingface.co", ollama: "https://registry.ollama.ai" };

export function fileNameOf(url: string): string {
    const last = url.replace(/[?#].*$/, "").split("/").pop() ?? "";
    try {
        return decodeURIComponent(last);
    } catch {
        return last;
    }
}

/** Names of files beside a model; their headers are certain. */
export const isMediaName = (name: string): boolean => /mmproj/i.test(name);
export const isDrafterName = (name: string): boolean => /(^|[-_/])(mtp|assistant|draft(er)?)[-_./]|-assistant/i.test(name);

/** All files that are loaded. */
export function filesOf({ files, media, drafter }: RemoteModel, withMedia: boolean): RemoteFile[] {
    return [...files, ...(withMedia ? media : []), ...drafter];
}

/** The model's name without part number, extension and "mmproj". */
export function titleOfFile(name: string): string {
    return name.replace(/\.gguf$/i, "").replace(/-\d{5}-of-\d{5}$/, "") || "model";
}

/** A host's answer as JSON; refuses what is too long to be a list. */
export async function readJson(url: string, what: string, signal: AbortSignal, accept = "application/json"): Promise<{ json: unknown; response: Response }> {
    const host = new URL(url).host;
    let response: Response;
    try {
        response = await fetch(url, { signal, headers: { Accept: accept } });
    } catch (reason) {
        if (signal.aborted) {
            throw new BezelError("aborted", "Stopped on request.");
        }
        throw new BezelError("network", `${host} could not be asked about ${what}: there is no connection, or it does not let pages of other sites read its answers (CORS).`, { cause: reason });
    }
    if (response.status === 404) {
        throw new BezelError("not_found", `${host} has no ${what}.`);
    }
    if (response.status === 401 || response.status === 403) {
        throw new BezelError("not_found", `${host} has no ${what}, or it is not public (status ${response.status}).`);
    }
    if (!response.ok) {
        throw new BezelError("network", `${host} answered the question about ${what} with status ${response.status}.`);
    }
    try {
        return { json: await response.json(), response };
    } catch (reason) {
        throw new BezelError("network", `${host} answered the question about ${what} with something that is not JSON.`, { cause: reason });
    }
}

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
export const isSize = (value: unknown): value is number => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
