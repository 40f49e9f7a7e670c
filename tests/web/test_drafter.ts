/** Drafters and look-up: the same text as without, on the CPU and the GPU; what was guessed; what is refused. */
import { Bezel, bytesSource, type BezelModel, type ChatRequest, type Draft, type LoadOptions, type Source } from "../../web/package/src/index.js";
import { check, checkEqual, finish, test } from "./check.js";
import { goldenFolder } from "./golden.js";
import { codeOf, collect, errorOf, localOptions } from "./package.js";
import { gpuEntry, readBytes } from "./platform.js";

const pebble = "models/pebble.gguf";
const pebbleDrafter = "models/pebble-drafter.gguf";
const text = `${goldenFolder}/dense-like/text.gguf`;
const textDrafter = `${goldenFolder}/assistant/assistant.gguf`;

const sourceOf = async (path: string): Promise<Source> => bytesSource(await readBytes(path), path.slice(path.lastIndexOf("/") + 1));

async function withDrafter<T>(path: string, drafter: string, options: LoadOptions, use: (model: BezelModel) => Promise<T>): Promise<T> {
    const model = await Bezel.load(await sourceOf(path), await localOptions({ drafter: await sourceOf(drafter), ...options }));
    try {
        return await use(model);
    } finally {
        model.close();
    }
}

/** The answer is so long that drafting is tried again where it did not pay. */
const request: ChatRequest = { messages: [{ role: "user", content: "Tell me a story about a fox named Rilo." }], max_tokens: 96, temperature: 0 };

await test("chat: the same text with every kind of draft, and how many were right", async () => {
    await withDrafter(pebble, pebbleDrafter, { device: "cpu" }, async (model) => {
        check(model.info.drafter, "the model has a drafter");
        const ask = (draft?: Draft | null) => model.chat.completions.create({ ...request, stream: false, ...(draft !== undefined && { draft }) });
        const off = await ask("off");
        checkEqual(Object.keys(off.usage.completion_tokens_details), ["reasoning_tokens"], "without drafts");
        check(!("draft_n" in off.timings), "without drafts, in the timings");
        // Whether later answers draft depends on what drafts have cost and brought so far.
        const first = await ask();
        const { accepted_prediction_tokens: right = -1, rejected_prediction_tokens: wrong = -1 } = first.usage.completion_tokens_details;
        check(right >= 0 && wrong >= 0 && right + wrong > 0 && right <= first.usage.completion_tokens, JSON.stringify(first.usage));
        checkEqual([first.timings.draft_n, first.timings.draft_n_accepted], [right + wrong, right], "timings");
        for (const { choices, usage } of [first, await ask(null), await ask("model")]) {
            checkEqual(choices[0].message.content, off.choices[0].message.content, "text");
            checkEqual(usage.completion_tokens, off.usage.completion_tokens, "tokens");
        }
        checkEqual((await ask("lookup")).choices[0].message.content, off.choices[0].message.content, "text with look-up");
        const chunks = await collect(await model.chat.completions.create({ ...request, stream: true }));
        checkEqual(chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join(""), off.choices[0].message.content, "streamed");
    });
});

const drafts: [draft: Draft, counts: number[]][] = [["model", [0, 1, 7]], ["lookup", [3]]];

/** Compares tokens; `counts`: drafts per pass. */
async function compareSessions(model: BezelModel, prompt: Int32Array, maxTokens: number, counted = drafts): Promise<void> {
    const session = await model.newSession({ context: 256 });
    const generate = async (draft: Draft, count: number): Promise<string> => {
        await session.prefill(prompt);
        const tokens = await collect(session.generate({ greedy: true, ignoreEnd: true, maxTokens, draft, drafts: count }));
        return tokens.map(({ token }) => token).join();
    };
    const want = await generate("off", 0);
    checkEqual((await session.stats()).drafted, 0, "off");
    for (const [draft, counts] of counted) {
        for (const count of counts) {
            const before = await session.stats();
            checkEqual(await generate(draft, count), want, `tokens with ${draft}, ${count}`);
            const { drafted, accepted } = await session.stats();
            check(drafted > before.drafted && accepted - before.accepted <= drafted - before.drafted, `${draft}, ${count}: ${accepted} of ${drafted}`);
        }
    }
    await session.free();
}

await test("sessions: the same tokens, and counts of drafts", async () => {
    await withDrafter(pebble, pebbleDrafter, { device: "cpu" }, async (model) => {
        const prompt = await model.tokenize("<bos><|turn>user\nSay one, two, three, one, two, three, one, two, three.<turn|>\n<|turn>model\n", { specials: true });
        await compareSessions(model, prompt, 96);
    });
});

await test("a drafter drafts on the GPU", async () => {
    await withDrafter(text, textDrafter, { device: "gpu", gpu: await gpuEntry(), session: { exact: true } }, async (model) => {
        check(model.info.drafter && model.device === "gpu", JSON.stringify(model.info));
        await compareSessions(model, Int32Array.of(2, 5, 7, 9, 5, 7), 12, [["model", [2]]]);
    });
});

await test("a drafter among the sources, in any order", async () => {
    const options = await localOptions({ device: "cpu" });
    const sources = [await sourceOf(textDrafter), await sourceOf(text)];
    const model = await Bezel.load(sources, options);
    checkEqual([model.info.drafter, model.name], [true, "text"], "loaded");
    model.close();
    const found = await Bezel.inspect(sources, options);
    checkEqual([found.runs, found.architecture], [true, "gemma4"], "the model is described");
    checkEqual(found.files.map(({ name, drafter, media }) => [name, drafter, media]), [["assistant.gguf", true, false], ["text.gguf", false, false]], "files");
    const alone = await Bezel.inspect(sources.slice(0, 1), options);
    checkEqual([alone.runs, alone.code, alone.architecture], [false, "bad_request", "gemma4-assistant"], "alone");
    check(/assistant\.gguf holds only a drafter/.test(alone.text), alone.text);
});

await test("files that are no drafters, and drafts that cannot be made, are refused", async () => {
    const options = await localOptions({ device: "cpu" });
    let read = 0;
    const main = await sourceOf(text);
    const counted: Source = { ...main, read: (offset, length) => ((read += length), main.read(offset, length)) };
    const refused = await errorOf(async () => Bezel.load(counted, { ...options, drafter: await sourceOf(`${goldenFolder}/e-like/mmproj.gguf`) }));
    check(refused?.code === "bad_request" && refused.message === "mmproj.gguf is not a drafter.", String(refused));
    check(read < main.size / 2, `${read} bytes of ${main.size} were read`);
    const second = await errorOf(async () => Bezel.load(main, { ...options, drafter: await sourceOf(pebble) }));
    check(second?.code === "bad_request" && /two text models/.test(second.message), String(second));
    const other = await errorOf(async () => Bezel.load(main, { ...options, drafter: await sourceOf(pebbleDrafter) }));
    check(other !== null && /^pebble-drafter\.gguf: /.test(other.message), `another model's drafter: ${String(other)}`);

    const model = await Bezel.load(main, options);
    try {
        checkEqual(model.info.drafter, false, "without a drafter");
        const create = (more: object) => model.chat.completions.create({ messages: [{ role: "user", content: "hi" }], max_tokens: 2, ...more });
        const none = await errorOf(() => create({ draft: "model" }));
        check(none?.code === "bad_request" && /opened without a drafter/.test(none.message), String(none));
        const magic = await errorOf(() => create({ draft: "magic" }));
        check(magic?.code === "bad_request" && /draft is "model", "lookup" or "off"/.test(magic.message), String(magic));
        checkEqual(await codeOf(() => create({ drafts: 3 })), "bad_request", "a count is a setting of sessions");
        const session = await model.newSession();
        await session.prefill([2, 5, 7]);
        const generate = (more: object) => codeOf(() => collect(session.generate({ maxTokens: 2, ...more })));
        checkEqual(await generate({ draft: "model" }), "bad_request", "a session without a drafter");
        checkEqual(await generate({ draft: "magic" }), "bad_request", "an unknown way");
        checkEqual(await generate({ draft: "lookup", drafts: 8 }), "bad_request", "too many");
        checkEqual(await generate({ draft: "lookup" }), "none", "look-up needs none");
        const { choices } = await create({ draft: "lookup" });
        check(choices.length === 1, "after refusals");
    } finally {
        model.close();
    }
});

await test("a diffusion model does not draft", async () => {
    const model = await Bezel.load(await sourceOf(`${goldenFolder}/diffusion/text.gguf`), await localOptions({ device: "cpu" }));
    const refused = await errorOf(() => model.chat.completions.create({ ...request, stream: false, draft: "lookup" }));
    check(refused?.code === "bad_request" && /nothing to draft/.test(refused.message), String(refused));
    model.close();
});

finish();
