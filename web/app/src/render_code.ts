/** A block of code: its language, a copy button, and lines that get their colors later. While it grows, only new lines
 * are drawn, and only lines whose colors changed are drawn again. */
import { copyText } from "./copy.js";
import { h } from "./dom.js";
import { highlight, newBlock } from "./highlight.js";
import type { ColoredLine } from "./highlight_types.js";
import { icon } from "./icons.js";

/** Lines whose colors are put on the page at once. */
const LINES_AT_ONCE = 40;

interface Line {
    element: HTMLElement;
    text: string;
}

export class CodeView {
    readonly root: HTMLElement;
    readonly #code = h("code", { dir: "ltr" });
    readonly #language: string;
    readonly #block = newBlock();
    readonly #lines: Line[] = [];
    #text = "";
    /** Text whose colors are being found. */
    #asked: string | null = null;

    constructor(language: string) {
        this.#language = language;
        const copy = h(
            "button",
            { type: "button", class: "quiet small", onclick: () => void copyText(this.#text, copy) },
            icon("copy"),
            h("span", {}, "Copy"),
        );
        const label = language || "code";
        this.root = h(
            "figure",
            { class: "code" },
            h("figcaption", {}, h("span", {}, label), copy),
            h("pre", { tabindex: "0", "aria-label": label }, this.#code),
        );
    }

    get language(): string {
        return this.#language;
    }

    set(text: string): void {
        if (text === this.#text && this.#lines.length > 0) {
            return;
        }
        this.#text = text;
        const lines = text.split("\n");
        const last = this.#lines.at(-1);
        if (last && lines.length > this.#lines.length && last.text === lines[this.#lines.length - 1]) {
            last.text += "\n"; // the line has ended: it keeps its colors
            last.element.append("\n");
        }
        let first = this.#lines.length;
        while (first > 0 && this.#lines[first - 1]?.text !== this.#ended(lines, first - 1)) {
            first--;
        }
        this.#lines.splice(first).forEach(({ element }) => element.remove());
        const added = lines.slice(first).map((_, i): Line => {
            const line = this.#ended(lines, first + i);
            return { element: h("span", {}, line), text: line };
        });
        this.#lines.push(...added);
        this.#code.append(...added.map(({ element }) => element));
        this.#color();
    }

    /** With the line break, but for the last line. */
    #ended(lines: string[], i: number): string {
        return i < lines.length - 1 ? `${lines[i]}\n` : (lines[i] ?? "\u0000");
    }

    /** One request at a time: code that grows meanwhile is colored after it. */
    #color(): void {
        if (this.#asked !== null || this.#language === "") {
            return;
        }
        const asked = this.#text;
        this.#asked = asked;
        void highlight(this.#block, this.#language, asked).then((lines) => {
            if (lines) {
                this.#show(lines, asked);
            }
        });
    }

    #show(lines: ColoredLine[], asked: string): void {
        for (const { index, pieces } of lines.slice(0, LINES_AT_ONCE)) {
            const line = this.#lines[index];
            if (line && line.text.replace(/\n$/, "") === pieces.map(({ text }) => text).join("")) {
                line.element.replaceChildren(
                    ...pieces.map((piece) => (piece.color ? h("span", { class: `c-${piece.color}` }, piece.text) : piece.text)),
                    line.text.endsWith("\n") ? "\n" : "",
                );
            }
        }
        if (lines.length > LINES_AT_ONCE) {
            requestAnimationFrame(() => this.#show(lines.slice(LINES_AT_ONCE), asked));
            return;
        }
        this.#asked = null;
        if (this.#text !== asked) {
            this.#color();
        }
    }
}
