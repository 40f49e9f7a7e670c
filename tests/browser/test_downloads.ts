/** Models of other hosts: cards, names, downloads in the background, and what can go wrong with them. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { goldenFolder } from "../web/golden.js";
import { end, screenshot, withBrowser, type Browser } from "./browser.js";
import { sha256Of, startHost } from "./fake_host.js";
import { answered, openPage, ready, send, setSettings } from "./page.js";
import { withBezelServe } from "./serve.js";
import { startServer } from "./server.js";

const host = await startHost();
const golden = `${goldenFolder}/e-like`;
const pebble = await readFile("models/pebble.gguf");
const diffusion = await readFile("models/pebble-diffusion.gguf");
const repository = {
    "pebble-Q4_K_M.gguf": { bytes: pebble },
    "pebble-Q8_0.gguf": { bytes: diffusion },
};
host.repositories["org/pebble-GGUF"] = repository;
host.repositories["org/no-hash"] = { "pebble-Q4_K_M.gguf": { bytes: pebble, sha256: "" } };
host.repositories["org/e-like"] = { "text.gguf": { bytes: await readFile(`${golden}/text.gguf`) }, "mmproj-F16.gguf": { bytes: await readFile(`${golden}/mmproj.gguf`) } };
const drafter = { bytes: await readFile("models/pebble-drafter.gguf") };
host.repositories["org/drafted"] = { "pebble-Q4_K_M.gguf": { bytes: pebble }, "mtp-pebble-Q8_0.gguf": drafter };
host.repositories["org/other-drafter"] = { "text.gguf": { bytes: await readFile(`${golden}/text.gguf`) }, "mtp-pebble-Q8_0.gguf": drafter };
host.repositories["library/pebble"] = { model: { bytes: pebble } };

const card = { name: "Gemma of the test", from: "org/pebble-GGUF:Q4_K_M", about: "Pebble, published elsewhere.", size: pebble.length, media: 0, abilities: ["text", "images", "tools"] };
const large = { name: "Too large", from: "org/large", about: "For another machine.", size: 60e9, media: 0, abilities: ["text"] };
const broken = { name: "No size", from: "org/broken", about: "", abilities: [] };

const own = JSON.parse(await readFile("build/web/app/models.json", "utf8")) as { models: object[] };
const lists = {
    /** Nothing loads by itself. */
    quiet: { hosts: { huggingFace: host.url, ollama: host.url }, models: own.models.map((one) => ({ ...one, auto: false })), cards: [card, large, broken] },
    pebble: { hosts: { huggingFace: host.url, ollama: host.url }, models: own.models, cards: [card] },
};

const server = await startServer({
    mounts: [["/", "build/web/app"]],
    intercept: (request, response) => {
        const list = /^\/(quiet|pebble)?\/?models\.json/.exec(request.url ?? "");
        if (!list) {
            return false;
        }
        const answer = (): unknown => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(lists[current]));
        if (held) {
            held.push(answer);
        } else {
            answer();
        }
        return true;
    },
});
let current: keyof typeof lists = "quiet";
/** Answers that the server keeps back. */
let held: (() => unknown)[] | null = null;

async function page(name: string, list: keyof typeof lists, use: (p: Page, browser: Browser) => Promise<void>): Promise<void> {
    await test(name, () => {
        Object.assign(host, { refuseRanges: false, rate: 0, cutAfter: 0, lie: false, sent: 0 });
        current = list;
        return withBrowser({ adapter: "none" }, async (browser) => {
            await openPage(browser.page, server);
            await use(browser.page, browser);
            checkEqual(browser.log.filter((line) => line.startsWith("uncaught:")), [], "errors");
        });
    });
}

/** Enters a name and begins the download. */
async function download(p: Page, name: string): Promise<void> {
    await p.fill('input[name="address"]', name);
    await p.click('form button:has-text("Open")');
    await p.click('.card button:has-text("Download")');
}

const inState = (p: Page, state: string): Promise<unknown> => p.waitForSelector(`.download[data-state="${state}"]`);
const storedNames = (p: Page): Promise<string[]> =>
    p.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        const folder = await root.getDirectoryHandle("bezel", { create: true });
        const names: string[] = [];
        for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) {
            names.push(name);
        }
        return names.sort();
    });

await page("two clicks: a card and Download; it is checked, stored and loaded", "quiet", async (p, { log }) => {
    await p.waitForSelector(".model-card");
    checkEqual(await p.locator(".model-card b:first-child").evaluateAll((all) => all.map((one) => one.textContent).filter((text) => !/device/.test(text ?? ""))), ["Gemma of the test", "Too large"], "cards");
    check(/Fits this device/.test((await p.textContent(".model-card.fits")) ?? ""), "a verdict");
    check(/Does not fit this device\. .*at most 3\.5 GB|Does not fit this device\. .*storage/.test((await p.textContent(".model-card.not")) ?? ""), "a reason");
    check(log.some((line) => line.includes("a card is left out")), "the broken card is reported");
    await screenshot(p, "cards-desktop-light");
    await p.click('.model-card:has-text("Gemma of the test")');
    await p.waitForSelector('.card button:has-text("Download")');
    const facts = (await p.textContent(".card .facts")) ?? "";
    check(facts.includes("11 MB") && facts.includes("SHA-256") && facts.includes("org/pebble-GGUF"), facts);
    await screenshot(p, "card-remote");
    await p.click('.card button:has-text("Download")');
    await ready(p);
    await setSettings(p, { seed: 3, maxTokens: 24 });
    await send(p, "Who are you?");
    check(/Pebble|demo model/.test(await answered(p)), "answer");
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await p.waitForSelector('.stored:has-text("checked")');
    await screenshot(p, "stored");
});

await page("a model with an mmproj file: both are found and stored, or one is left out; several addresses", "quiet", async (p) => {
    await p.fill('input[name="address"]', "org/e-like");
    await p.click('form button:has-text("Open")');
    await p.uncheck("#with-media");
    await p.waitForFunction(() => /Input\s*text(?! and)/.test(document.querySelector(".card .facts")?.textContent ?? ""));
    await p.check("#with-media");
    await p.waitForFunction(() => /2 files/.test(document.querySelector(".card .facts")?.textContent ?? ""));
    check(((await p.textContent(".card .facts")) ?? "").includes("images and sound"), "it sees and hears");
    await p.click('.card button:has-text("Download")');
    await ready(p);
    checkEqual((await storedNames(p)).map((name) => name.slice(9)), ["mmproj-F16.gguf", "text.gguf"], "stored");
    await p.click("#model-chip");
    check(((await p.textContent("#model-info")) ?? "").includes("images and sound"), "loaded with both");
    await p.click('#model-info button:has-text("Unload")');
    await p.waitForSelector('.stored:has-text("text")');
    await p.click('button[aria-label="Delete text"]');
    await p.click('#confirm button:has-text("Delete")');
    await p.waitForSelector(".stored", { state: "detached" });
    checkEqual(await storedNames(p), [], "both files are deleted");
    // Two addresses, pasted as two lines.
    const addresses = ["text.gguf", "mmproj-F16.gguf"].map((name) => `${host.url}/cdn/org/e-like/${name}`).join("\n");
    await p.focus('input[name="address"]');
    await p.evaluate((text) => {
        const data = new DataTransfer();
        data.setData("text/plain", text);
        const event = new ClipboardEvent("paste", { bubbles: true, cancelable: true });
        Object.defineProperty(event, "clipboardData", { value: data }); // Firefox copies none from the options
        document.activeElement?.dispatchEvent(event);
    }, addresses);
    await p.click('form button:has-text("Open")');
    await p.waitForFunction(() => /2 files.*not verified/.test(document.querySelector(".card .facts")?.textContent ?? ""));
});

await page("a repository's drafter is loaded with the model, unless it is another model's", "quiet", async (p) => {
    const open = async (name: string): Promise<string> => {
        await p.fill('input[name="address"]', name);
        await p.click('form button:has-text("Open")');
        await p.waitForSelector('.card button:has-text("Download")');
        return (await p.textContent(".card .facts")) ?? "";
    };
    const refused = await open("org/other-drafter");
    check(!refused.includes("Drafter") && !refused.includes("2 files"), refused);
    await p.click('.card button:has-text("Back")');
    const facts = await open("org/drafted");
    check(facts.includes("Drafter") && facts.includes("2 files"), facts);
    await p.click('.card button:has-text("Download")');
    await ready(p);
    checkEqual((await storedNames(p)).map((name) => name.slice(9)), ["mtp-pebble-Q8_0.gguf", "pebble-Q4_K_M.gguf"], "stored");
    await p.click("#model-chip");
    check(((await p.textContent("#model-info")) ?? "").includes("guesses the next tokens"), "loaded with both");
});

await page("a list that is drawn again keeps the name that is being typed", "pebble", async (p) => {
    await ready(p);
    held = [];
    await p.click('.empty button:has-text("Choose another model")');
    await p.fill('input[name="address"]', "org/pebble");
    await p.evaluate(() => document.querySelector(".start-column")?.setAttribute("data-before", ""));
    held.forEach((answer) => answer());
    held = null;
    await p.waitForSelector(".start-column:not([data-before])");
    checkEqual(await p.inputValue('input[name="address"]'), "org/pebble", "the name");
    await p.keyboard.type("-GGUF:Q8_0");
    checkEqual(await p.inputValue('input[name="address"]'), "org/pebble-GGUF:Q8_0", "typed on");
});

await page("in the background: Pebble answers meanwhile; pause, reload, resume, and no byte twice", "pebble", async (p) => {
    await ready(p);
    await p.click('.empty button:has-text("Choose another model")');
    host.rate = 300_000;
    await download(p, "org/pebble-GGUF:Q8_0");
    await inState(p, "running");
    await p.waitForFunction(() => /\/s · .* left/.test(document.querySelector(".download .amount")?.textContent ?? ""));
    await screenshot(p, "download-running");
    await p.click('button.choice:has-text("Back to the conversation")');
    await p.waitForSelector("#download-chip:visible");
    await setSettings(p, { seed: 3, maxTokens: 24 });
    await send(p, "Who are you?");
    check(/Pebble|demo model/.test(await answered(p)), "the answer during the download");
    check(await p.isVisible("#download-chip"), "it still runs");
    await screenshot(p, "download-chat");
    await p.click("#download-chip");
    await p.click('.download button:has-text("Pause")');
    await inState(p, "paused");
    const before = host.sent;
    host.rate = 0;
    await p.reload();
    await p.waitForSelector("html[data-started]");
    await ready(p);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await inState(p, "paused");
    checkEqual(host.sent, before, "nothing is fetched while it is paused");
    await p.click('.download button:has-text("Resume")');
    // It replaces Pebble, which nobody has chosen.
    await p.waitForSelector('#model-chip[data-state="ready"]:has-text("pebble-Q8_0")');
    check(host.sent < diffusion.length + 4 * 70_000 * 2 + 65536, `${host.sent} bytes were sent for a file of ${diffusion.length}`);
});

await page("a crash during a download: the next visit continues by itself", "quiet", async (p, { context }) => {
    host.rate = 400_000;
    await download(p, "org/pebble-GGUF:Q4_K_M");
    await p.waitForFunction(() => / of 11 MB/.test(document.querySelector(".download .amount")?.textContent ?? ""));
    await p.waitForFunction(() => Number(document.querySelector(".download .bar")?.getAttribute("aria-valuenow")) >= 10);
    const next = await context.newPage();
    await p.close(); // without a word to the page
    host.rate = 0;
    await openPage(next, server);
    await ready(next);
});

await page("a host that cuts connections: the download continues; one that refuses ranges: one request", "quiet", async (p) => {
    host.cutAfter = 1_500_000;
    await download(p, "org/pebble-GGUF:Q4_K_M");
    await ready(p);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Unload")');
    host.cutAfter = 0;
    host.refuseRanges = true;
    host.requests.length = 0;
    await download(p, `${host.url}/org/no-hash/resolve/main/pebble-Q4_K_M.gguf`);
    await ready(p);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await p.waitForSelector('.stored:has-text("not verified")');
});

await page("a host that lies: the bytes are refused and deleted", "quiet", async (p) => {
    await p.fill('input[name="address"]', "pebble:latest");
    await p.click('form button:has-text("Open")');
    await p.waitForSelector('.card button:has-text("Download")');
    host.lie = true;
    await p.click('.card button:has-text("Download")');
    await inState(p, "failed");
    const why = (await p.textContent(".download .why")) ?? "";
    check(/damaged/.test(why) && why.includes("does not match its checksum"), why);
    checkEqual(await storedNames(p), [], "nothing is kept");
    await screenshot(p, "download-failed");
    host.lie = false;
    await p.click('.download button:has-text("Try again")');
    await ready(p);
    check(host.requests.some((line) => line.includes(`sha256:${sha256Of(pebble)}`)), "from the registry");
});

await page("what is left over is listed and deleted; names that do not exist are explained", "quiet", async (p) => {
    host.rate = 300_000;
    await download(p, "org/pebble-GGUF:Q4_K_M");
    await inState(p, "running");
    await p.waitForFunction(() => Number(document.querySelector(".download .bar")?.getAttribute("aria-valuenow")) >= 10);
    await p.click('.download button:has-text("Delete")');
    await p.click('#confirm button:has-text("Delete")');
    await p.waitForSelector(".download", { state: "detached" });
    checkEqual(await storedNames(p), [], "its files are gone");
    // As after a crash that lost the page's database: only the files are there.
    await p.evaluate(async (url) => {
        const root = await navigator.storage.getDirectory();
        const folder = await root.getDirectoryHandle("bezel", { create: true });
        const write = async (name: string, text: string): Promise<void> => {
            const writer = await (await folder.getFileHandle(name, { create: true })).createWritable();
            await writer.write(text);
            await writer.close();
        };
        await write("old.gguf", "GGUF....");
        await write("old.gguf.journal", `${JSON.stringify({ url, validator: null, size: 100, ranges: true })}\n0 8\n`);
    }, `${host.url}/org/gone/resolve/main/old.gguf`);
    await p.reload();
    await p.waitForSelector('.download:has-text("left over")');
    await p.click('.download:has-text("left over") button:has-text("Delete")');
    await p.waitForSelector(".download", { state: "hidden" });
    checkEqual(await storedNames(p), [], "the rest is gone");
    for (const [name, sentence] of [
        ["org/missing", /has no repository org\/missing/],
        ["org/pebble-GGUF:Q2_K", /has no Q2_K; it has Q4_K_M, Q8_0/],
        ["what is this", /is not a name that is known here/],
        ["http://other.example/model.gguf", /https addresses/],
    ] as const) {
        await p.fill('input[name="address"]', name);
        await p.click('form button:has-text("Open")');
        await p.waitForSelector(".card.bad");
        check(sentence.test((await p.textContent(".card.bad")) ?? ""), `${name}: ${await p.textContent(".card.bad")}`);
        await p.click('.card button:has-text("Back")');
    }
});

await test("under bezel serve: an address of this machine, with the server's own Content-Security-Policy", () =>
    withBezelServe("models/pebble.gguf", (url) =>
        withBrowser({ adapter: "none" }, async ({ page: p, log }) => {
            Object.assign(host, { refuseRanges: false, rate: 0, cutAfter: 0, lie: false });
            await p.goto(url);
            await p.waitForSelector("html[data-started]");
            await p.waitForSelector('button.choice:has-text("pebble")');
            await download(p, `${host.url}/org/pebble-GGUF/resolve/main/pebble-Q8_0.gguf`);
            await p.waitForSelector('#model-chip[data-state="ready"]:has-text("pebble-Q8_0")');
            checkEqual(log.filter((line) => /uncaught:|Content Security Policy/.test(line)), [], "errors");
        })));

await end(server, host);
