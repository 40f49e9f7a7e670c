/** What the page remembers of downloaded models, in a database of its own: which files are one model, where they come
 * from, and how far a download has got. The files themselves are in the origin private file system. */
import type { Failure } from "./errors.js";

export interface DownloadFile {
    url: string;
    /** Name in the origin private file system. */
    stored: string;
    /** Null: not known yet. */
    size: number | null;
    /** The hash that the host publishes; null: none. */
    sha256: string | null;
    /** Bytes that have arrived. */
    done: number;
    complete: boolean;
    /** Its bytes were checked against a hash of the host. */
    verified: boolean;
}

/** "waiting": runs after those before it. */
export type DownloadState = "waiting" | "running" | "paused" | "failed" | "done";

export interface DownloadRecord {
    id: string;
    title: string;
    /** Where it comes from, for people. */
    source: string;
    /** Text model first. */
    files: DownloadFile[];
    state: DownloadState;
    failure: Failure | null;
    created: number;
}

export const sizeOf = ({ files }: DownloadRecord): number | null =>
    files.every(({ size }) => size !== null) ? files.reduce((sum, { size }) => sum + (size ?? 0), 0) : null;
export const doneOf = ({ files }: DownloadRecord): number => files.reduce((sum, { done }) => sum + done, 0);
export const isVerified = ({ files }: DownloadRecord): boolean => files.every(({ verified }) => verified);

function result<T>(request: IDBRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error ?? new Error("the browser's storage failed"));
    });
}

export class ModelRecords {
    readonly #db: IDBDatabase;

    private constructor(db: IDBDatabase) {
        this.#db = db;
    }

    static async open(): Promise<ModelRecords> {
        const request = indexedDB.open("bezel-models", 1);
        request.onupgradeneeded = () => request.result.createObjectStore("downloads", { keyPath: "id" });
        return new ModelRecords(await result(request));
    }

    /** The oldest first. */
    async all(): Promise<DownloadRecord[]> {
        const all = await result<DownloadRecord[]>(this.#db.transaction("downloads").objectStore("downloads").getAll());
        return all.sort((a, b) => a.created - b.created);
    }

    put(record: DownloadRecord): Promise<void> {
        return this.#change((downloads) => downloads.put(record));
    }

    remove(id: string): Promise<void> {
        return this.#change((downloads) => downloads.delete(id));
    }

    #change(act: (downloads: IDBObjectStore) => void): Promise<void> {
        return new Promise((resolve, reject) => {
            const transaction = this.#db.transaction("downloads", "readwrite");
            transaction.oncomplete = () => resolve();
            transaction.onabort = () => reject(transaction.error ?? new Error("the browser's storage failed"));
            act(transaction.objectStore("downloads"));
        });
    }
}
