/** The page with the real engine and small random models: loading, chatting, stopping, recovering after a reload and
 * after a device loss, without requests to other origins. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { goldenFolder } from "../web/golden.js";
import { chromiumOnly, end, inFirefox, quick, screenshot, withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import { answered, answerText, begun, loadOffer, modelFolder, nano, openPage, ready, send, servePage, setSettings, stored, until, type PageSettings } from "./page.js";
import { withBezelServe } from "./serve.js";

/** On the CPU, an answer of the smallest model ends sooner than it can be stopped. */
const model = inFirefox ? "tiny-12b-q8_0" : nano;
const server = await servePage({ model });

/** "automatic" does not choose software adapters, so the GPU is selected explicitly. Debian's Firefox has no WebGPU. */
const onGpu: PageSettings = { device: inFirefox ? "cpu" : "gpu" };

function checkRequests({ requested }: Browser): void {
    const foreign = requested.filter((url) => !url.startsWith(`${server.url}/`) && !/^(blob|data|chrome|about):/.test(url));
    checkEqual(foreign, [], "requests to other origins");
    check(requested.some((url) => url.endsWith(".gguf")) || requested.length > 5, "requests are recorded");
}

function checkLog({ log }: Browser): void {
    const bad = log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404")); // models/ does not exist
    checkEqual(bad, [], "errors in the console");
}

type Body = (page: Page, browser: Browser) => Promise<void>;

const page = (name: string, options: BrowserOptions, settings: PageSettings, body: Body): Promise<void> =>
    test(name, () =>
        withBrowser(options, async (browser) => {
            await openPage(browser.page, server);
            await setSettings(browser.page, { seed: 1, ...settings }); // with other seeds a random model may start with invisible tokens
            await body(browser.page, browser);
            checkRequests(browser);
        }));

const gpuPage = chromiumOnly(page);
const slowPage: typeof page = (...all) => (quick ? Promise.resolve() : gpuPage(...all));

/** Crashes the GPU process, as a faulty driver does. */
async function loseDevice({ context, page: p }: Browser): Promise<void> {
    const session = await context.newCDPSession(p);
    await session.send("Browser.crashGpuProcess");
    await session.detach();
}

await page("a served model: summary, two turns, stop, continue, regenerate, edit", {}, { ...onGpu, seed: 1 }, async (p, browser) => {
    await p.click('button.choice:has-text("Nano")');
    const card = (await p.waitForSelector(".card .callout")) && ((await p.textContent(".card")) ?? "");
    const facts = inFirefox ? ["synthetic gemma4 tiny-12b", "11 MB"] : ["synthetic gemma4 nano-e", "545 kB", "463,704"];
    for (const text of [...facts, "Q8_0", "512 tokens", "of memory"]) {
        check(card.includes(text), `${text} in ${card}`);
    }
    await p.click('.card button:has-text("Load")');
    await ready(p);
    await setSettings(p, { maxTokens: 12 });
    await send(p, "Name three gems.");
    const first = await answered(p);
    check(first.trim().length > 0, "a first answer");
    check(/12 tokens · [\d.]+ tokens\/s/.test((await p.textContent(".message.last .figures")) ?? ""), "figures");
    await send(p, "And three more?");
    await answered(p);
    checkEqual(await p.locator(".message").count(), 4, "messages");
    const used = async (): Promise<number> => parseInt((await p.textContent("#context-text")) ?? "", 10);
    const before = await used();
    check(before > 5, `context: ${before}%`);

    await setSettings(p, { maxTokens: 0 });
    await send(p, "Continue forever.");
    await p.waitForFunction(() => {
        // in one call: between two of them, on a busy machine, the answer could end; again: right after sending, a click counts as the second one of a double click
        const stop = document.querySelector<HTMLButtonElement>('#send[aria-label="Stop"]');
        const text = document.querySelector(".message.assistant.last .prose")?.textContent ?? "";
        if (text.length > 0) stop?.click();
        return document.querySelector('.message.last[data-state="stopped"]') !== null;
    });
    await p.waitForSelector('.message.last[data-state="stopped"]');
    const stopped = (await answerText(p)).trimEnd();
    check(stopped.length > 0, "the text is kept");
    await setSettings(p, { maxTokens: 8 });
    await p.click('.message.last button:has-text("Continue")');
    await p.waitForSelector('.message.last[data-state="done"]');
    check((await answerText(p)).startsWith(stopped.slice(0, 3)) && (await answerText(p)).length > stopped.length, "it was continued");

    await setSettings(p, { seed: 7 });
    await p.click('.message.last button:has-text("Answer again")');
    await answered(p);
    checkEqual(await p.locator(".message").count(), 6, "the new answer replaces the old one");
    const again = await answerText(p);
    await p.click('.message.last button:has-text("Answer again")');
    await answered(p);
    checkEqual(await answerText(p), again, "same seed, same answer");
    await p.hover(".message.user >> nth=0");
    await p.click('.message.user >> nth=0 >> button:has-text("Edit")');
    await p.fill(".edit textarea", "Name three metals.");
    await p.click('.edit button:has-text("Send")');
    await answered(p);
    checkEqual(await p.locator(".message").count(), 2, "later messages are removed");
    await screenshot(p, "real-desktop-light");
    checkLog(browser);
});

await page("a reload during an answer keeps its text, and the model is loaded again", {}, onGpu, async (p) => {
    await loadOffer(p);
    await send(p, "Tell me everything.");
    await p.waitForFunction(() => (document.querySelector(".message.last .prose")?.textContent?.length ?? 0) > 30);
    await until(p, async () => (await stored<{ role: string; content: string }>(p, "messages")).some(({ role, content }) => role === "assistant" && content.length > 20));
    await p.reload();
    await p.waitForSelector('.message.last[data-state="interrupted"]');
    check((await answerText(p)).length > 10, "the partial answer is kept");
    check(((await p.textContent(".message.last .outcome")) ?? "").includes("cut off"), "marked as cut off");
    await ready(p);
    await setSettings(p, { maxTokens: 6 });
    await p.click('.message.last button:has-text("Continue")');
    await p.waitForSelector('.message.last[data-state="done"]');
});

await gpuPage("a device loss while answering: the answer is completed", { ownProcess: true }, { ...onGpu, maxTokens: 60, seed: 3 }, async (p, browser) => {
    await loadOffer(p);
    await send(p, "Speak until I stop you.");
    await begun(p);
    const before = (await answerText(p)).trim().slice(0, 4);
    await loseDevice(browser);
    await answered(p);
    // The engine gets a new device if the browser offers one immediately; otherwise the page loads the model again.
    const failed = (await p.getAttribute(".message.last", "data-state")) === "failed";
    if (failed) {
        await p.waitForSelector('.message.last .outcome[data-code="device_lost"]');
        await ready(p);
        await p.click('.message.last .outcome button:has-text("Continue")');
        await answered(p);
    }
    checkEqual(await p.getAttribute(".message.last", "data-state"), "done", "state");
    check((await answerText(p)).trim().startsWith(before), "the text is kept");
});

// In a browser process of its own: Chromium offers no adapter after two crashes of its GPU process.
await slowPage("a device loss between answers: the next question is answered", { ownProcess: true }, { ...onGpu, maxTokens: 6 }, async (p, browser) => {
    await loadOffer(p);
    await loseDevice(browser);
    await send(p, "Are you there?");
    await p.waitForSelector('.message.last[data-state="done"]:has-text("6 tokens")');
    checkEqual(await p.locator(".message").count(), 2, "messages");
});

await page("a file from an input element", {}, { device: "cpu", maxTokens: 6 }, async (p) => {
    await p.evaluate(() => Reflect.deleteProperty(window, "showOpenFilePicker"));
    const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click('button.choice:has-text("Open a GGUF")')]);
    checkEqual(await chooser.element().getAttribute("accept"), null, "files without an extension, such as Ollama's, can be chosen");
    await chooser.setFiles({ name: `sha256-${"0123456789abcdef".repeat(4)}`, mimeType: "", buffer: await readFile("models/pebble.gguf") });
    await p.click('.card button:has-text("Load")');
    await ready(p);
    checkEqual(await p.textContent("#model-chip .name"), "Pebble", "named by its header");
    await send(p, "Hello");
    check((await answered(p)).length > 0, "an answer");
});

await page("a model of two files: the mmproj file alone is refused, and both together are loaded", {}, { device: "cpu", maxTokens: 6 }, async (p) => {
    await p.evaluate(() => Reflect.deleteProperty(window, "showOpenFilePicker"));
    const choose = async (button: string, file: string): Promise<void> => {
        const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click(button)]);
        await chooser.setFiles(file);
    };
    await choose('button.choice:has-text("Open a GGUF")', `${goldenFolder}/e-like/mmproj.gguf`);
    await p.waitForSelector('.card[data-code="bad_request"]:has-text("text model")');
    await choose('.card button:has-text("Add the other file")', `${goldenFolder}/e-like/text.gguf`);
    await p.waitForSelector('.card .callout');
    const card = (await p.textContent(".card")) ?? "";
    check(card.includes("2 files") && card.includes("images and sound"), card);
    await p.click('.card button:has-text("Load")');
    await ready(p);
    check(((await p.textContent("#model-chip")) ?? "").includes("text"), "named after the text model");
    await send(p, "Hello");
    check((await answered(p)).length > 0, "an answer");
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await choose('button.choice:has-text("Open a GGUF")', `${modelFolder}/nano-e-f32-00002-of-00003.gguf`);
    await p.waitForSelector('.card[data-code="not_found"]:has-text("missing")');
});

// Firefox gives pages no handles of files.
await chromiumOnly(page)("a file whose handle is stored: after a reload it is loaded again", { ownProcess: true }, { device: "cpu", maxTokens: 6 }, async (p) => {
    // Headless Chromium has no file picker; a handle of the origin private file system is stored in the same way.
    const bytes = [...(await readFile(`${modelFolder}/nano-e-q4_0.gguf`))];
    await p.evaluate(async (data) => {
        const root = await navigator.storage.getDirectory();
        const handle = await root.getFileHandle("mine.gguf", { create: true });
        const writer = await handle.createWritable();
        await writer.write(new Uint8Array(data));
        await writer.close();
        Object.assign(window, { showOpenFilePicker: (options: object) => ("types" in options ? Promise.reject(new Error("must not filter by type")) : Promise.resolve([handle])) });
    }, bytes);
    await p.click('button.choice:has-text("Open a GGUF")');
    await p.click('.card button:has-text("Load")');
    await ready(p);
    await p.reload();
    await ready(p);
    await send(p, "Hello");
    check((await answered(p)).length > 0, "an answer");
    await p.evaluate(() => sessionStorage.clear()); // as in another tab, days later
    await p.reload();
    await p.click('#composer-note button:has-text("Load mine again")');
    await ready(p);
});

await page("a dropped file that is not a model is refused", {}, { device: "cpu" }, async (p) => {
    await p.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["<html>no model</html>"], "page.gguf"));
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    });
    await p.waitForSelector('.card[data-code="bad_file"]');
});

await page("a URL: a wrong one is reported, a slow load is cancelled", {}, { device: "cpu" }, async (p) => {
    await p.fill('input[name="address"]', `${server.url}/models/nothing.gguf`);
    await p.click('form button:has-text("Open")');
    await p.waitForSelector('.card[data-code="not_found"]');
    await p.click('.card button:has-text("Choose another")');
    await p.fill('input[name="address"]', `${server.url}/models/nano-moe-f32.gguf`);
    await p.click('form button:has-text("Open")');
    await p.waitForSelector(".card .callout");
    server.modelRate = 200_000;
    await p.click('.card button:has-text("Load")');
    await p.waitForFunction(() => / of 3\.\d MB/.test(document.querySelector(".progress-line")?.textContent ?? ""));
    await p.click('.card button:has-text("Cancel")');
    await p.waitForSelector(".hero");
    server.modelRate = 0;
    await loadOffer(p);
});

await slowPage("the basic GPU: no features, default limits", {}, { device: "gpu-baseline", maxTokens: 4 }, async (p) => {
    await loadOffer(p);
    await send(p, "Hello");
    check((await answered(p)).length > 0, "an answer");
    await p.click("#model-chip");
    check(((await p.textContent("#model-info")) ?? "").includes("without optional features"), "basic GPU");
});

await slowPage("SwiftShader: another adapter, without f16", { adapter: "swiftshader" }, { ...onGpu, maxTokens: 4 }, async (p) => {
    await loadOffer(p);
    await send(p, "Hi");
    check((await answered(p)).length > 0, "an answer");
});

await page("without WebGPU: a notice, and the CPU answers", { adapter: "none", phone: true }, { maxTokens: 8 }, async (p) => {
    await p.waitForSelector('.callout:has-text("CPU")');
    await loadOffer(p);
    check(((await p.textContent("#composer-note")) ?? "").includes("CPU"), "the notice");
    await send(p, "Hello");
    check((await answered(p)).length > 0, "an answer");
    await screenshot(p, "real-phone-light");
});

await test("the page from bezel serve: its model, isolated, under its Content-Security-Policy", () =>
    withBezelServe(`${modelFolder}/${nano}.gguf`, (url) =>
        withBrowser({}, async (browser) => {
            const p = browser.page;
            await p.goto(url);
            await p.waitForSelector("html[data-started]");
            await setSettings(p, { device: "cpu", maxTokens: 6 });
            check(await p.evaluate(() => crossOriginIsolated), "isolated");
            const offered = await p.locator("button.choice b").allTextContents();
            checkEqual([offered[0], offered.length], [nano, 4], "the served model, two built-in ones, a file");
            await loadOffer(p, nano);
            await send(p, "Hello");
            check((await answered(p)).length > 0, "an answer");
            await p.click("#model-chip");
            check(/CPU, \d+ threads/.test((await p.textContent("#model-info")) ?? ""), "with threads");
            checkLog(browser);
            checkEqual(browser.requested.filter((one) => !one.startsWith(url)), [], "requests to other origins");
        })));

await test("bezel serve offers a split model and one with an mmproj file as one model each, also after a reload", async () => {
    const two = ["text", "mmproj"].map((name) => `${goldenFolder}/e-like/${name}.gguf`);
    const cases = [
        { files: [`${modelFolder}/nano-e-f32-00002-of-00003.gguf`], name: "nano-e-f32", says: "3 files", vision: false },
        { files: [two[0] ?? "", "--mmproj", two[1] ?? ""], name: "text", says: "images and sound", vision: true },
    ];
    for (const { files: [model = "", ...more], name, says, vision } of cases) {
        await withBezelServe(model, (url) =>
            withBrowser({ adapter: "none" }, async (browser) => {
                const p = browser.page;
                await p.goto(url);
                await p.waitForSelector("html[data-started]");
                await setSettings(p, { device: "cpu", maxTokens: 6 });
                checkEqual((await p.locator("button.choice b").allTextContents())[0], name, "the first offer");
                checkEqual(await p.locator("button.choice b").count(), 4, "the served model, two built-in ones, a file");
                await p.click("button.choice >> nth=0");
                await p.waitForSelector(`.card:has-text("${says}")`);
                await p.click('.card button:has-text("Load")');
                await ready(p);
                await p.reload();
                await ready(p);
                checkEqual(await p.getAttribute("#attach", "aria-disabled"), String(!vision), "attach button disabled");
                await send(p, "Hello");
                check((await answered(p)).length > 0, "an answer");
                checkLog(browser);
            }), ...more);
    }
});

await end(server);
