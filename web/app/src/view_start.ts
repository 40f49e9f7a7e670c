/** The start view: choosing a model, its summary, loading progress, and errors. */
import { Bezel, type Capabilities } from "./bezel.js";
import type { Catalog } from "./catalog.js";
import { confirmed } from "./dialog.js";
import type { DownloadManager } from "./downloads.js";
import { byId, h, type Child } from "./dom.js";
import { explainLoading, type Remedy } from "./errors.js";
import { formatBytes } from "./format.js";
import { gem, icon, type IconName } from "./icons.js";
import { choiceOfRecord, labelOfAgain, type Choice, type ModelManager, type ModelState } from "./model.js";
import { mergeFiles } from "./file_choice.js";
import { chooseFiles } from "./files.js";
import type { ModelSummary } from "./summary.js";
import { modelCards } from "./view_cards.js";
import { DownloadsView, storageLine, storedEntries, type StoredEntry } from "./view_downloads.js";
import { progressBar } from "./view_model.js";
import { summaryBody } from "./view_summary.js";

export class StartView {
    readonly #root = byId("start");
    readonly #models: ModelManager;
    readonly #showList: () => void;
    readonly #leave: () => void;
    readonly #compare: () => void;
    readonly #downloads: DownloadManager;
    readonly #downloadsView: DownloadsView;
    #catalog: Catalog | null = null;
    #capabilities: Capabilities | null = null;
    #stored: StoredEntry[] = [];
    #last: Choice | null = null;
    /** The number of complete downloads that the list was drawn with. */
    #complete = 0;
    readonly #cards = h("div");
    readonly #storage = h("div", { class: "storage-line" });
    readonly #gpuNote = h("div", { class: "gpu-note" });
    readonly #address = this.#makeAddress();
    #shown = "";

    /** `list`: shows the list of models; `leave`: returns to the conversation; `compare`: compares two models. */
    constructor(models: ModelManager, downloads: DownloadManager, list: () => void, leave: () => void, compare: () => void) {
        this.#compare = compare;
        this.#models = models;
        this.#downloads = downloads;
        this.#downloadsView = new DownloadsView(downloads, (stored) => models.release(stored), () => void this.refresh());
        this.#showList = list;
        this.#leave = leave;
        models.state.watch((state) => this.#draw(state));
        downloads.list.watch((list) => {
            const complete = list.filter(({ state }) => state === "done").length;
            if (complete !== this.#complete && this.#catalog) {
                void this.refresh();
            }
        });
    }

    get #opfs(): boolean {
        return this.#capabilities?.opfs ?? false;
    }

    /** Loads the list of models; called whenever it is shown. To keep rows from moving under the pointer, the list is
     * drawn only when complete, and the note about the GPU goes below it. */
    async refresh(): Promise<void> {
        const capabilities = this.#models.capabilities();
        const [catalog, files, unfinished, last] = await Promise.all([
            this.#models.catalog(true),
            Bezel.models().catch(() => []),
            Bezel.unfinished().catch(() => []),
            this.#models.last(),
        ]);
        this.#complete = this.#downloads.list.value.filter(({ state }) => state === "done").length;
        this.#catalog = catalog;
        this.#stored = storedEntries(this.#downloads.list.value, files);
        this.#last = last;
        this.#downloadsView.showLeftOvers(unfinished);
        const { value } = this.#models.state;
        if (value.kind === "none" || value.kind === "ready") {
            this.#draw(value);
        }
        this.#capabilities = await capabilities;
        this.#drawGpuNote(this.#capabilities);
        if (catalog.cards.length > 0) {
            this.#cards.replaceChildren(modelCards(catalog.cards, this.#capabilities, (card) => void this.#models.find(card.from, card)));
        }
        this.#storage.replaceChildren(...[await storageLine().catch(() => null)].filter((line) => line !== null));
    }

    #drawGpuNote({ webgpu, adapter }: Capabilities): void {
        const notice = !webgpu
            ? "This browser has no WebGPU, so models run on the CPU: small ones work well, large ones are slow."
            : !adapter
              ? "No usable GPU was found, so models run on the CPU: small ones work well, large ones are slow."
              : "";
        if (notice) {
            this.#gpuNote.replaceChildren(h("div", { class: "callout", role: "note" }, icon("warn"), h("p", {}, notice)));
        } else if (adapter && !adapter.software) {
            this.#gpuNote.replaceChildren(h("p", { class: "gpu-status faint" }, h("span", { class: "dot ready" }), `WebGPU is ready on ${adapter.name}.`));
        }
    }

    #draw(state: ModelState): void {
        // Only the bar is updated, so that the Cancel button keeps the focus.
        if (state.kind === "loading" && this.#shown === "loading") {
            this.#root.querySelector(".progress")?.replaceChildren(...progressBar(state.progress));
            return;
        }
        this.#shown = state.kind;
        const typing = this.#address.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
        const column = h("div", { class: "start-column" }, ...this.#content(state));
        this.#root.replaceChildren(column);
        const focus = typing && column.contains(typing) ? typing : column.querySelector<HTMLElement>("[data-focus]");
        if (focus && !this.#root.hidden) {
            focus.focus();
        }
    }

    #content(state: ModelState): Child[] {
        switch (state.kind) {
            case "none":
            case "ready":
                return [state.kind === "ready" ? h("h2", { id: "start-title" }, "Models") : this.#hero(), this.#catalog ? this.#choices(this.#catalog, state.kind === "ready") : null];
            case "inspecting":
                return [this.#card(`Reading ${state.choice.name}`, progressBar(null), this.#button("Cancel", () => this.#models.cancel()))];
            case "finding":
                return [this.#card(`Looking for ${state.name}`, progressBar(null), this.#button("Cancel", () => this.#models.cancel()))];
            case "not-found":
                return [this.#notFound(state)];
            case "inspected":
                return [this.#summary(state.choice, state.summary)];
            case "loading":
                return [
                    this.#card(
                        `Loading ${state.choice.name}`,
                        [h("div", { class: "progress" }, ...progressBar(state.progress))],
                        this.#button("Cancel", () => this.#models.cancel(), "data-focus"),
                    ),
                ];
            case "failed":
                return [this.#failure(state)];
        }
    }

    // ---- choosing -------------------------------------------------------------------------------

    #hero(): HTMLElement {
        return h(
            "div",
            { class: "hero" },
            gem(),
            h("h2", { id: "start-title" }, "Gemma, on your own machine"),
            h("p", {}, "The model runs inside this page, on your own hardware. What you write never leaves your machine."),
        );
    }

    #choices({ offers }: Catalog, loaded: boolean): HTMLElement {
        const inspect = (choice: Choice): void => void this.#models.inspect(choice);
        const rows: Child[] = [];
        if (loaded) {
            rows.push(this.#choice("go", "Back to the conversation", "The model stays loaded.", this.#leave));
        }
        const last = this.#last;
        if (last && !loaded) {
            const row = this.#choice("again", labelOfAgain(last), "The model from your last visit", () => void this.#models.loadAgain());
            row.classList.add("recommended");
            rows.push(row);
        }
        for (const model of this.#stored) {
            rows.push(this.#storedRow(model, inspect));
        }
        offers.forEach(({ name, url, more, about }, i) => {
            if (last?.kind !== "url" || last.url !== url || loaded) {
                const row = this.#choice(gem(), name, about, () => inspect({ kind: "url", name, url, ...(more?.length ? { more } : {}) }));
                row.classList.toggle("recommended", i === 0 && !last && !loaded);
                rows.push(row);
            }
        });
        const open = [
            this.#choice("file", "Open a GGUF file\u2026", "Any Gemma 4 model, with its mmproj file for images and sound and its drafter for speed. Files are read in place. You can also drop them here.", () => {
                void chooseFiles().then((choice) => choice && inspect(choice));
            }),
            this.#address,
        ];
        return h(
            "div",
            { class: "choice-groups" },
            this.#downloadsView.root,
            h("div", { class: "choices" }, ...rows),
            this.#gpuNote,
            this.#cards,
            h("section", { class: "choices", "aria-labelledby": "open-title" }, h("h3", { id: "open-title" }, "Open another"), ...open),
            h("p", { class: "more" }, h("button", { type: "button", class: "link", onclick: this.#compare }, "Compare two models side by side")),
            this.#storage,
        );
    }

    #storedRow({ title, bytes, files, record, about }: StoredEntry, inspect: (choice: Choice) => void): HTMLElement {
        const remove = async (): Promise<void> => {
            if (await confirmed("Delete this model?", `Deleting ${title} frees ${formatBytes(bytes)}. It can be downloaded again.`, "Delete")) {
                await this.#models.release(files);
                await (record ? this.#downloads.remove(record) : Bezel.remove(files[0] ?? ""));
                await this.refresh();
            }
        };
        const choice: Choice = record ? choiceOfRecord(record) : { kind: "stored", name: title, stored: files[0] ?? "" };
        return h(
            "div",
            { class: "stored" },
            this.#choice("go", title, ["Stored in this browser", formatBytes(bytes), about].filter((part) => part !== "").join(" \u00b7 "), () => inspect(choice)),
            h("button", { type: "button", class: "quiet", "aria-label": `Delete ${title}`, onclick: () => void remove() }, icon("bin")),
        );
    }

    #choice(image: IconName | SVGElement, title: string, about: string, act: () => void): HTMLElement {
        return h(
            "button",
            { type: "button", class: "choice", onclick: act },
            typeof image === "string" ? icon(image) : image,
            h("span", { class: "choice-text" }, h("b", {}, title), h("span", { class: "faint" }, about)),
            icon("down"),
        );
    }

    /** Made once, so that a list that is drawn again keeps what was typed. */
    #makeAddress(): HTMLElement {
        const input = h("input", {
            type: "text",
            name: "address",
            placeholder: "Name or address",
            "aria-label": "Name or address of a model",
            "aria-describedby": "address-forms",
            required: true,
            autocomplete: "off",
            autocapitalize: "off",
            spellcheck: "false",
        });
        // A field of one line would join the addresses of several lines.
        input.addEventListener("paste", (event) => {
            const text = event.clipboardData?.getData("text/plain") ?? "";
            if (/[\r\n]/.test(text)) {
                event.preventDefault();
                input.setRangeText(text.trim().replace(/\s+/g, " "), input.selectionStart ?? 0, input.selectionEnd ?? 0, "end");
            }
        });
        const hint = h("span", { class: "faint", id: "address-forms" }, "org/repo:Q4_K_M of Hugging Face, gemma4:e2b of Ollama, or the addresses of all files of a model");
        const open = (event: Event): void => {
            event.preventDefault();
            const text = input.value;
            input.value = "";
            void this.#models.find(text, null);
        };
        return h("form", { class: "choice", onsubmit: open }, icon("link"), h("span", { class: "address-forms" }, h("span", { class: "address" }, input, h("button", {}, "Open")), hint));
    }

    // ---- cards ----------------------------------------------------------------------------------

    #card(title: string, body: Child[], ...actions: Child[]): HTMLElement {
        return h(
            "div",
            { class: "card" },
            h("h2", { id: "start-title" }, title),
            ...body,
            h("div", { class: "actions" }, ...actions),
        );
    }

    #button(label: string, act: () => void, ...flags: string[]): HTMLElement {
        const extra = Object.fromEntries(flags.filter((flag) => flag !== "main").map((flag) => [flag, true]));
        return h("button", { type: "button", ...(flags.includes("main") ? { class: "main" } : {}), onclick: act, ...extra }, label);
    }

    #cancelAnd(act: () => void): () => void {
        return () => {
            this.#models.cancel();
            act();
        };
    }

    #summary(choice: Choice, summary: ModelSummary | null): HTMLElement {
        const { body, buttons } = summaryBody(choice, summary, this.#opfs, {
            load: (contextLength) => void this.#models.load(choice, contextLength ? { contextLength } : {}),
            download: (contextLength) => choice.kind === "remote" && this.#download(choice, contextLength),
            withMedia: (withMedia) => choice.kind === "remote" && void this.#models.inspect({ ...choice, withMedia }),
            back: () => this.#models.cancel(),
        });
        return this.#card(choice.name, body, ...buttons);
    }

    #download({ name, model, withMedia }: Choice & { kind: "remote" }, contextLength: number): void {
        this.#models.prefer(contextLength);
        void navigator.storage.persist?.();
        void this.#downloads.add({ ...model, title: name }, withMedia);
        this.#cancelAnd(this.#showList)();
        this.#root.scrollTop = 0;
    }

    /** Adds files to the choice: other parts, or the text model for an mmproj file or a drafter. */
    async #addFiles(choice: Choice): Promise<void> {
        const more = await chooseFiles();
        if (more && choice.kind === "file") {
            await this.#models.inspect(mergeFiles(choice, more));
        }
    }

    #notFound({ name, failure }: ModelState & { kind: "not-found" }): HTMLElement {
        const card = this.#card(`${name} cannot be used`, [h("div", { class: "callout bad", role: "alert" }, icon("warn"), h("div", {}, h("p", {}, failure.message)))],
            this.#button("Back", () => this.#models.cancel(), "main", "data-focus"));
        card.classList.add("bad");
        card.dataset["code"] = failure.code;
        return card;
    }

    #failure({ choice, failure }: ModelState & { kind: "failed" }): HTMLElement {
        const { title, advice, remedies } = explainLoading(failure, choice.kind === "file" && choice.files !== null);
        const labels: Partial<Record<Remedy, [string, () => void]>> = {
            retry: ["Try again", () => void (choice.kind === "remote" && this.#opfs ? this.#models.inspect(choice) : this.#models.load(choice))],
            cpu: ["Run on the CPU", () => void this.#models.load(choice, { device: "cpu" })],
            shorter: ["Load with a short context", () => void this.#models.load(choice, { contextLength: 2048 })],
            more: ["Add the other file\u2026", () => void this.#addFiles(choice)],
            file: ["Open a file\u2026", () => void chooseFiles().then((chosen) => chosen && this.#models.inspect(chosen))],
            choose: ["Choose another model", this.#cancelAnd(this.#showList)],
        };
        const actions = remedies.flatMap((remedy, i): Child[] => {
            const found = labels[remedy];
            return found ? [this.#button(found[0], found[1], ...(i === 0 ? ["main", "data-focus"] : []))] : [];
        });
        if (this.#models.loaded) {
            actions.push(this.#button("Back to the conversation", this.#cancelAnd(this.#leave)));
        }
        const card = this.#card(title, [
            h("div", { class: "callout bad", role: "alert" }, icon("warn"), h("div", {}, h("p", {}, failure.message), h("p", {}, advice))),
        ], ...actions);
        card.classList.add("bad");
        card.dataset["code"] = failure.code;
        return card;
    }
}
