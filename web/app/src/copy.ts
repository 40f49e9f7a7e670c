/** Copying to the clipboard, with the outcome shown on the button. */
import { h } from "./dom.js";
import { icon } from "./icons.js";

/** What buttons show again when they have shown the outcome. */
const labels = new WeakMap<HTMLButtonElement, ChildNode[]>();

export async function copyText(text: string, button: HTMLButtonElement): Promise<void> {
    const label = labels.get(button) ?? [...button.childNodes];
    labels.set(button, label);
    try {
        await navigator.clipboard.writeText(text);
        button.replaceChildren(icon("check"), h("span", {}, "Copied"));
    } catch {
        button.replaceChildren(icon("warn"), h("span", {}, "Not allowed"));
    }
    setTimeout(() => button.replaceChildren(...label), 1600);
}
