/** Runs JavaScript that a model or the user wrote, each piece in a new worker (sandbox_worker.ts), which is ended when
 * it takes too long. */
import type { SandboxAnswer, SandboxRequest } from "./sandbox_types.js";

/** Longer than the interpreter's own limit: for code that does not let it check the time. */
const MAX_MS = 7000;
/** For fetching and compiling the interpreter. */
const MAX_START_MS = 60_000;
const MAX_CODE = 100_000;

/** What the code printed and its last value; rejects with a sentence. */
export function runInSandbox(code: string, input: unknown, signal: AbortSignal): Promise<string> {
    if (code.length > MAX_CODE) {
        return Promise.reject(new Error(`The code is longer than ${MAX_CODE.toLocaleString("en")} characters.`));
    }
    const worker = new Worker(new URL("./sandbox_worker.js", import.meta.url), { type: "module" });
    return new Promise<string>((resolve, reject) => {
        let timer: ReturnType<typeof setTimeout> | undefined;
        const limit = (ms: number, why: string): void => {
            clearTimeout(timer);
            timer = setTimeout(() => end(() => reject(new Error(why))), ms);
        };
        const abort = (): void => end(() => reject(new Error("The code was stopped.")));
        const end = (settle: () => void): void => {
            clearTimeout(timer);
            signal.removeEventListener("abort", abort);
            worker.terminate();
            settle();
        };
        signal.addEventListener("abort", abort);
        limit(MAX_START_MS, "The JavaScript sandbox could not start.");
        worker.onerror = () => end(() => reject(new Error("The JavaScript sandbox could not be fetched, or it ran out of memory.")));
        worker.onmessage = ({ data }: MessageEvent<SandboxAnswer>) => {
            if (data.kind === "started") {
                limit(MAX_MS, `The code took longer than ${MAX_MS / 1000} seconds.`);
                return;
            }
            const printed = data.printed.length > 0 ? `${data.printed.join("\n")}\n` : "";
            if (data.kind === "failed") {
                end(() => reject(new Error(`${printed}${data.message}`)));
            } else {
                end(() => resolve(data.value === null ? printed.trimEnd() || "The code ran and printed nothing." : `${printed}${data.value}`));
            }
        };
        const request: SandboxRequest = { code, input: JSON.stringify(input ?? null) };
        worker.postMessage(request);
    });
}
