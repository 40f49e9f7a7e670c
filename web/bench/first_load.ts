/** How long a first visit to the page takes over a slow line.
 *
 *   node build/web/js/web/bench/first_load.js [--runs 3] [--latency 100] [--megabits 10] [--folder build/web/app]
 *
 * Prints, for each run: the first paint, until something can be clicked, and until Pebble is ready, in seconds; and the
 * requests and bytes until then. The server is the slow line: it answers each request after the latency, and all answers
 * share its rate. Chromium's own throttling does not reach workers, which fetch the engine and the model. Files are sent
 * compressed where the folder has a .gz beside them, as servers do. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { withBrowser } from "../../tests/browser/browser.js";
import { ready } from "../../tests/browser/page.js";
import { startServer } from "../../tests/browser/server.js";

const { values } = parseArgs({
    options: {
        runs: { type: "string", default: "3" },
        latency: { type: "string", default: "100" },
        megabits: { type: "string", default: "10" },
        folder: { type: "string", default: "build/web/app" },
    },
});
const [latency, megabits] = [Number(values.latency), Number(values.megabits)];
const PIECE = 16_384;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const types: Record<string, string> = { js: "text/javascript", css: "text/css", wasm: "application/wasm", json: "application/json", svg: "image/svg+xml", html: "text/html" };

let sent = 0;
/** When the line is free again, in milliseconds. */
let free = 0;

const server = await startServer({
    mounts: [],
    intercept: async (request, response) => {
        const path = (request.url ?? "/").replace(/[?#].*/, "");
        const file = join(values.folder, path.endsWith("/") ? `${path}index.html` : path);
        const packed = await readFile(`${file}.gz`).catch(() => null);
        const bytes = packed ?? (await readFile(file).catch(() => null));
        await pause(latency);
        if (!bytes) {
            response.writeHead(404).end();
            return true;
        }
        const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
        const part = packed || from === undefined ? null : bytes.subarray(Number(from), to ? Number(to) + 1 : bytes.length);
        const body = part ?? bytes;
        response.writeHead(part ? 206 : 200, {
            "Content-Type": types[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream",
            "Content-Length": body.length,
            "Cache-Control": "no-cache",
            ...(packed ? { "Content-Encoding": "gzip" } : {}),
            ...(part ? { "Content-Range": `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}` } : {}),
        });
        for (let at = 0; at < body.length && !response.destroyed; at += PIECE) {
            const piece = body.subarray(at, at + PIECE);
            free = Math.max(free, performance.now()) + (8 * piece.length) / (megabits * 1000);
            await pause(free - performance.now());
            response.write(piece);
            sent += piece.length;
        }
        response.end();
        return true;
    },
});

for (let run = 0; run < Number(values.runs); run++) {
    await withBrowser({ adapter: "none", ownProcess: true }, async ({ page }) => {
        server.requests.length = 0;
        [sent, free] = [0, 0];
        await page.goto(`${server.url}/`);
        await ready(page);
        const { paint, started, loaded, requests } = await page.evaluate(() => {
            const mark = (name: string): number => performance.getEntriesByName(name)[0]?.startTime ?? 0;
            const before = performance.getEntriesByType("resource").filter(({ startTime }) => startTime < mark("started"));
            return { paint: mark("first-contentful-paint"), started: mark("started"), loaded: performance.now(), requests: before.length + 1 };
        });
        const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
        console.log(`first paint ${seconds(paint)}, usable ${seconds(started)} after ${requests} requests, Pebble ready ${seconds(loaded)}, ${(sent / 1e6).toFixed(1)} MB`);
    });
}
await server.close();
process.exit(0);
