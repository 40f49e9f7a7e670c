/** Conversations and answers: messages, their storage, and requests to the model. No DOM rendering here. */
import { BezelError, type BezelModel, type ChatChunk, type ContentPart, type StreamRequest } from "./bezel.js";
import { failureOf } from "./errors.js";
import { titleOf } from "./format.js";
import type { ModelManager } from "./model.js";
import { Signal } from "./signal.js";
import type { Conversation, MediaItem, Message, Settings, Store } from "./store.js";

/** How often an unfinished answer is stored. */
const SAVE_INTERVAL_MS = 300;

/** Not crypto.randomUUID, which pages over plain http lack. */
function newId(): string {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The lock that a tab holds while it writes this answer. */
const lockName = (message: string): string => `bezel-answer-${message}`;

function titleFor(text: string, media: MediaItem[]): string {
    const [first] = media;
    return titleOf(text.trim() || (first?.kind === "image" ? "An image" : first ? "A recording" : ""));
}

const plural = { image: "images", audio: "sounds" };

/** Notice about earlier images and sounds that the model does not accept; null: there are none. */
function omittedNotice(messages: Message[], takes: (item: MediaItem) => boolean, model: string): string | null {
    const kinds = new Set(messages.flatMap(({ media = [] }) => media.filter((item) => !takes(item)).map(({ kind }) => plural[kind])));
    return kinds.size > 0 ? `${model} takes no ${[...kinds].join(" and no ")}: those in earlier messages are omitted.` : null;
}

/** Media before text, as in Gemma's training. */
function contentOf(text: string, media: MediaItem[] = []): string | ContentPart[] {
    if (media.length === 0) {
        return text;
    }
    const parts = media.map(({ kind, blob }): ContentPart =>
        kind === "image" ? { type: "image_url", image_url: { url: blob } } : { type: "input_audio", input_audio: { data: blob } },
    );
    return text.trim() ? [...parts, { type: "text", text }] : parts;
}

/** Rejects with "aborted" as soon as the signal fires, even if the promise takes longer to settle. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
    let abort = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
        abort = () => reject(new BezelError("aborted", "Stopped on request."));
        signal.addEventListener("abort", abort);
    });
    try {
        if (signal.aborted) {
            abort();
        }
        return await Promise.race([promise, aborted]);
    } finally {
        signal.removeEventListener("abort", abort);
        promise.catch(() => undefined);
    }
}

export class Chat {
    readonly conversations = new Signal<Conversation[]>([]);
    readonly current = new Signal<Conversation | null>(null);
    /** Messages of the current conversation. */
    readonly messages = new Signal<Message[]>([]);
    /** The answer being written. */
    readonly answering = new Signal<Message | null>(null);
    /** Called on every change of a message's text or state. */
    onMessage: (message: Message) => void = () => undefined;
    /** Called when the first message of a new conversation gives it an id. */
    onConversationCreated: (id: string) => void = () => undefined;
    /** Called when storing fails; the conversation continues unsaved. */
    onStorageError: (reason: unknown) => void = () => undefined;

    readonly #store: Store;
    readonly #models: ModelManager;
    readonly #settings: Signal<Settings>;
    #control: AbortController | null = null;
    #ended: Promise<void> = Promise.resolve();
    /** The device was lost before any text: regenerate once the model is back. */
    #regenerateWhenReady = false;
    /** Notifies other tabs of storage changes. */
    readonly #tabs = new BroadcastChannel("bezel-chat");
    /** Locks of answers that other tabs are writing, whose end is awaited. */
    readonly #awaitedLocks = new Set<string>();
    #syncing: Promise<void> | null = null;
    #syncAgain = false;

    constructor(store: Store, models: ModelManager, settings: Signal<Settings>) {
        this.#store = store;
        this.#models = models;
        this.#settings = settings;
        models.state.watch(({ kind }) => {
            if (kind === "ready" && this.#regenerateWhenReady) {
                void this.regenerate();
            }
        });
        this.#tabs.onmessage = () => void this.sync();
    }

    // ---- conversations --------------------------------------------------------------------------

    async start(): Promise<void> {
        await this.refresh();
        const last = await this.#store.value<string>("conversation");
        const found = this.conversations.value.find(({ id }) => id === last);
        if (found) {
            await this.open(found.id);
        }
    }

    async refresh(): Promise<void> {
        this.conversations.set(await this.#store.conversations());
    }

    async open(id: string): Promise<void> {
        const conversation = this.conversations.value.find((one) => one.id === id) ?? null;
        if (!conversation || conversation.id === this.current.value?.id) {
            return;
        }
        await this.stop();
        const messages = await this.#store.messages(id);
        await this.#markInterrupted(messages);
        this.current.set(conversation);
        this.messages.set(messages);
        await this.#save(() => this.#store.setValue("conversation", id));
    }

    /** Marks answers whose lock is free as interrupted: their page was closed. For answers that another tab is still
     * writing, syncs again when its lock is released. */
    async #markInterrupted(messages: Message[]): Promise<void> {
        for (const message of messages.filter(({ state }) => state === "answering")) {
            const name = lockName(message.id);
            const mark = async (): Promise<void> => {
                // Holding the lock means that the stored message is final.
                const last = (await this.#store.message(message.id)) ?? message;
                Object.assign(message, last, last.state === "answering" && { state: "interrupted" });
                if (last.state === "answering") {
                    await this.#save(() => this.#store.putMessages([message]));
                }
            };
            if (!navigator.locks) {
                await mark();
            } else if (!(await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock && mark().then(() => true))) && !this.#awaitedLocks.has(name)) {
                this.#awaitedLocks.add(name);
                void navigator.locks.request(name, () => this.#awaitedLocks.delete(name)).then(() => this.sync());
            }
        }
    }

    /** Reloads the list and the open conversation after another tab has stored something. While an answer is being
     * written here, the conversation waits until it has ended. */
    sync(): Promise<void> {
        this.#syncAgain = true;
        if (this.answering.value) {
            return this.refresh();
        }
        this.#syncing ??= this.#syncAll().finally(() => (this.#syncing = null));
        return this.#syncing;
    }

    async #syncAll(): Promise<void> {
        while (this.#syncAgain && !this.answering.value) {
            this.#syncAgain = false;
            await this.refresh();
            const id = this.current.value?.id;
            if (id === undefined) {
                continue;
            }
            const conversation = this.conversations.value.find((one) => one.id === id);
            const messages = await this.#store.messages(id);
            await this.#markInterrupted(messages);
            if (this.current.value?.id !== id || this.answering.value) {
                this.#syncAgain = true; // changed here in the meantime
            } else if (conversation) {
                this.#merge(conversation, messages);
            } else {
                await this.begin(); // deleted in another tab
            }
        }
    }

    /** Updates the message objects in place, so that their views are kept (a playing sound continues). */
    #merge(conversation: Conversation, messages: Message[]): void {
        const before = this.messages.value;
        const changed: Message[] = [];
        const merged = messages.map((message) => {
            const old = before.find(({ id }) => id === message.id);
            if (!old) {
                return message;
            }
            const same = old.media?.length === message.media?.length && old.media?.every(({ blob }, i) => blob.size === message.media?.[i]?.blob.size);
            const was = JSON.stringify(old);
            Object.assign(old, { media: undefined, notices: undefined }, message, same && { media: old.media });
            if (JSON.stringify(old) !== was) {
                changed.push(old);
            }
            return old;
        });
        this.current.set(conversation);
        if (merged.length === before.length && merged.every((message, i) => message === before[i])) {
            changed.forEach((message) => this.onMessage(message));
        } else {
            this.messages.set(merged);
        }
    }

    /** Another tab is writing an answer into this conversation. */
    get answeringElsewhere(): boolean {
        return !this.answering.value && this.messages.value.some(({ state }) => state === "answering");
    }

    /** Starts an empty conversation; it is stored with its first message. */
    async begin(): Promise<void> {
        await this.stop();
        this.current.set(null);
        this.messages.set([]);
        await this.#save(() => this.#store.setValue("conversation", ""));
    }

    async rename(id: string, title: string): Promise<void> {
        await this.#change(id, (one) => ({ ...one, title: title.trim() || one.title, named: true }));
    }

    async setSystem(system: string): Promise<void> {
        const { value } = this.current;
        if (value) {
            await this.#change(value.id, (one) => ({ ...one, system }));
        }
    }

    async remove(id: string): Promise<void> {
        if (this.current.value?.id === id) {
            await this.begin();
        }
        await this.#save(() => this.#store.deleteConversation(id));
        await this.refresh();
    }

    async #change(id: string, how: (one: Conversation) => Conversation): Promise<void> {
        const found = this.conversations.value.find((one) => one.id === id);
        if (!found) {
            return;
        }
        const changed = how(found);
        this.conversations.set(
            this.conversations.value.map((one) => (one.id === id ? changed : one)).sort((a, b) => b.updated - a.updated),
        );
        if (this.current.value?.id === id) {
            this.current.set(changed);
        }
        await this.#save(() => this.#store.putConversation(changed));
    }

    // ---- sending --------------------------------------------------------------------------------

    /** Starts the answer synchronously, without waiting for storage, so that no other message can come between the
     * question and its answer. */
    async send(text: string, media: MediaItem[] = []): Promise<void> {
        if ((!text.trim() && media.length === 0) || this.answering.value || this.answeringElsewhere) {
            return;
        }
        const conversation = this.#ensureConversation(titleFor(text, media));
        const message = { ...this.#newMessage(conversation.id, "user", text), ...(media.length > 0 && { media }) };
        this.messages.set([...this.messages.value, message]);
        void this.#save(() => this.#store.putMessages([message]));
        void this.#change(conversation.id, (one) => ({ ...one, updated: Date.now() }));
        await this.#answer();
    }

    /** Whether a model is loaded. Without one, nothing is cut off for a new answer. */
    get answerable(): boolean {
        return this.#models.loaded !== null;
    }

    /** Replaces a message's text and media, and removes all messages after it. */
    async edit(id: string, text: string, media?: MediaItem[]): Promise<void> {
        await this.stop();
        const found = this.messages.value.find((message) => message.id === id);
        const kept = media ?? found?.media ?? [];
        if (!found || !this.answerable || this.answeringElsewhere || (!text.trim() && kept.length === 0)) {
            return;
        }
        this.#cutAfter(found.order);
        const { media: _, ...rest } = found;
        const changed: Message = { ...rest, content: text, ...(kept.length > 0 && { media: kept }) };
        this.messages.set(this.messages.value.map((message) => (message.id === id ? changed : message)));
        void this.#save(() => this.#store.putMessages([changed]));
        const { value } = this.current;
        if (value && found.order === 0 && !value.named) {
            void this.#change(value.id, (one) => ({ ...one, title: titleFor(text, kept) }));
        }
        await this.#answer();
    }

    /** Another answer to the last question. */
    async regenerate(): Promise<void> {
        await this.stop();
        const question = this.messages.value.findLast(({ role }) => role === "user");
        if (question && this.answerable && !this.answeringElsewhere) {
            this.#cutAfter(question.order);
            await this.#answer();
        }
    }

    /** Continues the last answer where it ended. */
    async resume(): Promise<void> {
        const last = this.messages.value.at(-1);
        if (last?.role === "assistant" && last.content.trim() && !this.answering.value) {
            await this.#answer(last);
        }
    }

    /** Stops the answer; resolves when it has stopped. */
    stop(): Promise<void> {
        this.#regenerateWhenReady = false;
        this.#control?.abort();
        return this.#ended;
    }

    #ensureConversation(title: string): Conversation {
        const { value } = this.current;
        if (value) {
            return value;
        }
        const now = Date.now();
        const created: Conversation = {
            id: newId(),
            title,
            named: false,
            system: this.#settings.value.system,
            created: now,
            updated: now,
        };
        this.onConversationCreated(created.id);
        this.conversations.set([created, ...this.conversations.value]);
        this.current.set(created);
        void this.#save(() => this.#store.putConversation(created));
        void this.#save(() => this.#store.setValue("conversation", created.id));
        return created;
    }

    #newMessage(conversation: string, role: Message["role"], content: string): Message {
        return {
            id: newId(),
            conversation,
            order: (this.messages.value.at(-1)?.order ?? -1) + 1,
            role,
            content,
            thinking: "",
            state: "done",
            note: null,
            error: null,
            figures: null,
            created: Date.now(),
        };
    }

    #cutAfter(order: number): void {
        const gone = this.messages.value.filter((message) => message.order > order);
        this.messages.set(this.messages.value.filter((message) => message.order <= order));
        void this.#save(() => this.#store.deleteMessages(gone.map(({ id }) => id)));
    }

    // ---- answering ------------------------------------------------------------------------------

    /** Writes a new answer, or continues `partial`. */
    #answer(partial?: Message): Promise<void> {
        const { value: conversation } = this.current;
        const model = this.#models.loaded;
        if (!conversation || !model || this.answering.value) {
            return Promise.resolve();
        }
        if (partial) {
            // The model itself generates the white space that follows.
            Object.assign(partial, { content: partial.content.trimEnd(), error: null, note: null });
        }
        // If the model changed, media that it does not accept are dropped from earlier messages, but not from the question.
        const { info } = model;
        const takes = ({ kind }: MediaItem): boolean => (kind === "image" ? info.vision : info.audio);
        const earlier = this.messages.value.slice(0, this.messages.value.findLastIndex(({ role }) => role === "user"));
        const notice = omittedNotice(earlier, takes, this.#models.loadedName);
        const mediaFor = new Map(notice === null ? [] : earlier.map((one) => [one, one.media?.filter(takes) ?? []]));
        const request = { ...this.#request(conversation, mediaFor), ...(partial ? { continue_final_message: true } : {}) };
        const message = partial ?? this.#newMessage(conversation.id, "assistant", "");
        if (notice !== null) {
            message.notices = [notice];
        }
        message.state = "answering";
        this.messages.set(partial ? [...this.messages.value] : [...this.messages.value, message]);
        const control = new AbortController();
        this.#control = control;
        this.answering.set(message);
        const write = (): Promise<void> => this.#write(message, model, request, control.signal);
        const held = navigator.locks ? navigator.locks.request(lockName(message.id), write) : write();
        this.#ended = Promise.resolve(held);
        return this.#ended;
    }

    /** `mediaFor`: replaces the media of these messages. */
    #request(conversation: Conversation, mediaFor: Map<Message, MediaItem[]>): StreamRequest {
        const { temperature, topK, topP, seed, maxTokens, think } = this.#settings.value;
        const system = conversation.system.trim();
        const messages = this.messages.value
            .filter(({ content, media }) => content !== "" || media?.length)
            .map((message) => {
                const { role, content } = message;
                const media = mediaFor.get(message) ?? message.media;
                return role === "user" ? { role, content: contentOf(media?.length ? content : content || "\u2026", media) } : { role, content };
            });
        return {
            messages: [...(system ? [{ role: "system" as const, content: system }] : []), ...messages],
            stream: true,
            temperature,
            top_k: topK,
            top_p: topP,
            think,
            ...(seed === null ? {} : { seed }),
            ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
        };
    }

    /** Writes one answer until it ends, is stopped or fails. */
    async #write(message: Message, model: BezelModel, request: StreamRequest, signal: AbortSignal): Promise<void> {
        let saved = 0;
        const save = (): Promise<void> => this.#save(() => this.#store.putMessages([message]));
        await save();
        try {
            const stream = await unlessAborted(model.chat.completions.create(request, { signal }), signal);
            for (;;) {
                const { value: chunk, done } = await unlessAborted(stream.next(), signal);
                if (done) {
                    break;
                }
                this.#applyChunk(message, chunk, model.info.contextLength);
                this.onMessage(message);
                if (Date.now() - saved > SAVE_INTERVAL_MS) {
                    saved = Date.now();
                    void save();
                }
            }
            message.state = signal.aborted ? "stopped" : "done";
        } catch (reason) {
            const aborted = signal.aborted || (reason instanceof BezelError && reason.code === "aborted");
            message.state = aborted ? "stopped" : "failed";
            message.error = aborted ? null : failureOf(reason);
        }
        message.canvas = undefined;
        message.encoding = undefined;
        await save();
        this.#control = null;
        this.answering.set(null);
        this.onMessage(message);
        if (this.#syncAgain) {
            void this.sync();
        }
        if (message.error?.code === "device_lost") {
            this.#regenerateWhenReady = !message.content && !message.thinking;
            this.#models.recover();
        }
    }

    #applyChunk(message: Message, { choices, canvas, media, notice, usage, timings }: ChatChunk, contextLength: number): void {
        const choice = choices[0];
        message.encoding = media && { ...media, fraction: media.total > 0 ? media.done / media.total : 0 };
        if (notice !== undefined) {
            message.notices = [...(message.notices ?? []), notice];
        }
        message.canvas = canvas && { text: canvas.text, fraction: canvas.step / canvas.steps };
        message.content += choice?.delta.content ?? "";
        message.thinking += choice?.delta.reasoning_content ?? "";
        if (choice?.finish_reason === "length") {
            message.note = "length";
        }
        if (usage) {
            message.figures = {
                promptTokens: usage.prompt_tokens,
                answerTokens: usage.completion_tokens,
                tokensPerSecond: timings?.predicted_per_second ?? 0,
                promptPerSecond: timings?.prompt_per_second ?? 0,
            };
            const full = usage.total_tokens >= contextLength;
            message.note = message.note === "length" && full ? "context" : message.note;
        }
    }

    /** Runs a storage operation; on failure the chat continues. */
    async #save(act: () => Promise<void>): Promise<void> {
        try {
            await act();
            this.#tabs.postMessage("stored");
        } catch (reason) {
            this.onStorageError(reason);
        }
    }
}
