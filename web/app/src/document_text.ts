/** Documents to passages: text, Markdown and PDF files, cut where paragraphs end. No DOM here. */
import type { Passage } from "./store.js";

const MAX_BYTES = 50e6;
const MAX_PAGES = 2000;
const MAX_CHARACTERS = 5_000_000;
/** A passage is about this long: several of them fit into a small context. */
const PASSAGE_CHARACTERS = 900;

const names = /\.(txt|text|md|markdown|pdf|csv|tsv|json|log|rst|tex|srt|html?|xml|ya?ml|toml|ini|c|h|cpp|hpp|js|ts|py|rs|go|java|sh|sql|css)$/i;

/** Whether the shelf takes a file, by its name and type. */
export function isDocument({ name, type }: { name: string; type: string }): boolean {
    return names.test(name) || type.startsWith("text/") || type === "application/pdf";
}

/** Pieces of a text, at most PASSAGE_CHARACTERS long, cut at the end of a paragraph, a line, a sentence or a word. */
export function passageTexts(text: string): string[] {
    const pieces: string[] = [];
    let rest = text.replace(/\r\n?/g, "\n").replace(/[^\S\n]+/g, " ").replace(/\n{3,}/g, "\n\n").trim();
    while (rest.length > PASSAGE_CHARACTERS) {
        const window = rest.slice(0, PASSAGE_CHARACTERS);
        const ends = [window.lastIndexOf("\n\n"), window.lastIndexOf("\n"), Math.max(window.lastIndexOf(". "), window.lastIndexOf("\u3002")), window.lastIndexOf(" ")];
        const end = ends.find((at) => at > PASSAGE_CHARACTERS / 2);
        const length = end === undefined ? PASSAGE_CHARACTERS : end + 1;
        pieces.push(rest.slice(0, length).trim());
        rest = rest.slice(length).trim();
    }
    return [...pieces, rest].filter((piece) => piece !== "");
}

async function pdfTexts(file: File): Promise<string[]> {
    let pages: string[];
    try {
        const { pdfPages } = await import("./pdf_chunk.js");
        pages = await pdfPages(new Uint8Array(await file.arrayBuffer()), MAX_PAGES);
    } catch (reason) {
        const why = reason instanceof Error && reason.name === "PasswordException" ? "it needs a password" : "it is damaged, or not a PDF file";
        throw new Error(`${file.name} cannot be read: ${why}.`, { cause: reason });
    }
    if (pages.every((page) => page.trim() === "")) {
        throw new Error(`${file.name} has no text: its pages are pictures.`);
    }
    return pages;
}

async function plainText(file: File): Promise<string> {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const text = new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8").decode(bytes);
    if (text.slice(0, 4096).includes("\u0000")) {
        throw new Error(`${file.name} is not a text file.`);
    }
    return text;
}

export interface DocumentText {
    pages: number | null;
    characters: number;
    passages: Omit<Passage, "document" | "name">[];
}

/** Rejects with a sentence for the user. */
export async function readDocument(file: File): Promise<DocumentText> {
    if (file.size === 0 || file.size > MAX_BYTES) {
        throw new Error(file.size === 0 ? `${file.name} is empty.` : `${file.name} is too large: the limit is ${MAX_BYTES / 1e6} MB.`);
    }
    const isPdf = file.type === "application/pdf" || /\.pdf$/i.test(file.name);
    const pages = isPdf ? await pdfTexts(file) : [await plainText(file)];
    const characters = pages.reduce((sum, page) => sum + page.length, 0);
    if (characters > MAX_CHARACTERS) {
        throw new Error(`${file.name} has ${characters.toLocaleString("en")} characters; the limit is ${MAX_CHARACTERS.toLocaleString("en")}.`);
    }
    const passages = pages.flatMap((page, i) => passageTexts(page).map((text) => ({ page: isPdf ? i + 1 : null, text })));
    if (passages.length === 0) {
        throw new Error(`${file.name} has no text.`);
    }
    return { pages: isPdf ? pages.length : null, characters, passages };
}
