/** Files dropped on the page: supported ones are used, others are refused with a message, and nothing is lost. */
import { mkdir, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { chromiumOnly, end, withBrowser } from "./browser.js";
import { attached, dispatchFiles, dropPaths, file, note } from "./attach.js";
import { answered, loadOffer, openPage, ready, send, servePebble, setSettings } from "./page.js";
import { pngFile } from "./png.js";

const server = await servePebble();
const image = pngFile(new Uint8Array(3 * 64 * 64).fill(200), 64, 64);
const broken = Buffer.from("no image");

const withPebble = (name: string, body: (p: Page) => Promise<void>): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none" }, async ({ page: p, log }) => {
            await openPage(p, server);
            await setSettings(p, { temperature: 0, maxTokens: 20 });
            await loadOffer(p, "Pebble");
            await body(p);
            checkEqual(log.filter((line) => line.startsWith("uncaught")), [], "errors");
        }));

const checkInChat = async (p: Page): Promise<void> => check(await p.isVisible("#chat"), "the conversation is still there");

await withPebble("refused files do not affect others; a file that is neither model nor media only shows a message", async (p) => {
    await dispatchFiles(p, "drop", [file("a.png", broken), file("good.png", image), file("b.png", broken), file("c.png", broken), file("more.png", image)]);
    await attached(p, 2);
    const message = await note(p);
    check(message.includes("a.png cannot be read") && message.includes("b.png cannot be read") && message.endsWith("Another one was refused."), message);
    await dispatchFiles(p, "drop", [file("notes.zip", Buffer.from("hello"), "application/zip")]);
    await p.waitForSelector('#attach-note:has-text("notes.zip is not a model, image, sound or document.")');
    await checkInChat(p);

    // A model without an extension, as other programs store them, is detected by its magic bytes.
    await dispatchFiles(p, "drop", [file("sha256-0123", Buffer.from("GGUF and nothing else"), ""), file("beside.png", image)]);
    await p.waitForSelector("#start .card.bad");
    await p.waitForSelector('#toast:has-text("beside.png was ignored")');
    await p.click('.card button:has-text("Back to the conversation")');
    await checkInChat(p);
    checkEqual(await p.locator("#tray .media li").count(), 2, "attachments are kept");

    // "Choose another model" shows the list even with a model loaded; "Back" on a dropped model's card returns to the chat.
    await dispatchFiles(p, "drop", [file("torn.gguf", Buffer.from("GGUF and nothing else"), "")]);
    await p.click('.card button:has-text("Choose another model")');
    await p.click('button.choice:has-text("Pebble Diffusion")');
    await p.click('.card button:has-text("Back")');
    await p.click('button.choice:has-text("Back to the conversation")');
    await checkInChat(p);
    checkEqual(await p.locator("#tray .media li").count(), 2, "attachments are kept");
});

await chromiumOnly(withPebble)("files and folders dropped from disk: a folder is refused, a model's card leads back to the chat", async (p) => {
    const folder = resolve("build/tests/dropped/holiday");
    await mkdir(folder, { recursive: true });
    await writeFile(`${folder}/beach.png`, image);
    await dropPaths(p, [folder, `${folder}/beach.png`]);
    await attached(p, 1);
    await p.waitForSelector('#attach-note:has-text("holiday is a folder: drop the files in it instead.")');
    await checkInChat(p);
    await dropPaths(p, [resolve("models/pebble-diffusion.gguf")]);
    await p.waitForSelector('.card button:has-text("Load")');
    await p.click('.card button:has-text("Back")');
    await checkInChat(p);
    checkEqual(await p.locator("#tray .media li").count(), 1, "attachments are kept");
});

await withPebble("a drafter: alone it is refused, with its model it drafts, after its model it is added", async (p) => {
    const [model, drafter] = ["pebble", "pebble-drafter"].map((name) => resolve(`models/${name}.gguf`)) as [string, string];
    await dropPaths(p, [drafter]); // the loaded model is no file
    await p.waitForSelector('.card.bad:has-text("pebble-drafter.gguf holds only a drafter")');
    await dropPaths(p, [model]);
    await p.waitForSelector('.card:has(button:has-text("Load")) .facts:not(:has-text("Drafter"))');
    await dropPaths(p, [drafter]);
    await p.waitForSelector('.card .facts:has-text("2 files"):has-text("Drafter")');
    await p.click('.card button:has-text("Back")');
    await dropPaths(p, [drafter, model]);
    await p.waitForSelector('.card:has(button:has-text("Load")) .facts:has-text("2 files"):has-text("Drafter")');
    checkEqual(await p.textContent("#start-title"), "pebble", "named after the text model");
    await p.click('.card button:has-text("Load")');
    await ready(p);
    await setSettings(p, { maxTokens: 96 }); // drafting is tried again where it did not pay
    await send(p, "Tell me a story about a fox named Rilo.");
    check((await answered(p)).includes("Rilo"), await answered(p));
    const figures = (await p.textContent(".message.last .figures")) ?? "";
    check(/tokens\/s · \d+ of [1-9]\d* drafts right$/.test(figures), figures);
    await p.reload();
    await p.waitForSelector('.message.last .figures:has-text("drafts right")');
});

await withPebble("an SVG is rasterised on a white background", async (p) => {
    const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"><circle cx="10" cy="10" r="8" fill="red"/></svg>';
    await dispatchFiles(p, "drop", [file("logo.svg", Buffer.from(drawing), "image/svg+xml"), file("torn.svg", Buffer.from("<svg"), "image/svg+xml")]);
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
    checkEqual(got, [768, 384, "255 0 0 255", "255 255 255 255"], "size, circle, background");
    await send(p, "What is in the picture?");
    check((await answered(p)).includes("red"), await answered(p));
    const frame = await p.evaluate(() => ["", " img"].map((part) => document.querySelector(`.message.user .image${part}`)?.clientWidth));
    checkEqual(frame, [320, 320], "width of the frame and the image");
});

await withPebble("an attached image is kept but not sent when the model changes to one without vision", async (p) => {
    await dispatchFiles(p, "drop", [file("good.png", image)]);
    await attached(p, 1);
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await p.click('button.choice:has-text("Pebble Diffusion")');
    await p.click('.card button:has-text("Load")');
    await p.waitForSelector('#model-chip[data-state="ready"]:has-text("Pebble Diffusion")');
    await p.click("#open-settings");
    check(((await p.textContent("#diffusion-note")) ?? "").startsWith("Pebble Diffusion is a diffusion model"), "note about settings without effect");
    await p.keyboard.press("Escape");
    for (const act of [() => send(p, "What is it?"), () => p.click(".suggestions button >> nth=0")]) {
        await act();
        check((await note(p)).startsWith("good.png cannot be sent: Pebble Diffusion takes no images."), await note(p));
        await p.click('#attach-note button[aria-label="Hide this"]');
    }
    checkEqual([await p.locator(".message").count(), await p.inputValue("#composer-text")], [0, "What is it?"], "messages and text");
    await p.click('#tray button[aria-label="Remove good.png"]');
    await p.fill("#composer-text", "Who are you?");
    await p.click("#send");
    check((await answered(p)).includes("Pebble"), await answered(p));
});

await withPebble("with a model without vision, earlier images are omitted with a notice; a question with one is refused", async (p) => {
    await dispatchFiles(p, "drop", [file("good.png", image)]);
    await attached(p, 1);
    await p.click("#send"); // without text
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
    await p.waitForSelector('.message.last .outcome:has-text("Pebble Diffusion takes no images: those in earlier messages are omitted.")');
});

await withPebble("without a model, regenerating removes nothing, and an edited message stays in its field", async (p) => {
    await send(p, "Who are you?");
    const answer = await answered(p);
    await p.evaluate(() => sessionStorage.clear());
    await p.reload();
    await p.waitForSelector('#composer-note:has-text("No model is loaded.")');
    await p.click('.message.last button:has-text("Answer again")');
    check((await note(p)).startsWith("No model is loaded"), await note(p));
    checkEqual(await answered(p), answer, "the answer is still there");
    await p.hover(".message.user");
    await p.click('.message.user button:has-text("Edit")');
    await p.fill(".edit textarea", "Who am I?");
    await p.click('.edit button:has-text("Send")');
    checkEqual(await p.inputValue(".edit textarea"), "Who am I?", "text");
    checkEqual(await p.locator(".message").count(), 2, "messages");
    await p.click('#composer-note button:has-text("Choose a model")');
    await p.click('button.choice:has-text("Load Pebble again")');
    await ready(p);
    await p.click('.edit button:has-text("Send")');
    await p.waitForSelector('.message.user .user-text:has-text("Who am I?")');
    await answered(p);
});

await withPebble("with full storage, the model still loads and answers, and a message says that nothing is stored", async (p) => {
    await p.evaluate(() => {
        IDBObjectStore.prototype.put = () => {
            throw new DOMException("full", "QuotaExceededError");
        };
    });
    await p.click("#model-chip");
    await p.click('#model-info button:has-text("Change")');
    await loadOffer(p, "Pebble");
    await dispatchFiles(p, "drop", [file("good.png", image)]);
    await attached(p, 1);
    await send(p, "What is in the picture?");
    check((await answered(p)).trim() !== "", "an answer");
    await p.waitForSelector('#toast:has-text("cannot store this conversation")');
});

await end(server);
