/** Benchmarks a large model in Chromium: load time, and memory of the page.
 *
 *   node build/web/js/web/bench/large.js FILE [gpu|gpu-baseline|cpu]
 *
 * The file is passed to the page through a file input. On a machine without a GPU the weights are in the memory of the
 * software adapter's process, which is not measured. Measured are the engine's WebAssembly memory, which never shrinks,
 * and the JavaScript heap and buffers of the worker, sampled repeatedly. */
import { resolve } from "node:path";
import process from "node:process";
import type { CDPSession } from "playwright-core";
import { withBrowser } from "../../tests/browser/browser.js";
import { startServer } from "../../tests/browser/server.js";

const [file, device = "gpu"] = process.argv.slice(2);
if (file === undefined) {
    console.error("usage: node build/web/js/web/bench/large.js FILE [gpu|gpu-baseline|cpu]");
    process.exit(2);
}

const WASM_LIMIT = 64e6;
const JS_LIMIT = 150e6;

/** The page, and the engine's worker with access to the engine's memory. */
const scripts: Record<string, string> = {
    "/": '<!doctype html><title>large</title><input type="file"><script type="module">import * as b from "/bezel/index.js"; globalThis.bezel = b;</script>',
    "/watched/worker.js": 'import "/watched/watch.js"; import "/bezel/worker.js";',
    "/watched/watch.js": `const real = WebAssembly.instantiate;
        WebAssembly.instantiate = async (...all) => {
            const made = await real(...all);
            globalThis.engineMemory = (made.instance ?? made).exports.memory ?? all[1].env.memory;
            return made;
        };`,
};

const server = await startServer({
    isolated: true,
    mounts: [["/bezel", "build/web/package/dist"]],
    intercept: (request, response) => {
        const text = scripts[request.url ?? ""];
        if (text === undefined) {
            return false;
        }
        response.writeHead(200, { "Content-Type": request.url === "/" ? "text/html" : "text/javascript" }).end(text);
        return true;
    },
});

interface Sample {
    wasm: number;
    heap: number;
    buffers: number;
}

/** Sends protocol commands to workers, which Playwright's sessions do not reach directly. */
class Workers {
    readonly #session: CDPSession;
    readonly #waiting = new Map<number, (result: unknown) => void>();
    readonly #sessions = new Set<string>();
    #next = 1;

    private constructor(session: CDPSession) {
        this.#session = session;
        session.on("Target.attachedToTarget", ({ sessionId }) => this.#sessions.add(sessionId));
        session.on("Target.detachedFromTarget", ({ sessionId }) => this.#sessions.delete(sessionId));
        session.on("Target.receivedMessageFromTarget", ({ message }) => {
            const { id, result } = JSON.parse(message) as { id?: number; result?: unknown };
            this.#waiting.get(id ?? 0)?.(result);
            this.#waiting.delete(id ?? 0);
        });
    }

    static async watch(session: CDPSession): Promise<Workers> {
        const workers = new Workers(session);
        await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
        return workers;
    }

    async #send<T>(sessionId: string, method: string, params: object): Promise<T | null> {
        const id = this.#next++;
        const answer = new Promise<T | null>((done) => {
            this.#waiting.set(id, (result) => done(result as T));
            setTimeout(() => done(null), 20_000); // the worker is busy
        });
        try {
            await this.#session.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify({ id, method, params }) });
        } catch {
            this.#sessions.delete(sessionId); // the worker has ended
            return null;
        }
        return answer;
    }

    async sample(): Promise<Sample | null> {
        const sum: Sample = { wasm: 0, heap: 0, buffers: 0 };
        for (const session of this.#sessions) {
            const usage = await this.#send<{ usedSize: number; backingStorageSize: number }>(session, "Runtime.getHeapUsage", {});
            const expression = "globalThis.engineMemory ? engineMemory.buffer.byteLength : 0";
            const memory = await this.#send<{ result: { value: number } }>(session, "Runtime.evaluate", { expression });
            if (!usage || !memory) {
                return null;
            }
            sum.wasm += memory.result.value;
            sum.heap += usage.usedSize;
            sum.buffers += Math.max(0, usage.backingStorageSize - memory.result.value);
        }
        return sum;
    }
}

await withBrowser({}, async ({ context, page }) => {
    page.setDefaultTimeout(0);
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => "bezel" in globalThis);
    const session = await context.newCDPSession(page);
    const workers = await Workers.watch(session);
    await page.setInputFiles("input", resolve(file));
    const peak: Sample = { wasm: 0, heap: 0, buffers: 0 };
    let samples = 0;
    let done = false;
    const watching = (async () => {
        while (!done) {
            const now = await workers.sample();
            if (now) {
                samples++;
                peak.wasm = Math.max(peak.wasm, now.wasm);
                peak.heap = Math.max(peak.heap, now.heap);
                peak.buffers = Math.max(peak.buffers, now.buffers);
            }
            await new Promise((next) => setTimeout(next, 50));
        }
    })();
    const got = await page.evaluate(async (on) => {
        const [chosen] = (document.querySelector("input") as HTMLInputElement).files ?? [];
        const context = (await bezel.Bezel.inspect(chosen as File)).model?.context ?? 0;
        const began = performance.now();
        let weights = 0;
        const model = await bezel.Bezel.load(chosen as File, {
            device: on as "gpu",
            contextLength: Math.min(4096, context),
            worker: () => new Worker("/watched/worker.js", { type: "module" }),
            onProgress: ({ stage, done: part, total }) => {
                if (stage === "weights" && part === total) {
                    weights = performance.now() - began;
                }
            },
        });
        const loaded = performance.now() - began;
        const request = { messages: [{ role: "user" as const, content: "Hi" }], max_tokens: 2, temperature: 0 };
        const { usage, timings } = await model.chat.completions.create(request);
        const { info } = model;
        (globalThis as { kept?: unknown }).kept = model; // keep it alive until it has been measured
        return { info, weights, loaded, usage, timings };
    }, device);
    const last = await workers.sample();
    done = true;
    await watching;
    const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
    peak.wasm = Math.max(peak.wasm, last?.wasm ?? Infinity);
    console.log(`${got.info.name}: ${(got.info.bytes / 1e9).toFixed(2)} GB on ${got.info.deviceName} (${got.info.device})`);
    console.log(`weights loaded after ${(got.weights / 1000).toFixed(1)} s, ready after ${(got.loaded / 1000).toFixed(1)} s`);
    console.log(`prompt of ${got.timings.prompt_n} tokens ${(got.timings.prompt_ms / 1000).toFixed(1)} s, ${got.timings.predicted_n} tokens ${(got.timings.predicted_ms / 1000).toFixed(1)} s`);
    console.log(`peak of ${samples} samples: WebAssembly ${mb(peak.wasm)}, JavaScript heap ${mb(peak.heap)}, JavaScript buffers ${mb(peak.buffers)}`);
    const good = peak.wasm < WASM_LIMIT && peak.heap + peak.buffers < JS_LIMIT && samples > 3;
    console.log(good || device === "cpu" ? "within the limits" : `exceeds the limits: ${mb(WASM_LIMIT)} of WebAssembly, ${mb(JS_LIMIT)} of JavaScript`);
    process.exitCode = good || device === "cpu" ? 0 : 1;
});
await server.close();
