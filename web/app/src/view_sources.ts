/** The passages that an answer may cite. */
import { sourceOf } from "./citation.js";
import { h, show } from "./dom.js";
import { icon } from "./icons.js";
import type { Passage } from "./store.js";

export class SourcesView {
    readonly #list = h("ol", {});
    readonly root = h("details", { class: "sources", hidden: true }, h("summary", {}, icon("file"), h("span", {}, "Passages from your documents"), icon("down")), this.#list);
    #passages: Passage[] = [];

    set(passages: Passage[]): void {
        show(this.root, passages.length > 0);
        if (passages !== this.#passages) {
            this.#passages = passages;
            this.#list.replaceChildren(
                ...passages.map((passage) => h("li", { tabindex: "-1" }, h("b", { dir: "auto" }, sourceOf(passage)), h("div", { class: "passage", dir: "auto" }, passage.text))),
            );
        }
    }

    /** Opens the list at a passage, from 1. */
    open(number: number): void {
        (this.root as HTMLDetailsElement).open = true;
        const item = this.#list.children[number - 1];
        if (item instanceof HTMLElement) {
            item.scrollIntoView({ block: "center" });
            item.focus();
        }
    }
}
