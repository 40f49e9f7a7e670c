/** Videos and adapters: which frames of a file are taken, a video in a conversation of the page, files that
 * are none; a LoRA file added to the loaded model. Screenshots go to build/screenshots. */
import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { goldenFolder } from "../web/golden.js";
import { end, screenshot, withBrowser } from "./browser.js";
import { answered, enter, loadOffer, openPage, ready, send, servePebble, setSettings, stored } from "./page.js";
import { startServer } from "./server.js";

const folder = "build/tests/videos";
await mkdir(folder, { recursive: true });

/** Each color for a second, at 8 frames per second. */
const colors = ["red", "lime", "blue"];
for (const [name, codec] of [["colors.webm", ["libvpx-vp9", "-g", "1000"]], ["colors.mp4", ["libx264", "-pix_fmt", "yuv420p"]]] as const) {
    const inputs = colors.flatMap((color) => ["-f", "lavfi", "-i", `color=${color}:s=96x64:d=1:r=8`]);
    const joined = ["-filter_complex", `concat=n=${colors.length}`, "-c:v", ...codec, "-y", `${folder}/${name}`];
    execFileSync("ffmpeg", ["-loglevel", "error", ...inputs, ...joined]);
}
// Few frames: a CPU takes a while to look at each.
execFileSync("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "color=red:s=96x64:d=0.125:r=24", "-y", `${folder}/short.webm`]);
execFileSync("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "sine=d=1", "-c:a", "libopus", "-y", `${folder}/sound.webm`]);

// ---- frames -------------------------------------------------------------------------------------------

const blank = '<!doctype html><title>blank</title><script type="module">import * as video from "/bezel/video_file.js"; globalThis.video = video;</script>';
const plain = await startServer({
    mounts: [["/bezel", "build/web/package/dist"], ["/videos", folder]],
    intercept: (request, response) => {
        if (request.url === "/") {
            response.writeHead(200, { "Content-Type": "text/html" }).end(blank);
        }
        return request.url === "/";
    },
});

interface VideoModule {
    VideoFile: { open(file: Blob, most: number): Promise<{ seconds: number[]; frame(i: number): Promise<ImageBitmap>; close(): void }> };
    frameTimes(duration: number, most: number): number[];
}

/** Times of the frames, and which of the colors each has. */
const framesOf = (page: Page, name: string, most: number): Promise<{ seconds: number[]; shown: string[] }> =>
    page.evaluate(async ([address, count]) => {
        const { video } = globalThis as unknown as { video: VideoModule };
        const file = await video.VideoFile.open(await (await fetch(address)).blob(), count);
        const shown: string[] = [];
        for (const i of file.seconds.keys()) {
            const bitmap = await file.frame(i);
            const context = new OffscreenCanvas(1, 1).getContext("2d") as OffscreenCanvasRenderingContext2D;
            context.drawImage(bitmap, 0, 0, 1, 1);
            const [r = 0, g = 0, b = 0] = context.getImageData(0, 0, 1, 1).data;
            shown.push(`${bitmap.width}x${bitmap.height} ${r > 200 && g < 60 && b < 60 ? "red" : g > 200 && r < 60 && b < 60 ? "lime" : b > 200 && r < 60 && g < 60 ? "blue" : `${r},${g},${b}`}`);
            bitmap.close();
        }
        file.close();
        return { seconds: file.seconds, shown };
    }, [`/videos/${name}`, most] as const);

await test("frames are evenly spread over a file, each is the one that is shown at its time", () =>
    withBrowser({ adapter: "none" }, async ({ page }) => {
        await page.goto(`${plain.url}/`);
        await page.waitForFunction(() => "video" in globalThis);
        for (const name of ["colors.webm", "colors.mp4"]) {
            const { seconds, shown } = await framesOf(page, name, 12);
            checkEqual(seconds.map((s) => Math.round(1000 * s)), Array.from({ length: 12 }, (_, i) => 250 * i), `${name}: times`);
            checkEqual(shown, colors.flatMap((color) => Array<string>(4).fill(`96x64 ${color}`)), `${name}: frames`);
        }
        const times = await page.evaluate(() => {
            const { frameTimes } = (globalThis as unknown as { video: VideoModule }).video;
            return [frameTimes(64, 32), frameTimes(0.5, 32), frameTimes(0.01, 32), frameTimes(3600, 1)];
        });
        checkEqual(times.map(({ length }) => length), [32, 12, 1, 1], "a short file has fewer");
        checkEqual(times[0]?.slice(0, 3), [0, 2, 4], "as the models were trained");
    }));

// ---- in a conversation ----------------------------------------------------------------------------------

const server = await servePebble();

async function attach(page: Page, ...files: string[]): Promise<void> {
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click("#attach")]);
    await chooser.setFiles(files);
}

await test("a video is attached, watched, kept, and not encoded again; files that are none are refused", () =>
    withBrowser({ adapter: "none" }, async ({ page, log }) => {
        await openPage(page, server);
        await setSettings(page, { seed: 3, maxTokens: 20 });
        await loadOffer(page, "Pebble");
        await attach(page, `${folder}/sound.webm`);
        await page.waitForSelector('#attach-note:has-text("sound.webm cannot be read as a video")');
        await attach(page, `${folder}/short.webm`);
        await page.waitForSelector('#tray video[aria-label="short.webm, 0:00"]');
        await page.evaluate(() => {
            const seen: string[] = [];
            (globalThis as { seen?: string[] }).seen = seen;
            new MutationObserver(() => seen.push(document.querySelector(".message.last .encoding")?.textContent ?? "")).observe(document.getElementById("log") as HTMLElement, { subtree: true, childList: true, characterData: true, attributes: true });
        });
        await send(page, "Describe the image.");
        const answer = await answered(page);
        check(answer.trim().length > 3, answer);
        check(await page.evaluate(() => (globalThis as { seen?: string[] }).seen?.includes("Watching the video") ?? false), "progress");
        await screenshot(page, "video");
        const before = (await stored<{ media?: { kind: string; width: number; seconds: number }[]; figures: { promptTokens: number } | null }>(page, "messages"));
        const [item] = before.flatMap(({ media = [] }) => media);
        checkEqual([item?.kind, item?.width, (item?.seconds ?? 0) > 0.1], ["video", 96, true], "stored");
        check((before.find(({ figures }) => figures)?.figures?.promptTokens ?? 0) > 3 * 50, "its frames are in the prompt");
        await send(page, "And now?");
        await answered(page);
        await page.reload();
        await ready(page);
        await page.waitForSelector(".message.user .media video");
        checkEqual(log.filter((line) => /^(error|uncaught):/.test(line) && !line.includes("404")), [], "errors");
    }));

// ---- adapters ---------------------------------------------------------------------------------------------

await test("an adapter changes the answers of the loaded model, until it is removed; one of another model is refused", async () => {
    const offers = JSON.stringify({ models: [{ name: "Dense", url: "golden/dense-like/text.gguf", about: "Random weights" }] });
    const models = await startServer({
        mounts: [["/golden", goldenFolder], ["/", "build/web/app"]],
        intercept: (request, response) => {
            if (request.url === "/models.json") {
                response.writeHead(200, { "Content-Type": "application/json" }).end(offers);
            }
            return request.url === "/models.json";
        },
    });
    await withBrowser({ adapter: "none" }, async ({ page }) => {
        await openPage(page, models);
        await setSettings(page, { temperature: 0, maxTokens: 8 });
        await loadOffer(page, "Dense");
        const ask = async (): Promise<string> => {
            await page.click("#new-chat");
            await send(page, "Name three gems.");
            return answered(page);
        };
        const alone = await ask();
        const add = async (path: string): Promise<void> => {
            await page.click("#model-chip");
            const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.click(".adapters > button")]);
            await chooser.setFiles(path);
        };
        await add(`${goldenFolder}/lora/moe.gguf`);
        await page.waitForSelector('.adapters [role="alert"]');
        await page.click('#model-info button:has-text("Close")');
        await add(`${goldenFolder}/lora/dense_a.gguf`);
        await page.waitForSelector('.adapters li:has-text("rank 4")');
        await enter(page, ".adapters li input", "4");
        await screenshot(page, "adapter");
        await page.click('#model-info button:has-text("Close")');
        const changed = await ask();
        check(changed !== alone, `${changed} with the adapter`);
        await page.click("#model-chip");
        await page.click(".adapters li button");
        await page.click('#model-info button:has-text("Close")');
        checkEqual(await ask(), alone, "without it again");
    });
    await models.close();
});

await end(server, plain);
