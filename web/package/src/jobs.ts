/** Runs C's jobs: steps a job, and performs the reads and GPU waits that it requests. */
import type { Engine } from "./engine.js";
import { abortedBy, BezelError } from "./errors.js";
import type { Memory } from "./memory.js";
import type { Canvas, Token } from "./options.js";
import { release, type Source } from "./source.js";
import { Progress, READ_FIELDS, Report } from "./wasm.js";

/** Longest time without yielding to the event loop. */
const MAX_BLOCK_MS = 30;

/** What a job reports while it runs. */
export type JobEvent =
    | { kind: "progress" | "reload"; done: number; total: number }
    | { kind: "token"; token: Token }
    | { kind: "logits"; address: number; position: number; rows: number }
    | { kind: "canvas"; canvas: Canvas };

interface Read {
    file: number;
    offset: number;
    length: number;
    /** Destination address; 0: GPU buffer `buffer` at `bufferOffset`. */
    to: number;
    buffer: number;
    bufferOffset: number;
}

/** Lets timers, input and painting run. */
function yieldToEvents(): Promise<void> {
    const { scheduler } = globalThis as { scheduler?: { yield?: () => Promise<void> } };
    return scheduler?.yield ? scheduler.yield() : new Promise((resolve) => setTimeout(resolve, 0));
}

function throwIfAborted(signal: AbortSignal | undefined): void {
    if (signal?.aborted) {
        throw abortedBy(signal);
    }
}

/** Runs a job and yields its events; leaving the loop cancels it. The caller frees the job. `sources`: the model's files,
 * which are read again if the GPU is lost. */
export async function* runJob(
    engine: Engine,
    job: number,
    sources: Source[],
    signal?: AbortSignal,
): AsyncGenerator<JobEvent, void, void> {
    try {
        let lastYield = performance.now();
        for (;;) {
            throwIfAborted(signal);
            switch (engine.exports.job_step(engine.host, job)) {
                case Progress.again:
                    if (performance.now() - lastYield > MAX_BLOCK_MS) {
                        await yieldToEvents();
                        lastYield = performance.now();
                    }
                    break;
                case Progress.needBytes:
                    await fetchAll(engine, readsOf(engine), sources);
                    lastYield = performance.now();
                    break;
                case Progress.needGpu:
                    await engine.gpu.changed();
                    lastYield = performance.now();
                    break;
                case Progress.event:
                    yield eventOf(engine);
                    break;
                case Progress.done:
                    return;
                default:
                    throw engine.lastError();
            }
        }
    } finally {
        engine.gpu.wake(); // another job may be waiting for what this one was loading
    }
}

function eventOf(engine: Engine): JobEvent {
    const { exports, host, memory } = engine;
    const r = memory.doublesAt(exports.report(host), Report.firstRead);
    const at = (index: number): number => r[index] ?? 0;
    switch (at(Report.kind)) {
        case 0:
            return { kind: "progress", done: at(Report.done), total: at(Report.total) };
        case 1:
            return {
                kind: "token",
                token: {
                    token: at(Report.token),
                    text: memory.text(at(Report.text), at(Report.textLength)),
                    logProb: at(Report.logProb),
                    top: topOf(memory, at(Report.top), at(Report.topCount)),
                },
            };
        case 2:
            return {
                kind: "logits",
                address: at(Report.logits),
                position: at(Report.position),
                rows: at(Report.rows),
            };
        case 3:
            return { kind: "reload", done: at(Report.done), total: at(Report.total) };
        default:
            return {
                kind: "canvas",
                canvas: {
                    text: memory.text(at(Report.text), at(Report.textLength)),
                    step: at(Report.done),
                    steps: at(Report.total),
                    position: at(Report.position),
                    tokens: at(Report.rows),
                },
            };
    }
}

/** struct bz_token_prob: an int32 and a float each. */
function topOf(memory: Memory, address: number, n: number): Token["top"] {
    const ids = memory.int32s(address, 2 * n);
    const probs = memory.floats(address, 2 * n);
    return Array.from({ length: n }, (_, i) => ({
        token: ids[2 * i] ?? 0,
        logProb: probs[2 * i + 1] ?? 0,
    }));
}

function readsOf(engine: Engine): Read[] {
    const { exports, host, memory } = engine;
    const report = exports.report(host);
    const n = memory.doubleAt(report + 8 * Report.reads);
    const r = memory.doublesAt(report + 8 * Report.firstRead, n * READ_FIELDS);
    return Array.from({ length: n }, (_, i) => ({
        file: r[READ_FIELDS * i] ?? 0,
        offset: r[READ_FIELDS * i + 1] ?? 0,
        length: r[READ_FIELDS * i + 2] ?? 0,
        to: r[READ_FIELDS * i + 3] ?? 0,
        buffer: r[READ_FIELDS * i + 4] ?? 0,
        bufferOffset: r[READ_FIELDS * i + 5] ?? 0,
    }));
}

/** Performs the job's reads. When it returns or throws, no read is in flight. */
async function fetchAll(engine: Engine, reads: Read[], sources: Source[]): Promise<void> {
    const done = await Promise.allSettled(reads.map((read) => fetchOne(engine, read, sources)));
    for (const result of done) {
        if (result.status === "rejected") {
            throw result.reason;
        }
    }
}

async function fetchOne(engine: Engine, read: Read, sources: Source[]): Promise<void> {
    const { file, offset, length } = read;
    const source = sources[file];
    if (!source) {
        throw new BezelError("bad_file", `The engine requested file ${file} of ${sources.length}.`);
    }
    let bytes: Uint8Array<ArrayBuffer>;
    try {
        bytes = await source.read(offset, length);
    } catch (reason) {
        const cause = reason instanceof Error ? reason.message : String(reason);
        throw reason instanceof BezelError
            ? reason
            : new BezelError("bad_file", `${source.name} could not be read: ${cause}.`, {
                  cause: reason,
              });
    }
    if (bytes.byteLength !== length) {
        throw new BezelError(
            "bad_file",
            `${source.name} ended early: ${bytes.byteLength} bytes of ${length} were read.`,
        );
    }
    if (read.to) {
        engine.memory.put(read.to, bytes);
    } else {
        engine.gpu.upload(read.buffer, read.bufferOffset, bytes);
    }
    if (source.fresh) {
        release(bytes);
    }
}
