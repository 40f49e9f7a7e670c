/** The model: choosing, inspecting, loading, and recovering it after a device loss. One at a time. */
import {
    Bezel,
    BezelError,
    type BezelModel,
    type Capabilities,
    type DownloadProgress,
    type Inspection,
    type Progress,
} from "./bezel.js";
import { readCatalog, type Catalog, type ModelCard, type Offer, type Suggestion } from "./catalog.js";
import { failureOf, type Failure } from "./errors.js";
import { mergeFiles, nameOfFiles, type FileChoice } from "./file_choice.js";
import { formatBytes } from "./format.js";
import { MAX_ON_CPU } from "./fit.js";
import { findModel } from "./hosts.js";
import type { DownloadRecord } from "./model_records.js";
import { keepModelOffline } from "./offline.js";
import { filesOf, type RemoteFile, type RemoteModel } from "./remote.js";
import { Signal } from "./signal.js";
import type { Settings, Store } from "./store.js";
import { summarize, type ModelSummary } from "./summary.js";

/** Where a model comes from. */
export type Choice =
    | { kind: "url"; name: string; url: string; /** URLs of its other parts, of its mmproj file and of its drafter. */ more?: string[] }
    /** Files of another host, to be downloaded; `withMedia`: with its encoders for images and sound. */
    | { kind: "remote"; name: string; model: RemoteModel; withMedia: boolean }
    /** A download in the browser's storage; `more`: its other files. */
    | { kind: "stored"; name: string; stored: string; more?: string[] }
    | FileChoice;

/** Ollama names files by their SHA-256; then the name in the header is used, else the first digits. */
function nameOfInspected(files: string[], { name, sizeLabel }: Inspection): string | null {
    const file = nameOfFiles(files);
    const digest = file === null ? null : /^sha256-([0-9a-f]{8})[0-9a-f]{56}$/.exec(file);
    return digest ? (name ?? `Gemma ${sizeLabel ?? digest[1] ?? ""}`) : file;
}

export type LoadProgress = Progress | DownloadProgress;

export type ModelState =
    | { kind: "none" }
    /** A name is being looked up on its host. */
    | { kind: "finding"; name: string }
    | { kind: "not-found"; name: string; failure: Failure }
    | { kind: "inspecting"; choice: Choice }
    /** `summary`: null: its host does not let pages read parts of files. */
    | { kind: "inspected"; choice: Choice; summary: ModelSummary | null }
    | { kind: "loading"; choice: Choice; progress: LoadProgress | null; again: boolean }
    | { kind: "ready"; choice: Choice; model: BezelModel }
    | { kind: "failed"; choice: Choice; failure: Failure };

/** The model that a completed download is. */
export function choiceOfRecord({ title, files }: DownloadRecord): Choice {
    const [stored = "", ...more] = files.map((file) => file.stored);
    return { kind: "stored", name: title, stored, ...(more.length > 0 ? { more } : {}) };
}

/** A drafter is found by its name, so it may be another model's. */
function withoutDrafter(choice: Choice & { kind: "remote" }): Choice {
    return { ...choice, model: { ...choice.model, drafter: [] } };
}

/** What the button says that loads the last visit's model. */
export function labelOfAgain(last: Choice): string {
    return last.kind === "file" && !last.handles ? `Choose ${last.name} again\u2026` : `Load ${last.name} again`;
}

/** An entry of the list that `bezel serve` sends. */
interface ServedFile {
    name: string;
    size: number;
    /** The model that this file is a part, the mmproj file or the drafter of. */
    of?: string;
}

/** For models without example questions of their own. */
const DEFAULT_SUGGESTIONS = [
    "Why is the sky blue? Explain it to a child.",
    "What can I cook with eggs, rice and spinach?",
    "Write a short poem about the sea in winter.",
    "Help me write a polite reply to a late invoice.",
];

/** A list of the page's server; null: it has none. */
async function readList(path: string): Promise<unknown> {
    try {
        const response = await fetch(new URL(path, document.baseURI));
        return response.ok ? ((await response.json()) as unknown) : null;
    } catch {
        return null;
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
    /** Lets the user choose files; null: cancelled. */
    chooseFiles: () => Promise<FileChoice | null> = () => Promise.resolve(null);
    #control: AbortController | null = null;
    #ready: { choice: Choice; model: BezelModel } | null = null;
    /** How long the loaded model took to load; null: none is loaded. */
    loadSeconds: number | null = null;
    /** Address of the model that loads by itself; null: not looked for yet. */
    #automaticUrl: string | null = null;
    #losses: number[] = [];
    #catalog: Promise<Catalog> | null = null;
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

    /** The user has not chosen the loaded model: it has loaded by itself. */
    get isAutomatic(): boolean {
        const choice = this.#ready?.choice;
        return choice?.kind === "url" && choice.url === this.#automaticUrl;
    }

    /** Display name of the loaded model. */
    get loadedName(): string {
        return this.#ready?.choice.name ?? "";
    }

    /** Example questions for the loaded model. */
    async suggestions(): Promise<Suggestion[]> {
        const own = (await this.loadedOffer())?.suggest ?? DEFAULT_SUGGESTIONS;
        return own.map((one) => (typeof one === "string" ? { text: one } : one));
    }

    /** The entry of the list that the loaded model was chosen from. */
    async loadedOffer(): Promise<Offer | null> {
        const choice = this.#ready?.choice;
        return choice?.kind === "url" ? this.#offerOf(choice.url) : null;
    }

    async #offerOf(address: string): Promise<Offer | null> {
        return (await this.catalog()).offers.find(({ url }) => url === address) ?? null;
    }

    /** Loads an offered model without asking; resolves to whether it is ready. */
    async loadOffered(address: string): Promise<boolean> {
        const offer = await this.#offerOf(address);
        if (offer) {
            await this.load({ kind: "url", name: offer.name, url: offer.url });
        }
        return offer !== null && this.state.value.kind === "ready";
    }

    /** The models of `bezel serve`, and the page's built-in ones. */
    async #readCatalog(): Promise<Catalog> {
        const [own, list] = await Promise.all([readList("models.json"), readList("models/")]);
        const catalog = readCatalog(own);
        const served = (list as { models?: ServedFile[] } | null)?.models ?? [];
        const address = ({ name }: ServedFile): string => `models/${encodeURIComponent(name)}`;
        catalog.offers.unshift(
            ...served.filter(({ of }) => of === undefined).map((one) => {
                const others = served.filter(({ of }) => of === one.name);
                return {
                    name: (nameOfFiles([one.name]) ?? one.name).replaceAll("~", "/"), // "user~model:tag.gguf" of the store
                    url: address(one),
                    more: others.map(address),
                    about: formatBytes([one, ...others].reduce((sum, { size }) => sum + size, 0)),
                };
            }),
        );
        return catalog;
    }

    /** `again`: asks the server again. */
    catalog(again = false): Promise<Catalog> {
        if (again || !this.#catalog) {
            this.#catalog = this.#readCatalog();
        }
        return this.#catalog;
    }

    // ---- choosing -------------------------------------------------------------------------------

    /** Looks a name or addresses up, as hosts.ts reads them, and then into the model. `card`: the one it was chosen from. */
    async find(text: string, card: ModelCard | null): Promise<void> {
        const control = this.#begin();
        const name = card?.name ?? (text.trim().length > 60 ? `${text.trim().slice(0, 60)}\u2026` : text.trim());
        this.state.set({ kind: "finding", name });
        try {
            const { hosts } = await this.catalog();
            const model = await findModel(text, hosts, control.signal);
            if (control.signal.aborted) {
                return;
            }
            const urls = model.files.map(({ url }) => url);
            if (urls.every((url) => new URL(url).origin === location.origin)) {
                const [url = "", ...more] = filesOf(model, true).map((file) => file.url);
                await this.inspect({ kind: "url", name: model.title, url, ...(more.length > 0 ? { more } : {}) });
                return;
            }
            const withMedia = await this.#canHaveMedia(model);
            if (!control.signal.aborted) {
                await this.inspect({ kind: "remote", name: card?.name ?? model.title, model, withMedia });
            }
        } catch (reason) {
            if (!control.signal.aborted && !isAbort(reason)) {
                this.state.set({ kind: "not-found", name, failure: failureOf(reason) });
            }
        }
    }

    /** false: with encoders it would be too large for the CPU, and without them it is not. */
    async #canHaveMedia({ files, media }: RemoteModel): Promise<boolean> {
        const sum = (list: RemoteFile[]): number => list.reduce((bytes, { size }) => bytes + (size ?? 0), 0);
        const { webgpu, adapter } = await this.capabilities();
        const onCpu = this.#settings.value.device === "cpu" || (this.#settings.value.device === "auto" && (!webgpu || !adapter || adapter.software));
        return !onCpu || sum(files) > MAX_ON_CPU || sum(files) + sum(media) <= MAX_ON_CPU;
    }

    /** The conversation's length for the next model; 0: as before. */
    prefer(contextLength: number): void {
        if (contextLength > 0) {
            this.#settings.set({ ...this.#settings.value, contextLength });
        }
    }

    /** Reads a model's header and shows a summary before loading it. An mmproj file or a drafter alone is added to the files
     * before, if the user had chosen these. */
    async inspect(choice: Choice): Promise<void> {
        const { value } = this.state;
        const before = value.kind === "inspected" ? value.choice : this.#ready?.choice;
        const control = this.#begin();
        this.state.set({ kind: "inspecting", choice });
        try {
            const look = async (): Promise<Inspection> => Bezel.inspect(await this.sourcesOf(choice), { signal: control.signal });
            let inspection = await look();
            const capabilities = await this.capabilities();
            if (!inspection.runs && choice.kind === "remote" && choice.model.drafter.length > 0) {
                choice = withoutDrafter(choice);
                inspection = await look();
            } else if (choice.kind === "file" && before?.kind === "file" && inspection.files.every(({ media, drafter }) => media || drafter)) {
                const files = (await this.sourcesOf(before)) as File[];
                choice = mergeFiles({ ...before, files }, choice);
                inspection = await look();
            }
            if (!inspection.runs) {
                throw new BezelError(inspection.code === "ok" ? "bad_file" : inspection.code, inspection.text);
            }
            if (choice.kind === "file") {
                const own = inspection.files.filter(({ media, drafter }) => !media && !drafter).map(({ name }) => name);
                choice = { ...choice, name: nameOfInspected(own, inspection) ?? choice.name };
            }
            if (!control.signal.aborted) {
                this.state.set({ kind: "inspected", choice, summary: summarize(inspection, capabilities, this.#settings.value) });
            }
        } catch (reason) {
            const unread = reason instanceof BezelError && reason.code === "network" && /ranges|does not report the file's size/.test(reason.message);
            if (unread && choice.kind === "remote" && !control.signal.aborted) {
                this.state.set({ kind: "inspected", choice: withoutDrafter(choice), summary: null });
                return;
            }
            this.#fail(choice, reason, control);
        }
    }

    /** What Bezel.load takes. */
    async sourcesOf(choice: Choice): Promise<File[] | string[]> {
        if (choice.kind === "url") {
            return [choice.url, ...(choice.more ?? [])].map((url) => new URL(url, document.baseURI).href);
        }
        if (choice.kind === "remote") {
            return filesOf(choice.model, choice.withMedia).map(({ url }) => url);
        }
        if (choice.kind === "stored") {
            return [choice.stored, ...(choice.more ?? [])].map((name) => `opfs:${name}`);
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
        const began = performance.now();
        try {
            const model = await Bezel.load(await this.sourcesOf(choice), {
                device: settings.device,
                signal,
                onProgress: report,
                ...(settings.contextLength > 0 ? { contextLength: settings.contextLength } : {}),
                ...(settings.cache === "f16" ? {} : { session: { kv: settings.cache } }),
            });
            if (control.signal.aborted) {
                model.close();
                return;
            }
            this.#ready = { choice, model };
            this.loadSeconds = (performance.now() - began) / 1000;
            this.state.set({ kind: "ready", choice, model });
            if (choice.kind === "url") {
                keepModelOffline(choice.url);
            }
            await this.#rememberChoice(choice).catch(() => undefined); // storage is full: the model works, but is not remembered
        } catch (reason) {
            this.#fail(choice, reason, control);
        }
    }

    /** These stored files are about to be deleted: unloads their model, and forgets it. */
    async release(stored: string[]): Promise<void> {
        const { value } = this.state;
        const uses = (choice: Choice | null): boolean => choice?.kind === "stored" && stored.includes(choice.stored);
        if ("choice" in value && uses(value.choice)) {
            this.unload();
        }
        if (uses(await this.last())) {
            await this.#store.setValue("model", undefined);
        }
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
        this.loadSeconds = null;
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
            return { ...stored, handles: stored.handles?.length ? stored.handles : null, files: null };
        }
        return stored ?? null;
    }

    /** Loads the last visit's model, after a click: files may need the permission to be read once more, or to be chosen. */
    async loadAgain(): Promise<void> {
        const last = await this.last();
        if (last?.kind === "file" && !last.handles) {
            const chosen = await this.chooseFiles();
            await (chosen ? this.load({ ...chosen, name: last.name }) : undefined);
        } else if (last) {
            await this.load(last);
        }
    }

    /** After a reload of this tab: loads the same model, unless that needs a permission prompt. On a first visit: the
     * model that comes with the page, if it is meant for that. */
    async resume(): Promise<void> {
        const last = await this.last();
        const choice = sessionStorage.getItem("loaded") ? last : await this.#automatic(last);
        if (!choice || (choice.kind === "file" && !choice.handles)) {
            return;
        }
        for (const handle of choice.kind === "file" ? ((choice.handles ?? []) as WithPermission[]) : []) {
            if (handle.queryPermission && (await handle.queryPermission({ mode: "read" })) !== "granted") {
                return;
            }
        }
        await this.load(choice);
    }

    async #automatic(last: Choice | null): Promise<Choice | null> {
        const [first] = (await this.catalog()).offers;
        const same = last === null || (last.kind === "url" && last.url === first?.url);
        if (!first?.auto || !same) {
            return null;
        }
        this.#automaticUrl = first.url;
        return { kind: "url", name: first.name, url: first.url };
    }
}
