/** The openai, ollama, ai and LangChain packages of npm, unmodified, with a model in the page in the place of a server.
 * tests/browser/test_clients.ts bundles this script and runs each function in Chromium; what they return is compared
 * there. `Bezel`, the package, is passed so that it is not bundled twice. */
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import { tool as langChainTool } from "@langchain/core/tools";
import { generateObject, generateText, isStepCount, streamText, tool } from "ai";
import { Ollama } from "ollama/browser";
import OpenAI from "openai";
import * as React from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

const messages = [{ role: "user", content: "Tell me a story." }];
const word = { type: "object", properties: { word: { enum: ["fox", "owl"] } }, required: ["word"], additionalProperties: false };

export async function openai(model) {
    const client = new OpenAI({ baseURL: "http://bezel.example/v1", apiKey: "none", dangerouslyAllowBrowser: true, fetch: model.fetch, maxRetries: 0 });
    const request = { model: model.name, messages, max_tokens: 6, seed: 2 };
    const whole = await client.chat.completions.create(request);
    let streamed = "";
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
        streamed += chunk.choices[0].delta.content ?? "";
    }
    const response = await client.responses.create({ model: model.name, input: messages[0].content, max_output_tokens: 6, temperature: 0 });
    let events = "";
    for await (const event of await client.responses.create({ model: model.name, input: messages[0].content, max_output_tokens: 6, temperature: 0, stream: true })) {
        events += event.type === "response.output_text.delta" ? event.delta : "";
    }
    const models = [];
    for await (const one of client.models.list()) {
        models.push(one.id);
    }
    const calls = [];
    const runner = client.chat.completions.runTools({
        model: model.name,
        messages,
        max_tokens: 40,
        tool_choice: { type: "function", function: { name: "look_up" } },
        tools: [{ type: "function", function: { name: "look_up", parameters: word, parse: JSON.parse, function: (args) => (calls.push(args.word), "red") } }],
    });
    await runner.done();
    const parsed = await client.chat.completions.parse({ model: model.name, messages, response_format: { type: "json_schema", json_schema: { name: "w", strict: true, schema: word } } });
    const error = await client.chat.completions.create({ model: "none", messages }).catch((e) => e);
    const stream = await client.chat.completions.create({ model: model.name, messages, stream: true });
    for await (const chunk of stream) {
        if (chunk.choices[0].delta.content) {
            stream.controller.abort();
        }
    }
    const after = await client.chat.completions.create(request);
    return {
        text: whole.choices[0].message.content,
        same: [streamed, after.choices[0].message.content],
        responses: [response.output_text, events],
        models,
        calls: calls.length > 0 && calls.every((one) => one === "fox" || one === "owl"),
        parsed: typeof parsed.choices[0].message.content,
        error: [error instanceof OpenAI.NotFoundError, error.code],
    };
}

export async function ollama(model) {
    const client = new Ollama({ host: "http://bezel.example", fetch: model.fetch });
    const request = { model: model.name, messages, options: { num_predict: 6, seed: 2 } };
    const whole = await client.chat(request);
    let streamed = "";
    for await (const part of await client.chat({ ...request, stream: true })) {
        streamed += part.message.content;
    }
    const generated = await client.generate({ model: model.name, prompt: messages[0].content, options: request.options });
    const error = await client.chat({ model: "none", messages }).catch((e) => e);
    const formed = await client.chat({ model: model.name, messages, format: word });
    return {
        text: whole.message.content,
        same: [streamed, generated.response],
        count: whole.eval_count,
        list: (await client.list()).models.map(({ name }) => name),
        ps: (await client.ps()).models.length,
        show: (await client.show({ model: model.name })).capabilities,
        formed: ["fox", "owl"].includes(JSON.parse(formed.message.content).word),
        error: error.message,
    };
}

export async function ai(model) {
    const providers = {
        responses: createOpenAI({ baseURL: "http://bezel.example/v1", apiKey: "none", fetch: model.fetch })(model.name),
        chat: createOpenAICompatible({ name: "bezel", baseURL: "http://bezel.example/v1", fetch: model.fetch, supportsStructuredOutputs: true })(model.name),
    };
    const results = {};
    for (const [name, provider] of Object.entries(providers)) {
        const request = { model: provider, prompt: messages[0].content, maxOutputTokens: 6, temperature: 0, maxRetries: 0 };
        const { text, usage } = await generateText(request);
        let streamed = "";
        for await (const piece of streamText(request).textStream) {
            streamed += piece;
        }
        const { object } = await generateObject({ model: provider, prompt: messages[0].content, schema: z.object({ word: z.enum(["fox", "owl"]) }), maxRetries: 0 });
        const words = [];
        const look = tool({ description: "Looks a word up", inputSchema: z.object({ word: z.enum(["fox", "owl"]) }), execute: (args) => (words.push(args.word), "red") });
        const run = await generateText({ ...request, maxOutputTokens: 40, tools: { look }, toolChoice: "required", stopWhen: isStepCount(1) });
        results[name] = { text, same: streamed === text, tokens: usage.outputTokens, object: ["fox", "owl"].includes(object.word), words: words.length === run.toolCalls.length && words.length > 0 };
    }
    return results;
}

export async function langchain(model) {
    const chat = new ChatOpenAI({ model: model.name, apiKey: "none", temperature: 0, maxTokens: 6, maxRetries: 0, configuration: { baseURL: "http://bezel.example/v1", fetch: model.fetch, dangerouslyAllowBrowser: true } });
    const whole = await chat.invoke(messages[0].content);
    let streamed = "";
    for await (const chunk of await chat.stream(messages[0].content)) {
        streamed += chunk.text;
    }
    const look = langChainTool(({ word: w }) => w, { name: "look_up", description: "Looks a word up", schema: z.object({ word: z.enum(["fox", "owl"]) }) });
    const called = await chat.withConfig({ maxTokens: 40 }).bindTools?.([look]).invoke?.(messages[0].content).catch((e) => e);
    void called;
    const bound = new ChatOpenAI({ model: model.name, apiKey: "none", maxTokens: 60, configuration: { baseURL: "http://bezel.example/v1", fetch: model.fetch, dangerouslyAllowBrowser: true } }).bindTools([look], { tool_choice: "look_up" });
    const { tool_calls: calls } = await bound.invoke(messages[0].content);
    return { text: whole.text, streamed, call: calls?.[0]?.name, word: ["fox", "owl"].includes(calls?.[0]?.args.word) };
}

/** The hooks of bezel/react: a page that loads a model and chats. */
export function react({ hooks }, source, options) {
    const { useModel, useChat } = hooks(React);
    const h = React.createElement;
    function App() {
        const [from, setFrom] = React.useState(source);
        const { model, progress, error } = useModel(from, options);
        const chat = useChat(model, { max_tokens: 5, seed: 2 });
        return h("main", { "data-state": error ? error.message : model ? (chat.answering ? "answering" : "ready") : progress ? "loading" : "none" },
            ...chat.messages.map(({ role, content }, i) => h("p", { key: i, className: role }, content)),
            h("button", { id: "ask", onClick: () => void chat.send("Tell me a story.") }, "Ask"),
            h("button", { id: "reset", onClick: chat.reset }, "Reset"),
            h("button", { id: "close", onClick: () => setFrom(null) }, "Close"));
    }
    createRoot(document.body.appendChild(document.createElement("div"))).render(h(React.StrictMode, null, h(App)));
}
