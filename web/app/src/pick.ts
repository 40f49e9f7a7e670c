/** Files: by a picker whose choice can be kept, by an input where there is none, by dropping. A model may be several:
 * the parts of a split one, and the mmproj file beside it. */
import { kindOfFile } from "./attach.js";
import { byId, h, show } from "./dom.js";
import { nameOfFiles, type FileChoice } from "./model.js";

type Picker = (options: object) => Promise<FileSystemFileHandle[]>;

/** Until their headers tell which one is the text model. */
function nameOf(files: File[]): string {
    const names = files.map(({ name }) => name);
    return nameOfFiles([...names.filter((name) => !/mmproj/i.test(name)), ...names]) ?? "model";
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
        const input = h("input", { type: "file", multiple: true }); // of any name: Ollama's files have no ending
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
        const handles = await showOpenFilePicker({ id: "models", multiple: true });
        return fileChoice(await Promise.all(handles.map((handle) => handle.getFile())), handles);
    } catch (reason) {
        if (reason instanceof DOMException && reason.name === "AbortError") {
            return null;
        }
        return chooseByInput(); // a frame of another site, or a policy: the picker is there but forbidden
    }
}

type Dropped = DataTransferItem & { getAsFileSystemHandle?: () => Promise<FileSystemHandle | null> };

interface DroppedFile {
    file: File;
    folder: boolean;
    handle: FileSystemFileHandle | null;
}

async function droppedFiles(data: DataTransfer): Promise<DroppedFile[]> {
    const items = [...data.items].filter(({ kind }) => kind === "file") as Dropped[];
    // All at once, and now: later the items are gone.
    const files = items.map((item) => item.getAsFile());
    const folders = items.map((item) => item.webkitGetAsEntry?.()?.isDirectory ?? false);
    const asked = items.map((item) => item.getAsFileSystemHandle?.().catch(() => null));
    const handles = (await Promise.all(asked)).map((handle) => (handle?.kind === "file" ? (handle as FileSystemFileHandle) : null));
    return files.flatMap((file, i) => (file ? [{ file, folder: folders[i] ?? false, handle: handles[i] ?? null }] : []));
}

export interface DropTarget {
    model(choice: FileChoice): void;
    /** Pictures and sounds, for a message; there may be none. `refusals`: a sentence about each file that is no such thing. */
    media(files: File[], refusals: string[]): void;
    /** What came with a model and is no part of it. */
    leftOut(refusals: string[]): void;
}

/** By its name, else by its first bytes: files of other programs' stores have no ending. */
async function isModel(file: File): Promise<boolean> {
    try {
        return /\.gguf$/i.test(file.name) || (await file.slice(0, 4).text()) === "GGUF";
    } catch {
        return false; // it cannot be read
    }
}

/** A model is opened, pictures and sounds go into the message; what is neither does not take the user elsewhere. */
async function sortOut(dropped: DroppedFile[], target: DropTarget): Promise<void> {
    const models: DroppedFile[] = [];
    const media: File[] = [];
    const refusals: string[] = [];
    for (const one of dropped) {
        if (one.folder) {
            refusals.push(`${one.file.name} is a folder: drop the files that are in it.`);
        } else if (kindOfFile(one.file)) {
            media.push(one.file);
        } else if (await isModel(one.file)) {
            models.push(one);
        } else {
            refusals.push(`${one.file.name} is neither a model, a picture nor a sound.`);
        }
    }
    const choice = fileChoice(models.map(({ file }) => file), models.map(({ handle }) => handle));
    if (choice) {
        target.model(choice);
        target.leftOut([...refusals, ...media.map(({ name }) => `${name} was left out: drop pictures and sounds when the model is loaded.`)]);
    } else {
        target.media(media, refusals);
    }
}

/** While something is held over the page, as far as the browser tells what it is. */
function veilText(data: DataTransfer | null): string {
    const files = [...(data?.items ?? [])].filter(({ kind }) => kind === "file");
    const media = files.length > 0 && files.every(({ type }) => /^(image|audio)\//.test(type));
    return media ? "Drop it into the message" : "Drop the model here";
}

export function acceptDrops(target: DropTarget): void {
    const veil = byId("drop");
    const holdsFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    addEventListener("dragover", (event) => {
        if (holdsFile(event)) {
            event.preventDefault();
            veil.replaceChildren(h("p", {}, veilText(event.dataTransfer)));
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
            void droppedFiles(event.dataTransfer).then((files) => sortOut(files, target));
        }
    });
}
