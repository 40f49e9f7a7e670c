/** Persistent storage in IndexedDB: conversations, drafts, settings, and the last model. */

export interface Conversation {
    id: string;
    title: string;
    /** The user set the title. */
    named: boolean;
    system: string;
    created: number;
    updated: number;
}

/** "answering": being written; or interrupted, if no tab holds its lock. */
export type MessageState = "done" | "answering" | "stopped" | "interrupted" | "failed";

export interface Figures {
    promptTokens: number;
    answerTokens: number;
    tokensPerSecond: number;
    promptPerSecond: number;
}

/** An image or sound of a message. */
export interface MediaItem {
    kind: "image" | "audio";
    name: string;
    blob: Blob;
    /** Image only, in pixels. */
    width?: number;
    height?: number;
    /** Sound only. */
    seconds?: number;
}

/** Encoding progress of an image or sound. */
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
    /** Position in the conversation. */
    order: number;
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
    /** The engine's notices about them; answers only. */
    notices?: string[];
    /** Not stored. */
    encoding?: EncodingProgress | undefined;
    /** A diffusion model's current canvas; not stored. */
    canvas?: Canvas | undefined;
}

export interface Canvas {
    text: string;
    /** From 0 to 1: share of the denoising steps that are done. */
    fraction: number;
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
};

const VERSION = 1;

/** Keys of a draft's text and media in the store "values". */
const draftKeys = (conversation: string): [string, string] => [`draft-text-${conversation}`, `draft-media-${conversation}`];

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

    static async open(): Promise<Store> {
        const request = indexedDB.open("bezel-chat", VERSION);
        request.onupgradeneeded = () => {
            const db = request.result;
            db.createObjectStore("conversations", { keyPath: "id" });
            db.createObjectStore("messages", { keyPath: "id" }).createIndex("conversation", "conversation");
            db.createObjectStore("values");
        };
        return new Store(await result(request));
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

    /** Newest first. */
    async conversations(): Promise<Conversation[]> {
        const all = await result<Conversation[]>(this.#db.transaction("conversations").objectStore("conversations").getAll());
        return all.sort((a, b) => b.updated - a.updated);
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

    /** In order. */
    async messages(conversation: string): Promise<Message[]> {
        const index = this.#db.transaction("messages").objectStore("messages").index("conversation");
        const all = await result<Message[]>(index.getAll(conversation));
        return all.sort((a, b) => a.order - b.order);
    }

    message(id: string): Promise<Message | undefined> {
        return result<Message | undefined>(this.#db.transaction("messages").objectStore("messages").get(id));
    }

    putMessages(messages: Message[]): Promise<void> {
        return this.#change(["messages"], (t) => messages.forEach(({ canvas: _, encoding: __, ...message }) => t.objectStore("messages").put(message)));
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
