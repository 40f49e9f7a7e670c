/** Images and sound on the page, with Pebble: dropped, pasted, chosen and recorded. Answers equal those of the official
 * implementation. Screenshots go to build/screenshots. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { Golden, goldenFolder, modelFolder } from "../web/golden.js";
import { wavFile } from "../web/wav.js";
import { chromiumOnly, end, inFirefox, quick, screenshot, withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import { attached, dispatchFiles, file, note } from "./attach.js";
import { answered, answerText, loadOffer, nano, openPage, ready, send, servePebble, setSettings, type PageSettings } from "./page.js";
import { pngFile } from "./png.js";
import { withBezelServe } from "./serve.js";

const server = await servePebble([["/models", modelFolder]]);
const golden = await Golden.open(`${goldenFolder}/pebble/golden.gguf`);
const shapes = golden.image("image.rgb");
const image = pngFile(shapes.data, shapes.width, shapes.height);
const speech = golden.sound("audio.samples");
const wav = Buffer.from(await wavFile(speech, 16000).arrayBuffer());

// The microphone plays a second of silence, the words, and silence again.
const microphone = "build/tests/microphone.wav";
const microphoneSamples = new Float32Array(3 * 48000 + 3 * speech.length);
speech.forEach((x, i) => microphoneSamples.fill(x, 48000 + 3 * i, 48000 + 3 * i + 3));
await mkdir("build/tests", { recursive: true });
await writeFile(microphone, Buffer.from(await wavFile(microphoneSamples, 48000).arrayBuffer()));

/** The official implementation's answers (tests/golden, and tests/web/test_media.ts). */
const DESCRIPTION = "I see three shapes: a red circle in the top left, a blue star in the center and a green square in the bottom right.";
const TRANSCRIPT = "turn the blue light off";

type Body = (page: Page, browser: Browser) => Promise<void>;

const page = (name: string, options: BrowserOptions, settings: PageSettings, body: Body): Promise<void> =>
    test(name, () =>
        withBrowser({ adapter: "none", ...options }, async (browser) => {
            await openPage(browser.page, server);
            await setSettings(browser.page, { temperature: 0, maxTokens: 60, ...settings });
            await loadOffer(browser.page, "Pebble");
            await body(browser.page, browser);
            const bad = browser.log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404"));
            checkEqual(bad, [], "errors in the console");
            const foreign = browser.requested.filter((url) => !url.startsWith(`${server.url}/`) && !/^(blob|data|chrome|about):/.test(url));
            checkEqual(foreign, [], "requests to other origins");
        }));

const slowPage: typeof page = (...all) => (quick ? Promise.resolve() : page(...all));

/** Media of the user's messages: name, and whether it could be decoded. */
const shownMedia = (p: Page): Promise<string[]> =>
    p.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>(".message.user .media img, .message.user .media audio")].map((one) =>
            one instanceof HTMLImageElement ? `${one.alt} ${one.complete && one.naturalWidth > 0}` : `${one.getAttribute("aria-label")?.split(",")[0]} ${(one as HTMLAudioElement).error === null}`,
        ),
    );

/** Waits until the recording has at least this length. */
const recorded = (p: Page, seconds: number): Promise<unknown> =>
    p.waitForFunction((least) => {
        const [, minutes, rest] = /^(\d+):(\d+)$/.exec(document.querySelector("#recording .time")?.textContent ?? "") ?? [];
        return 60 * Number(minutes) + Number(rest) >= least;
    }, seconds);

declare global {
    var encodingUpdates: number | undefined;
}

/** Counts the updates that show encoding progress. */
const countEncodingUpdates = (p: Page): Promise<void> =>
    p.evaluate(() => {
        globalThis.encodingUpdates = 0;
        const count = (): void => {
            const bar = document.querySelector<HTMLElement>(".message.last .encoding");
            globalThis.encodingUpdates = (globalThis.encodingUpdates ?? 0) + Number(bar !== null && !bar.hidden);
        };
        new MutationObserver(count).observe(document.getElementById("log") as HTMLElement, { subtree: true, attributes: true, childList: true });
    });

await page("a dropped image is described, a second question encodes nothing, and the image survives a reload", {}, {}, async (p) => {
    await dispatchFiles(p, "dragover", [file("shapes.png", image)]);
    checkEqual(await p.textContent("#drop-overlay"), "Drop to attach", "overlay");
    await screenshot(p, "media-drop-desktop-light");
    await dispatchFiles(p, "drop", [file("shapes.png", image)]);
    await attached(p, 1);
    check(await p.isHidden("#drop-overlay"), "the overlay is hidden");
    await send(p, "What is in the picture?");
    checkEqual((await answered(p)).trim(), DESCRIPTION, "the answer");
    checkEqual(await p.locator("#tray .media li").count(), 0, "the tray is empty again");
    checkEqual(await shownMedia(p), ["shapes.png true"], "shown");
    await countEncodingUpdates(p);
    await send(p, "What color is it?");
    check((await answered(p)).trim().length > 0, "a second answer");
    checkEqual(await p.evaluate(() => globalThis.encodingUpdates), 0, "not encoded again");
    await screenshot(p, "media-answer-desktop-light");

    await p.reload();
    await ready(p);
    await p.waitForFunction(() => document.querySelector<HTMLImageElement>(".message.user .media img")?.naturalWidth === 384);
    checkEqual(await p.locator(".message").count(), 4, "messages");
    await countEncodingUpdates(p);
    await send(p, "Where is it?");
    check((await answered(p)).trim().length > 0, "a third answer; the reloaded page has to encode again");
    check(((await p.evaluate(() => globalThis.encodingUpdates)) ?? 0) > 0, "encoded");
});

await page("a microphone recording is transcribed; a recording can be discarded", { microphone }, {}, async (p) => {
    // The fake device plays in real time, so a busy machine may lose a word: try again then. Firefox's plays no words.
    let transcript = "";
    const heard = (): boolean => (inFirefox ? transcript !== "" : transcript === TRANSCRIPT);
    for (let attempt = 0; attempt < 12 && !heard(); attempt++) {
        await p.click("#record");
        await p.waitForSelector("#recording:not(.asking)");
        await recorded(p, 2);
        const levels = await p.evaluate(() => [...document.querySelectorAll<HTMLElement>("#recording .levels span")].map(({ style }) => Number(/[\d.]+/.exec(style.transform)?.[0])));
        check(Math.max(...levels) > 0.3 && (inFirefox || Math.min(...levels) < 0.2), `levels ${levels.join(" ")}`);
        await recorded(p, 3);
        await p.click("#keep-recording");
        await attached(p, 1);
        check(await p.isHidden("#recording"), "the recording bar is hidden");
        await p.waitForFunction(() => (document.querySelector<HTMLAudioElement>("#tray audio")?.duration ?? 0) > 2.5);
        await send(p, "Transcribe this.");
        transcript = (await answered(p)).trim();
        await p.click("#new-chat");
    }
    check(heard(), transcript);
    await p.click("#conversations button >> nth=0");
    await p.waitForSelector(".message.user audio");
    check((await shownMedia(p))[0]?.endsWith(" true") ?? false, "a player");
    await p.click("#record");
    await p.waitForSelector("#recording:not(.asking)");
    await p.keyboard.press("Escape");
    await p.waitForSelector("#recording", { state: "hidden" });
    checkEqual(await p.locator("#tray .media li").count(), 0, "nothing is attached");
    // By keyboard: the focus moves to the visible controls.
    const focus = (): Promise<string | undefined> => p.evaluate(() => document.activeElement?.id);
    checkEqual(await focus(), "record", "focus after it was discarded");
    await p.keyboard.press("Enter");
    await p.waitForSelector("#recording:not(.asking)");
    checkEqual(await focus(), "keep-recording", "focus while it records");
    await recorded(p, 2);
    await p.keyboard.press("Enter");
    await p.waitForSelector("#recording", { state: "hidden" });
    await p.waitForSelector("#tray audio, #attach-note:not([hidden])"); // the fake device is silent after its file has ended
});

await page("pasted, chosen and removed; corrupt and huge files are refused, and other attachments stay", {}, {}, async (p, browser) => {
    await p.focus("#composer-text");
    await dispatchFiles(p, "paste", [file("image.png", image)]);
    await attached(p, 1);
    await dispatchFiles(p, "drop", [file("broken.png", Buffer.concat([image.subarray(0, 3000), Buffer.alloc(200)]))]);
    check((await note(p)).startsWith("broken.png cannot be read as an image"), await note(p));
    const huge = Buffer.from(image);
    huge.writeUInt32BE(10000, 16);
    huge.writeUInt32BE(10000, 20);
    await dispatchFiles(p, "drop", [file("huge.png", huge)]);
    await p.waitForSelector('#attach-note:has-text("10,000 × 10,000 pixels; at most 67 megapixels")');
    await dispatchFiles(p, "drop", [file("noise.wav", Buffer.from("RIFFnothing that sounds"))]);
    await p.waitForSelector('#attach-note:has-text("noise.wav cannot be read as sound")');
    await dispatchFiles(p, "paste", [file("empty.png", Buffer.alloc(0))]);
    await p.waitForSelector('#attach-note:has-text("empty.png is empty")');
    await screenshot(p, "media-refused-desktop-light");
    checkEqual(await p.locator("#tray .media li").count(), 1, "attachments are kept");
    const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click("#attach")]);
    checkEqual(await chooser.element().getAttribute("accept"), "image/*,audio/*,video/*", "accepted types");
    await chooser.setFiles([
        { name: "words.wav", mimeType: "audio/wav", buffer: wav },
        { name: "other.png", mimeType: "image/png", buffer: pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height) },
    ]);
    await attached(p, 3);
    check(await p.isHidden("#attach-note"), "the refusal is hidden");
    await p.click('#tray button[aria-label="Remove image.png"]');
    await p.click('#tray button[aria-label="Remove other.png"]');
    await attached(p, 1);
    await p.click("#send"); // without text
    checkEqual((await answered(p)).trim(), TRANSCRIPT, "the answer");
    checkEqual(await p.textContent("#title"), "A recording", "the title");
    checkEqual(browser.log.filter((line) => line.startsWith("uncaught")), [], "errors");
});

await page("editing and regenerating keep or remove images; a denied microphone shows a message", {}, {}, async (p) => {
    await dispatchFiles(p, "drop", [file("shapes.png", image), file("words.wav", wav)]);
    await attached(p, 2);
    await p.click('#tray button[aria-label="Remove words.wav"]');
    await send(p, "Is there a heart?");
    const first = (await answered(p)).trim();
    await p.click('.message.last button:has-text("Answer again")');
    checkEqual((await answered(p)).trim(), first, "the same image, the same answer");
    const edit = async (text: string): Promise<void> => {
        await p.hover(".message.user");
        await p.click('.message.user button:has-text("Edit")');
        await p.fill(".edit textarea", text);
    };
    await edit("What is in the picture?");
    await p.focus(".edit textarea");
    await dispatchFiles(p, "paste", [file("other.png", pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height))]);
    await p.waitForFunction(() => document.querySelectorAll(".edit .media li").length === 2);
    checkEqual(await p.locator("#tray .media li").count(), 0, "files pasted into an edited message are not attached to the next one");
    const [chooser] = await Promise.all([p.waitForEvent("filechooser"), p.click('.edit button[aria-label^="Attach"]')]);
    await chooser.setFiles([{ name: "words.wav", mimeType: "audio/wav", buffer: wav }]);
    await p.waitForFunction(() => document.querySelectorAll(".edit .media li").length === 3);
    await screenshot(p, "media-edit-desktop-light");
    await p.click('.edit button[aria-label="Remove other.png"]');
    await p.click('.edit button[aria-label="Remove words.wav"]');
    await p.click('.edit button:has-text("Send")');
    checkEqual((await answered(p)).trim(), DESCRIPTION, "answer to the edited message");
    checkEqual(await p.textContent(".message.user .user-text"), "What is in the picture?", "the text is shown");
    await p.click('.message.user .image');
    await p.waitForSelector("#image[open] img");
    await p.keyboard.press("Escape");
    await edit("Who are you?");
    await p.click('.edit button[aria-label="Remove shapes.png"]');
    await p.click('.edit button:has-text("Send")');
    check(/Pebble/.test(await answered(p)), await answerText(p));
    checkEqual(await p.locator(".message .media li").count(), 0, "the image is removed");
    await p.click("#record");
    const text = await note(p);
    check(/microphone/.test(text) && text.endsWith("."), text);
    await p.waitForSelector("#composer-text", { state: "visible" });
    await p.click('#attach-note button[aria-label="Hide this"]');
    check(await p.isHidden("#attach-note"), "hidden");
});

await test("a model without vision and audio: disabled buttons explain why, and drops are refused", () =>
    withBrowser({ adapter: "none" }, async ({ page: p }) => {
        const { intercept } = server;
        server.intercept = (request, response) => {
            const offers = { models: [{ name: "Nano", url: `models/${nano}.gguf`, about: "" }] };
            const isList = request.url === "/models.json";
            if (isList) {
                response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(offers));
            }
            return isList;
        };
        await openPage(p, server);
        await dispatchFiles(p, "drop", [file("shapes.png", image)]);
        await p.waitForSelector('#toast:has-text("Load a model first")');
        await loadOffer(p, "Nano");
        server.intercept = intercept;
        for (const button of ["#attach", "#record"]) {
            checkEqual(await p.getAttribute(button, "aria-disabled"), "true", `${button} is disabled`);
            check((await p.getAttribute(button, "title"))?.includes("takes no") ?? false, `${button} says why`);
        }
        await p.click("#attach", { force: true }); // a click on a disabled button shows the reason
        check((await note(p)).includes("takes no images") && (await note(p)).includes("mmproj"), await note(p));
        await p.click("#record", { force: true });
        await p.waitForSelector('#attach-note:has-text("takes no sound")');
        await dispatchFiles(p, "drop", [file("shapes.png", image)]);
        await p.waitForSelector('#attach-note:has-text("takes no images")');
        checkEqual(await p.locator("#tray .media li").count(), 0, "nothing is attached");
        // An mmproj file dropped together with the text model is detected by its header, not by its name.
        const files = await Promise.all(["mmproj", "text"].map((name) => readFile(`${goldenFolder}/e-like/${name}.gguf`)));
        await dispatchFiles(p, "drop", files.map((bytes, i) => file(`part-${i}.gguf`, bytes, "")));
        await p.waitForSelector('.card .callout');
        const card = (await p.textContent(".card")) ?? "";
        check(card.includes("text, images and sound") && card.includes("part-1"), card);
        // The mmproj file of another model: both files are valid, but do not belong together.
        const other = await readFile(`${goldenFolder}/unified/text.gguf`);
        await dispatchFiles(p, "drop", [files[0] as Buffer, other].map((bytes, i) => file(`other-${i}.gguf`, bytes, "")));
        await p.waitForSelector('.card.bad h2:has-text("These files are not one model")');
        check(/another model\.$/.test((await p.textContent(".card .callout p >> nth=0")) ?? ""), "one sentence");
        await dispatchFiles(p, "drop", [file("cut.gguf", other.subarray(0, other.length / 2), "")]);
        await p.waitForSelector('.card.bad[data-code="bad_file"]');
        check(/download it again\.$/.test((await p.textContent(".card .callout p >> nth=0")) ?? ""), "the message ends with a full stop");
        await dispatchFiles(p, "drop", files.map((bytes, i) => file(`part-${i}.gguf`, bytes, "")));
        await p.click('.card button:has-text("Load")');
        await p.waitForSelector("#start", { state: "hidden" });
        await ready(p);
        await setSettings(p, { maxTokens: 4 });
        checkEqual(await p.getAttribute("#attach", "aria-disabled"), "false", "images are accepted");
        await dispatchFiles(p, "drop", [file("shapes.png", image)]);
        await attached(p, 1);
        await send(p, "Hello");
        await answered(p);
        checkEqual(await p.getAttribute(".message.last", "data-state"), "done", "answered");
    }));

/** An image of 12 megapixels, which takes a while to encode. */
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

await slowPage("encoding shows progress and can be stopped; afterwards the same image is encoded", {}, {}, async (p) => {
    await dispatchFiles(p, "drop", [file("photo.png", photo())]);
    await attached(p, 1);
    await countEncodingUpdates(p);
    await send(p, "What is in the picture?");
    await p.waitForFunction(() => {
        // again: right after sending, a click counts as the second one of a double click
        if (document.querySelector(".message.last .encoding:not([hidden])")) {
            document.querySelector<HTMLButtonElement>('#send[aria-label="Stop"]')?.click();
        }
        return document.querySelector('.message.last[data-state="stopped"]') !== null;
    });
    await p.click('.message.last button:has-text("Answer again")');
    check((await answered(p)).trim().length > 0, "an answer");
});

await chromiumOnly(slowPage)("encoding on a GPU gives the same answer", { adapter: "lavapipe" }, { device: "gpu" }, async (p) => {
    await dispatchFiles(p, "drop", [file("shapes.png", image)]);
    await attached(p, 1);
    await send(p, "What is in the picture?");
    checkEqual((await answered(p)).trim(), DESCRIPTION, "the answer");
});

const slowTest: typeof test = (...all) => (quick ? Promise.resolve() : test(...all));

await slowTest("from bezel serve, under its Content-Security-Policy: an image with threads, and the microphone", () =>
    withBezelServe("models/pebble.gguf", (url) =>
        withBrowser({ adapter: "none", microphone }, async (browser) => {
            const p = browser.page;
            await p.goto(url);
            await p.waitForSelector("html[data-started]");
            await setSettings(p, { temperature: 0, maxTokens: 60 });
            await loadOffer(p, "pebble");
            await dispatchFiles(p, "drop", [file("shapes.png", image), file("words.wav", wav)]);
            await attached(p, 2);
            await p.click('#tray button[aria-label="Remove words.wav"]');
            await send(p, "What is in the picture?");
            checkEqual((await answered(p)).trim(), DESCRIPTION, "the answer");
            await p.click("#record");
            await p.waitForSelector("#recording:not(.asking)");
            await recorded(p, 1);
            await p.click("#keep-recording");
            await p.waitForSelector("#tray audio, #attach-note:not([hidden])");
            const bad = browser.log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404"));
            checkEqual(bad, [], "errors in the console");
        })));

for (const [colors, phone] of [["light", true], ["dark", true], ["dark", false], ["light", false]] as const) {
    const name = `${phone ? "phone" : "desktop"}-${colors}`;
    await slowPage(`images and sound on a ${phone ? "phone" : "desktop"}, ${colors}`, { colors, phone, microphone }, {}, async (p) => {
        await dispatchFiles(p, "drop", [file("shapes.png", image), file("inverted.png", pngFile(shapes.data.map((x) => 255 - x), shapes.width, shapes.height)), file("a rather long name of a recorded note.wav", wav)]);
        await attached(p, 3);
        await p.fill("#composer-text", "What do you see and hear?");
        await screenshot(p, `media-tray-${name}`);
        await p.click("#send");
        await answered(p);
        await dispatchFiles(p, "drop", [file("shapes.png", image)]);
        await attached(p, 1);
        await p.click("#record");
        await recorded(p, 2);
        await screenshot(p, `media-recording-${name}`);
        await p.click('#recording button[aria-label="Discard the recording"]');
        const overflow = await p.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        checkEqual(overflow, 0, "no horizontal overflow");
        await p.click("#send");
        await answered(p);
        await screenshot(p, `media-answer-${name}`);
    });
}

await end(server);
