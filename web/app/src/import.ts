/** Reads an exported file. It may come from anywhere, so every field is checked, and only known ones are taken. No DOM
 * here. */
import { FORMAT, FORMAT_VERSION } from "./backup_types.js";
import { newId } from "./new_id.js";
import type { AnswerStep, Conversation, Figures, MediaItem, Message, MessageState, Passage, ToolUse } from "./store.js";

const MAX_BYTES = 500e6;
const MAX_TEXT = 10_000_000;

type Fields = Record<string, unknown>;

class Refusal extends Error {}

function fields(value: unknown, what: string): Fields {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw new Refusal(`${what} is not an object`);
    }
    return value as Fields;
}

function list(value: unknown, what: string, optional = false): unknown[] {
    if (optional && value === undefined) {
        return [];
    }
    if (!Array.isArray(value)) {
        throw new Refusal(`${what} is not a list`);
    }
    return value;
}

function text(value: unknown, what: string, max = MAX_TEXT): string {
    if (typeof value !== "string" || value.length > max) {
        throw new Refusal(`${what} is not a text of at most ${max} characters`);
    }
    return value;
}

function number(value: unknown, what: string): number {
    if (typeof value !== "number" || !Number.isFinite(value)) {
        throw new Refusal(`${what} is not a number`);
    }
    return value;
}

function oneOf<T extends string>(value: unknown, values: readonly T[], what: string): T {
    const found = values.find((one) => one === value);
    if (found === undefined) {
        throw new Refusal(`${what} is not one of ${values.join(", ")}`);
    }
    return found;
}

const optional = <T>(value: unknown, read: (value: unknown) => T): T | null => (value === null || value === undefined ? null : read(value));

async function readMedia(value: unknown): Promise<MediaItem> {
    const media = fields(value, "an attachment");
    const kind = oneOf(media["kind"], ["image", "audio", "video"] as const, "the kind of an attachment");
    const data = text(media["data"], "the data of an attachment", 200e6);
    const match = /^data:((?:image|audio|video)\/[\w.+-]+|application\/octet-stream);base64,([A-Za-z0-9+/]*={0,2})$/.exec(data);
    if (!match) {
        throw new Refusal("an attachment is not an image, sound or video");
    }
    const bytes = Uint8Array.from(atob(match[2] ?? ""), (c) => c.charCodeAt(0));
    const size = (name: string): object => (typeof media[name] === "number" ? { [name]: number(media[name], name) } : {});
    return { kind, name: text(media["name"], "the name of an attachment", 1000), blob: new Blob([bytes], { type: match[1] ?? "" }), ...size("width"), ...size("height"), ...size("seconds") };
}

function readCall(value: unknown): ToolUse {
    const call = fields(value, "a call");
    return {
        id: text(call["id"], "the id of a call", 200),
        name: text(call["name"], "the name of a tool", 200),
        arguments: text(call["arguments"], "the arguments of a call"),
        result: text(call["result"], "the result of a call"),
        state: oneOf(call["state"], ["running", "done", "failed", "stopped"] as const, "the state of a call"),
    };
}

function readStep(value: unknown): AnswerStep {
    const step = fields(value, "a step");
    return { content: text(step["content"], "a step"), thinking: text(step["thinking"], "thoughts"), calls: list(step["calls"], "the calls").map(readCall) };
}

function readPassage(value: unknown): Passage {
    const passage = fields(value, "a passage");
    return {
        document: text(passage["document"], "a document", 200),
        name: text(passage["name"], "the name of a document", 1000),
        page: optional(passage["page"], (page) => number(page, "a page")),
        text: text(passage["text"], "a passage"),
    };
}

function readFigures(value: unknown): Figures {
    const figures = fields(value, "figures");
    const get = (name: keyof Figures): number => number(figures[name], name);
    return {
        promptTokens: get("promptTokens"),
        answerTokens: get("answerTokens"),
        tokensPerSecond: get("tokensPerSecond"),
        promptPerSecond: get("promptPerSecond"),
        ...(figures["drafted"] !== undefined && { drafted: get("drafted"), accepted: get("accepted") }),
    };
}

const states: readonly MessageState[] = ["done", "answering", "stopped", "interrupted", "failed"];

async function readMessage(value: unknown, conversation: string): Promise<Message> {
    const message = fields(value, "a message");
    const role = oneOf(message["role"], ["user", "assistant"] as const, "the role of a message");
    const state = oneOf(message["state"], states, "the state of a message");
    const media = await Promise.all(list(message["media"], "the attachments", true).map(readMedia));
    const notices = list(message["notices"], "the notices", true).map((notice) => text(notice, "a notice", 2000));
    const steps = list(message["steps"], "the steps", true).map(readStep);
    const passages = list(message["passages"], "the passages", true).map(readPassage);
    const tools = list(message["tools"], "the tools", true).map((name) => text(name, "the name of a tool", 200));
    const from = optional(message["from"], (id) => text(id, "the first message", 200));
    return {
        id: text(message["id"], "the id of a message", 200),
        conversation,
        order: number(message["order"], "the position of a message"),
        parent: optional(message["parent"], (id) => text(id, "the message before", 200)),
        role,
        content: text(message["content"], "a message"),
        thinking: text(message["thinking"], "thoughts"),
        state: state === "answering" ? "interrupted" : state,
        note: optional(message["note"], (note) => oneOf(note, ["length", "context"] as const, "a note")),
        error: optional(message["error"], (error) => {
            const { code, message: why } = fields(error, "an error");
            return { code: text(code, "a code", 100), message: text(why, "an error", 5000) };
        }),
        figures: optional(message["figures"], readFigures),
        created: number(message["created"], "the time of a message"),
        ...(media.length > 0 && { media }),
        ...(notices.length > 0 && { notices }),
        ...(steps.length > 0 && { steps }),
        ...(passages.length > 0 && { passages }),
        ...(tools.length > 0 && { tools }),
        ...(from !== null && { from }),
    };
}

export interface Imported {
    conversation: Conversation;
    messages: Message[];
}

async function readConversation(value: unknown): Promise<Imported> {
    const one = fields(value, "a conversation");
    const id = text(one["id"], "the id of a conversation", 200);
    const messages = await Promise.all(list(one["messages"], "the messages").map((message) => readMessage(message, id)));
    const known = new Set(messages.map((message) => message.id));
    if (known.size < messages.length || messages.some(({ parent }) => parent !== null && !known.has(parent))) {
        throw new Refusal("its messages do not fit together");
    }
    const leaf = optional(one["leaf"], (last) => text(last, "the last message", 200));
    const conversation: Conversation = {
        id,
        title: text(one["title"], "a title", 1000),
        named: one["named"] === true,
        system: text(one["system"], "the system prompt"),
        created: number(one["created"], "the time of a conversation"),
        updated: number(one["updated"], "the time of a conversation"),
        pinned: one["pinned"] === true,
        leaf: leaf !== null && known.has(leaf) ? leaf : null,
    };
    return { conversation, messages };
}

/** The conversations of an exported file; rejects with a sentence for the user. */
export async function readBackup(file: File): Promise<Imported[]> {
    try {
        if (file.size > MAX_BYTES) {
            throw new Refusal(`it is larger than ${MAX_BYTES / 1e6} MB`);
        }
        const backup = fields(JSON.parse(await file.text()), "it");
        if (backup["format"] !== FORMAT) {
            throw new Refusal("it was not exported by Bezel");
        }
        const version = number(backup["version"], "its version");
        if (version > FORMAT_VERSION || version < 1) {
            throw new Refusal(`it has version ${version}, and this page reads up to ${FORMAT_VERSION}: reload the page to get a newer one`);
        }
        return await Promise.all(list(backup["conversations"], "the list of conversations").map(readConversation));
    } catch (reason) {
        const why = reason instanceof Refusal ? reason.message : reason instanceof SyntaxError ? "it is not JSON" : "it could not be read";
        throw new Error(`${file.name} cannot be imported: ${why}.`, { cause: reason });
    }
}

/** The same conversation with new ids for its messages, so that it replaces no other. */
export function withNewIds({ conversation, messages }: Imported, id: string): Imported {
    const ids = new Map(messages.map(({ id }) => [id, newId()]));
    const renamed = (id: string | null): string | null => (id === null ? null : (ids.get(id) ?? null));
    return {
        conversation: { ...conversation, id, leaf: renamed(conversation.leaf) },
        messages: messages.map(({ from, ...message }) => {
            const start = renamed(from ?? null);
            return { ...message, id: renamed(message.id) ?? newId(), conversation: id, parent: renamed(message.parent), ...(start !== null && { from: start }) };
        }),
    };
}
