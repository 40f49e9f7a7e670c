/** The settings dialog: conversation, sampling, loading. Changes are stored immediately. */
import type { Chat } from "./chat.js";
import { byId, h, type Child } from "./dom.js";
import { icon } from "./icons.js";
import type { ModelManager } from "./model.js";
import type { Signal } from "./signal.js";
import type { Library } from "./library.js";
import { defaultSettings, type Settings, type Store } from "./store.js";
import { backupFields } from "./view_backup.js";

type NumberName = "temperature" | "topK" | "topP" | "maxTokens";

export class SettingsView {
    readonly #dialog = byId<HTMLDialogElement>("settings");
    readonly #settings: Signal<Settings>;
    readonly #chat: Chat;
    readonly #models: ModelManager;
    readonly #library: Library;

    constructor(settings: Signal<Settings>, store: Store, chat: Chat, models: ModelManager, library: Library) {
        this.#library = library;
        this.#settings = settings;
        this.#chat = chat;
        this.#models = models;
        byId("open-settings").append(icon("sliders"), "Settings");
        byId("open-settings").addEventListener("click", () => this.open());
        settings.watch((value) => void store.setValue("settings", value).catch(() => undefined));
    }

    open(): void {
        this.#draw();
        this.#dialog.showModal();
    }

    #set(change: Partial<Settings>): void {
        this.#settings.set({ ...this.#settings.value, ...change });
    }

    #row(id: string, label: string, about: string, field: HTMLElement): HTMLElement {
        field.id = id;
        return h("div", { class: "field-row" }, h("label", { for: id }, label), h("span", { class: "faint" }, about), field);
    }

    #number(name: NumberName, label: string, about: string, min: number, max: number, step: number): HTMLElement {
        const field = h("input", { type: "number", min, max, step, value: this.#settings.value[name], inputmode: "decimal" });
        field.addEventListener("change", () => {
            const entered = field.valueAsNumber;
            const value = Number.isFinite(entered) ? Math.min(max, Math.max(min, entered)) : defaultSettings[name];
            field.valueAsNumber = value;
            this.#set({ [name]: value });
        });
        return this.#row(`set-${name}`, label, about, field);
    }

    #seed(): HTMLElement {
        const { seed } = this.#settings.value;
        const field = h("input", { type: "number", min: 0, step: 1, placeholder: "random", ...(seed === null ? {} : { value: seed }) });
        field.addEventListener("change", () => {
            const entered = Math.floor(field.valueAsNumber);
            this.#set({ seed: Number.isFinite(entered) && entered >= 0 ? Math.min(entered, 2 ** 32 - 1) : null });
        });
        return this.#row("set-seed", "Seed", "The same seed gives the same answer", field);
    }

    #select<T extends string>(id: string, label: string, about: string, value: T, options: [T, string][], changed: (value: T) => void): HTMLElement {
        const field = h("select", {}, ...options.map(([key, text]) => h("option", { value: key, selected: key === value }, text)));
        field.addEventListener("change", () => changed(field.value as T));
        return this.#row(id, label, about, field);
    }

    #system(): Child[] {
        const conversation = this.#chat.current.value;
        const text = h("textarea", { class: "field", id: "set-system", rows: 3, placeholder: "You are\u2026" }, conversation?.system ?? this.#settings.value.system);
        text.addEventListener("change", () => {
            void this.#chat.setSystem(text.value);
            this.#set({ system: text.value });
        });
        return [
            h("label", { for: "set-system" }, "System prompt", h("span", { class: "faint" }, conversation ? " \u00b7 this conversation, and new ones" : " \u00b7 new conversations")),
            text,
        ];
    }

    #draw(): void {
        const { value } = this.#settings;
        const think = h("input", { type: "checkbox", checked: value.think });
        think.addEventListener("change", () => this.#set({ think: think.checked }));
        const lengths = ["0", "2048", "4096", "8192", "16384", "32768", "65536", "131072"];
        this.#dialog.replaceChildren(
            h("h2", { id: "settings-title", tabindex: -1, autofocus: true }, "Settings"),
            h(
                "form",
                { method: "dialog" },
                h("fieldset", {}, h("legend", {}, "Conversation"), h("div", {}, ...this.#system()),
                    this.#row("set-think", "Think before answering", "Slower, often better; the thoughts can be expanded", think)),
                h(
                    "fieldset",
                    {},
                    h("legend", {}, "Sampling"),
                    this.#models.loaded?.info.diffusion
                        ? h("p", { class: "faint", id: "diffusion-note" }, `${this.#models.loadedName} is a diffusion model: of these settings, only the seed and the maximum length affect it.`)
                        : null,
                    this.#number("temperature", "Temperature", "0: always the most likely token", 0, 5, 0.05),
                    this.#number("topK", "Top-k", "Sample from this many tokens; 0: all", 0, 1000, 1),
                    this.#number("topP", "Top-p", "Sample from the most likely tokens with this total probability", 0.01, 1, 0.01),
                    this.#seed(),
                    this.#number("maxTokens", "Maximum length", "Tokens per answer; 0: no limit", 0, 131072, 1),
                ),
                h(
                    "fieldset",
                    {},
                    h("legend", {}, "Loading (applies to the next model)"),
                    this.#select("set-context", "Context length", "Longer conversations need more memory", String(value.contextLength),
                        lengths.map((n) => [n, n === "0" ? "automatic" : `${Number(n).toLocaleString("en")} tokens`]),
                        (n) => this.#set({ contextLength: Number(n) })),
                    this.#select<Settings["cache"]>("set-cache", "Conversation in memory", "Smaller: longer conversations fit; a quarter costs some exactness", value.cache,
                        [["f16", "full size"], ["q8", "half"], ["q4", "a quarter"]],
                        (cache) => this.#set({ cache })),
                    this.#select<Settings["device"]>("set-device", "Runs on", "Basic GPU: no optional features, for faulty drivers", value.device,
                        [["auto", "automatic"], ["gpu", "GPU"], ["gpu-baseline", "basic GPU"], ["cpu", "CPU"]],
                        (device) => this.#set({ device })),
                ),
                backupFields(this.#library),
                h(
                    "div",
                    { class: "actions" },
                    h("button", { type: "button", onclick: () => this.#reset() }, "Defaults"),
                    h("button", { class: "main" }, "Done"),
                ),
            ),
        );
    }

    #reset(): void {
        const { system, tools, documents } = this.#settings.value;
        this.#settings.set({ ...defaultSettings, system, tools, documents });
        this.#draw();
    }
}
