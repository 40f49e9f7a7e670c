/** Conversations and answers: messages, their branches and their storage. answer.ts writes an answer. No DOM rendering
 * here. */
import { writeAnswer } from "./answer.js";
import { BezelError, type AppliedLora, type BezelModel } from "./bezel.js";
import { failureOf } from "./errors.js";
import { titleOf } from "./format.js";
import type { ModelManager } from "./model.js";
import { newId } from "./new_id.js";
import { Signal } from "./signal.js";
import { byAge, type Conversation, type MediaItem, type Message, type Passage, type Settings, type Store } from "./store.js";
import type { ToolBox } from "./toolbox.js";
import { MessageTree } from "./tree.js";

/** Finds passages of the user's documents for a question. */
export type FindPassages = (question: string) => Promise<Passage[]>;

/** How often an unfinished answer is stored. */
const SAVE_INTERVAL_MS = 300;

/** The lock that a tab holds while it writes this answer. */
const lockName = (message: string): string => `bezel-answer-${message}`;

function titleFor(text: string, media: MediaItem[]): string {
    const [first] = media;
    return titleOf(text.trim() || (first ? { image: "An image", audio: "A recording", video: "A video" }[first.kind] : ""));
}

const isEmpty = ({ content, thinking, steps = [] }: Message): boolean => content === "" && thinking === "" && steps.length === 0;

export class Chat {
    readonly conversations = new Signal<Conversation[]>([]);
    readonly current = new Signal<Conversation | null>(null);
    /** Messages of the branch that is shown. */
    readonly messages = new Signal<Message[]>([]);
    /** The answer being written. */
    readonly answering = new Signal<Message | null>(null);
    /** Called on every change of a message's text or state. */
    onMessage: (message: Message) => void = () => undefined;
    /** The adapters that answers are written with. */
    adaptersOf: (model: BezelModel) => AppliedLora[] = () => [];
    /** Called when the first message of a new conversation gives it an id. */
    onConversationCreated: (id: string) => void = () => undefined;
    /** Called when storing fails; the conversation continues unsaved. */
    onStorageError: (reason: unknown) => void = () => undefined;

    readonly #store: Store;
    readonly #models: ModelManager;
    readonly #settings: Signal<Settings>;
    readonly #tools: ToolBox;
    readonly #findPassages: FindPassages;
    /** All branches of the current conversation. */
    #tree = new MessageTree();
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

    constructor(store: Store, models: ModelManager, settings: Signal<Settings>, tools: ToolBox, findPassages: FindPassages) {
        this.#store = store;
        this.#models = models;
        this.#settings = settings;
        this.#tools = tools;
        this.#findPassages = findPassages;
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
        this.#tree = new MessageTree(messages);
        this.current.set(conversation);
        this.messages.set(this.#pathOf(conversation));
        await this.#save(() => this.#store.setValue("conversation", id));
    }

    /** Opens a conversation at a message, in whichever branch that is. */
    async openAt(id: string, message: string): Promise<void> {
        await this.open(id);
        if (this.#tree.get(message) && !this.messages.value.some((one) => one.id === message)) {
            await this.#showBranch(message);
        }
    }

    #pathOf({ leaf }: Conversation): Message[] {
        return this.#tree.pathTo(this.#tree.get(leaf) ? leaf : this.#tree.newestLeaf(null));
    }

    /** The versions of a message, oldest first, and which of them it is. */
    versionsOf(message: Message): { index: number; count: number } {
        const versions = this.#tree.versionsOf(message);
        return { index: versions.findIndex(({ id }) => id === message.id), count: versions.length };
    }

    /** Shows the version before (-1) or after (1) a message, with what follows it. */
    async step(id: string, by: 1 | -1): Promise<void> {
        await this.stop();
        const message = this.#tree.get(id);
        const versions = message ? this.#tree.versionsOf(message) : [];
        const other = versions[versions.findIndex((one) => one.id === id) + by];
        if (other) {
            await this.#showBranch(other.id);
        }
    }

    async #showBranch(message: string): Promise<void> {
        const { value } = this.current;
        if (value) {
            this.#setLeaf(this.#tree.newestLeaf(message));
            this.messages.set(this.#pathOf(this.current.value ?? value));
        }
    }

    #setLeaf(leaf: string | null): void {
        const { value } = this.current;
        if (value && value.leaf !== leaf) {
            void this.#change(value.id, (one) => ({ ...one, leaf }));
        }
    }

    /** Adds a message at the end of the branch that is shown. */
    #append(message: Message): void {
        this.#tree.put(message);
        this.#setLeaf(message.id);
        this.messages.set([...this.messages.value, message]);
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
    #merge(conversation: Conversation, stored: Message[]): void {
        const before = this.messages.value;
        const changed: Message[] = [];
        const messages = stored.map((message) => {
            const old = this.#tree.get(message.id);
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
        this.#tree = new MessageTree(messages);
        // The other tab may show another branch: this one stays where it is, unless its own has grown.
        const own = before.at(-1)?.id ?? null;
        const leaf = this.#tree.get(own) && !this.#tree.leadsTo(own, conversation.leaf) ? own : conversation.leaf;
        this.current.set({ ...conversation, leaf });
        const merged = this.#pathOf({ ...conversation, leaf });
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
        this.#tree = new MessageTree();
        this.current.set(null);
        this.messages.set([]);
        await this.#save(() => this.#store.setValue("conversation", ""));
    }

    async rename(id: string, title: string): Promise<void> {
        await this.#change(id, (one) => ({ ...one, title: title.trim() || one.title, named: true }));
    }

    async pin(id: string, pinned: boolean): Promise<void> {
        await this.#change(id, (one) => ({ ...one, pinned }));
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
            this.conversations.value.map((one) => (one.id === id ? changed : one)).sort(byAge),
        );
        if (this.current.value?.id === id) {
            this.current.set(changed);
        }
        await this.#save(() => this.#store.putConversation(changed));
    }

    // ---- sending --------------------------------------------------------------------------------

    /** Starts the answer synchronously, without waiting for storage, so that no other message can come between the
     * question and its answer. */
    async send(text: string, media: MediaItem[] = [], tools: string[] = []): Promise<void> {
        if ((!text.trim() && media.length === 0) || this.answering.value || this.answeringElsewhere) {
            return;
        }
        const conversation = this.#ensureConversation(titleFor(text, media));
        const last = this.messages.value.at(-1) ?? null;
        this.#ask({ ...this.#newMessage(conversation.id, "user", text, last), ...(media.length > 0 && { media }), ...(tools.length > 0 && { tools }) });
        void this.#change(conversation.id, (one) => ({ ...one, updated: Date.now() }));
        await this.#answer();
    }

    #ask(question: Message): void {
        this.#append(question);
        void this.#save(() => this.#store.putMessages([question]));
    }

    /** Whether a model is loaded. Without one, nothing is cut off for a new answer. */
    get answerable(): boolean {
        return this.#models.loaded !== null;
    }

    /** Asks another version of a question: a new branch. */
    async edit(id: string, text: string, media?: MediaItem[]): Promise<void> {
        await this.stop();
        const found = this.messages.value.find((message) => message.id === id);
        const kept = media ?? found?.media ?? [];
        const { value } = this.current;
        if (!found || !value || !this.answerable || this.answeringElsewhere || (!text.trim() && kept.length === 0)) {
            return;
        }
        this.#cutBefore(found);
        this.#ask({ ...this.#newMessage(value.id, "user", text, this.#tree.get(found.parent) ?? null), ...(kept.length > 0 && { media: kept }), ...(found.tools && { tools: found.tools }) });
        if (found.order === 0 && !value.named) {
            void this.#change(value.id, (one) => ({ ...one, title: titleFor(text, kept) }));
        }
        await this.#answer();
    }

    /** Another answer to the last question: a new branch, unless the last one has no text. */
    async regenerate(): Promise<void> {
        await this.stop();
        const path = this.messages.value;
        const question = path.findLast(({ role }) => role === "user");
        if (!question || !this.answerable || this.answeringElsewhere) {
            return;
        }
        const [answer] = path.slice(path.indexOf(question) + 1);
        if (answer) {
            this.#cutBefore(answer);
            if (isEmpty(answer)) {
                this.#tree.delete(answer.id);
                void this.#save(() => this.#store.deleteMessages([answer.id]));
            }
        }
        await this.#answer();
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
            pinned: false,
            leaf: null,
        };
        this.onConversationCreated(created.id);
        this.conversations.set([created, ...this.conversations.value]);
        this.current.set(created);
        void this.#save(() => this.#store.putConversation(created));
        void this.#save(() => this.#store.setValue("conversation", created.id));
        return created;
    }

    #newMessage(conversation: string, role: Message["role"], content: string, parent: Message | null): Message {
        return {
            id: newId(),
            conversation,
            order: (parent?.order ?? -1) + 1,
            parent: parent?.id ?? null,
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

    /** Shows only what is before a message; the rest stays as a branch. */
    #cutBefore({ order }: Message): void {
        this.messages.set(this.messages.value.filter((message) => message.order < order));
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
        const message = partial ?? this.#newMessage(conversation.id, "assistant", "", this.messages.value.at(-1) ?? null);
        message.state = "answering";
        if (partial) {
            this.messages.set([...this.messages.value]);
        } else {
            this.#append(message);
        }
        const control = new AbortController();
        this.#control = control;
        this.answering.set(message);
        const write = (): Promise<void> => this.#write(message, conversation, model, partial !== undefined, control.signal);
        const held = navigator.locks ? navigator.locks.request(lockName(message.id), write) : write();
        this.#ended = Promise.resolve(held);
        return this.#ended;
    }

    /** Writes one answer until it ends, is stopped or fails. */
    async #write(message: Message, conversation: Conversation, model: BezelModel, resume: boolean, signal: AbortSignal): Promise<void> {
        let saved = 0;
        const save = (): Promise<void> => this.#save(() => this.#store.putMessages([message]));
        const changed = (): void => {
            this.onMessage(message);
            if (Date.now() - saved > SAVE_INTERVAL_MS) {
                saved = Date.now();
                void save();
            }
        };
        await save();
        try {
            const path = this.messages.value;
            if (!resume) {
                await this.#addPassages(path.findLast(({ role }) => role === "user"));
            }
            const modelName = this.#models.loadedName;
            await writeAnswer({ conversation, settings: this.#settings.value, model, modelName, loras: this.adaptersOf(model), path, resume, tools: this.#tools, signal, changed });
            message.state = signal.aborted ? "stopped" : "done";
        } catch (reason) {
            const aborted = signal.aborted || (reason instanceof BezelError && reason.code === "aborted");
            message.state = aborted ? "stopped" : "failed";
            message.error = aborted ? null : failureOf(reason);
        }
        Object.assign(message, { canvas: undefined, encoding: undefined, pace: undefined });
        await save();
        this.#control = null;
        this.answering.set(null);
        this.onMessage(message);
        if (this.#syncAgain) {
            void this.sync();
        }
        if (message.error?.code === "device_lost") {
            this.#regenerateWhenReady = isEmpty(message);
            this.#models.recover();
        }
    }

    /** Looks for passages once per question, so that its request stays the same. */
    async #addPassages(question: Message | undefined): Promise<void> {
        if (question && !question.passages) {
            const passages = await this.#findPassages(question.content);
            if (passages.length > 0) {
                question.passages = passages;
                this.onMessage(question);
                await this.#save(() => this.#store.putMessages([question]));
            }
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
