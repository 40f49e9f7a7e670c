/** The package's API: OpenAI's shapes, streams, tool calls, cancelling, the cache of a conversation, errors. */
import { Bezel, bytesSource, type ChatChunk, type Message, type Progress } from "../../web/package/src/index.js";
import { check, checkEqual, finish, test } from "./check.js";
import { codeOf, collect, errorOf, here, nano, tiny, withPackage } from "./package.js";
import { readBytes } from "./platform.js";

const question: Message[] = [{ role: "user", content: "Name three gems." }];

await test("a whole answer in OpenAI's shape", async () => {
    await withPackage(tiny, {}, async (model) => {
        const got = await model.chat.completions.create({ messages: question, max_tokens: 8, temperature: 0 });
        checkEqual(got.object, "chat.completion", "object");
        check(/^chatcmpl-\w{12,}$/.test(got.id) && Math.abs(got.created - Date.now() / 1000) < 100, "id and time");
        const [choice] = got.choices;
        checkEqual([choice.index, choice.message.role, choice.finish_reason, choice.logprobs], [0, "assistant", "length", null], "choice");
        check((choice.message.content?.length ?? 0) > 0, "content");
        check(got.usage.prompt_tokens > 5 && got.usage.completion_tokens === 8, JSON.stringify(got.usage));
        checkEqual(got.usage.total_tokens, got.usage.prompt_tokens + 8, "total");
        check(got.timings.predicted_ms > 0 && got.timings.prompt_n === got.usage.prompt_tokens, JSON.stringify(got.timings));
    });
});

await test("the chunks of a stream add up to the whole answer", async () => {
    await withPackage(tiny, {}, async (model) => {
        const request = { messages: question, max_tokens: 12, temperature: 0 };
        const whole = await model.chat.completions.create(request);
        const chunks: ChatChunk[] = await collect(await model.chat.completions.create({ ...request, stream: true }));
        check(chunks.length > 5, `${chunks.length} chunks`);
        checkEqual(chunks[0]?.choices[0]?.delta.role, "assistant", "first");
        checkEqual(chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), whole.choices[0].message.content, "content");
        checkEqual(chunks.at(-2)?.choices[0]?.finish_reason, "length", "why it ended");
        checkEqual([chunks.at(-1)?.choices.length, chunks.at(-1)?.usage?.completion_tokens], [0, 12], "last");
        checkEqual(new Set(chunks.map(({ id }) => id)).size, 1, "ids");
    });
});

void bytesSource;
void Bezel;
void codeOf;
void errorOf;
void here;
void nano;
void readBytes;
export type _P = Progress;

finish();
