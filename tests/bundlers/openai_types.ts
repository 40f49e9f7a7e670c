/** Requests and answers typed by the package `openai`, given to this one and taken from it; compiled, never run. */
import type { BezelModel } from "bezel";
import { hooks } from "bezel/react";
import type OpenAI from "openai";
import * as React from "react";

type Params = OpenAI.Chat.ChatCompletionCreateParams;

export async function ask(model: BezelModel, params: OpenAI.Chat.ChatCompletionCreateParamsNonStreaming): Promise<OpenAI.Chat.ChatCompletion> {
    return model.chat.completions.create(params);
}

export async function* stream(model: BezelModel, params: OpenAI.Chat.ChatCompletionCreateParamsStreaming): AsyncGenerator<OpenAI.Chat.ChatCompletionChunk> {
    for await (const chunk of await model.chat.completions.create(params)) {
        yield chunk;
    }
}

export async function talk(model: BezelModel, messages: OpenAI.Chat.ChatCompletionMessageParam[], tools: OpenAI.Chat.ChatCompletionTool[], choice: Params["tool_choice"]): Promise<void> {
    const { choices } = await model.chat.completions.create({ messages, tools, ...(choice && { tool_choice: choice }) });
    messages.push(choices[0].message);
}

export async function vectors(model: BezelModel, params: OpenAI.EmbeddingCreateParams): Promise<number> {
    return (await model.embeddings.create(params)).usage.total_tokens;
}

export function client(model: BezelModel, make: typeof OpenAI): OpenAI {
    return new make({ baseURL: "http://bezel.example/v1", apiKey: "none", fetch: model.fetch });
}

export const { useModel, useChat } = hooks(React);
