/** Parses Markdown as models write it into a tree. No DOM here.
 *
 * Blocks: headings, paragraphs, fenced code, lists, quotes, tables, rules. Inline: emphasis, code, strike-through,
 * links. HTML is treated as text. While a text is streamed, every block but the last is final: `parseBlocks` returns
 * the offset of each block, so that only the last one is parsed again. */

export type Inline =
    | { kind: "text"; text: string }
    | { kind: "code"; text: string }
    | { kind: "break" }
    | { kind: "strong" | "em" | "del"; children: Inline[] }
    | { kind: "link"; href: string; children: Inline[] };

export type Align = "left" | "center" | "right" | "";

export type Block =
    | { kind: "heading"; at: number; level: number; children: Inline[] }
    | { kind: "paragraph"; at: number; children: Inline[] }
    | { kind: "code"; at: number; language: string; text: string; closed: boolean }
    | { kind: "list"; at: number; ordered: boolean; start: number; tight: boolean; items: Block[][] }
    | { kind: "quote"; at: number; children: Block[] }
    | { kind: "table"; at: number; align: Align[]; head: Inline[][]; rows: Inline[][][] }
    | { kind: "rule"; at: number };

/** Deeper nesting becomes text, so that no input can exhaust the stack. */
const MAX_DEPTH = 12;

interface Line {
    text: string;
    /** Offset in the source text. */
    at: number;
}

const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$/;
const rule = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const bullet = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|)$/;
const quote = /^ {0,3}>[ ]?(.*)$/;
const delimiterRow = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

const blank = (text: string): boolean => text.trim() === "";

export function parseBlocks(source: string, at = 0): Block[] {
    let offset = at;
    const lines = source.split("\n").map((raw) => {
        const line = { text: raw.replace(/\r$/, "").replace(/\t/g, "    "), at: offset };
        offset += raw.length + 1;
        return line;
    });
    return blocksOf(lines, 0);
}

function blocksOf(lines: Line[], depth: number): Block[] {
    const blocks: Block[] = [];
    let i = 0;
    while (i < lines.length) {
        const line = lines[i] as Line;
        if (blank(line.text)) {
            i++;
            continue;
        }
        const [block, next] = blockAt(lines, i, depth);
        blocks.push(block);
        i = next;
    }
    return blocks;
}

/** The block that begins at line `i`, and the line after it. */
function blockAt(lines: Line[], i: number, depth: number): [Block, number] {
    const { text, at } = lines[i] as Line;
    const fenced = fence.exec(text);
    if (fenced) {
        return codeAt(lines, i, fenced);
    }
    const headed = heading.exec(text);
    if (headed) {
        return [{ kind: "heading", at, level: (headed[1] ?? "").length, children: parseInline(headed[2] ?? "") }, i + 1];
    }
    if (rule.test(text)) {
        return [{ kind: "rule", at }, i + 1];
    }
    if (depth < MAX_DEPTH && quote.test(text)) {
        return quoteAt(lines, i, depth);
    }
    if (depth < MAX_DEPTH && bullet.test(text)) {
        return listAt(lines, i, depth);
    }
    if (isTable(lines, i)) {
        return tableAt(lines, i);
    }
    return paragraphAt(lines, i);
}

function codeAt(lines: Line[], i: number, opened: RegExpExecArray): [Block, number] {
    const mark = opened[1] ?? "```";
    const indent = /^ */.exec(opened[0])?.[0].length ?? 0;
    const body: string[] = [];
    let next = i + 1;
    let closed = false;
    for (; next < lines.length && !closed; next++) {
        const text = lines[next]?.text ?? "";
        const ended = fence.exec(text);
        closed = ended !== null && ended[2] === "" && (ended[1] ?? "").startsWith(mark);
        if (!closed) {
            body.push(text.slice(Math.min(indent, /^ */.exec(text)?.[0].length ?? 0)));
        }
    }
    const language = (opened[2] ?? "").trim().split(/\s/)[0] ?? "";
    return [{ kind: "code", at: lines[i]?.at ?? 0, language, text: body.join("\n"), closed }, next];
}

function quoteAt(lines: Line[], i: number, depth: number): [Block, number] {
    const inner: Line[] = [];
    let next = i;
    for (; next < lines.length; next++) {
        const { text, at } = lines[next] as Line;
        const match = quote.exec(text);
        if (match) {
            inner.push({ text: match[1] ?? "", at });
        } else if (!blank(text) && !startsBlock(text)) {
            inner.push({ text, at }); // lazy continuation line
        } else {
            break;
        }
    }
    return [{ kind: "quote", at: lines[i]?.at ?? 0, children: blocksOf(inner, depth + 1) }, next];
}

function listAt(lines: Line[], i: number, depth: number): [Block, number] {
    const first = bullet.exec(lines[i]?.text ?? "") as RegExpExecArray;
    const ordered = /\d/.test(first[2] ?? "");
    const items: Line[][] = [];
    let tight = true;
    let next = i;
    while (next < lines.length) {
        const { text, at } = lines[next] as Line;
        const match = rule.test(text) ? null : bullet.exec(text);
        if (!match || /\d/.test(match[2] ?? "") !== ordered) {
            break;
        }
        const mark = (match[1] ?? "").length + (match[2] ?? "").length;
        const gap = (match[3] ?? "").length;
        const indent = mark + (gap >= 1 && gap <= 4 && match[4] !== "" ? gap : 1);
        const item: Line[] = [{ text: match[4] === undefined ? "" : text.slice(indent), at }];
        next++;
        for (; next < lines.length; next++) {
            const { text: more, at: moreAt } = lines[next] as Line;
            const width = /^ */.exec(more)?.[0].length ?? 0;
            const before = item[item.length - 1]?.text ?? "";
            if (blank(more)) {
                const after = lines[next + 1];
                const continues = after && !blank(after.text) && (/^ */.exec(after.text)?.[0].length ?? 0) >= Math.min(indent, 2);
                if (!continues || !after) {
                    break;
                }
                item.push({ text: "", at: moreAt });
            } else if (width >= indent) {
                item.push({ text: more.slice(indent), at: moreAt });
            } else if (width >= 2 && bullet.test(more.trimStart())) {
                item.push({ text: more.trimStart(), at: moreAt }); // nested, but indented too little
            } else if (!startsBlock(more) && !blank(before)) {
                item.push({ text: more.trimStart(), at: moreAt });
            } else {
                break;
            }
        }
        items.push(item);
        // Blank lines between items belong to the list; those after the last item do not.
        let gapEnd = next;
        while (gapEnd < lines.length && blank(lines[gapEnd]?.text ?? "")) {
            gapEnd++;
        }
        if (gapEnd > next && gapEnd < lines.length && bullet.test(lines[gapEnd]?.text ?? "")) {
            tight = false;
            next = gapEnd;
        } else if (gapEnd > next) {
            break;
        }
    }
    const start = ordered ? parseInt(first[2] ?? "1", 10) : 1;
    return [
        { kind: "list", at: lines[i]?.at ?? 0, ordered, start, tight, items: items.map((item) => blocksOf(item, depth + 1)) },
        next,
    ];
}

function startsBlock(text: string): boolean {
    return fence.test(text) || heading.test(text) || rule.test(text) || quote.test(text) || bullet.test(text);
}

function paragraphAt(lines: Line[], i: number): [Block, number] {
    const parts: string[] = [lines[i]?.text.trimStart() ?? ""];
    let next = i + 1;
    for (; next < lines.length; next++) {
        const text = lines[next]?.text ?? "";
        if (blank(text) || startsBlock(text) || isTable(lines, next)) {
            break;
        }
        parts.push(text.trimStart());
    }
    return [{ kind: "paragraph", at: lines[i]?.at ?? 0, children: parseInline(parts.join("\n").trimEnd()) }, next];
}

// ---- tables -----------------------------------------------------------------------------------------

function cellsOf(text: string): string[] {
    const row = text.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
    return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function isTable(lines: Line[], i: number): boolean {
    const [head, delimiters] = [lines[i]?.text ?? "", lines[i + 1]?.text ?? ""];
    return (
        head.includes("|") && delimiters.includes("-") && delimiterRow.test(delimiters) &&
        cellsOf(head).length === cellsOf(delimiters).length
    );
}

function tableAt(lines: Line[], i: number): [Block, number] {
    const head = cellsOf(lines[i]?.text ?? "");
    const align = cellsOf(lines[i + 1]?.text ?? "").map((cell): Align => {
        const [left, right] = [cell.startsWith(":"), cell.endsWith(":")];
        return left && right ? "center" : right ? "right" : left ? "left" : "";
    });
    const rows: string[][] = [];
    let next = i + 2;
    for (; next < lines.length; next++) {
        const text = lines[next]?.text ?? "";
        if (blank(text) || !text.includes("|") || startsBlock(text)) {
            break;
        }
        const cells = cellsOf(text);
        rows.push(head.map((_, column) => cells[column] ?? ""));
    }
    return [
        {
            kind: "table",
            at: lines[i]?.at ?? 0,
            align,
            head: head.map((cell) => parseInline(cell)),
            rows: rows.map((row) => row.map((cell) => parseInline(cell))),
        },
        next,
    ];
}

// ---- inline ----------------------------------------------------------------------------------------

const punctuation = /[!-/:-@[-`{-~]/;
const wordCharacter = /[\p{L}\p{N}]/u;

/** Allows only http(s) and mailto links; null otherwise. */
export function safeHref(href: string): string | null {
    return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : null;
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
                    plain = plain.replace(/ +$/, "");
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
        const trimmed = /^ .*[^ ].* $/.test(inner) ? inner.slice(1, -1) : inner;
        return { node: { kind: "code", text: trimmed }, next: close + mark.length };
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
