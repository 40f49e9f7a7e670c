/** The text of PDF files, by pdf.js, which is fetched with the first one. Nothing is drawn, and scripts in a file are
 * never run. */
import { getDocument, GlobalWorkerOptions } from "pdfjs-dist/legacy/build/pdf.mjs";

GlobalWorkerOptions.workerSrc = new URL("./pdf_worker.js", import.meta.url).href;

/** The text of each page. */
export async function pdfPages(bytes: Uint8Array, maxPages: number): Promise<string[]> {
    const task = getDocument({ data: bytes, enableXfa: false, disableFontFace: true, useSystemFonts: false, stopAtErrors: false, verbosity: 0 });
    try {
        const document = await task.promise;
        const pages: string[] = [];
        for (let i = 1; i <= Math.min(document.numPages, maxPages); i++) {
            const page = await document.getPage(i);
            const { items } = await page.getTextContent();
            pages.push(items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join(""));
            page.cleanup();
        }
        return pages;
    } finally {
        await task.destroy();
    }
}
