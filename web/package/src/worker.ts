/** The worker's script: runs the engine, or one of its threads. */
import { serve, type WorkerScope } from "./rpc.js";
import { Service } from "./service.js";
import { serveThread, THREAD } from "./threads.js";

const scope = globalThis as unknown as WorkerScope & { name: string; location: Location; importScripts(): void };

/** Some bundlers make a classic script of this one, which cannot be loaded as a module. */
function isModule(): boolean {
    try {
        scope.importScripts();
        return false;
    } catch {
        return true;
    }
}

if (scope.name === THREAD) {
    serveThread(scope);
} else {
    // Threads run this same script, wherever a bundler has put it.
    const makeThread = (): Worker => new Worker(scope.location.href, { type: isModule() ? "module" : "classic", name: THREAD });
    serve(scope, new Service(typeof Worker === "undefined" ? {} : { makeThread }).handlers);
}
