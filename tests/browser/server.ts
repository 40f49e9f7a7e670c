/** A static web server for the tests: folders by path prefix, range requests, and faults. */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const types: Record<string, string> = {
    ".css": "text/css; charset=utf-8",
    ".gguf": "application/octet-stream",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
};

export interface ServerOptions {
    /** [path prefix, folder or file]; the first match is used. */
    mounts: [string, string][];
    port?: number;
    /** COOP and COEP, for shared memory. */
    isolated?: boolean;
    /** Called first; true: it has answered the request. */
    intercept?: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>;
}

export interface Server {
    /** http://127.0.0.1:PORT, without a slash at the end */
    readonly url: string;
    /** "METHOD /path", with " bytes=..." for range requests */
    readonly requests: string[];
    /** Bytes per second for model files; 0: unlimited. */
    modelRate: number;
    /** Bytes of model files sent so far. */
    modelBytes: number;
    intercept: ServerOptions["intercept"];
    close(): Promise<void>;
}

/** [first byte, last byte]; null: the whole file; undefined: invalid */
function parseRange(header: string | undefined, size: number): [number, number] | null | undefined {
    const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
    if (!match || (match[1] === "" && match[2] === "")) {
        return null;
    }
    const [from, to] = [match[1] ?? "", match[2] ?? ""];
    const begin = from === "" ? Math.max(0, size - Number(to)) : Number(from);
    const end = from === "" || to === "" ? size - 1 : Math.min(size - 1, Number(to));
    return begin <= end && begin < size ? [begin, end] : undefined;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function sendFile(path: string, request: IncomingMessage, response: ServerResponse, server: Server): Promise<void> {
    let info = await stat(path);
    if (info.isDirectory()) {
        path = join(path, "index.html");
        info = await stat(path);
    }
    const tag = `"${info.size.toString(16)}-${Math.floor(info.mtimeMs).toString(16)}"`;
    response.setHeader("Content-Type", types[extname(path)] ?? "application/octet-stream");
    response.setHeader("Accept-Ranges", "bytes");
    response.setHeader("ETag", tag);
    response.setHeader("Cache-Control", "no-cache");
    if (request.headers["if-none-match"] === tag) {
        response.writeHead(304).end();
        return;
    }
    const ifRange = request.headers["if-range"];
    const range = ifRange === undefined || ifRange === tag ? parseRange(request.headers.range, info.size) : null;
    if (range === undefined) {
        response.writeHead(416, { "Content-Range": `bytes */${info.size}` }).end();
        return;
    }
    const [begin, end] = range ?? [0, info.size - 1];
    if (range) {
        response.setHeader("Content-Range", `bytes ${begin}-${end}/${info.size}`);
    }
    response.setHeader("Content-Length", end - begin + 1);
    response.writeHead(range ? 206 : 200);
    if (request.method === "HEAD" || end < begin) {
        response.end();
        return;
    }
    const model = path.endsWith(".gguf");
    const slow = server.modelRate > 0 && model;
    const file = createReadStream(path, { start: begin, end, ...(slow ? { highWaterMark: 16384 } : {}) });
    for await (const bytes of file as AsyncIterable<Uint8Array>) {
        if (response.destroyed) {
            file.destroy();
            return;
        }
        response.write(bytes);
        server.modelBytes += model ? bytes.length : 0;
        if (slow && server.modelRate > 0) {
            await pause((1000 * bytes.length) / server.modelRate);
        }
    }
    response.end();
}

export async function startServer(options: ServerOptions): Promise<Server> {
    const requests: string[] = [];
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname));
        requests.push(`${request.method} ${path}${request.headers.range ? ` ${request.headers.range}` : ""}`);
        response.setHeader("X-Content-Type-Options", "nosniff");
        if (options.isolated) {
            response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
            response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
            response.setHeader("Cross-Origin-Resource-Policy", "same-origin");
        }
        if (await server.intercept?.(request, response)) {
            return;
        }
        if (request.method !== "GET" && request.method !== "HEAD") {
            response.writeHead(405).end();
            return;
        }
        for (const [prefix, folder] of options.mounts) {
            if (path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`)) {
                await sendFile(join(folder, path.slice(prefix.length)), request, response, server);
                return;
            }
        }
        response.writeHead(404).end("not found\n");
    };
    const http = createServer((request, response) => {
        answer(request, response).catch(() => {
            if (response.headersSent) {
                response.destroy();
            } else {
                response.writeHead(404).end("not found\n");
            }
        });
    });
    await new Promise<void>((resolve, reject) => {
        http.once("error", reject);
        http.listen(options.port ?? 0, "127.0.0.1", resolve);
    });
    const server: Server = {
        url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
        requests,
        modelRate: 0,
        modelBytes: 0,
        intercept: options.intercept,
        close: () =>
            new Promise((resolve) => {
                http.closeAllConnections();
                http.close(() => resolve());
            }),
    };
    return server;
}
