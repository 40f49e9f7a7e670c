/** The benchmark of the loaded model, and two models side by side. */
import { readFile } from "node:fs/promises";
import { check, checkEqual, test } from "../web/check.js";
import { allowClipboard, end, quick, screenshot, withBrowser } from "./browser.js";
import { loadOffer, openPage, ready, servePebble, setSettings } from "./page.js";

const server = await servePebble();

interface Result {
    version: number;
    model: { name: string; bytes: number };
    device: { kind: string; threads: number };
    loadSeconds: number;
    prompt: { tokens: number; perSecond: number }[];
    decode: { depth: number; tokens: number; perSecond: number }[];
}

await test("the benchmark: figures, as JSON and as a picture; cancelled and refused where it has to be", () =>
    withBrowser({ adapter: "none" }, async (browser) => {
        const { page, log } = browser;
        await openPage(page, server);
        await setSettings(page, { device: "cpu", maxTokens: 16, seed: 3, think: false });
        await loadOffer(page, "Pebble");
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Benchmark")');
        await page.waitForFunction(() => Number(document.querySelector("#bench .bar")?.getAttribute("aria-valuenow")) > 0);
        await page.click('#bench button:has-text("Cancel")');
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Benchmark")');
        await page.waitForSelector("#bench .figures");
        await screenshot(page, "benchmark");
        await allowClipboard(browser, server.url);
        await page.click('#bench button:has-text("Copy as JSON")');
        await page.waitForSelector('#bench [role="status"]:has-text("clipboard")');
        const result = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as Result;
        checkEqual([result.version, result.model.name, result.device.kind], [1, "Pebble", "cpu"], "what was measured");
        checkEqual(result.prompt.map(({ tokens }) => tokens), [128, 512], "prompts");
        checkEqual(result.decode.map(({ depth, tokens }) => [depth, tokens]), [[512, 64], [1024, 64]], "depths in a context of 2,048");
        const rates = [...result.prompt, ...result.decode].map(({ perSecond }) => perSecond);
        check(rates.every((rate) => rate > 1 && rate < 1e6) && result.loadSeconds > 0, JSON.stringify(result));
        const [saved] = await Promise.all([page.waitForEvent("download"), page.click('#bench button:has-text("Save picture")')]);
        check(/^bezel-Pebble-\d{4}-\d\d-\d\d\.png$/.test(saved.suggestedFilename()), saved.suggestedFilename());
        const png = await readFile((await saved.path()) ?? "");
        checkEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [1200, 630], "the picture's size");
        await saved.saveAs("build/screenshots/benchmark-picture.png");
        await page.click('#bench button:has-text("Close")');
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Change")');
        await loadOffer(page, "Pebble Diffusion");
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Benchmark")');
        await page.waitForSelector('#bench [role="alert"]:has-text("diffusion model")');
        checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
    }));

// In its short form only the second, which loads and frees more.
for (const memory of quick ? [0.001] : [8, 0.001]) {
    const inTurn = memory < 1;
    await test(`two models side by side: ${inTurn ? "one after the other with little memory" : "both at once"}`, () =>
        withBrowser({ adapter: "none", ...(inTurn ? { phone: true, colors: "dark" } : {}) }, async ({ page, log }) => {
            await page.addInitScript((value) => Object.defineProperty(navigator, "deviceMemory", { value }), memory);
            await openPage(page, server);
            await setSettings(page, { device: "cpu", maxTokens: 24, seed: 3, think: false });
            await loadOffer(page, "Pebble");
            await page.click("#model-chip");
            await page.click('#model-info button:has-text("Change")');
            await page.click('button:has-text("Compare two models")');
            await page.waitForFunction(() => document.querySelectorAll("#compare option").length >= 4);
            await page.fill("#compare-question", "Write a story about a fox.");
            await page.click('#compare button:has-text("Ask both")');
            await page.waitForFunction(() => [...document.querySelectorAll("#compare .compare-side")].every((side) => side.getAttribute("data-state") === "done"));
            const texts = await page.locator("#compare .compare-text").allTextContents();
            check(texts.length === 2 && texts.every((text) => text.length > 20) && texts[0] !== texts[1], JSON.stringify(texts));
            checkEqual(await page.locator("#compare .canvas:visible").count(), 0, "canvases after the end");
            check(texts.every((text) => text.lastIndexOf(text.slice(0, 20)) === 0), `written once: ${JSON.stringify(texts)}`);
            const status = await page.locator("#compare .compare-status").allTextContents();
            check(status.every((text) => /\d+ tokens · .* tokens\/s/.test(text)), JSON.stringify(status));
            checkEqual(/one after the other/.test((await page.textContent("#compare")) ?? ""), inTurn, "in turn");
            await screenshot(page, `compare-${inTurn ? "phone-dark" : "desktop-light"}`);
            await page.click('#compare button:has-text("Close")');
            await ready(page); // the conversation's model is loaded again
            checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
        }));
}

await end(server);
