/** Installs the page as an application, and connects it with its service worker (sw.ts), where the browser allows that. */
import { h } from "./dom.js";

/** Stores the page for visits without its server. Called when the page is shown, as none of this may delay it. */
export function enableOffline(): void {
    document.head.append(h("link", { rel: "manifest", href: "manifest.webmanifest" }));
    void navigator.serviceWorker?.register(new URL("sw.js", document.baseURI)).catch(() => undefined);
}

/** Stores a built-in model, if the address is one's. */
export function keepModelOffline(url: string): void {
    const { href } = new URL(url, document.baseURI);
    if (href.startsWith(new URL("builtin/", document.baseURI).href)) {
        void navigator.serviceWorker?.ready.then(({ active }) => active?.postMessage({ keep: href }));
    }
}
