/** The hosts that the tests run on: Node with Dawn, Deno with wgpu. */
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

/** navigator.gpu; in Node from the package `webgpu`, with Dawn's flags. */
export async function gpuEntry(flags: string[] = []): Promise<GPU> {
    if (isDeno) {
        return navigator.gpu;
    }
    const name = "webgpu"; // in a variable, because it is installed only for tests
    const { create, globals } = (await import(name)) as { create: (flags: string[]) => GPU; globals: object };
    Object.assign(globalThis, globals);
    return create(flags);
}

export const programArguments = process.argv.slice(2);
export const quick = Boolean(process.env["BEZEL_QUICK"]);

/** Required at the end: Dawn's threads keep the process alive. */
export function exit(code: number): never {
    process.exit(code);
}
