/** The chip in the header that shows a running download while the conversation goes on. */
import type { DownloadManager } from "./downloads.js";
import { byId, h, show } from "./dom.js";
import { icon } from "./icons.js";
import { doneOf, sizeOf } from "./model_records.js";
import { describeDownload } from "./view_downloads.js";

export class DownloadChip {
    /** `open`: shows the list of downloads. */
    constructor(downloads: DownloadManager, open: () => void) {
        const chip = byId<HTMLButtonElement>("download-chip");
        const text = h("span", { class: "name" });
        chip.append(icon("download"), text);
        chip.addEventListener("click", open);
        downloads.list.watch((list) => {
            const record = list.find(({ state }) => state === "running") ?? list.find(({ state }) => state === "failed");
            show(chip, record !== undefined);
            if (record) {
                const size = sizeOf(record);
                const failed = record.state === "failed";
                text.textContent = failed ? "stopped" : size ? `${Math.floor((100 * doneOf(record)) / size)} %` : "\u2026";
                chip.classList.toggle("bad", failed);
                chip.title = `${record.title}: ${describeDownload(record, downloads)}`;
                chip.setAttribute("aria-label", `Download of ${chip.title}`);
            }
        });
    }
}
