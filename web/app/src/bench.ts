/** The benchmark of the loaded model: reading prompts of 128 and 512 tokens, writing 64 tokens at two depths, and loading.
 * Best of three, as other work on the machine only ever makes a run slower. */
import { BezelError, type BezelModel, type BezelSession } from "./bezel.js";

export const BENCHMARK_VERSION = 1;
const PROMPTS = [128, 512];
const DECODED = 64;
const SHALLOW = 512;
/** The deepest of these that the context holds, and whose tokens are read within MAX_FILL_SECONDS. */
const DEEP = [4096, 2048, 1024];
const MAX_FILL_SECONDS = 60;
const RUNS = 3;

export interface BenchmarkResult {
    /** Of this format. */
    version: typeof BENCHMARK_VERSION;
    /** In UTC. */
    date: string;
    model: { name: string; bytes: number };
    device: { kind: string; name: string; threads: number };
    browser: string;
    /** From the click to the first possible question; null: not measured in this visit. */
    loadSeconds: number | null;
    /** Tokens per second. */
    prompt: { tokens: number; perSecond: number }[];
    decode: { depth: number; tokens: number; perSecond: number }[];
}

export interface BenchmarkProgress {
    /** What is being measured. */
    label: string;
    /** From 0 to 1. */
    fraction: number;
}

/** Different for each `seed`, so that no prefix of an earlier prompt is reused. They are words, not control tokens. */
function someTokens(count: number, vocabulary: number, seed: number): Int32Array {
    const first = Math.min(1000, vocabulary >> 2);
    return Int32Array.from({ length: count }, (_, i) => (i === 0 ? 2 : first + ((i * 7919 + seed * 104_729) % (vocabulary - first))));
}

/** The best of several runs, in units per second. */
async function best(units: number, run: (i: number) => Promise<number>): Promise<number> {
    let least = Infinity;
    for (let i = 0; i < RUNS; i++) {
        least = Math.min(least, await run(i));
    }
    return units / least;
}

class Benchmark {
    readonly #model: BezelModel;
    readonly #session: BezelSession;
    readonly #signal: AbortSignal;
    readonly #report: (progress: BenchmarkProgress) => void;
    #seed = 0;
    #steps = 0;
    #step = 0;

    constructor(model: BezelModel, session: BezelSession, signal: AbortSignal, report: (progress: BenchmarkProgress) => void) {
        this.#model = model;
        this.#session = session;
        this.#signal = signal;
        this.#report = report;
    }

    #next(label: string): void {
        this.#report({ label, fraction: this.#step++ / this.#steps });
        if (this.#signal.aborted) {
            throw new BezelError("aborted", "Stopped on request.");
        }
    }

    /** Seconds. */
    async #read(tokens: number): Promise<number> {
        const ids = someTokens(tokens, this.#model.info.vocabulary, ++this.#seed);
        await this.#session.prefill(ids.subarray(0, 1), { signal: this.#signal });
        const began = performance.now();
        await this.#session.prefill(ids, { signal: this.#signal });
        return (performance.now() - began) / 1000;
    }

    /** Seconds for `tokens` after the first, whose time belongs to the prompt. */
    async #write(tokens: number): Promise<number> {
        let [n, first, last] = [0, 0, 0];
        for await (const _ of this.#session.generate({ greedy: true, ignoreEnd: true, maxTokens: tokens + 1, draft: "off" }, this.#signal)) {
            last = performance.now();
            first = n++ === 0 ? last : first;
        }
        if (n !== tokens + 1) {
            throw new BezelError("context_full", `Only ${n} of ${tokens + 1} tokens were written: the model's context is full.`);
        }
        return (last - first) / 1000;
    }

    async run(): Promise<Pick<BenchmarkResult, "prompt" | "decode">> {
        const { contextLength } = this.#model.info;
        this.#steps = 1 + RUNS * (PROMPTS.length + 2);
        this.#next("Warming up");
        await this.#read(PROMPTS[0] ?? 1); // compiles kernels, wakes threads
        await this.#write(4);
        const prompt: BenchmarkResult["prompt"] = [];
        for (const tokens of PROMPTS) {
            const perSecond = await best(tokens - 1, () => {
                this.#next(`Reading ${tokens} tokens`);
                return this.#read(tokens);
            });
            prompt.push({ tokens, perSecond });
        }
        const rate = prompt.at(-1)?.perSecond ?? 1;
        const deep = DEEP.find((depth) => depth + DECODED + 1 <= contextLength && depth / rate <= MAX_FILL_SECONDS) ?? Math.min(1024, contextLength - DECODED - 1);
        const decode: BenchmarkResult["decode"] = [];
        for (const depth of [SHALLOW, deep]) {
            const ids = someTokens(depth, this.#model.info.vocabulary, ++this.#seed);
            const perSecond = await best(DECODED, async () => {
                this.#next(`Writing ${DECODED} tokens after ${depth.toLocaleString("en")}`);
                await this.#session.prefill(ids, { signal: this.#signal });
                return this.#write(DECODED);
            });
            decode.push({ depth, tokens: DECODED, perSecond });
        }
        return { prompt, decode };
    }
}

/** Why this model has no benchmark; null: it has. */
export function reasonAgainstBenchmark({ info }: BezelModel): string | null {
    if (info.diffusion) {
        return "A diffusion model writes many tokens at once, in steps that depend on the text: this benchmark measures models that write one token after the other.";
    }
    if (info.embedding > 0) {
        return "A model of embeddings writes no text: this benchmark measures models that do.";
    }
    const least = SHALLOW + DECODED + 2;
    return info.contextLength < least + 64 ? `The benchmark needs a context of ${least + 64} tokens, and this model is loaded with ${info.contextLength}.` : null;
}

export async function runBenchmark(model: BezelModel, loadSeconds: number | null, signal: AbortSignal, report: (progress: BenchmarkProgress) => void): Promise<BenchmarkResult> {
    const { info } = model;
    const session = await model.newSession({ context: Math.min(info.contextLength, (DEEP[0] ?? 0) + DECODED + 16) });
    try {
        const figures = await new Benchmark(model, session, signal, report).run();
        return {
            version: BENCHMARK_VERSION,
            date: new Date().toISOString(),
            model: { name: info.name, bytes: info.bytes },
            device: { kind: info.device, name: info.deviceName, threads: info.threads },
            browser: navigator.userAgent,
            loadSeconds,
            ...figures,
        };
    } finally {
        await session.free();
    }
}
