/** The dialog of documents: what is on the shelf, how it is searched, and a model of embeddings for it. */
import { Bezel, BezelError } from "./bezel.js";
import { byId, h, show } from "./dom.js";
import { chooseFiles } from "./files.js";
import { formatAge } from "./format.js";
import { icon } from "./icons.js";
import type { Shelf, ShelfState } from "./shelf.js";
import type { Signal } from "./signal.js";
import type { Settings, StoredDocument } from "./store.js";

export class ShelfView {
    readonly #dialog = byId<HTMLDialogElement>("shelf");
    readonly #shelf: Shelf;
    readonly #settings: Signal<Settings>;
    #faults: string[] = [];

    constructor(shelf: Shelf, settings: Signal<Settings>) {
        this.#shelf = shelf;
        this.#settings = settings;
        byId("open-shelf").append(icon("shelf"), "Documents");
        byId("open-shelf").addEventListener("click", () => this.open());
        byId("active-documents").addEventListener("click", () => this.open());
        shelf.state.watch(() => this.#update());
        settings.watch(() => this.#drawActive());
        this.#dialog.addEventListener("dragover", (event) => event.preventDefault());
    }

    open(): void {
        this.#faults = [];
        this.#draw();
        this.#dialog.showModal();
    }

    /** Adds files and shows the shelf. */
    async add(files: File[]): Promise<void> {
        if (!this.#dialog.open) {
            this.open();
        }
        this.#faults = [];
        for (const file of files) {
            try {
                await this.#shelf.add(file);
            } catch (reason) {
                this.#faults.push(reason instanceof Error ? reason.message : String(reason));
            }
        }
        this.#draw();
    }

    #update(): void {
        this.#drawActive();
        if (this.#dialog.open) {
            this.#draw();
        }
    }

    /** Below the text field: whether questions are sent with passages. */
    #drawActive(): void {
        const { length } = this.#shelf.state.value.documents;
        const button = byId("active-documents");
        const text = `${length} ${length === 1 ? "document" : "documents"}`;
        show(button, length > 0 && this.#settings.value.documents);
        button.replaceChildren(icon("shelf"), h("span", {}, text));
        button.setAttribute("aria-label", `Questions are sent with passages of ${text}`);
    }

    #draw(): void {
        const state = this.#shelf.state.value;
        const use = h("input", { type: "checkbox", id: "use-documents", checked: this.#settings.value.documents });
        use.addEventListener("change", () => this.#settings.set({ ...this.#settings.value, documents: use.checked }));
        this.#dialog.replaceChildren(
            h("h2", { id: "shelf-title", tabindex: -1, autofocus: true }, "Documents"),
            h("p", { class: "faint" }, "Text, Markdown and PDF files, kept in this browser. For every question the passages that fit best are given to the model, which is asked to cite them."),
            h("div", { class: "field-row" }, h("label", { for: use.id }, "Use them in new questions"), h("span", { class: "faint" }, "Up to four passages per question"), use),
            state.documents.length > 0 ? h("ul", { class: "rows" }, ...state.documents.map((one) => this.#row(one))) : h("p", { class: "callout" }, "No documents yet. Drop files here or choose them."),
            ...this.#search(state),
            ...(state.work === null ? [] : [h("p", { class: "callout", role: "status" }, `${state.work}\u2026`)]),
            ...this.#faults.map((fault) => h("p", { class: "fault", role: "alert", dir: "auto" }, fault)),
            h(
                "form",
                { method: "dialog", class: "actions" },
                h("button", { type: "button", disabled: state.work !== null, onclick: () => this.#choose() }, icon("plus"), "Add files"),
                h("button", { class: "main" }, "Done"),
            ),
        );
    }

    #row({ id, name, pages, characters, added }: StoredDocument): HTMLElement {
        const size = pages === null ? `${characters.toLocaleString("en")} characters` : `${pages.toLocaleString("en")} ${pages === 1 ? "page" : "pages"}`;
        return h(
            "li",
            {},
            icon("file"),
            h("span", {}, h("b", { dir: "auto" }, name), h("span", { class: "faint" }, `${size} \u00b7 ${formatAge(added)}`)),
            h("button", { type: "button", class: "quiet small", "aria-label": `Remove ${name}`, onclick: () => void this.#shelf.remove(id) }, icon("bin")),
        );
    }

    /** How passages are found, said as it is. */
    #search({ embedder, work }: ShelfState): HTMLElement[] {
        const text =
            embedder === null
                ? "Search is by words: a passage is found if it has words of the question. With an EmbeddingGemma model beside the chat model, it is by meaning."
                : `Search is by meaning, with ${embedder}.`;
        const button =
            embedder === null
                ? h("button", { type: "button", class: "small", disabled: work !== null, onclick: () => void this.#loadEmbedder() }, "Load an embedding model\u2026")
                : h("button", { type: "button", class: "small", onclick: () => this.#shelf.dropEmbedder() }, "Unload it");
        return [h("div", { class: "callout search-kind" }, h("span", {}, text), button)];
    }

    #choose(): void {
        const input = h("input", { type: "file", multiple: true, accept: ".txt,.md,.markdown,.pdf,.csv,.json,text/*,application/pdf" });
        input.addEventListener("change", () => void this.add([...(input.files ?? [])]));
        input.click();
    }

    async #loadEmbedder(): Promise<void> {
        const choice = await chooseFiles();
        if (!choice?.files) {
            return;
        }
        this.#faults = [];
        try {
            const model = await Bezel.load(choice.files, { device: this.#settings.value.device });
            if (model.info.embedding === 0) {
                model.close();
                throw new BezelError("bad_request", `${choice.name} is a chat model: an embedding model such as EmbeddingGemma is needed.`);
            }
            await this.#shelf.useEmbedder(model, choice.name);
        } catch (reason) {
            this.#faults = [reason instanceof Error ? reason.message : String(reason)];
        }
        this.#draw();
    }
}
