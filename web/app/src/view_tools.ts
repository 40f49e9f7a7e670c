/** The dialog of tools: which the model may call, the user's own ones, and the notes. */
import { confirmed } from "./dialog.js";
import { byId, h, show } from "./dom.js";
import { FETCH } from "./fetch_tool.js";
import { icon } from "./icons.js";
import type { Notes } from "./notes.js";
import { faultOf, pageTool, readOwnTools, type OwnTool } from "./own_tools.js";
import type { Signal } from "./signal.js";
import type { Settings, Store } from "./store.js";
import type { PageTool, ToolBox } from "./toolbox.js";

const emptyTool: OwnTool = {
    name: "",
    description: "",
    parameters: '{\n  "type": "object",\n  "properties": {\n    "text": { "type": "string" }\n  },\n  "required": ["text"]\n}',
    code: "return [...input.text].reverse().join(\"\");",
};

export class ToolsView {
    readonly #dialog = byId<HTMLDialogElement>("tools");
    readonly #settings: Signal<Settings>;
    readonly #store: Store;
    readonly #tools: ToolBox;
    readonly #builtIn: PageTool[];
    readonly #notes: Notes;
    #own: OwnTool[] = [];

    constructor(settings: Signal<Settings>, store: Store, tools: ToolBox, builtIn: PageTool[], notes: Notes) {
        this.#settings = settings;
        this.#store = store;
        this.#tools = tools;
        this.#builtIn = builtIn;
        this.#notes = notes;
        tools.set(builtIn);
        byId("open-tools").append(icon("tool"), "Tools");
        byId("open-tools").addEventListener("click", () => void this.open());
        byId("active-tools").addEventListener("click", () => void this.open());
        settings.watch(() => this.#drawActive());
    }

    /** Reads the user's own tools. */
    async start(): Promise<void> {
        this.#own = await readOwnTools(this.#store).catch(() => []);
        this.#useOwn();
    }

    #useOwn(): void {
        this.#tools.set([...this.#builtIn, ...this.#own.map(pageTool)]);
        this.#drawActive();
    }

    /** Below the text field: what the model may use besides the conversation. */
    #drawActive(): void {
        const titles = this.#tools.active.map(({ title }) => title);
        const button = byId("active-tools");
        show(button, titles.length > 0);
        button.replaceChildren(icon("tool"), h("span", {}, titles.join(", ")));
        const reads = this.#tools.active.some(({ name }) => name === FETCH);
        byId("stays").textContent = reads ? "Only addresses that you allow leave this machine." : "Everything stays on this machine.";
        button.setAttribute("aria-label", `Tools that are on: ${titles.join(", ")}`);
    }

    async open(): Promise<void> {
        await this.#draw();
        this.#dialog.showModal();
    }

    #enable(name: string, on: boolean): void {
        const others = this.#settings.value.tools.filter((one) => one !== name);
        this.#settings.set({ ...this.#settings.value, tools: on ? [...others, name] : others });
    }

    #switch(tool: PageTool, more: HTMLElement[] = []): HTMLElement {
        const id = `tool-${tool.name}`;
        const box = h("input", { type: "checkbox", id, checked: this.#settings.value.tools.includes(tool.name) });
        box.addEventListener("change", () => this.#enable(tool.name, box.checked));
        return h("div", { class: "field-row" }, h("label", { for: id }, tool.title), h("span", { class: "faint", dir: "auto" }, tool.about), h("span", { class: "row-end" }, ...more, box));
    }

    async #draw(): Promise<void> {
        const notes = await this.#notes.all().catch(() => []);
        const own = this.#own.map((tool) =>
            this.#switch(pageTool(tool), [
                h("button", { type: "button", class: "quiet small", "aria-label": `Change ${tool.name}`, onclick: () => this.#edit(tool) }, icon("edit")),
                h("button", { type: "button", class: "quiet small", "aria-label": `Delete ${tool.name}`, onclick: () => void this.#remove(tool) }, icon("bin")),
            ]),
        );
        this.#dialog.replaceChildren(
            h("h2", { id: "tools-title", tabindex: -1, autofocus: true }, "Tools"),
            h("p", { class: "faint" }, "The model may call these while it answers. Every call is shown with its arguments and its result. Small models often call tools wrongly or not at all."),
            h("fieldset", {}, h("legend", {}, "With Bezel"), ...this.#builtIn.map((tool) => this.#switch(tool))),
            h("fieldset", {}, h("legend", {}, "Your own"), ...own, h("div", { class: "actions start" }, h("button", { type: "button", onclick: () => this.#edit(null) }, icon("plus"), "New tool"))),
            ...(notes.length > 0 ? [h("fieldset", {}, h("legend", {}, "Notes"), h("ul", { class: "rows" }, ...notes.map((note) => this.#note(note.title, note.text))))] : []),
            h("form", { method: "dialog", class: "actions" }, h("button", { class: "main" }, "Done")),
        );
    }

    #note(title: string, text: string): HTMLElement {
        const remove = async (): Promise<void> => {
            await this.#notes.remove(title);
            await this.#draw();
        };
        return h(
            "li",
            {},
            h("span", {}, h("b", { dir: "auto" }, title), h("span", { class: "faint", dir: "auto" }, text)),
            h("button", { type: "button", class: "quiet small", "aria-label": `Delete the note ${title}`, onclick: () => void remove() }, icon("bin")),
        );
    }

    async #remove(tool: OwnTool): Promise<void> {
        if (await confirmed("Delete this tool?", `\u201c${tool.name}\u201d is permanently removed from this browser.`, "Delete")) {
            this.#enable(tool.name, false);
            await this.#keep(this.#own.filter((one) => one !== tool));
        }
    }

    async #keep(own: OwnTool[]): Promise<void> {
        this.#own = own;
        this.#useOwn();
        await this.#store.setValue("own-tools", own).catch(() => undefined);
        await this.#draw();
    }

    #edit(before: OwnTool | null): void {
        const tool = before ?? emptyTool;
        const fault = h("p", { class: "fault", role: "alert", hidden: true });
        const name = h("input", { type: "text", class: "field", id: "own-name", value: tool.name, maxlength: 64, autocomplete: "off", spellcheck: "false" });
        const description = h("textarea", { class: "field", id: "own-description", rows: 2, maxlength: 1000 }, tool.description);
        const parameters = h("textarea", { class: "field mono", id: "own-parameters", rows: 6, spellcheck: "false" }, tool.parameters);
        const code = h("textarea", { class: "field mono", id: "own-code", rows: 6, spellcheck: "false" }, tool.code);
        const row = (label: string, about: string, field: HTMLElement): HTMLElement[] => [h("label", { for: field.id }, label, h("span", { class: "faint" }, ` \u00b7 ${about}`)), field];
        const save = (event: Event): void => {
            event.preventDefault();
            const made: OwnTool = { name: name.value.trim(), description: description.value.trim(), parameters: parameters.value, code: code.value };
            const taken = this.#tools.all.map((one) => one.name).filter((one) => one !== before?.name);
            const wrong = faultOf(made, taken);
            show(fault, wrong !== null);
            fault.textContent = wrong;
            if (wrong === null) {
                if (before && before.name !== made.name) {
                    this.#enable(before.name, false);
                }
                this.#enable(made.name, true);
                void this.#keep([...this.#own.filter((one) => one !== before), made]);
            }
        };
        this.#dialog.replaceChildren(
            h("h2", { id: "tools-title" }, before ? "Change a tool" : "New tool"),
            h(
                "form",
                { class: "own-tool", onsubmit: save },
                ...row("Name", "letters, digits and _", name),
                ...row("Description", "the model chooses by it", description),
                ...row("Arguments", "JSON schema of an object", parameters),
                ...row("JavaScript", "the body of a function of \u201cinput\u201d; it returns the result", code),
                fault,
                h("div", { class: "actions" }, h("button", { type: "button", onclick: () => void this.#draw() }, "Cancel"), h("button", { class: "main" }, "Save")),
            ),
        );
        name.focus();
    }
}
