/** One message: its text, what can be done with it, and how it ended. */
import { announce, h, perFrame, show } from "./dom.js";
import { explainAnswering, type Remedy } from "./errors.js";
import { formatRate } from "./format.js";
import { icon, type IconName } from "./icons.js";
import { copyText, MarkdownView } from "./render.js";
import type { Message } from "./store.js";
import { CanvasView } from "./view_canvas.js";

export interface MessageActions {
    edit(id: string, text: string): void;
    regenerate(): void;
    remedy(remedy: Remedy): void;
}

const remedyLabels: Record<Remedy, string> = {
    retry: "Try again",
    regenerate: "Answer again",
    cpu: "Use the processor",
    shorter: "Load with a short context",
    choose: "Choose another model",
    file: "Open a file\u2026",
    more: "Add the other file\u2026",
    "new-chat": "New chat",
    resume: "Go on",
};

export class MessageView {
    readonly root: HTMLElement;
    readonly #actions: MessageActions;
    #message: Message;
    #last = false;
    readonly #body = h("div");
    readonly #tools = h("div", { class: "tools" });
    readonly #outcome = h("div");
    // Of an answer:
    readonly #prose = new MarkdownView(h("div", { class: "prose" }));
    readonly #thoughts = h("div", { class: "text" });
    readonly #thinkingLabel = h("span");
    readonly #thinking = h("details", { class: "thinking" }, h("summary", {}, this.#thinkingLabel, icon("down")), this.#thoughts);
    readonly #canvas = new CanvasView();
    readonly #waiting = h("div", { class: "waiting", role: "img", "aria-label": "Thinking" }, h("span"), h("span"), h("span"));
    readonly #redraw = perFrame(() => this.#draw());

    constructor(message: Message, actions: MessageActions) {
        this.#message = message;
        this.#actions = actions;
        const mine = message.role === "user";
        this.root = h(
            "article",
            { class: `message ${message.role}`, "aria-label": mine ? "You" : "Answer", "data-id": message.id },
            this.#body,
            this.#outcome,
            this.#tools,
        );
        if (mine) {
            this.#body.className = "said";
            this.#body.textContent = message.content;
        } else {
            this.#body.append(this.#thinking, this.#prose.root, this.#canvas.root, this.#waiting);
            if (message.state === "answering") {
                this.#prose.onBlock = announce;
            }
        }
        this.#draw();
    }

    /** The same message, changed; drawn with the next frame. */
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
            this.#tools.replaceChildren(this.#tool("edit", "Edit", () => this.#edit()), this.#copy());
            return;
        }
        const writing = message.state === "answering";
        this.#prose.set(message.content);
        show(this.#thinking, message.thinking !== "");
        this.#thoughts.textContent = message.thinking.trim();
        this.#thinkingLabel.textContent = writing && !message.content ? "Thinking\u2026" : "Thoughts";
        this.#canvas.set(message.canvas ?? null);
        show(this.#waiting, writing && !message.content && !message.canvas);
        this.root.setAttribute("aria-busy", String(writing));
        this.#outcome.replaceChildren(...this.#ending());
        show(this.#tools, !writing);
        if (!writing) {
            this.#tools.replaceChildren(
                this.#copy(),
                ...(this.#last ? [this.#tool("again", "Answer again", () => this.#actions.regenerate())] : []),
                ...this.#figures(),
            );
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

    #figures(): HTMLElement[] {
        const { figures } = this.#message;
        if (!figures || figures.answerTokens === 0) {
            return [];
        }
        const text = `${figures.answerTokens.toLocaleString("en")} tokens \u00b7 ${formatRate(figures.tokensPerSecond)}`;
        return [h("span", { class: "figures", title: `Prompt: ${figures.promptTokens} tokens, ${formatRate(figures.promptPerSecond)}` }, text)];
    }

    #ending(): HTMLElement[] {
        const { state, error, note } = this.#message;
        const on = this.#remedies(["resume"]);
        if (state === "failed" && error) {
            const { title, advice, remedies } = explainAnswering(error);
            const what = h("span", { class: "what" }, h("b", {}, title), `${error.message} ${advice}`);
            return [h("div", { class: "outcome bad", role: "alert", "data-code": error.code }, what, ...this.#remedies(remedies))];
        }
        if (state === "interrupted") {
            return [h("div", { class: "outcome" }, h("span", { class: "what" }, "This answer was cut off when the page was closed."), ...on)];
        }
        if (state === "stopped") {
            return [h("div", { class: "outcome" }, h("span", { class: "what" }, "Stopped."), ...on)];
        }
        if (note === "context") {
            const text = "The conversation is full: the answer ends where the model's context does.";
            return [h("div", { class: "outcome" }, h("span", { class: "what" }, text), ...this.#remedies(["new-chat"]))];
        }
        if (note === "length") {
            const text = "The answer ends at the longest length that the settings allow.";
            return [h("div", { class: "outcome" }, h("span", { class: "what" }, text), ...on)];
        }
        return [];
    }

    /** Below the last message only: those above it are history. */
    #remedies(wanted: Remedy[]): HTMLElement[] {
        const possible = wanted.filter((remedy) => remedy !== "resume" || this.#message.content.trim());
        return this.#last ? possible.map((remedy) => this.#remedy(remedy)) : [];
    }

    #remedy(remedy: Remedy): HTMLElement {
        return h("button", { type: "button", class: "small", onclick: () => this.#actions.remedy(remedy) }, remedyLabels[remedy]);
    }

    // ---- changing what was said -----------------------------------------------------------------

    #edit(): void {
        const field = h("textarea", { "aria-label": "Message", rows: 3 }, this.#message.content);
        const leave = (): void => {
            this.root.classList.remove("editing");
            this.#body.textContent = this.#message.content;
            show(this.#tools, true);
        };
        const send = (event: Event): void => {
            event.preventDefault();
            if (field.value.trim()) {
                leave();
                this.#actions.edit(this.#message.id, field.value);
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
        this.root.classList.add("editing");
        show(this.#tools, false);
        this.#body.replaceChildren(
            h(
                "form",
                { class: "edit", onsubmit: send },
                field,
                h(
                    "div",
                    { class: "actions" },
                    h("button", { type: "button", class: "small", onclick: leave }, "Cancel"),
                    h("button", { class: "main small" }, "Send"),
                ),
            ),
        );
        field.focus();
    }
}
