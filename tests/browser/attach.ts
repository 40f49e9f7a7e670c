/** Attaching files to a message, as a user does it. */
import type { Page } from "playwright-core";

export interface TestFile {
    name: string;
    type: string;
    bytes: Buffer;
}

export const file = (name: string, bytes: Buffer, type = name.endsWith("png") ? "image/png" : "audio/wav"): TestFile => ({ name, type, bytes });

/** Dispatches a drop, paste or dragover event with these files. */
export async function dispatchFiles(p: Page, how: "drop" | "paste" | "dragover", files: TestFile[]): Promise<void> {
    const list = files.map(({ name, type, bytes }) => ({ name, type, base64: bytes.toString("base64") }));
    await p.evaluate(
        ([event, items]) => {
            const data = new DataTransfer();
            for (const { name, type, base64 } of items) {
                data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type }));
            }
            const options = { bubbles: true, cancelable: true };
            const made = event === "paste" ? new ClipboardEvent("paste", options) : new DragEvent(event, { ...options, dataTransfer: data });
            if (event === "paste") {
                Object.defineProperty(made, "clipboardData", { value: data }); // Firefox copies none from the options
            }
            (document.activeElement ?? document.body).dispatchEvent(made);
        },
        [how, list] as const,
    );
}

/** Drops files and folders from disk with the browser's native drag events. */
export async function dropPaths(p: Page, paths: string[]): Promise<void> {
    const session = await p.context().newCDPSession(p);
    const data = { items: [], files: paths, dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const) {
        await session.send("Input.dispatchDragEvent", { type, x: 600, y: 300, data });
    }
    await session.detach();
}

/** Waits until the composer has that many attachments. */
export const attached = (p: Page, n: number): Promise<void> =>
    p.waitForFunction((count) => document.querySelectorAll("#tray .media li").length === count, n).then(() => undefined);

/** Waits for the note about attachments, and returns it. */
export async function note(p: Page): Promise<string> {
    await p.waitForSelector("#attach-note:not([hidden])");
    return (await p.textContent("#attach-note .note-text")) ?? "";
}
