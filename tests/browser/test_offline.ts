/** The page as it is published: few and small requests, offline after one visit, and on servers without range requests. */
import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { check, checkEqual, test } from "../web/check.js";
import { end, screenshot, withBrowser } from "./browser.js";
import { answered, openPage, ready, send, setSettings } from "./page.js";
import { startServer } from "./server.js";

const app = "build/web/app";
const MAX_REQUESTS = 8;
const MAX_CODE = 300_000;

await test(`at most ${MAX_REQUESTS} requests until the page can be used, less than ${MAX_CODE / 1000} KB of code`, async () => {
    const server = await startServer({ mounts: [["/", app]] });
    await withBrowser({ adapter: "none" }, async ({ page }) => {
        await page.goto(`${server.url}/`);
        await page.waitForSelector("html[data-started]");
        const requests = await page.evaluate(() => {
            const started = performance.getEntriesByName("started")[0]?.startTime ?? 0;
            const made = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
            return made.filter(({ startTime }) => startTime < started).map(({ name }) => name);
        });
        check(requests.length >= 4, `only ${requests.join(", ")}`);
        check(requests.length <= MAX_REQUESTS, `${requests.length} requests: ${requests.join(", ")}`);
        const code = requests.map((url) => new URL(url).pathname).filter((path) => /\.(js|css)$/.test(path));
        check(code.length >= 3, `code: ${code.join(", ")}`);
        const sizes = await Promise.all(code.map(async (path) => (await stat(join(app, `${path}.gz`))).size));
        const sum = sizes.reduce((a, b) => a + b, 0);
        check(sum < MAX_CODE, `${sum} bytes`);
    });
    await server.close();
});

await test("after one visit the page and Pebble work without the server", async () => {
    const server = await startServer({ mounts: [["/", app]] });
    await withBrowser({ adapter: "none", ownProcess: true }, async ({ page }) => {
        await openPage(page, server);
        await ready(page); // Pebble loads by itself
        await setSettings(page, { seed: 3, think: false, maxTokens: 24 });
        await send(page, "Who are you?");
        const online = await answered(page);
        // The service worker has stored the page and the model.
        await page.evaluate(() => navigator.serviceWorker.ready);
        await page.waitForFunction(async () => (await caches.match("builtin/pebble.gguf")) !== undefined);
        await server.close();
        await page.reload();
        await page.waitForSelector("html[data-started]");
        await ready(page);
        await page.click("#new-chat");
        await send(page, "Who are you?");
        checkEqual(await answered(page), online, "answer");
        await screenshot(page, "offline");
    });
});

/** A server that comes with Python; it ignores requests for ranges. */
async function withPythonServer(folder: string, use: (url: string) => Promise<void>): Promise<void> {
    const program = spawn("/usr/bin/python3", ["-u", "-m", "http.server", "-b", "127.0.0.1", "-d", folder, "0"], { stdio: ["ignore", "pipe", "ignore"] });
    try {
        const line = await new Promise<string>((resolve, reject) => {
            program.stdout.once("data", (bytes: Buffer) => resolve(String(bytes)));
            program.once("exit", (code) => reject(new Error(`python3 ended with status ${code}`)));
        });
        await use(`http://127.0.0.1:${/port (\d+)/.exec(line)?.[1]}`);
    } finally {
        program.kill();
    }
}

await test("make dist-web, served by python3 -m http.server: Pebble answers", () =>
    withPythonServer("build/dist-web/site", (url) =>
        withBrowser({ adapter: "none" }, async ({ page, log }) => {
            await page.goto(`${url}/`);
            await ready(page);
            await setSettings(page, { seed: 3, think: false, maxTokens: 12 });
            await send(page, "Who are you?");
            check((await answered(page)).length > 10, "answer");
            checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
        })));

await end();
