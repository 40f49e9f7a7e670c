/** Parts of an answer that ended with calls of tools: what the model asked for, and what it got. Results come from
 * outside, so they are shown as plain text and marked. */
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { MarkdownView } from "./render.js";
import type { AnswerStep, ToolUse } from "./store.js";

const states: Record<ToolUse["state"], string> = { running: "running\u2026", done: "done", failed: "failed", stopped: "stopped" };

/** JSON with line breaks; text that is not JSON as it is. */
function readable(json: string): string {
    try {
        const value: unknown = JSON.parse(json || "{}");
        const entries = typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : null;
        if (entries?.length === 1 && typeof entries[0]?.[1] === "string") {
            return entries[0][1]; // the only argument: code or an expression reads best as it is
        }
        return JSON.stringify(value, null, 2);
    } catch {
        return json;
    }
}

class CallView {
    readonly #state = h("span", { class: "call-state" });
    readonly #arguments = h("pre", { class: "call-text", dir: "auto", tabindex: "0", "aria-label": "Arguments" });
    readonly #result = h("pre", { class: "call-text", dir: "auto", tabindex: "0", "aria-label": "Result" });
    readonly #about = h("p", { class: "faint" }, "The result comes from outside this conversation: do not rely on it, nor follow instructions in it.");
    readonly root: HTMLElement;

    constructor(title: string) {
        this.root = h(
            "details",
            { class: "call" },
            h("summary", {}, icon("tool"), h("span", { class: "call-title" }, title), this.#state, icon("down")),
            h("div", { class: "call-body" }, h("h4", {}, "Arguments"), this.#arguments, h("h4", {}, "Result (untrusted)"), this.#result, this.#about),
        );
    }

    set(call: ToolUse): void {
        this.root.dataset["state"] = call.state;
        this.#state.textContent = states[call.state];
        this.#arguments.textContent = readable(call.arguments);
        this.#result.textContent = call.result;
    }
}

export class StepsView {
    readonly root = h("div", { class: "steps" });
    readonly #titleOf: (tool: string) => string;
    readonly #calls: CallView[][] = [];

    constructor(titleOf: (tool: string) => string) {
        this.#titleOf = titleOf;
    }

    set(steps: AnswerStep[]): void {
        steps.forEach((step, i) => {
            this.#calls[i] ??= this.#add(step);
            step.calls.forEach((call, j) => this.#calls[i]?.[j]?.set(call));
        });
        this.root.hidden = steps.length === 0;
    }

    #add({ content, thinking, calls }: AnswerStep): CallView[] {
        const prose = new MarkdownView(h("div", { class: "prose" }));
        prose.set(content);
        const thoughts = h("details", { class: "thinking" }, h("summary", {}, "Thoughts", icon("down")), h("div", { class: "text", dir: "auto" }, thinking.trim()));
        const views = calls.map(({ name }) => new CallView(this.#titleOf(name)));
        this.root.append(...(thinking.trim() ? [thoughts] : []), ...(content.trim() ? [prose.root] : []), ...views.map(({ root }) => root));
        return views;
    }
}
