/** The model: chosen, looked at, loaded, lost. One at a time. */
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
import { verdictOf, type Verdict } from "./verdict.js";

/** Where a model comes from. */
export type Choice =
    | { kind: "url"; name: string; url: string; /** Its other parts, and its mmproj file. */ more?: string[] }
    /** In the browser's own storage, where downloads go. */
    | { kind: "stored"; name: string; stored: string }
    | FileChoice;

/** The files of one model; null: they were chosen on an earlier visit, and their handles have to do. */
export interface FileChoice {
    kind: "file";
    name: string;
    files: File[] | null;
    /** One for each, where the browser lets a page keep them; else null. */
    handles: FileSystemFileHandle[] | null;
}

/** As people call it: the text model's file, without what only says that it is one of several. */
export function nameOfFiles([first]: string[]): string | null {
    return first?.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "") ?? null;
}

/** Ollama's files are called by their sum: then the model's own name is taken, else the beginning of that. */
function nameOfInspected(files: string[], { name, sizeLabel }: Inspection): string | null {
    const file = nameOfFiles(files);
    const sum = file === null ? null : /^sha256-([0-9a-f]{8})[0-9a-f]{56}$/.exec(file);
    return sum ? (name ?? `Gemma ${sizeLabel ?? sum[1] ?? ""}`) : file;
}

export type LoadProgress = Progress | DownloadProgress;

export type ModelState =
    | { kind: "none" }
    | { kind: "inspecting"; choice: Choice }
    | { kind: "inspected"; choice: Choice; verdict: Verdict }
    | { kind: "loading"; choice: Choice; progress: LoadProgress | null; again: boolean }
    | { kind: "ready"; choice: Choice; model: BezelModel }
    | { kind: "failed"; choice: Choice; failure: Failure };

/** A model that comes with the page, or with its server. */
export interface Offer {
    name: string;
    /** Relative to the page. */
    url: string;
    /** Other files of the same model. */
    more?: string[];
    about: string;
    /** Questions that it answers well, to begin with. */
    suggest?: string[];
}

/** As `bezel serve` lists them. */
interface Served {
    name: string;
    size: number;
    /** The model that it is a part of, or the mmproj file of. */
    of?: string;
}

/** For models that bring none of their own. */
const SUGGESTIONS = [
    "Why is the sky blue? Explain it to a child.",
    "What can I cook with eggs, rice and spinach?",
    "Write a short poem about the sea in winter.",
    "Help me write a polite reply to a late invoice.",
];

/** {"models": [...]} from the page's server; a list that is not there is empty. */
async function readList<T>(path: string): Promise<T[]> {
    try {
        const response = await fetch(new URL(path, document.baseURI));
        const json = response.ok ? ((await response.json()) as { models?: T[] }) : {};
        return json.models ?? [];
    } catch {
        return [];
    }
}

/** Losing the device this often in this time is no accident any more. */
const MAX_LOSSES = 3;
const LOSS_WINDOW = 120_000;
/** Milliseconds between attempts to come back. */
const RETRIES = [500, 1500, 4000];

function isAbort(reason: unknown): boolean {
    return reason instanceof BezelError ? reason.code === "aborted" : (reason as Error | null)?.name === "AbortError";
}

/** What survives a reload: a handle can be kept, a file from an input cannot. */
type Kept = Exclude<Choice, FileChoice> | Omit<FileChoice, "files">;

/** Not everywhere, and not in TypeScript's own description of the page. */
type WithPermission = FileSystemFileHandle & {
    queryPermission?(options: { mode: "read" }): Promise<PermissionState>;
    requestPermission?(options: { mode: "read" }): Promise<PermissionState>;
};

export class ModelKeeper {
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

    /** Stays while another one is looked at. */
    get loaded(): BezelModel | null {
        return this.#ready?.model ?? null;
    }

    /** As the user knows it. */
    get loadedName(): string {
        return this.#ready?.choice.name ?? "";
    }

    /** Questions to begin with. */
    async suggestions(): Promise<string[]> {
        const choice = this.#ready?.choice;
        const offers = choice?.kind === "url" ? (this.#offers ?? (await this.offers())) : [];
        const own = choice?.kind === "url" ? offers.find(({ url }) => url === choice.url)?.suggest : undefined;
        return own ?? SUGGESTIONS;
    }

    /** The page's own models, and those that `bezel serve` was given. */
    async offers(): Promise<Offer[]> {
        const [own, served] = await Promise.all([
            readList<Offer>("models.json"),
            readList<Served>("models/"),
        ]);
        const address = ({ name }: Served): string => `models/${encodeURIComponent(name)}`;
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

    /** Looks at a model and shows what it found, before anything large is read. */
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
                this.state.set({ kind: "inspected", choice, verdict: verdictOf(inspection, capabilities, this.#settings.value) });
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
            throw new BezelError("not_found", `${choice.name} has to be chosen again: this browser does not let a page keep a file.`);
        }
        return Promise.all(choice.handles.map((handle) => this.#reopened(handle)));
    }

    async #reopened(handle: WithPermission): Promise<File> {
        if (handle.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
            if ((await handle.requestPermission?.({ mode: "read" })) !== "granted") {
                throw new BezelError("not_found", `The browser was not allowed to open ${handle.name} again.`);
            }
        }
        try {
            return await handle.getFile();
        } catch (reason) {
            throw new BezelError("not_found", `${handle.name} is no longer where it was.`, { cause: reason });
        }
    }

    // ---- loading --------------------------------------------------------------------------------

    /** Ends with a state of "ready", "failed", or "none" when it was cancelled. */
    async load(choice: Choice, change: Partial<Settings> = {}, again = false): Promise<void> {
        const control = this.#begin();
        this.#unload();
        const settings = { ...this.#settings.value, ...change };
        if (Object.keys(change).length > 0) {
            this.#settings.set(settings);
        }
        const { signal } = control;
        const tell = (progress: LoadProgress | null): void => {
            if (!signal.aborted) {
                this.state.set({ kind: "loading", choice, progress, again });
            }
        };
        tell(null);
        try {
            choice = await this.#fetched(choice, signal, tell);
            const model = await Bezel.load(await this.#source(choice), {
                device: settings.device,
                signal,
                onProgress: tell,
                ...(settings.contextLength > 0 ? { contextLength: settings.contextLength } : {}),
            });
            if (control.signal.aborted) {
                model.close();
                return;
            }
            this.#ready = { choice, model };
            this.state.set({ kind: "ready", choice, model });
            await this.#keep(choice).catch(() => undefined); // no room left: it is loaded all the same, and has to be chosen again
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
    }

    /** A model of another site is stored first: then it is there next time, also without a network. */
    async #fetched(choice: Choice, signal: AbortSignal, tell: (progress: DownloadProgress) => void): Promise<Choice> {
        if (choice.kind !== "url" || new URL(choice.url, document.baseURI).origin === location.origin) {
            return choice;
        }
        if (!(await this.capabilities()).opfs) {
            return choice; // read in ranges, each time
        }
        void navigator.storage.persist?.();
        const { name } = await Bezel.download(choice.url, { signal, onProgress: tell });
        return { kind: "stored", name: choice.name, stored: name };
    }

    /** Models in the browser's storage. */
    async stored(): Promise<StoredModel[]> {
        try {
            return await Bezel.models();
        } catch {
            return []; // none can be kept here
        }
    }

    async removeStored(name: string): Promise<void> {
        const state = this.state.value;
        if (state.kind === "ready" && state.choice.kind === "stored" && state.choice.stored === name) {
            this.unload();
        }
        await Bezel.remove(name);
    }

    /** Back to the model that is loaded, or to none. */
    cancel(): void {
        this.#control?.abort();
        this.#control = null;
        this.state.set(this.#ready ? { kind: "ready", ...this.#ready } : { kind: "none" });
    }

    unload(): void {
        this.#unload();
        this.cancel();
    }

    /** The device is gone: the same model again, unless that happens all the time. */
    recover(): void {
        if (!this.#ready) {
            return;
        }
        const { choice } = this.#ready;
        const now = Date.now();
        this.#losses = [...this.#losses.filter((then) => now - then < LOSS_WINDOW), now];
        if (this.#losses.length >= MAX_LOSSES) {
            this.#unload();
            const message = `It happened ${this.#losses.length} times within two minutes.`;
            this.state.set({ kind: "failed", choice, failure: { code: "device_lost", message } });
        } else {
            void this.#loadAgain(choice);
        }
    }

    /** A browser needs a moment until its GPU process is back; until then there is no adapter. */
    async #loadAgain(choice: Choice): Promise<void> {
        for (const pause of RETRIES) {
            await this.load(choice, {}, true);
            const state = this.state.value;
            const waits = state.kind === "failed" && ["no_adapter", "no_webgpu", "device_lost"].includes(state.failure.code);
            if (!waits) {
                return;
            }
            this.state.set({ kind: "loading", choice, progress: null, again: true });
            await new Promise((resolve) => setTimeout(resolve, pause));
            if (this.state.value.kind !== "loading" || this.state.value.choice !== choice) {
                return; // cancelled, or something else was chosen meanwhile
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
            return; // cancel() has said what comes next
        }
        this.state.set({ kind: "failed", choice, failure: failureOf(reason) });
    }

    // ---- remembering ----------------------------------------------------------------------------

    async #keep(choice: Choice): Promise<void> {
        const kept: Kept = choice.kind === "file" ? { kind: "file", name: choice.name, handles: choice.handles } : choice;
        await this.#store.setValue("model", kept);
        sessionStorage.setItem("loaded", "yes");
    }

    /** The model of the last visit, if it can be opened again. */
    async last(): Promise<Choice | null> {
        const kept = await this.#store.value<Kept>("model");
        if (kept?.kind === "file") {
            return kept.handles?.length ? { ...kept, files: null } : null;
        }
        return kept ?? null;
    }

    /** After a reload of this tab: the same model, if no permission has to be asked for. */
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
