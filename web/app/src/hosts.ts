/** From what a user enters, or a card names, to the addresses of a model's files: names of Hugging Face and of Ollama's
 * registry, and plain addresses. Hashes come from the host. */
import { BezelError } from "./bezel.js";
import { huggingFaceModel, readHuggingFaceAddress, readHuggingFaceName } from "./hugging_face.js";
import { ollamaModel, readOllamaName } from "./ollama_registry.js";
import { fileNameOf, isDrafterName, isMediaName, titleOfFile, type Hosts, type RemoteFile, type RemoteModel } from "./remote.js";

/** What the field for names and addresses takes, for messages. */
const FORMS = "a Hugging Face name (org/repo or org/repo:Q4_K_M), an Ollama name (gemma4:e2b), or the addresses of a model's files";

function checkAddress(address: string): URL {
    let url: URL;
    try {
        url = new URL(address);
    } catch {
        throw new BezelError("bad_request", `'${address}' is not an address. Enter ${FORMS}.`);
    }
    const local = /^(localhost|127\.0\.0\.1)$/.test(url.hostname);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && (local || url.origin === globalThis.location?.origin))) {
        throw new BezelError("bad_request", `'${address}' cannot be used: pages may fetch https addresses, and http ones of this machine only.`);
    }
    return url;
}

function modelOfAddresses(addresses: string[]): RemoteModel {
    const files = addresses.map((address): RemoteFile => {
        const { href } = checkAddress(address);
        return { url: href, name: fileNameOf(href) || "model", size: null, sha256: null };
    });
    const byKind = (one: RemoteFile, other: RemoteFile): number => Number(isDrafterName(one.name)) - Number(isDrafterName(other.name));
    const own = files.filter(({ name }) => !isMediaName(name)).sort(byKind); // the model names them
    const [first] = own;
    if (!first) {
        throw new BezelError("bad_request", "That is an mmproj file, which has only a model's encoders for images and sound. Add the address of the model itself.");
    }
    return { title: titleOfFile(first.name), source: new URL(first.url).host, files: own, media: files.filter(({ name }) => isMediaName(name)), drafter: [] };
}

/** `text`: one name, or one or more addresses separated by spaces, commas or lines. */
export async function findModel(text: string, hosts: Hosts, signal: AbortSignal): Promise<RemoteModel> {
    const words = text.split(/[\s,]+/).filter((word) => word !== "");
    const [only = ""] = words;
    if (words.length === 0) {
        throw new BezelError("bad_request", `Enter ${FORMS}.`);
    }
    if (words.every((word) => /^https?:\/\//i.test(word))) {
        const named = words.length === 1 ? readHuggingFaceAddress(only, hosts) : null;
        return named ? huggingFaceModel(named, hosts, signal) : modelOfAddresses(words);
    }
    const repository = words.length === 1 ? readHuggingFaceName(only) : null;
    if (repository) {
        return huggingFaceModel(repository, hosts, signal);
    }
    const image = words.length === 1 ? readOllamaName(only) : null;
    if (image) {
        return ollamaModel(image, hosts, signal);
    }
    throw new BezelError("bad_request", `'${text.trim().slice(0, 100)}' is not a name that is known here. Enter ${FORMS}.`);
}
