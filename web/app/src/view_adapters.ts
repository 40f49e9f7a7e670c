/** The adapters in the dialog with the model's properties. */
import type { Adapters, PageAdapter } from "./adapters.js";
import { announce, h } from "./dom.js";
import { icon } from "./icons.js";

const MAX_SCALE = 4;

export class AdaptersView {
    readonly root = h("section", { class: "adapters", "aria-label": "Adapters" });
    readonly #adapters: Adapters;
    #problem = "";
    #busy = false;

    constructor(adapters: Adapters) {
        this.#adapters = adapters;
        adapters.list.watch(() => this.#draw());
    }

    #row(adapter: PageAdapter): HTMLElement {
        const { file, lora, scale } = adapter;
        const { minRank, maxRank, pairs } = lora.info;
        const field = h("input", { type: "number", min: -MAX_SCALE, max: MAX_SCALE, step: 0.1, value: scale, "aria-label": `Strength of ${file.name}` });
        field.addEventListener("change", () => {
            const entered = field.valueAsNumber;
            this.#adapters.setScale(adapter, Number.isFinite(entered) ? Math.min(MAX_SCALE, Math.max(-MAX_SCALE, entered)) : 1);
        });
        const remove = h("button", { type: "button", class: "quiet small", "aria-label": `Remove ${file.name}`, onclick: () => this.#adapters.remove(adapter) }, icon("close"));
        const rank = minRank === maxRank ? `rank ${maxRank}` : `ranks ${minRank} to ${maxRank}`;
        return h("li", {}, h("span", { class: "name" }, h("span", {}, lora.info.name || file.name), h("span", { class: "faint" }, `${rank}, ${pairs} weights`)), field, remove);
    }

    #draw(): void {
        const { value } = this.#adapters.list;
        const choose = h("button", { type: "button", class: "small", disabled: this.#busy, onclick: () => this.#choose() }, this.#busy ? "Reading\u2026" : "Add an adapter (LoRA)\u2026");
        this.root.replaceChildren(
            ...(value.length > 0 ? [h("h3", {}, "Adapters"), h("ul", {}, ...value.map((adapter) => this.#row(adapter)))] : []),
            ...(this.#problem ? [h("p", { class: "callout", role: "alert" }, this.#problem)] : []),
            choose,
        );
    }

    #choose(): void {
        const input = h("input", { type: "file", accept: ".gguf" });
        input.addEventListener("change", () => {
            const file = input.files?.[0];
            if (file) {
                void this.#add(file);
            }
        });
        input.click();
    }

    async #add(file: File): Promise<void> {
        this.#problem = "";
        this.#busy = true;
        this.#draw();
        try {
            await this.#adapters.add(file);
            announce(`${file.name} added`);
        } catch (reason) {
            this.#problem = reason instanceof Error ? reason.message : String(reason);
        }
        this.#busy = false;
        this.#draw();
    }
}
