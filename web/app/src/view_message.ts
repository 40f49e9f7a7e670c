/** One message: its text, actions, and how it ended. */
import { pastedFiles, type Tray } from "./attach.js";
import { announce, h, perFrame, show } from "./dom.js";
import { explainAnswering, type Remedy } from "./errors.js";
import { formatDrafts, formatRate } from "./format.js";
import { icon, type IconName } from "./icons.js";
import { copyText } from "./copy.js";
import { FoldedText } from "./fold.js";
import { MarkdownView } from "./render.js";
import type { Speech } from "./speech.js";
import type { EncodingProgress, MediaItem, Message, Passage } from "./store.js";
import { CanvasView } from "./view_canvas.js";
import { SourcesView } from "./view_sources.js";
import { StepsView } from "./view_steps.js";
import { MediaList } from "./view_media.js";

export interface MessageActions {
    /** false: not possible now; the text stays in its field. */
    edit(id: string, text: string, media: MediaItem[]): boolean;
    /** Adds media to the message being edited: these files, or (null) files that the user chooses. */
    attach(files: File[] | null, tray: Tray): Promise<void>;
    regenerate(): void;
    /** The versions of a message; its index is from 0. */
    versionsOf(message: Message): { index: number; count: number };
    /** Shows the version before or after a message. */
    step(id: string, by: 1 | -1): void;
    toolTitle(name: string): string;
    /** The passages that an answer may cite. */
    passagesOf(answer: Message): Passage[];
    readonly speech: Speech;
    remedy(remedy: Remedy): void;
}

const remedyLabels: Record<Remedy, string> = {
    retry: "Try again",
    regenerate: "Answer again",
    cpu: "Run on the CPU",
    shorter: "Load with a short context",
    choose: "Choose another model",
    file: "Open a file\u2026",
    more: "Add the other file\u2026",
    "new-chat": "New chat",
    resume: "Continue",
};

/** "Looking at image 2 of 3" */
function encodingLabel({ kind, index, count }: EncodingProgress): string {
    const which = count > 1 ? ` ${index + 1} of ${count}` : "";
    switch (kind) {
        case "image":
            return `Looking at ${which ? `image${which}` : "the image"}`;
        case "video":
            return `Watching ${which ? `video${which}` : "the video"}`;
        case "audio":
            return `Listening${which && ` to sound${which}`}`;
    }
}

export class MessageView {
    readonly root: HTMLElement;
    readonly #actions: MessageActions;
    #message: Message;
    #last = false;
    readonly #body = h("div");
    readonly #tools = h("div", { class: "tools" });
    readonly #outcome = h("div");
    readonly #media = new MediaList("Attached", null);
    /** The user's text. */
    readonly #text = new FoldedText();
    // Answers only:
    readonly #steps: StepsView;
    readonly #sources = new SourcesView();
    readonly #pace = h("div", { class: "pace", "aria-hidden": "true" });
    readonly #prose = new MarkdownView(h("div", { class: "prose" }));
    readonly #thoughts = h("div", { class: "text", dir: "auto" });
    readonly #thinkingLabel = h("span");
    readonly #thinking = h("details", { class: "thinking" }, h("summary", {}, this.#thinkingLabel, icon("down")), this.#thoughts);
    readonly #canvas = new CanvasView();
    readonly #waiting = h("div", { class: "waiting", role: "img", "aria-label": "Thinking" }, h("span"), h("span"), h("span"));
    readonly #encodingText = h("span");
    readonly #encodingFill = h("span");
    readonly #encoding = h(
        "div",
        { class: "encoding", role: "progressbar", "aria-valuemin": 0, "aria-valuemax": 100 },
        this.#encodingText,
        h("span", { class: "bar" }, this.#encodingFill),
    );
    readonly #redraw = perFrame(() => this.#draw());

    constructor(message: Message, actions: MessageActions) {
        this.#message = message;
        this.#actions = actions;
        this.#steps = new StepsView((name) => actions.toolTitle(name));
        const isUser = message.role === "user";
        this.root = h(
            "article",
            { class: `message ${message.role}`, "aria-label": isUser ? "You" : "Answer", "data-id": message.id },
            isUser && this.#media.root,
            this.#body,
            this.#outcome,
            this.#tools,
        );
        if (isUser) {
            this.#body.className = "user-text";
        } else {
            this.#body.append(this.#steps.root, this.#thinking, this.#prose.root, this.#canvas.root, this.#encoding, this.#waiting, this.#pace, this.#sources.root);
            if (message.state === "answering") {
                this.#prose.onBlock = announce;
            }
        }
        this.#draw();
    }

    /** Shows a change of the message; while answering, with the next frame. */
    update(message: Message): void {
        this.#message = message;
        if (message.state === "answering") {
            this.#redraw();
        } else {
            this.#draw();
            if (this.#prose.onBlock) {
                this.#prose.end();
                this.#prose.onBlock = null;
            }
        }
    }

    /** Removes the view. */
    free(): void {
        this.root.remove();
        this.#media.free();
    }

    set last(last: boolean) {
        if (last !== this.#last) {
            this.#last = last;
            this.#draw();
        }
    }

    #draw(): void {
        const message = this.#message;
        this.root.dataset["state"] = message.state;
        this.root.classList.toggle("last", this.#last);
        if (message.role === "user") {
            if (!this.root.classList.contains("editing")) {
                this.#media.set(message.media ?? []);
                this.#text.set(message.content);
                this.#body.replaceChildren(this.#text.root);
                show(this.#body, message.content !== "");
            }
            const edit = this.#tool("edit", "Edit", () => this.#edit());
            this.#tools.replaceChildren(...this.#versions(), edit, ...(message.content ? [this.#copy()] : []));
            return;
        }
        const writing = message.state === "answering";
        const passages = this.#actions.passagesOf(message);
        this.#prose.setCitations(passages.length, (number) => this.#sources.open(number));
        this.#steps.set(message.steps ?? []);
        this.#prose.set(message.content);
        this.#sources.set(writing ? [] : passages);
        this.#drawPace(writing);
        show(this.#thinking, message.thinking !== "");
        this.#drawThoughts(message.thinking.trimStart());
        this.#thinkingLabel.textContent = writing && !message.content ? "Thinking\u2026" : "Thoughts";
        this.#canvas.set(message.canvas ?? null);
        this.#drawEncoding(writing ? message.encoding : undefined);
        show(this.#waiting, writing && !message.content && !message.canvas && !message.encoding);
        this.root.setAttribute("aria-busy", String(writing));
        this.#outcome.replaceChildren(...this.#outcomes());
        show(this.#tools, !writing);
        if (!writing) {
            this.#tools.replaceChildren(
                ...this.#versions(),
                ...(message.content ? [this.#copy(), ...this.#readAloud()] : []),
                ...(this.#last ? [this.#tool("again", "Answer again", () => this.#actions.regenerate())] : []),
                ...this.#figures(),
            );
        }
    }

    /** Appends what is new: thoughts can be long. */
    #drawThoughts(text: string): void {
        const { firstChild } = this.#thoughts;
        if (firstChild instanceof Text && text.startsWith(firstChild.data)) {
            firstChild.appendData(text.slice(firstChild.data.length));
        } else if (this.#thoughts.textContent !== text) {
            this.#thoughts.textContent = text;
        }
    }

    #drawPace(writing: boolean): void {
        const { pace } = this.#message;
        show(this.#pace, writing && pace !== undefined);
        if (pace) {
            const rate = pace.tokensPerSecond > 0 ? ` \u00b7 ${formatRate(pace.tokensPerSecond)}` : "";
            this.#pace.textContent = `${pace.tokens.toLocaleString("en")} tokens${rate} \u00b7 ${Math.round(100 * pace.context)}% of context`;
        }
    }

    #drawEncoding(encoding: EncodingProgress | undefined): void {
        show(this.#encoding, encoding !== undefined);
        if (encoding) {
            const text = encodingLabel(encoding);
            this.#encodingText.textContent = text;
            this.#encodingFill.style.transform = `scaleX(${encoding.fraction})`;
            this.#encoding.setAttribute("aria-label", text);
            this.#encoding.setAttribute("aria-valuenow", String(Math.round(100 * encoding.fraction)));
        }
    }

    // ---- below the text -------------------------------------------------------------------------

    #tool(name: IconName, label: string, act: () => void): HTMLButtonElement {
        return h("button", { type: "button", class: "quiet small", onclick: act }, icon(name), h("span", {}, label));
    }

    #copy(): HTMLButtonElement {
        const button = this.#tool("copy", "Copy", () => void copyText(this.#message.content, button));
        return button;
    }

    /** Which version this is, and buttons for the others. */
    #versions(): HTMLElement[] {
        const { index, count } = this.#actions.versionsOf(this.#message);
        if (count < 2) {
            return [];
        }
        const button = (name: IconName, label: string, by: 1 | -1, possible: boolean): HTMLButtonElement =>
            h("button", { type: "button", class: "quiet small", "aria-label": label, disabled: !possible, onclick: () => this.#actions.step(this.#message.id, by) }, icon(name));
        return [
            h(
                "span",
                { class: "versions", role: "group", "aria-label": "Versions" },
                button("left", "Previous version", -1, index > 0),
                h("span", { "aria-label": `Version ${index + 1} of ${count}`, role: "img" }, `${index + 1}/${count}`),
                button("right", "Next version", 1, index < count - 1),
            ),
        ];
    }

    #readAloud(): HTMLElement[] {
        const { speech } = this.#actions;
        const { id, content } = this.#message;
        if (!speech.available) {
            return [];
        }
        return [speech.reading === id ? this.#tool("stop", "Stop reading", () => speech.stop()) : this.#tool("speak", "Read aloud", () => speech.read(id, content))];
    }

    #figures(): HTMLElement[] {
        const { figures } = this.#message;
        if (!figures || figures.answerTokens === 0) {
            return [];
        }
        const text = `${figures.answerTokens.toLocaleString("en")} tokens \u00b7 ${formatRate(figures.tokensPerSecond)}${formatDrafts(figures.drafted, figures.accepted)}`;
        return [h("span", { class: "figures", title: `Prompt: ${figures.promptTokens} tokens, ${formatRate(figures.promptPerSecond)}` }, text)];
    }

    /** The engine's notices, and how the answer ended. */
    #outcomes(): HTMLElement[] {
        const notices = this.#message.notices ?? [];
        return [...notices.map((text) => h("div", { class: "outcome" }, h("span", { class: "note-text" }, text))), ...this.#ending()];
    }

    #ending(): HTMLElement[] {
        const { state, error, note } = this.#message;
        const resume = this.#remedies(["resume"]);
        if (state === "failed" && error) {
            const { title, advice, remedies } = explainAnswering(error);
            const text = h("span", { class: "note-text" }, h("b", {}, title), `${error.message} ${advice}`);
            return [h("div", { class: "outcome bad", role: "alert", "data-code": error.code }, text, ...this.#remedies(remedies))];
        }
        if (state === "interrupted") {
            return [h("div", { class: "outcome" }, h("span", { class: "note-text" }, "This answer was cut off when the page was closed."), ...resume)];
        }
        if (state === "stopped") {
            return [h("div", { class: "outcome" }, h("span", { class: "note-text" }, "Stopped."), ...resume)];
        }
        if (state === "done" && note === null && !this.#message.content.trim()) {
            const text = this.#message.thinking ? "The model stopped after thinking, without an answer. Turning off thinking in the settings may help." : "The model gave an empty answer.";
            return [h("div", { class: "outcome" }, h("span", { class: "note-text" }, text))];
        }
        if (note === "context") {
            const text = "The conversation is full: the answer was cut off at the end of the model's context.";
            return [h("div", { class: "outcome" }, h("span", { class: "note-text" }, text), ...this.#remedies(["new-chat"]))];
        }
        if (note === "length") {
            const text = "The answer reached the maximum length from the settings.";
            return [h("div", { class: "outcome" }, h("span", { class: "note-text" }, text), ...resume)];
        }
        return [];
    }

    /** Only for the last message. */
    #remedies(wanted: Remedy[]): HTMLElement[] {
        const possible = wanted.filter((remedy) => remedy !== "resume" || this.#message.content.trim());
        return this.#last ? possible.map((remedy) => this.#remedy(remedy)) : [];
    }

    #remedy(remedy: Remedy): HTMLElement {
        return h("button", { type: "button", class: "small", onclick: () => this.#actions.remedy(remedy) }, remedyLabels[remedy]);
    }

    // ---- editing --------------------------------------------------------------------------------

    #edit(): void {
        const field = h("textarea", { "aria-label": "Message", rows: 3 }, this.#message.content);
        const media = new MediaList("Attached", (item) => {
            media.set(media.items.filter((one) => one !== item));
            field.focus();
        });
        media.set(this.#message.media ?? []);
        const tray: Tray = {
            get count() {
                return media.items.length;
            },
            put: (item) => media.set([...media.items, item]),
        };
        let reading = 0; // files being read; sending waits for them
        const attach = (files: File[] | null): void => {
            reading++;
            void this.#actions.attach(files, tray).then(() => {
                reading--;
                field.focus();
            });
        };
        const leave = (): void => {
            this.root.classList.remove("editing");
            media.free();
            show(this.#tools, true);
            this.#draw();
        };
        const send = (event: Event): void => {
            event.preventDefault();
            const { items } = media;
            if (reading === 0 && (field.value.trim() || items.length > 0) && this.#actions.edit(this.#message.id, field.value.trim(), items)) {
                leave();
            }
        };
        field.addEventListener("keydown", (event) => {
            if (event.key === "Escape") {
                event.stopPropagation();
                leave();
            } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
                send(event);
            }
        });
        field.addEventListener("paste", (event) => {
            const files = pastedFiles(event);
            if (files.length > 0) {
                event.preventDefault();
                event.stopPropagation(); // do not attach it to the next message as well
                attach(files);
            }
        });
        this.root.classList.add("editing");
        this.#media.set([]);
        show(this.#body, true);
        show(this.#tools, false);
        this.#body.replaceChildren(
            h(
                "form",
                { class: "edit", onsubmit: send },
                media.root,
                field,
                h(
                    "div",
                    { class: "actions" },
                    h("button", { type: "button", class: "quiet small", "aria-label": "Attach images, sound or videos", title: "Attach images, sound or videos", onclick: () => attach(null) }, icon("attach")),
                    h("button", { type: "button", class: "small", onclick: leave }, "Cancel"),
                    h("button", { class: "main small" }, "Send"),
                ),
            ),
        );
        field.focus();
    }
}
