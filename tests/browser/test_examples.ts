/** examples/web, as a user runs them: pages in the browser, programs in Node. */
import { execFile } from "node:child_process";
import { cp, mkdir, rm } from "node:fs/promises";
import { resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { check, checkEqual, test } from "../web/check.js";
import { end, withBrowser } from "./browser.js";
import { startServer } from "./server.js";

const run = promisify(execFile);
const folder = "build/clients";
const pebble = "models/pebble.gguf";

await rm(`${folder}/node_modules/bezel`, { recursive: true, force: true });
await cp("build/web/package", `${folder}/node_modules/bezel`, { recursive: true });
await mkdir(`${folder}/examples`, { recursive: true });
await cp("examples/web", `${folder}/examples`, { recursive: true });

for (const name of ["openai", "langchain"]) {
    await test(`${name}.mjs answers in Node`, async () => {
        const { stdout } = await run(process.execPath, ["--no-warnings", `${name}.mjs`, resolve(pebble), "Who are you?"], { cwd: `${folder}/examples` });
        check(/Pebble|tiny|model/i.test(stdout), stdout);
    });
}

const server = await startServer({ mounts: [["/node_modules/bezel", "build/web/package"], ["/", "examples/web"]] });

await withBrowser({ adapter: "none" }, async ({ page, log }) => {
    await test("chat.html: a file is chosen, a question answered, an answer stopped", async () => {
        await page.goto(`${server.url}/chat.html`);
        await page.setInputFiles("#file", pebble);
        await page.waitForSelector("#send:not([disabled])");
        for (const question of ["Who are you?", "Tell me a short story about a fox."]) {
            await page.fill("#question", question);
            await page.click("#send");
            await page.waitForFunction(() => (document.querySelector("p.assistant:last-child")?.textContent?.length ?? 0) > 5);
            await page.evaluate((stop) => stop && document.getElementById("stop")?.click(), question.startsWith("Tell")); // it may have ended by itself
            await page.waitForSelector("#send:not([disabled])");
        }
        checkEqual(await page.locator("p.assistant").count(), 2, "answers");
    });

    await test("tools.html: a function is called, an answer follows a schema", async () => {
        await page.goto(`${server.url}/tools.html`);
        await page.setInputFiles("#file", pebble);
        await page.waitForFunction(() => document.getElementById("log")?.textContent?.endsWith("done\n"));
        const text = (await page.textContent("#log")) ?? "";
        check(/^multiply\(-?[\d.e+]+, -?[\d.e+]+\)/.test(text) && /as JSON: \{\s*"color": ?"(red|green|blue)"/.test(text), text);
        checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
    });
});

await end(server);
