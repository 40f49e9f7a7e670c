/** A web server with one file and configurable faults. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class FileServer {
    bytes: Uint8Array;
    etag: string | null = '"one"';
    /** Sent as X-Linked-ETag. */
    linkedTag: string | null = null;
    ranges = true;
    sendsLength = true;
    status = 0;
    /** The next `breaks` responses are cut off after `breakAfter` bytes. */
    breakAfter = Infinity;
    breaks = 0;
    /** The next `stalls` requests get no answer, or `stallAfter` bytes of one, and the connection stays open. */
    stalls = 0;
    stallAfter = 0;
    /** Called after each response has been started. */
    onSent: (() => void) | null = null;
    readonly requests: { range: string | undefined; ifRange: string | undefined; status: number }[] = [];
    sentBytes = 0;
    readonly #server = createServer((request, response) => this.#answer(request, response));

    constructor(bytes: Uint8Array) {
        this.bytes = bytes;
    }

    async start(): Promise<string> {
        await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
        return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/models/nano%20e.gguf?download=true`;
    }

    stop(): void {
        this.#server.close();
        this.#server.closeAllConnections();
    }

    resetCounts(): void {
        this.requests.length = 0;
        this.sentBytes = 0;
    }

    #answer(request: IncomingMessage, response: ServerResponse): void {
        const { range, "if-range": ifRange } = request.headers as Record<string, string | undefined>;
        const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? [];
        const partial = this.ranges && first !== undefined && (ifRange === undefined || ifRange === this.etag);
        const from = partial ? Number(first) : 0;
        const to = partial ? Math.min(Number(last) + 1, this.bytes.byteLength) : this.bytes.byteLength;
        const status = this.status || (partial ? 206 : 200);
        this.requests.push({ range, ifRange, status });
        const body = this.status ? new TextEncoder().encode("no") : this.bytes.subarray(from, to);
        const headers: Record<string, string> = this.etag === null ? {} : { ETag: this.etag };
        if (this.linkedTag !== null) {
            headers["X-Linked-ETag"] = this.linkedTag;
        }
        if (partial) {
            headers["Content-Range"] = `bytes ${from}-${to - 1}/${this.bytes.byteLength}`;
        }
        if (this.sendsLength) {
            headers["Content-Length"] = String(body.byteLength);
        }
        if (this.stalls > 0 && this.stallAfter === 0) {
            this.stalls--;
            return;
        }
        response.writeHead(status, headers);
        if (request.method === "HEAD") {
            response.end();
            return;
        }
        if (this.stalls > 0 && body.byteLength > this.stallAfter) {
            this.stalls--;
            this.sentBytes += this.stallAfter;
            response.write(body.subarray(0, this.stallAfter));
        } else if (body.byteLength > this.breakAfter && this.breaks > 0) {
            this.breaks--;
            this.sentBytes += this.breakAfter;
            response.write(body.subarray(0, this.breakAfter), () => request.socket.destroySoon()); // after the bytes are flushed
        } else {
            this.sentBytes += body.byteLength;
            response.end(body);
        }
        this.onSent?.();
    }
}
