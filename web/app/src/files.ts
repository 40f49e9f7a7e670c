/** Choosing files: with the file picker (whose handles can be stored), with an input element where there is none, or by
 * dropping. A model may consist of several files: the parts of a split one, its mmproj file and its drafter. */
import { kindOfFile } from "./attach.js";
import { isDocument } from "./document_text.js";
import { byId, h, show } from "./dom.js";
import { fileChoice, type FileChoice } from "./file_choice.js";

type Picker = (options: object) => Promise<FileSystemFileHandle[]>;

function chooseByInput(): Promise<FileChoice | null> {
    return new Promise((resolve) => {
        const input = h("input", { type: "file", multiple: true }); // any name: Ollama's files have no extension
        input.addEventListener("change", () => resolve(fileChoice([...(input.files ?? [])], [])));
        input.addEventListener("cancel", () => resolve(null));
        input.click();
    });
}

/** null: cancelled. */
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
        return chooseByInput(); // the picker is forbidden, as in a cross-origin frame
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
    // Synchronously: the items are invalid after the event handler returns.
    const files = items.map((item) => item.getAsFile());
    const folders = items.map((item) => item.webkitGetAsEntry?.()?.isDirectory ?? false);
    const handlePromises = items.map((item) => item.getAsFileSystemHandle?.().catch(() => null));
    const handles = (await Promise.all(handlePromises)).map((handle) => (handle?.kind === "file" ? (handle as FileSystemFileHandle) : null));
    return files.flatMap((file, i) => (file ? [{ file, folder: folders[i] ?? false, handle: handles[i] ?? null }] : []));
}

export interface DropTarget {
    model(choice: FileChoice): void;
    /** Documents for the shelf. */
    documents(files: File[]): void;
    /** Images and sounds for a message, possibly none. `refusals`: a message about each unsupported file. */
    media(files: File[], refusals: string[]): void;
    /** Messages about files that were dropped with a model but ignored. */
    ignored(refusals: string[]): void;
}

/** By extension, else by the magic bytes: other programs store models without an extension. */
async function isModel(file: File): Promise<boolean> {
    try {
        return /\.gguf$/i.test(file.name) || (await file.slice(0, 4).text()) === "GGUF";
    } catch {
        return false; // it cannot be read
    }
}

/** Opens a model, or attaches images, sounds and videos to the message; unsupported files only produce a message. */
async function handleDrop(dropped: DroppedFile[], target: DropTarget): Promise<void> {
    const models: DroppedFile[] = [];
    const media: File[] = [];
    const documents: File[] = [];
    const refusals: string[] = [];
    for (const item of dropped) {
        if (item.folder) {
            refusals.push(`${item.file.name} is a folder: drop the files in it instead.`);
        } else if (kindOfFile(item.file)) {
            media.push(item.file);
        } else if (await isModel(item.file)) {
            models.push(item);
        } else if (isDocument(item.file)) {
            documents.push(item.file);
        } else {
            refusals.push(`${item.file.name} is not a model, image, sound or document.`);
        }
    }
    if (documents.length > 0) {
        target.documents(documents);
    }
    const choice = fileChoice(models.map(({ file }) => file), models.map(({ handle }) => handle));
    if (choice) {
        target.model(choice);
        target.ignored([...refusals, ...media.map(({ name }) => `${name} was ignored: drop images, sounds and videos after the model is loaded.`)]);
    } else if (media.length > 0 || refusals.length > 0 || documents.length === 0) {
        target.media(media, refusals);
    }
}

/** Shown while files are dragged over the page; browsers reveal only their types. */
function overlayText(data: DataTransfer | null): string {
    const files = [...(data?.items ?? [])].filter(({ kind }) => kind === "file");
    const media = files.length > 0 && files.every(({ type }) => /^(image|audio)\//.test(type));
    const documents = files.length > 0 && files.every(({ type }) => /^text\/|^application\/pdf$/.test(type));
    return media ? "Drop to attach" : documents ? "Drop into your documents" : "Drop the model here";
}

export function acceptDrops(target: DropTarget): void {
    const overlay = byId("drop-overlay");
    const holdsFile = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
    addEventListener("dragover", (event) => {
        if (holdsFile(event)) {
            event.preventDefault();
            overlay.replaceChildren(h("p", {}, overlayText(event.dataTransfer)));
            show(overlay, true);
        }
    });
    addEventListener("dragleave", (event) => {
        if (!event.relatedTarget) {
            show(overlay, false);
        }
    });
    addEventListener("drop", (event) => {
        show(overlay, false);
        if (event.dataTransfer && holdsFile(event)) {
            event.preventDefault();
            void droppedFiles(event.dataTransfer).then((files) => handleDrop(files, target));
        }
    });
}
