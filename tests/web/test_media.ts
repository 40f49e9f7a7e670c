/** Images and sound through WebAssembly: encoder outputs and conversations against Hugging Face's on CPU and GPU,
 * within the bounds of tests/golden/README.md, and refused input. */
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { pngFile } from "../browser/png.js";
import { bytesOfDataUrl } from "../../web/package/src/data_url.js";
import { rateOfFile, isPlainWav } from "../../web/package/src/sound_header.js";
import { imageSize } from "../../web/package/src/image_size.js";
import { Bezel, BezelError, type BezelModel, type ChatChunk, type ContentPart, type Encoder, type Engine, type LoadOptions, type Media, type Model, type OpenOptions } from "../../web/package/src/index.js";
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { Golden, goldenFolder, modelFolder } from "./golden.js";
import { newEngine } from "./models.js";
import { errorOf, localOptions, nano } from "./package.js";
import { fileSource, hostName, quick, readBytes } from "./platform.js";
import { wavFile } from "./wav.js";

const pebblePath = "models/pebble.gguf";
const media = await Golden.open(`${goldenFolder}/media/golden.gguf`);
const pebble = await Golden.open(`${goldenFolder}/pebble/golden.gguf`);

async function withFiles<T>(engine: Engine, paths: string[], options: OpenOptions, use: (model: Model) => Promise<T>): Promise<T> {
    const sources = await Promise.all(paths.map(fileSource));
    try {
        const model = await engine.openModel(sources, options);
        try {
            return await use(model);
        } finally {
            model.free();
        }
    } finally {
        await Promise.all(sources.map((source) => source.close()));
    }
}

function encodeGolden(encoder: Encoder, kind: "image" | "audio", i: number, budget: number): Promise<Media> {
    if (kind === "audio") {
        return encoder.encodeAudio(media.floats(`audio.${i}.pcm`), 16000);
    }
    const { data, width, height } = media.image(`image.${i}.rgb`);
    return encoder.encodeImage(width, height, (rgb) => rgb().set(data), { budget });
}

// ---- towers -------------------------------------------------------------------------------------------

type GoldenItem = [kind: "image" | "audio", index: number];

interface Case {
    name: string;
    paths: string[];
    golden: string;
    sound: boolean;
    /** [prompt, its media], for prompts with golden logits. */
    prompts: [number, GoldenItem[]][];
}

const e: Case["prompts"] = [[0, [["image", 0]]], [1, [["audio", 0]]]];
const cases: Case[] = [
    { name: "e-like, two files", paths: [`${goldenFolder}/e-like/mmproj.gguf`, `${goldenFolder}/e-like/text.gguf`], golden: "e-like", sound: true, prompts: e },
    { name: "e-like, one file", paths: [`${modelFolder}/e-like-whole.gguf`], golden: "e-like", sound: true, prompts: e },
    { name: "moe-like", paths: [`${goldenFolder}/moe-like/text.gguf`, `${goldenFolder}/moe-like/mmproj.gguf`], golden: "moe-like", sound: false, prompts: [[0, [["image", 0]]], [2, [["image", 2]]]] },
    { name: "unified", paths: [`${goldenFolder}/unified/text.gguf`, `${goldenFolder}/unified/mmproj.gguf`], golden: "unified", sound: true, prompts: [[0, [["image", 0]]], [2, [["audio", 0]]]] },
];

const budgetOf = (i: number): number => (i === 2 ? 6 : 70);

async function testTowers({ name, paths, golden, sound, prompts }: Case, device: "cpu" | "gpu" | "gpu-baseline"): Promise<void> {
    const want = await Golden.open(`${goldenFolder}/${golden}/media.gguf`);
    const engine = await newEngine();
    await withFiles(engine, paths, { device }, async (model) => {
        const encoder = await model.newEncoder();
        const items: GoldenItem[] = [["image", 0], ["image", 2], ...(sound ? ([["audio", 0]] as GoldenItem[]) : [])];
        for (const [kind, i] of items) {
            await test(`${hostName} ${device} ${name}: ${kind} ${i}`, async () => {
                const before = engine.counts.dispatches;
                const encoded = await encodeGolden(encoder, kind, i, budgetOf(i));
                checkEqual(engine.counts.dispatches > before, device !== "cpu", "on the GPU");
                const d = maxDifference(encoded.values, want.floats(`${kind}.${i}.soft_tokens`));
                check(d <= (device === "cpu" ? 1e-4 : 5e-3), `soft tokens off by ${d}`);
                encoded.free();
            });
        }
        // In quick mode, not for all models on the GPU: other tests cover the text kernels, and compiling them is slow.
        for (const [k, held] of quick && device !== "cpu" && golden !== "e-like" ? [] : prompts) {
            await test(`${hostName} ${device} ${name}: logits of prompt ${k}`, async () => {
                const list: Media[] = [];
                for (const [kind, i] of held) {
                    list.push(await encodeGolden(encoder, kind, i, budgetOf(i)));
                }
                const session = await model.newSession({ exact: true });
                const ids = want.ints(`mm.${k}.tokens`) as Int32Array;
                const all = new Float32Array(ids.length * model.vocab);
                await session.prefillMedia(ids, list, { onLogits: (rows, position) => all.set(rows, position * model.vocab) });
                const at = [...(want.ints(`mm.${k}.positions`) as Int32Array)];
                const got = Float32Array.from(at.flatMap((p) => [...all.subarray(p * model.vocab, (p + 1) * model.vocab)]));
                const d = maxDifference(got, want.floats(`mm.${k}.logits`));
                check(d <= (device === "cpu" ? 1e-3 : 2e-3), `logits off by ${d}`);
                session.free();
                list.forEach((one) => one.free());
            });
        }
        await test(`${hostName} ${device} ${name}: cached media are not encoded again, and no memory leaks`, async () => {
            const { encoded } = encoder.stats;
            const size = engine.memory.size;
            for (let i = 0; i < 40; i++) {
                (await encodeGolden(encoder, "image", 0, 70)).free();
            }
            checkEqual(encoder.stats.encoded, encoded, "encoded");
            checkEqual(engine.memory.size, size, "memory");
            checkEqual(encoder.notice, null, "encoded on the model's device");
        });
        encoder.free();
    });
}

for (const one of cases) {
    await testTowers(one, "cpu");
}
for (const one of cases.filter(({ name }) => !quick || name !== "e-like, one file")) {
    await testTowers(one, "gpu");
}
for (const one of quick ? [] : cases.slice(1)) {
    await testTowers(one, "gpu-baseline");
}

// ---- Pebble ---------------------------------------------------------------------------------------------

await test(`${hostName} Pebble's vision and audio encoders against the official implementation`, async () => {
    const engine = await newEngine();
    await withFiles(engine, [pebblePath], { device: "cpu" }, async (model) => {
        checkEqual([model.takes("image"), model.takes("audio")], [true, true], "inputs");
        checkEqual([model.budgetOf("auto"), model.budgetOf("low"), model.budgetOf("high")], [70, 70, 280], "budgets");
        const encoder = await model.newEncoder();
        const { data, width, height } = pebble.image("image.rgb");
        let steps = 0;
        const image = await encoder.encodeImage(width, height, (rgb) => rgb().set(data), { onProgress: () => steps++ });
        check(steps >= 4, `${steps} reports of progress`);
        let d = maxDifference(image.values, pebble.floats("image.soft"));
        check(d <= 2e-3, `an image's soft tokens off by ${d}`);
        let features = new Float32Array();
        const sound = await encoder.encodeAudio(pebble.sound("audio.samples"), 16000, { onFeatures: (values) => (features = Float32Array.from(values)) });
        d = maxDifference(features.subarray(0, pebble.floats("audio.features").length), pebble.floats("audio.features"));
        check(d <= 1e-3, `features off by ${d}`);
        d = maxDifference(sound.values, pebble.floats("audio.soft"));
        check(d <= 2e-3, `a sound's soft tokens off by ${d}`);

        // Cancelled while encoding, then encoded again.
        const stop = new AbortController();
        const other = Uint8Array.from(data, (x) => 255 - x);
        const fill = (rgb: () => Uint8Array): void => rgb().set(other);
        const cancelled = await errorOf(() => encoder.encodeImage(width, height, fill, { signal: stop.signal, onProgress: () => stop.abort() }));
        checkEqual(cancelled?.code, "aborted", "cancelled");
        checkEqual(encoder.stats.encoded, 2, "encoded");
        (await encoder.encodeImage(width, height, fill)).free();
        const size = engine.memory.size;
        for (let i = 0; i < 20; i++) {
            other[0] = i;
            (await encoder.encodeImage(width, height, fill)).free();
        }
        check(engine.memory.size - size <= 4 << 20, `memory grew by ${engine.memory.size - size} bytes over 20 images`);
        image.free();
        sound.free();
        encoder.free();
    });
});

await test(`${hostName} equal to the native program: a resampled sound, a downscaled image`, async () => {
    const folder = "build/tests";
    await mkdir(folder, { recursive: true });
    const rate = 22050;
    const tones = Float32Array.from({ length: 2 * rate }, (_, i) => Math.round(9000 * (Math.sin(i / 9) + Math.sin(i * i * 1e-5))) / 32768);
    await writeFile(`${folder}/tones.wav`, new Uint8Array(await wavFile(tones, rate).arrayBuffer()));
    const [width, height] = [1000, 700];
    const data = Uint8Array.from({ length: 3 * width * height }, (_, i) => ((i % 3) * 80 + (i % (3 * width)) / 30 + i / (15 * width)) & 255);
    await writeFile(`${folder}/waves.png`, pngFile(data, width, height));
    const floats = async (path: string): Promise<Float32Array> => new Float32Array((await readBytes(path)).buffer);
    const native = (...options: string[]): void => void execFileSync("build/bezel", ["encode", pebblePath, ...options], { stdio: "pipe" });
    native("--audio", `${folder}/tones.wav`, "-o", `${folder}/tones.f32`, "--features", `${folder}/tones.features`);
    native("--image", `${folder}/waves.png`, "-o", `${folder}/waves.f32`, "--features", `${folder}/waves.features`);
    const engine = await newEngine(null);
    await withFiles(engine, [pebblePath], { device: "cpu" }, async (model) => {
        const encoder = await model.newEncoder();
        let features = new Float32Array();
        const onFeatures = (values: Float32Array): void => void (features = Float32Array.from(values));
        const sound = await encoder.encodeAudio(tones, rate, { onFeatures });
        let d = maxDifference(features, await floats(`${folder}/tones.features`));
        check(d <= 1e-4, `features off by ${d}`);
        d = maxDifference(sound.values, await floats(`${folder}/tones.f32`));
        check(d <= 1e-3, `a sound's soft tokens off by ${d}`);
        const image = await encoder.encodeImage(width, height, (rgb) => rgb().set(data), { onFeatures });
        checkEqual(maxDifference(features, await floats(`${folder}/waves.features`)), 0, "difference of patches");
        d = maxDifference(image.values, await floats(`${folder}/waves.f32`));
        check(d <= 1e-3, `an image's soft tokens off by ${d}`);
        [sound, image, encoder].forEach((one) => one.free());
    });
});

// ---- in conversations ------------------------------------------------------------------------------------

async function withPebble<T>(use: (model: BezelModel) => Promise<T>, options: LoadOptions = {}, path = pebblePath): Promise<T> {
    const source = await fileSource(path);
    const model = await Bezel.load(source, await localOptions({ device: "cpu", ...options }));
    try {
        return await use(model);
    } finally {
        model.close();
        await source.close();
    }
}

const greedy = { temperature: 0, max_tokens: 80 } as const;
const image = pebble.image("image.rgb");
// The same picture with alpha: white pixels are transparent ones of another colour.
const rgba = new Uint8ClampedArray((image.data.length / 3) * 4);
for (let i = 0; i < image.data.length / 3; i++) {
    const pixel = [...image.data.subarray(3 * i, 3 * i + 3)];
    rgba.set(pixel.every((x) => x === 255) ? [7, 80, 9, 0] : [...pixel, 255], 4 * i);
}
const speech = pebble.sound("audio.samples");
const imagePart: ContentPart = { type: "image_url", image_url: { url: image } };
const audioPart: ContentPart = { type: "input_audio", input_audio: { data: speech, rate: 16000 } };

const ask = async (model: BezelModel, content: ContentPart[]): Promise<string> => {
    const { choices } = await model.chat.completions.create({ messages: [{ role: "user", content }], ...greedy });
    return choices[0].message.content ?? "";
};

await test(`${hostName} answers about an image and a sound equal the official implementation's`, () =>
    withPebble(async (model) => {
        checkEqual([model.info.vision, model.info.audio], [true, true], "info");
        const expected = async (name: string): Promise<string> => (await model.detokenize(pebble.ints(name) as Int32Array)).trim();
        const what: ContentPart = { type: "text", text: "What is in the picture?" };
        const description = await expected("image.greedy");
        checkEqual(await ask(model, [imagePart, what]), description, "RGB pixels");
        checkEqual(await ask(model, [{ type: "image_url", image_url: { url: { ...image, data: rgba } } }, what]), description, "RGBA pixels");
        const ollama = await model.chat.completions.create({ messages: [{ role: "user", content: "What is in the picture?", images: [image] }], ...greedy });
        checkEqual(ollama.choices[0].message.content, description, "in Ollama's format");
        checkEqual((await model.mediaStats()).encoded, 1, "cached by content");
        const transcript = await expected("audio.greedy");
        const transcribe: ContentPart = { type: "text", text: "Transcribe this." };
        checkEqual(await ask(model, [audioPart, transcribe]), transcript, "samples");
        const wav = wavFile(speech, 16000);
        checkEqual(await ask(model, [{ type: "input_audio", input_audio: wav }, transcribe]), transcript, "a WAV file");
        const base64 = Buffer.from(await wav.arrayBuffer()).toString("base64");
        checkEqual(await ask(model, [{ type: "input_audio", input_audio: { data: base64, format: "wav" } }, transcribe]), transcript, "base64");
        checkEqual(await ask(model, [{ type: "input_audio", input_audio: { data: `data:audio/wav;base64,${base64}` } }, transcribe]), transcript, "data:");
        checkEqual((await model.mediaStats()).encoded, 2, "all of them are one sound");
        // Resampled by a factor of two.
        const doubled = Float32Array.from({ length: 2 * speech.length }, (_, i) => ((speech[i >> 1] ?? 0) + (speech[(i + 1) >> 1] ?? 0)) / 2);
        checkEqual(await ask(model, [{ type: "input_audio", input_audio: { data: doubled, rate: 32000 } }, transcribe]), transcript, "at 32 kHz");
    }));

await test(`${hostName} a second question about an image encodes nothing and computes only new tokens`, () =>
    withPebble(async (model) => {
        const first = { role: "user" as const, content: [imagePart, { type: "text" as const, text: "What is in the picture?" }] };
        const chunks: ChatChunk[] = [];
        for await (const chunk of await model.chat.completions.create({ messages: [first], ...greedy, stream: true })) {
            chunks.push(chunk);
        }
        const progress = chunks.flatMap(({ media: m }) => (m ? [m] : []));
        checkEqual([progress[0]?.done, progress[0]?.count, progress[0]?.kind], [0, 1, "image"], "progress starts at 0");
        check(progress.length >= 4 && progress.every(({ done, total }) => done <= total), JSON.stringify(progress));
        const answer = chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");
        const usage = chunks.at(-1)?.usage;
        checkEqual([usage?.prompt_tokens_details.image_tokens, chunks.at(-1)?.timings?.media_n], [64, 1], "counted");
        const messages = [first, { role: "assistant" as const, content: answer }, { role: "user" as const, content: "What color is it?" }];
        const again = await model.chat.completions.create({ messages, ...greedy });
        checkEqual([again.timings.media_n, (await model.mediaStats()).encoded, (await model.mediaStats()).cached], [0, 1, 1], "encoded");
        check(again.usage.prompt_tokens_details.cached_tokens >= 64, `${again.usage.prompt_tokens_details.cached_tokens} tokens reused`);
    }));

await test(`${hostName} a video is its frames with their times in the prompt`, () =>
    withPebble(async (model) => {
        checkEqual(model.info.video, true, "info");
        const frames = [image, { ...image, data: image.data.map((byte) => 255 - byte) }];
        const part: ContentPart = { type: "video_url", video_url: { frames, seconds: [0, 61.5] } };
        const chunks: ChatChunk[] = [];
        for await (const chunk of await model.chat.completions.create({ messages: [{ role: "user", content: [part, { type: "text", text: "Hi" }] }], ...greedy, stream: true })) {
            chunks.push(chunk);
        }
        const progress = chunks.flatMap(({ media: m }) => (m ? [m] : []));
        check(progress.every(({ kind, done, total }, i) => kind === "video" && done <= total && done >= (progress[i - 1]?.done ?? 0)), JSON.stringify(progress));
        const { usage } = chunks.at(-1) ?? {};
        const rows = usage?.prompt_tokens_details.video_tokens ?? 0;
        check(rows > 0 && rows % 2 === 0 && rows <= 140, `${rows} tokens`);
        // As text with one token for all of a frame's, which is what the models were trained with.
        const text = "00:00 <|image><|video|><image|> 01:01 <|image><|video|><image|>";
        const around = await model.chat.completions.create({ messages: [{ role: "user", content: "Hi" }], ...greedy });
        const own = (await model.tokenize(`\n${text}Hi`, { specials: true })).length - (await model.tokenize("\nHi")).length;
        checkEqual(usage?.prompt_tokens, around.usage.prompt_tokens + own - 2 + rows, "prompt");
        const again = await model.chat.completions.create({ messages: [{ role: "user", content: [part, { type: "text", text: "Hi" }] }], ...greedy });
        checkEqual([again.timings.media_n, again.choices[0].message.content], [0, chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")], "from the cache");
    }));

await test(`${hostName} notices for sound longer than 30 seconds and for a truncated WAV file`, () =>
    withPebble(async (model) => {
        const long = new Float32Array(31 * 16000).map((_, i) => Math.sin(i / 7) / 9);
        const content: ContentPart[] = [{ type: "input_audio", input_audio: { data: long, rate: 16000 } }];
        const answer = await model.chat.completions.create({ messages: [{ role: "user", content }], ...greedy, max_tokens: 2 });
        checkEqual(answer.notices, ["The sound is longer than 30 seconds: it is processed in 2 pieces."], "notices");
        const again = await model.chat.completions.create({ messages: [{ role: "user", content }], ...greedy, max_tokens: 2 });
        checkEqual(again.notices, undefined, "sent once");
        const wav = wavFile(speech, 16000);
        const cut: ContentPart[] = [{ type: "input_audio", input_audio: wav.slice(0, 20044) }];
        const short = await model.chat.completions.create({ messages: [{ role: "user", content: cut }], ...greedy, max_tokens: 2 });
        checkEqual(short.notices, ["The sound file is truncated: only 0.6 seconds of it can be used."], "notices");
    }));

await test(`${hostName} invalid images and sounds are refused with a message, and the model still answers`, () =>
    withPebble(async (model) => {
        const png = new Uint8Array(40);
        png.set([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10]);
        const refusals: [string, string, RegExp, unknown][] = [
            ["a file of a hundred megapixels", "bad_request", /10000 x 10000 pixels; the limit is 67 megapixels/, { type: "image_url", image_url: new Blob([png]) }],
            ["an image's file without a browser", "bad_request", /cannot be decoded here/, { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }],
            ["an MP3 file without a browser", "bad_request", /pass a WAV file/, { type: "input_audio", input_audio: { data: "//uQxAAAAAAAAAAAAAAAAAAAAAAA", format: "mp3" } }],
            ["invalid base64", "bad_request", /not valid base64/, { type: "input_audio", input_audio: { data: "***", format: "wav" } }],
            ["data: without a comma", "bad_request", /no comma/, { type: "image_url", image_url: { url: "data:image/png;base64" } }],
            ["an empty file", "bad_file", /empty/, { type: "image_url", image_url: new Blob([]) }],
            ["a URL of another site", "bad_request", /on another site/, { type: "image_url", image_url: { url: "https://example.org/cat.png" } }],
            ["too few pixels", "bad_request", /3 or 4 bytes each/, { type: "image_url", image_url: { url: { data: new Uint8Array(5), width: 2, height: 2 } } }],
            ["an unknown detail", "bad_request", /auto, low or high/, { type: "image_url", image_url: { url: image, detail: "fine" } }],
            ["no source", "bad_request", /An image must be/, { type: "image_url", image_url: {} }],
            ["samples without a rate", "bad_request", /need a rate/, { type: "input_audio", input_audio: { data: speech } }],
            ["an invalid rate", "bad_request", /samples a second/, { type: "input_audio", input_audio: { data: speech, rate: 7 } }],
            ["no samples", "bad_request", /no samples/, { type: "input_audio", input_audio: { data: new Float32Array(), rate: 16000 } }],
            ["a truncated WAV header", "bad_file", /WAV/, { type: "input_audio", input_audio: wavFile(speech, 16000).slice(0, 30) }],
            ["a video's file without a browser", "bad_request", /only be decoded on a page/, { type: "video_url", video_url: new Blob(["x"]) }],
            ["a video of another site", "bad_request", /on another site/, { type: "video_url", video_url: { url: "https://example.org/cat.mp4" } }],
            ["no source of a video", "bad_request", /A video must be/, { type: "video_url", video_url: {} }],
            ["a video without frames", "bad_request", /0 frames/, { type: "video_url", video_url: { frames: [] } }],
            ["too few times", "bad_request", /one time each/, { type: "video_url", video_url: { frames: [image], seconds: [] } }],
            ["a time before the beginning", "bad_request", /are from 0 on/, { type: "video_url", video_url: { frames: [image], seconds: [-1] } }],
            ["half a frame", "bad_request", /whole number from 1 to 1024/, { type: "video_url", video_url: { url: new Blob(["x"]), frames: 0.5 } }],
        ];
        for (const [what, code, sentence, part] of refusals) {
            for (const stream of [true, false]) {
                const error = await errorOf(() => model.chat.completions.create({ messages: [{ role: "user", content: [part as ContentPart] }], stream, ...greedy }));
                checkEqual(error?.code, code as "bad_request", what);
                check(sentence.test(error?.message ?? ""), `${what}: ${error?.message}`);
            }
        }
        checkEqual((await model.mediaStats()).encoded, 0, "encoded");
        const frames = [[48, 48], [96, 48]].map(([width = 0, height = 0]) => ({ data: new Uint8Array(3 * width * height), width, height }));
        const error = await errorOf(() => ask(model, [{ type: "video_url", video_url: { frames } }]));
        check(error?.code === "bad_request" && /same size/.test(error.message), `frames of two sizes: ${error?.message}`);
        check((await ask(model, [imagePart, { type: "text", text: "What is in the picture?" }])).length > 10, "it still answers");
    }));

await test(`${hostName} a model without vision refuses before decoding; with its mmproj file it accepts images`, async () => {
    await withPebble(async (model) => {
        checkEqual([model.info.vision, model.info.audio], [false, false], "info");
        for (const [part, word] of [[imagePart, "images"], [audioPart, "sound"]] as const) {
            const error = await errorOf(() => model.chat.completions.create({ messages: [{ role: "user", content: [part] }] }));
            checkEqual(error?.code, "unsupported_model", "code");
            check(Boolean(error?.message.includes(`takes no ${word}`) && error.message.includes("mmproj")), error?.message ?? "");
        }
    }, {}, nano);
    const mmproj = await fileSource(`${goldenFolder}/e-like/mmproj.gguf`);
    await withPebble(async (model) => {
        checkEqual([model.info.vision, model.info.audio, model.name], [true, true, "text"], "info");
        await model.chat.completions.create({ messages: [{ role: "user", content: [imagePart, audioPart] }], max_tokens: 2 });
        checkEqual((await model.mediaStats()).encoded, 2, "encoded");
    }, { mmproj, imageTokens: 70 }, `${goldenFolder}/e-like/text.gguf`);
    await mmproj.close();
});

// ---- headers ----------------------------------------------------------------------------------------------

await test(`${hostName} headers of images and sounds: valid, truncated, random`, () => {
    const bytes = (...parts: (string | number[])[]): Uint8Array => {
        const all = parts.flatMap((part) => (typeof part === "string" ? [...part].map((c) => c.charCodeAt(0)) : part));
        return Uint8Array.from([...all, ...new Array<number>(Math.max(0, 64 - all.length)).fill(0)]);
    };
    const images: [Uint8Array, [number, number]][] = [
        [bytes([0x89], "PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 1, 0, 0, 0, 0, 7]), [256, 7]],
        [bytes("GIF89a", [3, 1, 5, 0]), [259, 5]],
        [bytes([0xff, 0xd8, 0xff, 0xe1, 0, 6, 1, 2, 3, 4, 0xff, 0xff, 0xc2, 0, 11, 8, 1, 2, 3, 4]), [772, 258]],
        [bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [10, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 1, 1, 0]), [10, 258]],
        [bytes("RIFF", [0, 0, 0, 0], "WEBPVP8 ", [0, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xf0, 0]), [320, 240]],
        [bytes("RIFF", [0, 0, 0, 0], "WEBPVP8L", [0, 0, 0, 0, 0x2f, 0x3f, 0xc1, 0x3b, 0]), [320, 240]],
        [bytes("BM", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 8, 0, 0, 0, 0xfa, 0xff, 0xff, 0xff]), [8, 6]],
    ];
    for (const [file, [width, height]] of images) {
        checkEqual(imageSize(file), { width, height }, "size");
    }
    const sounds: [Uint8Array, number | null][] = [
        [bytes("fLaC", [0, 0, 0, 34], new Array<number>(10).fill(0), [0x0a, 0xc4, 0x42]), 44100],
        [bytes("OggS", new Array<number>(22).fill(0), [1, 30], [1], "vorbis", [0, 0, 0, 0, 1, 0x22, 0x56, 0, 0]), 22050],
        [bytes("OggS", new Array<number>(22).fill(0), [1, 19], "OpusHead", [1, 1, 0, 0, 0x80, 0x3e]), 48000],
        [bytes([0xff, 0xfb, 0x90, 0x64]), 44100],
        [bytes("ID3", [4, 0, 0, 0, 0, 0, 4, 9, 9, 9, 9, 0xff, 0xf3, 0x44]), 24000],
        [bytes("an unknown format"), null],
    ];
    for (const [file, rate] of sounds) {
        checkEqual(rateOfFile(file), rate, "rate");
    }
    check(isPlainWav(bytes("RIFF", [0, 0, 0, 0], "WAVEfmt ", [16, 0, 0, 0, 1, 0])) && !isPlainWav(bytes("RIFF", [0, 0, 0, 0], "WAVEfmt ", [16, 0, 0, 0, 17, 0])), "kinds of WAV");
    for (const [address, text] of [["data:,a%20b%zz", "a b%zz"], ["data:text/plain;base64,aGk=", "hi"], ["data:;base64,a G\nk", "hi"]] as const) {
        checkEqual(new TextDecoder().decode(bytesOfDataUrl(address, "image")), text, address);
    }
    // Random bytes, also after a valid beginning: the result is always a size, a rate or null.
    let seed = 1;
    const random = (n: number): number => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) % n;
    const known = [...images.map(([file]) => file), ...sounds.map(([file]) => file), new Uint8Array()];
    for (let i = 0; i < 20000; i++) {
        const file = Uint8Array.from({ length: random(200) }, () => random(256));
        file.set((known[random(known.length)] as Uint8Array).subarray(0, Math.min(random(40), file.length)));
        const size = imageSize(file);
        const rate = rateOfFile(file);
        check(size === null || (size.width >= 0 && size.height >= 0 && Number.isInteger(size.width * size.height)), JSON.stringify(size));
        check(rate === null || (rate >= 8000 && rate <= 96000), `rate ${rate}`);
        isPlainWav(file);
        const address = `data:${["", ";base64"][random(2)]},${String.fromCharCode(...file)}`;
        try {
            check(bytesOfDataUrl(address, "image").length <= address.length, "length");
        } catch (reason) {
            check(reason instanceof BezelError && reason.code === "bad_request", String(reason));
        }
    }
});

finish();
