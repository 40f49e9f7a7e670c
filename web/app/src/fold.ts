/** Long texts of the user are folded, so that a paste does not push the conversation away. */
import { h } from "./dom.js";

/** A text with more characters or lines is folded. */
const MAX_CHARACTERS = 1200;
const MAX_LINES = 16;

export class FoldedText {
    readonly root: HTMLElement;
    readonly #text = h("div", { class: "fold-text", dir: "auto" });
    readonly #toggle = h("button", { type: "button", class: "quiet small fold", onclick: () => this.#set(!this.#open) });
    #content = "";
    #open = false;

    constructor() {
        this.root = h("div", { class: "folded-text" }, this.#text);
    }

    set(content: string): void {
        if (content !== this.#content || this.#text.childNodes.length === 0) {
            this.#content = content;
            this.#text.textContent = content;
            this.#set(false);
        }
    }

    #set(open: boolean): void {
        const lines = this.#content.split("\n").length;
        const long = this.#content.length > MAX_CHARACTERS || lines > MAX_LINES;
        this.#open = open;
        this.#text.classList.toggle("folded", long && !open);
        if (!long) {
            this.#toggle.remove();
            return;
        }
        this.root.append(this.#toggle);
        this.#toggle.textContent = open ? "Show less" : `Show all ${lines > MAX_LINES ? `${lines.toLocaleString("en")} lines` : `${this.#content.length.toLocaleString("en")} characters`}`;
        this.#toggle.setAttribute("aria-expanded", String(open));
    }
}
