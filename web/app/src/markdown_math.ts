/** Formulas and footnotes, as extensions of the Markdown parser: \(x\), $x$, \[x\], $$x$$, [^1] and [^1]: text. */
import type { Token, TokenizerAndRendererExtension, TokenizerThis } from "marked";

/** Longer ones are text: a stray mark must not swallow an answer. */
const MAX_FORMULA = 5000;

export interface MathToken {
    type: "math";
    raw: string;
    text: string;
    display: boolean;
    /** false: the answer ends inside. */
    closed: boolean;
}

export interface FootnoteReference {
    type: "footnoteReference";
    raw: string;
    label: string;
}

export interface FootnoteToken {
    type: "footnote";
    raw: string;
    label: string;
    tokens: Token[];
}

function math(raw: string, text: string, display: boolean, closed = true): MathToken {
    return { type: "math", raw, text: text.trim(), display, closed };
}

/** From `open` to the first `close`; a formula has no empty line. */
function between(source: string, open: string, close: string): string | null {
    if (!source.startsWith(open)) {
        return null;
    }
    const end = source.slice(0, MAX_FORMULA).indexOf(close, open.length);
    const text = end < 0 ? "" : source.slice(open.length, end);
    return text.trim() === "" || /\n[ \t]*\n/.test(text) ? null : text;
}

/** $x$ as Pandoc reads it: no white space inside next to the marks, no digit after the last one ("$5 and $6" is text). */
function dollars(source: string): MathToken | undefined {
    const match = /^\$(?![\s$])((?:[^$\\\n]|\\[^\n]){0,1000}?[^\s$\\]|(?:[^$\\\n]|\\[^\n]){0,1000}?\\[^\s])\$(?![\d$])/.exec(source);
    return match ? math(match[0], match[1] ?? "", false) : undefined;
}

const inlineMath: TokenizerAndRendererExtension = {
    name: "math",
    level: "inline",
    start: (source) => /\$|\\[([]/.exec(source)?.index,
    tokenizer: (source): MathToken | undefined => {
        for (const [open, close, display] of [["\\(", "\\)", false], ["\\[", "\\]", true], ["$$", "$$", true]] as const) {
            const text = between(source, open, close);
            if (text !== null) {
                return math(open + text + close, text, display);
            }
        }
        return source.startsWith("$") ? dollars(source) : undefined;
    },
};

/** A formula on lines of its own. */
const blockMath: TokenizerAndRendererExtension = {
    name: "mathBlock",
    level: "block",
    start: (source) => {
        const match = /\n {0,3}(?:\$\$|\\\[)/.exec(source);
        return match ? match.index + 1 : undefined;
    },
    tokenizer: (source): MathToken | undefined => {
        const [indent = "", open = ""] = /^ {0,3}(\$\$|\\\[)/.exec(source) ?? [];
        if (open === "") {
            return undefined;
        }
        const close = open === "$$" ? "$$" : "\\]";
        const text = between(source.slice(indent.length - open.length), open, close);
        if (text !== null) {
            const length = indent.length + text.length + close.length;
            const rest = /^[ \t]*(\n+|$)/.exec(source.slice(length));
            return rest ? math(source.slice(0, length + rest[0].length), text, true) : undefined;
        }
        const unfinished = source.length < MAX_FORMULA && !source.includes(close, indent.length) && !/\n[ \t]*\n/.test(source);
        return unfinished ? math(source, source.slice(indent.length), true, false) : undefined;
    },
};

const footnoteReference: TokenizerAndRendererExtension = {
    name: "footnoteReference",
    level: "inline",
    start: (source) => {
        const at = source.indexOf("[^");
        return at < 0 ? undefined : at;
    },
    tokenizer: (source): FootnoteReference | undefined => {
        const match = /^\[\^([^\]\s^]{1,40})\]/.exec(source);
        return match ? { type: "footnoteReference", raw: match[0], label: match[1] ?? "" } : undefined;
    },
};

const footnote: TokenizerAndRendererExtension = {
    name: "footnote",
    level: "block",
    start: (source) => {
        const match = /\n\[\^[^\]\s^]{1,40}\]:/.exec(source);
        return match ? match.index + 1 : undefined;
    },
    tokenizer(this: TokenizerThis, source): FootnoteToken | undefined {
        const match = /^\[\^([^\]\s^]{1,40})\]:[ \t]*([^\n]*(?:\n(?!\[\^|[ \t]*(?:\n|$))[^\n]+)*)(?:\n+|$)/.exec(source);
        if (!match) {
            return undefined;
        }
        const tokens: Token[] = [];
        this.lexer.inline(match[2] ?? "", tokens);
        return { type: "footnote", raw: match[0], label: match[1] ?? "", tokens };
    },
};

export const extensions = [inlineMath, blockMath, footnoteReference, footnote];
