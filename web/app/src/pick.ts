/** Files: by a picker whose choice can be kept, by an input where there is none, by dropping. A model may be several:
 * the parts of a split one, and the mmproj file beside it. */
import { byId, h, show } from "./dom.js";
import type { FileChoice } from "./model.js";

type Picker = (options: object) => Promise<FileSystemFileHandle[]>;

/** As people call it: the text model's file, without what only says that it is one of several. */
function nameOf(files: File[]): string {
    const main = files.find(({ name }) => !/mmproj/i.test(name)) ?? files[0];
    return (main?.name ?? "model").replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "");
}

/** null: there are no files. */
function fileChoice(files: File[], handles: (FileSystemFileHandle | null)[]): FileChoice | null {
    const kept = handles.filter((handle) => handle !== null);
    return files.length === 0 ? null : { kind: "file", name: nameOf(files), files, handles: kept.length === files.length ? kept : null };
}

/** The files of both, each once. */
export function together(first: FileChoice, more: FileChoice): FileChoice {
    const files = [...(first.files ?? [])];
    const handles: (FileSystemFileHandle | null)[] = files.map((_, i) => first.handles?.[i] ?? null);
    more.files?.forEach((file, i) => {
        if (!files.some(({ name, size }) => name === file.name && size === file.size)) {
            files.push(file);
            handles.push(more.handles?.[i] ?? null);
        }
    });
    return fileChoice(files, handles) ?? first;
}

function chooseByInput(): Promise<FileChoice | null> {
    return new Promise((resolve) => {
        const input = h("input", { type: "file", accept: ".gguf", multiple: true });
        input.addEventListener("change", () => resolve(fileChoice([...(input.files ?? [])], [])));
        input.addEventListener("cancel", () => resolve(null));
        input.click();
    });
}

/** null: the user changed his mind. */
export async function chooseFiles(): Promise<FileChoice | null> {
    const { showOpenFilePicker } = window as { showOpenFilePicker?: Picker };
    if (!showOpenFilePicker) {
        return chooseByInput();
    }
    try {
        const handles = await showOpenFilePicker({
            id: "models",
            multiple: true,
            types: [{ description: "GGUF model", accept: { "application/octet-stream": [".gguf"] } }],
        });
        return fileChoice(await Promise.all(handles.map((handle) => handle.getFile())), handles);
    } catch (reason) {
        if (reason instanceof DOMException && reason.name === "AbortError") {
            return null;
        }
        return chooseByInput(); // a frame of another site, or a policy: the picker is there but forbidden
    }
}

type Dropped = DataTransferItem & { getAsFileSystemHandle?: () => Promise<FileSystemHandle | null> };

async function droppedChoice(data: DataTransfer): Promise<FileChoice | null> {
    const items = [...data.items].filter(({ kind }) => kind === "file") as Dropped[];
    // All at once, and now: later the items are gone.
    const files = items.map((item) => item.getAsFile());
    const asked = items.map((item) => item.getAsFileSystemHandle?.().catch(() => null));
    const handles = (await Promise.all(asked)).map((handle) => (handle?.kind === "file" ? (handle as FileSystemFileHandle) : null));
    const there = files.flatMap((file, i) => (file ? [{ file, handle: handles[i] ?? null }] : []));
    return fileChoice(there.map(({ file }) => file), there.map(({ handle }) => handle));
}

export function acceptDrops(opened: (choice: FileChoice) => void): void {
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
