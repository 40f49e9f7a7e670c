/** Renders a Markdown tree as elements, incrementally for a streamed text. */
import { h, type Child } from "./dom.js";
import { icon } from "./icons.js";
import { parseBlocks, type Block } from "./markdown.js";
import type { Inline } from "./markdown_inline.js";

function inline(nodes: Inline[]): Child[] {
    return nodes.map((node) => {
        switch (node.kind) {
            case "text":
                return node.text;
            case "code":
                return h("code", {}, node.text);
            case "break":
                return h("br");
            case "link":
                return h("a", { href: node.href, target: "_blank", rel: "noopener noreferrer" }, ...inline(node.children));
            default:
                return h(node.kind, {}, ...inline(node.children));
        }
    });
}

export async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
    const before = [...button.childNodes];
    try {
        await navigator.clipboard.writeText(text);
        button.replaceChildren(icon("check"), h("span", {}, "Copied"));
    } catch {
        button.replaceChildren(icon("warn"), h("span", {}, "Not allowed"));
    }
    setTimeout(() => button.replaceChildren(...before), 1600);
}

function codeBlock(block: Block & { kind: "code" }): HTMLElement {
    const code = h("code", {}, block.text);
    const copy = h(
        "button",
        { type: "button", class: "quiet small", onclick: () => void copyText(code.textContent ?? "", copy) },
        icon("copy"),
        h("span", {}, "Copy"),
    );
    const label = block.language || "code";
    return h(
        "figure",
        { class: "code" },
        h("figcaption", {}, h("span", {}, label), copy),
        h("pre", { tabindex: "0", "aria-label": label }, code),
    );
}

function table(block: Block & { kind: "table" }): HTMLElement {
    const row = (cells: Inline[][], tag: "th" | "td"): HTMLElement =>
        h("tr", {}, ...cells.map((cell, i) => h(tag, { class: block.align[i] || undefined }, ...inline(cell))));
    return h(
        "div",
        { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
        h("table", {}, h("thead", {}, row(block.head, "th")), h("tbody", {}, ...block.rows.map((r) => row(r, "td")))),
    );
}

function list(block: Block & { kind: "list" }): HTMLElement {
    const items = block.items.map((item) =>
        h(
            "li",
            {},
            ...item.flatMap((inner): Child[] =>
                block.tight && inner.kind === "paragraph" ? inline(inner.children) : [element(inner)],
            ),
        ),
    );
    return block.ordered ? h("ol", block.start === 1 ? {} : { start: block.start }, ...items) : h("ul", {}, ...items);
}

function element(block: Block): HTMLElement {
    switch (block.kind) {
        case "heading":
            // The page itself uses h1 and h2.
            return h(`h${Math.min(6, block.level + 2)}` as "h3", {}, ...inline(block.children));
        case "paragraph":
            return h("p", {}, ...inline(block.children));
        case "code":
            return codeBlock(block);
        case "list":
            return list(block);
        case "quote":
            return h("blockquote", {}, ...block.children.map(element));
        case "table":
            return table(block);
        case "rule":
            return h("hr");
    }
}

/** Shows a streamed text in `root`; only the last block is rendered again. */
export class MarkdownView {
    readonly root: HTMLElement;
    /** Called with the text of each block once it is final. */
    onBlock: ((text: string) => void) | null = null;
    #source = "";
    /** Offset of the last block, and its element. */
    #at = 0;
    #last: { block: Block; element: HTMLElement } | null = null;

    constructor(root: HTMLElement) {
        this.root = root;
    }

    get source(): string {
        return this.#source;
    }

    set(source: string): void {
        if (source === this.#source) {
            return;
        }
        if (!source.startsWith(this.#source)) {
            this.root.replaceChildren();
            this.#at = 0;
            this.#last = null;
        }
        this.#source = source;
        const blocks = parseBlocks(source.slice(this.#at), this.#at);
        blocks.forEach((block, i) => {
            this.#put(block, i === 0 ? this.#last : null);
            if (i < blocks.length - 1) {
                this.#reportBlock();
            }
        });
    }

    /** The text is complete. */
    end(): void {
        if (this.#last) {
            this.#reportBlock();
        }
    }

    #reportBlock(): void {
        this.onBlock?.(this.#last?.element.textContent ?? "");
    }

    #put(block: Block, before: { block: Block; element: HTMLElement } | null): void {
        this.#at = block.at;
        if (before && before.block.kind === "code" && block.kind === "code" && before.block.language === block.language) {
            // Code elements are updated in place, so that scroll position and selection are kept.
            const code = before.element.querySelector("pre code");
            const text = code?.firstChild;
            if (code && text instanceof Text && block.text.startsWith(text.data)) {
                text.appendData(block.text.slice(text.data.length));
            } else if (code) {
                code.textContent = block.text;
            }
            this.#last = { block, element: before.element };
            return;
        }
        const rendered = element(block);
        if (before) {
            before.element.replaceWith(rendered);
        } else {
            this.root.append(rendered);
        }
        this.#last = { block, element: rendered };
    }
}
