/** Renders a Markdown tree as elements. For a growing text, only what changed is drawn again. */
import { h, type Child } from "./dom.js";
import type { Block, Inline, ListItem } from "./markdown.js";
import { MarkdownStream } from "./markdown_stream.js";
import { CodeView } from "./render_code.js";
import { formulaElement } from "./render_math.js";

let views = 0;

/** What the parts of one text need to know about it. */
interface Context {
    /** Begins the ids of its footnotes. */
    prefix: string;
    /** [1] to [n] are citations, which open a passage. */
    citations: number;
    cite: (number: number) => void;
}

const noteId = ({ prefix }: Context, label: string): string => `${prefix}-${label}`;

/** Shows the footnote of a reference, if the text has it. */
function goToNote(event: Event, id: string): void {
    event.preventDefault();
    const note = document.getElementById(id);
    note?.scrollIntoView({ block: "center" });
    note?.focus();
}

/** Text, with its citations as buttons. */
function cited(text: string, { citations, cite }: Context): Child[] {
    if (citations === 0) {
        return [text];
    }
    return text.split(/(\[\d{1,2}\])/).map((part) => {
        const number = Number(/^\[(\d+)\]$/.exec(part)?.[1] ?? 0);
        const known = number >= 1 && number <= citations;
        return known ? h("button", { type: "button", class: "citation", "aria-label": `Passage ${number}`, onclick: () => cite(number) }, String(number)) : part;
    });
}

function inlineNodes(nodes: Inline[], context: Context): Child[] {
    return nodes.flatMap((node): Child | Child[] => {
        switch (node.kind) {
            case "text":
                return cited(node.text, context);
            case "code":
                return h("code", { dir: "ltr" }, node.text);
            case "break":
                return h("br");
            case "math":
                return formulaElement(node.text, node.display);
            case "note": {
                const id = noteId(context, node.label);
                return h("sup", {}, h("a", { class: "note-link", href: `#${id}`, "aria-label": `Footnote ${node.label}`, onclick: (event) => goToNote(event, id) }, node.label));
            }
            case "link":
                return h("a", { href: node.href, target: "_blank", rel: "noopener noreferrer" }, ...inlineNodes(node.children, context));
            default:
                return h(node.kind, {}, ...inlineNodes(node.children, context));
        }
    });
}

function itemElement({ done, children }: ListItem, context: Context): HTMLElement {
    const box = done === null ? null : h("input", { type: "checkbox", checked: done, disabled: true, "aria-label": done ? "Done" : "To do" });
    return h("li", { class: done === null ? undefined : "task", dir: "auto" }, box, ...children.map((child) => new BlockView(child, context).root));
}

function rowElement(cells: Inline[][], tag: "th" | "td", { align, context }: { align: string[]; context: Context }): HTMLElement {
    return h("tr", {}, ...cells.map((cell, i) => h(tag, { class: align[i] || undefined, dir: "auto", scope: tag === "th" ? "col" : undefined }, ...inlineNodes(cell, context))));
}

/** Updates the elements of a list of parts: those of the same objects are kept. */
function updateParts<T>(parent: HTMLElement, before: T[], now: T[], draw: (part: T) => HTMLElement): void {
    let same = 0;
    while (same < before.length && same < now.length && before[same] === now[same]) {
        same++;
    }
    while (parent.childElementCount > same) {
        parent.lastElementChild?.remove();
    }
    parent.append(...now.slice(same).map(draw));
}

/** A table that grows beyond this many rows is laid out as a list of rows until it has ended: browsers lay out a table
 * as a whole for every new row. */
const MAX_TABLE_ROWS = 100;

/** Keeps the columns of a table as they are, and lets its rows be independent of each other. */
function freeRows(table: HTMLTableElement): void {
    const widths = [...table.querySelectorAll("th")].map((cell) => `${cell.getBoundingClientRect().width}px`);
    table.style.setProperty("--columns", widths.join(" "));
    table.classList.add("growing");
}

class BlockView {
    readonly root: HTMLElement;
    readonly #context: Context;
    #block: Block;
    #code: CodeView | null = null;

    constructor(block: Block, context: Context) {
        this.#block = block;
        this.#context = context;
        this.root = this.#draw(block);
    }

    /** Shows another state of the same block; false: it has to be drawn anew. */
    update(block: Block): boolean {
        const before = this.#block;
        if (block === before) {
            return true;
        }
        if (block.kind === "code" && before.kind === "code" && block.language === before.language) {
            this.#code?.set(block.text);
        } else if (block.kind === "list" && before.kind === "list" && block.ordered === before.ordered && block.start === before.start) {
            this.root.classList.toggle("tight", block.tight);
            updateParts(this.root, before.items, block.items, (item) => itemElement(item, this.#context));
        } else if (block.kind === "table" && before.kind === "table" && JSON.stringify([block.head, block.align]) === JSON.stringify([before.head, before.align])) {
            const [table, body] = [this.root.querySelector("table"), this.root.querySelector("tbody")];
            if (table && body) {
                if (before.rows.length > MAX_TABLE_ROWS && !table.classList.contains("growing")) {
                    freeRows(table);
                }
                updateParts(body, before.rows, block.rows, (row) => rowElement(row, "td", { align: block.align, context: this.#context }));
            }
        } else {
            return false;
        }
        this.#block = block;
        return true;
    }

    /** The text has ended. */
    end(): void {
        this.root.querySelector(".growing")?.classList.remove("growing");
    }

    #draw(block: Block): HTMLElement {
        const context = this.#context;
        const text = (children: Inline[]): Child[] => inlineNodes(children, context);
        switch (block.kind) {
            case "heading":
                // The page itself uses h1 and h2.
                return h(`h${Math.min(6, block.level + 2)}` as "h3", { dir: "auto" }, ...text(block.children));
            case "paragraph":
                return h("p", { dir: "auto" }, ...text(block.children));
            case "code":
                this.#code = new CodeView(block.language);
                this.#code.set(block.text);
                return this.#code.root;
            case "math":
                return formulaElement(block.text, true, block.closed);
            case "list": {
                const items = block.items.map((item) => itemElement(item, context));
                const style = block.tight ? "tight" : undefined;
                return block.ordered ? h("ol", { class: style, start: block.start === 1 ? undefined : block.start }, ...items) : h("ul", { class: style }, ...items);
            }
            case "quote":
                return h("blockquote", { dir: "auto" }, ...block.children.map((child) => new BlockView(child, context).root));
            case "table": {
                const { align } = block;
                const head = h("thead", {}, rowElement(block.head, "th", { align, context }));
                const body = h("tbody", {}, ...block.rows.map((row) => rowElement(row, "td", { align, context })));
                return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, head, body));
            }
            case "footnote":
                return h("div", { class: "footnote", id: noteId(context, block.label), tabindex: "-1", dir: "auto" }, h("sup", {}, block.label), " ", ...text(block.children));
            case "rule":
                return h("hr");
        }
    }
}

/** Shows a growing text in `root`. */
export class MarkdownView {
    readonly root: HTMLElement;
    /** Called with the text of each block once it is final. */
    onBlock: ((text: string) => void) | null = null;
    readonly #context: Context = { prefix: `note-${++views}`, citations: 0, cite: () => undefined };
    readonly #stream = new MarkdownStream();
    #given = "";
    #views: BlockView[] = [];

    constructor(root: HTMLElement) {
        this.root = root;
    }

    /** From now on, [1] to [count] open a passage. */
    setCitations(count: number, cite: (number: number) => void): void {
        Object.assign(this.#context, { citations: count, cite });
    }

    /** As it was given. */
    get source(): string {
        return this.#given;
    }

    set(source: string): void {
        if (source === this.#given) {
            return;
        }
        this.#given = source;
        const from = this.#stream.set(source);
        const { blocks } = this.#stream;
        const open = Math.max(0, this.#views.length - 1);
        this.#put(blocks, from);
        for (let i = open; i < blocks.length - 1; i++) {
            this.onBlock?.(this.#views[i]?.root.textContent ?? "");
        }
    }

    /** The text is complete. */
    end(): void {
        const changed = this.#stream.end();
        if (changed.length > 0) {
            this.#put(this.#stream.blocks, Math.min(...changed));
        }
        this.#views.forEach((view) => view.end());
        const last = this.#views.at(-1);
        if (last) {
            this.onBlock?.(last.root.textContent ?? "");
        }
    }

    #put(blocks: Block[], from: number): void {
        this.#views.splice(blocks.length).forEach(({ root }) => root.remove());
        blocks.slice(from).forEach((block, i) => {
            const before = this.#views[from + i];
            if (before?.update(block)) {
                return;
            }
            const view = new BlockView(block, this.#context);
            if (before) {
                before.root.replaceWith(view.root);
            } else {
                this.root.append(view.root);
            }
            this.#views[from + i] = view;
        });
    }
}
