/** The page in Firefox: Pebble answers, answers are drawn as in Chromium, and the page works without its server. */
import { check, checkEqual, finish, test } from "../web/check.js";
import { withFirefox, type Firefox } from "./firefox.js";
import { startServer } from "./server.js";

/** Sends a message; returns the text of the answer. */
async function ask(firefox: Firefox, question: string): Promise<string> {
    await firefox.type("#composer-text", question);
    await firefox.click("#send");
    await firefox.shown('.message.assistant.last:not([data-state="answering"])');
    return firefox.text(".message.assistant.last .prose");
}

async function ready(firefox: Firefox): Promise<void> {
    await firefox.shown('#model-chip[data-state="ready"]');
    await firefox.shown("#composer-text");
}

await test("Firefox: Pebble loads by itself and answers; a tool is called; after that visit the server may be off", async () => {
    const server = await startServer({ mounts: [["/", "build/web/app"]] });
    await withFirefox(async (firefox) => {
        await firefox.goto(`${server.url}/`);
        await ready(firefox);
        check(/Pebble|tiny demo model/.test(await ask(firefox, "Who are you?")), "an answer");
        await firefox.click("#new-chat");
        await firefox.shown(".suggestions button");
        await firefox.evaluate(() => [...document.querySelectorAll<HTMLElement>(".suggestions button")].find((one) => one.textContent?.includes("57 times 38"))?.click());
        await firefox.shown('.message.assistant.last:not([data-state="answering"]) .call[data-state="done"]');
        check((await firefox.text(".message.assistant.last .prose")).includes("2166"), "the tool's result");
        await firefox.screenshot("firefox");
        await firefox.evaluate(() => navigator.serviceWorker.ready.then(() => true));
        await firefox.evaluate(async () => {
            while ((await caches.match("builtin/pebble.gguf")) === undefined) {
                await new Promise((resolve) => setTimeout(resolve, 50));
            }
        });
        await server.close();
        await firefox.goto("about:blank");
        await firefox.goto(`${server.url}/`);
        await ready(firefox);
        check(/Pebble|tiny demo model/.test(await ask(firefox, "Who are you?")), "an answer without the server");
        checkEqual(await firefox.evaluate(() => document.querySelectorAll(".outcome.bad, .card.bad").length), 0, "errors");
    });
});

finish();
