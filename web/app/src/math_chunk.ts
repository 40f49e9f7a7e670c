/** KaTeX, in a file of its own that is fetched with the first formula. */
import katex from "katex";

/** Draws a formula into an element; false: it is no valid one. KaTeX makes elements from its own tables, and with
 * `trust` off refuses the commands that name addresses, classes, styles or HTML. */
export function drawFormula(formula: string, display: boolean, into: HTMLElement): boolean {
    try {
        katex.render(formula, into, { displayMode: display, trust: false, strict: "ignore", throwOnError: true, maxSize: 20, maxExpand: 500 });
        return true;
    } catch {
        return false;
    }
}
