/** Parses the inline Markdown of a block: emphasis, code, strike-through, links. */

export type Inline =
    | { kind: "text"; text: string }
    | { kind: "code"; text: string }
    | { kind: "break" }
    | { kind: "strong" | "em" | "del"; children: Inline[] }
    | { kind: "link"; href: string; children: Inline[] };

/** Deeper nesting becomes text, so that no input can exhaust the stack. */
export const MAX_DEPTH = 12;

const punctuation = /[!-/:-@[-`{-~]/;
const wordCharacter = /[\p{L}\p{N}]/u;

/** Allows only http(s) and mailto links; null otherwise. */
export function safeHref(href: string): string | null {
    return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : null;
}

/** A loop: / +$/ takes quadratic time for many spaces before another character. */
function withoutTrailingSpaces(text: string): string {
    let end = text.length;
    while (end > 0 && text[end - 1] === " ") {
        end--;
    }
    return text.slice(0, end);
}

export function parseInline(text: string): Inline[] {
    return new InlineParser(text).parse(0, text.length, 0);
}

class InlineParser {
    readonly #text: string;
    /** Marks without a closing mark after a position; keeps parsing linear for long runs of marks. */
    readonly #unclosed = new Map<string, number>();

    constructor(text: string) {
        this.#text = text;
    }

    parse(begin: number, end: number, depth: number): Inline[] {
        const out: Inline[] = [];
        let plain = "";
        const flush = (): void => {
            if (plain) {
                out.push({ kind: "text", text: plain });
                plain = "";
            }
        };
        let i = begin;
        while (i < end) {
            const found = this.#special(i, end, depth);
            if (!found) {
                plain += this.#text[i] ?? "";
                i++;
            } else if (typeof found.node === "string") {
                plain += found.node;
                i = found.next;
            } else {
                if (found.node.kind === "break") {
                    plain = withoutTrailingSpaces(plain);
                }
                flush();
                out.push(found.node);
                i = found.next;
            }
        }
        flush();
        return out;
    }

    /** The inline element at `i`; null: a plain character. */
    #special(i: number, end: number, depth: number): { node: Inline | string; next: number } | null {
        const text = this.#text;
        const c = text[i] ?? "";
        switch (c) {
            case "\n":
                return /(?: {2}|\\)$/.test(text.slice(Math.max(0, i - 2), i))
                    ? { node: { kind: "break" }, next: i + 1 }
                    : { node: " ", next: i + 1 };
            case "\\":
                if (text[i + 1] === "\n") {
                    return { node: "", next: i + 1 };
                }
                return punctuation.test(text[i + 1] ?? "") && i + 1 < end ? { node: text[i + 1] ?? "", next: i + 2 } : null;
            case "`":
                return this.#code(i, end);
            case "!":
                // Images are never fetched; they become links.
                return text[i + 1] === "[" && depth < MAX_DEPTH ? this.#link(i + 1, end, depth) : null;
            case "[":
                return depth < MAX_DEPTH ? this.#link(i, end, depth) : null;
            case "<":
                return this.#autolink(i, end);
            case "h":
                return this.#bareLink(i, end);
            case "*":
            case "_":
            case "~":
                return depth < MAX_DEPTH ? this.#emphasis(i, end, depth, c) : null;
            default:
                return null;
        }
    }

    #code(i: number, end: number): { node: Inline | string; next: number } {
        const mark = /^`+/.exec(this.#text.slice(i, end))?.[0] ?? "`";
        let close = this.#find(mark, i + mark.length, end);
        while (close >= 0 && (this.#text[close + mark.length] === "`" || this.#text[close - 1] === "`")) {
            let after = close;
            while (this.#text[after] === "`") {
                after++;
            }
            close = this.#find(mark, after, end);
        }
        if (close < 0) {
            return { node: mark, next: i + mark.length };
        }
        const inner = this.#text.slice(i + mark.length, close).replace(/\n/g, " ");
        const padded = inner.startsWith(" ") && inner.endsWith(" ") && withoutTrailingSpaces(inner) !== "";
        return { node: { kind: "code", text: padded ? inner.slice(1, -1) : inner }, next: close + mark.length };
    }

    /** Next offset of `mark`, or -1. Failed searches are cached. */
    #find(mark: string, from: number, end: number): number {
        if (from >= (this.#unclosed.get(mark) ?? Infinity)) {
            return -1;
        }
        const at = this.#text.indexOf(mark, from);
        if (at < 0) {
            this.#unclosed.set(mark, Math.min(from, this.#unclosed.get(mark) ?? Infinity));
        }
        return at >= 0 && at + mark.length <= end ? at : -1;
    }

    #link(i: number, end: number, depth: number): { node: Inline; next: number } | null {
        const text = this.#text;
        const middle = this.#find("](", i + 1, end);
        const close = middle < 0 ? -1 : this.#closingParenthesis(middle + 2, end);
        if (close < 0 || text.slice(i + 1, middle).includes("[")) {
            return null;
        }
        const target = text.slice(middle + 2, close).trim();
        const href = safeHref((/^<([^>]*)>|^\S+/.exec(target)?.[1] ?? /^\S+/.exec(target)?.[0] ?? "").trim());
        const children = this.parse(i + 1, middle, depth + 1);
        return { node: href === null ? { kind: "em", children } : { kind: "link", href, children }, next: close + 1 };
    }

    #closingParenthesis(from: number, end: number): number {
        let open = 0;
        for (let i = from; i < Math.min(end, from + 2000); i++) {
            const c = this.#text[i];
            if (c === "\n") {
                return -1;
            }
            open += Number(c === "(");
            if (c === ")" && open-- === 0) {
                return i;
            }
        }
        return -1;
    }

    #autolink(i: number, end: number): { node: Inline; next: number } | null {
        const match = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/i.exec(this.#text.slice(i, Math.min(end, i + 2000)));
        const href = match && safeHref(match[1] ?? "");
        return match && href
            ? { node: { kind: "link", href, children: [{ kind: "text", text: href }] }, next: i + match[0].length }
            : null;
    }

    #bareLink(i: number, end: number): { node: Inline; next: number } | null {
        if (wordCharacter.test(this.#text[i - 1] ?? "") || !this.#text.startsWith("http", i)) {
            return null;
        }
        const found = /^https?:\/\/[^\s<>"`*]+/i.exec(this.#text.slice(i, Math.min(end, i + 2000)))?.[0];
        if (!found) {
            return null;
        }
        let href = found.replace(/[.,:;!?'\]}]+$/, "");
        if (href.endsWith(")") && !href.includes("(")) {
            href = href.replace(/\)+$/, "");
        }
        return { node: { kind: "link", href, children: [{ kind: "text", text: href }] }, next: i + href.length };
    }

    #emphasis(i: number, end: number, depth: number, c: string): { node: Inline | string; next: number } | null {
        const text = this.#text;
        let run = 1;
        while (text[i + run] === c && i + run < end) {
            run++;
        }
        const asText = { node: text.slice(i, i + run), next: i + run };
        const after = text[i + run] ?? " ";
        const before = text[i - 1] ?? " ";
        const opens = !/\s/.test(after) && (c !== "_" || !wordCharacter.test(before));
        if (!opens || i + run >= end || (c === "~" && run !== 2)) {
            return asText;
        }
        for (const width of c === "~" ? [2] : run >= 2 ? [2, 1] : [1]) {
            const mark = c.repeat(width);
            const close = this.#closer(mark, i + width, end);
            if (close > i + width) {
                const kind = c === "~" ? "del" : width === 2 ? "strong" : "em";
                return { node: { kind, children: this.parse(i + width, close, depth + 1) }, next: close + width };
            }
        }
        return asText;
    }

    /** Offset of the closing mark of emphasis opened before `from`: after a non-space, outside code; -1: none. */
    #closer(mark: string, from: number, end: number): number {
        const text = this.#text;
        const c = mark[0] ?? "";
        if (from >= (this.#unclosed.get(`end ${mark} ${end}`) ?? Infinity)) {
            return -1;
        }
        for (let i = from; i < end; i++) {
            if (text[i] === "`") {
                const skipped = this.#code(i, end);
                i = skipped.next - 1;
            } else if (text[i] === "\\") {
                i++;
            } else if (text[i] === c) {
                let run = 1;
                while (text[i + run] === c && i + run < end) {
                    run++;
                }
                const canClose = !/\s/.test(text[i - 1] ?? " ") && (c !== "_" || !wordCharacter.test(text[i + run] ?? " "));
                if (canClose && (run === mark.length || (run === 3 && mark.length < 3) || run > 3)) {
                    return run === 3 && mark.length === 2 ? i + 1 : i;
                }
                i += run - 1;
            }
        }
        this.#unclosed.set(`end ${mark} ${end}`, from);
        return -1;
    }
}
