/** The two hosts that the tests run on: Node with Dawn, Deno with wgpu. */
import { readFile } from "node:fs/promises";
import process from "node:process";
import type { FileSource } from "../../web/package/src/node.js";

export const isDeno = "Deno" in globalThis;
export const hostName = isDeno ? "deno" : "node";

export async function fileSource(path: string): Promise<FileSource> {
    const { fileSource: open } = isDeno
        ? await import("../../web/package/src/deno.js")
        : await import("../../web/package/src/node.js");
    return open(path);
}

export async function readBytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await readFile(path));
}

/** navigator.gpu, which Node takes from the package `webgpu`; its flags are Dawn's. */
export async function gpuEntry(flags: string[] = []): Promise<GPU> {
    if (isDeno) {
        return navigator.gpu;
    }
    const name = "webgpu"; // by a variable: it is there only where tests run
    const { create, globals } = (await import(name)) as { create: (flags: string[]) => GPU; globals: object };
    Object.assign(globalThis, globals);
    return create(flags);
}

export const programArguments = process.argv.slice(2);
export const quick = Boolean(process.env["BEZEL_QUICK"]);

/** Dawn keeps threads of its own, so a program says when it is over. */
export function exit(code: number): never {
    process.exit(code);
}
