/** Offers something as a download. */
import { h } from "./dom.js";

/** Until the browser has surely read it. */
const KEPT_MS = 60_000;

export function saveBlob(blob: Blob, name: string): void {
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
