/** What a diffusion model has in mind: a text that condenses. Words that the last step left alone stand out from those
 * that are still moving. */
import { h, show } from "./dom.js";
import type { Canvas } from "./store.js";

const words = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? [];

export class CanvasView {
    readonly #text = h("div", { class: "text" });
    readonly #fill = h("span");
    /** Not for screen readers: they are told the finished paragraphs. */
    readonly root = h("div", { class: "canvas", "aria-hidden": "true" }, this.#text, h("div", { class: "bar" }, this.#fill));
    #before: string[] = [];

    constructor() {
        show(this.root, false);
    }

    set(draft: Canvas | null): void {
        show(this.root, draft !== null);
        if (!draft) {
            this.#before = [];
            return;
        }
        const now = words(draft.text);
        const runs: { settled: boolean; text: string }[] = [];
        now.forEach((word, i) => {
            const settled = word === this.#before[i];
            const last = runs.at(-1);
            if (last?.settled === settled) {
                last.text += word;
            } else {
                runs.push({ settled, text: word });
            }
        });
        this.#before = now;
        this.#text.replaceChildren(...runs.map(({ settled, text }) => h("span", settled ? { class: "settled" } : {}, text)));
        this.#fill.style.transform = `scaleX(${draft.part})`;
    }
}
