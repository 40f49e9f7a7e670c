/** The published package in a browser: workers, files, URLs, the browser's storage, and their failures. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { check, checkEqual, maxDifference, test } from "../web/check.js";
import { Golden, goldenFolder } from "../web/golden.js";
import { chromiumOnly, end, inFirefox, quick, withBrowser, type Browser } from "./browser.js";
import { until } from "./page.js";
import { startServer, type ServerOptions } from "./server.js";

type Package = typeof import("../../web/package/src/index.js");

/** Code that runs in the page accesses the package by this name. */
declare global {
    // eslint-disable-next-line no-var
    var bezel: Package;
}

const blank = '<!doctype html><title>blank</title><script type="module">import * as b from "/bezel/index.js"; globalThis.bezel = b;</script>';

/** A worker whose threads trap on their first work. */
const crashing: Record<string, string> = {
    "/crashing/worker.js": 'import "/crashing/threads.js"; import "/bezel/worker.js";',
    "/crashing/threads.js": `const Real = WebAssembly.Instance;
        WebAssembly.Instance = function (module, imports) {
            const { exports } = new Real(module, imports);
            const thread_main = (thread) => {
                Atomics.wait(new Int32Array(imports.env.memory.buffer), thread / 4, 0);
                throw new WebAssembly.RuntimeError("unreachable");
            };
            return { exports: { ...exports, thread_main } };
        };`,
};

const site: ServerOptions = {
    mounts: [["/bezel", "build/web/package/dist"], ["/models", "build/models"], ["/golden", goldenFolder]],
    intercept: (request, response) => {
        const text = request.url === "/" ? blank : crashing[request.url ?? ""];
        if (text === undefined) {
            return false;
        }
        response.writeHead(200, { "Content-Type": text === blank ? "text/html" : "text/javascript" }).end(text);
        return true;
    },
};
const server = await startServer(site);
const isolated = await startServer({ ...site, isolated: true });
const otherOrigin = await startServer({ mounts: [["/models", "build/models"]] });

async function open({ page }: Browser): Promise<void> {
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => "bezel" in globalThis);
}

const golden = await Golden.open(`${goldenFolder}/e-like/golden.gguf`);
const ids = [...(golden.ints("text.2.tokens") as Int32Array)];
const digest = createHash("sha256").update(await readFile("build/models/nano-e-q8_0.gguf")).digest("hex");

/** Compares logits with the official implementation's, through the package and a worker. */
async function goldenLogits(page: Page, device: "gpu" | "gpu-baseline" | "cpu"): Promise<void> {
    const got = await page.evaluate(
        async ([on, tokens]) => {
            const stages = new Set<string>();
            const model = await bezel.Bezel.load("/golden/e-like/text.gguf", {
                device: on,
                onProgress: ({ stage }) => stages.add(stage),
                session: { exact: true },
            });
            const session = await model.newSession({ exact: true });
            await session.prefill(tokens);
            const logits = [...((await session.logits()) ?? [])];
            model.close();
            return { logits, device: model.device, notice: model.notice, stages: [...stages] };
        },
        [device, ids] as const,
    );
    const want = golden.floats("text.2.logits").slice(-got.logits.length);
    const off = Math.max(...got.logits.map((x, i) => Math.abs(x - (want[i] ?? NaN))));
    check(off <= 1e-3 && got.logits.length > 100, `${got.logits.length} logits off by ${off}`);
    checkEqual([got.device, got.notice], [device, null], "device");
    check(got.stages.includes("compile") === (device !== "cpu"), String(got.stages));
}

await withBrowser({}, async (browser) => {
    const { page } = browser;
    await open(browser);

    for (const device of inFirefox ? (["cpu"] as const) : (["gpu", "gpu-baseline", "cpu"] as const)) {
        await test(`golden logits in a worker on the ${device}`, () => goldenLogits(page, device));
    }

    await test("a chat in a worker, from a File, streams, reuses the conversation and follows a schema", async () => {
        const got = await page.evaluate(async (device) => {
            const file = new File([await (await fetch("/models/nano-e-q8_0.gguf")).blob()], "chosen.gguf");
            // exact: its kernels compile faster on a software adapter
            const model = await bezel.Bezel.load(file, { device, session: { exact: true }, contextLength: 512 });
            const messages: { role: "user" | "assistant"; content: string }[] = [{ role: "user", content: "Name three gems. ".repeat(9) }];
            let text = "";
            let last;
            for await (const chunk of await model.chat.completions.create({ messages, stream: true, max_tokens: 12, seed: 1 })) {
                text += chunk.choices[0]?.delta.content ?? "";
                last = chunk;
            }
            messages.push({ role: "assistant", content: text }, { role: "user", content: "More." });
            const second = await model.chat.completions.create({ messages, max_tokens: 2, temperature: 0 });
            // An answer that follows a schema; it runs ahead of the page, which confirms each token.
            const schema = {
                type: "object",
                properties: { kind: { enum: ["gem", "stone"] }, hardness: { type: "integer", minimum: 1, maximum: 10 } },
                required: ["kind", "hardness"],
                additionalProperties: false,
            };
            const response_format = { type: "json_schema" as const, json_schema: { schema } };
            const third = await model.chat.completions.create({ messages: messages.slice(0, 1), response_format, max_tokens: 60, seed: 2 });
            model.close();
            return { name: model.name, text, first: last?.usage, second: second.usage, third: third.choices[0] };
        }, inFirefox ? ("cpu" as const) : ("gpu" as const));
        checkEqual([got.name, got.first?.completion_tokens], ["chosen", 12], "answer");
        check(got.text.length > 3, got.text);
        check(got.second.prompt_tokens_details.cached_tokens >= (got.first?.prompt_tokens ?? 1e9) - 8, JSON.stringify(got.second));
        const stone = JSON.parse(got.third.message.content ?? "") as { kind: string; hardness: number };
        check(got.third.finish_reason === "stop" && ["gem", "stone"].includes(stone.kind) && stone.hardness >= 1 && stone.hardness <= 10, JSON.stringify(got.third));
    });

    await test("a model is downloaded, survives a reload, is loaded from storage and removed", async () => {
        const stored = await page.evaluate(async (sha256) => {
            const stages = new Set<string>();
            const { size } = await bezel.Bezel.download("/models/nano-e-q8_0.gguf", {
                name: "kept.gguf",
                sha256,
                onProgress: ({ stage }) => stages.add(stage),
            });
            return { size, stages: [...stages] };
        }, digest);
        check(stored.size > 1e5, `${stored.size} bytes`);
        checkEqual(stored.stages, ["download", "verify"], "stages");
        await page.reload();
        await page.waitForFunction(() => "bezel" in globalThis);
        const before = server.requests.length;
        const got = await page.evaluate(async () => {
            const names = (await bezel.Bezel.models()).map(({ name }) => name);
            const model = await bezel.Bezel.load("opfs:kept.gguf", { device: "cpu" });
            const tokens = (await model.tokenize("x")).length;
            model.close();
            await bezel.Bezel.remove("kept.gguf");
            return { names, tokens, after: (await bezel.Bezel.models()).length };
        });
        checkEqual([got.names, got.tokens, got.after], [["kept.gguf"], 1, 0], "store");
        check(server.requests.slice(before).every((line) => !line.includes("/models/")), "the model was not fetched again");
    });

    await test("a cancelled download is resumed, and is not listed as a model before it is complete", async () => {
        server.modelRate = 200_000;
        const first = await page.evaluate(async () => {
            const control = new AbortController();
            let done = 0;
            const onProgress = (p: { done: number }): void => {
                done = p.done;
                if (done > 60_000) {
                    control.abort();
                }
            };
            const failed = await bezel.Bezel.download("/models/nano-e-q8_0.gguf", { signal: control.signal, onProgress }).catch(
                (e: unknown) => e,
            );
            return { code: (failed as InstanceType<Package["BezelError"]>).code, models: (await bezel.Bezel.models()).length, done };
        });
        server.modelRate = 0;
        checkEqual([first.code, first.models], ["aborted", 0], "cancelled");
        const second = await page.evaluate(async (sha256) => {
            let begin = -1;
            await bezel.Bezel.download("/models/nano-e-q8_0.gguf", { sha256, onProgress: ({ done }) => (begin = begin < 0 ? done : begin) });
            const models = (await bezel.Bezel.models()).length;
            await bezel.Bezel.remove("nano-e-q8_0.gguf");
            return { begin, models };
        }, digest);
        check(second.begin >= 60_000 && second.models === 1, JSON.stringify(second));
    });

    await test("a load is cancelled while it receives bytes", async () => {
        server.modelRate = 50_000;
        const before = server.modelBytes;
        const loading = page.evaluate(async () => {
            const control = new AbortController();
            Object.assign(globalThis, { cancel: () => control.abort() });
            // The query string bypasses the browser's cache.
            const failed = await bezel.Bezel.load("/models/nano-e-q8_0.gguf?slow", { device: "cpu", signal: control.signal }).catch((e: unknown) => e);
            return (failed as InstanceType<Package["BezelError"]>).code;
        });
        await until(page, () => Promise.resolve(server.modelBytes > before + 20_000));
        await page.evaluate(() => (globalThis as unknown as { cancel: () => void }).cancel());
        checkEqual(await loading, "aborted", "code");
        server.modelRate = 0;
    });

    await test("killing the worker rejects calls in flight, and a model can be loaded again", async () => {
        const got = await page.evaluate(async () => {
            let worker: Worker | undefined;
            const make = (): Worker => (worker = new Worker("/bezel/worker.js", { type: "module" }));
            const options = { device: "cpu", worker: make, wasm: "/bezel/bezel.wasm" } as const;
            const model = await bezel.Bezel.load("/models/nano-e-q8_0.gguf", options);
            const endless = { messages: [{ role: "user" as const, content: "Go on" }], logit_bias: { "106": -100, "1": -100 } };
            const stream = await model.chat.completions.create({ ...endless, stream: true });
            await stream.next();
            const pending = model.chat.completions.create(endless).catch((e: unknown) => e);
            worker?.terminate();
            const error = (await pending) as InstanceType<Package["BezelError"]>;
            const again = await bezel.Bezel.load("/models/nano-e-q8_0.gguf", options);
            const tokens = (await again.tokenize("x")).length;
            again.close();
            return { code: error.code, message: error.message, tokens };
        });
        checkEqual([got.code, got.tokens], ["device_lost", 1], got.message);
    });

    await test("a missing worker script, and a missing wasm module", async () => {
        const codes = await page.evaluate(async () => {
            const code = async (options: object): Promise<string> => {
                const failed = await bezel.Bezel.load("/models/nano-e-q8_0.gguf", options).catch((e: unknown) => e);
                const { code: name, message } = failed as InstanceType<Package["BezelError"]>;
                return `${name}: ${message}`;
            };
            return [await code({ worker: () => new Worker("/nowhere.js", { type: "module" }) }), await code({ wasm: "/nowhere.wasm" })];
        });
        check(/^network: The worker could not start/.test(codes[0] ?? ""), String(codes[0]));
        check(/^network: The engine could not be loaded.*404/.test(codes[1] ?? ""), String(codes[1]));
    });

    await test("a missing CORS header is reported as the cause", async () => {
        const error = await page.evaluate(async (url) => {
            const failed = await bezel.Bezel.load(url, { device: "cpu" }).catch((e: unknown) => e);
            const { code, message } = failed as InstanceType<Package["BezelError"]>;
            return { code, message };
        }, `${otherOrigin.url}/models/nano-e-q8_0.gguf`);
        check(error.code === "network" && /CORS/.test(error.message), error.message);
    });

    await chromiumOnly(test)("a lost device is replaced, and the weights are read again", async () => {
        const got = await page.evaluate(async () => {
            const devices: GPUDevice[] = [];
            const gpu = {
                requestAdapter: async (options?: GPURequestAdapterOptions) => {
                    const adapter = await navigator.gpu.requestAdapter(options);
                    const request = adapter?.requestDevice.bind(adapter);
                    if (adapter && request) {
                        adapter.requestDevice = async (descriptor) => {
                            const device = await request(descriptor);
                            devices.push(device);
                            return device;
                        };
                    }
                    return adapter;
                },
            } as GPU;
            const model = await bezel.Bezel.load("/models/nano-e-q8_0.gguf", { device: "gpu", worker: false, gpu, session: { exact: true }, contextLength: 512 });
            const request = { messages: [{ role: "user" as const, content: "Go on" }], max_tokens: 6, temperature: 0 };
            const want = (await model.chat.completions.create(request)).choices[0].message.content;
            devices.at(-1)?.destroy();
            const after = await model.chat.completions.create(request).catch((e: unknown) => e);
            model.close();
            const failed = after instanceof bezel.BezelError ? after.code : null;
            const text = after instanceof bezel.BezelError ? null : (after as { choices: { message: { content: string } }[] }).choices[0]?.message.content;
            return { want, failed, text, devices: devices.length };
        });
        checkEqual([got.failed, got.text, got.devices], [null, got.want, 2], "the same answer from a second device");
    });

    await test("capabilities of this browser", async () => {
        const can = await page.evaluate(() => bezel.Bezel.capabilities());
        checkEqual([can.webgpu, can.simd, can.workers, can.opfs, can.threads], [!inFirefox, true, true, true, false], "capabilities");
        check((inFirefox || (can.adapter?.maxBufferSize ?? 0) > 1e8) && (can.storage?.quota ?? 0) > 1e8, JSON.stringify(can));
    });
});

await withBrowser({ adapter: "swiftshader" }, async (browser) => {
    await open(browser);
    for (const device of quick ? (["gpu"] as const) : (["gpu", "gpu-baseline"] as const)) {
        await chromiumOnly(test)(`golden logits in a worker on SwiftShader's ${device}, without f16`, () => goldenLogits(browser.page, device));
    }
});

/** Results in a browser without WebGPU. */
interface OnCpu {
    device: string;
    notice: string | null;
    threads: number;
    text: string | null;
    logits: number[];
    same: boolean;
    cores: number;
}

/** A chat and four prefills, to be compared between numbers of threads. */
async function onCpu({ page }: Browser, options: { threads?: number }): Promise<OnCpu> {
    return page.evaluate(async (more) => {
        const model = await bezel.Bezel.load("/models/tiny-e-q8_0.gguf", more);
        const request = { messages: [{ role: "user" as const, content: "Name three gems." }], max_tokens: 16, temperature: 0 };
        const text = (await model.chat.completions.create(request)).choices[0].message.content;
        // Each session has its own threads; those of a freed session are reused.
        const tokens = await model.tokenize("A gem is a stone. ".repeat(20), { bos: true });
        const all: (number[] | null)[] = [];
        for (let i = 0; i < 2; i++) {
            const pair = [await model.newSession(), await model.newSession()];
            for (const session of pair) {
                await session.prefill(tokens);
                all.push([...((await session.logits()) ?? [])]);
            }
            await Promise.all(pair.map((session) => session.free()));
        }
        const { device, notice, threads } = model.info;
        model.close();
        const same = all.every((logits) => JSON.stringify(logits) === JSON.stringify(all[0]));
        return { device, notice, threads, text, logits: all[0] ?? [], same, cores: navigator.hardwareConcurrency };
    }, options);
}

await withBrowser({ adapter: "none" }, async (browser) => {
    await open(browser);
    const single = await onCpu(browser, {});
    await test("a browser without WebGPU runs on the CPU, with a notice that mentions the single core", () => {
        checkEqual([single.device, single.threads, single.same], ["cpu", 1, true], "device");
        check(/CPU/.test(single.notice ?? "") && /COOP/.test(single.notice ?? ""), String(single.notice));
    });
    await browser.page.goto(`${isolated.url}/`);
    await browser.page.waitForFunction(() => "bezel" in globalThis);
    await test("an isolated page uses threads, with bit-equal results", async () => {
        check((await browser.page.evaluate(() => bezel.Bezel.capabilities())).threads, "capabilities");
        for (const threads of [undefined, 2, 3, 7]) {
            const got = await onCpu(browser, threads === undefined ? {} : { threads });
            checkEqual([got.device, got.threads, got.same], ["cpu", threads ?? Math.min(16, got.cores), true], "threads");
            check(/CPU/.test(got.notice ?? "") && !/COOP/.test(got.notice ?? ""), String(got.notice));
            checkEqual(got.text, single.text, "same text as with one thread");
            check(maxDifference(Float32Array.from(got.logits), Float32Array.from(single.logits)) === 0, "same logits");
        }
        check(isolated.requests.some((line) => line.includes("bezel-mt.wasm")), "the threaded module is loaded");
        check(!server.requests.some((line) => line.includes("bezel-mt.wasm")), "and not on the other page");
    });
    await test("a crashing thread ends the engine with an error", async () => {
        const got = await browser.page.evaluate(async () => {
            const model = await bezel.Bezel.load("/models/nano-e-q8_0.gguf", {
                device: "cpu",
                threads: 2,
                worker: () => new Worker("/crashing/worker.js", { type: "module" }),
            });
            const request = { messages: [{ role: "user" as const, content: "Name three gems." }], max_tokens: 4 };
            const failed = await model.chat.completions.create(request).catch((e: unknown) => e);
            model.close();
            const { code, message } = failed as InstanceType<Package["BezelError"]>;
            return { code, message, threads: model.info.threads };
        });
        checkEqual([got.code, got.threads], ["device_lost", 2], got.message);
    });
    await test("a model that is too large for the CPU is refused", async () => {
        const got = await browser.page.evaluate(async () => {
            const read = (): Promise<never> => Promise.reject(new Error("must not be read"));
            const failed = await bezel.Bezel.load({ name: "large.gguf", size: 17e9, read }).catch((e: unknown) => e);
            const { code, message } = failed as InstanceType<Package["BezelError"]>;
            return { code, message };
        });
        check(got.code === "out_of_memory" && /17\.0 GB.*3\.5 GB.*WebGPU/.test(got.message), `${got.code}: ${got.message}`);
    });
});

await end(server, isolated, otherOrigin);
