/** Dialogs that ask a question. */
import { byId, h } from "./dom.js";

/** Asks before an action that cannot be undone. */
export function confirmed(title: string, text: string, action: string): Promise<boolean> {
    const choose = h("button", { type: "button", class: "danger", autofocus: true }, action);
    return ask(title, [h("p", { dir: "auto" }, text)], "Cancel", choose);
}

let asking: Promise<unknown> = Promise.resolve();

/** One question at a time; a second one waits. A signal that fires answers with no. */
function ask(title: string, body: HTMLElement[], no: string, yes: HTMLButtonElement, signal?: AbortSignal): Promise<boolean> {
    const dialog = byId<HTMLDialogElement>("confirm");
    const show = (): Promise<boolean> =>
        new Promise((resolve) => {
            const answer = (value: boolean) => (): void => {
                signal?.removeEventListener("abort", refuse);
                dialog.close();
                resolve(value);
            };
            const refuse = answer(false);
            dialog.oncancel = refuse;
            yes.addEventListener("click", answer(true));
            dialog.replaceChildren(h("h2", { id: "confirm-title" }, title), ...body, h("div", { class: "actions" }, h("button", { type: "button", onclick: refuse }, no), yes));
            if (signal?.aborted) {
                resolve(false);
                return;
            }
            signal?.addEventListener("abort", refuse);
            dialog.showModal();
        });
    const answered = asking.then(show);
    asking = answered;
    return answered;
}

/** Asks whether the model may read an address. The whole address is shown: it may carry words of the conversation. */
export function allowAddress(url: URL, signal: AbortSignal): Promise<boolean> {
    const body = [
        h("p", {}, `The model wants to read a page of ${url.host}. Its site learns this address, with all that is in it:`),
        h("pre", { class: "address", tabindex: "0", "aria-label": "Address" }, url.href),
    ];
    return ask("Read this address?", body, "Do not read", h("button", { type: "button", class: "main" }, "Read once"), signal);
}
