/** A diffusion model's canvas while it is refined. Words that the last step did not change are highlighted. */
import { h, show } from "./dom.js";
import type { Canvas } from "./store.js";

const words = (text: string): string[] => text.match(/\s*\S+|\s+$/g) ?? [];

export class CanvasView {
    readonly #text = h("div", { class: "text" });
    readonly #fill = h("span");
    /** Hidden from screen readers: finished paragraphs are announced instead. */
    readonly root = h("div", { class: "canvas", "aria-hidden": "true" }, this.#text, h("div", { class: "bar" }, this.#fill));
    #previous: string[] = [];

    constructor() {
        show(this.root, false);
    }

    set(canvas: Canvas | null): void {
        show(this.root, canvas !== null);
        if (!canvas) {
            this.#previous = [];
            return;
        }
        const now = words(canvas.text);
        const runs: { stable: boolean; text: string }[] = [];
        now.forEach((word, i) => {
            const stable = word === this.#previous[i];
            const last = runs.at(-1);
            if (last?.stable === stable) {
                last.text += word;
            } else {
                runs.push({ stable, text: word });
            }
        });
        this.#previous = now;
        this.#text.replaceChildren(...runs.map(({ stable, text }) => h("span", stable ? { class: "stable" } : {}, text)));
        this.#fill.style.transform = `scaleX(${canvas.fraction})`;
    }
}
