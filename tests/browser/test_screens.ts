/** All screens of the page, with a fake engine: every error and its remedies, progress, Markdown, several conversations,
 * keys, phones. Screenshots go to build/screenshots. */
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { allowClipboard, end, screenshot, withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import type { Scenario } from "./fake_bezel.js";
import { answered, answerText, begun, chooseAction, openPage, packageScript, ready, send, servePebble, setSettings, settled } from "./page.js";

const server = await servePebble([[packageScript, "build/web/js/tests/browser/fake_bezel.js"]]);

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

async function openWith(browser: Browser, scenario: Scenario = {}): Promise<Page> {
    const { page } = browser;
    await page.addInitScript((value) => (globalThis.scenario = value as Scenario), scenario);
    await openPage(page, server);
    return page;
}

const setScenario = (page: Page, scenario: Scenario): Promise<void> =>
    page.evaluate((value) => void (globalThis.scenario = value), scenario);

async function load(page: Page): Promise<void> {
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await ready(page);
}

/** Continues the fake engine `times` times, then waits for a selector. */
async function step(page: Page, times: number, selector: string): Promise<void> {
    for (let i = 0; i < times; i++) {
        await page.waitForFunction(() => globalThis.step !== undefined);
        await page.evaluate(() => {
            const next = globalThis.step;
            globalThis.step = undefined;
            next?.();
        });
    }
    await page.waitForSelector(selector);
}

const screens = (name: string, options: BrowserOptions, body: (browser: Browser) => Promise<void>): Promise<void> =>
    test(name, () => withBrowser({ adapter: "none", ...options }, body));

/** Counts how often the model's chip leaves the state "loading", however short that was. */
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

await screens("each loading error has its screen, with the engine's message and a remedy", {}, async (browser) => {
    const page = await openWith(browser);
    const titles = new Map<string, string>();
    const codes = ["no_webgpu", "no_adapter", "out_of_memory", "device_lost", "bad_file", "checksum", "unsupported_model", "not_found", "network", "quota", "numeric", "bad_request", "surprise"];
    for (const code of codes) {
        await setScenario(page, { load: code });
        await page.click("button.choice >> nth=0");
        await page.click('.card button:has-text("Load")');
        await page.waitForSelector(`.card[data-code="${code}"]`);
        const text = (await page.textContent(".card")) ?? "";
        check(text.includes(`own sentence about ${code}`), `${code}: ${text}`);
        titles.set(code, (await page.textContent(".card h2")) ?? "");
        check((await page.locator(".card .actions button").count()) > 0, `${code} has a remedy`);
        checkEqual(await page.evaluate(() => document.activeElement?.closest(".card .actions") !== null), true, `${code}: focus`);
        if (code === "out_of_memory") {
            await screenshot(page, "error-desktop-light");
        }
        await setScenario(page, {});
        if (code === "no_webgpu" || code === "no_adapter" || code === "numeric") {
            await page.click('.card button:has-text("CPU")');
            await ready(page);
            await page.click("#model-chip");
            check(((await page.textContent("#model-info")) ?? "").includes("CPU"), "on the CPU");
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

await screens("an unsupported file is reported before it is loaded", {}, async (browser) => {
    const page = await openWith(browser, { inspect: "unsupported_model" });
    await page.click("button.choice >> nth=0");
    await page.waitForSelector('.card[data-code="unsupported_model"]');
    await page.click('.card button:has-text("Choose another")');
    await page.waitForSelector(".hero");
});

await screens("out of memory: loading with a short context", {}, async (browser) => {
    const page = await openWith(browser, { load: "out_of_memory" });
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await page.waitForSelector('.card[data-code="out_of_memory"]');
    await setScenario(page, {});
    await page.click('.card button:has-text("short context")');
    await ready(page);
    await page.click("#open-settings");
    checkEqual(await page.inputValue("#set-context"), "2048", "context");
});

await screens("a model of another site: with full storage its download says so and can be tried again", {}, async (browser) => {
    const page = await openWith(browser);
    await page.fill('input[name="address"]', "https://models.example/m.gguf");
    await page.click('form button:has-text("Open")');
    await page.click('.card button:has-text("Download")');
    await page.waitForSelector('.download[data-state="failed"]:has-text("too little storage")');
    check(await page.isVisible('.download button:has-text("Try again")'), "a remedy");
    checkEqual(browser.requested.filter((url) => !url.startsWith(server.url)), [], "the fake engine fetches nothing");
});

await screens("loading shows bytes and can be cancelled", {}, async (browser) => {
    const page = await openWith(browser, { endless: true, pause: 20 });
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await page.waitForFunction(() => document.querySelector(".progress-line")?.textContent?.includes("1.9 GB of 3.1 GB"));
    checkEqual(await page.getAttribute('[role="progressbar"]', "aria-valuenow"), "62", "value for screen readers");
    await screenshot(page, "loading-desktop-light");
    await page.click('.card button:has-text("Cancel")');
    await page.waitForSelector(".hero");
    checkEqual(await page.getAttribute("#model-chip", "data-state"), "none", "state");
});

await screens("without WebGPU the start view shows a note", {}, async (browser) => {
    const page = await openWith(browser, { webgpu: false });
    await page.waitForSelector('.callout:has-text("no WebGPU")');
    await page.click("button.choice >> nth=0");
    await page.waitForSelector('.card .callout:has-text("runs on the CPU")');
});

// ---- errors while answering ------------------------------------------------------------------------------

await screens("each answering error is shown below the text, with a remedy", {}, async (browser) => {
    const page = await openWith(browser, { pause: 1 });
    await load(page);
    for (const code of ["context_full", "out_of_memory", "numeric", "unsupported_model", "bad_file", "bad_request", "surprise"]) {
        await setScenario(page, { answer: code, failAfter: 1, text: "One two three" });
        await page.click("#new-chat");
        await send(page, `Fail with ${code}`);
        await page.waitForSelector(`.message.last .outcome[data-code="${code}"]`);
        checkEqual((await answerText(page)).trim(), "One", `${code}: the text is kept`);
        check((await page.locator(".message.last .outcome button").count()) > 0, `${code} has a remedy`);
        if (code === "numeric") {
            await screenshot(page, "answer-error-desktop-light");
        }
        if (code === "context_full") {
            await page.click('.message.last .outcome button:has-text("New chat")');
            await page.waitForSelector(".empty");
        }
    }
    await setScenario(page, { text: "Fine now" });
    await page.click('.message.last .outcome button:has-text("Answer again")');
    await page.waitForFunction(() => document.querySelector(".message.last .prose")?.textContent === "Fine now");
});

await screens("a device loss: the model is loaded again and the answer continued, until it happens too often", {}, async (browser) => {
    const page = await openWith(browser);
    await load(page);
    await watchLoads(page);
    await setScenario(page, { answer: "device_lost", failAfter: 2, text: "One two three four" });
    await send(page, "Count");
    await page.waitForSelector('.message.last .outcome[data-code="device_lost"]');
    await loaded(page, 1);
    await setScenario(page, { text: "three four" });
    await page.click('.message.last .outcome button:has-text("Continue")');
    await page.waitForSelector('.message.last[data-state="done"]');
    check((await answerText(page)).startsWith("One two"), "the text is kept");
    check(!(await page.isVisible(".message.last .outcome")), "no outcome is shown");
    await setScenario(page, { answer: "device_lost", failAfter: 1, text: "One two three four" });
    await page.click('.message.last button:has-text("Answer again")');
    await loaded(page, 2);
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('#model-chip[data-state="failed"]');
    check(((await page.textContent("#composer-note")) ?? "").includes("3 times"), "it gives up");
    await setScenario(page, {});
    await page.click('#composer-note button:has-text("Try again")');
    await ready(page);
});

await screens("the context meter of a nearly full conversation", {}, async (browser) => {
    const page = await openWith(browser, { used: 31000 });
    await load(page);
    await send(page, "Hello");
    await answered(page);
    check(((await page.textContent("#context")) ?? "").includes("95% of context"), "the meter");
});

// ---- chatting -----------------------------------------------------------------------------------------------

await screens("Markdown, thoughts, statistics", { colors: "light" }, async (browser) => {
    const page = await openWith(browser, { text: gems, thinking: thoughts });
    await load(page);
    await send(page, "How are gems cut, and why does it matter?");
    await answered(page);
    const counts = await page.evaluate(() =>
        ["strong", "em", "ol > li", "table tr", "figure.code pre", "blockquote", 'a[rel="noopener noreferrer"][target="_blank"]'].map(
            (selector) => document.querySelectorAll(`.prose ${selector}`).length,
        ),
    );
    checkEqual(counts, [1, 4, 3, 4, 1, 1, 1], "elements");
    const sides = await page.evaluate(() => ["#log > *", "#composer"].map((selector) => {
        const { left, right } = (document.querySelector(selector) as HTMLElement).getBoundingClientRect();
        return [left, right];
    }));
    checkEqual(sides[0], sides[1], "messages are above the composer, also beside a scroll bar");
    checkEqual(await page.getAttribute(".thinking", "open"), null, "thoughts are collapsed");
    await page.click(".thinking summary");
    checkEqual((await page.textContent(".thinking .text")) ?? "", thoughts, "thoughts");
    check(((await page.textContent(".message.last .figures")) ?? "").includes("61 tokens/s"), "figures");
    await allowClipboard(browser, server.url);
    await page.click(".code button");
    check((await page.evaluate(() => navigator.clipboard.readText())).startsWith("from math import"), "copied code");
    await page.click(".thinking summary");
    await page.evaluate(() => document.querySelector("#log")?.scrollTo(0, 0));
    await screenshot(page, "chat-desktop-light");
});

await screens("encoding progress is shown while it lasts, and notices stay", {}, async (browser) => {
    const media = [0, 1, 2, 3].map((done) => ({ kind: "image" as const, index: 0, count: 1, done, total: 4 }));
    const page = await openWith(browser);
    await load(page);
    await setScenario(page, { media, pause: "step", text: "A cat.", notice: "The engine's own sentence." });
    await send(page, "What is it?");
    await step(page, 2, '.message.last .encoding[aria-valuenow="50"]');
    checkEqual(await page.textContent(".message.last .encoding"), "Looking at the image", "text");
    check(!(await page.isVisible(".message.last .waiting")), "no other waiting indicator");
    await screenshot(page, "encoding-desktop-light");
    await setScenario(page, { text: "A cat." });
    await step(page, 1, '.message.last[data-state="done"]');
    check(!(await page.isVisible(".message.last .encoding")), "encoding has ended");
    checkEqual(await page.textContent(".message.last .outcome"), "The engine's own sentence.", "the notice");
    await setScenario(page, { pause: "step", media: [{ kind: "audio", index: 1, count: 3, done: 1, total: 2 }], text: "Yes." });
    await send(page, "And these?");
    await page.waitForSelector('.message.last .encoding:has-text("Listening to sound 2 of 3")');
    await setScenario(page, { text: "Yes." });
    await step(page, 1, '.message.last[data-state="done"]');
    await page.reload();
    await page.waitForSelector('.message.assistant .outcome:has-text("own sentence")');
});

await screens("a diffusion model's canvas is shown, then replaced by the answer", {}, async (browser) => {
    const canvases = ["stone the gem light a of", "A gem the light a of", "A gem is light <b>of</b> stone", "A gem is a bright stone"];
    const page = await openWith(browser);
    await load(page);
    await setScenario(page, { canvases, text: "A gem is a bright stone.", pause: "step" });
    await send(page, "What is a gem?");
    await page.waitForSelector(".canvas >> text=stone the gem");
    await step(page, 1, ".canvas >> text=A gem the light");
    await step(page, 1, '.canvas .stable:text-is("A gem")');
    await screenshot(page, "canvas-desktop-light");
    checkEqual(await page.locator(".canvas b").count(), 0, "its text is not parsed as HTML");
    check(!(await page.isVisible(".message.last .waiting")), "no other waiting indicator");
    await setScenario(page, { text: "A gem is a bright stone." });
    await step(page, 1, '.message.last[data-state="done"]');
    checkEqual([await answerText(page), await page.isVisible(".canvas")], ["A gem is a bright stone.", false], "the answer");
    await page.reload();
    await page.waitForSelector('.message.assistant:has-text("A gem is a bright stone.")');
    check(!(await page.isVisible(".canvas")), "the canvas is not stored");
});

await screens("an empty answer shows a note", {}, async (browser) => {
    const page = await openWith(browser, { text: "", thinking: thoughts });
    await load(page);
    await send(page, "Hello");
    await page.waitForSelector('.message.last .outcome:has-text("The model stopped after thinking, without an answer.")');
    await setScenario(page, { text: "" });
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('.message.last .outcome:has-text("The model gave an empty answer.")');
});

await screens("markup in an answer is never executed", {}, async (browser) => {
    const evil = '<img src=x onerror="window.hit=1"> <script>window.hit=1</script> [x](javascript:window.hit=1) ![p](https://evil.example/p.png)';
    const page = await openWith(browser, { text: evil, thinking: evil });
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
    const long = "word ".repeat(20_000);
    const page = await openWith(browser);
    await load(page);
    await setScenario(page, { text: long, pause: 15 });
    await page.focus("#composer-text");
    await page.keyboard.type("one");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("two");
    await page.keyboard.press("Enter");
    checkEqual(await page.textContent(".message.user .user-text"), "one\ntwo", "message");
    await begun(page);
    checkEqual(await page.getAttribute("#send", "aria-label"), "Stop", "button");
    await page.keyboard.press("Escape");
    await page.waitForSelector('.message.last[data-state="stopped"]');
    const text = await answerText(page);
    check(text.length > 0 && text.length < long.length / 2, `stopped early: ${text.length}`);
    await setScenario(page, { text: "the rest" });
    await page.click('.message.last button:has-text("Continue")');
    await page.waitForSelector('.message.last[data-state="done"]');
    check((await answerText(page)).startsWith(text.trim().slice(0, 5)), "continued");
});

await screens("several conversations: titles, renaming, deleting, editing, after a reload", {}, async (browser) => {
    const page = await openWith(browser, { text: "Yes." });
    await load(page);
    for (const question of ["First question", "Second question"]) {
        await page.click("#new-chat");
        await send(page, question);
        await answered(page);
    }
    const titles = (): Promise<string[]> => page.locator(".conversation .name").allTextContents();
    checkEqual(await titles(), ["Second question", "First question"], "newest first");
    await page.click('.conversation:has-text("First question") .pick');
    await page.waitForFunction(() => document.querySelector(".message.user .user-text")?.textContent === "First question");
    await chooseAction(page, "First question", "Rename");
    await page.keyboard.type("About gems");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.conversation:has-text("About gems")');
    await page.hover(".message.user");
    await page.click('.message.user button:has-text("Edit")');
    await page.fill(".edit textarea", "Another question");
    await page.click('.edit button:has-text("Send")');
    await answered(page);
    checkEqual(await page.locator(".message").count(), 2, "messages of the new branch");
    await page.reload();
    await page.waitForSelector('.message.user:has-text("Another question")');
    checkEqual((await titles()).sort(), ["About gems", "Second question"], "titles after a reload");
    await chooseAction(page, "About gems", "Delete");
    await page.click('#confirm button:has-text("Cancel")');
    checkEqual((await titles()).length, 2, "not deleted");
    await chooseAction(page, "About gems", "Delete");
    await page.click('#confirm button:has-text("Delete")');
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 1);
    checkEqual(await page.locator(".message").count(), 0, "its messages are removed");
});

await screens("finished paragraphs are announced to screen readers, and every control has a name", {}, async (browser) => {
    const page = await openWith(browser, { text: "First paragraph.\n\nSecond paragraph.", pause: 30 });
    await load(page);
    await page.evaluate(() => {
        const announced: string[] = [];
        (window as { announced?: string[] }).announced = announced;
        new MutationObserver(() => announced.push(document.querySelector("#announcer")?.textContent ?? "")).observe(
            document.querySelector("#announcer") as Node, { childList: true, characterData: true, subtree: true });
    });
    await send(page, "Speak");
    await answered(page);
    const announced = await page.evaluate(() => (window as { announced?: string[] }).announced ?? []);
    for (const text of ["Answering", "First paragraph.", "Second paragraph."]) {
        check(announced.includes(text), `${text} in ${JSON.stringify(announced)}`);
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

// ---- appearance ------------------------------------------------------------------------------------------------

/** Elements that extend past the right edge, outside of horizontally scrolling ones. */
async function overflowing(page: Page): Promise<string[]> {
    return page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("#main *, dialog[open], dialog[open] *")]
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 && e.checkVisibility())
            .filter((e) => !e.closest("pre, .table, .hidden"))
            .map((e) => e.outerHTML.slice(0, 80)),
    );
}

/** Selects that are too narrow for their text. */
async function cutSelects(page: Page): Promise<string[]> {
    return page.evaluate(() =>
        [...document.querySelectorAll("select")]
            .filter((e) => e.checkVisibility())
            .filter((e) => {
                const { width } = e.getBoundingClientRect();
                e.style.width = "max-content";
                const needed = e.getBoundingClientRect().width;
                e.style.width = "";
                return width < needed - 0.5;
            })
            .map((e) => e.id),
    );
}

await screens("a phone of 360 pixels: selects show their text", { phone: true, size: "360x740" }, async (browser) => {
    const page = await openWith(browser);
    await page.click("button.choice >> nth=0");
    await page.waitForSelector("#context-length");
    const look = async (what: string): Promise<void> => {
        await settled(page);
        await screenshot(page, `${what}-360`);
        checkEqual([await cutSelects(page), await overflowing(page)], [[], []], `${what}: cut selects, overflow`);
    };
    await look("summary");
    await page.click('.card button:has-text("Load")');
    await ready(page);
    await page.click("#open-side");
    await page.click("#open-settings");
    await page.waitForSelector("#settings select");
    await look("settings");
});

for (const [device, options] of [
    ["desktop", {}],
    ["phone", { phone: true }],
] as [string, BrowserOptions][]) {
    for (const colors of ["light", "dark"] as const) {
        await screens(`${device}, ${colors}: start, summary, conversation`, { ...options, colors }, async (browser) => {
            const page = await openWith(browser, { text: gems, thinking: thoughts });
            const look = async (what: string): Promise<void> => {
                await settled(page);
                await screenshot(page, `${what}-${device}-${colors}`);
                checkEqual(await overflowing(page), [], `${what}: no overflow`);
            };
            const [dark, coarse] = await page.evaluate(() => ["(prefers-color-scheme: dark)", "(pointer: coarse)"].map((query) => matchMedia(query).matches));
            checkEqual([dark, coarse], [colors === "dark", device === "phone"], "the browser is such a one");
            await page.waitForSelector("button.choice");
            await look("start");
            await page.click("button.choice >> nth=0");
            await page.waitForSelector(".card .callout");
            await look("summary");
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
            await setScenario(page, { text: gems, answer: "numeric", failAfter: 40 });
            await send(page, "And how are they set?");
            await page.waitForSelector(".message.last .outcome");
            await look("answer-error");
            if (device === "phone") {
                await page.click("#open-side");
                await look("side");
            }
            await chooseAction(page, "How are gems cut", "Delete");
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
            await setScenario(page, { endless: true, pause: 20 });
            await page.click("#model-chip");
            await page.click('#model-info button:has-text("Unload")');
            await look("no-model");
            await page.click('#composer-note button:has-text("Choose a model")');
            await look("start-again");
            await page.click("button.choice >> nth=0");
            await page.waitForFunction(() => document.querySelector(".progress-line")?.textContent?.includes("1.9 GB"));
            await look("loading");
            await setScenario(page, { load: "network" });
            await page.waitForSelector('.card[data-code="network"]');
            await look("error");
            await setScenario(page, { webgpu: false });
            await page.reload();
            await page.waitForSelector("html[data-started]");
            await look("reloaded");
        });
    }
}

await end(server);
