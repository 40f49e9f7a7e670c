// The package openai with a model in this process: node openai.mjs MODEL.gguf "question"
import process from "node:process";
import { Bezel } from "bezel";
import { fileSource } from "bezel/node";
import OpenAI from "openai";

const [path, question = "Who are you?"] = process.argv.slice(2);
const source = await fileSource(path);
const model = await Bezel.load(source);

const client = new OpenAI({ baseURL: "http://bezel/v1", apiKey: "none", fetch: model.fetch });
const stream = await client.chat.completions.create({ model: model.name, messages: [{ role: "user", content: question }], stream: true });
for await (const chunk of stream) {
    process.stdout.write(chunk.choices[0].delta.content ?? "");
}
process.stdout.write("\n");
model.close();
await source.close();
