/** Everything the page can show, with an engine that does what the test says: every error and its way out,
 * progress, Markdown, several conversations, keys, phones. Screenshots go to build/screenshots. */
import type { Page } from "playwright-core";
import { check, checkEqual, finish, test } from "../web/check.js";
import { screenshot, withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import type { Scenario } from "./fake_bezel.js";
import { answered, answerText, begun, openPage, ready, send, setSettings } from "./page.js";
import { startServer, type Server } from "./server.js";

const server: Server = await startServer({
    mounts: [
        ["/app/src/bezel.js", "build/web/js/tests/browser/fake_bezel.js"],
        ["/", "build/web/app"],
    ],
});

const gems = `A gem is **cut** so that light goes in at the top and comes back out of the top. Three cuts you will meet:

1. *Brilliant*: 57 facets, made for sparkle
2. *Step*: long, flat facets, made for clarity
3. *Cabochon*: no facets at all

| Cut | Facets | Best for |
|:---|---:|:---|
| Brilliant | 57 | diamond |
| Step | 49 | emerald |
| Cabochon | 0 | opal |

The angle of the pavilion decides it. For a stone with refractive index \`n\`, light is kept inside beyond the critical angle:

\`\`\`python
from math import asin, degrees

def critical_angle(n: float) -> float:
    return degrees(asin(1 / n))

print(critical_angle(2.417))  # diamond
\`\`\`

> A *bezel* is the rim that holds the stone.

More in [the handbook](https://example.org/gems).`;

const thoughts = "The user asks about cuts. I should name a few, give a small table, and mention why the angle matters.";

async function fresh(browser: Browser, scenario: Scenario = {}): Promise<Page> {
    const { page } = browser;
    await page.addInitScript((value) => (globalThis.scenario = value as Scenario), scenario);
    await openPage(page, server);
    return page;
}

const change = (page: Page, scenario: Scenario): Promise<void> =>
    page.evaluate((value) => void (globalThis.scenario = value), scenario);

async function load(page: Page): Promise<void> {
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await ready(page);
}

const screens = (name: string, options: BrowserOptions, body: (browser: Browser) => Promise<void>): Promise<void> =>
    test(name, () => withBrowser({ adapter: "none", ...options }, body));

/** Counts how often the model's chip stops saying "loading", however short that was. */
const watchLoads = (page: Page): Promise<void> =>
    page.evaluate(() => {
        const chip = document.querySelector("#model-chip") as HTMLElement;
        const count = (records: MutationRecord[]): void => {
            const next = (i: number): string | null | undefined => (i + 1 < records.length ? records[i + 1]?.oldValue : chip.dataset["state"]);
            const loads = records.filter(({ oldValue }, i) => oldValue === "loading" && next(i) !== "loading").length;
            chip.dataset["loads"] = String(Number(chip.dataset["loads"] ?? 0) + loads);
        };
        new MutationObserver(count).observe(chip, { attributeFilter: ["data-state"], attributeOldValue: true });
    });
const loaded = (page: Page, times: number): Promise<unknown> =>
    page.waitForSelector(`#model-chip[data-state="ready"][data-loads="${times}"]`);

// ---- errors while loading -----------------------------------------------------------------------------

await screens("each error of loading has its screen, with the engine's sentence and a way out", {}, async (browser) => {
    const page = await fresh(browser);
    const titles = new Map<string, string>();
    const codes = ["no_webgpu", "no_adapter", "out_of_memory", "device_lost", "bad_file", "checksum", "unsupported_model", "not_found", "network", "quota", "numeric", "bad_request", "surprise"];
    for (const code of codes) {
        await change(page, { load: code });
        await page.click("button.choice >> nth=0");
        await page.click('.card button:has-text("Load")');
        await page.waitForSelector(`.card[data-code="${code}"]`);
        const text = (await page.textContent(".card")) ?? "";
        check(text.includes(`own sentence about ${code}`), `${code}: ${text}`);
        titles.set(code, (await page.textContent(".card h2")) ?? "");
        check((await page.locator(".card .actions button").count()) > 0, `${code} has a way out`);
        checkEqual(await page.evaluate(() => document.activeElement?.closest(".card .actions") !== null), true, `${code}: focus`);
        if (code === "out_of_memory") {
            await screenshot(page, "error-desktop-light");
        }
        await change(page, {});
        if (code === "no_webgpu" || code === "no_adapter" || code === "numeric") {
            await page.click('.card button:has-text("processor")');
            await ready(page);
            await page.click("#model-chip");
            check(((await page.textContent("#model-info")) ?? "").includes("processor"), "on the processor");
            await page.click('#model-info button:has-text("Unload")');
            await setSettings(page, { device: "auto" });
        } else if (await page.isVisible('.card button:has-text("Choose another")')) {
            await page.click('.card button:has-text("Choose another")');
        } else {
            await page.click('.card button:has-text("Try again")');
            await ready(page);
            await page.click("#model-chip");
            await page.click('#model-info button:has-text("Unload")');
        }
        await page.waitForSelector("button.choice");
    }
    checkEqual(titles.size, new Set(titles.values()).size, `different titles: ${JSON.stringify([...titles])}`);
});

await screens("a file that is no model is told before it is loaded", {}, async (browser) => {
    const page = await fresh(browser, { inspect: "unsupported_model" });
    await page.click("button.choice >> nth=0");
    await page.waitForSelector('.card[data-code="unsupported_model"]');
    await page.click('.card button:has-text("Choose another")');
    await page.waitForSelector(".hero");
});

await screens("out of memory: less context is loaded", {}, async (browser) => {
    const page = await fresh(browser, { load: "out_of_memory" });
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await page.waitForSelector('.card[data-code="out_of_memory"]');
    await change(page, {});
    await page.click('.card button:has-text("short context")');
    await ready(page);
    await page.click("#open-settings");
    checkEqual(await page.inputValue("#set-context"), "2048", "context");
});

await screens("a model of another site is downloaded; without room, a file helps", {}, async (browser) => {
    const page = await fresh(browser);
    await page.fill('input[name="address"]', "https://models.example/m.gguf");
    await page.click('form button:has-text("Open")');
    await page.click('.card button:has-text("Load")');
    await page.waitForSelector('.card[data-code="quota"]');
    check(await page.isVisible('.card button:has-text("Open a file")'), "a way out");
    checkEqual(browser.requested.filter((url) => !url.startsWith(server.url)), [], "the fake fetches nothing");
});

await screens("loading shows bytes, and can be cancelled", {}, async (browser) => {
    const page = await fresh(browser, { endless: true, pause: 20 });
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await page.waitForFunction(() => document.querySelector(".progress-line")?.textContent?.includes("1.9 GB of 3.1 GB"));
    checkEqual(await page.getAttribute('[role="progressbar"]', "aria-valuenow"), "62", "told to screen readers");
    await screenshot(page, "loading-desktop-light");
    await page.click('.card button:has-text("Cancel")');
    await page.waitForSelector(".hero");
    checkEqual(await page.getAttribute("#model-chip", "data-state"), "none", "state");
});

await screens("without WebGPU the start page says so", {}, async (browser) => {
    const page = await fresh(browser, { webgpu: false });
    await page.waitForSelector('.verdict:has-text("no WebGPU")');
    await page.click("button.choice >> nth=0");
    await page.waitForSelector('.card .verdict:has-text("runs on the processor")');
});

// ---- errors while answering ------------------------------------------------------------------------------

await screens("each error of answering is told below what was written, with a way out", {}, async (browser) => {
    const page = await fresh(browser, { pause: 1 });
    await load(page);
    for (const code of ["context_full", "out_of_memory", "numeric", "unsupported_model", "bad_file", "bad_request", "surprise"]) {
        await change(page, { answer: code, failAfter: 1, text: "One two three" });
        await page.click("#new-chat");
        await send(page, `Fail with ${code}`);
        await page.waitForSelector(`.message.last .outcome[data-code="${code}"]`);
        checkEqual((await answerText(page)).trim(), "One", `${code}: what was written stays`);
        check((await page.locator(".message.last .outcome button").count()) > 0, `${code} has a way out`);
        if (code === "numeric") {
            await screenshot(page, "answer-error-desktop-light");
        }
        if (code === "context_full") {
            await page.click('.message.last .outcome button:has-text("New chat")');
            await page.waitForSelector(".empty");
        }
    }
    await change(page, { text: "Fine now" });
    await page.click('.message.last .outcome button:has-text("Answer again")');
    await page.waitForFunction(() => document.querySelector(".message.last .prose")?.textContent === "Fine now");
});

await screens("a lost device: the model comes back by itself, and the answer goes on; not for ever", {}, async (browser) => {
    const page = await fresh(browser);
    await load(page);
    await watchLoads(page);
    await change(page, { answer: "device_lost", failAfter: 2, text: "One two three four" });
    await send(page, "Count");
    await page.waitForSelector('.message.last .outcome[data-code="device_lost"]');
    await loaded(page, 1);
    await change(page, { text: "three four" });
    await page.click('.message.last .outcome button:has-text("Go on")');
    await page.waitForSelector('.message.last[data-state="done"]');
    check((await answerText(page)).startsWith("One two"), "what was written stays");
    check(!(await page.isVisible(".message.last .outcome")), "all is well");
    await change(page, { answer: "device_lost", failAfter: 1, text: "One two three four" });
    await page.click('.message.last button:has-text("Answer again")');
    await loaded(page, 2);
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('#model-chip[data-state="failed"]');
    check(((await page.textContent("#composer-note")) ?? "").includes("3 times"), "it gives up");
    await change(page, {});
    await page.click('#composer-note button:has-text("Try again")');
    await ready(page);
});

await screens("a conversation that is full says so", {}, async (browser) => {
    const page = await fresh(browser, { used: 31000 });
    await load(page);
    await send(page, "Hello");
    await answered(page);
    check(((await page.textContent("#context")) ?? "").includes("95% of context"), "the meter");
});

// ---- talking ------------------------------------------------------------------------------------------------

await screens("Markdown, thoughts, figures", { colours: "light" }, async (browser) => {
    const page = await fresh(browser, { text: gems, thinking: thoughts });
    await load(page);
    await send(page, "How are gems cut, and why does it matter?");
    await answered(page);
    const counts = await page.evaluate(() =>
        ["strong", "em", "ol > li", "table tr", "figure.code pre", "blockquote", 'a[rel="noopener noreferrer"][target="_blank"]'].map(
            (selector) => document.querySelectorAll(`.prose ${selector}`).length,
        ),
    );
    checkEqual(counts, [1, 4, 3, 4, 1, 1, 1], "elements");
    checkEqual(await page.getAttribute(".thinking", "open"), null, "thoughts are folded");
    await page.click(".thinking summary");
    checkEqual((await page.textContent(".thinking .text")) ?? "", thoughts, "thoughts");
    check(((await page.textContent(".message.last .figures")) ?? "").includes("61 tokens/s"), "figures");
    await browser.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.click(".code button");
    check((await page.evaluate(() => navigator.clipboard.readText())).startsWith("from math import"), "copied code");
    await page.click(".thinking summary");
    await page.evaluate(() => document.querySelector("#log")?.scrollTo(0, 0));
    await screenshot(page, "chat-desktop-light");
});

await screens("what is looked at and listened to is shown while it lasts, and what is to be said about it stays", {}, async (browser) => {
    const media = [0, 1, 2, 3].map((done) => ({ kind: "image" as const, index: 0, count: 1, done, total: 4 }));
    const page = await fresh(browser, { media, pause: 700, text: "A cat.", notice: "The engine's own sentence." });
    await load(page);
    await send(page, "What is it?");
    await page.waitForSelector('.message.last .looking[aria-valuenow]:not([aria-valuenow="0"])'); // on a busy machine, any step of it
    checkEqual(await page.textContent(".message.last .looking"), "Looking at the picture", "what is shown");
    check(!(await page.isVisible(".message.last .waiting")), "no other sign of waiting");
    await screenshot(page, "looking-desktop-light");
    await answered(page);
    check(!(await page.isVisible(".message.last .looking")), "it is over");
    checkEqual(await page.textContent(".message.last .outcome"), "The engine's own sentence.", "the notice");
    await change(page, { pause: 300, media: [{ kind: "audio", index: 1, count: 3, done: 1, total: 2 }], text: "Yes." });
    await send(page, "And these?");
    await page.waitForSelector('.message.last .looking:has-text("Listening to sound 2 of 3")');
    await answered(page);
    await page.reload();
    await page.waitForSelector('.message.assistant .outcome:has-text("own sentence")');
});

await screens("a diffusion model's canvas condenses, and gives way to the answer", {}, async (browser) => {
    const canvases = ["stone the gem light a of", "A gem the light a of", "A gem is light <b>of</b> stone", "A gem is a bright stone"];
    const page = await fresh(browser, { canvases, text: "A gem is a bright stone.", pause: 400 });
    await load(page);
    await send(page, "What is a gem?");
    await page.waitForFunction(() => document.querySelector(".canvas .settled")?.textContent === "A gem");
    await screenshot(page, "canvas-desktop-light");
    checkEqual(await page.locator(".canvas b").count(), 0, "its text is text");
    check(!(await page.isVisible(".message.last .waiting")), "no other sign of waiting");
    await answered(page);
    checkEqual([await answerText(page), await page.isVisible(".canvas")], ["A gem is a bright stone.", false], "the answer");
    await page.reload();
    await page.waitForSelector('.message.assistant:has-text("A gem is a bright stone.")');
    check(!(await page.isVisible(".canvas")), "nothing of it was stored");
});

await screens("an answer without words says so", {}, async (browser) => {
    const page = await fresh(browser, { text: "", thinking: thoughts });
    await load(page);
    await send(page, "Hello");
    await page.waitForSelector('.message.last .outcome:has-text("The model thought, then said nothing.")');
    await change(page, { text: "" });
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('.message.last .outcome:has-text("The model said nothing.")');
});

await screens("what a model writes is never run", {}, async (browser) => {
    const evil = '<img src=x onerror="window.hit=1"> <script>window.hit=1</script> [x](javascript:window.hit=1) ![p](https://evil.example/p.png)';
    const page = await fresh(browser, { text: evil, thinking: evil });
    await load(page);
    await send(page, evil);
    await answered(page);
    checkEqual(await page.evaluate(() => document.querySelectorAll("#log img, #log script, #log [onerror]").length), 0, "elements");
    checkEqual(await page.evaluate(() => (window as { hit?: number }).hit ?? 0), 0, "nothing ran");
    checkEqual(browser.requested.filter((url) => !url.startsWith(server.url)), [], "nothing was fetched");
    const links = await page.evaluate(() => [...document.querySelectorAll<HTMLAnchorElement>("#log a")].map((a) => a.protocol));
    check(links.every((protocol) => protocol === "https:"), String(links));
});

await screens("keys: Enter sends, Shift+Enter breaks the line, Escape stops", {}, async (browser) => {
    const page = await fresh(browser, { text: gems, pause: 15 });
    await load(page);
    await page.focus("#composer-text");
    await page.keyboard.type("one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    await page.keyboard.press("Enter");
    checkEqual(await page.textContent(".message.user .said"), "one\ntwo", "message");
    await begun(page);
    checkEqual(await page.getAttribute("#send", "aria-label"), "Stop", "button");
    await page.keyboard.press("Escape");
    await page.waitForSelector('.message.last[data-state="stopped"]');
    const text = await answerText(page);
    check(text.length > 0 && text.length < 300, `stopped early: ${text.length}`);
    await change(page, { text: "the rest" });
    await page.click('.message.last button:has-text("Go on")');
    await page.waitForSelector('.message.last[data-state="done"]');
    check((await answerText(page)).startsWith(text.trim().slice(0, 5)), "went on");
});

await screens("several conversations: titles, renaming, deleting, editing, after a reload", {}, async (browser) => {
    const page = await fresh(browser, { text: "Yes." });
    await load(page);
    for (const question of ["First question", "Second question"]) {
        await page.click("#new-chat");
        await send(page, question);
        await answered(page);
    }
    const titles = (): Promise<string[]> => page.locator(".conversation .name").allTextContents();
    checkEqual(await titles(), ["Second question", "First question"], "newest first");
    await page.click('.conversation:has-text("First question") .pick');
    await page.waitForFunction(() => document.querySelector(".message.user .said")?.textContent === "First question");
    await page.hover('.conversation:has-text("First question")');
    await page.click('button[aria-label="Rename First question"]');
    await page.keyboard.type("About gems");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.conversation:has-text("About gems")');
    await page.hover(".message.user");
    await page.click('.message.user button:has-text("Edit")');
    await page.fill(".edit textarea", "Another question");
    await page.click('.edit button:has-text("Send")');
    await answered(page);
    checkEqual(await page.locator(".message").count(), 2, "the old answer is gone");
    await page.reload();
    await page.waitForSelector('.message.user:has-text("Another question")');
    checkEqual((await titles()).sort(), ["About gems", "Second question"], "kept");
    await page.hover('.conversation:has-text("About gems")');
    await page.click('button[aria-label="Delete About gems"]');
    await page.click('#confirm button:has-text("Cancel")');
    checkEqual((await titles()).length, 2, "not yet");
    await page.hover('.conversation:has-text("About gems")');
    await page.click('button[aria-label="Delete About gems"]');
    await page.click('#confirm button:has-text("Delete")');
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 1);
    checkEqual(await page.locator(".message").count(), 0, "its messages are gone");
});

await screens("finished paragraphs are told to screen readers, and every control has a name", {}, async (browser) => {
    const page = await fresh(browser, { text: "First paragraph.\n\nSecond paragraph.", pause: 30 });
    await load(page);
    await page.evaluate(() => {
        const told: string[] = [];
        (window as { told?: string[] }).told = told;
        new MutationObserver(() => told.push(document.querySelector("#announcer")?.textContent ?? "")).observe(
            document.querySelector("#announcer") as Node, { childList: true, characterData: true, subtree: true });
    });
    await send(page, "Speak");
    await answered(page);
    const told = await page.evaluate(() => (window as { told?: string[] }).told ?? []);
    for (const text of ["Answering", "First paragraph.", "Second paragraph."]) {
        check(told.includes(text), `${text} in ${JSON.stringify(told)}`);
    }
    await page.click("#open-settings");
    const nameless = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("button, input, select, textarea")]
            .filter((e) => !e.getAttribute("aria-label") && !e.textContent?.trim() && !(e as HTMLInputElement).labels?.length)
            .map((e) => e.outerHTML.slice(0, 80)),
    );
    checkEqual(nameless, [], "controls without a name");
    await screenshot(page, "settings-desktop-light");
});

// ---- how it looks ----------------------------------------------------------------------------------------------

/** What hangs over the right edge, without being inside something that scrolls sideways. */
async function overhanging(page: Page): Promise<string[]> {
    return page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("#main *, dialog[open], dialog[open] *")]
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 && e.checkVisibility())
            .filter((e) => !e.closest("pre, .table, .hidden"))
            .map((e) => e.outerHTML.slice(0, 80)),
    );
}

for (const [device, options] of [
    ["desktop", {}],
    ["phone", { phone: true }],
] as [string, BrowserOptions][]) {
    for (const colours of ["light", "dark"] as const) {
        await screens(`${device}, ${colours}: start, verdict, conversation`, { ...options, colours }, async (browser) => {
            const page = await fresh(browser, { text: gems, thinking: thoughts });
            const look = async (what: string): Promise<void> => {
                await page.waitForTimeout(250); // transitions
                await screenshot(page, `${what}-${device}-${colours}`);
                checkEqual(await overhanging(page), [], `${what}: nothing hangs over the edge`);
            };
            await page.waitForSelector("button.choice");
            await look("start");
            await page.click("button.choice >> nth=0");
            await page.waitForSelector(".card .verdict");
            await look("verdict");
            await page.click('.card button:has-text("Load")');
            await ready(page);
            await look("empty");
            await send(page, "How are gems cut, and why does it matter?");
            await answered(page);
            await page.evaluate(() => document.querySelector("#log")?.scrollTo(0, 0));
            await look("chat");
            await page.evaluate(() => document.querySelector("#log")?.scrollTo(0, 1e6));
            await look("chat-end");
            await page.click("#model-chip");
            await look("model");
            await page.click('#model-info button:has-text("Close")');
            await change(page, { text: gems, answer: "numeric", failAfter: 40 });
            await send(page, "And how are they set?");
            await page.waitForSelector(".message.last .outcome");
            await look("answer-error");
            if (device === "phone") {
                await page.click("#open-side");
                await look("side");
            }
            await page.hover(".conversation");
            await page.click(".conversation .tools button >> nth=1");
            await look("confirm");
            await page.click('#confirm button:has-text("Cancel")');
            await page.click("#open-settings");
            await look("settings");
            await page.evaluate(() => document.querySelector("#settings")?.scrollTo(0, 1e6));
            await look("settings-end");
            await page.click("#settings .main");
            if (device === "phone") {
                await page.click("#close-side");
            }
            await change(page, { endless: true, pause: 20 });
            await page.click("#model-chip");
            await page.click('#model-info button:has-text("Unload")');
            await look("no-model");
            await page.click('#composer-note button:has-text("Choose a model")');
            await look("start-again");
            await page.click("button.choice >> nth=0");
            await page.waitForFunction(() => document.querySelector(".progress-line")?.textContent?.includes("1.9 GB"));
            await look("loading");
            await change(page, { load: "network" });
            await page.waitForSelector('.card[data-code="network"]');
            await look("error");
            await change(page, { webgpu: false });
            await page.reload();
            await page.waitForSelector("html[data-started]");
            await look("reloaded");
        });
    }
}

await server.close();
finish();
