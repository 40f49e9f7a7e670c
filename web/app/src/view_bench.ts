/** The dialog that runs the benchmark and shows, copies and saves its result. */
import { reasonAgainstBenchmark, runBenchmark, type BenchmarkResult } from "./bench.js";
import { drawPicture, rowsOf } from "./bench_picture.js";
import type { Chat } from "./chat.js";
import { announce, byId, h, type Child } from "./dom.js";
import { failureOf } from "./errors.js";
import { formatBytes, formatRate } from "./format.js";
import { icon } from "./icons.js";
import type { ModelManager } from "./model.js";
import { saveBlob } from "./save.js";

const toBlob = (canvas: HTMLCanvasElement): Promise<Blob> =>
    new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture could not be made.")))));

export class BenchView {
    readonly #dialog = byId<HTMLDialogElement>("bench");
    readonly #models: ModelManager;
    readonly #chat: Chat;
    #control: AbortController | null = null;

    constructor(models: ModelManager, chat: Chat) {
        this.#models = models;
        this.#chat = chat;
        this.#dialog.addEventListener("close", () => this.#control?.abort());
    }

    open(): void {
        this.#dialog.showModal();
        void this.#run();
    }

    #show(body: Child[], ...buttons: Child[]): void {
        this.#dialog.replaceChildren(h("h2", { id: "bench-title", tabindex: -1, autofocus: true }, "Benchmark"), ...body.filter((child) => child instanceof Node), h("div", { class: "actions" }, ...buttons));
    }

    #button(label: string, act: () => void, main = false): HTMLElement {
        return h("button", { type: "button", ...(main ? { class: "main" } : {}), onclick: act }, label);
    }

    #refuse(text: string): void {
        this.#show([h("div", { class: "callout bad", role: "alert" }, icon("warn"), h("p", {}, text))], this.#button("Close", () => this.#dialog.close(), true));
    }

    async #run(): Promise<void> {
        const model = this.#models.loaded;
        const reason = !model ? "No model is loaded." : this.#chat.answering.value ? "An answer is being written: wait until it has ended, as it would slow the benchmark." : reasonAgainstBenchmark(model);
        if (!model || reason !== null) {
            this.#refuse(reason ?? "");
            return;
        }
        const control = new AbortController();
        this.#control = control;
        const fill = h("span");
        const bar = h("div", { class: "bar", role: "progressbar", "aria-label": "Benchmark", "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
        const label = h("p", { class: "faint" }, "Starting");
        this.#show([h("p", {}, `${this.#models.loadedName} reads prompts of 128 and 512 tokens and writes 64 at two depths. Other work on this machine makes it slower.`), bar, label],
            this.#button("Cancel", () => this.#dialog.close()));
        try {
            const result = await runBenchmark(model, this.#models.loadSeconds, control.signal, (progress) => {
                fill.style.transform = `scaleX(${progress.fraction})`;
                bar.setAttribute("aria-valuenow", String(Math.round(100 * progress.fraction)));
                label.textContent = progress.label;
            });
            this.#showResult({ ...result, model: { ...result.model, name: this.#models.loadedName || result.model.name } });
        } catch (cause) {
            if (!control.signal.aborted) {
                this.#refuse(failureOf(cause).message);
            }
        }
    }

    #showResult(result: BenchmarkResult): void {
        const { model, device, loadSeconds } = result;
        const json = JSON.stringify(result, null, 2);
        const rows = rowsOf(result).map(([name, rate]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, formatRate(rate))));
        if (loadSeconds !== null) {
            rows.push(h("tr", {}, h("th", { scope: "row" }, "Loads in"), h("td", {}, `${loadSeconds.toFixed(1)} s`)));
        }
        const done = h("p", { class: "faint", role: "status" });
        const outcome = (act: () => Promise<void>, text: string) => async (): Promise<void> => {
            try {
                await act();
                done.textContent = text;
            } catch {
                done.textContent = "The browser did not allow that; save the file instead.";
            }
        };
        // Pages over plain http have no clipboard: then the call itself throws.
        const copyJson = outcome(() => navigator.clipboard.writeText(json), "The result is in the clipboard.");
        const copyPicture = outcome(() => navigator.clipboard.write([new ClipboardItem({ "image/png": toBlob(drawPicture(result)) })]), "The picture is in the clipboard.");
        const name = `bezel-${model.name.replace(/[^A-Za-z0-9._-]+/g, "-")}-${result.date.slice(0, 10)}`;
        const savePicture = outcome(async () => saveBlob(await toBlob(drawPicture(result)), `${name}.png`), "The picture is saved.");
        this.#show(
            [
                h("p", {}, `${model.name}, ${formatBytes(model.bytes)}, on ${device.kind === "cpu" ? `the CPU (${device.threads === 1 ? "one thread" : `${device.threads} threads`})` : device.name}`),
                h("table", { class: "figures" }, h("tbody", {}, ...rows)),
                done,
            ],
            this.#button("Copy as JSON", () => void copyJson()),
            this.#button("Copy picture", () => void copyPicture()),
            this.#button("Save picture", () => void savePicture()),
            this.#button("Save JSON", () => saveBlob(new Blob([json], { type: "application/json" }), `${name}.json`)),
            this.#button("Close", () => this.#dialog.close(), true),
        );
        announce("The benchmark has ended.");
    }
}
