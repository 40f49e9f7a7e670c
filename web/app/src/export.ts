/** Conversations as JSON (everything, to be imported again) and as Markdown (one branch, to be read). No DOM here. */
import { FORMAT, FORMAT_VERSION, type Backup, type WrittenConversation, type WrittenMedia } from "./backup_types.js";
import { sourceOf } from "./citation.js";
import type { Conversation, MediaItem, Message } from "./store.js";
import { MessageTree } from "./tree.js";

async function dataUrl(blob: Blob): Promise<string> {
    const bytes = new Uint8Array(await blob.arrayBuffer());
    const parts: string[] = [];
    for (let i = 0; i < bytes.length; i += 0x8000) {
        parts.push(String.fromCharCode(...bytes.subarray(i, i + 0x8000)));
    }
    return `data:${blob.type || "application/octet-stream"};base64,${btoa(parts.join(""))}`;
}

async function writtenMedia({ blob, ...item }: MediaItem): Promise<WrittenMedia> {
    return { ...item, data: await dataUrl(blob) };
}

async function written(conversation: Conversation, messages: Message[]): Promise<WrittenConversation> {
    const all = messages.map(async ({ media, conversation: _, canvas: __, encoding: ___, pace: ____, ...message }) => ({
        ...message,
        ...(media && { media: await Promise.all(media.map(writtenMedia)) }),
    }));
    return { ...conversation, messages: await Promise.all(all) };
}

export async function toJson(conversations: { conversation: Conversation; messages: Message[] }[]): Promise<string> {
    const hasVideo = conversations.some(({ messages }) => messages.some(({ media = [] }) => media.some(({ kind }) => kind === "video")));
    const backup: Backup = {
        format: FORMAT,
        version: hasVideo ? FORMAT_VERSION : 1, // as old as possible, so that older pages open it
        exported: new Date().toISOString(),
        conversations: await Promise.all(conversations.map(({ conversation, messages }) => written(conversation, messages))),
    };
    return JSON.stringify(backup, null, 1);
}

/** A fence that the text does not contain. */
function fenced(text: string, language = ""): string {
    const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
    const fence = "`".repeat(longest + 1);
    return `${fence}${language}\n${text}\n${fence}`;
}

function messageText({ role, content, media = [], steps = [], passages = [] }: Message): string {
    const attached = media.map(({ kind, name }) => `*${{ image: "Image", audio: "Sound", video: "Video" }[kind]}: ${name.replace(/[*_`[\]<>]/g, "")}*`);
    const calls = steps.flatMap((step) => [
        ...(step.content.trim() ? [step.content] : []),
        ...step.calls.map((call) => `*Tool: ${call.name}*\n\n${fenced(call.arguments, "json")}\n\n${fenced(call.result)}`),
    ]);
    const sources = passages.map((passage, i) => `> [${i + 1}] ${sourceOf(passage)}`);
    return [`## ${role === "user" ? "You" : "Answer"}`, ...attached, ...calls, content, ...(sources.length > 0 ? [sources.join("\n")] : [])].join("\n\n");
}

/** The branch that is shown. */
export function toMarkdown(conversation: Conversation, messages: Message[]): string {
    const tree = new MessageTree(messages);
    const path = tree.pathTo(tree.get(conversation.leaf) ? conversation.leaf : tree.newestLeaf(null));
    const system = conversation.system.trim() ? [`> ${conversation.system.trim().replaceAll("\n", "\n> ")}`] : [];
    return `${[`# ${conversation.title}`, ...system, ...path.map(messageText)].join("\n\n")}\n`;
}

/** A file name from a title. */
export function fileName(title: string, extension: string): string {
    const safe = title.replace(/[^\p{L}\p{N} _-]/gu, "").trim().replace(/\s+/g, "-").slice(0, 60);
    return `${safe || "conversation"}.${extension}`;
}
