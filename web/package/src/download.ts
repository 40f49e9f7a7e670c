/** Downloads into the origin private file system, in parallel ranges, resuming an interrupted download. A file counts
 * as a model only when it is complete and its checksum matches; until then a journal is stored next to it. */
import type { Engine } from "./engine.js";
import { abortedBy, BezelError, errorFrom } from "./errors.js";
import { Journal, type JournalHead } from "./journal.js";
import { checkName, removeJournal, openSyncFile, removeStored, storedSize, type StoredModel, type SyncFile } from "./opfs.js";
import { Sha256 } from "./sha256.js";
import { probeUrl, request, sameOrigin, validatorOf, withStallTimeout, type UrlOptions } from "./url_source.js";

/** Bytes per request. */
const REQUEST_BYTES = 16 << 20;
/** Bytes per read when hashing. */
const READ_BYTES = 4 << 20;
/** Bytes to hash before yielding to the event loop. */
const HASH_STEP = 32 << 20;
/** Bytes to write before adding them to the journal. */
const JOURNAL_STEP = 4 << 20;
const MAX_TRIES = 5;
/** Doubled with every retry. */
const FIRST_PAUSE_MS = 250;
const MAGIC = "GGUF";

export interface DownloadRequest {
    url: string;
    name: string;
    /** In hexadecimal; null: unknown. */
    sha256: string | null;
    /** Parallel requests. */
    parallel: number;
}

/** A completed download. */
export interface DownloadedModel extends StoredModel {
    /** The SHA-256 that its bytes were checked against: the given one, or the one that the host sends; null: not checked. */
    sha256: string | null;
}

export interface DownloadProgress {
    stage: "download" | "verify";
    done: number;
    /** 0: unknown. */
    total: number;
}

export interface DownloadContext extends UrlOptions {
    signal: AbortSignal;
    /** For the checksum. */
    engine: () => Promise<Engine>;
    onProgress: (progress: DownloadProgress) => void;
}

/** The file on the server is no longer the one whose download was begun. */
class FileChanged extends Error {}

/** Turns the browser's QuotaExceededError into a BezelError. */
function asQuotaError(reason: unknown): unknown {
    const full = reason instanceof Error && reason.name === "QuotaExceededError";
    return full
        ? new BezelError("quota", "The browser's storage for this site is full; remove a model or free disk space, then start the download again to resume it.", {
              cause: reason,
          })
        : reason;
}

/** Lets the event loop run, which may deliver an abort. */
async function yieldToEvents(signal: AbortSignal): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0));
    if (signal.aborted) {
        throw abortedBy(signal);
    }
}

class Download {
    readonly #target: DownloadRequest;
    readonly #context: DownloadContext;
    readonly #file: SyncFile;
    readonly #journal: Journal;
    readonly #sha: Sha256 | null;
    readonly #piece = new Uint8Array(READ_BYTES);
    #hashed = 0;
    /** Bytes written, including those that are not in the journal yet. */
    #written: number;

    constructor(target: DownloadRequest, context: DownloadContext, file: SyncFile, journal: Journal, sha: Sha256 | null) {
        this.#target = target;
        this.#context = context;
        this.#file = file;
        this.#journal = journal;
        this.#sha = sha;
        this.#written = journal.done.total;
    }

    #report(stage: DownloadProgress["stage"], done: number): void {
        this.#context.onProgress({ stage, done, total: this.#journal.head.size ?? 0 });
    }

    #write(bytes: Uint8Array, at: number): void {
        let n: number;
        try {
            n = this.#file.write(bytes, { at });
        } catch (reason) {
            throw asQuotaError(reason);
        }
        if (n !== bytes.byteLength) {
            throw asQuotaError(Object.assign(new Error("the disk is full"), { name: "QuotaExceededError" }));
        }
        this.#written += n;
        this.#report("download", this.#written);
    }

    #addToJournal(from: number, to: number): void {
        if (to > from) {
            this.#file.flush();
            this.#journal.add(from, to);
            this.#hash();
        }
    }

    /** Hashes up to HASH_STEP more bytes of the contiguous prefix; false: all of it is hashed. */
    #hash(): boolean {
        const whole = this.#sha ? this.#journal.done.prefix : 0;
        const end = Math.min(whole, this.#hashed + HASH_STEP);
        while (this.#hashed < end) {
            const piece = this.#piece.subarray(0, Math.min(READ_BYTES, end - this.#hashed));
            const n = this.#file.read(piece, { at: this.#hashed });
            if (n === 0) {
                throw new BezelError("bad_file", `${this.#target.name} is shorter than what was written to it; download it again.`);
            }
            this.#sha?.add(piece.subarray(0, n));
            this.#hashed += n;
        }
        return this.#hashed < whole;
    }

    // ---- one request ------------------------------------------------------------------------------

    async #requestRange(from: number, to: number): Promise<Response> {
        const { url } = this.#target;
        const { ranges, validator, size } = this.#journal.head;
        const headers: Record<string, string> = ranges ? { Range: `bytes=${from}-${to - 1}` } : {};
        if (ranges && validator && sameOrigin(url)) {
            headers["If-Range"] = validator; // to another origin it would need a CORS preflight
        }
        const response = await request(url, { headers, cache: "no-store" }, this.#context);
        const now = validatorOf(response);
        const total = /\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "")?.[1];
        if (
            (ranges && response.status !== 206) ||
            (validator !== null && now !== null && now !== validator) ||
            (total !== undefined && Number(total) !== size)
        ) {
            void response.body?.cancel().catch(() => undefined);
            throw new FileChanged();
        }
        return response;
    }

    /** One request. Returns how far it got: the connection may break at any byte. */
    async #fetchOnce(from: number, to: number, onByte: () => void): Promise<number> {
        const response = await this.#requestRange(from, to);
        const reader = response.body?.getReader();
        let at = from;
        let journaled = from;
        try {
            for (;;) {
                const { done, value } = reader ? await withStallTimeout(reader.read()) : { done: true, value: undefined };
                if (done || !value) {
                    break;
                }
                const bytes = value.subarray(0, to - at);
                this.#checkMagic(bytes, at);
                this.#write(bytes, at);
                at += bytes.byteLength;
                onByte();
                if (at - journaled >= JOURNAL_STEP) {
                    this.#addToJournal(journaled, at);
                    journaled = at;
                }
            }
        } catch (reason) {
            void reader?.cancel().catch(() => undefined);
            if (reason instanceof BezelError) {
                throw reason;
            }
            const aborted = this.#context.signal.aborted;
            throw aborted
                ? errorFrom(Object.assign(new Error(), { name: "AbortError" }))
                : new BezelError("network", `${this.#target.name}: the connection broke.`, { cause: reason });
        } finally {
            this.#addToJournal(journaled, at);
        }
        return at;
    }

    #checkMagic(bytes: Uint8Array, at: number): void {
        if (at === 0 && bytes.byteLength >= MAGIC.length && new TextDecoder().decode(bytes.subarray(0, MAGIC.length)) !== MAGIC) {
            throw new BezelError("bad_file", `${this.#target.url} is not a GGUF file; it may be a web page about one.`);
        }
    }

    /** All bytes of a range, over as many connections as it takes. */
    async #fetchRange(from: number, to: number): Promise<void> {
        let at = from;
        let failures = 0;
        while (at < to) {
            let received = 0;
            const before = at;
            try {
                at = await this.#fetchOnce(at, to, () => received++);
                if (at < to && at === before) {
                    throw new BezelError("network", `${this.#target.name}: the server sent nothing.`);
                }
            } catch (reason) {
                failures = received ? 1 : failures + 1;
                const transient = reason instanceof BezelError && reason.code === "network" && !/permission/.test(reason.message);
                if (!transient || failures >= MAX_TRIES || this.#context.signal.aborted) {
                    throw reason;
                }
                at = this.#firstMissing(before, to);
                await new Promise((resolve) => setTimeout(resolve, FIRST_PAUSE_MS * 2 ** failures));
            }
        }
    }

    #firstMissing(from: number, to: number): number {
        return this.#journal.done.list.find(([a, b]) => a <= from && b > from)?.[1] ?? Math.min(from, to);
    }

    // ---- all of it --------------------------------------------------------------------------------

    async #fetchRanges(size: number): Promise<void> {
        const left = this.#journal.done.missing(size, REQUEST_BYTES);
        let failed = false;
        const worker = async (): Promise<void> => {
            for (let next = left.shift(); next && !failed; next = left.shift()) {
                try {
                    await this.#fetchRange(...next);
                } catch (reason) {
                    failed = true; // the other workers stop after their current range
                    throw reason;
                }
            }
        };
        const all = await Promise.allSettled(Array.from({ length: Math.max(1, this.#target.parallel) }, worker));
        const reasons = all.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
        if (reasons.length) {
            throw reasons.find((reason) => reason instanceof FileChanged) ?? reasons[0];
        }
    }

    #notResumable(cause: BezelError | null): BezelError {
        const why =
            this.#journal.head.validator === null && this.#target.sha256 === null
                ? "the server does not identify the version of the file (ETag, Last-Modified), and no checksum is given"
                : "the server does not support requests for ranges";
        return new BezelError("network", `${this.#target.name}: the connection broke, and the download cannot be resumed: ${why}.`, { cause });
    }

    async run(): Promise<number> {
        const { size, ranges } = this.#journal.head;
        if (size !== null) {
            try {
                this.#file.truncate(size); // fails now if there is no space
            } catch (reason) {
                throw asQuotaError(reason);
            }
        }
        this.#report("download", this.#written);
        if (ranges && size !== null) {
            await this.#fetchRanges(size);
        } else {
            const end = await this.#fetchOnce(0, size ?? Infinity, () => undefined).catch((reason: unknown) => {
                throw reason instanceof BezelError && reason.code === "network" ? this.#notResumable(reason) : reason;
            });
            if (size !== null && end !== size) {
                throw this.#notResumable(null);
            }
        }
        if (this.#sha) {
            for (let more = true; more; ) {
                more = this.#hash();
                this.#report("verify", this.#hashed);
                await yieldToEvents(this.#context.signal);
            }
            checkDigest(this.#sha.end(), this.#target);
        }
        return this.#journal.done.prefix;
    }
}

function checkDigest(digest: string, { name, sha256 }: DownloadRequest): void {
    if (digest !== sha256?.toLowerCase()) {
        throw new BezelError("checksum", `${name} does not match its checksum: its SHA-256 is ${digest}. It was removed; download it again.`);
    }
}

/** Refuses early if the browser reports too little free storage. */
async function checkQuota(name: string, bytes: number): Promise<void> {
    const { quota = Infinity, usage = 0 } = (await navigator.storage.estimate?.()) ?? {};
    if (usage + bytes > quota) {
        const gb = (n: number): string => `${(n / 1e9).toFixed(1)} GB`;
        throw new BezelError("quota", `${name} needs ${gb(bytes)} of storage, and the browser allows this site only another ${gb(Math.max(0, quota - usage))}.`);
    }
}

async function attempt(target: DownloadRequest, context: DownloadContext, head: JournalHead): Promise<number> {
    const journal = await Journal.open(target.name, head); // before the file: without a journal it would count as complete
    let file: SyncFile | null = null;
    let sha: Sha256 | null = null;
    try {
        file = await openSyncFile(target.name);
        await checkQuota(target.name, Math.max(0, (head.size ?? 0) - file.getSize()));
        sha = target.sha256 === null ? null : new Sha256(await context.engine());
        const size = await new Download(target, context, file, journal, sha).run();
        file.truncate(size);
        file.flush();
        return size;
    } finally {
        sha?.free();
        file?.close();
        journal.close();
    }
}

/** Whether the complete file is already stored. */
async function isStored(target: DownloadRequest, context: DownloadContext, head: JournalHead): Promise<boolean> {
    if (head.size === null || (await storedSize(target.name)) !== head.size) {
        return false;
    }
    if (target.sha256 === null) {
        return true;
    }
    const file = await openSyncFile(target.name);
    const sha = new Sha256(await context.engine());
    try {
        const piece = new Uint8Array(READ_BYTES);
        for (let at = 0, n = 0; (n = file.read(piece, { at })) > 0; at += n) {
            sha.add(piece.subarray(0, n));
            context.onProgress({ stage: "verify", done: at + n, total: head.size });
            await yieldToEvents(context.signal);
        }
        return sha.end() === target.sha256.toLowerCase();
    } finally {
        sha.free();
        file.close();
    }
}

export async function download(wanted: DownloadRequest, context: DownloadContext): Promise<DownloadedModel> {
    checkName(wanted.name);
    if (wanted.sha256 !== null && !/^[0-9a-f]{64}$/i.test(wanted.sha256)) {
        throw new BezelError("bad_request", "The option sha256 must have 64 hexadecimal digits.");
    }
    for (let again = false; ; again = true) {
        const { size, ranges, validator, sha256 } = await probeUrl(wanted.url, context);
        const target = { ...wanted, sha256: wanted.sha256 ?? sha256 };
        // Without a validator and a checksum, ranges of two versions of the file could be mixed: it is fetched in one request.
        const known = validator !== null || target.sha256 !== null;
        const head: JournalHead = { url: target.url, validator, size, ranges: ranges && size !== null && known };
        if (!(await isStored(target, context, head))) {
            try {
                await attempt(target, context, head);
            } catch (reason) {
                if (reason instanceof FileChanged && !again) {
                    continue; // the journal does not match the new file, so the next attempt starts over
                }
                if (reason instanceof FileChanged) {
                    throw new BezelError("network", `${target.name} keeps changing on the server; try again later.`);
                }
                if (reason instanceof BezelError && (reason.code === "checksum" || reason.code === "bad_file")) {
                    await removeStored(target.name); // none of its bytes can be trusted
                }
                throw reason;
            }
            await removeJournal(target.name);
        }
        return { name: target.name, size: (await storedSize(target.name)) ?? 0, modified: Date.now(), sha256: target.sha256 };
    }
}
