/** Node's worker threads in the clothes of a browser's workers; run as a worker, the engine itself. */
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { serve, type WorkerLike } from "../../web/package/src/rpc.js";
import { Service } from "../../web/package/src/service.js";

type Listener = (event: MessageEvent & ErrorEvent) => void;

/** Node keeps a process alive for each, so tests terminate them. */
export function nodeWorker(script: string | URL = new URL(import.meta.url)): WorkerLike & { thread: Worker } {
    const thread = new Worker(script instanceof URL ? fileURLToPath(script) : script);
    const told = (event: object): MessageEvent & ErrorEvent =>
        ({ preventDefault: () => undefined, ...event }) as unknown as MessageEvent & ErrorEvent;
    return {
        thread,
        postMessage: (message, transfer) => thread.postMessage(message, transfer as never),
        terminate: () => void thread.terminate(),
        addEventListener: (type: string, listener: Listener) => {
            if (type === "message") {
                thread.on("message", (data) => listener(told({ data })));
            } else if (type === "error") {
                thread.on("error", (error) => listener(told({ message: error.message })));
                thread.on("exit", () => listener(told({ message: "it was stopped" })));
            }
        },
    };
}

if (!isMainThread && parentPort) {
    const port = parentPort;
    serve(
        {
            postMessage: (message, transfer) => port.postMessage(message, transfer as never),
            close: () => port.close(),
            addEventListener: (_, listener) => port.on("message", (data) => listener({ data } as MessageEvent)),
        },
        new Service({ gpu: null }).handlers,
    );
}
