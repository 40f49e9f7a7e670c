/** The conversation: messages, the composer, and the context meter. */
import type { BezelModel } from "./bezel.js";
import type { Attachments } from "./attach.js";
import type { Chat } from "./chat.js";
import { announce, byId, h, perFrame, show, type Child } from "./dom.js";
import { explainLoading, type Remedy } from "./errors.js";
import { gem, icon } from "./icons.js";
import type { Suggestion } from "./catalog.js";
import { labelOfAgain, type ModelManager, type ModelState } from "./model.js";
import { Speech } from "./speech.js";
import type { Message } from "./store.js";
import type { ToolBox } from "./toolbox.js";
import { MessageView, type MessageActions } from "./view_message.js";
import { progressBar } from "./view_model.js";

/** The view follows new text if it is scrolled closer to the end than this, in pixels. */
const FOLLOW_DISTANCE = 80;

/** The second click of a double click on Send must not stop the answer. */
const DOUBLE_CLICK_MS = 500;

const touch = matchMedia("(pointer: coarse)");

export class ChatView {
    readonly #chat: Chat;
    readonly #models: ModelManager;
    readonly #attachments: Attachments;
    readonly #actions: MessageActions;
    readonly #chooseModel: () => void;
    readonly #log = byId("log");
    readonly #text = byId<HTMLTextAreaElement>("composer-text");
    readonly #send = byId<HTMLButtonElement>("send");
    readonly #note = byId("composer-note");
    readonly #views = new Map<string, MessageView>();
    #following = true;
    #sendIcon = "";
    /** performance.now() of the last message. */
    #lastSent = -Infinity;
    /** The model whose notice the user has dismissed. */
    #dismissedNotice: BezelModel | null = null;
    readonly #again = h("button", { type: "button", class: "small main", hidden: true, onclick: () => this.#models.loadAgain() });

    constructor(chat: Chat, models: ModelManager, attachments: Attachments, tools: ToolBox, chooseModel: () => void) {
        this.#chat = chat;
        this.#models = models;
        this.#attachments = attachments;
        this.#chooseModel = chooseModel;
        this.#actions = {
            attach: (files, tray) => (files ? attachments.add(files, [], tray) : attachments.choose(tray)),
            edit: (id, text, media) => this.#actIfAnswerable(() => chat.edit(id, text, media)),
            regenerate: () => void this.#actIfAnswerable(() => chat.regenerate()),
            remedy: (remedy) => this.#remedy(remedy),
            versionsOf: (message) => chat.versionsOf(message),
            step: (id, by) => void (this.#busyElsewhere() || chat.step(id, by)),
            toolTitle: (name) => tools.titleOf(name),
            passagesOf: ({ parent }) => chat.messages.value.find(({ id }) => id === parent)?.passages ?? [],
            speech: new Speech(),
        };
        this.#actions.speech.onChange = () => chat.messages.value.forEach((message) => this.#views.get(message.id)?.update(message));
        this.#listen();
        chat.messages.watch((messages) => this.#draw(messages));
        chat.answering.watch((message) => {
            this.#drawSend();
            if (message) {
                announce("Answering");
            }
        });
        attachments.items.watch(() => this.#drawSend());
        attachments.busy.watch(() => this.#drawSend());
        chat.current.watch((conversation) => {
            byId("title").textContent = conversation?.title ?? "";
            document.title = conversation ? `${conversation.title} \u2013 Bezel` : "Bezel";
        });
        chat.messages.watch(() => this.#drawNote(models.state.value));
        models.state.watch((state) => {
            this.#drawNote(state);
            const suggestions = this.#log.querySelector<HTMLElement>(".suggestions");
            if (suggestions && state.kind === "ready") {
                void this.#suggest(suggestions);
            }
            this.#drawSend();
            this.#drawContext();
        });
        // After the message itself, which is drawn in the same frame.
        const redraw = perFrame(() => {
            this.#drawContext();
            this.#follow();
        });
        chat.onMessage = (message) => {
            this.#views.get(message.id)?.update(message);
            redraw();
        };
    }

    focus(): void {
        if (!touch.matches) {
            this.#text.focus();
        }
    }

    #listen(): void {
        const toEnd = byId("to-end");
        toEnd.append(icon("down"));
        toEnd.addEventListener("click", () => {
            this.#following = true;
            this.#follow();
        });
        this.#log.addEventListener("scroll", () => {
            const distance = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight;
            this.#following = distance < FOLLOW_DISTANCE;
            show(toEnd, distance > 4 * FOLLOW_DISTANCE);
        });
        // Content gets its height with the next layout; the text field's height depends on its width.
        const fit = perFrame(() => this.#fitText());
        new ResizeObserver(() => {
            this.#follow();
            fit();
        }).observe(this.#log);
        byId("composer").addEventListener("submit", (event) => {
            event.preventDefault();
            this.#submit();
        });
        this.#text.addEventListener("input", () => this.#fitText());
        this.#text.addEventListener("keydown", (event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !touch.matches) {
                event.preventDefault();
                if (!this.#chat.answering.value) {
                    this.#submit();
                }
            }
        });
        addEventListener("keydown", (event) => {
            if (event.key === "Escape" && this.#chat.answering.value && !document.querySelector("dialog[open]")) {
                event.preventDefault();
                void this.#chat.stop();
            }
        });
    }

    // ---- messages -------------------------------------------------------------------------------

    #draw(messages: Message[]): void {
        const ids = new Set(messages.map(({ id }) => id));
        for (const [id, view] of this.#views) {
            if (!ids.has(id)) {
                view.free();
                this.#views.delete(id);
            }
        }
        this.#log.querySelector(".empty")?.remove();
        messages.forEach((message, i) => {
            let view = this.#views.get(message.id);
            if (!view) {
                view = new MessageView(message, this.#actions);
                this.#views.set(message.id, view);
                this.#log.append(view.root);
            } else {
                view.update(message);
            }
            view.last = i === messages.length - 1;
        });
        if (messages.length === 0) {
            const suggestions = h("div", { class: "suggestions" });
            this.#log.append(h("div", { class: "empty" }, gem(), h("h2", {}, "What would you like to know?"), suggestions));
            void this.#suggest(suggestions);
        }
        this.#drawContext();
        this.#following = true;
        this.#follow();
    }

    /** Shows example questions once a model is loaded. */
    async #suggest(root: HTMLElement): Promise<void> {
        if (this.#models.loaded) {
            const [suggestions, offer] = [await this.#models.suggestions(), await this.#models.loadedOffer()];
            const buttons = suggestions.map((one) => {
                const mark = one.image !== undefined ? icon("image") : one.audio !== undefined ? icon("sound") : one.tools !== undefined ? icon("tool") : one.model !== undefined ? icon("again") : null;
                return h("button", { type: "button", onclick: () => this.#act(this.#ask(one)) }, mark, h("span", {}, one.text, one.note !== undefined && h("small", { class: "faint" }, ` ${one.note}`)));
            });
            root.replaceChildren(...buttons);
            const more = h("button", { type: "button", class: "quiet", onclick: () => this.#chooseModel() }, "Choose another model");
            root.parentElement?.querySelector(".about")?.remove();
            if (offer?.auto) {
                root.after(h("div", { class: "about faint" }, h("p", {}, offer.about), more));
            }
        }
    }

    /** Sends an example question, with its sample. */
    async #ask({ text, image, audio, model, tools = [] }: Suggestion): Promise<void> {
        if (this.#busyElsewhere() || this.#refused()) {
            return;
        }
        if (model !== undefined && !(await this.#models.loadOffered(model))) {
            return; // the start view shows why
        }
        const address = image ?? audio;
        if (address !== undefined) {
            const response = await fetch(new URL(address, document.baseURI)).catch(() => null);
            if (!response?.ok) {
                this.#attachments.note.set(`The sample ${address} could not be fetched.`);
                return;
            }
            const blob = await response.blob();
            await this.#attachments.add([new File([blob], address.slice(address.lastIndexOf("/") + 1), { type: blob.type })]);
        }
        await this.#chat.send(text, this.#attachments.take(), tools);
    }

    #follow(): void {
        if (this.#following && this.#views.size > 0) { // what an empty conversation shows is read from its top
            this.#log.scrollTop = this.#log.scrollHeight;
        }
    }

    // ---- writing --------------------------------------------------------------------------------

    #fitText(): void {
        this.#text.style.height = "auto";
        this.#text.style.height = `${this.#text.scrollHeight}px`;
        this.#drawSend();
    }

    #submit(): void {
        if (this.#chat.answering.value) {
            if (performance.now() - this.#lastSent > DOUBLE_CLICK_MS) {
                void this.#chat.stop();
            }
            return;
        }
        const text = this.#text.value.trim();
        if (!this.#sendable || this.#busyElsewhere() || this.#refused()) {
            return;
        }
        this.#lastSent = performance.now();
        this.#text.value = "";
        this.#text.dispatchEvent(new Event("input"));
        this.#act(this.#chat.send(text, this.#attachments.take()));
    }

    /** Whether the model does not accept the attachments; shows why, and keeps text and files. */
    #refused(): boolean {
        const { reasonAgainstItems } = this.#attachments;
        if (reasonAgainstItems) {
            this.#attachments.note.set(reasonAgainstItems);
        }
        return reasonAgainstItems !== null;
    }

    /** Whether another tab is writing into this conversation; shows a note if so. */
    #busyElsewhere(): boolean {
        const { answeringElsewhere } = this.#chat;
        if (answeringElsewhere) {
            this.#attachments.note.set("Another tab is writing an answer in this conversation: wait until it has finished, or stop it there.");
        }
        return answeringElsewhere;
    }

    get #sendable(): boolean {
        const hasContent = this.#text.value.trim() !== "" || this.#attachments.items.value.length > 0;
        return hasContent && this.#models.loaded !== null && this.#attachments.busy.value === 0;
    }

    /** false: not possible now, as without a model; also shown in the note, because the other one may be out of view. */
    #actIfAnswerable(act: () => Promise<void>): boolean {
        if (this.#busyElsewhere()) {
            return false;
        }
        if (this.#chat.answerable) {
            this.#act(act());
            return true;
        }
        const loading = this.#models.state.value.kind === "loading";
        this.#attachments.note.set(loading ? "The model is still loading: wait until it is ready." : "No model is loaded: choose one first.");
        return false;
    }

    #act(action: Promise<void>): void {
        this.#following = true;
        void action.then(() => this.focus());
    }

    #drawSend(): void {
        const answering = this.#chat.answering.value !== null;
        const name = answering ? "stop" : "send";
        if (name !== this.#sendIcon) {
            this.#sendIcon = name;
            this.#send.replaceChildren(icon(name));
            this.#send.setAttribute("aria-label", answering ? "Stop" : "Send");
        }
        this.#send.disabled = !answering && !this.#sendable;
    }

    // ---- notes ----------------------------------------------------------------------------------

    #drawContext(): void {
        const length = this.#models.loaded?.info.contextLength ?? 0;
        const figures = this.#chat.messages.value.findLast((message) => message.figures)?.figures;
        const pace = this.#chat.answering.value?.pace;
        const used = pace ? Math.round(pace.context * length) : figures ? figures.promptTokens + figures.answerTokens : 0;
        const root = byId("context");
        show(root, length > 0 && used > 0);
        const fraction = length > 0 ? Math.min(1, used / length) : 0;
        const text = `${Math.round(100 * fraction)}%`;
        byId("context-text").textContent = text;
        root.setAttribute("aria-label", `${text} of the context is used`);
        root.title = `${used.toLocaleString("en")} of ${length.toLocaleString("en")} tokens`;
        const fill = byId("context-fill");
        fill.style.transform = `scaleX(${fraction})`;
        fill.classList.toggle("nearly-full", fraction > 0.9);
    }

    /** The model's state, above the text field. */
    #drawNote(state: ModelState): void {
        const children = this.#noteFor(state);
        this.#note.classList.toggle("quiet", state.kind === "ready");
        show(this.#note, children.length > 0);
        if (children.length > 0 || state.kind === "ready") {
            this.#note.replaceChildren(...children.filter((child): child is Node => child instanceof Node));
        }
    }

    #noteFor(state: ModelState): Child[] {
        const button = (label: string, act: () => void, main = false): HTMLElement =>
            h("button", { type: "button", class: main ? "small main" : "small", onclick: act }, label);
        const message = (text: string): HTMLElement => h("span", { class: "note-text" }, text);
        switch (state.kind) {
            case "none":
                void this.#models.last().then((last) => {
                    show(this.#again, last !== null);
                    this.#again.textContent = last ? labelOfAgain(last) : "";
                });
                return [message("No model is loaded."), this.#again, button("Choose a model", this.#chooseModel)];
            case "loading": {
                const text = state.again ? "The GPU was reset. Loading the model again." : `Loading ${state.choice.name}.`;
                return [message(text), button("Cancel", () => this.#models.cancel()), ...progressBar(state.progress).slice(0, 1)];
            }
            case "failed":
                return [
                    message(`${explainLoading(state.failure).title}. ${state.failure.message}`),
                    button("Try again", () => void this.#models.load(state.choice), true),
                    button("Show options", this.#chooseModel),
                ];
            case "ready": {
                const { notice } = state.model.info;
                const hide = (): void => {
                    this.#dismissedNotice = state.model;
                    this.#drawNote(state);
                };
                const hidden = this.#dismissedNotice === state.model || this.#models.isAutomatic; // a first visit begins without warnings
                return notice && !hidden && this.#chat.messages.value.length === 0
                    ? [message(notice), h("button", { type: "button", class: "quiet small", "aria-label": "Hide this", onclick: hide }, icon("close"))]
                    : [];
            }
            default:
                return [];
        }
    }

    #remedy(remedy: Remedy): void {
        const state = this.#models.state.value;
        const choice = "choice" in state ? state.choice : null;
        switch (remedy) {
            case "new-chat":
                void this.#chat.begin().then(() => this.focus());
                break;
            case "shorter":
            case "cpu":
                if (choice) {
                    void this.#models.load(choice, remedy === "cpu" ? { device: "cpu" } : { contextLength: 2048 });
                }
                break;
            case "choose":
                this.#chooseModel();
                break;
            case "resume":
                this.#act(this.#chat.resume());
                break;
            default:
                this.#act(this.#chat.regenerate());
        }
    }
}
