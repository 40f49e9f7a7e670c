/** The worker's script: runs the engine, or one of its threads. */
import { serve, type WorkerScope } from "./rpc.js";
import { Service } from "./service.js";
import { serveThread, THREAD } from "./threads.js";

const scope = globalThis as unknown as WorkerScope & { name: string; location: Location; importScripts(url: string): void };

/** Some bundlers make a classic script of this one, which cannot be loaded as a module. Only modules may import no scripts
 * at all; Firefox says so for an address only, so here is one that no classic script can load either. */
function isModule(): boolean {
    try {
        scope.importScripts("https://:");
        return false;
    } catch (reason) {
        return reason instanceof TypeError;
    }
}

if (scope.name === THREAD) {
    serveThread(scope);
} else {
    // Threads run this same script, wherever a bundler has put it.
    const makeThread = (): Worker => new Worker(scope.location.href, { type: isModule() ? "module" : "classic", name: THREAD });
    serve(scope, new Service(typeof Worker === "undefined" ? {} : { makeThread }).handlers);
}
