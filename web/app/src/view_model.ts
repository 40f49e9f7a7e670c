/** The model's chip in the header, and the dialog with its properties. */
import type { Adapters } from "./adapters.js";
import { byId, h } from "./dom.js";
import { formatBytes } from "./format.js";
import type { LoadProgress, ModelManager, ModelState } from "./model.js";
import { inputKinds } from "./summary.js";
import { AdaptersView } from "./view_adapters.js";

const stages: Record<LoadProgress["stage"], string> = {
    download: "Downloading",
    verify: "Checking the download",
    engine: "Starting the engine",
    header: "Reading the header",
    weights: "Loading weights",
    compile: "Preparing the GPU",
    session: "Allocating memory for the conversation",
};

const inBytes = new Set<LoadProgress["stage"]>(["download", "verify", "weights"]);

/** [stage, amount] */
function describeProgress(progress: LoadProgress | null): [string, string] {
    if (!progress) {
        return ["Starting", ""];
    }
    const { stage, done, total } = progress;
    return [stages[stage], inBytes.has(stage) ? `${formatBytes(done)} of ${formatBytes(total)}` : ""];
}

export function progressBar(progress: LoadProgress | null): HTMLElement[] {
    const [label, amount] = describeProgress(progress);
    const known = progress !== null && inBytes.has(progress.stage) && progress.total > 0;
    const fraction = known ? progress.done / progress.total : 0;
    const fill = h("span");
    if (known) {
        fill.style.transform = `scaleX(${fraction})`;
    }
    const bar = h("div", {
        class: known ? "bar" : "bar indeterminate",
        role: "progressbar",
        "aria-label": label,
        ...(known ? { "aria-valuenow": Math.round(100 * fraction), "aria-valuemin": 0, "aria-valuemax": 100 } : {}),
    }, fill);
    return [bar, h("div", { class: "progress-line" }, h("span", {}, label), h("span", {}, amount))];
}

export function factList(rows: [string, string][]): HTMLElement {
    return h("dl", { class: "facts" }, ...rows.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

const dots: Record<ModelState["kind"], string> = {
    none: "dot",
    finding: "dot busy",
    "not-found": "dot",
    inspecting: "dot busy",
    inspected: "dot",
    loading: "dot busy",
    ready: "dot ready",
    failed: "dot bad",
};

export class ModelChip {
    readonly #chip = byId<HTMLButtonElement>("model-chip");
    readonly #dialog = byId<HTMLDialogElement>("model-info");
    readonly #models: ModelManager;
    readonly #choose: () => void;
    readonly #bench: () => void;
    readonly #adapters: AdaptersView;

    /** `choose`: opens the list of models; `bench`: runs the benchmark. */
    constructor(models: ModelManager, adapters: Adapters, choose: () => void, bench: () => void) {
        this.#adapters = new AdaptersView(adapters);
        this.#bench = bench;
        this.#models = models;
        this.#choose = choose;
        this.#chip.addEventListener("click", () => (models.state.value.kind === "ready" ? this.#open() : choose()));
        models.state.watch((state) => this.#draw(state));
    }

    #draw(state: ModelState): void {
        const name = "choice" in state ? state.choice.name : "Choose a model";
        const stateNames = { none: "", finding: "", "not-found": "", inspecting: "being inspected", inspected: "not loaded", loading: "loading", ready: "loaded", failed: "failed" };
        const onCpu = state.kind === "ready" && state.model.info.device === "cpu";
        this.#chip.replaceChildren(
            h("span", { class: dots[state.kind] }),
            h("span", { class: "name" }, name),
            ...(onCpu ? [h("span", { class: "device" }, "CPU")] : []),
        );
        this.#chip.setAttribute("aria-label", !("choice" in state) ? name : `Model ${name}, ${stateNames[state.kind]}${onCpu ? " on the CPU" : ""}`);
        this.#chip.dataset["state"] = state.kind;
    }

    #open(): void {
        const state = this.#models.state.value;
        if (state.kind !== "ready") {
            return;
        }
        const { info } = state.model;
        const cores = info.threads > 1 ? `${info.threads} threads` : "one thread";
        const on = info.device === "cpu" ? `the CPU, ${cores}` : info.device === "gpu" ? "the GPU" : "the GPU, without optional features";
        const close = (act?: () => void) => (): void => {
            this.#dialog.close();
            act?.();
        };
        this.#dialog.replaceChildren(
            h("h2", { id: "model-info-title" }, info.name),
            factList([
                ["Runs on", info.deviceName && info.device !== "cpu" ? `${on} (${info.deviceName})` : on],
                ["File", formatBytes(info.bytes)],
                ["Context", `${info.contextLength.toLocaleString("en")} of ${info.trainedContext.toLocaleString("en")} tokens`],
                ["Input", inputKinds(info)],
                ["Drafter", info.drafter ? "guesses the next tokens, so that answers come sooner" : ""],
                ["Vocabulary", `${info.vocabulary.toLocaleString("en")} tokens`],
                ["Note", info.notice ?? ""],
            ]),
            ...(info.embedding > 0 ? [] : [this.#adapters.root]),
            h(
                "div",
                { class: "actions" },
                h("button", { type: "button", onclick: close(() => this.#models.unload()) }, "Unload"),
                h("button", { type: "button", onclick: close(this.#bench) }, "Benchmark"),
                h("button", { type: "button", onclick: close(this.#choose) }, "Change\u2026"),
                h("button", { type: "button", class: "main", autofocus: true, onclick: close() }, "Close"),
            ),
        );
        this.#dialog.showModal();
    }
}
