/** Colors code in a worker, so that long code never delays the page. highlight.js gives a tree, never HTML. */
import { common, createLowlight } from "lowlight";
import type { ColoredLine, HighlightAnswer, HighlightRequest, Piece } from "./highlight_types.js";

/** Longer code stays as it is. */
const MAX_CHARACTERS = 200_000;

/** The part of the tree that is used. */
interface TreeNode {
    type: string;
    value?: string;
    properties?: { className?: unknown };
    children?: TreeNode[];
}

const lowlight = createLowlight(common);

/** "hljs-title function_" is "title". */
function colorOf({ properties }: TreeNode): string {
    const [name] = Array.isArray(properties?.className) ? (properties.className as unknown[]) : [];
    return /^hljs-([a-z_-]+)$/.exec(String(name))?.[1] ?? "";
}

function linesOf(language: string, text: string): Piece[][] | null {
    if (!lowlight.registered(language) || text.length > MAX_CHARACTERS) {
        return null;
    }
    const lines: Piece[][] = [[]];
    const visit = (node: TreeNode, color: string): void => {
        if (node.type === "text") {
            (node.value ?? "").split("\n").forEach((part, i) => {
                if (i > 0) {
                    lines.push([]);
                }
                if (part !== "") {
                    lines.at(-1)?.push({ text: part, color });
                }
            });
        }
        node.children?.forEach((child) => visit(child, child.type === "element" ? colorOf(child) || color : color));
    };
    visit(lowlight.highlight(language, text) as TreeNode, "");
    return lines;
}

/** What was answered about a block, each line as JSON. Blocks beyond these are answered in full. */
const answered = new Map<number, string[]>();
const MAX_BLOCKS = 16;

/** Only what changed: a long block must not take the page's time whenever it grows by a word. */
function changesOf({ block, language, text }: HighlightRequest): ColoredLine[] | null {
    const lines = linesOf(language, text);
    if (!lines) {
        return null;
    }
    const before = answered.get(block) ?? [];
    const now = lines.map((pieces) => JSON.stringify(pieces));
    answered.delete(block);
    answered.set(block, now);
    const [oldest] = answered.keys();
    if (answered.size > MAX_BLOCKS && oldest !== undefined) {
        answered.delete(oldest);
    }
    return lines.flatMap((pieces, index) => (now[index] === before[index] ? [] : [{ index, pieces }]));
}

const scope = globalThis as unknown as { onmessage: (event: MessageEvent<HighlightRequest>) => void; postMessage(answer: HighlightAnswer): void };
scope.onmessage = ({ data }) => scope.postMessage({ id: data.id, lines: changesOf(data) });
