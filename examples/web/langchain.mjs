// A chat model of LangChain.js that runs in this process: node langchain.mjs MODEL.gguf "question"
import process from "node:process";
import { ChatOpenAI } from "@langchain/openai";
import { Bezel } from "bezel";
import { fileSource } from "bezel/node";

/** The provider: everything that ChatOpenAI can do, with the loaded model in the place of a server. */
export function chatModel(model, settings = {}) {
    return new ChatOpenAI({ model: model.name, apiKey: "none", ...settings, configuration: { baseURL: "http://bezel/v1", fetch: model.fetch } });
}

const [path, question = "Who are you?"] = process.argv.slice(2);
const source = await fileSource(path);
const model = await Bezel.load(source);
for await (const chunk of await chatModel(model, { maxTokens: 60 }).stream(question)) {
    process.stdout.write(chunk.text);
}
process.stdout.write("\n");
model.close();
await source.close();
