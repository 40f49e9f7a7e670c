/** The start view: choosing a model, its summary, loading progress, and errors. */
import type { Capabilities, StoredModel } from "./bezel.js";
import { confirmed } from "./dialog.js";
import { byId, h, type Child } from "./dom.js";
import { explainLoading, type Remedy } from "./errors.js";
import { formatBytes } from "./format.js";
import { gem, icon, type IconName } from "./icons.js";
import type { Choice, ModelManager, ModelState, Offer } from "./model.js";
import { chooseFiles, mergeFiles } from "./files.js";
import type { ModelSummary } from "./summary.js";
import { factList, progressBar } from "./view_model.js";

export class StartView {
    readonly #root = byId("start");
    readonly #models: ModelManager;
    readonly #showList: () => void;
    readonly #leave: () => void;
    #offers: Offer[] = [];
    #stored: StoredModel[] = [];
    #last: Choice | null = null;
    #loaded = false;
    readonly #gpuNote = h("div", { class: "gpu-note" });
    #shown = "";

    /** `list`: shows the list of models; `leave`: returns to the conversation. */
    constructor(models: ModelManager, list: () => void, leave: () => void) {
        this.#models = models;
        this.#showList = list;
        this.#leave = leave;
        models.state.watch((state) => this.#draw(state));
    }

    /** Loads the list of models; called whenever it is shown. To keep rows from moving under the pointer, the list is
     * drawn only when complete, and the note about the GPU goes below it. */
    async refresh(): Promise<void> {
        const capabilities = this.#models.capabilities();
        [this.#offers, this.#stored, this.#last] = await Promise.all([this.#models.offers(), this.#models.stored(), this.#models.last()]);
        this.#loaded = true;
        const { value } = this.#models.state;
        if (value.kind === "none" || value.kind === "ready") {
            this.#draw(value);
        }
        this.#drawGpuNote(await capabilities);
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
        const column = h("div", { class: "start-column" }, ...this.#content(state));
        this.#root.replaceChildren(column);
        const focus = column.querySelector<HTMLElement>("[data-focus]");
        if (focus && !this.#root.hidden) {
            focus.focus();
        }
    }

    #content(state: ModelState): Child[] {
        switch (state.kind) {
            case "none":
            case "ready":
                return [this.#hero(), this.#loaded ? this.#choices(state.kind === "ready") : null];
            case "inspecting":
                return [this.#card(`Reading ${state.choice.name}`, progressBar(null), this.#button("Cancel", () => this.#models.cancel()))];
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

    #choices(loaded: boolean): HTMLElement {
        const inspect = (choice: Choice): void => void this.#models.inspect(choice);
        const rows: Child[] = [];
        if (loaded) {
            rows.push(this.#choice("go", "Back to the conversation", "The model stays loaded.", this.#leave));
        }
        const last = this.#last;
        if (last && !loaded) {
            const row = this.#choice("again", `Continue with ${last.name}`, "The model from your last visit", () => void this.#models.load(last));
            row.classList.add("recommended");
            rows.push(row);
        }
        this.#offers.forEach(({ name, url, more, about }, i) => {
            if (last?.kind !== "url" || last.url !== url || loaded) {
                const row = this.#choice(gem(), name, about, () => inspect({ kind: "url", name, url, ...(more?.length ? { more } : {}) }));
                row.classList.toggle("recommended", i === 0 && !last && !loaded);
                rows.push(row);
            }
        });
        for (const model of this.#stored) {
            rows.push(this.#storedRow(model, inspect));
        }
        rows.push(
            this.#choice("file", "Open a GGUF file\u2026", "Any Gemma 4 model, with its mmproj file for images and sound. Files are read in place. You can also drop them here.", () => {
                void chooseFiles().then((choice) => choice && inspect(choice));
            }),
            this.#address(inspect),
        );
        return h("div", { class: "choices" }, ...rows, this.#gpuNote);
    }

    #storedRow({ name, size }: StoredModel, inspect: (choice: Choice) => void): HTMLElement {
        const title = name.replace(/\.gguf$/i, "");
        const remove = async (): Promise<void> => {
            if (await confirmed("Delete this model?", `Deleting ${title} frees ${formatBytes(size)}. It can be downloaded again.`, "Delete")) {
                await this.#models.removeStored(name);
                await this.refresh();
            }
        };
        return h(
            "div",
            { class: "stored" },
            this.#choice("go", title, `Stored in this browser \u00b7 ${formatBytes(size)}`, () => inspect({ kind: "stored", name: title, stored: name })),
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

    #address(inspect: (choice: Choice) => void): HTMLElement {
        const input = h("input", {
            type: "url",
            name: "address",
            placeholder: "https://\u2026/model.gguf",
            "aria-label": "Address of a GGUF file",
            required: true,
            autocomplete: "off",
            spellcheck: "false",
        });
        const open = (event: Event): void => {
            event.preventDefault();
            const url = input.value.trim();
            const name = decodeURIComponent(url.split(/[?#]/)[0]?.split("/").pop() ?? "") || "model";
            inspect({ kind: "url", name: name.replace(/\.gguf$/i, ""), url });
        };
        return h("form", { class: "choice", onsubmit: open }, icon("link"), h("span", { class: "address" }, input, h("button", {}, "Open")));
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

    #summary(choice: Choice, summary: ModelSummary): HTMLElement {
        const { facts, lengths, defaultLength, device, warning } = summary;
        const length = h(
            "select",
            { id: "context-length", "aria-describedby": "memory-needed" },
            ...lengths.map(({ context }) => h("option", { value: context, selected: context === defaultLength }, `${context.toLocaleString("en")} tokens`)),
        );
        const memory = h("p", { id: "memory-needed" });
        const showMemory = (): void => {
            const bytes = lengths.find(({ context }) => context === Number(length.value))?.bytes;
            memory.textContent = `Runs on ${device}${bytes ? ` and needs ${formatBytes(bytes)} of memory` : ""}.`;
        };
        length.addEventListener("change", showMemory);
        showMemory();
        const line = h("div", { class: "callout" }, icon(warning ? "warn" : "check"), h("div", {}, memory, warning ? h("p", {}, warning) : null));
        const load = (): void => {
            const context = Number(length.value);
            void this.#models.load(choice, context && context !== defaultLength ? { contextLength: context } : {});
        };
        const rows = lengths.length > 1 ? [h("div", { class: "field-row" }, h("label", { for: "context-length" }, "Conversation length"), length)] : [];
        return this.#card(
            choice.name,
            [factList(facts), ...rows, line],
            this.#button("Load", load, "main", "data-focus"),
            this.#button("Back", () => this.#models.cancel()),
        );
    }

    /** Adds files to the choice: other parts, or the text model for an mmproj file. */
    async #addFiles(choice: Choice): Promise<void> {
        const more = await chooseFiles();
        if (more && choice.kind === "file") {
            await this.#models.inspect(mergeFiles(choice, more));
        }
    }

    #failure({ choice, failure }: ModelState & { kind: "failed" }): HTMLElement {
        const { title, advice, remedies } = explainLoading(failure, choice.kind === "file" && choice.files !== null);
        const labels: Partial<Record<Remedy, [string, () => void]>> = {
            retry: ["Try again", () => void this.#models.load(choice)],
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
