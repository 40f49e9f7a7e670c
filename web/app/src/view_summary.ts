/** The card of a model that was looked into and not loaded yet: what it is, what it needs, and loading or downloading it. */
import { h, type Child } from "./dom.js";
import { formatBytes } from "./format.js";
import { icon } from "./icons.js";
import type { Choice } from "./model.js";
import { filesOf, type RemoteFile } from "./remote.js";
import type { ModelSummary } from "./summary.js";
import { factList } from "./view_model.js";

export interface SummaryActions {
    /** `contextLength`: 0: the default. */
    load(contextLength: number): void;
    download(contextLength: number): void;
    /** With or without the encoders for images and sound. */
    withMedia(wanted: boolean): void;
    back(): void;
}

const bytesOf = (files: RemoteFile[]): number | null => (files.every(({ size }) => size !== null) ? files.reduce((sum, { size }) => sum + (size ?? 0), 0) : null);

/** Where a model of another host comes from, and whether the host publishes hashes. */
function factsOfRemote({ model, withMedia }: Choice & { kind: "remote" }): [string, string][] {
    const files = filesOf(model, withMedia);
    const bytes = bytesOf(files);
    const checked = files.every(({ sha256 }) => sha256 !== null);
    return [
        ["Source", model.source],
        ["Download", [bytes === null ? "size not known" : formatBytes(bytes), files.length > 1 && `${files.length} files`].filter((part) => part !== false).join(", ")],
        ["Check", checked ? "against the SHA-256 that the host publishes" : "not verified: the host publishes no hash"],
    ];
}

function mediaBox({ model, withMedia }: Choice & { kind: "remote" }, actions: SummaryActions): HTMLElement {
    const bytes = bytesOf(model.media);
    const box = h("input", { type: "checkbox", id: "with-media", checked: withMedia });
    box.addEventListener("change", () => actions.withMedia(box.checked));
    return h("div", { class: "field-row" }, h("label", { for: "with-media" }, `With images and sound${bytes === null ? "" : ` (${formatBytes(bytes)} more)`}`), box);
}

/** `summary`: null: the host does not let pages read parts of a file, so the model cannot be looked into. */
export function summaryBody(choice: Choice, summary: ModelSummary | null, downloads: boolean, actions: SummaryActions): { body: Child[]; buttons: Child[] } {
    const remote = choice.kind === "remote" ? choice : null;
    const { facts = [], lengths = [], defaultLength = 0, device = "", warning = "" } = summary ?? {};
    const length = h(
        "select",
        { id: "context-length", "aria-describedby": "memory-needed" },
        ...lengths.map(({ context }) => h("option", { value: context, selected: context === defaultLength }, `${context.toLocaleString("en")} tokens`)),
    );
    const memory = h("p", { id: "memory-needed" });
    const showMemory = (): void => {
        const bytes = lengths.find(({ context }) => context === Number(length.value))?.bytes;
        memory.textContent = summary
            ? `Runs on ${device}${bytes ? ` and needs ${formatBytes(bytes)} of memory` : ""}.`
            : "The host lets pages read whole files only, so what is in this one is known when it is downloaded.";
    };
    length.addEventListener("change", showMemory);
    showMemory();
    const line = h("div", { class: "callout" }, icon(warning || !summary ? "warn" : "check"), h("div", {}, memory, warning ? h("p", {}, warning) : null));
    const chosen = (): number => (Number(length.value) === defaultLength ? 0 : Number(length.value));
    const main = remote && downloads
        ? h("button", { type: "button", class: "main", "data-focus": true, onclick: () => actions.download(chosen()) }, "Download")
        : h("button", { type: "button", class: "main", "data-focus": true, onclick: () => actions.load(chosen()) }, "Load");
    return {
        body: [
            factList([...facts.filter(([name]) => !remote || !/File|files/.test(name)), ...(remote ? factsOfRemote(remote) : [])]),
            lengths.length > 1 && h("div", { class: "field-row" }, h("label", { for: "context-length" }, "Conversation length"), length),
            remote && remote.model.media.length > 0 && mediaBox(remote, actions),
            line,
            remote && downloads && h("p", { class: "faint" }, "It downloads in the background, also after a reload, and is stored in this browser."),
        ],
        buttons: [main, h("button", { type: "button", onclick: actions.back }, "Back")],
    };
}
