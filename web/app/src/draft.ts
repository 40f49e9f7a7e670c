/** Drafts: the unsent text and attachments of each conversation, stored so that they survive reloads, crashes and
 * switching conversations. No DOM rendering here. */
import type { Attachments } from "./attach.js";
import type { Chat } from "./chat.js";
import type { Draft, MediaItem, Store } from "./store.js";

const SAVE_DELAY_MS = 250;

const emptyDraft: Draft = { text: "", media: [] };

export class Drafts {
    readonly #store: Store;
    readonly #attachments: Attachments;
    readonly #field: HTMLTextAreaElement;
    /** Id of the conversation; "": a new one; null: not known yet. */
    #conversation: string | null = null;
    /** Attachments that are not stored yet. */
    #unsaved: MediaItem[] | null = null;
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** A stored draft is being restored and must not be saved again. */
    #restoring = false;

    constructor(store: Store, chat: Chat, attachments: Attachments, field: HTMLTextAreaElement) {
        this.#store = store;
        this.#attachments = attachments;
        this.#field = field;
        field.addEventListener("input", () => this.#save("text", field.value));
        attachments.items.watch((items) => this.#saveSoon(items));
        chat.onConversationCreated = (id) => this.#move(id);
        chat.current.watch((conversation) => void this.#open(conversation?.id ?? ""));
    }

    async #open(id: string): Promise<void> {
        if (id === this.#conversation) {
            return;
        }
        this.#saveNow();
        this.#conversation = id;
        this.#restore(emptyDraft);
        const stored = await this.#store.draft(id).catch(() => emptyDraft);
        const untouched = this.#field.value === "" && this.#attachments.items.value.length === 0;
        if (id === this.#conversation && untouched) {
            this.#restore(stored);
        }
    }

    /** A new conversation got its id: the remaining draft now belongs to it. */
    #move(id: string): void {
        clearTimeout(this.#timer);
        this.#unsaved = null;
        this.#save("text", "");
        this.#save("media", []);
        this.#conversation = id;
        this.#save("text", this.#field.value);
        this.#save("media", this.#attachments.items.value);
    }

    #restore({ text, media }: Draft): void {
        this.#restoring = true;
        this.#field.value = text;
        this.#field.dispatchEvent(new Event("input")); // adapts the field's height
        this.#attachments.note.set(null);
        this.#attachments.items.set(media);
        this.#restoring = false;
    }

    /** Delayed, so that files that are added together are saved once. Removal of all is saved at once. */
    #saveSoon(items: MediaItem[]): void {
        clearTimeout(this.#timer);
        this.#unsaved = null;
        if (!this.#restoring && this.#conversation !== null) {
            this.#unsaved = items;
            this.#timer = setTimeout(() => this.#saveNow(), items.length > 0 ? SAVE_DELAY_MS : 0);
        }
    }

    #saveNow(): void {
        clearTimeout(this.#timer);
        if (this.#unsaved) {
            this.#save("media", this.#unsaved);
            this.#unsaved = null;
        }
    }

    /** Saves immediately: a reload would lose it otherwise. Storage errors are reported when the message is sent. */
    #save<K extends keyof Draft>(part: K, value: Draft[K]): void {
        if (!this.#restoring && this.#conversation !== null) {
            this.#store.setDraft(this.#conversation, part, value).catch(() => undefined);
        }
    }
}
