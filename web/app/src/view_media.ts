/** Lists of images, sounds and videos, in the composer and in messages. */
import { byId, h } from "./dom.js";
import { formatSeconds } from "./format.js";
import { icon } from "./icons.js";
import type { MediaItem } from "./store.js";

/** Owns the object URLs of its items; free() revokes them. */
export class MediaList {
    readonly root: HTMLUListElement;
    #urls: string[] = [];
    #items: MediaItem[] = [];
    readonly #remove: ((item: MediaItem) => void) | null;

    /** `remove`: called by each item's remove button; null: no such button. */
    constructor(label: string, remove: ((item: MediaItem) => void) | null) {
        this.root = h("ul", { class: "media", "aria-label": label, hidden: true });
        this.#remove = remove;
    }

    get items(): MediaItem[] {
        return this.#items;
    }

    set(items: MediaItem[]): void {
        if (items.length === this.#items.length && items.every((item, i) => item === this.#items[i])) {
            return; // unchanged: do not interrupt a playing sound
        }
        this.free();
        this.#items = items;
        this.root.hidden = items.length === 0;
        this.root.replaceChildren(...items.map((item) => this.#draw(item)));
    }

    free(): void {
        this.#urls.forEach((url) => URL.revokeObjectURL(url));
        this.#urls = [];
        this.#items = [];
        this.root.hidden = true;
        this.root.replaceChildren();
    }

    #draw(item: MediaItem): HTMLElement {
        const url = URL.createObjectURL(item.blob);
        this.#urls.push(url);
        const { kind, name } = item;
        const onRemove = this.#remove;
        const remove =
            onRemove && h("button", { type: "button", class: "remove", "aria-label": `Remove ${name}`, title: "Remove", onclick: () => onRemove(item) }, icon("close"));
        if (kind === "audio") {
            const length = item.seconds === undefined ? "" : `, ${formatSeconds(item.seconds)}`;
            const player = h("audio", { controls: true, controlslist: "nodownload noplaybackrate", preload: "metadata", src: url, "aria-label": `${name}${length}` });
            return h("li", { class: "sound" }, h("span", { class: "name", title: name }, icon("sound"), h("span", {}, name)), player, remove);
        }
        if (kind === "video") {
            const length = item.seconds === undefined ? "" : `, ${formatSeconds(item.seconds)}`;
            const player = h("video", { controls: true, muted: true, playsinline: true, controlslist: "nodownload", preload: "metadata", src: url, "aria-label": `${name}${length}` });
            return h("li", { class: "video" }, player, remove);
        }
        const image = h("img", { src: url, alt: name, loading: "lazy", ...(item.width && item.height ? { width: item.width, height: item.height } : {}) });
        const open = h("button", { type: "button", class: "image", "aria-label": `Show ${name}`, title: name, onclick: () => enlarge(item) }, image);
        return h("li", {}, open, remove);
    }
}

/** Shows an image in full size in a dialog. */
function enlarge(item: MediaItem): void {
    const dialog = byId<HTMLDialogElement>("image");
    const url = URL.createObjectURL(item.blob);
    const close = h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => dialog.close() }, icon("close"));
    dialog.setAttribute("aria-label", item.name);
    dialog.replaceChildren(h("img", { src: url, alt: item.name }), close);
    dialog.addEventListener("close", () => URL.revokeObjectURL(url), { once: true });
    dialog.onclick = (event) => {
        if (event.target === dialog) {
            dialog.close();
        }
    };
    dialog.showModal();
}
