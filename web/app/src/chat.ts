/** Conversations and answers: what is said, stored and asked of the model. Nothing here draws. */
import { BezelError, type BezelModel, type ChatChunk, type ContentPart, type StreamRequest } from "./bezel.js";
import { failureOf } from "./errors.js";
import { titleOf } from "./format.js";
import type { ModelKeeper } from "./model.js";
import { Signal } from "./signal.js";
import type { Conversation, MediaItem, Message, Settings, Store } from "./store.js";

/** How often an answer in the making is stored, in milliseconds. */
const SAVE_EVERY = 300;

/** Without crypto.randomUUID, which pages over plain http do not have. */
function newId(): string {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Held while an answer is written, in whichever tab. */
const lockName = (message: string): string => `bezel-answer-${message}`;

function titleFor(text: string, media: MediaItem[]): string {
    const [first] = media;
    return titleOf(text.trim() || (first?.kind === "image" ? "A picture" : first ? "A recording" : ""));
}

const plural = { image: "pictures", audio: "sounds" };

/** What is said of pictures and sounds in earlier messages that the model has no sense for; null: there are none. */
function leftOut(messages: Message[], takes: (item: MediaItem) => boolean, model: string): string | null {
    const kinds = new Set(messages.flatMap(({ media = [] }) => media.filter((item) => !takes(item)).map(({ kind }) => plural[kind])));
    return kinds.size > 0 ? `${model} takes no ${[...kinds].join(" and no ")}: those of earlier messages are left out.` : null;
}

/** Pictures and sounds before the words, as Gemma was taught. */
function contentOf(text: string, media: MediaItem[] = []): string | ContentPart[] {
    if (media.length === 0) {
        return text;
    }
    const parts = media.map(({ kind, blob }): ContentPart =>
        kind === "image" ? { type: "image_url", image_url: { url: blob } } : { type: "input_audio", input_audio: { data: blob } },
    );
    return text.trim() ? [...parts, { type: "text", text }] : parts;
}

/** The promise, or "aborted" as soon as it is asked for: what is under way may take its time to end. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
    let stop = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
        stop = () => reject(new BezelError("aborted", "Stopped on request."));
        signal.addEventListener("abort", stop);
    });
    try {
        if (signal.aborted) {
            stop();
        }
        return await Promise.race([promise, aborted]);
    } finally {
        signal.removeEventListener("abort", stop);
        promise.catch(() => undefined);
    }
}

export class Chat {
    readonly conversations = new Signal<Conversation[]>([]);
    readonly current = new Signal<Conversation | null>(null);
    /** Of the current conversation. */
    readonly messages = new Signal<Message[]>([]);
    /** The answer being written. */
    readonly answering = new Signal<Message | null>(null);
    /** Told for every change of a message's text or state. */
    onMessage: (message: Message) => void = () => undefined;
    /** A new conversation has its first message, and from now on an id. */
    onBegun: (id: string) => void = () => undefined;
    /** Storage failed: the conversation goes on, but is not kept. */
    onStorageError: (reason: unknown) => void = () => undefined;

    readonly #store: Store;
    readonly #models: ModelKeeper;
    readonly #settings: Signal<Settings>;
    #control: AbortController | null = null;
    #ended: Promise<void> = Promise.resolve();
    /** Nothing was said when the device went: ask again once the model is back. */
    #askAgain = false;
    /** Where tabs tell each other that something was stored. */
    readonly #tabs = new BroadcastChannel("bezel-chat");
    /** Answers of other tabs, whose end is awaited. */
    readonly #awaited = new Set<string>();
    #syncing: Promise<void> | null = null;
    #syncAgain = false;

    constructor(store: Store, models: ModelKeeper, settings: Signal<Settings>) {
        this.#store = store;
        this.#models = models;
        this.#settings = settings;
        models.state.watch(({ kind }) => {
            if (kind === "ready" && this.#askAgain) {
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
        await this.#keep(() => this.#store.setValue("conversation", id));
    }

    /** An answer that nobody is writing any more was cut off when its page went away. One that another tab is writing is
     * looked at again when it ends, however that is. */
    async #markInterrupted(messages: Message[]): Promise<void> {
        for (const message of messages.filter(({ state }) => state === "answering")) {
            const name = lockName(message.id);
            const mark = async (): Promise<void> => {
                // Only now is it sure that what is stored is its last word.
                const last = (await this.#store.message(message.id)) ?? message;
                Object.assign(message, last, last.state === "answering" && { state: "interrupted" });
                if (last.state === "answering") {
                    await this.#keep(() => this.#store.putMessages([message]));
                }
            };
            if (!navigator.locks) {
                await mark();
            } else if (!(await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock && mark().then(() => true))) && !this.#awaited.has(name)) {
                this.#awaited.add(name);
                void navigator.locks.request(name, () => this.#awaited.delete(name)).then(() => this.sync());
            }
        }
    }

    /** Another tab has stored something: the list, and the conversation that is open here, as they are now; that one after
     * the answer that is written here. */
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
                this.#syncAgain = true; // meanwhile something else was done here
            } else if (conversation) {
                this.#takeOver(conversation, messages);
            } else {
                await this.begin(); // it was deleted
            }
        }
    }

    /** What is shown already stays, so that a sound plays on, and changes its text. */
    #takeOver(conversation: Conversation, messages: Message[]): void {
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

    /** An empty one, which is stored with its first message. */
    async begin(): Promise<void> {
        await this.stop();
        this.current.set(null);
        this.messages.set([]);
        await this.#keep(() => this.#store.setValue("conversation", ""));
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
        await this.#keep(() => this.#store.deleteConversation(id));
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
        await this.#keep(() => this.#store.putConversation(changed));
    }

    // ---- saying ---------------------------------------------------------------------------------

    /** From the first moment on there is an answer in the making, so that nothing comes between it and its question:
     * what is stored, is stored meanwhile. */
    async send(text: string, media: MediaItem[] = []): Promise<void> {
        if ((!text.trim() && media.length === 0) || this.answering.value || this.answeringElsewhere) {
            return;
        }
        const conversation = this.#ensureConversation(titleFor(text, media));
        const message = { ...this.#newMessage(conversation.id, "user", text), ...(media.length > 0 && { media }) };
        this.messages.set([...this.messages.value, message]);
        void this.#keep(() => this.#store.putMessages([message]));
        void this.#change(conversation.id, (one) => ({ ...one, updated: Date.now() }));
        await this.#answer();
    }

    /** There is a model. Without one nothing is taken away to be answered anew. */
    get answerable(): boolean {
        return this.#models.loaded !== null;
    }

    /** A message in other words, and with other pictures and sounds; what came after it goes. */
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
        void this.#keep(() => this.#store.putMessages([changed]));
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

    /** The last answer from where it broke off. */
    async resume(): Promise<void> {
        const last = this.messages.value.at(-1);
        if (last?.role === "assistant" && last.content.trim() && !this.answering.value) {
            await this.#answer(last);
        }
    }

    /** Stops the answer; resolves when it has stopped. */
    stop(): Promise<void> {
        this.#askAgain = false;
        this.#control?.abort();
        return this.#ended;
    }

    #ensureConversation(title: string): Conversation {
        const { value } = this.current;
        if (value) {
            return value;
        }
        const now = Date.now();
        const made: Conversation = {
            id: newId(),
            title,
            named: false,
            system: this.#settings.value.system,
            created: now,
            updated: now,
        };
        this.onBegun(made.id);
        this.conversations.set([made, ...this.conversations.value]);
        this.current.set(made);
        void this.#keep(() => this.#store.putConversation(made));
        void this.#keep(() => this.#store.setValue("conversation", made.id));
        return made;
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
        void this.#keep(() => this.#store.deleteMessages(gone.map(({ id }) => id)));
    }

    // ---- answering ------------------------------------------------------------------------------

    /** A new answer, or more of one. */
    #answer(begun?: Message): Promise<void> {
        const { value: conversation } = this.current;
        const model = this.#models.loaded;
        if (!conversation || !model || this.answering.value) {
            return Promise.resolve();
        }
        if (begun) {
            // The model writes the space or line break that comes next.
            Object.assign(begun, { content: begun.content.trimEnd(), error: null, note: null });
        }
        // A conversation goes on with another model: what that has no sense for was answered long ago. The last question was not.
        const { facts } = model;
        const takes = ({ kind }: MediaItem): boolean => (kind === "image" ? facts.vision : facts.audio);
        const earlier = this.messages.value.slice(0, this.messages.value.findLastIndex(({ role }) => role === "user"));
        const notice = leftOut(earlier, takes, this.#models.loadedName);
        const without = new Map(notice === null ? [] : earlier.map((one) => [one, one.media?.filter(takes) ?? []]));
        const request = { ...this.#request(conversation, without), ...(begun ? { continue_final_message: true } : {}) };
        const message = begun ?? this.#newMessage(conversation.id, "assistant", "");
        if (notice !== null) {
            message.notices = [notice];
        }
        message.state = "answering";
        this.messages.set(begun ? [...this.messages.value] : [...this.messages.value, message]);
        const control = new AbortController();
        this.#control = control;
        this.answering.set(message);
        const write = (): Promise<void> => this.#write(message, model, request, control.signal);
        const held = navigator.locks ? navigator.locks.request(lockName(message.id), write) : write();
        this.#ended = Promise.resolve(held);
        return this.#ended;
    }

    /** `without`: messages that go with other pictures and sounds than they have. */
    #request(conversation: Conversation, without: Map<Message, MediaItem[]>): StreamRequest {
        const { temperature, topK, topP, seed, maxTokens, think } = this.#settings.value;
        const system = conversation.system.trim();
        const said = this.messages.value
            .filter(({ content, media }) => content !== "" || media?.length)
            .map((message) => {
                const { role, content } = message;
                const media = without.get(message) ?? message.media;
                return role === "user" ? { role, content: contentOf(media?.length ? content : content || "\u2026", media) } : { role, content };
            });
        return {
            messages: [...(system ? [{ role: "system" as const, content: system }] : []), ...said],
            stream: true,
            temperature,
            top_k: topK,
            top_p: topP,
            think,
            ...(seed === null ? {} : { seed }),
            ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
        };
    }

    /** One answer, to its end, whatever that is. */
    async #write(message: Message, model: BezelModel, request: StreamRequest, signal: AbortSignal): Promise<void> {
        let saved = 0;
        const save = (): Promise<void> => this.#keep(() => this.#store.putMessages([message]));
        await save();
        try {
            const stream = await unlessAborted(model.chat.completions.create(request, { signal }), signal);
            for (;;) {
                const { value: chunk, done } = await unlessAborted(stream.next(), signal);
                if (done) {
                    break;
                }
                this.#take(message, chunk, model.facts.contextLength);
                this.onMessage(message);
                if (Date.now() - saved > SAVE_EVERY) {
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
        message.looking = undefined;
        await save();
        this.#control = null;
        this.answering.set(null);
        this.onMessage(message);
        if (this.#syncAgain) {
            void this.sync();
        }
        if (message.error?.code === "device_lost") {
            this.#askAgain = !message.content && !message.thinking;
            this.#models.recover();
        }
    }

    #take(message: Message, { choices, canvas, media, notice, usage, timings }: ChatChunk, contextLength: number): void {
        const choice = choices[0];
        message.looking = media && { ...media, part: media.total > 0 ? media.done / media.total : 0 };
        if (notice !== undefined) {
            message.notices = [...(message.notices ?? []), notice];
        }
        message.canvas = canvas && { text: canvas.text, part: canvas.step / canvas.steps };
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

    /** Storing; its failure is told, and the chat goes on. */
    async #keep(act: () => Promise<void>): Promise<void> {
        try {
            await act();
            this.#tabs.postMessage("stored");
        } catch (reason) {
            this.onStorageError(reason);
        }
    }
}
