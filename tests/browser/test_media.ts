/** Pictures and sound on the page, with Pebble: dropped, pasted, chosen, recorded; what it answers is what the official
 * classes answer. Screenshots go to build/screenshots. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, finish, test } from "../web/check.js";
import { Golden, goldenFolder, modelFolder } from "../web/golden.js";
import { wavFile } from "../web/wav.js";
import { quick, screenshot, withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import { attached, file, give, note } from "./giving.js";
import { answered, answerText, loadOffer, nano, openPage, ready, send, setSettings, type Wishes } from "./page.js";
import { pngFile } from "./png.js";
import { withBezelServe } from "./serve.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/models", modelFolder], ["/", "build/web/app"]] });
const golden = await Golden.open(`${goldenFolder}/pebble/golden.gguf`);
const shapes = golden.picture("image.rgb");
const picture = pngFile(shapes.data, shapes.width, shapes.height);
const speech = golden.sound("audio.samples");
const wav = Buffer.from(await wavFile(speech, 16000).arrayBuffer());

// The microphone hears a second of silence, the words, and silence again.
const microphone = "build/tests/microphone.wav";
const heard = new Float32Array(3 * 48000 + 3 * speech.length);
speech.forEach((x, i) => heard.fill(x, 48000 + 3 * i, 48000 + 3 * i + 3));
await mkdir("build/tests", { recursive: true });
await writeFile(microphone, Buffer.from(await wavFile(heard, 48000).arrayBuffer()));

/** What the official classes say (tests/golden, and tests/web/test_media.ts). */
const SEEN = "I see three shapes: a red circle in the top left, a blue star in the center and a green square in the bottom right.";
const HEARD = "turn the blue light off";

type Body = (page: Page, browser: Browser) => Promise<void>;

const page = (name: string, options: BrowserOptions, wishes: Wishes, body: Body): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none", ...options }, async (browser) => {
            await openPage(browser.page, server);
            await setSettings(browser.page, { temperature: 0, maxTokens: 60, ...wishes });
            await loadOffer(browser.page, "Pebble");
            await body(browser.page, browser);
            const bad = browser.log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404"));
            checkEqual(bad, [], "errors in the console");
            const foreign = browser.requested.filter((url) => !url.startsWith(`${server.url}/`) && !/^(blob|data|chrome|about):/.test(url));
            checkEqual(foreign, [], "requests to other places");
        }));

const slowPage: typeof page = (...all) => (quick ? Promise.resolve() : page(...all));

/** Of messages whose pictures and sounds can be seen. */
const shown = (p: Page): Promise<string[]> =>
    p.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>(".message.user .media img, .message.user .media audio")].map((one) =>
            one instanceof HTMLImageElement ? `${one.alt} ${one.complete && one.naturalWidth > 0}` : `${one.getAttribute("aria-label")?.split(",")[0]} ${(one as HTMLAudioElement).error === null}`,
        ),
    );

declare global {
    var looked: number | undefined;
}

/** Counts what is shown of pictures being looked at. */
const watchLooking = (p: Page): Promise<void> =>
    p.evaluate(() => {
        globalThis.looked = 0;
        const see = (): void => {
            const one = document.querySelector<HTMLElement>(".message.last .looking");
            globalThis.looked = (globalThis.looked ?? 0) + Number(one !== null && !one.hidden);
        };
        new MutationObserver(see).observe(document.getElementById("log") as HTMLElement, { subtree: true, attributes: true, childList: true });
    });

await page("a picture dropped on the page is described, a second question encodes nothing, and all of it is there after a reload", {}, {}, async (p) => {
    await give(p, "dragover", [file("shapes.png", picture)]);
    checkEqual(await p.textContent("#drop"), "Drop it into the message", "the veil");
    await screenshot(p, "media-drop-desktop-light");
    await give(p, "drop", [file("shapes.png", picture)]);
    await attached(p, 1);
    check(await p.isHidden("#drop"), "the veil is gone");
    await send(p, "What is in the picture?");
    checkEqual((await answered(p)).trim(), SEEN, "the answer");
    checkEqual(await p.locator("#tray .media li").count(), 0, "the tray is empty again");
    checkEqual(await shown(p), ["shapes.png true"], "shown");
    await watchLooking(p);
    await send(p, "What color is it?");
    check((await answered(p)).trim().length > 0, "a second answer");
    checkEqual(await p.evaluate(() => globalThis.looked), 0, "it did not look again");
    await screenshot(p, "media-answer-desktop-light");

    await p.reload();
    await ready(p);
    await p.waitForFunction(() => document.querySelector<HTMLImageElement>(".message.user .media img")?.naturalWidth === 384);
    checkEqual(await p.locator(".message").count(), 4, "messages");
    await watchLooking(p);
    await send(p, "Where is it?");
    check((await answered(p)).trim().length > 0, "a third answer, in a page that has to look once more");
    check(((await p.evaluate(() => globalThis.looked)) ?? 0) > 0, "it looked");
});

await page("words spoken into the microphone are heard; a recording can be discarded", { microphone }, {}, async (p) => {
    // The device that stands in plays in real time: where the machine has no time for it, a word may be lost.
    let said = "";
    for (let attempt = 0; attempt < 4 && said !== HEARD; attempt++) {
        await p.click("#record");
        await p.waitForSelector("#recording:not(.asking)");
        await p.waitForFunction(() => document.querySelector("#recording .time")?.textContent === "0:02");
        const levels = await p.evaluate(() => [...document.querySelectorAll<HTMLElement>("#recording .levels span")].map(({ style }) => Number(/[\d.]+/.exec(style.transform)?.[0])));
        check(Math.max(...levels) > 0.3 && Math.min(...levels) < 0.2, `levels ${levels.join(" ")}`);
        await p.waitForFunction(() => document.querySelector("#recording .time")?.textContent === "0:03");
        await p.click("#keep-recording");
        await attached(p, 1);
        check(await p.isHidden("#recording"), "the bar is gone");
        await p.waitForFunction(() => (document.querySelector<HTMLAudioElement>("#tray audio")?.duration ?? 0) > 2.5);
        await send(p, "Transcribe this.");
        said = (await answered(p)).trim();
        await p.click("#new-chat");
    }
    checkEqual(said, HEARD, "the answer");
    await p.click("#conversations button >> nth=0");
    await p.waitForSelector(".message.user audio");
    check((await shown(p))[0]?.endsWith(" true") ?? false, "a player");
    await p.click("#record");
    await p.waitForSelector("#recording:not(.asking)");
    await p.keyboard.press("Escape");
    await p.waitForSelector("#recording", { state: "hidden" });
    checkEqual(await p.locator("#tray .media li").count(), 0, "nothing is attached");
    // With keys alone: the focus follows what is shown.
    const focus = (): Promise<string | undefined> => p.evaluate(() => document.activeElement?.id);
    checkEqual(await focus(), "record", "focus after it was discarded");
    await p.keyboard.press("Enter");
    await p.waitForSelector("#recording:not(.asking)");
    checkEqual(await focus(), "keep-recording", "focus while it records");
    await p.waitForFunction(() => document.querySelector("#recording .time")?.textContent === "0:02");
    await p.keyboard.press("Enter");
    await p.waitForSelector("#recording", { state: "hidden" });
    await p.waitForSelector("#tray audio, #attach-note:not([hidden])"); // a device that has played all of its file is silent
});

await page("pasted, chosen, removed; corrupt and huge ones are refused, and what was there stays", {}, {}, async (p, browser) => {
    await p.focus("#composer-text");
    await give(p, "paste", [file("image.png", picture)]);
    await attached(p, 1);
    await give(p, "drop", [file("broken.png", Buffer.concat([picture.subarray(0, 3000), Buffer.alloc(200)]))]);
    check((await note(p)).startsWith("broken.png cannot be read as a picture"), await note(p));
    const huge = Buffer.from(picture);
    huge.writeUInt32BE(10000, 16);
    huge.writeUInt32BE(10000, 20);
    await give(p, "drop", [file("huge.png", huge)]);
    await p.waitForSelector('#attach-note:has-text("10,000 × 10,000 pixels; at most 67 megapixels")');
    await give(p, "drop", [file("noise.wav", Buffer.from("RIFFnothing that sounds"))]);
    await p.waitForSelector('#attach-note:has-text("noise.wav cannot be read as sound")');
    await give(p, "paste", [file("empty.png", Buffer.alloc(0))]);
    await p.waitForSelector('#attach-note:has-text("empty.png is empty")');
    await screenshot(p, "media-refused-desktop-light");
    checkEqual(await p.locator("#tray .media li").count(), 1, "what was attached stays");
    const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click("#attach")]);
    checkEqual(await chooser.element().getAttribute("accept"), "image/*,audio/*", "kinds of files");
    await chooser.setFiles([
        { name: "words.wav", mimeType: "audio/wav", buffer: wav },
        { name: "other.png", mimeType: "image/png", buffer: pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height) },
    ]);
    await attached(p, 3);
    check(await p.isHidden("#attach-note"), "the refusal is gone");
    await p.click('#tray button[aria-label="Remove image.png"]');
    await p.click('#tray button[aria-label="Remove other.png"]');
    await attached(p, 1);
    await p.click("#send"); // without words
    checkEqual((await answered(p)).trim(), HEARD, "the answer");
    checkEqual(await p.textContent("#title"), "A recording", "the title");
    checkEqual(browser.log.filter((line) => line.startsWith("uncaught")), [], "errors");
});

await page("edited and answered again: pictures stay, or go; a microphone that may not be heard is a sentence", {}, {}, async (p) => {
    await give(p, "drop", [file("shapes.png", picture), file("words.wav", wav)]);
    await attached(p, 2);
    await p.click('#tray button[aria-label="Remove words.wav"]');
    await send(p, "Is there a heart?");
    const first = (await answered(p)).trim();
    await p.click('.message.last button:has-text("Answer again")');
    checkEqual((await answered(p)).trim(), first, "the same picture, the same answer");
    const edit = async (text: string): Promise<void> => {
        await p.hover(".message.user");
        await p.click('.message.user button:has-text("Edit")');
        await p.fill(".edit textarea", text);
    };
    await edit("What is in the picture?");
    await p.focus(".edit textarea");
    await give(p, "paste", [file("other.png", pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height))]);
    await p.waitForFunction(() => document.querySelectorAll(".edit .media li").length === 2);
    checkEqual(await p.locator("#tray .media li").count(), 0, "what is pasted into a message being changed is not the next one's");
    const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click('.edit button[aria-label^="Attach"]')]);
    await chooser.setFiles([{ name: "words.wav", mimeType: "audio/wav", buffer: wav }]);
    await p.waitForFunction(() => document.querySelectorAll(".edit .media li").length === 3);
    await screenshot(p, "media-edit-desktop-light");
    await p.click('.edit button[aria-label="Remove other.png"]');
    await p.click('.edit button[aria-label="Remove words.wav"]');
    await p.click('.edit button:has-text("Send")');
    checkEqual((await answered(p)).trim(), SEEN, "other words about it");
    checkEqual(await p.textContent(".message.user .said"), "What is in the picture?", "the words are shown");
    await p.click('.message.user .picture');
    await p.waitForSelector("#picture[open] img");
    await p.keyboard.press("Escape");
    await edit("Who are you?");
    await p.click('.edit button[aria-label="Remove shapes.png"]');
    await p.click('.edit button:has-text("Send")');
    check(/Pebble/.test(await answered(p)), await answerText(p));
    checkEqual(await p.locator(".message .media li").count(), 0, "the picture is gone");
    await p.click("#record");
    const text = await note(p);
    check(/microphone/.test(text) && text.endsWith("."), text);
    await p.waitForSelector("#composer-text", { state: "visible" });
    await p.click('#attach-note button[aria-label="Hide this"]');
    check(await p.isHidden("#attach-note"), "hidden");
});

await test("a model without eyes and ears: buttons that say why, drops that are refused", () =>
    withBrowser({ adapter: "none" }, async ({ page: p }) => {
        server.intercept = (request, response) => {
            const offers = { models: [{ name: "Nano", url: `models/${nano}.gguf`, about: "" }] };
            const asked = request.url === "/models.json";
            if (asked) {
                response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(offers));
            }
            return asked;
        };
        await openPage(p, server);
        await give(p, "drop", [file("shapes.png", picture)]);
        await p.waitForSelector('#toast:has-text("Load a model first")');
        await loadOffer(p, "Nano");
        server.intercept = undefined;
        for (const button of ["#attach", "#record"]) {
            checkEqual(await p.getAttribute(button, "aria-disabled"), "true", `${button} is disabled`);
            check((await p.getAttribute(button, "title"))?.includes("takes no") ?? false, `${button} says why`);
        }
        await p.click("#attach", { force: true }); // as people do
        check((await note(p)).includes("takes no pictures") && (await note(p)).includes("mmproj"), await note(p));
        await p.click("#record", { force: true });
        await p.waitForSelector('#attach-note:has-text("takes no sound")');
        await give(p, "drop", [file("shapes.png", picture)]);
        await p.waitForSelector('#attach-note:has-text("takes no pictures")');
        checkEqual(await p.locator("#tray .media li").count(), 0, "nothing is attached");
        // Its mmproj file, dropped together with the text model, is known by its header and not by its name.
        const files = await Promise.all(["mmproj", "text"].map((name) => readFile(`${goldenFolder}/e-like/${name}.gguf`)));
        await give(p, "drop", files.map((bytes, i) => file(`part-${i}.gguf`, bytes, "")));
        await p.waitForSelector('.card .verdict');
        const card = (await p.textContent(".card")) ?? "";
        check(card.includes("text, pictures and sound") && card.includes("part-1"), card);
        // Another model's mmproj file: both are good, and do not belong together.
        const other = await readFile(`${goldenFolder}/unified/text.gguf`);
        await give(p, "drop", [files[0] as Buffer, other].map((bytes, i) => file(`other-${i}.gguf`, bytes, "")));
        await p.waitForSelector('.card.bad h2:has-text("These files are not one model")');
        check(/another model\.$/.test((await p.textContent(".card .verdict p >> nth=0")) ?? ""), "one sentence");
        await give(p, "drop", [file("cut.gguf", other.subarray(0, other.length / 2), "")]);
        await p.waitForSelector('.card.bad[data-code="bad_file"]');
        check(/download it again\.$/.test((await p.textContent(".card .verdict p >> nth=0")) ?? ""), "a sentence has an end");
        await give(p, "drop", files.map((bytes, i) => file(`part-${i}.gguf`, bytes, "")));
        await p.click('.card button:has-text("Load")');
        await p.waitForSelector("#start", { state: "hidden" });
        await ready(p);
        await setSettings(p, { maxTokens: 4 });
        checkEqual(await p.getAttribute("#attach", "aria-disabled"), "false", "it has eyes");
        await give(p, "drop", [file("shapes.png", picture)]);
        await attached(p, 1);
        await send(p, "Hello");
        await answered(p);
        checkEqual(await p.getAttribute(".message.last", "data-state"), "done", "answered");
    }));

/** A photograph as phones make them: twelve megapixels, which take their time. */
function photo(): Buffer {
    const [width, height] = [4000, 3000];
    const pixels = new Uint8Array(3 * width * height);
    for (let y = 0; y < height; y++) {
        for (let x = 0; x < width; x++) {
            pixels.set([(x * y) >> 12, x >> 4, y >> 4], 3 * (y * width + x));
        }
    }
    return pngFile(pixels, width, height);
}

await slowPage("encoding is shown, and can be stopped; the same picture is looked at afterwards", {}, {}, async (p) => {
    await give(p, "drop", [file("photo.png", photo())]);
    await attached(p, 1);
    await watchLooking(p);
    await send(p, "What is in the picture?");
    await p.waitForSelector('.message.last .looking:not([hidden])');
    await p.click('#send[aria-label="Stop"]');
    await p.waitForSelector('.message.last[data-state="stopped"]');
    await p.click('.message.last button:has-text("Answer again")');
    check((await answered(p)).trim().length > 0, "an answer");
});

await slowPage("with a GPU the towers are on it, and it sees the same", { adapter: "lavapipe" }, { device: "gpu" }, async (p) => {
    await give(p, "drop", [file("shapes.png", picture)]);
    await attached(p, 1);
    await send(p, "What is in the picture?");
    checkEqual((await answered(p)).trim(), SEEN, "the answer");
});

const slowTest: typeof test = (...all) => (quick ? Promise.resolve() : test(...all));

await slowTest("from bezel serve, under its rules for scripts: a picture with threads, and the microphone", () =>
    withBezelServe("models/pebble.gguf", (url) =>
        withBrowser({ adapter: "none", microphone }, async (browser) => {
            const p = browser.page;
            await p.goto(url);
            await p.waitForSelector("html[data-started]");
            await setSettings(p, { temperature: 0, maxTokens: 60 });
            await loadOffer(p, "pebble");
            await give(p, "drop", [file("shapes.png", picture), file("words.wav", wav)]);
            await attached(p, 2);
            await p.click('#tray button[aria-label="Remove words.wav"]');
            await send(p, "What is in the picture?");
            checkEqual((await answered(p)).trim(), SEEN, "the answer");
            await p.click("#record");
            await p.waitForSelector("#recording:not(.asking)");
            await p.waitForTimeout(1000);
            await p.click("#keep-recording");
            await p.waitForSelector("#tray audio, #attach-note:not([hidden])");
            const bad = browser.log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404"));
            checkEqual(bad, [], "errors in the console");
        })));

for (const [colours, phone] of [["light", true], ["dark", true], ["dark", false], ["light", false]] as const) {
    const name = `${phone ? "phone" : "desktop"}-${colours}`;
    await slowPage(`pictures and sound on a ${phone ? "phone" : "desktop"}, ${colours}`, { colours, phone, microphone }, {}, async (p) => {
        await give(p, "drop", [file("shapes.png", picture), file("inverted.png", pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height)), file("a rather long name of a recorded note.wav", wav)]);
        await attached(p, 3);
        await p.fill("#composer-text", "What do you see and hear?");
        await screenshot(p, `media-tray-${name}`);
        await p.click("#send");
        await answered(p);
        await give(p, "drop", [file("shapes.png", picture)]);
        await attached(p, 1);
        await p.click("#record");
        await p.waitForFunction(() => document.querySelector("#recording .time")?.textContent === "0:02");
        await screenshot(p, `media-recording-${name}`);
        await p.click('#recording button[aria-label="Discard the recording"]');
        const wide = await p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        checkEqual(wide, 0, "nothing is wider than the page");
        await p.click("#send");
        await answered(p);
        await screenshot(p, `media-answer-${name}`);
    });
}

await server.close();
finish();
