/** The list of downloads that are not complete, and what the stored models occupy. */
import { Bezel, type StoredModel, type UnfinishedDownload } from "./bezel.js";
import { confirmed } from "./dialog.js";
import type { DownloadManager } from "./downloads.js";
import { h, show, type Child } from "./dom.js";
import { explainLoading } from "./errors.js";
import { formatBytes, formatTimeLeft } from "./format.js";
import { icon } from "./icons.js";
import { doneOf, sizeOf, type DownloadRecord } from "./model_records.js";

/** "1.2 of 3.1 GB · 12 MB/s · 3 min left" */
export function describeDownload(record: DownloadRecord, downloads: DownloadManager): string {
    const size = sizeOf(record);
    const amount = size === null ? formatBytes(doneOf(record)) : `${formatBytes(doneOf(record))} of ${formatBytes(size)}`;
    const { rate, remaining, checking } = downloads.progressOf(record);
    if (downloads.isElsewhere(record)) {
        return `${amount} \u00b7 another tab is downloading it`;
    }
    switch (record.state) {
        case "waiting":
            return `${amount} \u00b7 waiting for the one before it`;
        case "paused":
            return `${amount} \u00b7 paused`;
        case "failed":
            return `${amount} \u00b7 stopped`;
        case "done":
            return formatBytes(doneOf(record));
        case "running":
            return [
                amount,
                checking ? "checking" : rate === null ? "starting" : `${formatBytes(rate)}/s`,
                !checking && remaining !== null && `${formatTimeLeft(remaining)} left`,
            ].filter((part) => part !== false).join(" \u00b7 ");
    }
}

interface Row {
    root: HTMLElement;
    /** Redrawn when it changes; between, only the figures move, so that buttons keep the focus. */
    key: string;
    bar: HTMLElement;
    fill: HTMLElement;
    text: HTMLElement;
}

export class DownloadsView {
    readonly root: HTMLElement;
    readonly #downloads: DownloadManager;
    readonly #rows = new Map<string, Row>();
    readonly #list = h("ul", { class: "download-list" });
    readonly #left = h("ul", { class: "download-list" });
    readonly #release: (stored: string[]) => Promise<void>;
    readonly #changed: () => void;

    /** `release`: called before stored files are deleted; `changed`: after that. */
    constructor(downloads: DownloadManager, release: (stored: string[]) => Promise<void>, changed: () => void) {
        this.#downloads = downloads;
        this.#release = release;
        this.#changed = changed;
        this.root = h("section", { class: "downloads", "aria-labelledby": "downloads-title" }, h("h3", { id: "downloads-title" }, "Downloads"), this.#list, this.#left);
        downloads.list.watch(() => this.#draw());
    }

    #draw(): void {
        const records = this.#downloads.list.value.filter(({ state }) => state !== "done");
        for (const [id, row] of this.#rows) {
            if (!records.some((record) => record.id === id)) {
                row.root.remove();
                this.#rows.delete(id);
            }
        }
        records.forEach((record) => this.#drawRow(record));
        this.#showOrHide();
    }

    #showOrHide(): void {
        show(this.root, this.#list.childElementCount + this.#left.childElementCount > 0);
    }

    #drawRow(record: DownloadRecord): void {
        const key = `${record.state} ${this.#downloads.isElsewhere(record)}`;
        let row = this.#rows.get(record.id);
        if (row?.key !== key) {
            const made = this.#makeRow(record, key);
            if (row) {
                const hadFocus = row.root.contains(document.activeElement);
                row.root.replaceWith(made.root);
                if (hadFocus) {
                    made.root.querySelector("button")?.focus();
                }
            } else {
                this.#list.append(made.root);
            }
            this.#rows.set(record.id, made);
            row = made;
        }
        const size = sizeOf(record);
        const fraction = size ? doneOf(record) / size : 0;
        row.fill.style.transform = `scaleX(${fraction})`;
        row.bar.setAttribute("aria-valuenow", String(Math.round(100 * fraction)));
        row.text.textContent = describeDownload(record, this.#downloads);
    }

    #makeRow(record: DownloadRecord, key: string): Row {
        const { title, state, failure, source } = record;
        const fill = h("span");
        const bar = h("div", { class: "bar", role: "progressbar", "aria-label": `Download of ${title}`, "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
        const text = h("span", { class: "faint amount" });
        const button = (label: string, act: () => Promise<void>, main = false): Child =>
            h("button", { type: "button", class: main ? "small main" : "small", "aria-label": `${label}: ${title}`, onclick: () => void act() }, label);
        const actions = this.#downloads.isElsewhere(record)
            ? []
            : [
                  state === "running" || state === "waiting" ? button("Pause", () => this.#downloads.pause(record)) : null,
                  state === "paused" ? button("Resume", () => this.#downloads.resume(record), true) : null,
                  state === "failed" ? button("Try again", () => this.#downloads.resume(record), true) : null,
                  button("Delete", () => this.#delete(record)),
              ];
        const why = state === "failed" && failure ? h("p", { class: "why", role: "alert" }, icon("warn"), h("span", {}, `${explainLoading(failure).title}. ${failure.message}`)) : null;
        const root = h(
            "li",
            { class: `download ${state}`, "data-download": record.id, "data-state": state },
            h("div", { class: "download-head" }, h("b", {}, title), h("span", { class: "faint" }, source)),
            bar,
            h("div", { class: "download-foot" }, text, h("span", { class: "actions" }, ...actions)),
            why,
        );
        return { root, key, bar, fill, text };
    }

    async #delete(record: DownloadRecord): Promise<void> {
        const text = `What has arrived of ${record.title} (${formatBytes(doneOf(record))}) is deleted. It can be downloaded again.`;
        if (doneOf(record) === 0 || (await confirmed("Delete this download?", text, "Delete"))) {
            await this.#release(record.files.map(({ stored }) => stored));
            await this.#downloads.remove(record);
            this.#changed();
        }
    }

    /** Files of downloads whose record was lost. */
    showLeftOvers(all: UnfinishedDownload[]): void {
        const known = new Set(this.#downloads.list.value.flatMap(({ files }) => files.map(({ stored }) => stored)));
        const rows = all.filter(({ name }) => !known.has(name)).map((one) => {
            const remove = async (): Promise<void> => {
                await Bezel.remove(one.name);
                this.#changed();
            };
            const resume = async (): Promise<void> => {
                await this.#downloads.adopt(one);
                this.#changed();
            };
            return h(
                "li",
                { class: "download" },
                h("div", { class: "download-head" }, h("b", {}, one.name), h("span", { class: "faint" }, "left over from an earlier visit")),
                h(
                    "div",
                    { class: "download-foot" },
                    h("span", { class: "faint amount" }, `${formatBytes(one.done)}${one.size === null ? "" : ` of ${formatBytes(one.size)}`} \u00b7 occupies ${formatBytes(one.stored)}`),
                    h(
                        "span",
                        { class: "actions" },
                        URL.canParse(one.url) && h("button", { type: "button", class: "small", "aria-label": `Resume: ${one.name}`, onclick: () => void resume() }, "Resume"),
                        h("button", { type: "button", class: "small", "aria-label": `Delete: ${one.name}`, onclick: () => void remove() }, "Delete"),
                    ),
                ),
            );
        });
        this.#left.replaceChildren(...rows);
        this.#showOrHide();
    }
}

/** A stored model in the list: one with a record may have several files. */
export interface StoredEntry {
    title: string;
    bytes: number;
    files: string[];
    record: DownloadRecord | null;
    /** Where it comes from, and whether its bytes were checked; "": not known. */
    about: string;
}

/** Joins the files in storage with what is known about them. */
export function storedEntries(records: DownloadRecord[], files: StoredModel[]): StoredEntry[] {
    const entries = records
        .filter(({ state, files: own }) => state === "done" && own.every(({ stored }) => files.some(({ name }) => name === stored)))
        .map((record): StoredEntry => {
            const checked = record.files.every(({ verified }) => verified) ? "checked" : "not verified";
            const own = record.files.map(({ stored }) => stored);
            return { title: record.title, bytes: doneOf(record), files: own, record, about: `${record.source} \u00b7 ${checked}` };
        });
    const known = new Set(records.flatMap(({ files: own }) => own.map(({ stored }) => stored)));
    const others = files.filter(({ name }) => !known.has(name));
    return [...entries, ...others.map(({ name, size }): StoredEntry => ({ title: name.replace(/\.gguf$/i, ""), bytes: size, files: [name], record: null, about: "" }))];
}

/** What the page occupies, and a way to keep the browser from deleting it. */
export async function storageLine(): Promise<HTMLElement | null> {
    const { storage } = navigator as { storage?: StorageManager };
    if (!storage?.estimate) {
        return null;
    }
    const { usage = 0, quota = 0 } = await storage.estimate();
    const persisted = (await storage.persisted?.()) ?? false;
    const line = h("p", { class: "storage faint" }, `This page occupies ${formatBytes(usage)} of the ${formatBytes(quota)} that the browser allows. `);
    if (persisted) {
        line.append("The browser keeps it until you delete it.");
    } else if (usage > 0) {
        const keep = h("button", { type: "button", class: "link" }, "Keep it when the disk is nearly full");
        keep.addEventListener("click", () => {
            void storage.persist().then((granted) => keep.replaceWith(granted ? "The browser keeps it until you delete it." : "The browser does not promise to keep it."));
        });
        line.append(keep);
    }
    return line;
}
