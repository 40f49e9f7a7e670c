// Compares the npm package with wllama in one Chromium page, alternating: speed of a prompt and of an answer on the CPU.
//
//   node bench/compare_wllama.mjs FILE.gguf WLLAMA [--threads N] [--words N] [--tokens N] [--rounds N]
//
// WLLAMA: the folder of an installed @wllama/wllama. The page is cross-origin isolated, so that both have threads.
// Prints tokens/s of each round and the median of the ratios. `make web` and `sh tools/setup.sh browser` come first.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { parseArgs } from "node:util";

const { chromium } = createRequire(join(process.cwd(), "build/web/"))("playwright-core");

const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
        threads: { type: "string", default: "1" },
        words: { type: "string", default: "128" },
        tokens: { type: "string", default: "32" },
        rounds: { type: "string", default: "3" },
    },
});
const [model, wllama] = positionals;
if (!model || !wllama) {
    console.error("compare_wllama.mjs FILE.gguf WLLAMA [--threads N] [--words N] [--tokens N] [--rounds N]");
    process.exit(2);
}

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const folders = [["/bezel/", "build/web/package/dist"], ["/wllama/", join(wllama, "esm")]];

const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const folder = folders.find(([prefix]) => path.startsWith(prefix));
    const file = path === "/model.gguf" ? model : folder && join(folder[1], normalize(path.slice(folder[0].length)));
    const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
    if (path === "/") {
        response.writeHead(200, { ...headers, "Content-Type": "text/html" }).end("<!doctype html><title>Speed</title>");
        return;
    }
    const size = file && (await stat(file).catch(() => undefined))?.size;
    if (size === undefined) {
        response.writeHead(404, headers).end();
        return;
    }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const start = range ? Number(range[1]) : 0;
    const end = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
    response.writeHead(range ? 206 : 200, {
        ...headers,
        "Content-Type": types[extname(file)] ?? "application/octet-stream",
        "Content-Length": end - start + 1,
        ...(range ? { "Content-Range": `bytes ${start}-${end}/${size}` } : {}),
    });
    createReadStream(file, { start, end }).pipe(response);
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));

const browser = await chromium.launch({ executablePath: "/usr/lib/chromium/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
page.setDefaultTimeout(0);
page.on("pageerror", (error) => console.error(String(error)));
await page.goto(`http://127.0.0.1:${server.address().port}/`);

/** Prompt and answer in tokens/s, by the clocks of both engines. */
async function measure(which, settings) {
    return page.evaluate(
        async ({ which, threads, words, tokens, round }) => {
            const text = Array.from({ length: words }, (_, i) => `${String.fromCharCode(97 + ((i * 7 + round) % 26))}${(i * i + round) % 10}`).join(" ");
            if (which === "bezel") {
                globalThis.bezel ??= await (await import("/bezel/index.js")).Bezel.load("/model.gguf", { device: "cpu", threads, contextLength: 4096 });
                const { timings, usage } = await globalThis.bezel.chat.completions.create({
                    messages: [{ role: "user", content: text }],
                    max_tokens: tokens,
                    temperature: 0,
                });
                return { threads: globalThis.bezel.info.threads, timings, usage };
            }
            if (!globalThis.wllama) {
                const { Wllama } = await import("/wllama/index.js");
                globalThis.wllama = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { suppressNativeLog: true });
                const blob = await (await fetch("/model.gguf")).blob();
                await globalThis.wllama.loadModel([blob], { n_ctx: 4096, n_threads: threads, n_batch: 512, n_gpu_layers: 0 });
            }
            const { timings, usage } = await globalThis.wllama.createCompletion({ prompt: text, max_tokens: tokens, temperature: 0 });
            return { threads: globalThis.wllama.getNumThreads(), timings, usage };
        },
        { which, ...settings },
    );
}

const settings = Object.fromEntries(["threads", "words", "tokens"].map((key) => [key, Number(values[key])]));
const ratios = { prompt: [], answer: [] };
const show = (name, { threads, timings }) => {
    console.log(
        `${name.padEnd(7)} ${threads} threads  prompt ${timings.prompt_n} tokens ${timings.prompt_per_second.toFixed(1)}/s` +
            `  answer ${timings.predicted_n} tokens ${timings.predicted_per_second.toFixed(2)}/s`,
    );
    return timings;
};
for (let round = 0; round < Number(values.rounds); round++) {
    const ours = show("bezel", await measure("bezel", { ...settings, round }));
    const theirs = show("wllama", await measure("wllama", { ...settings, round }));
    ratios.prompt.push(ours.prompt_per_second / theirs.prompt_per_second);
    ratios.answer.push(ours.predicted_per_second / theirs.predicted_per_second);
}
for (const [what, all] of Object.entries(ratios)) {
    all.sort((a, b) => a - b);
    console.log(`${what}: ${all[all.length >> 1].toFixed(2)} x wllama (${all[0].toFixed(2)} to ${all.at(-1).toFixed(2)})`);
}
await browser.close();
server.close();
