/** Models of Hugging Face: "org/repo", "org/repo:Q4_K_M", and addresses of repositories and of files in them. The
 * repository is listed, which also finds its mmproj file, all parts of a split model and the hashes of large files. */
import { BezelError } from "./bezel.js";
import { isDrafterName, isMediaName, isObject, isSize, readJson, titleOfFile, type Hosts, type RemoteFile, type RemoteModel } from "./remote.js";

export interface Repository {
    /** "org/repo" */
    name: string;
    revision: string;
    /** "Q4_K_M"; null: the best known one. */
    quant: string | null;
    /** A file in it; null: chosen by `quant`. */
    path: string | null;
}

const WORD = "[A-Za-z0-9][A-Za-z0-9._-]*";
const nameForm = new RegExp(`^(?:hf:|(?:https?://)?(?:hf\\.co|huggingface\\.co)/)?(${WORD}/${WORD}?)(?::([A-Za-z0-9_-]+))?$`);
/** Pages of listings that are read; each has up to 1,000 files. */
const MAX_PAGES = 20;
/** Which file a name without ":quant" means: the first of these that a repository has. */
const PREFERRED = ["Q4_K_M", "UD-Q4_K_XL", "UD-Q4_K_M", "Q4_0", "Q4_K_S", "Q5_K_M", "Q6_K", "Q8_0"];
/** Files that are no chat model: encoders, drafters and matrices for quantizing. */
const isOther = (path: string): boolean => isMediaName(path) || isDrafterName(path) || /imatrix/i.test(path);

/** Null: not such a name. */
export function readHuggingFaceName(text: string): Repository | null {
    const [, name, quant] = nameForm.exec(text) ?? [];
    return name === undefined || name.endsWith("/") ? null : { name, revision: "main", quant: quant ?? null, path: null };
}

/** An address of the host, such as a web browser shows it; null: of another site. */
export function readHuggingFaceAddress(address: string, { huggingFace }: Hosts): Repository | null {
    const url = new URL(address);
    if (url.origin !== new URL(huggingFace).origin) {
        return null;
    }
    const [org, repo, kind, revision, ...path] = url.pathname.split("/").filter((part) => part !== "").map(decodeURIComponent);
    if (org === undefined || repo === undefined || (kind !== undefined && !["blob", "resolve", "tree"].includes(kind))) {
        return null;
    }
    const inFile = (kind === "blob" || kind === "resolve") && path.length > 0;
    return { name: `${org}/${repo}`, revision: revision ?? "main", quant: null, path: inFile ? path.join("/") : null };
}

/** The next page's address, which must be on the same host. */
function nextPage(response: Response, url: string): string | null {
    const next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
    const address = next === undefined ? null : new URL(next, url);
    return address && address.origin === new URL(url).origin ? address.href : null;
}

const escapePath = (path: string): string => path.split("/").map(encodeURIComponent).join("/");

async function listFiles({ name, revision }: Repository, { huggingFace }: Hosts, signal: AbortSignal): Promise<Map<string, RemoteFile>> {
    const files = new Map<string, RemoteFile>();
    let url: string | null = `${huggingFace}/api/models/${name}/tree/${encodeURIComponent(revision)}?recursive=true`;
    for (let page = 0; url !== null && page < MAX_PAGES; page++) {
        const { json, response } = await readJson(url, `repository ${name}`, signal);
        if (!Array.isArray(json)) {
            throw new BezelError("network", `${new URL(url).host} listed the repository ${name} in an unknown form.`);
        }
        for (const entry of json as unknown[]) {
            if (isObject(entry) && entry["type"] === "file" && typeof entry["path"] === "string" && /\.gguf$/i.test(entry["path"])) {
                const { path, size, lfs } = entry as { path: string; size: unknown; lfs: unknown };
                const oid = isObject(lfs) ? lfs["oid"] : null;
                files.set(path, {
                    url: `${huggingFace}/${name}/resolve/${encodeURIComponent(revision)}/${escapePath(path)}`,
                    name: path.slice(path.lastIndexOf("/") + 1),
                    size: isSize(size) ? size : null,
                    sha256: typeof oid === "string" && /^(sha256:)?[0-9a-f]{64}$/i.test(oid) ? oid.slice(-64).toLowerCase() : null,
                });
            }
        }
        url = nextPage(response, url);
    }
    return files;
}

const partOf = /-(\d{5})-of-(\d{5})\.gguf$/i;

/** One model of the repository: a file, or all parts of one. */
interface Candidate {
    /** Path without part number and extension. */
    label: string;
    files: RemoteFile[];
}

function candidatesOf(files: Map<string, RemoteFile>): Candidate[] {
    const found = new Map<string, Candidate>();
    for (const [path, file] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
        if (isOther(path)) {
            continue;
        }
        const label = path.replace(partOf, "").replace(/\.gguf$/i, "");
        const candidate = found.get(label) ?? { label, files: [] };
        candidate.files.push(file);
        found.set(label, candidate);
    }
    return [...found.values()].filter(({ files: parts }) => {
        const count = Number(partOf.exec(parts[0]?.name ?? "")?.[2] ?? 1);
        return parts.length === count; // an incomplete set of parts is no model
    });
}

/** "gemma-4-E2B-it-UD-Q4_K_XL", or a file in a folder "UD-Q4_K_XL", has the quant UD-Q4_K_XL and also Q4_K_XL. */
function hasQuant({ label }: Candidate, quant: string): boolean {
    return new RegExp(`(^|[-_./])${quant}(/[^/]*)?$`, "i").test(label);
}

function quantOf({ label }: Candidate): string {
    return /(?:UD-)?(?:I?Q\d[A-Z0-9_]*|MXFP4[A-Z0-9_]*|BF16|F16|F32)$/i.exec(label)?.[0] ?? label;
}

const isWholeQuant = (candidate: Candidate, quant: string): boolean => quantOf(candidate).toUpperCase() === quant.toUpperCase();

function choose(candidates: Candidate[], { name, quant }: Repository, host: string): Candidate {
    const has = [...new Set(candidates.map(quantOf))].join(", ");
    if (candidates.length === 0) {
        throw new BezelError("not_found", `${host}/${name} has no complete GGUF file of a model.`);
    }
    const wanted = quant === null ? PREFERRED : [quant];
    for (const one of wanted) {
        const found = candidates.find((candidate) => isWholeQuant(candidate, one)) ?? candidates.find((candidate) => hasQuant(candidate, one));
        if (found) {
            return found;
        }
    }
    const [only, second] = candidates;
    if (only && !second && quant === null) {
        return only;
    }
    throw new BezelError("not_found", quant === null ? `${host}/${name} has several models: enter one of ${has} after a colon, as in ${name}:${quantOf(candidates[0] as Candidate)}.` : `${host}/${name} has no ${quant}; it has ${has}.`);
}

/** One of the mmproj files: quantized encoders lose quality, and f32 gains none over f16. */
function mediaOf(files: Map<string, RemoteFile>): RemoteFile[] {
    const rank = ({ name }: RemoteFile): number => (/bf16/i.test(name) ? 1 : /f16/i.test(name) ? 0 : /q8_0/i.test(name) ? 2 : 3);
    const all = [...files.values()].filter(({ name }) => isMediaName(name));
    return all.sort((a, b) => rank(a) - rank(b)).slice(0, 1);
}

/** One of the drafters: all of them guess about the same. */
function drafterOf(files: Map<string, RemoteFile>): RemoteFile[] {
    const rank = (path: string): number => (/q8_0/i.test(path) ? 0 : /q4_0|q4_k_m/i.test(path) ? 1 : 2);
    const all = [...files].filter(([path]) => isDrafterName(path) && !isMediaName(path) && !/imatrix/i.test(path) && !partOf.test(path));
    return all.sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1)).slice(0, 1).map(([, file]) => file);
}

export async function huggingFaceModel(repository: Repository, hosts: Hosts, signal: AbortSignal): Promise<RemoteModel> {
    const host = new URL(hosts.huggingFace).host;
    const files = await listFiles(repository, hosts, signal);
    const { name, path } = repository;
    let chosen: Candidate;
    if (path === null) {
        chosen = choose(candidatesOf(files), repository, host);
    } else {
        const file = files.get(path);
        const label = path.replace(partOf, "").replace(/\.gguf$/i, "");
        const whole = candidatesOf(files).find((candidate) => candidate.label === label);
        if (!file) {
            throw new BezelError("not_found", `${host}/${name} has no file ${path}.`);
        }
        chosen = whole ?? { label, files: [file] };
    }
    const [first] = chosen.files;
    return { title: titleOfFile(first?.name ?? name), source: `${host}/${name}`, files: chosen.files, media: mediaOf(files), drafter: drafterOf(files).filter((file) => !chosen.files.includes(file)) };
}
