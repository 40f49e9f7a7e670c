/** The journal of an incomplete download: a line of JSON, then one line per byte range that has been flushed to the
 * file. Lines are only appended, so a crash loses at most the last one. */
import { JOURNAL, openSyncFile, type SyncFile } from "./opfs.js";
import { Ranges } from "./ranges.js";

export interface JournalHead {
    url: string;
    /** Strong ETag or Last-Modified; null: the server sends neither. */
    validator: string | null;
    /** Null: unknown. */
    size: number | null;
    ranges: boolean;
}

export interface JournalContents {
    head: JournalHead;
    done: Ranges;
    /** Bytes of the complete lines. */
    length: number;
}

/** Null: not a journal. */
export function readJournal(bytes: Uint8Array): JournalContents | null {
    const text = new TextDecoder().decode(bytes);
    const whole = text.slice(0, text.lastIndexOf("\n") + 1); // an unterminated line is incomplete
    const [first = "", ...lines] = whole.split("\n");
    const done = new Ranges();
    for (const line of lines) {
        const [, from, to] = /^(\d+) (\d+)$/.exec(line) ?? [];
        if (from !== undefined && to !== undefined) {
            done.add(Number(from), Number(to));
        }
    }
    try {
        const head = JSON.parse(first) as JournalHead | null;
        return typeof head !== "object" || head === null ? null : { head, done, length: new TextEncoder().encode(whole).byteLength };
    } catch {
        return null;
    }
}

function contentsOf(file: SyncFile): Uint8Array {
    const bytes = new Uint8Array(file.getSize());
    file.read(bytes, { at: 0 });
    return bytes;
}

export class Journal {
    readonly #file: SyncFile;
    readonly head: JournalHead;
    readonly done: Ranges;
    #at: number;

    private constructor(file: SyncFile, head: JournalHead, done: Ranges, at: number) {
        this.#file = file;
        this.head = head;
        this.done = done;
        this.#at = at;
    }

    /** Continues an existing journal of the same file and server version; else starts a new one. */
    static async open(name: string, head: JournalHead): Promise<Journal> {
        const file = await openSyncFile(name + JOURNAL);
        const old = head.ranges ? readJournal(contentsOf(file)) : null;
        if (old && same(old.head, head)) {
            return new Journal(file, head, old.done, old.length);
        }
        file.truncate(0);
        const journal = new Journal(file, head, new Ranges(), 0);
        journal.#write(JSON.stringify(head));
        return journal;
    }

    #write(line: string): void {
        const bytes = new TextEncoder().encode(`${line}\n`);
        this.#file.write(bytes, { at: this.#at });
        this.#file.flush();
        this.#at += bytes.byteLength;
    }

    /** Call it after these bytes have been flushed to the file. */
    add(from: number, to: number): void {
        this.done.add(from, to);
        this.#write(`${from} ${to}`);
    }

    close(): void {
        this.#file.close();
    }
}

/** Without a validator a checksum was given, which finds a file that changed. */
function same(a: JournalHead, b: JournalHead): boolean {
    return a.url === b.url && a.validator === b.validator && a.size === b.size && a.ranges === b.ranges;
}
