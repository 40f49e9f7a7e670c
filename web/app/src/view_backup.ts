/** Export and import, in the settings. */
import { h } from "./dom.js";
import { icon } from "./icons.js";
import type { Library, TextFile } from "./library.js";
import { saveBlob } from "./save.js";

export function saveFile({ name, type, text }: TextFile): void {
    saveBlob(new Blob([text], { type }), name);
}

const count = (n: number): string => `${n.toLocaleString("en")} ${n === 1 ? "conversation" : "conversations"}`;

export function backupFields(library: Library): HTMLElement {
    const outcome = h("p", { class: "faint", role: "status" });
    const input = h("input", { type: "file", accept: ".json,application/json", hidden: true, "aria-label": "File to import" });
    const act = (action: () => Promise<string>): void => {
        outcome.textContent = "";
        action().then(
            (text) => (outcome.textContent = text),
            (reason: unknown) => (outcome.textContent = reason instanceof Error ? reason.message : String(reason)),
        );
    };
    input.addEventListener("change", () => {
        const [file] = input.files ?? [];
        input.value = "";
        if (file) {
            act(async () => {
                const { added, known } = await library.import(file);
                return `${count(added)} imported${known > 0 ? `; ${count(known)} already here` : ""}.`;
            });
        }
    });
    return h(
        "fieldset",
        { id: "backup" },
        h("legend", {}, "Conversations"),
        h("p", { class: "faint" }, "They are stored in this browser only. An exported file can be imported here or in another browser."),
        h(
            "div",
            { class: "actions start" },
            h("button", { type: "button", onclick: () => act(async () => (saveFile(await library.exportAll()), "Exported.")) }, icon("out"), "Export all"),
            h("button", { type: "button", onclick: () => input.click() }, icon("file"), "Import\u2026"),
            input,
        ),
        outcome,
        h("p", { class: "faint" }, h("a", { href: "licenses.txt", target: "_blank", rel: "noopener" }, "Licenses of the software in this page")),
    );
}
