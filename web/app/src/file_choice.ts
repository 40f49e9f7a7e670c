/** Files of one model that the user has chosen: the parts of a split one, its mmproj file and its drafter. */
import { isDrafterName, isMediaName } from "./remote.js";

/** `files` is null if they were chosen on an earlier visit: then `handles` are used. */
export interface FileChoice {
    kind: "file";
    name: string;
    files: File[] | null;
    /** One per file, where the browser can store handles; else null. */
    handles: FileSystemFileHandle[] | null;
}

/** Display name: the first file's, without the part number and the extension. */
export function nameOfFiles([first]: string[]): string | null {
    return first?.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "") ?? null;
}

/** Provisional name, until the headers show which file is the text model. */
function nameOf(files: File[]): string {
    const names = files.map(({ name }) => name);
    return nameOfFiles([...names.filter((name) => !isMediaName(name) && !isDrafterName(name)), ...names]) ?? "model";
}

/** null: there are no files. */
export function fileChoice(files: File[], handles: (FileSystemFileHandle | null)[]): FileChoice | null {
    const storable = handles.filter((handle) => handle !== null);
    return files.length === 0 ? null : { kind: "file", name: nameOf(files), files, handles: storable.length === files.length ? storable : null };
}

/** Merges two choices without duplicates. */
export function mergeFiles(first: FileChoice, more: FileChoice): FileChoice {
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
