/** Nothing is lost: branches, search, pins, export and import, the database of the first version, a full context. */
import { readFile } from "node:fs/promises";
import { check, checkEqual, test } from "../web/check.js";
import { end, screenshot, withBrowser } from "./browser.js";
import { fakeServer, setScenario, withFakePage } from "./fake_page.js";
import { answered, answerText, chooseAction, openPage, send, settled, stored } from "./page.js";
import type { Page } from "playwright-core";

const texts = (page: Page): Promise<string[]> =>
    page.evaluate(() => [...document.querySelectorAll(".message")].map((one) => one.querySelector(".fold-text, .prose")?.textContent ?? ""));

await withFakePage("an edited question and another answer are branches, which one can step through, also after a reload", { text: "First." }, async (page) => {
    await send(page, "One");
    await answered(page);
    await send(page, "Two");
    await answered(page);
    await setScenario(page, { text: "Second." });
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('.message.last .prose:has-text("Second.")');
    await answered(page);
    checkEqual(await page.textContent(".message.last .versions"), "2/2", "versions of the answer");
    await page.hover(".message.user >> nth=0");
    await page.click('.message.user >> nth=0 >> button:has-text("Edit")');
    await page.fill(".edit textarea", "Other");
    await page.click('.edit button:has-text("Send")');
    await page.waitForSelector('.message.user:has-text("Other")');
    await answered(page);
    checkEqual(await texts(page), ["Other", "Second."], "the new branch");
    checkEqual((await stored(page, "messages")).length, 7, "all messages are kept");
    await page.click('.message.user >> nth=0 >> button[aria-label="Previous version"]');
    await page.waitForSelector('.message.user:has-text("Two")');
    checkEqual(await texts(page), ["One", "First.", "Two", "Second."], "the branch before, at its newest end");
    await page.click('.message.last button[aria-label="Previous version"]');
    await page.waitForSelector('.message.last .prose:has-text("First.")');
    check(await page.isDisabled('.message.last button[aria-label="Previous version"]'), "there is none before");
    await page.reload();
    await page.waitForSelector(".message.last");
    checkEqual(await texts(page), ["One", "First.", "Two", "First."], "after a reload");
    const requests = await page.evaluate(() => globalThis.requests?.length ?? 0);
    checkEqual(requests, 0, "stepping asks nothing");
});

await withFakePage("search finds words in every branch and opens them; pinned conversations come first", { text: "An answer about agates." }, async (page) => {
    for (const question of ["About opals", "About quartz"]) {
        await page.click("#new-chat");
        await send(page, question);
        await answered(page);
    }
    await setScenario(page, { text: "A later answer." });
    await page.click('.message.last button:has-text("Answer again")');
    await page.waitForSelector('.message.last .prose:has-text("later")');
    const names = (): Promise<string[]> => page.locator(".conversation .name").allTextContents();
    await chooseAction(page, "About opals", "Pin");
    await page.waitForFunction(() => document.querySelector(".conversation .name")?.textContent === "About opals");
    await page.fill("#search", "AGATES");
    await page.waitForSelector('.conversation:has-text("About quartz") .hit mark');
    checkEqual(await names(), ["About opals", "About quartz"], "found in both");
    await page.click('.conversation:has-text("About quartz") .pick');
    await page.waitForSelector('.message.last .prose:has-text("agates")');
    await page.fill("#search", "quartz");
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 1);
    await page.fill("#search", "nothing of this");
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 0);
    check(await page.isVisible("#no-conversations"), "says so");
    await page.press("#search", "Escape");
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 2);
    await settled(page);
    await screenshot(page, "side-desktop-light");
});

await withFakePage("export and import: another browser gets everything, a second import adds nothing", { text: "An answer." }, async (page, browser) => {
    await send(page, "A question");
    await answered(page);
    await page.click("#open-settings");
    const [file] = await Promise.all([page.waitForEvent("download"), page.click('#backup button:has-text("Export all")')]);
    const json = await readFile(await file.path());
    check(/^bezel-conversations-\d{4}-\d\d-\d\d\.json$/.test(file.suggestedFilename()), file.suggestedFilename());
    await page.click("#settings .main");
    const [markdown] = await Promise.all([page.waitForEvent("download"), chooseAction(page, "A question", "Export as Markdown")]);
    checkEqual([markdown.suggestedFilename(), String(await readFile(await markdown.path()))], ["A-question.md", "# A question\n\n## You\n\nA question\n\n## Answer\n\nAn answer.\n"], "Markdown");
    await chooseAction(page, "A question", "Delete");
    await page.click('#confirm button:has-text("Delete")');
    await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 0);
    await page.click("#open-settings");
    const importFile = async (name: string, buffer: Buffer, want: string): Promise<void> => {
        await page.setInputFiles('#backup input[type="file"]', { name, mimeType: "application/json", buffer });
        await page.waitForSelector(`#backup [role="status"]:has-text("${want}")`);
    };
    await importFile("a.json", json, "1 conversation imported.");
    await importFile("a.json", json, "0 conversations imported; 1 conversation already here.");
    await importFile("b.json", Buffer.from("{}"), "b.json cannot be imported: it was not exported by Bezel.");
    await importFile("v1.json", await readFile("tests/browser/fixtures/export-v1.json"), "2 conversations imported.");
    await page.click("#settings .main");
    await page.click('.conversation:has-text("A picture") .pick');
    await page.waitForSelector('.message.user img[alt="dot.png"]');
    await page.click('.conversation:has-text("A question") .pick');
    await page.waitForSelector('.message.last .prose:has-text("An answer.")');
    checkEqual(browser.log.filter((line) => line.startsWith("uncaught")), [], "errors");
});

await test("the database of the first version opens: conversations, settings, drafts, an answer that was cut off", () =>
    withBrowser({ adapter: "none" }, async ({ page, log }) => {
        const database = JSON.parse(await readFile("tests/browser/fixtures/database-v1.json", "utf8")) as Record<string, unknown>;
        await page.goto(`${fakeServer.url}/icon.svg`); // of the same origin, without the page
        await page.evaluate(
            (old) =>
                new Promise<void>((resolve, reject) => {
                    const { conversations, messages, values } = old as { conversations: unknown[]; messages: unknown[]; values: Record<string, unknown> };
                    const request = indexedDB.open("bezel-chat", 1);
                    request.onerror = () => reject(request.error ?? new Error("open"));
                    request.onupgradeneeded = () => {
                        request.result.createObjectStore("conversations", { keyPath: "id" });
                        request.result.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
                        request.result.createObjectStore("values");
                    };
                    request.onsuccess = () => {
                        const t = request.result.transaction(["conversations", "messages", "values"], "readwrite");
                        conversations.forEach((one) => t.objectStore("conversations").put(one));
                        messages.forEach((one) => t.objectStore("messages").put(one));
                        Object.entries(values).forEach(([key, value]) => t.objectStore("values").put(value, key));
                        t.oncomplete = () => {
                            request.result.close();
                            resolve();
                        };
                    };
                }),
            database,
        );
        await openPage(page, fakeServer);
        await page.waitForSelector('.message.last[data-state="interrupted"]');
        checkEqual(await texts(page), ["How are gems cut?", "With facets.", "And why?", "For the li"], "the open conversation");
        checkEqual(await page.inputValue("#composer-text"), "an unsent draft", "draft");
        checkEqual(await page.locator(".conversation .name").allTextContents(), ["How are gems cut?", "Older"], "conversations");
        const messages = await stored<{ id: string; parent: string | null }>(page, "messages");
        checkEqual(messages.map(({ id, parent }) => [id, parent]), [["v1a", null], ["v1b", "v1a"], ["v1c", "v1b"], ["v1d", "v1c"], ["v2a", null], ["v2b", "v2a"]], "the tree");
        await page.click('.conversation:has-text("Older") .pick');
        await page.waitForSelector('.message.last .prose:has-text("Hi.")');
        checkEqual(log.filter((line) => line.startsWith("uncaught")), [], "errors");
    }));

await withFakePage("a full context: the oldest turns are left out and the user is told, instead of an error", { text: "Fine.", used: 100 }, async (page) => {
    for (const question of ["One", "Two", "Three"]) {
        await send(page, question);
        await answered(page);
    }
    await setScenario(page, { text: "Still here.", used: 100, maxMessages: 3 });
    await send(page, "Four");
    await page.waitForSelector('.message.last[data-state="done"] .outcome:has-text("is full: the oldest")');
    checkEqual(await answerText(page), "Still here.", "the answer");
    const sent = await page.evaluate(() => (globalThis.requests ?? []).map(({ messages }) => messages.map(({ content }) => content)));
    checkEqual(sent.slice(-3), [["One", "Fine.", "Two", "Fine.", "Three", "Fine.", "Four"], ["Two", "Fine.", "Three", "Fine.", "Four"], ["Three", "Fine.", "Four"]], "what was sent");
    checkEqual(await page.locator(".message.last .outcome").allTextContents(), ["The context of 32,768 tokens is full: the oldest 4 messages are no longer sent to the model."], "one notice");
    checkEqual(await page.locator(".message").count(), 8, "nothing is removed from the conversation");
    await setScenario(page, { text: "And on.", used: 100 });
    await send(page, "Five");
    await answered(page);
    const last = await page.evaluate(() => globalThis.requests?.at(-1)?.messages.map(({ content }) => content));
    checkEqual(last, ["Three", "Fine.", "Four", "Still here.", "Five"], "later requests begin at the same turn");
    await setScenario(page, { text: "whole answer.", cut: true });
    await send(page, "Six");
    await answered(page);
    checkEqual((await answerText(page)).replace(/\s+/g, " "), "whole answer.whole answer.", "an answer that was cut by the context goes on");
    checkEqual(await page.evaluate(() => globalThis.requests?.at(-1)?.continue_final_message), true, "it was continued");
});

await end(fakeServer);
