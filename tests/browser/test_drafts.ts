/** Unsent drafts, and one conversation in two tabs. */
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { end, withBrowser } from "./browser.js";
import type { Scenario } from "./fake_bezel.js";
import { attached, dispatchFiles, file, note } from "./attach.js";
import { answered, loadOffer, openPage, packageScript, ready, send, servePebble, setSettings, storedKeys, until } from "./page.js";
import { pngFile } from "./png.js";

const server = await servePebble();
/** Serves the page with fake_bezel.ts, whose speed the tests control. */
const fakeServer = await servePebble([[packageScript, "build/web/js/tests/browser/fake_bezel.js"]]);
const image = pngFile(new Uint8Array(3 * 64 * 64).fill(200), 64, 64);

const withPebble = (name: string, body: (p: Page) => Promise<void>): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none" }, async ({ page: p, log }) => {
            await openPage(p, server);
            await setSettings(p, { temperature: 0, maxTokens: 200 });
            await loadOffer(p, "Pebble");
            await body(p);
            checkEqual(log.filter((line) => /^(uncaught|error)/.test(line) && !line.includes("404")), [], "errors");
        }));

/** Text and attachments of the composer. */
const draft = (p: Page): Promise<[string, string[]]> =>
    p.evaluate(() => [
        document.querySelector<HTMLTextAreaElement>("#composer-text")?.value ?? "",
        [...document.querySelectorAll<HTMLImageElement>("#tray .media img")].map(({ alt }) => alt),
    ]);

const checkDraft = async (p: Page, text: string, images: string[]): Promise<void> => {
    await p.waitForFunction(([value, n]) => document.querySelector<HTMLTextAreaElement>("#composer-text")?.value === value && document.querySelectorAll("#tray .media li").length === n, [text, images.length] as const);
    checkEqual(await draft(p), [text, images], "draft");
};

const lines = "one\ntwo\nthree\nfour";

await withPebble("drafts survive a reload, belong to their conversation, and end when sent", async (p) => {
    await p.fill("#composer-text", lines);
    await dispatchFiles(p, "drop", [file("gray.png", image)]);
    await attached(p, 1);
    await until(p, async () => (await storedKeys(p, "draft-")).length === 2);
    const tall = await p.evaluate(() => document.getElementById("composer-text")?.clientHeight);
    await p.reload();
    await ready(p);
    await checkDraft(p, lines, ["gray.png"]);
    await p.waitForFunction((height) => document.getElementById("composer-text")?.clientHeight === height, tall);
    await p.click("#send");
    await answered(p);
    await checkDraft(p, "", []);
    await p.reload();
    await ready(p);
    await checkDraft(p, "", []);

    await p.fill("#composer-text", "about this one");
    await p.click("#new-chat");
    await checkDraft(p, "", []);
    await p.fill("#composer-text", "something new");
    await p.click("#conversations .pick");
    await checkDraft(p, "about this one", []);
    await p.click("#new-chat");
    await checkDraft(p, "something new", []);
    // A suggestion starts the conversation; the draft stays.
    await p.click(".suggestions button >> nth=0");
    await answered(p);
    await checkDraft(p, "something new", []);
    await p.click("#new-chat");
    await checkDraft(p, "", []);

    await p.click(".conversation:not(.current) .pick >> nth=0");
    await checkDraft(p, "something new", []);
    checkEqual((await storedKeys(p, "draft-")).length, 2, "stored drafts");
    await p.hover(".conversation.current");
    await p.click(".conversation.current .tools button");
    await p.click('.menu [role="menuitem"]:has-text("Delete")');
    await p.click('#confirm button:has-text("Delete")');
    await p.waitForFunction(() => document.querySelectorAll(".conversation").length === 1);
    checkEqual((await storedKeys(p, "draft-")).length, 1, "the deleted conversation's draft is removed");
});

await test("a conversation in two tabs: changes appear in both, and only one of them can answer at a time", () =>
    withBrowser({ adapter: "none" }, async ({ page: p, context, log }) => {
        const setScenario = (page: Page, scenario: Scenario): Promise<void> => page.evaluate((value) => void (globalThis.scenario = value), scenario);
        const slow: Scenario = { text: "word ".repeat(20_000), pause: 20 }; // longer than any test
        const open = async (): Promise<Page> => {
            const page = await context.newPage();
            await openPage(page, fakeServer);
            return page;
        };
        await openPage(p, fakeServer);
        await p.click("button.choice >> nth=0");
        await p.click('.card button:has-text("Load")');
        await ready(p);
        await setScenario(p, { text: "The first answer." });
        await send(p, "One");
        await answered(p);
        const other = await open();
        await other.waitForSelector('.message.assistant.last:has-text("The first answer.")');
        await other.click('#composer-note button:has-text("Choose a model")');
        await other.click("button.choice.recommended");
        await ready(other);

        await setScenario(p, slow);
        await dispatchFiles(p, "drop", [file("gray.png", image)]);
        await attached(p, 1);
        await send(p, "Two");
        await other.waitForSelector('.message.last[data-state="answering"]:has-text("word")');
        await other.evaluate(() => document.querySelector(".message.user:nth-of-type(3) img")?.setAttribute("data-mine", ""));
        await send(other, "Three");
        check((await note(other)).startsWith("Another tab is writing an answer"), await note(other));
        checkEqual(await other.inputValue("#composer-text"), "Three", "the text is kept");
        await other.hover(".message.user >> nth=0");
        await other.click('.message.user button:has-text("Edit") >> nth=0');
        await other.click('.edit button:has-text("Send")');
        checkEqual(await other.locator(".message").count(), 4, "no message is removed");
        await other.click('.edit button:has-text("Cancel")');
        await other.hover(".conversation.current");
        await other.click(".conversation.current .tools button");
        await other.click('.menu [role="menuitem"]:has-text("Rename")');
        await other.keyboard.type("Num");
        // The first tab stores its answer twice meanwhile, which must not disturb the typing.
        await other.evaluate(
            () =>
                new Promise<void>((resolve) => {
                    let messages = 0;
                    new BroadcastChannel("bezel-chat").onmessage = () => ++messages === 2 && resolve();
                }),
        );
        await other.keyboard.type("bers");
        await other.keyboard.press("Enter");
        await p.waitForSelector('.conversation:has-text("Numbers")', { state: "attached" });
        await p.click("#send"); // stop
        await p.waitForSelector('.message.last[data-state="stopped"]');
        await other.waitForSelector('.message.last[data-state="stopped"]');
        checkEqual(await answered(other), await answered(p), "text written so far");
        checkEqual(await other.locator(".message.user img[data-mine]").count(), 1, "existing elements are kept");

        await setScenario(other, { text: "The third answer." });
        await other.click("#send");
        await p.waitForSelector('.message.last[data-state="done"]:has-text("The third answer.")');
        checkEqual(await p.locator(".message").count(), 6, "messages");

        // Closing a tab marks its answer as interrupted.
        await setScenario(other, slow);
        await send(other, "Four");
        await p.waitForSelector('.message.last[data-state="answering"]:has-text("word")');
        await other.close();
        await p.waitForSelector('.message.last[data-state="interrupted"]:has-text("word")');
        await p.reload();
        await p.waitForSelector('.message.last[data-state="interrupted"]:has-text("word")');
        checkEqual(await p.locator(".message").count(), 8, "messages");

        const third = await open();
        await third.waitForSelector('.message.last[data-state="interrupted"]');
        await third.hover(".conversation.current");
        await third.click(".conversation.current .tools button");
        await third.click('.menu [role="menuitem"]:has-text("Delete")');
        await third.click('#confirm button:has-text("Delete")');
        await p.waitForSelector("#no-conversations:not([hidden])");
        await p.waitForFunction(() => document.querySelectorAll(".message").length === 0);
        checkEqual(log.filter((line) => line.startsWith("uncaught")), [], "errors");
    }));

await test("no message can be sent before the answer to the previous one; a double click does not stop it", () =>
    withBrowser({ adapter: "none" }, async ({ page: p }) => {
        await openPage(p, fakeServer);
        await p.click("button.choice >> nth=0");
        await p.click('.card button:has-text("Load")');
        await ready(p);
        await p.evaluate(() => {
            globalThis.scenario = { text: "word ".repeat(20), pause: 20 };
            const field = document.querySelector<HTMLTextAreaElement>("#composer-text") as HTMLTextAreaElement;
            for (const text of ["One", "Two"]) {
                field.value = text;
                field.dispatchEvent(new Event("input"));
                field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
            }
        });
        await answered(p);
        checkEqual(await p.locator(".message").allInnerTexts().then((all) => all.map((text) => text.slice(0, 3))), ["One", "wor"], "messages");
        checkEqual(await p.inputValue("#composer-text"), "Two", "text typed in the meantime");
        await p.dblclick("#send");
        await answered(p);
        checkEqual(await p.getAttribute(".message.last", "data-state"), "done", "not stopped");
        checkEqual(await p.locator(".message").count(), 4, "messages");
    }));

await end(fakeServer, server);
