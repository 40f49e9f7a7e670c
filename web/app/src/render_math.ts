/** Formulas: as their source until KaTeX has been fetched, and where it cannot read them. */
import { h } from "./dom.js";

type Draw = typeof import("./math_chunk.js").drawFormula;

let draw: Draw | null = null;
let fetching: Promise<Draw | null> | null = null;

async function fetchMath(): Promise<Draw | null> {
    try {
        const style = h("link", { rel: "stylesheet", href: new URL("./math_chunk.css", import.meta.url).href });
        document.head.append(style);
        draw = (await import("./math_chunk.js")).drawFormula;
        return draw;
    } catch {
        fetching = null; // no connection: tried again with the next formula
        return null;
    }
}

function drawWith(use: Draw, formula: string, display: boolean, element: HTMLElement): void {
    const drawn = h("span");
    if (use(formula, display, drawn)) {
        element.replaceChildren(...drawn.childNodes);
        element.classList.add("drawn");
    }
}

/** `closed`: false while the formula is being written. */
export function formulaElement(formula: string, display: boolean, closed = true): HTMLElement {
    const element = h(display ? "div" : "span", { class: display ? "math display" : "math", dir: "ltr", ...(display ? { tabindex: "0" } : {}) }, h("code", {}, formula));
    if (!closed) {
        return element;
    }
    if (draw) {
        drawWith(draw, formula, display, element);
    } else {
        fetching ??= fetchMath();
        void fetching.then((use) => use && drawWith(use, formula, display, element));
    }
    return element;
}
