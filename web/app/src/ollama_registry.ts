/** Models of Ollama's registry: a manifest lists the layers with their digests, which are SHA-256. */
import { BezelError } from "./bezel.js";
import { isObject, isSize, readJson, type Hosts, type RemoteFile, type RemoteModel } from "./remote.js";

export interface OllamaName {
    namespace: string;
    model: string;
    tag: string;
}

const WORD = "[A-Za-z0-9][A-Za-z0-9._-]*";
/** "gemma4:e2b", "ollama:user/model", "registry.ollama.ai/library/gemma4". A name with a slash and without one of these
 * beginnings is Hugging Face's. */
const form = new RegExp(`^(?:(?:ollama:|(?:https?://)?(?:registry\\.ollama\\.ai|ollama\\.com)/)(?:(${WORD})/)?)?(${WORD})(?::([A-Za-z0-9._-]+))?$`);

const MANIFEST = "application/vnd.docker.distribution.manifest.v2+json";
const MODEL = "application/vnd.ollama.image.model";
const DRAFTER = "application/vnd.ollama.image.draft";
const PROJECTOR = "application/vnd.ollama.image.projector";

/** Null: not such a name. */
export function readOllamaName(text: string): OllamaName | null {
    const [, namespace = "library", model, tag = "latest"] = form.exec(text) ?? [];
    return model === undefined ? null : { namespace, model, tag };
}

export async function ollamaModel({ namespace, model, tag }: OllamaName, { ollama }: Hosts, signal: AbortSignal): Promise<RemoteModel> {
    const host = new URL(ollama).host;
    const short = `${namespace === "library" ? "" : `${namespace}/`}${model}:${tag}`;
    const folder = `${ollama}/v2/${namespace}/${model}`;
    const { json } = await readJson(`${folder}/manifests/${tag}`, `model ${short}`, signal, MANIFEST).catch((reason: unknown) => {
        if (reason instanceof BezelError && reason.code === "network") {
            throw new BezelError("network", `${reason.message} With Bezel's program, 'bezel pull ${short}' stores it where the page of 'bezel serve' finds it.`, { cause: reason });
        }
        throw reason;
    });
    const layers = isObject(json) && Array.isArray(json["layers"]) ? (json["layers"] as unknown[]) : [];
    const filesOf = (type: string, suffix: string): RemoteFile[] =>
        layers.flatMap((layer): RemoteFile[] => {
            if (!isObject(layer) || layer["mediaType"] !== type) {
                return [];
            }
            const { digest, size } = layer;
            if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest) || !isSize(size)) {
                throw new BezelError("network", `${host} sent a manifest of ${short} whose layers have no valid digest or size.`);
            }
            return [{ url: `${folder}/blobs/${digest}`, name: `${model}-${tag}${suffix}.gguf`, size, sha256: digest.slice(7) }];
        });
    const files = filesOf(MODEL, "");
    if (files.length === 0) {
        throw new BezelError("unsupported_model", `${short} on ${host} has no GGUF file.`);
    }
    return { title: short, source: host, files, media: filesOf(PROJECTOR, "-mmproj"), drafter: filesOf(DRAFTER, "-drafter") };
}
