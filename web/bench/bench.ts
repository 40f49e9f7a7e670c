/** Benchmarks a model in Node: speed, GPU work per token, memory.
 *
 *   sh tools/gpu-env.sh node build/web/js/web/bench/bench.js FILE.gguf [-p PROMPT] [-n TOKENS] [--cpu | --baseline]
 *                                                             [--open] [--kernels]
 *
 * -p, -n: tokens of the prompt (128) and of the answer (32). --open: only open the file.
 * --kernels: the time of each kernel of a decode step. */
import process from "node:process";
import { parseArgs } from "node:util";
import { Engine, type DeviceCounts, type Session } from "../package/src/index.js";
import { exit, fileSource, gpuEntry, hostName, readBytes } from "../../tests/web/platform.js";

const { values, positionals } = parseArgs({
    args: process.argv.slice(2),
    allowPositionals: true,
    options: {
        prompt: { type: "string", short: "p", default: "128" },
        tokens: { type: "string", short: "n", default: "32" },
        context: { type: "string", short: "c" },
        cpu: { type: "boolean", default: false },
        baseline: { type: "boolean", default: false },
        open: { type: "boolean", default: false },
        kernels: { type: "boolean", default: false },
    },
});
const [path] = positionals;
if (!path) {
    console.error(
        "bench.js FILE.gguf [-p PROMPT] [-n TOKENS] [-c CONTEXT] [--cpu | --baseline] [--open] [--kernels]",
    );
    exit(2);
}

const print = (label: string, value: string): void => console.log(`${label.padEnd(22)} ${value}`);
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

function perToken(before: DeviceCounts, after: DeviceCounts, n: number): string {
    const each = (key: keyof DeviceCounts): string => ((after[key] - before[key]) / n).toFixed(1);
    return (
        `${each("dispatches")} dispatches, ${each("submits")} submits, ` +
        `${each("readBytes")} bytes read, ${each("writtenBytes")} bytes written`
    );
}

/** Prints the kernels of all dispatch lists, by label, slowest first. */
async function printKernels(engine: Engine): Promise<void> {
    for (const list of engine.gpu.lists) {
        const sums = new Map<string, { n: number; ns: number }>();
        for (const { label, ns } of await list.device.time(list)) {
            const sum = sums.get(label) ?? { n: 0, ns: 0 };
            sums.set(label, { n: sum.n + 1, ns: sum.ns + ns });
        }
        console.log(`list of ${list.dispatches.length} dispatches`);
        for (const [label, { n, ns }] of [...sums].sort(([, a], [, b]) => b.ns - a.ns)) {
            print(`  ${label}`, `${n} x, ${(ns / 1e3).toFixed(0)} us`);
        }
    }
}

async function measure(engine: Engine, session: Session, vocab: number): Promise<void> {
    const [prompt, tokens] = [Number(values.prompt), Number(values.tokens)];
    const ids = Int32Array.from({ length: prompt }, (_, i) => (i ? 500 + ((i * 7919) % (vocab - 500)) : 2));
    await session.prefill(ids.subarray(0, 1)); // compiles the kernels for decoding
    let began = performance.now();
    await session.prefill(ids);
    let seconds = (performance.now() - began) / 1e3;
    print("prefill, first", `${((prompt - 1) / seconds).toFixed(1)} tokens/s, including kernel compilation`);
    await session.prefill(ids.subarray(0, 1));
    ids.set(ids.map((id) => (id === 2 ? 2 : id - 1)));
    began = performance.now();
    await session.prefill(ids);
    seconds = (performance.now() - began) / 1e3;
    print("prefill", `${(prompt / seconds).toFixed(1)} tokens/s`);

    const before = { ...engine.counts };
    const start = session.stats.position;
    let [n, first, last] = [0, 0, 0];
    for await (const { token } of session.generate({ greedy: true, ignoreEnd: true, maxTokens: tokens })) {
        last = performance.now();
        first ||= last;
        n += Number(token >= 0);
    }
    print("decode", `${((n - 1) / ((last - first) / 1e3)).toFixed(2)} tokens/s`);
    print("  per token", perToken(before, engine.counts, session.stats.position - start));
    if (values.kernels) {
        await printKernels(engine);
    }
}

const engine = await Engine.load({
    wasm: await readBytes("build/web/bezel.wasm"),
    gpu: values.cpu ? null : await gpuEntry(),
});
const source = await fileSource(path);
print("host", `${hostName} ${process.version}`);
const began = performance.now();
const model = await engine.openModel([source], {
    device: values.cpu ? "cpu" : values.baseline ? "gpu-baseline" : "gpu",
});
const seconds = (performance.now() - began) / 1e3;
print("device", engine.gpu.devices[0]?.name ?? "cpu");
print("opening", `${seconds.toFixed(2)} s, ${megabytes(source.size / seconds)}/s`);
print(
    "memory after opening",
    `${megabytes(engine.memory.size)} of WebAssembly, ${megabytes(engine.counts.bufferBytes)} of GPU buffers`,
);
if (!values.open) {
    const session = await model.newSession(values.context ? { context: Number(values.context) } : {});
    await measure(engine, session, model.vocab);
    print(
        "memory at the end",
        `${megabytes(engine.memory.size)} of WebAssembly, ${megabytes(engine.counts.bufferBytes)} of GPU buffers`,
    );
}
exit(0);
