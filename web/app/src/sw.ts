/** The page's service worker: with it the page works while its server cannot be reached. bundle.ts defines FILES and VERSION. */

/** Addresses relative to the page; "./" is the page itself. */
declare const FILES: string[];
/** A hash of their contents. */
declare const VERSION: string;

interface Extendable extends Event {
    waitUntil(done: Promise<unknown>): void;
}
interface Fetched extends Extendable {
    readonly request: Request;
    respondWith(response: Promise<Response>): void;
}
interface Received extends Extendable {
    readonly data: unknown;
}
interface Scope {
    readonly registration: { readonly scope: string };
    addEventListener(type: "install" | "activate", listener: (event: Extendable) => void): void;
    addEventListener(type: "fetch", listener: (event: Fetched) => void): void;
    addEventListener(type: "message", listener: (event: Received) => void): void;
}
const worker = globalThis as unknown as Scope;

const PREFIX = "bezel-page-";
const PAGE = PREFIX + VERSION;
const MODELS = "bezel-models";
/** A server that does not answer for so long counts as unreachable, if there is a stored copy. */
const PATIENCE_MS = 4000;

/** The address relative to the page, without its query; null: of another site. */
function pathOf(url: string): string | null {
    const { scope } = worker.registration;
    return url.startsWith(scope) ? (url.slice(scope.length).replace(/[?#].*$/, "") || "./") : null;
}

worker.addEventListener("install", (event) => {
    const store = async (): Promise<void> => {
        const cache = await caches.open(PAGE);
        await cache.addAll(FILES.map((path) => new Request(path, { cache: "no-cache" })));
    };
    event.waitUntil(store());
});

// A new version takes over when no page of the old one is open: their files do not work together.
worker.addEventListener("activate", (event) => {
    const removeOld = async (): Promise<void> => {
        const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== PAGE);
        await Promise.all(old.map((name) => caches.delete(name)));
    };
    event.waitUntil(removeOld());
});

async function fromNetworkFirst(request: Request, path: string): Promise<Response> {
    const copy = await (await caches.open(PAGE)).match(path);
    if (!copy) {
        return fetch(request);
    }
    const late = new Promise<Response>((resolve) => setTimeout(() => resolve(copy), PATIENCE_MS));
    const fetched = fetch(request).then((response) => (response.ok || response.status < 500 ? response : copy));
    return Promise.race([fetched.catch(() => copy), late]);
}

async function fromCacheFirst(request: Request, path: string): Promise<Response> {
    return (await (await caches.open(PAGE)).match(path)) ?? fetch(request);
}

/** "bytes=FIRST-LAST" of a stored file. */
async function part(copy: Response, range: string): Promise<Response> {
    const blob = await copy.blob();
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
    const from = Number(first);
    const to = Math.min(last ? Number(last) + 1 : blob.size, blob.size);
    if (first === undefined || from >= to) {
        return new Response(null, { status: 416, headers: { "Content-Range": `bytes */${blob.size}` } });
    }
    const headers = new Headers(copy.headers);
    headers.set("Content-Range", `bytes ${from}-${to - 1}/${blob.size}`);
    headers.set("Content-Length", String(to - from));
    return new Response(blob.slice(from, to), { status: 206, headers });
}

async function modelFromNetworkFirst(request: Request): Promise<Response> {
    try {
        return await fetch(request);
    } catch (reason) {
        const copy = await (await caches.open(MODELS)).match(request.url, { ignoreVary: true });
        if (!copy) {
            throw reason;
        }
        const range = request.headers.get("Range");
        return range === null ? copy : part(copy, range);
    }
}

worker.addEventListener("fetch", (event) => {
    const { request } = event;
    const path = pathOf(request.url);
    if (path === null || request.method !== "GET") {
        return;
    }
    const name = path === "index.html" ? "./" : path;
    if (path.startsWith("v/")) {
        event.respondWith(fromCacheFirst(request, path));
    } else if (FILES.includes(name)) {
        event.respondWith(fromNetworkFirst(request, name));
    } else if (path.startsWith("builtin/")) {
        event.respondWith(modelFromNetworkFirst(request));
    }
});

const versionOf = (response: Response): string => `${response.headers.get("ETag")} ${response.headers.get("Last-Modified")}`;

/** Stores a built-in model; the browser's HTTP cache usually still has it. */
async function keepModel(url: string): Promise<void> {
    const cache = await caches.open(MODELS);
    const [response, copy] = await Promise.all([fetch(url), cache.match(url, { ignoreVary: true })]);
    if (!response.ok || (copy && versionOf(copy) === versionOf(response))) {
        await response.body?.cancel();
        return;
    }
    await cache.put(url, response);
}

worker.addEventListener("message", (event) => {
    const { keep } = (event.data ?? {}) as { keep?: unknown };
    if (typeof keep === "string" && pathOf(keep)?.startsWith("builtin/")) {
        event.waitUntil(keepModel(keep).catch(() => undefined)); // without room it is fetched again next time
    }
});
