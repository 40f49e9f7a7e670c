/** Downloads that were begun and not completed, from their journals: after a reload or a crash nothing else remembers them. */
import { readJournal } from "./journal.js";
import { hasOpfs, JOURNAL, modelFolder } from "./opfs.js";

export interface UnfinishedDownload {
    name: string;
    url: string;
    /** Null: the server did not report it. */
    size: number | null;
    /** Bytes that the next attempt need not fetch again. */
    done: number;
    /** Bytes that it occupies. */
    stored: number;
}

/** One that is being written at the moment may be missing: its files are locked. */
export async function unfinishedDownloads(): Promise<UnfinishedDownload[]> {
    if (!hasOpfs()) {
        return [];
    }
    const folder = await modelFolder();
    const found: UnfinishedDownload[] = [];
    for await (const [journal, handle] of folder.entries()) {
        if (handle.kind !== "file" || !journal.endsWith(JOURNAL)) {
            continue;
        }
        const name = journal.slice(0, -JOURNAL.length);
        try {
            const bytes = await (await (handle as FileSystemFileHandle).getFile()).arrayBuffer();
            const contents = readJournal(new Uint8Array(bytes));
            const file = await folder.getFileHandle(name).then((one) => one.getFile(), () => null);
            const done = contents?.head.ranges ? contents.done.total : 0;
            found.push({ name, url: contents?.head.url ?? "", size: contents?.head.size ?? null, done, stored: file?.size ?? 0 });
        } catch {
            // locked by the worker that writes it
        }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}
