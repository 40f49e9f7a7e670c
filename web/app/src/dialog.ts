/** Confirmation dialog. */
import { byId, h } from "./dom.js";

/** Asks before an action that cannot be undone. */
export function confirmed(title: string, text: string, action: string): Promise<boolean> {
    const dialog = byId<HTMLDialogElement>("confirm");
    return new Promise((resolve) => {
        const answer = (value: boolean) => (): void => {
            dialog.close();
            resolve(value);
        };
        dialog.oncancel = () => resolve(false);
        dialog.replaceChildren(
            h("h2", { id: "confirm-title" }, title),
            h("p", {}, text),
            h(
                "div",
                { class: "actions" },
                h("button", { type: "button", onclick: answer(false) }, "Cancel"),
                h("button", { type: "button", class: "danger", autofocus: true, onclick: answer(true) }, action),
            ),
        );
        dialog.showModal();
    });
}
