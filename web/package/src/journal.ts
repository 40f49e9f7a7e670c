/** What is known of a download that is not finished: a line of JSON, then a line for each stretch that
 * is safely in the file. Lines are only ever added, so that a crash costs the last one at most. */
import { JOURNAL, openSync, type SyncFile } from "./opfs.js";
import { Ranges } from "./ranges.js";

export interface JournalHead {
    url: string;
    /** Strong ETag, or the date; null: the server gives neither. */
    validator: string | null;
    /** Null: the server does not say. */
    size: number | null;
    ranges: boolean;
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

    /** Goes on with what is there if it is of the same file on the same server; else begins anew. */
    static async open(name: string, head: JournalHead): Promise<Journal> {
        const file = await openSync(name + JOURNAL);
        const old = head.ranges ? Journal.#read(file) : null;
        if (old && same(old.head, head)) {
            return new Journal(file, head, old.done, old.length);
        }
        file.truncate(0);
        const journal = new Journal(file, head, new Ranges(), 0);
        journal.#write(JSON.stringify(head));
        return journal;
    }

    static #read(file: SyncFile): { head: JournalHead; done: Ranges; length: number } | null {
        const bytes = new Uint8Array(file.getSize());
        file.read(bytes, { at: 0 });
        const text = new TextDecoder().decode(bytes);
        const whole = text.slice(0, text.lastIndexOf("\n") + 1); // a line without its end was cut off
        const [first = "", ...lines] = whole.split("\n");
        const done = new Ranges();
        for (const line of lines) {
            const [, from, to] = /^(\d+) (\d+)$/.exec(line) ?? [];
            if (from !== undefined && to !== undefined) {
                done.add(Number(from), Number(to));
            }
        }
        try {
            return { head: JSON.parse(first) as JournalHead, done, length: new TextEncoder().encode(whole).byteLength };
        } catch {
            return null;
        }
    }

    #write(line: string): void {
        const bytes = new TextEncoder().encode(`${line}\n`);
        this.#file.write(bytes, { at: this.#at });
        this.#file.flush();
        this.#at += bytes.byteLength;
    }

    /** These bytes are in the file, and it was flushed. */
    add(from: number, to: number): void {
        this.done.add(from, to);
        this.#write(`${from} ${to}`);
    }

    close(): void {
        this.#file.close();
    }
}

/** Without a validator the size has to do. */
function same(a: JournalHead, b: JournalHead): boolean {
    return a.url === b.url && a.validator === b.validator && a.size === b.size && a.ranges === b.ranges;
}
