/** Files: by a picker whose choice can be kept, by an input where there is none, by dropping. */
import { byId, h, show } from "./dom.js";
import type { Choice } from "./model.js";

type Picker = (options: object) => Promise<FileSystemFileHandle[]>;

function fileChoice(file: File, handle: FileSystemFileHandle | null): Choice {
    return { kind: "file", name: file.name.replace(/\.gguf$/i, ""), file, handle };
}

function chooseByInput(): Promise<Choice | null> {
    return new Promise((resolve) => {
        const input = h("input", { type: "file", accept: ".gguf" });
        input.addEventListener("change", () => resolve(input.files?.[0] ? fileChoice(input.files[0], null) : null));
        input.addEventListener("cancel", () => resolve(null));
        input.click();
    });
}

/** null: the user changed his mind. */
export async function chooseFile(): Promise<Choice | null> {
    const { showOpenFilePicker } = window as { showOpenFilePicker?: Picker };
    if (!showOpenFilePicker) {
        return chooseByInput();
    }
    try {
        const [handle] = await showOpenFilePicker({
            id: "models",
            types: [{ description: "GGUF model", accept: { "application/octet-stream": [".gguf"] } }],
        });
        return handle ? fileChoice(await handle.getFile(), handle) : null;
    } catch (reason) {
        if (reason instanceof DOMException && reason.name === "AbortError") {
            return null;
        }
        return chooseByInput(); // a frame of another site, or a policy: the picker is there but forbidden
    }
}

async function droppedChoice(data: DataTransfer): Promise<Choice | null> {
    const item = [...data.items].find(({ kind }) => kind === "file") as
        | (DataTransferItem & { getAsFileSystemHandle?: () => Promise<FileSystemHandle | null> })
        | undefined;
    const file = item?.getAsFile() ?? data.files[0];
    const asked = item?.getAsFileSystemHandle?.(); // now: later the items are gone
    const handle = await asked?.catch(() => null);
    return file ? fileChoice(file, handle?.kind === "file" ? (handle as FileSystemFileHandle) : null) : null;
}

export function acceptDrops(opened: (choice: Choice) => void): void {
    const veil = byId("drop");
    const holdsFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    addEventListener("dragover", (event) => {
        if (holdsFile(event)) {
            event.preventDefault();
            show(veil, true);
        }
    });
    addEventListener("dragleave", (event) => {
        if (!event.relatedTarget) {
            show(veil, false);
        }
    });
    addEventListener("drop", (event) => {
        show(veil, false);
        if (event.dataTransfer && holdsFile(event)) {
            event.preventDefault();
            void droppedChoice(event.dataTransfer).then((choice) => choice && opened(choice));
        }
    });
}
