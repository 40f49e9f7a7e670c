/** A host of models for the tests, on a port of its own and so of another site: speaks as Hugging Face and as Ollama's
 * registry do, and can cut connections, refuse ranges, be slow and send other bytes than it has promised. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface HostFile {
    bytes: Buffer;
    /** Default: that of the bytes. "": none. */
    sha256?: string;
}

export interface Host {
    readonly url: string;
    /** Repositories: "org/repo" to paths to files. */
    readonly repositories: Record<string, Record<string, HostFile>>;
    /** "GET /path bytes=..." */
    readonly requests: string[];
    /** Bytes of files sent so far. */
    sent: number;
    /** Requests for ranges get the whole file. */
    refuseRanges: boolean;
    /** Bytes per second of each connection; 0: unlimited. */
    rate: number;
    /** Connections are cut after this many bytes; 0: never. */
    cutAfter: number;
    /** Every byte is sent inverted. */
    lie: boolean;
    /** Files per page of a listing. */
    pageSize: number;
    close(): Promise<void>;
}

export const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const hashOf = ({ bytes, sha256 }: HostFile): string => sha256 ?? sha256Of(bytes);

function list(host: Host, repository: string, cursor: number, response: ServerResponse): void {
    const files = Object.entries(host.repositories[repository] ?? {});
    const page = files.slice(cursor, cursor + host.pageSize);
    if (cursor + host.pageSize < files.length) {
        response.setHeader("Link", `<${host.url}/api/models/${repository}/tree/main?recursive=true&cursor=${cursor + host.pageSize}>; rel="next"`);
    }
    const entries = page.map(([path, file]) => {
        const { length: size } = file.bytes;
        const oid = hashOf(file);
        return { type: "file", path, size, oid: "0".repeat(40), ...(oid === "" ? {} : { lfs: { oid, size, pointerSize: 130 } }) };
    });
    response.setHeader("Access-Control-Expose-Headers", "Link");
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify([{ type: "directory", path: "folder" }, ...entries]));
}

async function send(host: Host, file: HostFile, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const size = file.bytes.length;
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const ranged = from !== undefined && !host.refuseRanges;
    const begin = ranged ? Number(from) : 0;
    const end = ranged && to ? Math.min(size, Number(to) + 1) : size;
    response.writeHead(ranged ? 206 : 200, {
        "Content-Type": "application/octet-stream",
        "Content-Length": end - begin,
        ETag: `"${sha256Of(file.bytes).slice(0, 16)}"`,
        ...(ranged ? { "Content-Range": `bytes ${begin}-${end - 1}/${size}` } : {}),
        "Access-Control-Expose-Headers": "ETag, Content-Range, X-Linked-ETag",
        ...(hashOf(file) === "" ? {} : { "X-Linked-ETag": `"${hashOf(file)}"` }),
    });
    const step = host.rate > 0 ? Math.max(1, Math.floor(host.rate / 20)) : 1 << 20;
    let left = host.cutAfter > 0 && end - begin > 1 ? host.cutAfter : Infinity;
    for (let at = begin; at < end && !response.destroyed; ) {
        const n = Math.min(step, end - at, left);
        const piece = file.bytes.subarray(at, at + n);
        response.write(host.lie && at >= 64 ? piece.map((byte) => 255 - byte) : piece);
        at += n;
        left -= n;
        host.sent += n;
        if (left === 0) {
            await pause(20); // let what was written arrive
            response.destroy();
        }
        if (host.rate > 0) {
            await pause(50);
        }
    }
    response.end();
}

export async function startHost(): Promise<Host> {
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const url = new URL(request.url ?? "/", host.url);
        const path = decodeURIComponent(url.pathname);
        host.requests.push(`${request.method} ${path}${request.headers.range ? ` ${request.headers.range}` : ""}`);
        response.setHeader("Access-Control-Allow-Origin", "*");
        if (request.method === "OPTIONS") {
            response.writeHead(204, { "Access-Control-Allow-Headers": "Range" }).end();
            return;
        }
        const tree = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/main$/.exec(path)?.[1];
        const [, repository = "", name = ""] = /^\/([^/]+\/[^/]+)\/resolve\/main\/(.+)$/.exec(path) ?? [];
        const [, stored = "", inStore = ""] = /^\/cdn\/([^/]+\/[^/]+)\/(.+)$/.exec(path) ?? [];
        const manifest = /^\/v2\/library\/([^/]+)\/manifests\/(.+)$/.exec(path);
        const digest = /^\/v2\/library\/[^/]+\/blobs\/sha256:([0-9a-f]{64})$/.exec(path)?.[1];
        const blobs = Object.values(host.repositories).flatMap((files) => Object.values(files));
        const file = host.repositories[stored]?.[inStore] ?? blobs.find((one) => digest !== undefined && hashOf(one) === digest);
        if (tree !== undefined && host.repositories[tree]) {
            list(host, tree, Number(url.searchParams.get("cursor") ?? 0), response);
        } else if (host.repositories[repository]?.[name]) {
            // As Hugging Face does: files are on another address, whose answer the page sees.
            response.writeHead(302, { Location: `/cdn/${repository}/${name.split("/").map(encodeURIComponent).join("/")}` }).end();
        } else if (manifest && host.repositories[`library/${manifest[1]}`]) {
            const files = Object.entries(host.repositories[`library/${manifest[1]}`] ?? {});
            const layers = files.map(([type, one]) => ({ mediaType: `application/vnd.ollama.image.${type}`, digest: `sha256:${hashOf(one)}`, size: one.bytes.length }));
            response.writeHead(200, { "Content-Type": "application/vnd.docker.distribution.manifest.v2+json" }).end(JSON.stringify({ schemaVersion: 2, layers }));
        } else if (file) {
            await send(host, file, request, response);
        } else {
            response.writeHead(404).end("not found\n");
        }
    };
    const http = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const host: Host = {
        url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
        repositories: {},
        requests: [],
        sent: 0,
        refuseRanges: false,
        rate: 0,
        cutAfter: 0,
        lie: false,
        pageSize: 1000,
        close: () =>
            new Promise((resolve) => {
                http.closeAllConnections();
                http.close(() => resolve());
            }),
    };
    return host;
}
