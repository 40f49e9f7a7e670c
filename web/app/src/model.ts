/** The model: chosen, looked at, loaded, lost. One at a time. */
import { Bezel, BezelError, type Capabilities, type Inspection, type LoadedModel, type Progress } from "./bezel.js";
import { failureOf, type Failure } from "./errors.js";
import { Signal } from "./signal.js";
import type { Settings, Store } from "./store.js";

/** Where a model comes from. */
export type Choice =
    | { kind: "url"; name: string; url: string }
    | { kind: "file"; name: string; file: File | null; handle: FileSystemFileHandle | null };

export type ModelState =
    | { kind: "none" }
    | { kind: "inspecting"; choice: Choice }
    | { kind: "inspected"; choice: Choice; inspection: Inspection }
    | { kind: "loading"; choice: Choice; progress: Progress | null; again: boolean }
    | { kind: "ready"; choice: Choice; model: LoadedModel }
    | { kind: "failed"; choice: Choice; failure: Failure };

/** A model that the server offers (models/index.json). */
export interface Offer {
    name: string;
    file: string;
    about?: string;
}

/** Losing the device this often in this time is no accident any more. */
const MAX_LOSSES = 3;
const LOSS_WINDOW = 120_000;

function isAbort(reason: unknown): boolean {
    return reason instanceof BezelError ? reason.code === "aborted" : (reason as Error | null)?.name === "AbortError";
}

/** What survives a reload: a handle can be kept, a file from an input cannot. */
type Kept = { kind: "url"; name: string; url: string } | { kind: "file"; name: string; handle: FileSystemFileHandle | null };

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
    #ready: { choice: Choice; model: LoadedModel } | null = null;
    #losses: number[] = [];
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
    get loaded(): LoadedModel | null {
        return this.#ready?.model ?? null;
    }

    async offers(): Promise<Offer[]> {
        try {
            const response = await fetch(new URL("models/index.json", document.baseURI));
            const list = response.ok ? ((await response.json()) as { models?: Offer[] }) : {};
            return list.models ?? [];
        } catch {
            return []; // served without models: files and addresses remain
        }
    }

    // ---- choosing -------------------------------------------------------------------------------

    /** Looks at a model and shows what it found, before anything large is read. */
    async inspect(choice: Choice): Promise<void> {
        const control = this.#begin();
        this.state.set({ kind: "inspecting", choice });
        try {
            const inspection = await Bezel.inspect(await this.#source(choice));
            if (!control.signal.aborted) {
                this.state.set({ kind: "inspected", choice, inspection });
            }
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
    }

    async #source(choice: Choice): Promise<File | string> {
        if (choice.kind === "url") {
            return new URL(choice.url, document.baseURI).href;
        }
        if (choice.file) {
            return choice.file;
        }
        const handle = choice.handle as WithPermission | null;
        if (!handle) {
            throw new BezelError("not_found", `${choice.name} has to be chosen again: this browser does not let a page keep a file.`);
        }
        if (handle.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
            if ((await handle.requestPermission?.({ mode: "read" })) !== "granted") {
                throw new BezelError("not_found", `The browser was not allowed to open ${choice.name} again.`);
            }
        }
        try {
            return await handle.getFile();
        } catch (reason) {
            throw new BezelError("not_found", `${choice.name} is no longer where it was.`, { cause: reason });
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
        this.state.set({ kind: "loading", choice, progress: null, again });
        try {
            const model = await Bezel.load(await this.#source(choice), {
                device: settings.device,
                contextLength: settings.contextLength,
                signal: control.signal,
                onProgress: (progress) => {
                    if (!control.signal.aborted) {
                        this.state.set({ kind: "loading", choice, progress, again });
                    }
                },
            });
            if (control.signal.aborted) {
                model.close();
                return;
            }
            this.#ready = { choice, model };
            this.state.set({ kind: "ready", choice, model });
            await this.#keep(choice);
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
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
            void this.load(choice, {}, true);
        }
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
        const kept: Kept =
            choice.kind === "url" ? choice : { kind: "file", name: choice.name, handle: choice.handle };
        await this.#store.setValue("model", kept);
        sessionStorage.setItem("loaded", "yes");
    }

    /** The model of the last visit, if it can be opened again. */
    async last(): Promise<Choice | null> {
        const kept = await this.#store.value<Kept>("model");
        if (kept?.kind === "url") {
            return kept;
        }
        return kept?.handle ? { ...kept, file: null } : null;
    }

    /** After a reload of this tab: the same model, if no permission has to be asked for. */
    async resume(): Promise<void> {
        const choice = sessionStorage.getItem("loaded") ? await this.last() : null;
        if (!choice) {
            return;
        }
        const handle = choice.kind === "file" ? (choice.handle as WithPermission | null) : null;
        if (handle?.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
            return;
        }
        await this.load(choice);
    }
}
