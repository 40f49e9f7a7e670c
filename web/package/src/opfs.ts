/** Models in the origin private file system: folder "bezel", one file each. An incomplete download has a journal next
 * to it (download.ts) and does not count as a model. */
import { BezelError } from "./errors.js";

const FOLDER = "bezel";
export const JOURNAL = ".journal";

export interface StoredModel {
    name: string;
    size: number;
    /** Milliseconds since 1970. */
    modified: number;
}

/** TypeScript's DOM types lack the iterator. */
type Folder = FileSystemDirectoryHandle & { entries(): AsyncIterable<[string, FileSystemHandle]> };

export function hasOpfs(): boolean {
    const { storage } = (globalThis.navigator as Navigator | undefined) ?? {};
    return typeof storage?.getDirectory === "function";
}

export async function modelFolder(): Promise<Folder> {
    if (!hasOpfs()) {
        throw new BezelError("quota", "This browser cannot store files for pages (no origin private file system); open the model from a file instead.");
    }
    try {
        const root = await navigator.storage.getDirectory();
        return (await root.getDirectoryHandle(FOLDER, { create: true })) as Folder;
    } catch (reason) {
        const cause = reason instanceof Error ? reason.message : String(reason);
        throw new BezelError("quota", `The browser does not let this page store files (${cause}); private windows often forbid it.`, {
            cause: reason,
        });
    }
}

export function checkName(name: string): string {
    if (!name || /[/\\\0]/.test(name) || name === "." || name === ".." || name.endsWith(JOURNAL)) {
        throw new BezelError("bad_request", `'${name}' cannot be the name of a stored model.`);
    }
    return name;
}

async function find(folder: Folder, name: string): Promise<FileSystemFileHandle | null> {
    try {
        return await folder.getFileHandle(name);
    } catch (reason) {
        if (reason instanceof DOMException && reason.name === "NotFoundError") {
            return null;
        }
        throw reason;
    }
}

/** A complete model. */
export async function storedFile(name: string): Promise<File> {
    const folder = await modelFolder();
    const file = await find(folder, checkName(name));
    if (!file || (await find(folder, name + JOURNAL))) {
        const state = file ? "is not downloaded completely; Bezel.download resumes it" : "is not stored here";
        throw new BezelError("not_found", `${name} ${state}.`);
    }
    return file.getFile();
}

export async function storedModels(): Promise<StoredModel[]> {
    if (!hasOpfs()) {
        return [];
    }
    const files = new Map<string, FileSystemFileHandle>();
    for await (const [name, handle] of (await modelFolder()).entries()) {
        if (handle.kind === "file") {
            files.set(name, handle as FileSystemFileHandle);
        }
    }
    const models: StoredModel[] = [];
    for (const [name, handle] of files) {
        if (!name.endsWith(JOURNAL) && !files.has(name + JOURNAL)) {
            const { size, lastModified } = await handle.getFile();
            models.push({ name, size, modified: lastModified });
        }
    }
    return models.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Complete or not. */
export async function removeStored(name: string): Promise<void> {
    const folder = await modelFolder();
    const found = [];
    for (const file of [checkName(name), name + JOURNAL]) {
        if (await find(folder, file)) {
            found.push(file);
        }
    }
    if (!found.length) {
        throw new BezelError("not_found", `${name} is not stored here.`);
    }
    try {
        for (const file of found) {
            await folder.removeEntry(file);
        }
    } catch (reason) {
        const cause = reason instanceof Error ? reason.message : String(reason);
        throw new BezelError("bad_request", `${name} cannot be removed while it is in use (${cause}).`, { cause: reason });
    }
}

// ---- writing, in workers only ----------------------------------------------------------------------

/** FileSystemSyncAccessHandle, which only TypeScript's worker types declare. */
export interface SyncFile {
    read(into: Uint8Array, options: { at: number }): number;
    write(bytes: Uint8Array, options: { at: number }): number;
    truncate(size: number): void;
    getSize(): number;
    flush(): void;
    close(): void;
}

/** Opens a file exclusively, creating it if needed. */
export async function openSyncFile(name: string): Promise<SyncFile> {
    const handle = (await (await modelFolder()).getFileHandle(name, { create: true })) as FileSystemFileHandle & {
        createSyncAccessHandle?: () => Promise<SyncFile>;
    };
    if (!handle.createSyncAccessHandle) {
        throw new BezelError("bad_request", "Models can be stored only from a worker; remove worker: false.");
    }
    try {
        return await handle.createSyncAccessHandle();
    } catch (reason) {
        const cause = reason instanceof Error ? reason.message : String(reason);
        throw new BezelError("bad_request", `${name} is in use, perhaps by a download in another tab (${cause}).`, { cause: reason });
    }
}

/** Size of a complete file; null: missing or incomplete. */
export async function storedSize(name: string): Promise<number | null> {
    const folder = await modelFolder();
    const file = (await find(folder, name + JOURNAL)) ? null : await find(folder, name);
    return file && (await file.getFile()).size;
}

export async function removeJournal(name: string): Promise<void> {
    await (await modelFolder()).removeEntry(name + JOURNAL);
}
