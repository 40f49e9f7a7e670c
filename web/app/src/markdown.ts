/** Parses Markdown as models write it into a tree. No DOM here.
 *
 * Blocks: headings, paragraphs, fenced code, lists, quotes, tables, rules. Inline: emphasis, code, strike-through,
 * links. HTML is treated as text. While a text is streamed, every block but the last is final: `parseBlocks` returns
 * the offset of each block, so that only the last one is parsed again. */
import { MAX_DEPTH, parseInline, type Inline } from "./markdown_inline.js";

export type Align = "left" | "center" | "right" | "";

export type Block =
    | { kind: "heading"; at: number; level: number; children: Inline[] }
    | { kind: "paragraph"; at: number; children: Inline[] }
    | { kind: "code"; at: number; language: string; text: string; closed: boolean }
    | { kind: "list"; at: number; ordered: boolean; start: number; tight: boolean; items: Block[][] }
    | { kind: "quote"; at: number; children: Block[] }
    | { kind: "table"; at: number; align: Align[]; head: Inline[][]; rows: Inline[][][] }
    | { kind: "rule"; at: number };

interface Line {
    text: string;
    /** Offset in the source text. */
    at: number;
}

// No two neighboring parts of these match the same character without limit: backtracking would take quadratic time.
const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const headingMark = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const rule = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const bullet = /^( {0,3})([-*+]|\d{1,9}[.)])(?:([ \t]+)(.*)|)$/;
const quote = /^ {0,3}>[ ]?(.*)$/;
const delimiterCell = /^:?-+:?$/;

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
    const headed = headingMark.exec(text);
    if (headed) {
        const title = withoutClosingMarks(text.slice(headed[0].length).trim());
        return [{ kind: "heading", at, level: (headed[1] ?? "").length, children: parseInline(title) }, i + 1];
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

/** "Title ##" is "Title". A loop, because a regular expression takes quadratic time for many spaces. */
function withoutClosingMarks(title: string): string {
    let end = title.length;
    while (end > 0 && title[end - 1] === "#") {
        end--;
    }
    return end === 0 ? "" : /[ \t]/.test(title[end - 1] as string) ? title.slice(0, end).trimEnd() : title;
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
        closed = ended !== null && blank(ended[2] ?? "") && (ended[1] ?? "").startsWith(mark);
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
    return fence.test(text) || headingMark.test(text) || rule.test(text) || quote.test(text) || bullet.test(text);
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
        head.includes("|") && delimiters.includes("-") && cellsOf(delimiters).every((cell) => delimiterCell.test(cell)) &&
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
