/** The page that asks two models the same question and shows their answers side by side. */
import { Bezel } from "./bezel.js";
import { Comparison, type Side } from "./compare.js";
import type { DownloadManager } from "./downloads.js";
import { byId, h, perFrame, show } from "./dom.js";
import { explainLoading } from "./errors.js";
import { formatDrafts, formatRate } from "./format.js";
import { icon } from "./icons.js";
import { choiceOfRecord, type Choice, type ModelManager } from "./model.js";
import { MarkdownView } from "./render.js";
import type { Signal } from "./signal.js";
import type { Settings } from "./store.js";
import { CanvasView } from "./view_canvas.js";
import { storedEntries } from "./view_downloads.js";

const INDEXES = [0, 1] as const;

/** What the line below an answer says. */
function statusOf({ state, figures, failure, loaded }: Side): string {
    switch (state) {
        case "empty":
            return "";
        case "loading":
            return `Loading${loaded > 0 ? ` ${Math.floor(100 * loaded)} %` : ""}`;
        case "waiting":
            return "Waiting";
        case "answering":
            return "Answering";
        case "failed":
            return failure ? `${explainLoading(failure).title}. ${failure.message}` : "";
        case "done":
        case "stopped":
            return [state === "stopped" ? "Stopped" : "", figures ? `${figures.tokens} tokens \u00b7 ${formatRate(figures.perSecond)}${formatDrafts(figures.drafted, figures.accepted)}` : ""].filter((part) => part !== "").join(" \u00b7 ");
    }
}

class SideView {
    readonly root: HTMLElement;
    readonly select: HTMLSelectElement;
    readonly #thinking = h("details", { class: "compare-thinking", hidden: true }, h("summary", {}, "Thoughts"), h("p", { dir: "auto" }));
    readonly #text = new MarkdownView(h("div", { class: "prose compare-text" }));
    readonly #canvas = new CanvasView();
    readonly #status = h("p", { class: "faint compare-status", role: "status" });

    constructor(index: number) {
        this.select = h("select", { id: `compare-model-${index}` });
        this.root = h(
            "section",
            { class: "compare-side", "aria-labelledby": `compare-label-${index}` },
            h("label", { id: `compare-label-${index}`, for: `compare-model-${index}` }, index === 0 ? "First model" : "Second model"),
            this.select,
            this.#thinking,
            this.#text.root,
            this.#canvas.root,
            this.#status,
        );
    }

    draw(side: Side): void {
        show(this.#thinking, side.thinking !== "");
        const thoughts = this.#thinking.querySelector("p");
        if (thoughts) {
            thoughts.textContent = side.thinking;
        }
        this.#text.set(side.text);
        this.#canvas.set(side.state === "answering" ? side.canvas : null);
        this.#status.textContent = statusOf(side);
        if (side.state !== this.root.dataset["state"] && side.state !== "answering") {
            this.#text.end();
        }
        this.root.dataset["state"] = side.state;
    }
}

export class CompareView {
    readonly #root = byId("compare");
    readonly #models: ModelManager;
    readonly #downloads: DownloadManager;
    readonly #comparison: Comparison;
    readonly #sides = [new SideView(0), new SideView(1)] as const;
    readonly #question = h("textarea", { id: "compare-question", class: "field", rows: 2, placeholder: "Ask both", dir: "auto" });
    readonly #ask = h("button", { class: "main" }, "Ask both");
    readonly #stop = h("button", { type: "button", hidden: true, onclick: () => void this.#comparison.stop() }, "Stop");
    readonly #note = h("p", { class: "faint", role: "status" });
    #choices: Choice[] = [];
    /** The conversation's model, unloaded meanwhile. */
    #before: Choice | null = null;

    /** `leave`: returns to the conversation, and calls close. */
    constructor(models: ModelManager, downloads: DownloadManager, settings: Signal<Settings>, leave: () => void) {
        this.#models = models;
        this.#downloads = downloads;
        this.#comparison = new Comparison(models, settings);
        const submit = (event: Event): void => {
            event.preventDefault();
            void this.#run();
        };
        this.#question.addEventListener("keydown", (event) => {
            if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
                submit(event);
            }
        });
        this.#root.append(
            h(
                "div",
                { class: "compare-column" },
                h("div", { class: "compare-head" }, h("h2", { id: "compare-title", tabindex: -1 }, "Compare two models"), h("button", { type: "button", class: "quiet", onclick: leave }, icon("close"), "Close")),
                h("form", { class: "compare-form", onsubmit: submit }, h("label", { class: "hidden", for: "compare-question" }, "Question for both models"), this.#question, this.#ask, this.#stop),
                this.#note,
                h("div", { class: "compare-sides" }, ...this.#sides.map(({ root }) => root)),
            ),
        );
        for (const index of INDEXES) {
            const { select } = this.#sides[index];
            select.addEventListener("change", () => this.#comparison.choose(index, this.#choices[Number(select.value)] ?? null));
        }
        this.#comparison.sides.watch(perFrame(() => this.#comparison.sides.value.forEach((side, i) => this.#sides[i]?.draw(side))));
        this.#comparison.running.watch((running) => {
            show(this.#stop, running);
            show(this.#ask, !running);
            this.#sides.forEach(({ select }) => (select.disabled = running));
        });
        this.#comparison.inTurn.watch((inTurn) => {
            this.#note.textContent = inTurn
                ? "Both together need more memory than is certain to be there, so they are loaded one after the other."
                : "Both get the same settings and the same seed. When they answer at the same time, each is slower than alone.";
        });
    }

    /** Lists the models; called when the page is shown. */
    async open(): Promise<void> {
        const [catalog, files, last] = await Promise.all([this.#models.catalog(), Bezel.models().catch(() => []), this.#models.last()]);
        const stored = storedEntries(this.#downloads.list.value, files).map(({ title, files: own, record }): Choice => (record ? choiceOfRecord(record) : { kind: "stored", name: title, stored: own[0] ?? "" }));
        const offered = catalog.offers.map(({ name, url, more }): Choice => ({ kind: "url", name, url, ...(more?.length ? { more } : {}) }));
        const local = last?.kind === "file" && last.handles ? [last] : [];
        this.#choices = [...local, ...stored, ...offered];
        for (const index of INDEXES) {
            const { select } = this.#sides[index];
            const before = this.#comparison.sides.value[index].choice;
            const found = this.#choices.findIndex((choice) => before !== null && choice.name === before.name && choice.kind === before.kind);
            const chosen = found >= 0 ? found : Math.min(index, this.#choices.length - 1);
            select.replaceChildren(...this.#choices.map(({ name }, i) => h("option", { value: i, selected: i === chosen }, name)));
            this.#comparison.choose(index, this.#choices[chosen] ?? null);
        }
        this.#ask.disabled = this.#choices.length === 0;
        this.#question.focus();
    }

    async #run(): Promise<void> {
        const question = this.#question.value.trim();
        if (question === "" || this.#comparison.running.value) {
            return;
        }
        if (this.#models.loaded) {
            this.#before = await this.#models.last();
            this.#models.unload(); // its memory is needed
        }
        await this.#comparison.run(question);
    }

    /** Frees both models, and loads the conversation's again. */
    async close(): Promise<void> {
        await this.#comparison.close();
        const before = this.#before;
        this.#before = null;
        if (before && !this.#models.loaded) {
            await this.#models.load(before);
        }
    }
}
