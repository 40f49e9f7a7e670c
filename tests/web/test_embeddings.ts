/** Vectors of texts: OpenAI's format, goldens on the CPU and the GPU, what is refused. */
import { type BezelModel, type EmbeddingRequest } from "../../web/package/src/index.js";
import { check, checkEqual, finish, maxDifference, test } from "./check.js";
import { Golden, goldenFolder } from "./golden.js";
import { codeOf, errorOf, nano, withPackage } from "./package.js";
import { gpuEntry } from "./platform.js";

const model = `${goldenFolder}/embedding/text.gguf`;
const golden = await Golden.open(`${goldenFolder}/embedding/golden.gguf`);

function numbers(embedding: number[] | string | undefined): Float32Array {
    check(Array.isArray(embedding), "a vector is a list of numbers");
    return Float32Array.from(embedding as number[]);
}

async function vectorOf(m: BezelModel, request: EmbeddingRequest): Promise<Float32Array> {
    return numbers((await m.embeddings.create(request)).data[0]?.embedding);
}

for (const device of ["cpu", "gpu"] as const) {
    await test(`the reference's vectors on the ${device}`, async () => {
        const gpu = device === "gpu" ? await gpuEntry() : null;
        await withPackage(model, { device, gpu, session: { exact: true } }, async (m) => {
            checkEqual([m.info.embedding, m.info.device, m.info.contextLength], [64, device, 2048], "info");
            const all = [0, 2, 4].map((k) => [...(golden.ints(`emb.${k}.tokens`) ?? [])]);
            const { data, usage } = await m.embeddings.create({ input: all });
            checkEqual(usage.prompt_tokens, all.reduce((sum, { length }) => sum + length, 0), "tokens");
            for (const [i, k] of [0, 2, 4].entries()) {
                const off = maxDifference(numbers(data[i]?.embedding), golden.floats(`emb.${k}.embedding`));
                check(off <= (device === "cpu" ? 1e-5 : 1e-4), `text ${k} is off by ${off}`);
            }
        });
    });
}

await test("an answer in OpenAI's format, as numbers and as base64", async () => {
    await withPackage(model, { device: "cpu" }, async (m) => {
        const answer = await m.embeddings.create({ input: ["the water", ""], model: "any", user: "me" });
        checkEqual([answer.object, answer.model, answer.data.length], ["list", "text", 2], "shape");
        checkEqual(answer.data.map(({ object, index }) => [object, index]), [["embedding", 0], ["embedding", 1]], "data");
        checkEqual(answer.usage.total_tokens, answer.usage.prompt_tokens, "usage");
        const plain = numbers(answer.data[0]?.embedding);
        check(Math.abs(plain.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-5, "length");
        const coded = (await m.embeddings.create({ input: "the water", encoding_format: "base64" })).data[0]?.embedding;
        const bytes = Uint8Array.from(atob(String(coded)), (c) => c.charCodeAt(0));
        checkEqual([...new Float32Array(bytes.buffer)], [...plain], "base64");
        const cut = await vectorOf(m, { input: "the water", dimensions: 16 });
        const scale = Math.hypot(...plain.slice(0, 16));
        check(maxDifference(cut, plain.slice(0, 16).map((x) => x / scale)) < 1e-6, "cut");
        checkEqual(
            [...(await vectorOf(m, { input: "rain", task: "document", title: "Rivers" }))],
            [...(await vectorOf(m, { input: "title: Rivers | text: rain" }))],
            "a task",
        );
        checkEqual((await m.embeddings.create({ input: "water ".repeat(3000), truncate: true })).usage.prompt_tokens, 2048, "cut text");
    });
});

await test("invalid requests are refused", async () => {
    await withPackage(model, { device: "cpu" }, async (m) => {
        const wrong: [object, string][] = [
            [{}, "bad_request"],
            [{ input: [] }, "bad_request"],
            [{ input: [["a"]] }, "bad_request"],
            [{ input: "x", encoding_format: "hex" }, "bad_request"],
            [{ input: "x", dimensions: 65 }, "bad_request"],
            [{ input: "x", dimensions: 1.5 }, "bad_request"],
            [{ input: "x", task: "poetry" }, "bad_request"],
            [{ input: "x", stream: true }, "bad_request"],
            [{ input: [[2, 832, 1]] }, "bad_request"],
            [{ input: "water ".repeat(3000) }, "context_full"],
        ];
        for (const [request, code] of wrong) {
            checkEqual(await codeOf(() => m.embeddings.create(request as EmbeddingRequest)), code, JSON.stringify(request).slice(0, 60));
        }
        const refused = await errorOf(() => m.chat.completions.create({ messages: [{ role: "user", content: "hi" }] }));
        check(/computes vectors of texts and writes none/.test(refused?.message ?? ""), String(refused));
        checkEqual(await codeOf(() => m.newSession()), "unsupported_model", "a session");
        check((await vectorOf(m, { input: "still works" })).length === 64, "after refusals");
    });
    await withPackage(nano, { device: "cpu" }, async (m) => {
        checkEqual(m.info.embedding, 0, "a chat model");
        const refused = await errorOf(() => m.embeddings.create({ input: "x" }));
        check(/writes text and computes no vectors/.test(refused?.message ?? ""), String(refused));
    });
});

await test("requests are computed in order, and one can be stopped", async () => {
    await withPackage(model, { device: "cpu" }, async (m) => {
        const stop = new AbortController();
        const texts = Array.from({ length: 40 }, (_, i) => "near the house ".repeat(1 + (i % 5)));
        const first = m.embeddings.create({ input: texts }, { signal: stop.signal });
        const second = vectorOf(m, { input: texts[3] ?? "" });
        stop.abort();
        checkEqual(await codeOf(() => first), "aborted", "the first");
        const again = await m.embeddings.create({ input: texts });
        checkEqual([...(await second)], [...numbers(again.data[3]?.embedding)], "the second");
    });
});

finish();
