/** Node's worker threads with the interface of browser workers. When run as a worker, this file serves the engine. */
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { serve, type WorkerLike } from "../../web/package/src/rpc.js";
import { Service } from "../../web/package/src/service.js";

type Listener = (event: MessageEvent & ErrorEvent) => void;

/** Tests must terminate it: Node keeps the process alive otherwise. */
export function nodeWorker(script: string | URL = new URL(import.meta.url)): WorkerLike & { thread: Worker } {
    const thread = new Worker(script instanceof URL ? fileURLToPath(script) : script);
    const toEvent = (event: object): MessageEvent & ErrorEvent =>
        ({ preventDefault: () => undefined, ...event }) as unknown as MessageEvent & ErrorEvent;
    return {
        thread,
        postMessage: (message, transfer) => thread.postMessage(message, transfer as never),
        terminate: () => void thread.terminate(),
        addEventListener: (type: string, listener: Listener) => {
            if (type === "message") {
                thread.on("message", (data) => listener(toEvent({ data })));
            } else if (type === "error") {
                thread.on("error", (error) => listener(toEvent({ message: error.message })));
                thread.on("exit", () => listener(toEvent({ message: "it was stopped" })));
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
