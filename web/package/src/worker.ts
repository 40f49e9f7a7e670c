/** The worker's script: runs the engine, or one of its threads. */
import { serve, type WorkerScope } from "./rpc.js";
import { Service } from "./service.js";
import { serveThread, THREAD } from "./threads.js";

const scope = globalThis as unknown as WorkerScope & { name: string; location: Location };

if (scope.name === THREAD) {
    serveThread(scope);
} else {
    // Threads run this same script, wherever a bundler has put it.
    const makeThread = (): Worker => new Worker(scope.location.href, { type: "module", name: THREAD });
    serve(scope, new Service(typeof Worker === "undefined" ? {} : { makeThread }).handlers);
}
