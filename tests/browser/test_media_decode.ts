/** Decoding of images and sound by the package in a browser, from every supported kind of source, in a worker and on
 * the page. */
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { Golden, goldenFolder } from "../web/golden.js";
import { wavFile } from "../web/wav.js";
import { end, inFirefox, quick, withBrowser } from "./browser.js";
import { pngFile } from "./png.js";
import { startServer } from "./server.js";

type Package = typeof import("../../web/package/src/index.js");
type Images = typeof import("../../web/package/src/image.js");

declare global {
    // eslint-disable-next-line no-var
    var bezel: Package;
    // eslint-disable-next-line no-var
    var images: Images;
}

const blank = `<!doctype html><title>blank</title><script type="module">
    import * as images from "/bezel/image.js"; import * as bezel from "/bezel/index.js"; Object.assign(globalThis, { bezel, images });
</script>`;
const golden = await Golden.open(`${goldenFolder}/pebble/golden.gguf`);
const shapes = golden.image("image.rgb");
const files: Record<string, Buffer> = {
    "/shapes.png": pngFile(shapes.data, shapes.width, shapes.height),
    "/words.wav": Buffer.from(await wavFile(golden.sound("audio.samples"), 16000).arrayBuffer()),
};
const server = await startServer({
    mounts: [["/bezel", "build/web/package/dist"], ["/models", "models"]],
    isolated: true,
    intercept: (request, response) => {
        const file = request.url === "/" ? blank : files[request.url ?? ""];
        if (file === undefined) {
            return false;
        }
        response.writeHead(200, { "Content-Type": request.url === "/" ? "text/html" : "application/octet-stream" }).end(file);
        return true;
    },
});
const otherOrigin = await startServer({ mounts: [["/models", "models"]] });

/** A file's pixels, as the package decodes them. */
const pixelsOf = (page: Page, file: Buffer): Promise<{ width: number; height: number; rgb: number[] }> =>
    page.evaluate(async (base64) => {
        const bitmap = await images.openImage(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]));
        const rgb = new Uint8Array(3 * bitmap.width * bitmap.height);
        images.readPixels(bitmap, rgb);
        return { width: bitmap.width, height: bitmap.height, rgb: [...rgb] };
    }, file.toString("base64"));

/** Random pixels, [height][width][channels]. */
function noise(width: number, height: number, channels: 3 | 4): Uint8Array {
    let seed = 7;
    return Uint8Array.from({ length: width * height * channels }, () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 24);
}

/** RGBA on white, in exact arithmetic. */
const onWhite = (data: Uint8Array): number[] =>
    [...data].map((x, i) => Math.round(255 + ((x - 255) * (data[i | 3] as number)) / 255)).filter((_, i) => i % 4 !== 3);

/** Inserts an EXIF orientation into a JPEG file. */
function withOrientation(jpeg: Buffer, orientation: number): Buffer {
    const exif = Buffer.from([
        0xff, 0xe1, 0, 34, 0x45, 0x78, 0x69, 0x66, 0, 0, // "Exif"
        0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1, // big endian, one entry
        1, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0,
    ]);
    return Buffer.concat([jpeg.subarray(0, 2), exif, jpeg.subarray(2)]);
}

await withBrowser({ adapter: "none" }, async ({ page }) => {
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => "bezel" in globalThis);

    await test("an opaque image is decoded exactly, also across tiles", async () => {
        for (const [width, height] of [[5, 3], [300, 7], [2100, 2]] as const) {
            const data = noise(width, height, 3);
            const got = await pixelsOf(page, pngFile(data, width, height));
            checkEqual([got.width, got.height], [width, height], "size");
            check(got.rgb.every((x, i) => x === data[i]), `${width} x ${height} differs`);
        }
    });

    await test("a transparent image is composited on white, from the colors of the file", async () => {
        const data = noise(64, 9, 4);
        const got = await pixelsOf(page, pngFile(data, 64, 9));
        const want = onWhite(data);
        // Firefox has no WebGL here, so the package reads a canvas, which rounds colors that are not opaque.
        const wrong = got.rgb.filter((x, i) => Math.abs(x - (want[i] as number)) > (inFirefox ? 1 : 0)).length;
        checkEqual(wrong, 0, "bytes that differ");
    });

    await test("the EXIF orientation is applied", async () => {
        const jpeg = await page.evaluate(async () => {
            const canvas = new OffscreenCanvas(64, 32);
            const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
            context.fillStyle = "#ff0000";
            context.fillRect(0, 0, 32, 32);
            context.fillStyle = "#0000ff";
            context.fillRect(32, 0, 32, 32);
            return [...new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg", quality: 1 })).arrayBuffer())];
        });
        const colorAt = ({ width, rgb }: { width: number; rgb: number[] }, x: number, y: number): string => {
            const [r = 0, , b = 0] = rgb.slice(3 * (y * width + x), 3 * (y * width + x) + 3);
            return r > 200 && b < 60 ? "red" : b > 200 && r < 60 ? "blue" : `${r} ${b}`;
        };
        const flat = await pixelsOf(page, Buffer.from(jpeg));
        checkEqual([flat.width, flat.height, colorAt(flat, 5, 15), colorAt(flat, 60, 15)], [64, 32, "red", "blue"], "without orientation");
        const rotated = await pixelsOf(page, withOrientation(Buffer.from(jpeg), 6));
        checkEqual([rotated.width, rotated.height, colorAt(rotated, 15, 5), colorAt(rotated, 15, 60)], [32, 64, "red", "blue"], "rotated right");
        const back = await pixelsOf(page, withOrientation(Buffer.from(jpeg), 3));
        checkEqual([back.width, back.height, colorAt(back, 5, 15)], [64, 32, "blue"], "upside down");
    });

    for (const worker of quick ? [true] : [true, false]) {
        await test(`every source of an image and of a sound, ${worker ? "in a worker with threads" : "on the page"}`, async () => {
            const got = await page.evaluate(
                async ([inWorker, other]) => {
                    const model = await bezel.Bezel.load("/models/pebble.gguf", { device: "cpu", worker: inWorker, threads: 2 });
                    const blob = await (await fetch("/shapes.png")).blob();
                    const wav = await (await fetch("/words.wav")).blob();
                    const base64 = (b: Blob): Promise<string> =>
                        new Promise((resolve) => {
                            const reader = new FileReader();
                            reader.onload = () => resolve(String(reader.result));
                            reader.readAsDataURL(b);
                        });
                    const bitmap = await createImageBitmap(blob);
                    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
                    const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
                    context.drawImage(bitmap, 0, 0);
                    const buffer = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(await wav.arrayBuffer());
                    const ask = async (text: string, part: unknown): Promise<string> => {
                        const content = [part, { type: "text", text }] as never;
                        const { choices } = await model.chat.completions.create({ messages: [{ role: "user", content }], temperature: 0, max_tokens: 60 });
                        return choices[0].message.content ?? "";
                    };
                    const described: string[] = [];
                    for (const url of [blob, new File([blob], "a.png"), bitmap, context.getImageData(0, 0, bitmap.width, bitmap.height), await base64(blob), URL.createObjectURL(blob), "/shapes.png", new URL("/shapes.png", location.href)]) {
                        described.push(await ask("What is in the picture?", { type: "image_url", image_url: { url } }));
                    }
                    described.push(await ask("What is in the picture?", { type: "image_url", image_url: blob }));
                    const transcribed: string[] = [];
                    for (const data of [wav, buffer, (await base64(wav)).split(",")[1], await base64(wav), "/words.wav"]) {
                        const part = data === "/words.wav" ? { type: "audio_url", audio_url: { url: `${location.origin}/words.wav` } } : { type: "input_audio", input_audio: { data, format: "wav" } };
                        transcribed.push(await ask("Transcribe this.", part));
                    }
                    const stats = await model.mediaStats();
                    const codes: string[] = [];
                    for (const url of ["/nothing.png", `${other}/models/pebble.gguf`, new Blob(["no image"]), "blob:nothing"]) {
                        codes.push(await ask("?", { type: "image_url", image_url: { url } }).then(() => "none", (reason: { code: string }) => reason.code));
                    }
                    const after = await ask("What is in the picture?", { type: "image_url", image_url: blob });
                    const { threads } = model.info;
                    model.close();
                    return { described, transcribed, encoded: stats.encoded, codes, after, threads, width: bitmap.width };
                },
                [worker, otherOrigin.url] as const,
            );
            checkEqual(new Set(got.described).size, 1, `one answer to one image: ${JSON.stringify(got.described)}`);
            check(got.described[0]?.startsWith("I see three shapes: a red circle") ?? false, got.described[0] ?? "");
            checkEqual([...new Set(got.transcribed)], ["turn the blue light off"], "transcripts");
            checkEqual(got.encoded, 3, "encoded: one image, one sound, and the browser's samples, which differ slightly from C's");
            checkEqual(got.codes, ["network", "bad_request", "bad_file", "network"], "refusals");
            checkEqual([got.after === got.described[0], got.width], [true, shapes.width], "it still answers, and the page's bitmap is not closed");
            checkEqual(got.threads, worker ? 2 : 1, "threads");
        });
    }

    await test("a compressed sound is decoded by the browser at its own rate", async () => {
        const got = await page.evaluate(async () => {
            // Records the words with MediaRecorder as Opus at 48 kHz, with silence before and after them.
            const context = new AudioContext();
            const words = await context.decodeAudioData(await (await fetch("/words.wav")).arrayBuffer());
            const silence = Math.round(0.2 * words.sampleRate);
            const buffer = new AudioBuffer({ length: words.length + 2 * silence, sampleRate: words.sampleRate });
            buffer.copyToChannel(words.getChannelData(0), 0, silence);
            const source = new AudioBufferSourceNode(context, { buffer });
            const target = context.createMediaStreamDestination();
            source.connect(target);
            const recorder = new MediaRecorder(target.stream, { mimeType: "audio/webm;codecs=opus", audioBitsPerSecond: 128000 });
            const pieces: Blob[] = [];
            recorder.ondataavailable = ({ data }) => pieces.push(data);
            const ended = new Promise((resolve) => (recorder.onstop = resolve));
            const started = new Promise((resolve) => (recorder.onstart = resolve));
            recorder.start();
            await started;
            source.start();
            await new Promise((resolve) => (source.onended = resolve));
            recorder.stop();
            await ended;
            const model = await bezel.Bezel.load("/models/pebble.gguf", { device: "cpu" });
            const content = [{ type: "input_audio" as const, input_audio: new Blob(pieces) }, { type: "text" as const, text: "Transcribe this." }];
            const { choices, usage } = await model.chat.completions.create({ messages: [{ role: "user", content }], temperature: 0, max_tokens: 30 });
            model.close();
            return { text: choices[0].message.content ?? "", tokens: usage.prompt_tokens_details.audio_tokens };
        });
        // It is played in real time, so a busy machine may lose a part: most of the words must be recognized.
        const right = got.text.split(" ").filter((word) => ["turn", "the", "blue", "light", "off"].includes(word)).length;
        check(right >= 3 && got.tokens > 25, JSON.stringify(got));
    });
});

await end(server, otherOrigin);
