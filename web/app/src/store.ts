/** Persistent storage in IndexedDB: conversations, drafts, settings, documents, and the last model. */
import { upgrade, VERSION } from "./migrate.js";

export interface Conversation {
    id: string;
    title: string;
    /** The user set the title. */
    named: boolean;
    system: string;
    created: number;
    updated: number;
    /** Listed first. */
    pinned: boolean;
    /** The last message of the branch that is shown; null: there is none yet. */
    leaf: string | null;
}

/** "answering": being written; or interrupted, if no tab holds its lock. */
export type MessageState = "done" | "answering" | "stopped" | "interrupted" | "failed";

export interface Figures {
    promptTokens: number;
    answerTokens: number;
    tokensPerSecond: number;
    promptPerSecond: number;
    /** Tokens that were guessed, and of them those that were right; absent: there were none. */
    drafted?: number;
    accepted?: number;
}

export interface ToolUse {
    id: string;
    name: string;
    /** JSON, as the model wrote it. */
    arguments: string;
    /** Text from outside the conversation: shown as it is, and never trusted. */
    result: string;
    state: "running" | "done" | "failed" | "stopped";
}

/** A part of an answer that ended with calls of tools. */
export interface AnswerStep {
    content: string;
    thinking: string;
    calls: ToolUse[];
}

/** A piece of a document. */
export interface Passage {
    document: string;
    /** Name of the document. */
    name: string;
    /** From 1; null: the document has no pages. */
    page: number | null;
    text: string;
}

/** An image, a sound or a video of a message. */
export interface MediaItem {
    kind: "image" | "audio" | "video";
    name: string;
    blob: Blob;
    /** Of images and videos, in pixels. */
    width?: number;
    height?: number;
    /** Of sounds and videos. */
    seconds?: number;
}

/** Encoding progress of an image, a sound or a video. */
export interface EncodingProgress {
    kind: MediaItem["kind"];
    /** From 0, of `count`. */
    index: number;
    count: number;
    /** From 0 to 1. */
    fraction: number;
}

export interface Message {
    id: string;
    conversation: string;
    /** Position in its branch, from 0. */
    order: number;
    /** The message before it; null: the first one. Messages with the same one are versions of each other. */
    parent: string | null;
    role: "user" | "assistant";
    content: string;
    thinking: string;
    state: MessageState;
    /** The limit that ended it; null: the model ended it. */
    note: "length" | "context" | null;
    error: { code: string; message: string } | null;
    figures: Figures | null;
    created: number;
    /** Attachments; user messages only. */
    media?: MediaItem[];
    /** What the user should know about the request, as about media or turns that were left out; answers only. */
    notices?: string[];
    /** Calls of tools before the answer; answers only. */
    steps?: AnswerStep[];
    /** Passages of the user's documents that the question is sent with; user messages only. */
    passages?: Passage[];
    /** Names of tools that are on for this question, besides those of the settings; user messages only. */
    tools?: string[];
    /** The first message that the model saw, if older ones did not fit into its context; answers only. */
    from?: string;
    /** Not stored. */
    encoding?: EncodingProgress | undefined;
    /** A diffusion model's current canvas; not stored. */
    canvas?: Canvas | undefined;
    /** While answering; not stored. */
    pace?: Pace | undefined;
}

/** How fast an answer is written. */
export interface Pace {
    /** Pieces so far; nearly always tokens. */
    tokens: number;
    tokensPerSecond: number;
    /** Share of the context that is used, from 0 to 1. */
    context: number;
}

export interface Canvas {
    text: string;
    /** From 0 to 1: share of the denoising steps that are done. */
    fraction: number;
}

/** A document of the shelf. */
export interface StoredDocument {
    id: string;
    name: string;
    added: number;
    /** null: it has none. */
    pages: number | null;
    characters: number;
}

/** The passages of a document, whose id is the key. */
export interface StoredPassages {
    document: string;
    passages: Passage[];
    /** The model that made the vectors, and one vector of length 1 per passage; null: there are none. */
    model: string | null;
    vectors: Float32Array[] | null;
}

/** An unsent message. */
export interface Draft {
    text: string;
    media: MediaItem[];
}

export interface Settings {
    temperature: number;
    topK: number;
    topP: number;
    /** null: random for each answer */
    seed: number | null;
    /** 0: no limit */
    maxTokens: number;
    think: boolean;
    /** System prompt for new conversations. */
    system: string;
    /** 0: automatic */
    contextLength: number;
    device: "auto" | "gpu" | "gpu-baseline" | "cpu";
    /** How the conversation is kept in memory: q8 takes half of f16's, q4 a quarter. */
    cache: "f16" | "q8" | "q4";
    /** Names of the tools that the model may call. */
    tools: string[];
    /** Questions are sent with passages of the documents. */
    documents: boolean;
}

/** Google's recommendation for Gemma 4. */
export const defaultSettings: Settings = {
    temperature: 1,
    topK: 64,
    topP: 0.95,
    seed: null,
    maxTokens: 0,
    think: false,
    system: "",
    contextLength: 0,
    device: "auto",
    cache: "f16",
    tools: [],
    documents: true,
};

/** Keys of a draft's text and media in the store "values". */
const draftKeys = (conversation: string): [string, string] => [`draft-text-${conversation}`, `draft-media-${conversation}`];

/** The order of the list. */
export const byAge = (a: Conversation, b: Conversation): number => Number(b.pinned) - Number(a.pinned) || b.updated - a.updated;

function result<T>(request: IDBRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error ?? new Error("the browser's storage failed"));
    });
}

export class Store {
    readonly #db: IDBDatabase;

    private constructor(db: IDBDatabase) {
        this.#db = db;
    }

    /** `onBlocked`: called if a tab with an older page has to be closed first. */
    static async open(onBlocked: () => void = () => undefined): Promise<Store> {
        const request = indexedDB.open("bezel-chat", VERSION);
        request.onupgradeneeded = ({ oldVersion }) => {
            if (request.transaction) {
                upgrade(request.result, request.transaction, oldVersion);
            }
        };
        request.onblocked = onBlocked;
        const db = await result(request);
        db.onversionchange = () => db.close(); // a newer page: this one can no longer store, and says so
        return new Store(db);
    }

    #change(stores: string[], act: (transaction: IDBTransaction) => void): Promise<void> {
        return new Promise((resolve, reject) => {
            const transaction = this.#db.transaction(stores, "readwrite");
            transaction.oncomplete = () => resolve();
            transaction.onabort = () => reject(transaction.error ?? new Error("the browser's storage failed"));
            act(transaction);
        });
    }

    // ---- conversations ------------------------------------------------------------------------

    /** Pinned ones first, then newest first. */
    async conversations(): Promise<Conversation[]> {
        const all = await result<Conversation[]>(this.#db.transaction("conversations").objectStore("conversations").getAll());
        return all.sort(byAge);
    }

    putConversation(conversation: Conversation): Promise<void> {
        return this.#change(["conversations"], (t) => t.objectStore("conversations").put(conversation));
    }

    async deleteConversation(id: string): Promise<void> {
        const messages = await this.messages(id);
        await this.#change(["conversations", "messages", "values"], (t) => {
            t.objectStore("conversations").delete(id);
            draftKeys(id).forEach((key) => t.objectStore("values").delete(key));
            messages.forEach((message) => t.objectStore("messages").delete(message.id));
        });
    }

    // ---- messages -----------------------------------------------------------------------------

    /** Of all branches; earlier positions first. */
    async messages(conversation: string): Promise<Message[]> {
        const index = this.#db.transaction("messages").objectStore("messages").index("conversation");
        const all = await result<Message[]>(index.getAll(conversation));
        return all.sort((a, b) => a.order - b.order || a.created - b.created);
    }

    /** Calls `see` with every message of every conversation; false ends it. */
    async eachMessage(see: (message: Message) => boolean): Promise<void> {
        const request = this.#db.transaction("messages").objectStore("messages").openCursor();
        await new Promise<void>((resolve, reject) => {
            request.onerror = () => reject(request.error ?? new Error("the browser's storage failed"));
            request.onsuccess = () => {
                const { result: cursor } = request;
                if (cursor && see(cursor.value as Message)) {
                    cursor.continue();
                } else {
                    resolve();
                }
            };
        });
    }

    /** Stores whole conversations at once, or none of them. */
    putAll(conversations: Conversation[], messages: Message[]): Promise<void> {
        return this.#change(["conversations", "messages"], (t) => {
            conversations.forEach((one) => t.objectStore("conversations").put(one));
            messages.forEach((one) => t.objectStore("messages").put(one));
        });
    }

    message(id: string): Promise<Message | undefined> {
        return result<Message | undefined>(this.#db.transaction("messages").objectStore("messages").get(id));
    }

    putMessages(messages: Message[]): Promise<void> {
        return this.#change(["messages"], (t) => messages.forEach(({ canvas: _, encoding: __, pace: ___, ...message }) => t.objectStore("messages").put(message)));
    }

    deleteMessages(ids: string[]): Promise<void> {
        return this.#change(["messages"], (t) => ids.forEach((id) => t.objectStore("messages").delete(id)));
    }

    // ---- drafts ---------------------------------------------------------------------------------

    /** The draft of a conversation; "": of a new one. */
    async draft(conversation: string): Promise<Draft> {
        const [text, media] = await Promise.all(draftKeys(conversation).map((key) => this.value(key)));
        return { text: (text as string | undefined) ?? "", media: (media as MediaItem[] | undefined) ?? [] };
    }

    /** Text and media have separate keys, so that typing does not store the media again. Empty values are deleted. */
    setDraft<K extends keyof Draft>(conversation: string, part: K, value: Draft[K]): Promise<void> {
        const key = draftKeys(conversation)[part === "text" ? 0 : 1];
        return this.#change(["values"], (t) => {
            const values = t.objectStore("values");
            if (value.length > 0) {
                values.put(value, key);
            } else {
                values.delete(key);
            }
        });
    }

    // ---- documents ------------------------------------------------------------------------------

    documents(): Promise<StoredDocument[]> {
        return result<StoredDocument[]>(this.#db.transaction("documents").objectStore("documents").getAll());
    }

    passages(document: string): Promise<StoredPassages | undefined> {
        return result<StoredPassages | undefined>(this.#db.transaction("passages").objectStore("passages").get(document));
    }

    putDocument(document: StoredDocument, passages: StoredPassages): Promise<void> {
        return this.#change(["documents", "passages"], (t) => {
            t.objectStore("documents").put(document);
            t.objectStore("passages").put(passages);
        });
    }

    deleteDocument(id: string): Promise<void> {
        return this.#change(["documents", "passages"], (t) => {
            t.objectStore("documents").delete(id);
            t.objectStore("passages").delete(id);
        });
    }

    // ---- single values --------------------------------------------------------------------------

    async value<T>(name: string): Promise<T | undefined> {
        return result<T | undefined>(this.#db.transaction("values").objectStore("values").get(name));
    }

    setValue(name: string, value: unknown): Promise<void> {
        return this.#change(["values"], (t) => t.objectStore("values").put(value, name));
    }

    async settings(): Promise<Settings> {
        return { ...defaultSettings, ...(await this.value<Partial<Settings>>("settings")) };
    }
}
