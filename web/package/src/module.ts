/** Loads and compiles the engine's WebAssembly module. */
import { BezelError } from "./errors.js";

export type WasmLocation = string | BufferSource | WebAssembly.Module;

/** Node's fetch does not support file: URLs. */
async function readFileUrl(url: string): Promise<BufferSource> {
    const name = "node:fs/promises"; // in a variable, so that browser bundlers do not try to resolve it
    const { readFile } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
        readFile: (path: URL) => Promise<Uint8Array<ArrayBuffer>>;
    };
    return readFile(new URL(url));
}

async function compileUrl(url: string): Promise<WebAssembly.Module> {
    if (url.startsWith("file:") && !("Deno" in globalThis)) {
        return WebAssembly.compile(await readFileUrl(url));
    }
    const response = await fetch(url);
    if (!response.ok) {
        throw new Error(`the server answered with status ${response.status}`);
    }
    const streams = response.headers.get("Content-Type")?.startsWith("application/wasm");
    return streams ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

export async function compileModule(from: WasmLocation): Promise<WebAssembly.Module> {
    if (from instanceof WebAssembly.Module) {
        return from;
    }
    try {
        return await (typeof from === "string" ? compileUrl(from) : WebAssembly.compile(from));
    } catch (reason) {
        const cause = reason instanceof Error ? reason.message : String(reason);
        const where = typeof from === "string" ? ` from ${from}` : "";
        const memory = reason instanceof RangeError;
        throw new BezelError(
            memory ? "out_of_memory" : "network",
            `The engine could not be loaded${where}: ${cause}. Pass the location of bezel.wasm in the option wasm.`,
            { cause: reason },
        );
    }
}
