/** Elements, made and found. Text only ever goes in as text. */

type Props = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;
export type Child = Node | string | null | undefined | false;

/** An element: `on...` are listeners, true and false switch attributes, everything else is one. */
export function h<K extends keyof HTMLElementTagNameMap>(
    tag: K,
    props: Props = {},
    ...children: Child[]
): HTMLElementTagNameMap[K] {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(props)) {
        if (typeof value === "function") {
            element.addEventListener(name.slice(2), value);
        } else if (value !== undefined && value !== false) {
            element.setAttribute(name, value === true ? "" : String(value));
        }
    }
    element.append(...children.filter((child): child is Node | string => child instanceof Node || typeof child === "string"));
    return element;
}

/** The element of index.html with this id. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
    const element = document.getElementById(id);
    if (!element) {
        throw new Error(`index.html has no #${id}`);
    }
    return element as T;
}

export function show(element: HTMLElement, visible: boolean): void {
    element.hidden = !visible;
}

/** Once per frame, however often it is asked for; also in a tab that is not painted. */
export function perFrame(act: () => void): () => void {
    let waiting = false;
    return () => {
        if (waiting) {
            return;
        }
        waiting = true;
        const run = (): void => {
            if (waiting) {
                waiting = false;
                act();
            }
        };
        requestAnimationFrame(run);
        setTimeout(run, 250);
    };
}

/** Tells a screen reader, when it has nothing else to say. */
export function announce(text: string): void {
    byId("announcer").textContent = text;
}
