/** Downloads into the origin private file system: in ranges, several at a time, and going on where the
 * last one stopped. The file is a model only when all of it is there and its checksum is right; until
 * then a journal lies beside it. */
import type { Engine } from "./engine.js";
import { abortedBy, BezelError, errorFrom } from "./errors.js";
import { Journal, type JournalHead } from "./journal.js";
import { checkName, forgetJournal, openSync, removeStored, storedSize, type StoredModel, type SyncFile } from "./opfs.js";
import { Sha256 } from "./sha256.js";
import { askUrl, request, sameOrigin, validatorOf, type UrlOptions } from "./url_source.js";

/** Of one request. */
const SLICE = 16 << 20;
/** Of a file that is read again for its checksum. */
const PIECE = 4 << 20;
/** Hashed before other things have their turn. */
const HASH_AT_ONCE = 32 << 20;
/** Written before it is noted. */
const NOTE = 4 << 20;
/** A connection that is silent for so many milliseconds is broken. */
const SILENCE = 60_000;
const TRIES = 5;
const FIRST_PAUSE = 250; // milliseconds; twice as long each time
const MAGIC = "GGUF";

export interface DownloadRequest {
    url: string;
    name: string;
    /** In hexadecimal; null: not known. */
    sha256: string | null;
    /** Requests at a time. */
    parallel: number;
}

export interface DownloadProgress {
    stage: "download" | "verify";
    done: number;
    /** 0: not known. */
    total: number;
}

export interface DownloadPlace extends UrlOptions {
    signal: AbortSignal;
    /** For the checksum. */
    engine: () => Promise<Engine>;
    onProgress: (progress: DownloadProgress) => void;
}

/** The file on the server is not the one that was begun. */
class Changed extends Error {}

function quota(reason: unknown): unknown {
    const full = reason instanceof Error && reason.name === "QuotaExceededError";
    return full
        ? new BezelError("quota", "The browser gives this site no more room; remove a model or free space on the disk, then go on.", {
              cause: reason,
          })
        : reason;
}

/** Lets messages in, one of which may be to stop. */
async function breathe(signal: AbortSignal): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (signal.aborted) {
        throw abortedBy(signal);
    }
}

/** Rejects when nothing comes for too long. */
async function unlessSilent<T>(coming: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new Error("the server fell silent")), SILENCE);
    });
    try {
        return await Promise.race([coming, silence]);
    } finally {
        clearTimeout(timer);
    }
}

class Download {
    readonly #wish: DownloadRequest;
    readonly #place: DownloadPlace;
    readonly #file: SyncFile;
    readonly #journal: Journal;
    readonly #sha: Sha256 | null;
    readonly #piece = new Uint8Array(PIECE);
    #hashed = 0;
    /** Bytes written; the journal is a little behind. */
    #written: number;

    constructor(wish: DownloadRequest, place: DownloadPlace, file: SyncFile, journal: Journal, sha: Sha256 | null) {
        this.#wish = wish;
        this.#place = place;
        this.#file = file;
        this.#journal = journal;
        this.#sha = sha;
        this.#written = journal.done.total;
    }

    #tell(stage: DownloadProgress["stage"], done: number): void {
        this.#place.onProgress({ stage, done, total: this.#journal.head.size ?? 0 });
    }

    #write(bytes: Uint8Array, at: number): void {
        let n: number;
        try {
            n = this.#file.write(bytes, { at });
        } catch (reason) {
            throw quota(reason);
        }
        if (n !== bytes.byteLength) {
            throw quota(Object.assign(new Error("the disk is full"), { name: "QuotaExceededError" }));
        }
        this.#written += n;
        this.#tell("download", this.#written);
    }

    #note(from: number, to: number): void {
        if (to > from) {
            this.#file.flush();
            this.#journal.add(from, to);
            this.#hash();
        }
    }

    /** A little more of what is whole from the file's beginning; false: nothing is left. */
    #hash(): boolean {
        const whole = this.#sha ? this.#journal.done.prefix : 0;
        const end = Math.min(whole, this.#hashed + HASH_AT_ONCE);
        while (this.#hashed < end) {
            const piece = this.#piece.subarray(0, Math.min(PIECE, end - this.#hashed));
            const n = this.#file.read(piece, { at: this.#hashed });
            if (n === 0) {
                throw new BezelError("bad_file", `${this.#wish.name} is shorter than what was written; download it again.`);
            }
            this.#sha?.add(piece.subarray(0, n));
            this.#hashed += n;
        }
        return this.#hashed < whole;
    }

    // ---- one request ------------------------------------------------------------------------------

    async #ask(from: number, to: number): Promise<Response> {
        const { url } = this.#wish;
        const { ranges, validator, size } = this.#journal.head;
        const headers: Record<string, string> = ranges ? { Range: `bytes=${from}-${to - 1}` } : {};
        if (ranges && validator && sameOrigin(url)) {
            headers["If-Range"] = validator; // elsewhere it would need the server's permission
        }
        const response = await request(url, { headers, cache: "no-store" }, this.#place);
        const now = validatorOf(response);
        const total = /\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "")?.[1];
        if (
            (ranges && response.status !== 206) ||
            (validator !== null && now !== null && now !== validator) ||
            (total !== undefined && Number(total) !== size)
        ) {
            void response.body?.cancel().catch(() => undefined);
            throw new Changed();
        }
        return response;
    }

    /** Returns where it got to; the connection may break at any byte. */
    async #slice(from: number, to: number, onByte: () => void): Promise<number> {
        const response = await this.#ask(from, to);
        const reader = response.body?.getReader();
        let at = from;
        let noted = from;
        try {
            for (;;) {
                const { done, value } = reader ? await unlessSilent(reader.read()) : { done: true, value: undefined };
                if (done || !value) {
                    break;
                }
                const bytes = value.subarray(0, to - at);
                this.#checkMagic(bytes, at);
                this.#write(bytes, at);
                at += bytes.byteLength;
                onByte();
                if (at - noted >= NOTE) {
                    this.#note(noted, at);
                    noted = at;
                }
            }
        } catch (reason) {
            void reader?.cancel().catch(() => undefined);
            if (reason instanceof BezelError) {
                throw reason;
            }
            const stopped = this.#place.signal.aborted;
            throw stopped
                ? errorFrom(Object.assign(new Error(), { name: "AbortError" }))
                : new BezelError("network", `${this.#wish.name}: the connection broke off.`, { cause: reason });
        } finally {
            this.#note(noted, at);
        }
        return at;
    }

    #checkMagic(bytes: Uint8Array, at: number): void {
        if (at === 0 && bytes.byteLength >= MAGIC.length && new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) {
            throw new BezelError("bad_file", `${this.#wish.url} is no GGUF file; perhaps it is the page about one.`);
        }
    }

    /** All of a slice, over as many connections as it takes. */
    async #whole(from: number, to: number): Promise<void> {
        let at = from;
        let failures = 0;
        while (at < to) {
            let came = 0;
            const before = at;
            try {
                at = await this.#slice(at, to, () => came++);
                if (at < to && at === before) {
                    throw new BezelError("network", `${this.#wish.name}: the server sent nothing.`);
                }
            } catch (reason) {
                failures = came ? 1 : failures + 1;
                const passing = reason instanceof BezelError && reason.code === "network" && !/permission/.test(reason.message);
                if (!passing || failures >= TRIES || this.#place.signal.aborted) {
                    throw reason;
                }
                at = this.#firstMissing(before, to);
                await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE * 2 ** failures));
            }
        }
    }

    #firstMissing(from: number, to: number): number {
        return this.#journal.done.list.find(([a, b]) => a <= from && b > from)?.[1] ?? Math.min(from, to);
    }

    // ---- all of it --------------------------------------------------------------------------------

    async #fetchRanges(size: number): Promise<void> {
        const left = this.#journal.done.missing(size, SLICE);
        let failed = false;
        const one = async (): Promise<void> => {
            for (let next = left.shift(); next && !failed; next = left.shift()) {
                try {
                    await this.#whole(...next);
                } catch (reason) {
                    failed = true; // the others end with their slices
                    throw reason;
                }
            }
        };
        const all = await Promise.allSettled(Array.from({ length: Math.max(1, this.#wish.parallel) }, one));
        const reasons = all.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
        if (reasons.length) {
            throw reasons.find((reason) => reason instanceof Changed) ?? reasons[0];
        }
    }

    async run(): Promise<number> {
        const { size, ranges } = this.#journal.head;
        if (size !== null) {
            try {
                this.#file.truncate(size); // if there is no room, better now
            } catch (reason) {
                throw quota(reason);
            }
        }
        this.#tell("download", this.#written);
        if (ranges && size !== null) {
            await this.#fetchRanges(size);
        } else {
            const end = await this.#slice(0, size ?? Infinity, () => undefined);
            if (size !== null && end !== size) {
                throw new BezelError("network", `${this.#wish.name}: the connection broke off, and the server cannot go on in the middle.`);
            }
        }
        if (this.#sha) {
            for (let more = true; more; ) {
                more = this.#hash();
                this.#tell("verify", this.#hashed);
                await breathe(this.#place.signal);
            }
            compare(this.#sha.end(), this.#wish);
        }
        return this.#journal.done.prefix;
    }
}

function compare(digest: string, { name, sha256 }: DownloadRequest): void {
    if (digest !== sha256?.toLowerCase()) {
        throw new BezelError("checksum", `${name} is not the file it should be: its SHA-256 is ${digest}. It was removed.`);
    }
}

/** Room that is left, as far as the browser says. */
async function checkRoom(name: string, bytes: number): Promise<void> {
    const { quota: most = Infinity, usage = 0 } = (await navigator.storage.estimate?.()) ?? {};
    if (usage + bytes > most) {
        const gb = (n: number): string => `${(n / 1e9).toFixed(1)} GB`;
        throw new BezelError("quota", `${name} needs ${gb(bytes)} more, and the browser gives this site ${gb(Math.max(0, most - usage))}.`);
    }
}

async function attempt(wish: DownloadRequest, place: DownloadPlace, head: JournalHead): Promise<number> {
    const journal = await Journal.open(wish.name, head); // first: without it a file would count as a model
    let file: SyncFile | null = null;
    let sha: Sha256 | null = null;
    try {
        file = await openSync(wish.name);
        await checkRoom(wish.name, Math.max(0, (head.size ?? 0) - file.getSize()));
        sha = wish.sha256 === null ? null : new Sha256(await place.engine());
        const size = await new Download(wish, place, file, journal, sha).run();
        file.truncate(size);
        file.flush();
        return size;
    } finally {
        sha?.free();
        file?.close();
        journal.close();
    }
}

/** A model of that name and size that is there already. */
async function isStored(wish: DownloadRequest, place: DownloadPlace, head: JournalHead): Promise<boolean> {
    if (head.size === null || (await storedSize(wish.name)) !== head.size) {
        return false;
    }
    if (wish.sha256 === null) {
        return true;
    }
    const file = await openSync(wish.name);
    const sha = new Sha256(await place.engine());
    try {
        const piece = new Uint8Array(PIECE);
        for (let at = 0, n = 0; (n = file.read(piece, { at })) > 0; at += n) {
            sha.add(piece.subarray(0, n));
            place.onProgress({ stage: "verify", done: at + n, total: head.size });
            await breathe(place.signal);
        }
        return sha.end() === wish.sha256.toLowerCase();
    } finally {
        sha.free();
        file.close();
    }
}

export async function download(wish: DownloadRequest, place: DownloadPlace): Promise<StoredModel> {
    checkName(wish.name);
    if (wish.sha256 !== null && !/^[0-9a-f]{64}$/i.test(wish.sha256)) {
        throw new BezelError("bad_request", "sha256 has 64 hexadecimal digits.");
    }
    for (let again = false; ; again = true) {
        const facts = await askUrl(wish.url, place);
        const { size, ranges, validator } = facts;
        const head: JournalHead = { url: wish.url, validator, size, ranges: ranges && size !== null };
        if (!(await isStored(wish, place, head))) {
            try {
                await attempt(wish, place, head);
            } catch (reason) {
                if (reason instanceof Changed && !again) {
                    continue; // the journal of the old file no longer fits, so this begins anew
                }
                if (reason instanceof Changed) {
                    throw new BezelError("network", `${wish.name} keeps changing on the server; try again later.`);
                }
                if (reason instanceof BezelError && (reason.code === "checksum" || reason.code === "bad_file")) {
                    await removeStored(wish.name); // nothing of it can be trusted
                }
                throw reason;
            }
            await forgetJournal(wish.name);
        }
        return { name: wish.name, size: (await storedSize(wish.name)) ?? 0, modified: Date.now() };
    }
}
