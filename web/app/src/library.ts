/** All conversations together: search, export, import. No DOM rendering here. */
import type { Chat } from "./chat.js";
import { fileName, toJson, toMarkdown } from "./export.js";
import { readBackup, withNewIds } from "./import.js";
import { newId } from "./new_id.js";
import type { Conversation, Message, Store } from "./store.js";

/** Characters around a hit. */
const AROUND = 40;
/** A search ends after this many conversations. */
const MAX_FOUND = 100;

export interface Hit {
    conversation: string;
    message: string;
    /** The text around the hit. */
    before: string;
    hit: string;
    after: string;
}

export interface TextFile {
    name: string;
    type: string;
    text: string;
}

const textsOf = ({ content, steps = [] }: Message): string[] => [content, ...steps.map((step) => step.content)];

export class Library {
    readonly #chat: Chat;
    readonly #store: Store;

    constructor(chat: Chat, store: Store) {
        this.#chat = chat;
        this.#store = store;
    }

    /** The first hit of each conversation with these words in one message, whatever their case. */
    async search(query: string): Promise<Map<string, Hit>> {
        const wanted = query.trim().toLowerCase();
        const hits = new Map<string, Hit>();
        if (wanted === "") {
            return hits;
        }
        await this.#store.eachMessage((message) => {
            for (const text of hits.has(message.conversation) ? [] : textsOf(message)) {
                const at = text.toLowerCase().indexOf(wanted);
                if (at >= 0) {
                    const end = at + wanted.length;
                    const clean = (part: string): string => part.replace(/\s+/g, " ");
                    const before = clean(text.slice(Math.max(0, at - AROUND), at));
                    hits.set(message.conversation, {
                        conversation: message.conversation,
                        message: message.id,
                        before: at > AROUND ? `\u2026${before}` : before,
                        hit: clean(text.slice(at, end)),
                        after: clean(text.slice(end, end + AROUND)),
                    });
                    break;
                }
            }
            return hits.size < MAX_FOUND;
        });
        return hits;
    }

    async exportAll(): Promise<TextFile> {
        const all = await Promise.all(this.#chat.conversations.value.map(async (conversation) => ({ conversation, messages: await this.#store.messages(conversation.id) })));
        const day = new Date().toISOString().slice(0, 10);
        return { name: `bezel-conversations-${day}.json`, type: "application/json", text: await toJson(all) };
    }

    async exportOne(conversation: Conversation, kind: "json" | "markdown"): Promise<TextFile> {
        const messages = await this.#store.messages(conversation.id);
        return kind === "json"
            ? { name: fileName(conversation.title, "json"), type: "application/json", text: await toJson([{ conversation, messages }]) }
            : { name: fileName(conversation.title, "md"), type: "text/markdown", text: toMarkdown(conversation, messages) };
    }

    /** Adds the conversations of a file. Those that are here already are left out; changed ones are added as copies.
     * Rejects with a sentence for the user. */
    async import(file: File): Promise<{ added: number; known: number }> {
        const imported = await readBackup(file);
        const here = new Map(this.#chat.conversations.value.map((one) => [one.id, one]));
        const fresh = imported.filter(({ conversation: { id, updated } }) => here.get(id)?.updated !== updated);
        const added = fresh.map((one) => withNewIds(one, here.has(one.conversation.id) ? newId() : one.conversation.id));
        await this.#store.putAll(added.map(({ conversation }) => conversation), added.flatMap(({ messages }) => messages));
        await this.#chat.refresh();
        return { added: added.length, known: imported.length - added.length };
    }
}
