/** What is written and attached but not yet sent: kept for each conversation, so that a reload, a crash or a look at
 * another conversation costs no words. Nothing here draws. */
import type { Attachments } from "./attach.js";
import type { Chat } from "./chat.js";
import type { Draft, MediaItem, Store } from "./store.js";

/** Milliseconds. */
const SOON = 250;

const nothing: Draft = { text: "", media: [] };

export class Drafts {
    readonly #store: Store;
    readonly #attachments: Attachments;
    readonly #field: HTMLTextAreaElement;
    /** Of which conversation; "": a new one. null: not yet known. */
    #of: string | null = null;
    /** Attached, and not yet stored. */
    #waiting: MediaItem[] | null = null;
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** What is stored is being put back, which is not to be stored again. */
    #restoring = false;

    constructor(store: Store, chat: Chat, attachments: Attachments, field: HTMLTextAreaElement) {
        this.#store = store;
        this.#attachments = attachments;
        this.#field = field;
        field.addEventListener("input", () => this.#keep("text", field.value));
        attachments.items.watch((items) => this.#keepSoon(items));
        chat.onBegun = (id) => this.#move(id);
        chat.current.watch((conversation) => void this.#open(conversation?.id ?? ""));
    }

    async #open(id: string): Promise<void> {
        if (id === this.#of) {
            return;
        }
        this.#keepNow();
        this.#of = id;
        this.#put(nothing);
        const kept = await this.#store.draft(id).catch(() => nothing);
        const untouched = this.#field.value === "" && this.#attachments.items.value.length === 0;
        if (id === this.#of && untouched) {
            this.#put(kept);
        }
    }

    /** The conversation has begun: what was not sent with its first message belongs to it. */
    #move(id: string): void {
        clearTimeout(this.#timer);
        this.#waiting = null;
        this.#keep("text", "");
        this.#keep("media", []);
        this.#of = id;
        this.#keep("text", this.#field.value);
        this.#keep("media", this.#attachments.items.value);
    }

    #put({ text, media }: Draft): void {
        this.#restoring = true;
        this.#field.value = text;
        this.#field.dispatchEvent(new Event("input")); // it fits its height to it
        this.#attachments.note.set(null);
        this.#attachments.items.set(media);
        this.#restoring = false;
    }

    /** Of many files that come together, each would be stored with all before it: they are stored once. That they are
     * gone is stored at once. */
    #keepSoon(items: MediaItem[]): void {
        clearTimeout(this.#timer);
        this.#waiting = null;
        if (!this.#restoring && this.#of !== null) {
            this.#waiting = items;
            this.#timer = setTimeout(() => this.#keepNow(), items.length > 0 ? SOON : 0);
        }
    }

    #keepNow(): void {
        clearTimeout(this.#timer);
        if (this.#waiting) {
            this.#keep("media", this.#waiting);
            this.#waiting = null;
        }
    }

    /** At once: what waits is what a reload takes away. That it fails, as where there is no room, is told with the message. */
    #keep<K extends keyof Draft>(part: K, value: Draft[K]): void {
        if (!this.#restoring && this.#of !== null) {
            this.#store.setDraft(this.#of, part, value).catch(() => undefined);
        }
    }
}
