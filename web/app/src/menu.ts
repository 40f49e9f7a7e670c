/** A menu that a button opens: arrow keys move, Escape closes, a click elsewhere closes. */
import { h } from "./dom.js";
import { icon, type IconName } from "./icons.js";

export interface MenuItem {
    icon: IconName;
    label: string;
    /** For screen readers, if the label alone is not enough. */
    name?: string;
    danger?: boolean;
    act: () => void;
}

let close: () => void = () => undefined;

export function openMenu(button: HTMLElement, items: MenuItem[]): void {
    close();
    const entries = items.map((item) =>
        h(
            "button",
            { type: "button", role: "menuitem", tabindex: "-1", class: item.danger ? "quiet danger-text" : "quiet", "aria-label": item.name, onclick: () => (close(), item.act()) },
            icon(item.icon),
            item.label,
        ),
    );
    const menu = h("div", { class: "menu", role: "menu", "aria-label": button.getAttribute("aria-label") ?? "Menu" }, ...entries);
    const outside = (event: Event): void => {
        if (!menu.contains(event.target as Node) && !button.contains(event.target as Node)) {
            close();
        }
    };
    close = () => {
        menu.remove();
        button.setAttribute("aria-expanded", "false");
        removeEventListener("pointerdown", outside, true);
        removeEventListener("resize", close);
        close = () => undefined;
    };
    menu.addEventListener("keydown", (event) => {
        const at = entries.indexOf(document.activeElement as HTMLButtonElement);
        const to = event.key === "ArrowDown" ? at + 1 : event.key === "ArrowUp" ? at - 1 : event.key === "Home" ? 0 : event.key === "End" ? entries.length - 1 : null;
        if (event.key === "Escape" || event.key === "Tab") {
            event.preventDefault();
            event.stopPropagation();
            close();
            button.focus();
        } else if (to !== null) {
            event.preventDefault();
            entries[(to + entries.length) % entries.length]?.focus();
        }
    });
    button.setAttribute("aria-expanded", "true");
    document.body.append(menu);
    const { left, right, bottom, top } = button.getBoundingClientRect();
    const { width, height } = menu.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(innerWidth - width - 8, right - width, Math.max(left, 8)))}px`;
    menu.style.top = `${bottom + height + 8 < innerHeight ? bottom + 4 : Math.max(8, top - height - 4)}px`;
    addEventListener("pointerdown", outside, true);
    addEventListener("resize", close);
    entries[0]?.focus();
}
