/** Files that a user gives to the chat page for a message. */
import type { Page } from "playwright-core";

export interface GivenFile {
    name: string;
    type: string;
    bytes: Buffer;
}

export const file = (name: string, bytes: Buffer, type = name.endsWith("png") ? "image/png" : "audio/wav"): GivenFile => ({ name, type, bytes });

/** By dropping, pasting, or holding over the page. */
export async function give(p: Page, how: "drop" | "paste" | "dragover", files: GivenFile[]): Promise<void> {
    const list = files.map(({ name, type, bytes }) => ({ name, type, base64: bytes.toString("base64") }));
    await p.evaluate(
        ([event, given]) => {
            const data = new DataTransfer();
            for (const { name, type, base64 } of given) {
                data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name, { type }));
            }
            const options = { bubbles: true, cancelable: true };
            (document.activeElement ?? document.body).dispatchEvent(
                event === "paste" ? new ClipboardEvent("paste", { ...options, clipboardData: data }) : new DragEvent(event, { ...options, dataTransfer: data }),
            );
        },
        [how, list] as const,
    );
}

/** Files and folders of the disk, dropped as a person does it, with the browser's own events. */
export async function dropPaths(p: Page, paths: string[]): Promise<void> {
    const session = await p.context().newCDPSession(p);
    const data = { items: [], files: paths, dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const) {
        await session.send("Input.dispatchDragEvent", { type, x: 600, y: 300, data });
    }
    await session.detach();
}

/** Until that many wait to be sent. */
export const attached = (p: Page, n: number): Promise<void> =>
    p.waitForFunction((count) => document.querySelectorAll("#tray .media li").length === count, n).then(() => undefined);

/** What is said about them. */
export async function note(p: Page): Promise<string> {
    await p.waitForSelector("#attach-note:not([hidden])");
    return (await p.textContent("#attach-note .what")) ?? "";
}
