/** Opens models for the tests and runs them. */
import { Engine, type Model, type OpenOptions, type SessionOptions } from "../../web/package/src/index.js";
import { fileSource, gpuEntry, readBytes } from "./platform.js";

export const wasmPath = "build/web/bezel.wasm";

let gpu: GPU | undefined;
let module: WebAssembly.Module | undefined;

/** A new engine, so that cases do not affect each other. */
export async function newEngine(entry?: GPU | null): Promise<Engine> {
    module ??= await WebAssembly.compile(await readBytes(wasmPath));
    gpu ??= await gpuEntry();
    return Engine.load({ wasm: module, gpu: entry === undefined ? gpu : entry });
}

export async function withModel<T>(
    engine: Engine,
    path: string,
    options: OpenOptions,
    use: (model: Model) => Promise<T>,
): Promise<T> {
    const source = await fileSource(path);
    try {
        const model = await engine.openModel([source], options);
        try {
            return await use(model);
        } finally {
            model.free();
        }
    } finally {
        await source.close();
    }
}

/** All logits of a prompt, [tokens][vocabulary], from a new session. */
export async function logitsOf(
    model: Model,
    options: SessionOptions,
    ids: Int32Array,
): Promise<Float32Array> {
    const session = await model.newSession(options);
    const all = new Float32Array(ids.length * model.vocab).fill(NaN);
    try {
        await session.prefill(ids, { onLogits: (rows, position) => all.set(rows, position * model.vocab) });
    } finally {
        session.free();
    }
    return all;
}

export async function greedy(
    model: Model,
    options: SessionOptions,
    ids: Int32Array,
    n: number,
): Promise<number[]> {
    const session = await model.newSession(options);
    const tokens: number[] = [];
    try {
        await session.prefill(ids);
        for await (const { token } of session.generate({ greedy: true, ignoreEnd: true, maxTokens: n })) {
            tokens.push(token);
        }
    } finally {
        session.free();
    }
    return tokens;
}
