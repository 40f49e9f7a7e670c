/** Helpers for the tests of the package. */
import { Bezel, BezelError, Session, type BezelModel, type LoadOptions, type Token } from "../../web/package/src/index.js";
import { check } from "./check.js";
import { modelFolder } from "./golden.js";
import { wasmPath } from "./models.js";
import { fileSource, readBytes } from "./platform.js";

export const nano = `${modelFolder}/nano-e-q4_0.gguf`;
export const tiny = `${modelFolder}/tiny-e-q8_0.gguf`;

let module: WebAssembly.Module | undefined;

/** Options for running the engine in this process. */
export async function localOptions(more: LoadOptions = {}): Promise<LoadOptions> {
    module ??= await WebAssembly.compile(await readBytes(wasmPath));
    return { worker: false, wasm: module, gpu: null, ...more };
}

export async function withPackage<T>(path: string, options: LoadOptions, use: (model: BezelModel) => Promise<T>): Promise<T> {
    const source = await fileSource(path);
    try {
        const model = await Bezel.load(source, await localOptions(options));
        try {
            return await use(model);
        } finally {
            model.close();
        }
    } finally {
        await source.close();
    }
}

export async function errorOf(act: () => Promise<unknown>): Promise<BezelError | null> {
    try {
        await act();
    } catch (reason) {
        check(reason instanceof BezelError, `not a BezelError: ${reason instanceof Error ? (reason.stack ?? "") : String(reason)}`);
        return reason as BezelError;
    }
    return null;
}

export async function codeOf(act: () => Promise<unknown>): Promise<string> {
    return (await errorOf(act))?.code ?? "none";
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const all: T[] = [];
    for await (const item of items) {
        all.push(item);
    }
    return all;
}

/** Makes the model generate a given text: models with random weights cannot make tool calls. Only sampling is
 * replaced. */
export async function generating<T>(model: BezelModel, text: string, act: () => Promise<T>): Promise<T> {
    const tokens = await model.tokenize(text, { specials: true });
    const real = Session.prototype.answer;
    // eslint-disable-next-line @typescript-eslint/require-await
    Session.prototype.answer = async function* (this: Session): AsyncGenerator<Token, void, void> {
        for (const token of tokens) {
            this.finish = token === tokens.at(-1) ? "end" : "none";
            yield { token, text: "", logProb: 0, top: [] };
        }
    };
    try {
        return await act();
    } finally {
        Session.prototype.answer = real;
    }
}
