/** Whatever is dropped on the page: what can be taken is taken, the rest is told, and nothing is lost by it. */
import { mkdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { check, checkEqual, finish, test } from "../web/check.js";
import { withBrowser } from "./browser.js";
import { attached, dropPaths, file, give, note } from "./giving.js";
import { answered, loadOffer, openPage, ready, send, setSettings } from "./page.js";
import { pngFile } from "./png.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/", "build/web/app"]] });
const picture = pngFile(new Uint8Array(3 * 64 * 64).fill(200), 64, 64);
const broken = Buffer.from("no picture");

const withPebble = (name: string, body: (p: Page) => Promise<void>): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none" }, async ({ page: p, log }) => {
            await openPage(p, server);
            await setSettings(p, { temperature: 0, maxTokens: 20 });
            await loadOffer(p, "Pebble");
            await body(p);
            checkEqual(log.filter((line) => line.startsWith("uncaught")), [], "errors");
        }));

const inChat = async (p: Page): Promise<void> => check(await p.isVisible("#chat"), "the conversation is still there");

await withPebble("one that is refused keeps no other out, and what is neither model nor medium is told where one is", async (p) => {
    await give(p, "drop", [file("a.png", broken), file("good.png", picture), file("b.png", broken), file("c.png", broken), file("more.png", picture)]);
    await attached(p, 2);
    const told = await note(p);
    check(told.includes("a.png cannot be read") && told.includes("b.png cannot be read") && told.endsWith("Another one was refused."), told);
    await give(p, "drop", [file("notes.txt", Buffer.from("hello"), "text/plain")]);
    await p.waitForSelector('#attach-note:has-text("notes.txt is neither a model, a picture nor a sound.")');
    await inChat(p);

    const folder = resolve("build/tests/dropped/holiday");
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/beach.png`, picture);
    await dropPaths(p, [folder, `${folder}/beach.png`]);
    await attached(p, 3);
    await p.waitForSelector('#attach-note:has-text("holiday is a folder: drop the files that are in it.")');
    await inChat(p);

    // A model without an ending, as other programs keep them, is one by its first bytes.
    await give(p, "drop", [file("sha256-0123", Buffer.from("GGUF and nothing else"), ""), file("beside.png", picture)]);
    await p.waitForSelector("#start .card.bad");
    await p.waitForSelector('#toast:has-text("beside.png was left out")');
    await p.click('.card button:has-text("Back to the conversation")');
    await inChat(p);
    checkEqual(await p.locator("#tray .media li").count(), 3, "what was attached stays");

    // The list is what its button says, also while a model is loaded; from a card that a drop has opened, back is the conversation.
    await give(p, "drop", [file("torn.gguf", Buffer.from("GGUF and nothing else"), "")]);
    await p.click('.card button:has-text("Choose another model")');
    await p.click('button.choice:has-text("Pebble Diffusion")');
    await p.click('.card button:has-text("Back")');
    await p.click('button.choice:has-text("Back to the conversation")');
    await inChat(p);
    await dropPaths(p, [resolve("models/pebble-diffusion.gguf")]);
    await p.waitForSelector('.card button:has-text("Load")');
    await p.click('.card button:has-text("Back")');
    await inChat(p);
    checkEqual(await p.locator("#tray .media li").count(), 3, "what was attached stays");
});

await withPebble("a drawing is looked at as pixels, on white", async (p) => {
    const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><circle cx="10" cy="10" r="8" fill="red"/></svg>';
    await give(p, "drop", [file("logo.svg", Buffer.from(drawing), "image/svg+xml"), file("torn.svg", Buffer.from("<svg"), "image/svg+xml")]);
    await attached(p, 1);
    check((await note(p)).startsWith("torn.svg cannot be drawn"), await note(p));
    const got = await p.evaluate(async () => {
        const image = document.querySelector<HTMLImageElement>("#tray img") as HTMLImageElement;
        await image.decode();
        const context = new OffscreenCanvas(image.naturalWidth, image.naturalHeight).getContext("2d") as OffscreenCanvasRenderingContext2D;
        context.drawImage(image, 0, 0);
        const at = (x: number, y: number): string => context.getImageData(x, y, 1, 1).data.join(" ");
        return [image.naturalWidth, image.naturalHeight, at(192, 192), at(700, 50)];
    });
    checkEqual(got, [768, 384, "255 0 0 255", "255 255 255 255"], "size, the circle, the ground");
    await send(p, "What is in the picture?");
    check((await answered(p)).includes("red"), await answered(p));
    const frame = await p.evaluate(() => ["", " img"].map((part) => document.querySelector(`.message.user .picture${part}`)?.clientWidth));
    checkEqual(frame, [320, 320], "the frame is as wide as the picture");
});

await withPebble("a picture that waits when the model changes to one without eyes is kept and not sent", async (p) => {
    await give(p, "drop", [file("good.png", picture)]);
    await attached(p, 1);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await p.click('button.choice:has-text("Pebble Diffusion")');
    await p.click('.card button:has-text("Load")');
    await p.waitForSelector('#model-chip[data-state="ready"]:has-text("Pebble Diffusion")');
    await p.click("#open-settings");
    check(((await p.textContent("#own-schedule")) ?? "").startsWith("Pebble Diffusion follows a schedule of its own"), "settings that change nothing");
    await p.keyboard.press("Escape");
    for (const act of [() => send(p, "What is it?"), () => p.click(".suggestions button >> nth=0")]) {
        await act();
        check((await note(p)).startsWith("good.png cannot be sent: Pebble Diffusion takes no pictures."), await note(p));
        await p.click('#attach-note button[aria-label="Hide this"]');
    }
    checkEqual([await p.locator(".message").count(), await p.inputValue("#composer-text")], [0, "What is it?"], "messages, and the words");
    await p.click('#tray button[aria-label="Remove good.png"]');
    await p.fill("#composer-text", "Who are you?");
    await p.click("#send");
    check((await answered(p)).includes("Pebble"), await answered(p));
});

await withPebble("a conversation with pictures goes on with a model without eyes, which is told; its last question does not", async (p) => {
    await give(p, "drop", [file("good.png", picture)]);
    await attached(p, 1);
    await p.click("#send"); // without words
    await answered(p);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await p.click('button.choice:has-text("Pebble Diffusion")');
    await p.click('.card button:has-text("Load")');
    await p.waitForSelector('#model-chip[data-state="ready"]:has-text("Pebble Diffusion")');
    await p.click('.message.last button:has-text("Answer again")');
    await p.waitForSelector('.message.last[data-state="failed"] [data-code="unsupported_model"]');
    await send(p, "Who are you?");
    check((await answered(p)).includes("Pebble"), await answered(p));
    await p.waitForSelector('.message.last .outcome:has-text("Pebble Diffusion takes no pictures: those of earlier messages are left out.")');
});

await withPebble("without a model nothing is taken away to be answered anew, and an edited message stays in its field", async (p) => {
    await send(p, "Who are you?");
    const said = await answered(p);
    await p.evaluate(() => sessionStorage.clear());
    await p.reload();
    await p.waitForSelector('#composer-note:has-text("No model is loaded.")');
    await p.click('.message.last button:has-text("Answer again")');
    check((await note(p)).startsWith("No model is loaded"), await note(p));
    checkEqual(await answered(p), said, "the answer is still there");
    await p.hover(".message.user");
    await p.click('.message.user button:has-text("Edit")');
    await p.fill(".edit textarea", "Who am I?");
    await p.click('.edit button:has-text("Send")');
    checkEqual(await p.inputValue(".edit textarea"), "Who am I?", "the words");
    checkEqual(await p.locator(".message").count(), 2, "messages");
    await p.click('#composer-note button:has-text("Choose a model")');
    await p.click('button.choice:has-text("Continue with Pebble")');
    await ready(p);
    await p.click('.edit button:has-text("Send")');
    await p.waitForSelector('.message.user .said:has-text("Who am I?")');
    await answered(p);
});

await withPebble("where the browser has no room left, the model is loaded and answers, and it is said that nothing is kept", async (p) => {
    await p.evaluate(() => {
        IDBObjectStore.prototype.put = () => {
            throw new DOMException("no room", "QuotaExceededError");
        };
    });
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await loadOffer(p, "Pebble");
    await give(p, "drop", [file("good.png", picture)]);
    await attached(p, 1);
    await send(p, "What is in the picture?");
    check((await answered(p)).trim() !== "", "an answer");
    await p.waitForSelector('#toast:has-text("does not store this conversation")');
});

await server.close();
finish();
