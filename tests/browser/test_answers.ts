/** Answers as they look: colors of code, formulas, tasks, footnotes, folded pastes, live figures; what a redraw costs;
 * and that no text runs or loads anything. */
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { chromiumOnly, end, quick, screenshot, withBrowser, type Browser } from "./browser.js";
import { fakeServer, setScenario, withFakePage } from "./fake_page.js";
import { answered, answerText, openPage, ready, send, settled } from "./page.js";
import { pngFile } from "./png.js";

const rich = `## Light in a stone

The critical angle follows from Snell's law,[^1] $\\theta_c = \\arcsin(1/n)$, so for diamond \\(n = 2.417\\):

$$
\\theta_c = \\arcsin\\frac{1}{2.417} \\approx 24.4^\\circ
$$

- [x] measure the index
- [ ] choose the angle of the pavilion

\`\`\`python
# degrees, not radians
def critical(n: float) -> float:
    return degrees(asin(1 / n))
\`\`\`

\u0627\u0644\u0645\u0627\u0633 \u0647\u0648 \u0623\u0635\u0644\u0628 \u0627\u0644\u0645\u0648\u0627\u062f.

[^1]: Willebrord Snellius, 1621.`;

await withFakePage("code has colors, formulas are set, tasks and footnotes are shown, each paragraph has its direction", { text: rich }, async (page, browser) => {
    await send(page, "Explain.");
    await answered(page);
    await page.waitForSelector(".prose .math.drawn .katex-display .katex-html");
    await page.waitForSelector(".code .c-keyword");
    const found = await page.evaluate(() => {
        const count = (selector: string): number => document.querySelectorAll(`.prose ${selector}`).length;
        const color = (selector: string): string => getComputedStyle(document.querySelector(selector) as Element).color;
        const last = [...document.querySelectorAll(".prose > p")].at(-1) as HTMLElement;
        return {
            counts: [count("span.math.drawn"), count("div.math.drawn"), count(".katex-mathml math"), count("li.task input"), count("li.task input:checked"), count(".footnote")],
            colored: color(".c-keyword") !== color(".code code"),
            font: getComputedStyle(document.querySelector(".katex") as Element).fontFamily.includes("KaTeX"),
            direction: getComputedStyle(last).direction,
            code: document.querySelector(".code code")?.textContent,
        };
    });
    checkEqual(found.counts, [2, 1, 3, 2, 1, 1], "formulas, tasks, footnotes");
    checkEqual([found.colored, found.font, found.direction], [true, true, "rtl"], "colors, font, direction");
    checkEqual(found.code, "# degrees, not radians\ndef critical(n: float) -> float:\n    return degrees(asin(1 / n))", "code");
    await page.click(".note-link");
    checkEqual(await page.evaluate(() => document.activeElement?.className), "footnote", "the footnote is shown");
    const lazy = browser.requested.filter((url) => /math_chunk|highlight_worker|KaTeX/.test(url));
    check(lazy.length >= 4, `fetched on demand: ${lazy.join(", ")}`);
    checkEqual(browser.log.filter((line) => /^(uncaught|error).*(Content Security|violates|uncaught)/i.test(line)), [], "the policy");
    await settled(page);
    await screenshot(page, "answer-desktop-light");
});

await withFakePage("a plain answer fetches no colors and no formulas", { text: "Plain **text**." }, async (page, browser) => {
    await send(page, "Hello");
    await answered(page);
    // The service worker stores them for visits without the server; the page itself does not ask.
    const asked = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => /_chunk|highlight|sandbox/.test(name)));
    checkEqual(asked, [], "requests");
    check(browser.requested.length > 0, "there are requests");
});

await withFakePage("long texts of the user are folded; the live speed is shown while answering", {}, async (page) => {
    await setScenario(page, { text: "One two three four", pause: "step" });
    await send(page, Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n"));
    await page.waitForSelector('.fold:has-text("Show all 60 lines")');
    const height = (): Promise<number> => page.evaluate(() => (document.querySelector(".fold-text") as HTMLElement).clientHeight);
    const folded = await height();
    await page.click(".fold");
    check((await height()) > 3 * folded, "unfolded");
    await page.click('.fold:has-text("Show less")');
    for (let i = 0; i < 3; i++) {
        await page.waitForFunction(() => globalThis.step !== undefined);
        await page.evaluate(() => {
            const next = globalThis.step;
            globalThis.step = undefined;
            next?.();
        });
    }
    await page.waitForFunction(() => /[34] tokens · [\d.]+ tokens\/s · \d+% of context/.test(document.querySelector(".message.last .pace")?.textContent ?? ""));
    check(await page.isVisible("#context"), "the meter of the context");
    await setScenario(page, { text: "One two three four" });
    await page.evaluate(() => globalThis.step?.());
    await page.waitForSelector('.message.last[data-state="done"]');
    check(!(await page.isVisible(".message.last .pace")), "replaced by the exact figures");
});

// ---- what a redraw costs ----------------------------------------------------------------------------------

/** Writes a piece of the answer and waits for the frame that shows it. */
const push = (page: Page, piece: string): Promise<void> =>
    page.evaluate(async (text) => {
        globalThis.push?.(text);
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }, piece);

/** Rounds of the same pieces: the best of them is what the page needs, the rest is that other programs use the core. */
const ROUNDS = 6;

/** CPU time of the page's main thread for a piece of text after `text`, in milliseconds: of each piece the best round,
 * and of these the median. */
async function costAfter(page: Page, browser: Browser, text: string, pieces: string[]): Promise<number> {
    const session = await browser.context.newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const taskTime = async (): Promise<number> => {
        const { metrics } = await session.send("Performance.getMetrics");
        return 1000 * (metrics.find(({ name }) => name === "TaskDuration")?.value ?? NaN);
    };
    await push(page, text);
    const best = pieces.map(() => Infinity);
    for (let round = 0; round < ROUNDS; round++) {
        for (const [i, piece] of pieces.entries()) {
            const before = await taskTime();
            await push(page, piece);
            best[i] = Math.min(best[i] ?? Infinity, (await taskTime()) - before);
        }
    }
    await session.detach();
    return best.sort((x, y) => x - y)[Math.floor(best.length / 2)] ?? NaN;
}

const LENGTH = 20_000;
const fill = (line: (i: number) => string): string => {
    let text = "";
    for (let i = 0; text.length < LENGTH; i++) {
        text += line(i);
    }
    return text;
};
const bodies: [string, string, string[]][] = [
    ["paragraphs", fill((i) => `Paragraph ${i} with **bold** and \`code\` words in it.\n\n`), ["And ", "then ", "some ", "more ", "words "]],
    ["a list", fill((i) => `- item ${i} with **bold** and \`code\`\n`), ["- new ", "item ", "with ", "words\n", "- and"]],
    ["a table", `| a | b | c |\n|---|---|---|\n${fill((i) => `| row ${i} | **bold** | \`code\` |\n`)}`, ["| new ", "| cell ", "| x |\n", "| and", " | b "]],
    ["code", `\`\`\`python\n${fill((i) => `value_${i} = compute(${i}, "text")  # comment\n`)}`, ["x = ", "1\n", "y = ", "2\n", "z"]],
];

/** The goal for one piece of text, on one thread of CPU. Beside other programs, as in `make test`, which share caches and
 * cores, twice that: parsing or laying out everything again takes 20 and more. */
const MAX_MS = quick ? 8 : 4;

await chromiumOnly(withFakePage)(`at ${LENGTH.toLocaleString("en")} characters, a piece of text costs the main thread at most ${MAX_MS} ms, also in lists and tables`, { pushed: true, text: "" }, async (page, browser) => {
    const costs: string[] = [];
    for (const [name, text, pieces] of bodies) {
        await page.click("#new-chat");
        await send(page, "Write a lot.");
        await page.waitForFunction(() => globalThis.push !== undefined);
        // What a frame costs with almost nothing on the page: drawing the figures, the test's own calls.
        const empty = await costAfter(page, browser, "", [""]);
        const cost = (await costAfter(page, browser, text, pieces)) - empty;
        costs.push(`${name} ${cost.toFixed(1)} ms`);
        await page.evaluate(() => globalThis.push?.(null));
        await answered(page);
        check(cost <= MAX_MS, `${name}: ${cost.toFixed(2)} ms (and ${empty.toFixed(2)} ms for a frame without a change)`);
    }
    console.log(`  CPU time for a piece of text: ${costs.join(", ")}`);
});

// ---- nothing runs -------------------------------------------------------------------------------------------

const attacks = [
    '<img src=x onerror="window.hit=1">', "<script>window.hit=1</script>", '<svg/onload="window.hit=1">', "[x](javascript:window.hit=1)", "[x](data:text/html,<script>window.hit=1</script>)",
    "![p](https://evil.example/p.png)", '<a href="javascript:window.hit=1">x</a>', "[x]: javascript:window.hit=1\n\n[x]", '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>',
    "`<img src=x onerror=window.hit=1>`", "```html\n<script>window.hit=1</script>\n```", "```<img src=x onerror=window.hit=1>\nx\n```", "| <img src=x onerror=window.hit=1> | b |\n|---|---|\n| <script>window.hit=1</script> | c |",
    "$\\href{javascript:window.hit=1}{x}$", "$\\includegraphics{https://evil.example/x.png}$", "$\\htmlData{x=y}{z} \\htmlStyle{background:url(https://evil.example/s)}{x}$",
    "$$\\url{javascript:window.hit=1}$$", "\\(\\text{<img src=x onerror=window.hit=1>}\\)", "[^<img src=x onerror=window.hit=1>]\n\n[^1]: <img src=x onerror=window.hit=1>",
    "- [ ] <img src=x onerror=window.hit=1>", "<https://evil.example/\"onmouseover=window.hit=1>", "&lt;img src=x onerror=window.hit=1&gt;", "<style>@import 'https://evil.example/s.css'</style>",
];
const evil = attacks.join("\n\n");

await withFakePage("a corpus of attacks in answers, thoughts, questions, titles, tool calls and results runs and loads nothing", { text: evil, thinking: evil }, async (page, browser) => {
    await setScenario(page, { text: evil, thinking: evil, notice: evil, calls: [[{ name: evil.slice(0, 60), arguments: JSON.stringify({ x: evil }) }, { name: "b", arguments: evil }]] });
    await page.evaluate((text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], '<img src=x onerror="window.hit=1">.txt', { type: "text/plain" }));
        window.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }, evil);
    await page.waitForSelector("#shelf .rows b");
    await page.click('#shelf button:has-text("Done")');
    await send(page, evil);
    await answered(page);
    for (const summary of await page.locator(".message summary").all()) {
        await summary.click();
    }
    await page.waitForSelector(".prose .math .katex, .prose .math code");
    await page.fill("#search", "onerror");
    await page.waitForSelector(".conversation .hit mark");
    const state = await page.evaluate(() => ({
        hit: (window as { hit?: number }).hit ?? 0,
        elements: [...document.querySelectorAll("#log img, #log script, #log iframe, #log svg[onload], #log style, #side img, #side script, dialog img, dialog script")].map((e) => e.outerHTML),
        handlers: [...document.querySelectorAll("#log *, #side *, dialog *")].filter((e) => [...e.attributes].some(({ name }) => /^on|^style$/.test(name) && !e.closest(".katex"))).length,
        katexHandlers: [...document.querySelectorAll(".katex *")].filter((e) => [...e.attributes].some(({ name, value }) => name.startsWith("on") || /url\(|javascript:/.test(value))).length,
        links: [...document.querySelectorAll<HTMLAnchorElement>("#log a")].map((a) => a.protocol),
    }));
    checkEqual([state.hit, state.elements, state.handlers, state.katexHandlers], [0, [], 0, 0], "nothing ran, no elements, no handlers");
    check(state.links.every((protocol) => protocol === "https:" || protocol === "http:"), String(state.links));
    checkEqual(browser.requested.filter((url) => !url.startsWith(fakeServer.url)), [], "nothing was fetched");
    check((await answerText(page)).includes("<script>window.hit=1</script>"), "it is shown as text");
    await page.reload();
    await page.waitForSelector(".message.assistant .prose");
    checkEqual(await page.evaluate(() => (window as { hit?: number }).hit ?? 0), 0, "nothing ran after a reload");
});

/** What would have run, or been made of markup. */
const harm = (page: Page): Promise<unknown[]> =>
    page.evaluate(() => [
        (window as { hit?: number }).hit ?? 0,
        document.querySelectorAll("script:not([src]), iframe, img[src^='https:'], img[src='x'], style, svg[onload], [onerror], [onmouseover]").length,
    ]);

await test("the attacks in a model's metadata, in the list of models, and in an imported conversation run and load nothing", () =>
    withBrowser({ adapter: "none" }, async (browser) => {
        const { page } = browser;
        const list = {
            models: [{ name: evil, url: "builtin/pebble.gguf", about: evil, suggest: [{ text: evil, note: evil }] }],
            cards: [{ name: evil, from: "org/x-GGUF:Q4_K_M", about: evil, size: 1e9, media: 0, abilities: [evil] }],
        };
        await page.route("**/models.json", (route) => route.fulfill({ json: list }));
        await page.addInitScript((metadata) => (globalThis.scenario = { metadata }), evil);
        await openPage(page, fakeServer);
        await page.click("button.choice >> nth=0");
        await page.waitForSelector('.card button:has-text("Load")');
        checkEqual(await harm(page), [0, 0], "cards and the summary");
        await page.click('.card button:has-text("Load")');
        await ready(page);
        await page.waitForSelector(".suggestions button");
        await page.click("#model-chip");
        await page.waitForSelector("#model-info dl");
        checkEqual(await harm(page), [0, 0], "the dialog with the model's properties");
        await page.click('#model-info button:has-text("Close")');
        const message = { id: "a", order: 0, parent: null, role: "user", content: evil, thinking: "", state: "done", note: null, error: null, figures: null, created: 1,
            media: [{ kind: "image", name: evil.slice(0, 900), data: `data:image/png;base64,${pngFile(new Uint8Array(3), 1, 1).toString("base64")}` }], passages: [{ document: evil.slice(0, 90), name: evil.slice(0, 900), page: 1, text: evil }] };
        const answer = { ...message, id: "b", order: 1, parent: "a", role: "assistant", media: [], passages: [], notices: [evil.slice(0, 1900)], state: "failed", error: { code: "bad_file", message: evil.slice(0, 4000) },
            steps: [{ content: evil, thinking: evil, calls: [{ id: "c", name: evil.slice(0, 150), arguments: evil, result: evil, state: "failed" }] }] };
        const backup = { format: "bezel-conversations", version: 1, exported: "", conversations: [{ id: "x", title: evil.slice(0, 900), named: true, system: evil, created: 1, updated: 1, pinned: true, leaf: "b", messages: [message, answer] }] };
        await page.click("#open-settings");
        await page.setInputFiles('#backup input[type="file"]', { name: "x.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(backup)) });
        await page.waitForSelector('#backup [role="status"]:has-text("1 conversation imported.")');
        await page.click("#settings .main");
        await page.click(".conversation .pick");
        await page.waitForSelector(".message.assistant .outcome");
        await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
        checkEqual(await harm(page), [0, 0], "an imported conversation");
        checkEqual(browser.requested.filter((url) => !url.startsWith(fakeServer.url) && !url.startsWith("blob:")), [], "nothing was fetched");
    }));

await end(fakeServer);
