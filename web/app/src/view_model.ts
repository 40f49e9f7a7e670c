/** The model in a corner of the page: its name, its state, its facts. */
import { byId, h } from "./dom.js";
import { formatBytes } from "./format.js";
import type { LoadProgress, ModelKeeper, ModelState } from "./model.js";
import { sensesOf } from "./verdict.js";

const stages: Record<LoadProgress["stage"], string> = {
    download: "Downloading",
    verify: "Checking the download",
    engine: "Starting the engine",
    header: "Reading the header",
    weights: "Loading weights",
    compile: "Preparing the GPU",
    session: "Making room for the conversation",
};

const inBytes = new Set<LoadProgress["stage"]>(["download", "verify", "weights"]);

/** [what, how far] */
function describeProgress(progress: LoadProgress | null): [string, string] {
    if (!progress) {
        return ["Starting", ""];
    }
    const { stage, done, total } = progress;
    return [stages[stage], inBytes.has(stage) ? `${formatBytes(done)} of ${formatBytes(total)}` : ""];
}

export function progressBar(progress: LoadProgress | null): HTMLElement[] {
    const [what, far] = describeProgress(progress);
    const known = progress !== null && inBytes.has(progress.stage) && progress.total > 0;
    const part = known ? progress.done / progress.total : 0;
    const fill = h("span");
    if (known) {
        fill.style.transform = `scaleX(${part})`;
    }
    const bar = h("div", {
        class: known ? "bar" : "bar unknown",
        role: "progressbar",
        "aria-label": what,
        ...(known ? { "aria-valuenow": Math.round(100 * part), "aria-valuemin": 0, "aria-valuemax": 100 } : {}),
    }, fill);
    return [bar, h("div", { class: "progress-line" }, h("span", {}, what), h("span", {}, far))];
}

export function factList(rows: [string, string][]): HTMLElement {
    return h("dl", { class: "facts" }, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const dots: Record<ModelState["kind"], string> = {
    none: "dot",
    inspecting: "dot busy",
    inspected: "dot",
    loading: "dot busy",
    ready: "dot ready",
    failed: "dot bad",
};

export class ModelChip {
    readonly #chip = byId<HTMLButtonElement>("model-chip");
    readonly #dialog = byId<HTMLDialogElement>("model-info");
    readonly #models: ModelKeeper;
    readonly #choose: () => void;

    /** `choose`: to the page where a model is chosen. */
    constructor(models: ModelKeeper, choose: () => void) {
        this.#models = models;
        this.#choose = choose;
        this.#chip.addEventListener("click", () => (models.state.value.kind === "ready" ? this.#open() : choose()));
        models.state.watch((state) => this.#draw(state));
    }

    #draw(state: ModelState): void {
        const name = state.kind === "none" ? "Choose a model" : state.choice.name;
        const says = { none: "", inspecting: "being looked at", inspected: "not loaded", loading: "loading", ready: "loaded", failed: "failed" };
        const onCpu = state.kind === "ready" && state.model.facts.device === "cpu";
        this.#chip.replaceChildren(
            h("span", { class: dots[state.kind] }),
            h("span", { class: "name" }, name),
            ...(onCpu ? [h("span", { class: "where" }, "CPU")] : []),
        );
        this.#chip.setAttribute("aria-label", state.kind === "none" ? name : `Model ${name}, ${says[state.kind]}${onCpu ? " on the processor" : ""}`);
        this.#chip.dataset["state"] = state.kind;
    }

    #open(): void {
        const state = this.#models.state.value;
        if (state.kind !== "ready") {
            return;
        }
        const { facts } = state.model;
        const cores = facts.threads > 1 ? `${facts.threads} threads` : "one thread";
        const on = facts.device === "cpu" ? `the processor, ${cores}` : facts.device === "gpu" ? "the GPU" : "the GPU, with no optional features";
        const close = (act?: () => void) => (): void => {
            this.#dialog.close();
            act?.();
        };
        this.#dialog.replaceChildren(
            h("h2", { id: "model-info-title" }, facts.name),
            factList([
                ["Runs on", facts.deviceName && facts.device !== "cpu" ? `${on} (${facts.deviceName})` : on],
                ["File", formatBytes(facts.bytes)],
                ["Context", `${facts.contextLength.toLocaleString("en")} of ${facts.trainedContext.toLocaleString("en")} tokens`],
                ["Reads", sensesOf(facts)],
                ["Vocabulary", `${facts.vocabulary.toLocaleString("en")} tokens`],
                ["Note", facts.notice ?? ""],
            ]),
            h(
                "div",
                { class: "actions" },
                h("button", { type: "button", onclick: close(() => this.#models.unload()) }, "Unload"),
                h("button", { type: "button", onclick: close(this.#choose) }, "Change\u2026"),
                h("button", { type: "button", class: "main", autofocus: true, onclick: close() }, "Close"),
            ),
        );
        this.#dialog.showModal();
    }
}
