/** The request that a branch of a conversation is answered with. No DOM here. */
import type { ChatMessage, ContentPart, StreamRequest, Tool } from "./bezel.js";
import { promptWithPassages } from "./citation.js";
import type { AnswerStep, Conversation, MediaItem, Message, Settings } from "./store.js";

const plural = { image: "images", audio: "sounds", video: "videos" };

/** Notice about images, sounds and videos that the model does not accept; null: there are none. */
export function omittedNotice(messages: Message[], takes: (item: MediaItem) => boolean, model: string): string | null {
    const kinds = new Set(messages.flatMap(({ media = [] }) => media.filter((item) => !takes(item)).map(({ kind }) => plural[kind])));
    return kinds.size > 0 ? `${model} takes no ${[...kinds].join(" and no ")}: those in earlier messages are omitted.` : null;
}

/** Frames of a video, as the models were trained; fewer if they would take more than half of the context. */
const MAX_FRAMES = 32;
const FRAME_TOKENS = 80;

function framesFor(contextLength: number): number {
    return Math.max(1, Math.min(MAX_FRAMES, Math.floor(contextLength / 2 / FRAME_TOKENS)));
}

function partOf({ kind, blob }: MediaItem, contextLength: number): ContentPart {
    switch (kind) {
        case "image":
            return { type: "image_url", image_url: { url: blob } };
        case "audio":
            return { type: "input_audio", input_audio: { data: blob } };
        case "video":
            return { type: "video_url", video_url: { url: blob, frames: framesFor(contextLength) } };
    }
}

/** Media before text, as in Gemma's training. */
function contentOf(text: string, media: MediaItem[], contextLength: number): string | ContentPart[] {
    if (media.length === 0) {
        return text || "\u2026";
    }
    const parts = media.map((item) => partOf(item, contextLength));
    return text.trim() ? [...parts, { type: "text", text }] : parts;
}

/** The arguments of a call as the engine takes them back: an object. Broken ones are told by the call's result. */
function objectText(text: string): string {
    try {
        const value: unknown = JSON.parse(text);
        return typeof value === "object" && value !== null && !Array.isArray(value) ? text : "{}";
    } catch {
        return "{}";
    }
}

function stepMessages({ content, thinking, calls }: AnswerStep, current: boolean): ChatMessage[] {
    return [
        {
            role: "assistant",
            content,
            ...(current && thinking ? { reasoning_content: thinking } : {}),
            tool_calls: calls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: objectText(call.arguments) } })),
        },
        ...calls.map((call): ChatMessage => ({ role: "tool", tool_call_id: call.id, name: call.name, content: call.result || "The call was stopped." })),
    ];
}

export interface RequestParts {
    conversation: Conversation;
    settings: Settings;
    /** The messages that the model sees, the unfinished answer last. */
    messages: Message[];
    /** Which media the model takes; those of the last question are always sent. */
    takes: (item: MediaItem) => boolean;
    tools: Tool[];
    /** Of the model, in tokens. */
    contextLength: number;
    /** The text of the last answer is continued. */
    resume: boolean;
}

export function buildRequest({ conversation, settings, messages, takes, tools, contextLength, resume }: RequestParts): StreamRequest {
    const { temperature, topK, topP, seed, maxTokens, think } = settings;
    const system = conversation.system.trim();
    const question = messages.findLastIndex(({ role }) => role === "user");
    const told = messages.flatMap((message, i): ChatMessage[] => {
        const { role, content, media = [], passages = [], steps = [] } = message;
        if (role === "user") {
            return [{ role, content: contentOf(promptWithPassages(content, passages), i < question ? media.filter(takes) : media, contextLength) }];
        }
        return [...steps.flatMap((step) => stepMessages(step, i > question)), ...(content !== "" ? [{ role, content }] : [])];
    });
    return {
        messages: [...(system ? [{ role: "system" as const, content: system }] : []), ...told],
        stream: true,
        context_shift: false, // answer.ts leaves out turns: it also goes on with an answer that fills the context
        temperature,
        top_k: topK,
        top_p: topP,
        think,
        ...(tools.length > 0 ? { tools } : {}),
        ...(seed === null ? {} : { seed }),
        ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
        ...(resume ? { continue_final_message: true } : {}),
    };
}
