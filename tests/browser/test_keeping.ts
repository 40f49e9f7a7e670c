/** What the page keeps: messages that are not yet sent, and one conversation in two tabs. */
import type { Page } from "playwright-core";
import { check, checkEqual, finish, test } from "../web/check.js";
import { withBrowser } from "./browser.js";
import type { Scenario } from "./fake_bezel.js";
import { attached, file, give, note } from "./giving.js";
import { answered, loadOffer, openPage, ready, send, setSettings } from "./page.js";
import { pngFile } from "./png.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/", "build/web/app"]] });
/** With an engine that writes as slowly as it is told. */
const slowServer = await startServer({ mounts: [["/app/src/bezel.js", "build/web/js/tests/browser/fake_bezel.js"], ["/", "build/web/app"]] });
const picture = pngFile(new Uint8Array(3 * 64 * 64).fill(200), 64, 64);

const withPebble = (name: string, body: (p: Page) => Promise<void>): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none" }, async ({ page: p, log }) => {
            await openPage(p, server);
            await setSettings(p, { temperature: 0, maxTokens: 200 });
            await loadOffer(p, "Pebble");
            await body(p);
            checkEqual(log.filter((line) => /^(uncaught|error)/.test(line) && !line.includes("404")), [], "errors");
        }));

/** In the field, and beside it. */
const waiting = (p: Page): Promise<[string, string[]]> =>
    p.evaluate(() => [
        document.querySelector<HTMLTextAreaElement>("#composer-text")?.value ?? "",
        [...document.querySelectorAll<HTMLImageElement>("#tray .media img")].map(({ alt }) => alt),
    ]);

const waits = async (p: Page, text: string, pictures: string[]): Promise<void> => {
    await p.waitForFunction(([value, n]) => document.querySelector<HTMLTextAreaElement>("#composer-text")?.value === value && document.querySelectorAll("#tray .media li").length === n, [text, pictures.length] as const);
    checkEqual(await waiting(p), [text, pictures], "what is not yet sent");
};

const lines = "one\ntwo\nthree\nfour";

await withPebble("words and pictures that are not yet sent outlive a reload, each with its conversation, and go with their message", async (p) => {
    await p.fill("#composer-text", lines);
    await give(p, "drop", [file("grey.png", picture)]);
    await attached(p, 1);
    await p.waitForTimeout(500); // until it is stored
    const tall = await p.evaluate(() => document.getElementById("composer-text")?.clientHeight);
    await p.reload();
    await ready(p);
    await waits(p, lines, ["grey.png"]);
    await p.waitForFunction((height) => document.getElementById("composer-text")?.clientHeight === height, tall);
    await p.click("#send");
    await answered(p);
    await waits(p, "", []);
    await p.reload();
    await ready(p);
    await waits(p, "", []);

    await p.fill("#composer-text", "about this one");
    await p.click("#new-chat");
    await waits(p, "", []);
    await p.fill("#composer-text", "something new");
    await p.click("#conversations .pick");
    await waits(p, "about this one", []);
    await p.click("#new-chat");
    await waits(p, "something new", []);
    // A suggestion begins the conversation; the words stay where they are.
    await p.click(".suggestions button >> nth=0");
    await answered(p);
    await waits(p, "something new", []);
    await p.click("#new-chat");
    await waits(p, "", []);

    await p.click(".conversation:not(.current) .pick >> nth=0");
    await waits(p, "something new", []);
    const count = (): Promise<number> =>
        p.evaluate(
            () =>
                new Promise<number>((resolve) => {
                    const open = indexedDB.open("bezel-chat");
                    open.onsuccess = () => {
                        const keys = open.result.transaction("values").objectStore("values").getAllKeys();
                        keys.onsuccess = () => resolve(keys.result.filter((key) => String(key).startsWith("draft-")).length);
                    };
                }),
        );
    checkEqual(await count(), 2, "drafts that are stored");
    await p.hover(".conversation.current");
    await p.click(".conversation.current button[aria-label^=Delete]");
    await p.click('#confirm button:has-text("Delete")');
    await p.waitForFunction(() => document.querySelectorAll(".conversation").length === 1);
    checkEqual(await count(), 1, "that of the deleted conversation is gone");
});

await test("a conversation in two tabs: each sees what the other one writes, neither writes into the other's answer", () =>
    withBrowser({ adapter: "none" }, async ({ page: p, context, log }) => {
        const say = (page: Page, scenario: Scenario): Promise<void> => page.evaluate((value) => void (globalThis.scenario = value), scenario);
        const slow: Scenario = { text: "word ".repeat(400), pause: 20 };
        const open = async (): Promise<Page> => {
            const page = await context.newPage();
            await openPage(page, slowServer);
            return page;
        };
        await openPage(p, slowServer);
        await p.click("button.choice >> nth=0");
        await p.click('.card button:has-text("Load")');
        await ready(p);
        await say(p, { text: "The first answer." });
        await send(p, "One");
        await answered(p);
        const other = await open();
        await other.waitForSelector('.message.assistant.last:has-text("The first answer.")');
        await other.click('#composer-note button:has-text("Choose a model")');
        await other.click("button.choice.first");
        await ready(other);

        await say(p, slow);
        await give(p, "drop", [file("grey.png", picture)]);
        await attached(p, 1);
        await send(p, "Two");
        await other.waitForSelector('.message.last[data-state="answering"]:has-text("word")');
        await other.evaluate(() => document.querySelector(".message.user:nth-of-type(3) img")?.setAttribute("data-mine", ""));
        await send(other, "Three");
        check((await note(other)).startsWith("Another tab is writing an answer"), await note(other));
        checkEqual(await other.inputValue("#composer-text"), "Three", "the words stay");
        await other.hover(".message.user >> nth=0");
        await other.click('.message.user button:has-text("Edit") >> nth=0');
        await other.click('.edit button:has-text("Send")');
        checkEqual(await other.locator(".message").count(), 4, "nothing is cut off");
        await other.click('.edit button:has-text("Cancel")');
        await other.hover(".conversation.current");
        await other.click(".conversation.current button[aria-label^=Rename]");
        await other.keyboard.type("Num");
        await other.waitForTimeout(900); // the first tab stores what it writes
        await other.keyboard.type("bers");
        await other.keyboard.press("Enter");
        await p.waitForSelector('.conversation:has-text("Numbers")', { state: "attached" });
        await p.click("#send"); // stop
        await p.waitForSelector('.message.last[data-state="stopped"]');
        await other.waitForSelector('.message.last[data-state="stopped"]');
        checkEqual(await answered(other), await answered(p), "as far as it was written");
        checkEqual(await other.locator(".message.user img[data-mine]").count(), 1, "what is shown is not drawn anew");

        await say(other, { text: "The third answer." });
        await other.click("#send");
        await p.waitForSelector('.message.last[data-state="done"]:has-text("The third answer.")');
        checkEqual(await p.locator(".message").count(), 6, "messages");

        // A tab that is closed leaves an answer that says so.
        await say(other, slow);
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
        await third.click(".conversation.current button[aria-label^=Delete]");
        await third.click('#confirm button:has-text("Delete")');
        await p.waitForSelector("#no-conversations:not([hidden])");
        await p.waitForFunction(() => document.querySelectorAll(".message").length === 0);
        checkEqual(log.filter((line) => line.startsWith("uncaught")), [], "errors");
    }));

await test("nothing comes between a message and its answer, however fast one types; a double click does not stop it", () =>
    withBrowser({ adapter: "none" }, async ({ page: p }) => {
        await openPage(p, slowServer);
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
        checkEqual(await p.inputValue("#composer-text"), "Two", "what was typed meanwhile");
        await p.dblclick("#send");
        await answered(p);
        checkEqual(await p.getAttribute(".message.last", "data-state"), "done", "it was not stopped");
        checkEqual(await p.locator(".message").count(), 4, "messages");
    }));

await slowServer.close();
await server.close();
finish();
