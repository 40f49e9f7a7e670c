/** Parses Markdown as models write it (GFM, formulas, footnotes) into a tree. marked splits the text into tokens, this
 * file keeps of them what the page shows. HTML is text: nothing here or later turns a model's words into elements of
 * their own choice. No DOM here. */
import { Lexer, Marked, Tokenizer, type Links, type MarkedToken, type Token, type Tokens } from "marked";
import { extensions, type FootnoteReference, type FootnoteToken, type MathToken } from "./markdown_math.js";

export type Align = "left" | "center" | "right" | "";

export type Inline =
    | { kind: "text"; text: string }
    | { kind: "code"; text: string }
    | { kind: "math"; text: string; display: boolean }
    | { kind: "break" }
    | { kind: "note"; label: string }
    | { kind: "link"; href: string; children: Inline[] }
    | { kind: "strong" | "em" | "del"; children: Inline[] };

export interface ListItem {
    /** null: not a task. */
    done: boolean | null;
    children: Block[];
}

export type Block =
    | { kind: "heading"; level: number; children: Inline[] }
    | { kind: "paragraph"; children: Inline[] }
    | { kind: "code"; language: string; text: string; closed: boolean }
    | { kind: "math"; text: string; closed: boolean }
    | { kind: "list"; ordered: boolean; start: number; tight: boolean; items: ListItem[] }
    | { kind: "quote"; children: Block[] }
    | { kind: "table"; align: Align[]; head: Inline[][]; rows: Inline[][][] }
    | { kind: "footnote"; label: string; children: Inline[] }
    | { kind: "rule" };

/** A block of the text itself, which other blocks do not contain. */
export interface Placed {
    block: Block;
    /** Characters that it takes; the blank lines after it may belong to it. */
    raw: string;
    /** Offset in the source. */
    at: number;
    /** Lists only: the source of each item. */
    items: string[];
}

/** Quotes, lists and emphasis that are nested deeper are text. */
export const MAX_DEPTH = 16;

/** marked's tokenizer, which follows any nesting. Neither has it an end to its search for the end of emphasis: a mark
 * that opens nothing within this many characters is text. */
class BoundedTokenizer extends Tokenizer {
    #blocks = 0;
    #inlines = 0;

    #nested<T>(act: () => T): T | undefined {
        if (this.#blocks >= MAX_DEPTH) {
            return undefined;
        }
        this.#blocks++;
        try {
            return act();
        } finally {
            this.#blocks--;
        }
    }

    #within<T>(act: () => T): T | undefined {
        if (this.#inlines >= MAX_DEPTH) {
            return undefined;
        }
        this.#inlines++;
        try {
            return act();
        } finally {
            this.#inlines--;
        }
    }

    override blockquote(source: string): Tokens.Blockquote | undefined {
        return this.#nested(() => super.blockquote(source));
    }

    override list(source: string): Tokens.List | undefined {
        return this.#nested(() => super.list(source));
    }

    override emStrong(source: string, masked: string, before?: string): Tokens.Em | Tokens.Strong | undefined {
        return this.#within(() => super.emStrong(source, masked, before));
    }

    override link(source: string): Tokens.Link | Tokens.Image | undefined {
        return this.#within(() => super.link(source));
    }

    // HTML is text, in which Markdown goes on.
    override html(): undefined {
        return undefined;
    }

    override tag(): undefined {
        return undefined;
    }
}

const marked = new Marked({ gfm: true });
marked.use({ extensions });

/** Definitions of links ("[name]: address"), which apply to the whole text. */
export type LinkDefinitions = Links;

/** http, https and mailto only; null: anything else, for example javascript:. */
export function safeHref(href: string): string | null {
    return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : null;
}

const entities: Record<string, string> = {
    amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "\u00a9", reg: "\u00ae", trade: "\u2122", hellip: "\u2026", mdash: "\u2014", ndash: "\u2013",
    times: "\u00d7", divide: "\u00f7", deg: "\u00b0", middot: "\u00b7", bull: "\u2022", larr: "\u2190", rarr: "\u2192", le: "\u2264", ge: "\u2265", ne: "\u2260", euro: "\u20ac", pound: "\u00a3",
};

function decodeEntities(text: string): string {
    if (!text.includes("&")) {
        return text;
    }
    return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
        const code = decimal !== undefined ? Number(decimal) : hex !== undefined ? parseInt(hex, 16) : -1;
        if (code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)) {
            return String.fromCodePoint(code);
        }
        return entities[name ?? ""] ?? whole;
    });
}

const softBreaks = (text: string): string => text.replace(/ ?\n/g, " ");

// ---- inline -----------------------------------------------------------------------------------------

type AnyToken = MarkedToken | MathToken | FootnoteReference | FootnoteToken;

function linkOf(href: string, children: Inline[]): Inline {
    const safe = safeHref(href);
    return safe === null ? { kind: "em", children } : { kind: "link", href: safe, children };
}

function inlineOf(token: AnyToken): Inline[] {
    switch (token.type) {
        case "strong":
        case "em":
        case "del":
            return [{ kind: token.type, children: inlines(token.tokens) }];
        case "codespan":
            return [{ kind: "code", text: token.text }];
        case "br":
            return [{ kind: "break" }];
        case "link":
            return [token.autolink ? linkOf(token.href, [{ kind: "text", text: token.text }]) : linkOf(decodeEntities(token.href), inlines(token.tokens))];
        case "image":
            return [linkOf(token.href, [{ kind: "text", text: decodeEntities(token.text) || "image" }])];
        case "math":
            return [{ kind: "math", text: token.text, display: token.display }];
        case "footnoteReference":
            return [{ kind: "note", label: token.label }];
        case "escape":
            return [{ kind: "text", text: token.text }];
        case "checkbox":
            return [];
        case "text":
            return token.tokens ? inlines(token.tokens) : [{ kind: "text", text: softBreaks(decodeEntities(token.text)) }];
        default:
            return [{ kind: "text", text: softBreaks(token.raw) }];
    }
}

function inlines(tokens: Token[] | undefined): Inline[] {
    const all = ((tokens ?? []) as AnyToken[]).flatMap(inlineOf);
    return all.reduce<Inline[]>((merged, one) => {
        const last = merged.at(-1);
        if (last?.kind === "text" && one.kind === "text") {
            merged[merged.length - 1] = { kind: "text", text: last.text + one.text };
        } else {
            merged.push(one);
        }
        return merged;
    }, []);
}

// ---- blocks -----------------------------------------------------------------------------------------

/** Whether the source of a fenced block has its last fence. */
function isClosed(raw: string): boolean {
    const [mark = ""] = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.slice(1) ?? [];
    const last = raw.trimEnd().split("\n").slice(1).at(-1)?.trim() ?? "";
    return mark === "" || (last.startsWith(mark) && last.replaceAll(mark.charAt(0), "") === "");
}

function listOf(token: Tokens.List): Block {
    const items = token.items.map((item): ListItem => ({ done: item.task ? item.checked === true : null, children: blocksOf(item.tokens) }));
    return { kind: "list", ordered: token.ordered, start: token.start === "" ? 1 : token.start, tight: !token.loose, items };
}

function tableOf(token: Tokens.Table): Block {
    const cells = (row: Tokens.TableCell[]): Inline[][] => row.map(({ tokens }) => inlines(tokens));
    return { kind: "table", align: token.align.map((one) => one ?? ""), head: cells(token.header), rows: token.rows.map(cells) };
}

function blockOf(token: AnyToken): Block | null {
    switch (token.type) {
        case "heading":
            return { kind: "heading", level: token.depth, children: inlines(token.tokens) };
        case "paragraph":
            return { kind: "paragraph", children: inlines(token.tokens) };
        case "code":
            return { kind: "code", language: token.lang?.trim().split(/\s/)[0] ?? "", text: token.text, closed: token.codeBlockStyle === "indented" || isClosed(token.raw) };
        case "math":
            return { kind: "math", text: token.text, closed: token.closed };
        case "list":
            return listOf(token);
        case "blockquote":
            return { kind: "quote", children: blocksOf(token.tokens) };
        case "table":
            return tableOf(token);
        case "footnote":
            return { kind: "footnote", label: token.label, children: inlines(token.tokens) };
        case "hr":
            return { kind: "rule" };
        case "space":
        case "def":
        case "checkbox":
            return null;
        default: {
            const children = inlineOf(token);
            return children.length > 0 ? { kind: "paragraph", children } : null;
        }
    }
}

function blocksOf(tokens: Token[]): Block[] {
    return (tokens as AnyToken[]).map(blockOf).filter((block) => block !== null);
}

/** The blocks of a text without carriage returns; `at`: its offset in a larger one. */
export function parsePlaced(source: string, at = 0, links?: LinkDefinitions): Placed[] {
    const lexer = new Lexer({ ...marked.defaults, tokenizer: new BoundedTokenizer() });
    if (links) {
        lexer.tokens.links = links;
    }
    const placed: Placed[] = [];
    let offset = at;
    for (const token of lexer.lex(source) as AnyToken[]) {
        const block = blockOf(token);
        if (block) {
            placed.push({ block, raw: token.raw, at: offset, items: token.type === "list" ? token.items.map(({ raw }) => raw) : [] });
        }
        offset += token.raw.length;
    }
    return placed;
}

export function parseBlocks(source: string): Block[] {
    return parsePlaced(source.replaceAll("\r", "")).map(({ block }) => block);
}
