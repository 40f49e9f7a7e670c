/** Colors of code, from a worker that starts with the first code block. */
import type { ColoredLine, HighlightAnswer, HighlightRequest } from "./highlight_types.js";

let worker: Worker | null = null;
let lastId = 0;
const waiting = new Map<number, (lines: ColoredLine[] | null) => void>();

function giveUp(): void {
    waiting.forEach((resolve) => resolve(null));
    waiting.clear();
}

let lastBlock = 0;

/** A name for a block of code. */
export const newBlock = (): number => ++lastBlock;

/** The lines whose colors changed since the last call for the block; null: the language is unknown, or there is no
 * worker. */
export function highlight(block: number, language: string, text: string): Promise<ColoredLine[] | null> {
    if (!worker) {
        worker = new Worker(new URL("./highlight_worker.js", import.meta.url), { type: "module" });
        worker.onmessage = ({ data: { id, lines } }: MessageEvent<HighlightAnswer>) => {
            waiting.get(id)?.(lines);
            waiting.delete(id);
        };
        worker.onerror = giveUp; // the code stays without colors
    }
    const request: HighlightRequest = { id: ++lastId, block, language: language.toLowerCase(), text };
    return new Promise((resolve) => {
        waiting.set(request.id, resolve);
        worker?.postMessage(request);
    });
}
