/** The model: choosing, inspecting, loading, and recovering it after a device loss. One at a time. */
import {
    Bezel,
    BezelError,
    type BezelModel,
    type Capabilities,
    type DownloadProgress,
    type Inspection,
    type Progress,
    type StoredModel,
} from "./bezel.js";
import { failureOf, type Failure } from "./errors.js";
import { formatBytes } from "./format.js";
import { Signal } from "./signal.js";
import type { Settings, Store } from "./store.js";
import { summarize, type ModelSummary } from "./summary.js";

/** Where a model comes from. */
export type Choice =
    | { kind: "url"; name: string; url: string; /** URLs of its other parts and of its mmproj file. */ more?: string[] }
    /** A download in the browser's storage. */
    | { kind: "stored"; name: string; stored: string }
    | FileChoice;

/** The files of one model. `files` is null if they were chosen on an earlier visit: then `handles` are used. */
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

/** Ollama names files by their SHA-256; then the name in the header is used, else the first digits. */
function nameOfInspected(files: string[], { name, sizeLabel }: Inspection): string | null {
    const file = nameOfFiles(files);
    const digest = file === null ? null : /^sha256-([0-9a-f]{8})[0-9a-f]{56}$/.exec(file);
    return digest ? (name ?? `Gemma ${sizeLabel ?? digest[1] ?? ""}`) : file;
}

export type LoadProgress = Progress | DownloadProgress;

export type ModelState =
    | { kind: "none" }
    | { kind: "inspecting"; choice: Choice }
    | { kind: "inspected"; choice: Choice; summary: ModelSummary }
    | { kind: "loading"; choice: Choice; progress: LoadProgress | null; again: boolean }
    | { kind: "ready"; choice: Choice; model: BezelModel }
    | { kind: "failed"; choice: Choice; failure: Failure };

/** A model offered by the page or its server. */
export interface Offer {
    name: string;
    /** Relative to the page. */
    url: string;
    /** Other files of the same model. */
    more?: string[];
    about: string;
    /** Example questions. */
    suggest?: string[];
}

/** An entry of the list that `bezel serve` sends. */
interface ServedFile {
    name: string;
    size: number;
    /** The model that this file is a part or the mmproj file of. */
    of?: string;
}

/** For models without example questions of their own. */
const DEFAULT_SUGGESTIONS = [
    "Why is the sky blue? Explain it to a child.",
    "What can I cook with eggs, rice and spinach?",
    "Write a short poem about the sea in winter.",
    "Help me write a polite reply to a late invoice.",
];

/** Fetches {"models": [...]} from the page's server; a missing list is empty. */
async function readList<T>(path: string): Promise<T[]> {
    try {
        const response = await fetch(new URL(path, document.baseURI));
        const json = response.ok ? ((await response.json()) as { models?: T[] }) : {};
        return json.models ?? [];
    } catch {
        return [];
    }
}

/** Recovery gives up after this many device losses within this time. */
const MAX_LOSSES = 3;
const LOSS_WINDOW_MS = 120_000;
/** Pauses between attempts to recover. */
const RETRY_PAUSES_MS = [500, 1500, 4000];

function isAbort(reason: unknown): boolean {
    return reason instanceof BezelError ? reason.code === "aborted" : (reason as Error | null)?.name === "AbortError";
}

/** A choice as it is stored: handles can be stored, files from an input cannot. */
type StoredChoice = Exclude<Choice, FileChoice> | Omit<FileChoice, "files">;

/** Not in all browsers, and not in TypeScript's DOM types. */
type WithPermission = FileSystemFileHandle & {
    queryPermission?(options: { mode: "read" }): Promise<PermissionState>;
    requestPermission?(options: { mode: "read" }): Promise<PermissionState>;
};

export class ModelManager {
    readonly state = new Signal<ModelState>({ kind: "none" });
    readonly #store: Store;
    readonly #settings: Signal<Settings>;
    #control: AbortController | null = null;
    #ready: { choice: Choice; model: BezelModel } | null = null;
    #losses: number[] = [];
    #offers: Offer[] | null = null;
    #capabilities: Promise<Capabilities> | null = null;

    constructor(store: Store, settings: Signal<Settings>) {
        this.#store = store;
        this.#settings = settings;
    }

    capabilities(): Promise<Capabilities> {
        this.#capabilities ??= Bezel.capabilities();
        return this.#capabilities;
    }

    /** Stays loaded while another model is inspected. */
    get loaded(): BezelModel | null {
        return this.#ready?.model ?? null;
    }

    /** Display name of the loaded model. */
    get loadedName(): string {
        return this.#ready?.choice.name ?? "";
    }

    /** Example questions for the loaded model. */
    async suggestions(): Promise<string[]> {
        const choice = this.#ready?.choice;
        const offers = choice?.kind === "url" ? (this.#offers ?? (await this.offers())) : [];
        const own = choice?.kind === "url" ? offers.find(({ url }) => url === choice.url)?.suggest : undefined;
        return own ?? DEFAULT_SUGGESTIONS;
    }

    /** The models of `bezel serve`, and the page's built-in ones. */
    async offers(): Promise<Offer[]> {
        const [own, served] = await Promise.all([
            readList<Offer>("models.json"),
            readList<ServedFile>("models/"),
        ]);
        const address = ({ name }: ServedFile): string => `models/${encodeURIComponent(name)}`;
        this.#offers = [
            ...served.filter(({ of }) => of === undefined).map((one) => {
                const others = served.filter(({ of }) => of === one.name);
                return {
                    name: nameOfFiles([one.name]) ?? one.name,
                    url: address(one),
                    more: others.map(address),
                    about: formatBytes([one, ...others].reduce((sum, { size }) => sum + size, 0)),
                };
            }),
            ...own,
        ];
        return this.#offers;
    }

    // ---- choosing -------------------------------------------------------------------------------

    /** Reads a model's header and shows a summary before loading it. */
    async inspect(choice: Choice): Promise<void> {
        const control = this.#begin();
        this.state.set({ kind: "inspecting", choice });
        try {
            const [inspection, capabilities] = await Promise.all([
                Bezel.inspect(await this.#source(choice), { signal: control.signal }),
                this.capabilities(),
            ]);
            if (!inspection.runs) {
                throw new BezelError(inspection.code === "ok" ? "bad_file" : inspection.code, inspection.text);
            }
            if (choice.kind === "file") {
                const own = inspection.files.filter(({ media }) => !media).map(({ name }) => name);
                choice = { ...choice, name: nameOfInspected(own, inspection) ?? choice.name };
            }
            if (!control.signal.aborted) {
                this.state.set({ kind: "inspected", choice, summary: summarize(inspection, capabilities, this.#settings.value) });
            }
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
    }

    async #source(choice: Choice): Promise<File[] | string[] | string> {
        if (choice.kind === "url") {
            return [choice.url, ...(choice.more ?? [])].map((url) => new URL(url, document.baseURI).href);
        }
        if (choice.kind === "stored") {
            return `opfs:${choice.stored}`;
        }
        if (choice.files) {
            return choice.files;
        }
        if (!choice.handles?.length) {
            throw new BezelError("not_found", `${choice.name} has to be chosen again: this browser does not let pages remember files.`);
        }
        return Promise.all(choice.handles.map((handle) => this.#reopen(handle)));
    }

    async #reopen(handle: WithPermission): Promise<File> {
        if (handle.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
            if ((await handle.requestPermission?.({ mode: "read" })) !== "granted") {
                throw new BezelError("not_found", `You did not allow the browser to open ${handle.name} again.`);
            }
        }
        try {
            return await handle.getFile();
        } catch (reason) {
            throw new BezelError("not_found", `${handle.name} was moved or deleted.`, { cause: reason });
        }
    }

    // ---- loading --------------------------------------------------------------------------------

    /** Ends in state "ready", "failed", or "none" if it was cancelled. */
    async load(choice: Choice, change: Partial<Settings> = {}, again = false): Promise<void> {
        const control = this.#begin();
        this.#unload();
        const settings = { ...this.#settings.value, ...change };
        if (Object.keys(change).length > 0) {
            this.#settings.set(settings);
        }
        const { signal } = control;
        const report = (progress: LoadProgress | null): void => {
            if (!signal.aborted) {
                this.state.set({ kind: "loading", choice, progress, again });
            }
        };
        report(null);
        try {
            choice = await this.#download(choice, signal, report);
            const model = await Bezel.load(await this.#source(choice), {
                device: settings.device,
                signal,
                onProgress: report,
                ...(settings.contextLength > 0 ? { contextLength: settings.contextLength } : {}),
            });
            if (control.signal.aborted) {
                model.close();
                return;
            }
            this.#ready = { choice, model };
            this.state.set({ kind: "ready", choice, model });
            await this.#rememberChoice(choice).catch(() => undefined); // storage is full: the model works, but is not remembered
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
    }

    /** Downloads a model of another site first, so that it is available offline next time. */
    async #download(choice: Choice, signal: AbortSignal, report: (progress: DownloadProgress) => void): Promise<Choice> {
        if (choice.kind !== "url" || new URL(choice.url, document.baseURI).origin === location.origin) {
            return choice;
        }
        if (!(await this.capabilities()).opfs) {
            return choice; // read with range requests instead
        }
        void navigator.storage.persist?.();
        const { name } = await Bezel.download(choice.url, { signal, onProgress: report });
        return { kind: "stored", name: choice.name, stored: name };
    }

    /** Models in the browser's storage. */
    async stored(): Promise<StoredModel[]> {
        try {
            return await Bezel.models();
        } catch {
            return []; // storage is not available
        }
    }

    async removeStored(name: string): Promise<void> {
        const state = this.state.value;
        if (state.kind === "ready" && state.choice.kind === "stored" && state.choice.stored === name) {
            this.unload();
        }
        await Bezel.remove(name);
    }

    /** Returns to the loaded model, or to none. */
    cancel(): void {
        this.#control?.abort();
        this.#control = null;
        this.state.set(this.#ready ? { kind: "ready", ...this.#ready } : { kind: "none" });
    }

    unload(): void {
        this.#unload();
        this.cancel();
    }

    /** After a device loss: loads the same model again, unless that happened too often. */
    recover(): void {
        if (!this.#ready) {
            return;
        }
        const { choice } = this.#ready;
        const now = Date.now();
        this.#losses = [...this.#losses.filter((then) => now - then < LOSS_WINDOW_MS), now];
        if (this.#losses.length >= MAX_LOSSES) {
            this.#unload();
            const message = `It happened ${this.#losses.length} times within two minutes.`;
            this.state.set({ kind: "failed", choice, failure: { code: "device_lost", message } });
        } else {
            void this.#loadAgain(choice);
        }
    }

    /** Retries: until the browser has restarted its GPU process there is no adapter. */
    async #loadAgain(choice: Choice): Promise<void> {
        for (const pause of RETRY_PAUSES_MS) {
            await this.load(choice, {}, true);
            const state = this.state.value;
            const unavailable = state.kind === "failed" && ["no_adapter", "no_webgpu", "device_lost"].includes(state.failure.code);
            if (!unavailable) {
                return;
            }
            this.state.set({ kind: "loading", choice, progress: null, again: true });
            await new Promise((resolve) => setTimeout(resolve, pause));
            if (this.state.value.kind !== "loading" || this.state.value.choice !== choice) {
                return; // cancelled, or another model was chosen
            }
        }
        await this.load(choice, {}, true);
    }

    #begin(): AbortController {
        this.#control?.abort();
        this.#control = new AbortController();
        return this.#control;
    }

    #unload(): void {
        this.#ready?.model.close();
        this.#ready = null;
    }

    #fail(choice: Choice, reason: unknown, control: AbortController): void {
        if (control.signal.aborted || isAbort(reason)) {
            return; // cancel() has set the state
        }
        this.state.set({ kind: "failed", choice, failure: failureOf(reason) });
    }

    // ---- last model -----------------------------------------------------------------------------

    async #rememberChoice(choice: Choice): Promise<void> {
        const stored: StoredChoice = choice.kind === "file" ? { kind: "file", name: choice.name, handles: choice.handles } : choice;
        await this.#store.setValue("model", stored);
        sessionStorage.setItem("loaded", "yes");
    }

    /** The last visit's model, if it can be opened again. */
    async last(): Promise<Choice | null> {
        const stored = await this.#store.value<StoredChoice>("model");
        if (stored?.kind === "file") {
            return stored.handles?.length ? { ...stored, files: null } : null;
        }
        return stored ?? null;
    }

    /** After a reload of this tab: loads the same model, unless that needs a permission prompt. */
    async resume(): Promise<void> {
        const choice = sessionStorage.getItem("loaded") ? await this.last() : null;
        if (!choice) {
            return;
        }
        for (const handle of choice.kind === "file" ? ((choice.handles ?? []) as WithPermission[]) : []) {
            if (handle.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
                return;
            }
        }
        await this.load(choice);
    }
}
