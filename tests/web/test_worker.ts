/** The API through a worker: streams, cancelling, sources that are read on the page, crashes. */
import { Bezel, bytesSource, type LoadOptions, type Message, type Source } from "../../web/package/src/index.js";
import { check, checkEqual, finish, test } from "./check.js";
import { wasmPath } from "./models.js";
import { nodeWorker } from "./node_worker.js";
import { codeOf, collect, errorOf, nano, tiny, withPackage } from "./package.js";
import { readBytes } from "./platform.js";

const question: Message[] = [{ role: "user", content: "Name three gems." }];
const wasm = await readBytes(wasmPath);
let create = nodeWorker;
let worker: ReturnType<typeof nodeWorker> | null = null;

function workerOptions(more: LoadOptions = {}): LoadOptions {
    return { worker: () => (worker = create()), wasm, ...more };
}

await test("a worker gives the same answer as the page", async () => {
    const request = { messages: question, max_tokens: 10, temperature: 0 };
    const want = await withPackage(tiny, {}, (model) => model.chat.completions.create(request));
    const stages = new Set<string>();
    const model = await Bezel.load(new Blob([await readBytes(tiny)]), workerOptions({ onProgress: ({ stage }) => stages.add(stage) }));
    checkEqual((await model.chat.completions.create(request)).choices[0].message.content, want.choices[0].message.content, "whole");
    const chunks = await collect(await model.chat.completions.create({ ...request, stream: true }));
    checkEqual(chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), want.choices[0].message.content, "stream");
    checkEqual([...stages], ["engine", "header", "weights", "session"], "stages");
    const session = await model.newSession();
    await session.prefill(await model.tokenize("A gem", { bos: true }));
    checkEqual((await session.logits())?.length, model.info.vocabulary, "logits");
    check((await collect(session.generate({ maxTokens: 3, ignoreEnd: true }))).length === 3, "tokens");
    model.close();
    checkEqual(await codeOf(() => model.chat.completions.create(request)), "aborted", "closed");
});

await test("a source object is read on the page; its errors reach the caller, and its bytes are not detached", async () => {
    const bytes = await readBytes(nano);
    const model = await Bezel.load(bytesSource(bytes), workerOptions());
    checkEqual((await model.tokenize("x")).length, 1, "tokens");
    checkEqual(bytes.byteLength > 0, true, "bytes");
    model.close();
    const failing: Source = { ...bytesSource(bytes), read: () => Promise.reject(new Error("the cable is out")) };
    const error = await errorOf(() => Bezel.load(failing, workerOptions()));
    check(error?.code === "bad_file" && /cable/.test(error.message), String(error?.message));
});

await test("aborting a request", async () => {
    const model = await Bezel.load(new Blob([await readBytes(nano)]), workerOptions());
    const endless = { messages: question, logit_bias: { "106": -100, "1": -100 }, stream: true } as const;
    const control = new AbortController();
    const run = async (): Promise<void> => {
        for await (const chunk of await model.chat.completions.create(endless, { signal: control.signal })) {
            if (chunk.choices[0]?.delta.content) {
                control.abort();
            }
        }
    };
    checkEqual(await codeOf(run), "aborted", "while streaming");
    for await (const chunk of await model.chat.completions.create(endless)) {
        if (chunk.choices[0]?.delta.content) {
            break;
        }
    }
    const { usage } = await model.chat.completions.create({ ...endless, stream: false, max_tokens: 3 });
    checkEqual(usage.completion_tokens, 3, "next request");
    model.close();
});

await test("cancelling a load", async () => {
    const bytes = await readBytes(nano);
    const control = new AbortController();
    const slow: Source = { ...bytesSource(bytes), read: async (offset, n) => (control.abort(), bytes.slice(offset, offset + n)) };
    checkEqual(await codeOf(() => Bezel.load(slow, workerOptions({ signal: control.signal }))), "aborted", "code");
});

await test("killing the worker rejects all calls, and a model can be loaded again", async () => {
    const blob = new Blob([await readBytes(nano)]);
    const model = await Bezel.load(blob, workerOptions());
    const endless = { messages: question, logit_bias: { "106": -100, "1": -100 } } as const;
    const stream = await model.chat.completions.create({ ...endless, stream: true });
    await stream.next(); // the worker is busy with the first request
    const pending = [errorOf(() => collect(stream)), errorOf(() => model.chat.completions.create(endless))];
    await worker?.thread.terminate();
    for (const error of await Promise.all(pending)) {
        check(error?.code === "device_lost" && /[Ll]oad the model again/.test(error.message), String(error?.message));
    }
    checkEqual(await codeOf(() => model.tokenize("x")), "device_lost", "afterwards");
    const next = await Bezel.load(blob, workerOptions());
    checkEqual((await next.tokenize("x")).length, 1, "again");
    next.close();
});

await test("a missing worker script", async () => {
    create = () => nodeWorker("/nowhere/worker.js");
    const error = await errorOf(async () => Bezel.load(new Blob([await readBytes(nano)]), workerOptions()));
    check(error?.code === "network" && /worker/.test(error.message), String(error?.message));
    const throwing = (): never => {
        throw new Error("policy");
    };
    checkEqual(await codeOf(() => Bezel.load(new Blob([]), { worker: throwing, wasm })), "network", "creating the worker fails");
    create = nodeWorker;
});

finish();
