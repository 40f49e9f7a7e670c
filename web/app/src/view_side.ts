/** The sidebar: the list of conversations, and search in them. In narrow windows it slides over the page. */
import type { Chat } from "./chat.js";
import { confirmed } from "./dialog.js";
import { byId, h, show } from "./dom.js";
import { formatAge } from "./format.js";
import { icon } from "./icons.js";
import type { Hit, Library } from "./library.js";
import { openMenu } from "./menu.js";
import type { Conversation } from "./store.js";
import { saveFile } from "./view_backup.js";

/** A search begins when nothing was typed for so long. */
const SEARCH_DELAY_MS = 120;

const narrow = matchMedia("(max-width: 50rem)");

export class SideView {
    readonly #chat: Chat;
    readonly #library: Library;
    readonly #list = byId("conversations");
    readonly #search = byId<HTMLInputElement>("search");
    /** Hits in messages, by conversation; null: no search. */
    #hits: Map<string, Hit> | null = null;
    #searches = 0;
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** Id of the conversation being renamed. */
    #renaming = "";

    /** `opened`: called when a conversation or a new chat is opened. */
    constructor(chat: Chat, library: Library, opened: () => void) {
        this.#chat = chat;
        this.#library = library;
        byId("new-chat").append(icon("plus"), "New chat");
        byId("open-side").append(icon("menu"));
        byId("close-side").append(icon("close"));
        byId("open-side").addEventListener("click", () => this.open(true));
        byId("close-side").addEventListener("click", () => this.open(false));
        byId("backdrop").addEventListener("click", () => this.open(false));
        byId("new-chat").addEventListener("click", () => {
            this.open(false);
            void chat.begin().then(opened);
        });
        this.#list.addEventListener("click", (event) => {
            const id = (event.target as Element).closest<HTMLElement>("[data-pick]")?.dataset["pick"];
            if (id) {
                this.open(false);
                void this.#pick(id).then(opened);
            }
        });
        this.#search.addEventListener("input", () => {
            clearTimeout(this.#timer);
            this.#timer = setTimeout(() => void this.#find(), SEARCH_DELAY_MS);
        });
        this.#search.addEventListener("keydown", (event) => {
            if (event.key === "Escape" && this.#search.value !== "") {
                event.stopPropagation();
                this.#search.value = "";
                void this.#find();
            }
        });
        addEventListener("keydown", (event) => {
            if (event.key === "Escape" && document.body.classList.contains("side-open")) {
                this.open(false);
            }
        });
        const draw = (): void => this.#draw();
        chat.conversations.watch(draw);
        chat.current.watch(draw);
        narrow.addEventListener("change", () => this.open(false));
        this.open(false);
    }

    open(wanted: boolean): void {
        const over = narrow.matches;
        document.body.classList.toggle("side-open", wanted && over);
        show(byId("backdrop"), wanted && over);
        byId("main").inert = wanted && over;
        byId("side").inert = over && !wanted;
        byId("open-side").setAttribute("aria-expanded", String(wanted));
        if (over && wanted) {
            byId("close-side").focus();
        }
    }

    #draw(): void {
        if (this.#renaming && this.#list.querySelector("input")) {
            return; // a title is being edited; the list is drawn when that ends
        }
        const query = this.#search.value.trim().toLowerCase();
        const all = this.#chat.conversations.value;
        const found = this.#hits === null ? all : all.filter(({ id, title }) => this.#hits?.has(id) || title.toLowerCase().includes(query));
        show(byId("no-conversations"), found.length === 0);
        byId("no-conversations").textContent = all.length === 0 ? "Conversations appear here. They stay in this browser." : "Nothing found.";
        show(this.#search.parentElement ?? this.#search, all.length > 0 || query !== "");
        this.#list.replaceChildren(...found.map((one) => this.#row(one)));
        this.#list.querySelector("input")?.select();
    }

    // ---- search ---------------------------------------------------------------------------------

    async #find(): Promise<void> {
        const number = ++this.#searches;
        const query = this.#search.value;
        const hits = query.trim() === "" ? null : await this.#library.search(query).catch(() => new Map<string, Hit>());
        if (number === this.#searches) {
            this.#hits = hits;
            this.#draw();
        }
    }

    /** Opens a conversation; one that was found, at the hit. */
    async #pick(id: string): Promise<void> {
        const hit = this.#hits?.get(id);
        if (!hit) {
            await this.#chat.open(id);
            return;
        }
        await this.#chat.openAt(id, hit.message);
        requestAnimationFrame(() => {
            const message = document.querySelector<HTMLElement>(`.message[data-id="${CSS.escape(hit.message)}"]`);
            message?.scrollIntoView({ block: "start" });
            message?.classList.add("found");
            message?.addEventListener("animationend", () => message.classList.remove("found"), { once: true });
        });
    }

    // ---- rows -----------------------------------------------------------------------------------

    #row(one: Conversation): HTMLElement {
        if (one.id === this.#renaming) {
            return h("li", { class: "conversation current" }, this.#titleField(one));
        }
        const current = one.id === this.#chat.current.value?.id;
        const hit = this.#hits?.get(one.id);
        const more = h("button", { type: "button", class: "quiet", "aria-label": `More for ${one.title}`, "aria-haspopup": "menu", "aria-expanded": "false", onclick: () => this.#menu(one, more) }, icon("more"));
        return h(
            "li",
            { class: current ? "conversation current" : "conversation" },
            h(
                "button",
                { type: "button", class: "pick", "data-pick": one.id, title: formatAge(one.updated), ...(current ? { "aria-current": "page" } : {}) },
                one.pinned ? icon("pin") : null,
                h(
                    "span",
                    { class: "pick-text" },
                    h("span", { class: "name", dir: "auto" }, one.title),
                    hit ? h("span", { class: "hit", dir: "auto" }, hit.before, h("mark", {}, hit.hit), hit.after) : null,
                ),
            ),
            h("span", { class: "tools" }, more),
        );
    }

    #menu(one: Conversation, button: HTMLElement): void {
        const save = (kind: "json" | "markdown"): void => void this.#library.exportOne(one, kind).then(saveFile);
        openMenu(button, [
            { icon: "pin", label: one.pinned ? "Unpin" : "Pin", act: () => void this.#chat.pin(one.id, !one.pinned) },
            { icon: "edit", label: "Rename", act: () => this.#rename(one.id) },
            { icon: "out", label: "Export as Markdown", act: () => save("markdown") },
            { icon: "out", label: "Export as JSON", act: () => save("json") },
            { icon: "bin", label: "Delete", danger: true, act: () => void this.#delete(one) },
        ]);
    }

    #titleField(one: Conversation): HTMLElement {
        const field = h("input", { type: "text", value: one.title, "aria-label": "Title", maxlength: 200 });
        const done = (keep: boolean): void => {
            if (this.#renaming === one.id) {
                this.#renaming = "";
                if (keep) {
                    void this.#chat.rename(one.id, field.value);
                }
                this.#draw();
            }
        };
        field.addEventListener("blur", () => done(true));
        field.addEventListener("keydown", (event) => {
            if (event.key === "Enter" || event.key === "Escape") {
                event.stopPropagation();
                done(event.key === "Enter");
            }
        });
        return field;
    }

    #rename(id: string): void {
        this.#renaming = id;
        this.#draw();
        this.#list.querySelector("input")?.focus();
    }

    async #delete(one: Conversation): Promise<void> {
        if (await confirmed("Delete this conversation?", `\u201c${one.title}\u201d is permanently removed from this browser.`, "Delete")) {
            await this.#chat.remove(one.id);
        }
    }
}
