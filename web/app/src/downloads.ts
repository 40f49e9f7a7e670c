/** Downloads of models in the background: one after the other, each in a worker of its own, while the loaded model keeps
 * answering. They continue after a reload or a crash; in several tabs one of them works and the others watch. */
import { Bezel, BezelError, type UnfinishedDownload } from "./bezel.js";
import { failureOf } from "./errors.js";
import { doneOf, sizeOf, type DownloadFile, type DownloadRecord, type ModelRecords } from "./model_records.js";
import { Rate } from "./rate.js";
import { fileNameOf, filesOf, titleOfFile, type RemoteModel } from "./remote.js";
import { Signal } from "./signal.js";

/** How often progress is drawn, and stored. */
const DRAW_MS = 250;
const STORE_MS = 2000;

const lockName = (id: string): string => `bezel-download-${id}`;

/** FNV-1a, 32 bits: equal addresses are the same download. */
function hashOf(text: string): string {
    let hash = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(text)) {
        hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    }
    return hash.toString(16).padStart(8, "0");
}

/** Names of stored files begin with the download's id: "mmproj-F16.gguf" exists in many repositories. */
function storedName(id: string, name: string): string {
    return `${id}-${name.replace(/[/\\\0]/g, "_")}`;
}

export interface Progress {
    /** Bytes per second; null: too early to say. */
    rate: number | null;
    /** Seconds. */
    remaining: number | null;
    /** All bytes are there, and the rest of them is being hashed. */
    checking: boolean;
}

export class DownloadManager {
    /** All records, also of completed downloads. Changed ones are the same objects. */
    readonly list = new Signal<DownloadRecord[]>([]);
    /** Called when one is complete. */
    onDone: (record: DownloadRecord) => void = () => undefined;

    readonly #records: ModelRecords;
    readonly #tabs = new BroadcastChannel("bezel-downloads");
    readonly #rates = new Map<string, Rate>();
    readonly #checking = new Set<string>();
    /** Run by another tab. */
    readonly #elsewhere = new Set<string>();
    #running: { id: string; control: AbortController; ended: Promise<void> } | null = null;
    #drawn = 0;
    #saved = 0;

    constructor(records: ModelRecords) {
        this.#records = records;
        this.#tabs.onmessage = () => void this.#reread();
        addEventListener("online", () => this.#retryAfterNetwork());
    }

    /** Continues what an earlier visit has left. */
    async start(): Promise<void> {
        this.list.set(await this.#records.all());
        for (const record of this.list.value) {
            if (record.state === "running") {
                record.state = "waiting"; // interrupted, or another tab has its lock
            }
        }
        this.#pump();
    }

    progressOf(record: DownloadRecord): Progress {
        const rate = this.#rates.get(record.id);
        const size = sizeOf(record);
        return { rate: rate?.perSecond ?? null, remaining: size === null ? null : (rate?.remaining(size - doneOf(record)) ?? null), checking: this.#checking.has(record.id) };
    }

    isElsewhere({ id }: DownloadRecord): boolean {
        return this.#elsewhere.has(id);
    }

    // ---- what users do --------------------------------------------------------------------------

    /** Without `media`, encoders for images and sound are left out. Begun before: continues. */
    async add(model: RemoteModel, withMedia = true): Promise<DownloadRecord> {
        const { title, source } = model;
        const wanted = filesOf(model, withMedia);
        const id = hashOf(wanted.map(({ url }) => url).join("\n"));
        const old = this.list.value.find((one) => one.id === id);
        if (old) {
            if (old.state !== "running" && old.state !== "done") {
                await this.#change(old, "waiting");
                this.#pump();
            }
            return old;
        }
        const record: DownloadRecord = {
            id,
            title,
            source,
            files: wanted.map(({ url, name, size, sha256 }) => ({ url, stored: storedName(id, name), size, sha256, done: 0, complete: false, verified: false })),
            state: "waiting",
            failure: null,
            created: Date.now(),
        };
        this.list.set([...this.list.value, record]);
        await this.#save(record);
        this.#pump();
        return record;
    }

    /** Takes a download over whose record was lost. */
    async adopt({ name, url, size, done }: UnfinishedDownload): Promise<void> {
        const file: DownloadFile = { url, stored: name, size, sha256: null, done, complete: false, verified: false };
        const record: DownloadRecord = { id: hashOf(`${url}\n${name}`), title: titleOfFile(fileNameOf(url)), source: new URL(url).host, files: [file], state: "waiting", failure: null, created: Date.now() };
        this.list.set([...this.list.value, record]);
        await this.#save(record);
        this.#pump();
    }

    async pause(record: DownloadRecord): Promise<void> {
        const running = this.#running?.id === record.id ? this.#running : null;
        record.state = "paused";
        running?.control.abort();
        await running?.ended;
        await this.#change(record, "paused");
        this.#pump();
    }

    async resume(record: DownloadRecord): Promise<void> {
        await this.#change(record, "waiting");
        this.#pump();
    }

    /** Deletes its files, complete or not. */
    async remove(record: DownloadRecord): Promise<void> {
        if (record.state !== "done") {
            await this.pause(record);
        }
        for (const { stored } of record.files) {
            await Bezel.remove(stored).catch((reason: unknown) => {
                if (!(reason instanceof BezelError) || reason.code !== "not_found") {
                    throw reason;
                }
            });
        }
        await this.#records.remove(record.id);
        this.list.set(this.list.value.filter((one) => one !== record));
        this.#tabs.postMessage("changed");
    }

    // ---- running --------------------------------------------------------------------------------

    #pump(): void {
        const next = this.list.value.find((record) => record.state === "waiting" && !this.#elsewhere.has(record.id));
        if (this.#running || !next) {
            return;
        }
        const control = new AbortController();
        const run = async (): Promise<void> => {
            try {
                await this.#holding(next, () => this.#run(next, control.signal));
            } finally {
                this.#running = null;
            }
            this.#pump();
        };
        this.#running = { id: next.id, control, ended: Promise.resolve() };
        this.#running.ended = run();
    }

    /** Runs only while no other tab downloads the same. */
    async #holding(record: DownloadRecord, act: () => Promise<void>): Promise<void> {
        if (!navigator.locks) {
            await act();
            return;
        }
        const name = lockName(record.id);
        const mine = await navigator.locks.request(name, { ifAvailable: true }, (lock) => lock && act().then(() => true));
        if (!mine) {
            this.#watch(record.id);
            this.#draw();
        }
    }

    /** Another tab downloads it: continues here if that tab ends. */
    #watch(id: string): void {
        if (this.#elsewhere.has(id) || !navigator.locks) {
            return;
        }
        this.#elsewhere.add(id);
        void navigator.locks.request(lockName(id), () => this.#elsewhere.delete(id)).then(async () => {
            await this.#reread();
            const left = this.list.value.find((record) => record.id === id && record.state === "running");
            if (left && this.#running?.id !== id) {
                left.state = "waiting";
            }
            this.#pump();
        });
    }

    async #run(record: DownloadRecord, signal: AbortSignal): Promise<void> {
        this.#rates.set(record.id, new Rate());
        await this.#change(record, "running");
        try {
            for (const file of record.files) {
                if (!file.complete && !signal.aborted) {
                    await this.#fetch(record, file, signal);
                }
            }
            if (!signal.aborted) {
                await this.#change(record, "done");
                this.onDone(record);
            }
        } catch (reason) {
            if (!signal.aborted) {
                const { code, message } = failureOf(reason);
                await this.#change(record, "failed", { code, message: message.replaceAll(`${record.id}-`, "") }); // the file's name on its host
            }
        } finally {
            this.#rates.delete(record.id);
            this.#checking.delete(record.id);
        }
    }

    async #fetch(record: DownloadRecord, file: DownloadFile, signal: AbortSignal): Promise<void> {
        const { size, sha256 } = await Bezel.download(file.url, {
            name: file.stored,
            signal,
            ...(file.sha256 === null ? {} : { sha256: file.sha256 }),
            onProgress: ({ stage, done, total }) => {
                if (stage === "verify") {
                    this.#checking.add(record.id);
                } else {
                    file.done = done;
                    file.size = total || file.size;
                    this.#rates.get(record.id)?.add(doneOf(record), performance.now());
                }
                this.#draw(record);
            },
        }).catch((reason: unknown) => {
            if (reason instanceof BezelError && (reason.code === "checksum" || reason.code === "bad_file")) {
                file.done = 0; // it was removed
            }
            throw reason;
        });
        this.#checking.delete(record.id);
        Object.assign(file, { size, done: size, complete: true, verified: sha256 !== null });
        await this.#save(record);
    }

    #retryAfterNetwork(): void {
        for (const record of this.list.value) {
            if (record.state === "failed" && record.failure?.code === "network") {
                void this.resume(record);
            }
        }
    }

    // ---- records --------------------------------------------------------------------------------

    async #change(record: DownloadRecord, state: DownloadRecord["state"], failure: DownloadRecord["failure"] = null): Promise<void> {
        record.state = state;
        record.failure = failure;
        this.list.set(this.list.value);
        await this.#save(record);
    }

    async #save(record: DownloadRecord): Promise<void> {
        await this.#records.put(record).catch(() => undefined); // storage is full, which the download itself reports
        this.#tabs.postMessage("changed");
    }

    /** Draws at intervals; stores `record` at longer ones. */
    #draw(record?: DownloadRecord): void {
        const now = performance.now();
        if (!record || now - this.#drawn > DRAW_MS) {
            this.#drawn = now;
            this.list.set(this.list.value);
        }
        if (record && now - this.#saved > STORE_MS) {
            this.#saved = now;
            void this.#save(record);
        }
    }

    /** After another tab has changed something. */
    async #reread(): Promise<void> {
        const mine = this.#running?.id;
        const all = await this.#records.all();
        this.list.set(all.map((record) => this.list.value.find(({ id }) => id === mine && record.id === id) ?? record));
        for (const { id, state } of this.list.value) {
            if (state === "running" && id !== mine) {
                this.#watch(id);
            }
        }
    }
}
