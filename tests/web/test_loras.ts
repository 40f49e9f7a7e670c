/** LoRA adapters: the reference's logits on the CPU and the GPU, per request and per session, what is refused. */
import { bytesSource, type BezelModel, type BezelSession } from "../../web/package/src/index.js";
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { Golden, goldenFolder } from "./golden.js";
import { codeOf, errorOf, nano, withPackage } from "./package.js";
import { fileSource, gpuEntry, quick, readBytes } from "./platform.js";

const model = `${goldenFolder}/dense-like/text.gguf`;
const file = `${goldenFolder}/lora/dense_a.gguf`;
const golden = await Golden.open(`${goldenFolder}/lora/golden.gguf`);
const tokens = golden.ints("dense.tokens") ?? new Int32Array();
const positions = [...(golden.ints("dense.positions") ?? [])];

/** The largest difference from the recorded logits. */
async function offBy(m: BezelModel, session: BezelSession, name: string): Promise<number> {
    const want = golden.floats(`dense.logits.${name}`);
    const rows = new Map<number, Float32Array>();
    const { vocabulary } = m.info;
    await session.prefill(tokens, {
        onLogits: (logits, position, n) => {
            for (let i = 0; i < n; i++) {
                rows.set(position + i, logits.slice(i * vocabulary, (i + 1) * vocabulary));
            }
        },
    });
    const off = positions.map((at, i) => maxDifference(rows.get(at) ?? new Float32Array(), want.slice(i * vocabulary, (i + 1) * vocabulary)));
    return Math.max(...off);
}

/* A software adapter takes minutes to compile these kernels; the native tests have the goldens there, too. */
const devices = quick ? (["cpu"] as const) : (["cpu", "gpu"] as const);
for (const device of devices) {
    await test(`the reference's logits on the ${device}`, async () => {
        const gpu = device === "gpu" ? await gpuEntry() : null;
        await withPackage(model, { device, gpu, session: { exact: true } }, async (m) => {
            const lora = await m.loadLora(await fileSource(file));
            checkEqual([lora.info.alpha, lora.info.minRank, lora.info.maxRank, lora.info.pairs], [8, 4, 4, 20], "info");
            const session = await m.newSession({ exact: true });
            await session.setLoras([{ lora, scale: 0.5 }]);
            check((await offBy(m, session, "a_half")) <= 1e-3, "half");
            await session.setLoras([lora]);
            await lora.free(); // the session keeps it
            check((await offBy(m, session, "a")) <= 1e-3, "whole");
            await session.setLoras([]);
            check((await offBy(m, session, "base")) <= 1e-3, "none");
            await session.free();
        });
    });
}

await test("a request chooses its adapters", async () => {
    await withPackage(model, { device: "cpu" }, async (m) => {
        const lora = await m.loadLora(bytesSource(await readBytes(file)));
        const request = { messages: [{ role: "user" as const, content: "Name three gems." }], max_tokens: 6, temperature: 0, logprobs: true };
        const answer = async (loras: Parameters<typeof m.chat.completions.create>[1]): Promise<string> => {
            const { choices, usage } = await m.chat.completions.create(request, loras);
            cached.push(usage.prompt_tokens_details?.cached_tokens ?? -1);
            return JSON.stringify(choices[0].logprobs);
        };
        const cached: number[] = [];
        const plain = await answer({});
        const adapted = await answer({ loras: [{ lora, scale: 3 }] });
        const again = await answer({ loras: [{ lora, scale: 3 }] });
        const after = await answer({});
        check(adapted !== plain, "the adapter changes the answer");
        checkEqual(again, adapted, "the same adapters");
        checkEqual(after, plain, "without them again");
        const [first = 0, changed = 0, same = 0, last = 0] = cached;
        check(changed <= first && same > changed && last === changed, `reused tokens: ${cached.join()}`);
        await lora.free();
        checkEqual(await codeOf(() => m.chat.completions.create(request, { loras: [lora] })), "bad_request", "freed");
    });
});

await test("adapters that do not fit are refused", async () => {
    await withPackage(nano, { device: "cpu" }, async (m) => {
        const bytes = await readBytes(file);
        const other = await errorOf(() => m.loadLora(bytesSource(bytes, "dense_a.gguf")));
        check(other?.code === "bad_file" && /^dense_a\.gguf: .*do not fit the model/.test(other.message), String(other));
        checkEqual(await codeOf(() => m.loadLora(bytesSource(bytes.slice(0, 999)))), "bad_file", "cut off");
        checkEqual(await codeOf(() => m.loadLora(bytesSource(new Uint8Array()))), "bad_file", "empty");
        const foreign = await withPackage(model, { device: "cpu" }, (owner) => owner.loadLora(bytesSource(bytes)));
        const request = { messages: [{ role: "user" as const, content: "hi" }], max_tokens: 2 };
        checkEqual(await codeOf(() => m.chat.completions.create(request, { loras: [foreign] })), "bad_request", "another model's");
        const session = await m.newSession();
        checkEqual(await codeOf(() => session.setLoras([foreign])), "bad_request", "another model's, in a session");
        const { choices } = await m.chat.completions.create(request);
        check(choices.length === 1, "after refusals");
    });
});

finish();
