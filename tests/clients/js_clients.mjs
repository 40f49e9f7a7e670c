// The openai and ollama packages of npm, against a running server. Run by tests/cli/test_api_clients.py:
//   node js_clients.mjs URL FOLDER        FOLDER: with node_modules
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/x.js`));
const { default: OpenAI } = await import(pathToFileURL(require.resolve("openai")).href);
const { Ollama } = await import(pathToFileURL(require.resolve("ollama")).href);
const messages = [{ role: "user", content: "Tell me a story." }];
let failed = 0;

function need(holds, reason) {
    if (!holds) throw new Error(reason);
}

async function run(name, test) {
    try {
        await test();
        console.log(`ok js ${name}`);
    } catch (e) {
        failed++;
        console.log(`FAIL js ${name} ${e}`);
    }
}

await run("openai", async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const a = await client.chat.completions.create({ model: "pebble", messages, max_tokens: 6, seed: 2 });
    need(a.usage.completion_tokens === 6, JSON.stringify(a));
    let text = "";
    for await (const c of await client.chat.completions.create({ model: "pebble", messages, max_tokens: 6, seed: 2, stream: true })) {
        text += c.choices[0]?.delta?.content ?? "";
    }
    need(text === a.choices[0].message.content, `${text} instead of ${a.choices[0].message.content}`);
    const r = await client.responses.create({ model: "pebble", input: "Tell me a story.", max_output_tokens: 4 });
    need(r.output_text.length > 0, JSON.stringify(r));
    for await (const m of client.models.list()) need(m.id === "pebble", m.id);
    const error = await client.chat.completions.create({ model: "none", messages }).catch((e) => e);
    need(error.status === 404 && error.code === "model_not_found", `${error}`);
});

await run("openai: an aborted stream", async () => {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
    const stream = await client.chat.completions.create({ model: "pebble", messages, stream: true });
    for await (const c of stream) {
        if (c.choices[0].delta.content) stream.controller.abort();
    }
});

await run("ollama", async () => {
    const client = new Ollama({ host: url });
    const a = await client.chat({ model: "pebble", messages, options: { num_predict: 6, seed: 2 } });
    need(a.eval_count === 6, JSON.stringify(a));
    let text = "";
    for await (const part of await client.chat({ model: "pebble", messages, stream: true, options: { num_predict: 6, seed: 2 } })) text += part.message.content;
    need(text === a.message.content, `${text} instead of ${a.message.content}`);
    need((await client.generate({ model: "pebble", prompt: "Hi", options: { num_predict: 3 } })).response.length > 0, "generate");
    need((await client.list()).models[0].name === "pebble", "list");
    need((await client.show({ model: "pebble" })).capabilities.includes("vision"), "show");
    need((await client.ps()).models.length === 1, "ps");
    const error = await client.chat({ model: "none", messages }).catch((e) => e);
    need(error.message === "model 'none' not found", `${error}`);
});

process.exit(failed ? 1 : 0);
