/** Creates and finds elements. Text is always inserted as text, never as HTML. */

type Props = Record<string, string | number | boolean | ((event: Event) => void) | undefined>;
export type Child = Node | string | null | undefined | false;

/** Creates an element. Props: `on...` functions are listeners, booleans switch attributes, others are attributes. */
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

/** Limits calls to one per frame; with a timer, because background tabs have no frames. */
export function perFrame(act: () => void): () => void {
    let scheduled = false;
    return () => {
        if (scheduled) {
            return;
        }
        scheduled = true;
        const run = (): void => {
            if (scheduled) {
                scheduled = false;
                act();
            }
        };
        requestAnimationFrame(run);
        setTimeout(run, 250);
    };
}

/** Announces a text politely to screen readers. */
export function announce(text: string): void {
    byId("announcer").textContent = text;
}
