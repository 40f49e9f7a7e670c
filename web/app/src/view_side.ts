/** The sidebar with the list of conversations. In narrow windows it slides over the page. */
import type { Chat } from "./chat.js";
import { confirmed } from "./dialog.js";
import { byId, h, show } from "./dom.js";
import { formatAge } from "./format.js";
import { icon } from "./icons.js";
import type { Conversation } from "./store.js";

const narrow = matchMedia("(max-width: 50rem)");

export class SideView {
    readonly #chat: Chat;
    readonly #list = byId("conversations");
    /** Id of the conversation being renamed. */
    #renaming = "";

    /** `opened`: called when a conversation or a new chat is opened. */
    constructor(chat: Chat, opened: () => void) {
        this.#chat = chat;
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
                void chat.open(id).then(opened);
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
        const all = this.#chat.conversations.value;
        show(byId("no-conversations"), all.length === 0);
        this.#list.replaceChildren(...all.map((one) => this.#row(one)));
        this.#list.querySelector("input")?.select();
    }

    #row(one: Conversation): HTMLElement {
        if (one.id === this.#renaming) {
            return h("li", { class: "conversation current" }, this.#titleField(one));
        }
        const current = one.id === this.#chat.current.value?.id;
        return h(
            "li",
            { class: current ? "conversation current" : "conversation" },
            h(
                "button",
                { type: "button", class: "pick", "data-pick": one.id, title: formatAge(one.updated), ...(current ? { "aria-current": "page" } : {}) },
                h("span", { class: "name" }, one.title),
            ),
            h(
                "span",
                { class: "tools" },
                h("button", { type: "button", class: "quiet", "aria-label": `Rename ${one.title}`, onclick: () => this.#rename(one.id) }, icon("edit")),
                h("button", { type: "button", class: "quiet", "aria-label": `Delete ${one.title}`, onclick: () => void this.#delete(one) }, icon("bin")),
            ),
        );
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
