/** What the page and highlight_worker.ts send each other. */

/** A piece of a line, and the name of its color; "": none. */
export interface Piece {
    text: string;
    color: string;
}

export interface ColoredLine {
    /** From 0. */
    index: number;
    pieces: Piece[];
}

export interface HighlightRequest {
    id: number;
    /** The block of code, which may be asked about again when it has grown. */
    block: number;
    language: string;
    text: string;
}

export interface HighlightAnswer {
    id: number;
    /** The lines whose pieces differ from the last answer about the block; null: the language is unknown. */
    lines: ColoredLine[] | null;
}
