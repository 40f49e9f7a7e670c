// The package outside of a browser: node host.mjs MODEL, deno run -A host.mjs MODEL, bun host.mjs MODEL
import { Bezel, bytesSource } from "bezel";
import { fileSource } from "bezel/node";
import { readFile } from "node:fs/promises";
import process from "node:process";

const source = await fileSource(process.argv[2]);
const model = await Bezel.load(source, { device: "cpu" });
const request = { model: model.name, messages: [{ role: "user", content: "Name three gems." }], max_tokens: 3, temperature: 0 };
const { choices, usage } = await model.chat.completions.create(request);
const response = await model.fetch("http://bezel.example/v1/chat/completions", { method: "POST", body: JSON.stringify({ ...request, stream: true }) });
const events = (await response.text()).split("\n\n").filter((line) => line.includes('"content"')).map((line) => JSON.parse(line.slice(6)).choices[0].delta.content);
model.close();
await source.close();
const again = await Bezel.load(bytesSource(new Uint8Array(await readFile(process.argv[2]))), { worker: false, device: "cpu" });
again.close();
console.log(`${usage.completion_tokens} tokens, ${events.join("") === choices[0].message.content ? "streamed alike" : "streamed otherwise"}`);
