/** Runs a piece of JavaScript in an interpreter (QuickJS in WebAssembly) inside a worker of its own. The code sees the
 * language, console.log and its input: no network, no page, no storage, as none of that exists in the interpreter. */
import variant from "@jitl/quickjs-wasmfile-release-sync";
import { newQuickJSWASMModuleFromVariant, newVariant, type QuickJSContext, type QuickJSHandle } from "quickjs-emscripten-core";
import type { SandboxAnswer, SandboxRequest } from "./sandbox_types.js";

const MAX_MEMORY = 64 * 2 ** 20;
const MAX_STACK = 512 * 1024;
/** The page ends the worker too, if this does not. */
const MAX_MS = 5000;
const MAX_JOBS = 100_000;
const MAX_LINES = 200;
const MAX_CHARACTERS = 20_000;

const scope = globalThis as unknown as { onmessage: (event: MessageEvent<SandboxRequest>) => void; postMessage(answer: SandboxAnswer): void };

/** A value as a person writes it: JSON for objects, words for what JSON does not have. */
function readable(context: QuickJSContext, handle: QuickJSHandle): string {
    const kind = context.typeof(handle);
    if (kind === "string") {
        return context.getString(handle);
    }
    if (kind === "object") {
        const text = context.evalCode("(value) => value instanceof Error ? String(value) : JSON.stringify(value, (_, one) => typeof one === 'bigint' ? String(one) : one instanceof Map ? Object.fromEntries(one) : one instanceof Set ? [...one] : one)");
        if (!text.error) {
            const result = context.callFunction(text.value, context.undefined, handle);
            text.value.dispose();
            if (!result.error) {
                const shown = context.getString(result.value);
                result.value.dispose();
                return shown;
            }
            result.error.dispose();
        }
        return "[object]";
    }
    return kind === "undefined" ? "undefined" : kind === "function" ? "[function]" : context.getString(context.newString(String(context.dump(handle))));
}

function errorText(context: QuickJSContext, handle: QuickJSHandle): string {
    const value: unknown = context.dump(handle);
    const { name, message } = (typeof value === "object" && value !== null ? value : {}) as { name?: unknown; message?: unknown };
    const text = message === undefined ? String(value) : `${typeof name === "string" ? name : "Error"}: ${String(message)}`;
    return text === "InternalError: interrupted" ? `The code took longer than ${MAX_MS / 1000} seconds.` : text;
}

async function run({ code, input }: SandboxRequest): Promise<SandboxAnswer> {
    // Not compileStreaming, which refuses files that a server gives another type.
    const wasm = await WebAssembly.compile(await (await fetch(new URL("./quickjs.wasm", import.meta.url))).arrayBuffer());
    const quickjs = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmModule: wasm }));
    const runtime = quickjs.newRuntime();
    runtime.setMemoryLimit(MAX_MEMORY);
    runtime.setMaxStackSize(MAX_STACK);
    const context = runtime.newContext();
    const printed: string[] = [];
    let characters = 0;
    const log = context.newFunction("log", (...values) => {
        const line = values.map((value) => readable(context, value)).join(" ");
        characters += line.length;
        if (printed.length < MAX_LINES && characters <= MAX_CHARACTERS) {
            printed.push(line);
        }
    });
    const console = context.newObject();
    for (const name of ["log", "info", "warn", "error"]) {
        context.setProp(console, name, log);
    }
    context.setProp(context.global, "console", console);
    context.setProp(context.global, "inputText", context.newString(input));
    context.unwrapResult(context.evalCode("globalThis.input = JSON.parse(inputText); delete globalThis.inputText")).dispose();

    scope.postMessage({ kind: "started" });
    const end = Date.now() + MAX_MS;
    runtime.setInterruptHandler(() => Date.now() > end);
    const evaluated = context.evalCode(code, "code.js");
    if (evaluated.error) {
        return { kind: "failed", printed, message: errorText(context, evaluated.error) };
    }
    const jobs = runtime.executePendingJobs(MAX_JOBS);
    if (jobs.error) {
        return { kind: "failed", printed, message: errorText(context, jobs.error) };
    }
    const state = context.getPromiseState(evaluated.value);
    if (state.type === "rejected") {
        return { kind: "failed", printed, message: errorText(context, state.error) };
    }
    if (state.type === "pending") {
        return { kind: "failed", printed, message: "The code waits for something that never happens: there are no timers and no network here." };
    }
    const value = readable(context, state.value).slice(0, MAX_CHARACTERS);
    return { kind: "done", printed, value: value === "undefined" ? null : value };
}

scope.onmessage = ({ data }) => {
    run(data).then(
        (answer) => scope.postMessage(answer),
        (reason: unknown) => scope.postMessage({ kind: "failed", printed: [], message: reason instanceof Error ? reason.message : String(reason) }),
    );
};
