/** Answers the requests of OpenAI's and Ollama's clients with a loaded model, in the place of `fetch`. Nothing reaches the
 * network, whatever the address: only the path from /v1/ or /api/ on counts.
 *
 *   new OpenAI({ baseURL: "http://bezel/v1", apiKey: "none", fetch: model.fetch, dangerouslyAllowBrowser: true })
 *   new Ollama({ fetch: model.fetch })
 */
import type { BezelModel } from "./bezel.js";
import { chat, embed, generate, loadedModels, show, tags } from "./http_ollama.js";
import { chatCompletions, completions, embeddings, listModels, modelObject, type Call } from "./http_openai.js";
import { abortOf, errorReply, isObject, jsonReply, Refusal, type Api, type Fields } from "./http_reply.js";
import { responses } from "./http_responses.js";

export type LocalFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

type Handler = (call: Call) => Response | Promise<Response>;

const posts: Record<string, Handler> = {
    "/v1/chat/completions": chatCompletions,
    "/v1/completions": completions,
    "/v1/responses": responses,
    "/v1/embeddings": embeddings,
    "/api/chat": chat,
    "/api/generate": generate,
    "/api/show": show,
    "/api/embed": (call) => embed(call, false),
    "/api/embeddings": (call) => embed(call, true),
};

const gets: Record<string, (model: BezelModel) => Response> = {
    "/v1/models": listModels,
    "/api/tags": tags,
    "/api/ps": loadedModels,
    "/api/version": () => jsonReply({ version: "0.1.0" }),
};

const notHere = ["/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"];
const MODEL = "/v1/models/";

/** The page has one model: other names are refused, as by a server that has no such model. */
function checkModel({ name }: BezelModel, wanted: unknown): void {
    if (wanted === undefined || wanted === null || wanted === "") {
        return;
    }
    const plain = typeof wanted === "string" ? wanted.replace(/(:latest|\.gguf)$/, "") : null;
    if (plain !== name) {
        throw new Refusal(404, `model '${String(wanted).slice(0, 200)}' not found; '${name}' is loaded`, "model_not_found");
    }
}

async function readBody(request: Request): Promise<Fields> {
    try {
        const body: unknown = JSON.parse(await request.text());
        if (isObject(body)) {
            return body;
        }
    } catch (reason) {
        if (request.signal.aborted) {
            throw reason;
        }
    }
    throw new Refusal(400, "The body is not a JSON object.", "bad_request");
}

async function answer(model: BezelModel, path: string, request: Request): Promise<Response> {
    const [get, post] = [gets[path], posts[path]];
    if (get || path.startsWith(MODEL)) {
        if (request.method !== "GET") {
            throw new Refusal(405, "This address does not support the method.");
        }
        if (get) {
            return get(model);
        }
        checkModel(model, decodeURIComponent(path.slice(MODEL.length)));
        return jsonReply(modelObject(model));
    }
    if (!post) {
        throw notHere.includes(path)
            ? new Refusal(501, "Models are not stored or changed here: use Bezel.download and Bezel.remove.")
            : new Refusal(404, `There is no endpoint ${path.slice(0, 200)}.`);
    }
    if (request.method !== "POST") {
        throw new Refusal(405, "This address does not support the method.");
    }
    const body = await readBody(request);
    checkModel(model, body["model"] ?? (path.startsWith("/api/") ? body["name"] : undefined));
    const left = new AbortController();
    const signal = AbortSignal.any([request.signal, left.signal]);
    return post({ model, body: { ...body, model: model.name }, signal, cancel: () => left.abort() });
}

export function localFetch(model: BezelModel): LocalFetch {
    return async (input, init) => {
        const request = new Request(input, init);
        const path = /\/(?:v1|api)\/.*$/.exec(new URL(request.url).pathname)?.[0] ?? new URL(request.url).pathname;
        const api: Api = path.startsWith("/api/") ? "ollama" : "openai";
        try {
            request.signal.throwIfAborted();
            return await answer(model, path, request);
        } catch (reason) {
            const abort = abortOf(reason, request.signal);
            if (abort !== null) {
                throw abort;
            }
            return errorReply(api, reason);
        }
    };
}
