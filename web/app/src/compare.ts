/** One question to two models: both loaded, or one after the other if they do not fit into memory together. */
import { Bezel, BezelError, type BezelModel, type StreamRequest } from "./bezel.js";
import { failureOf, type Failure } from "./errors.js";
import type { Choice, ModelManager } from "./model.js";
import { Signal } from "./signal.js";
import type { Canvas, Settings } from "./store.js";

export type SideState = "empty" | "loading" | "waiting" | "answering" | "done" | "stopped" | "failed";

export interface Side {
    choice: Choice | null;
    state: SideState;
    text: string;
    /** A diffusion model's canvas, whose final text follows. */
    canvas: Canvas | null;
    thinking: string;
    /** Of the answer; tokens per second. */
    figures: { tokens: number; perSecond: number; promptPerSecond: number; drafted?: number; accepted?: number } | null;
    failure: Failure | null;
    /** From 0 to 1, while it is loading. */
    loaded: number;
}

/** Two models count as fitting together up to this share of the memory that the browser reports, in which 8 GB means
 * "at least". */
const SHARE = 0.6;

const emptySide = (choice: Choice | null): Side => ({ choice, state: "empty", text: "", canvas: null, thinking: "", figures: null, failure: null, loaded: 0 });
const sameChoice = (a: Choice | null, b: Choice | null): boolean => a !== null && b !== null && JSON.stringify(a) === JSON.stringify(b) && a.kind !== "file";

export class Comparison {
    readonly sides = new Signal<[Side, Side]>([emptySide(null), emptySide(null)]);
    /** Both models do not fit together: they are loaded one after the other. */
    readonly inTurn = new Signal(false);
    readonly running = new Signal(false);
    readonly #models: ModelManager;
    readonly #settings: Signal<Settings>;
    readonly #loaded: ({ choice: Choice; model: BezelModel } | null)[] = [null, null];
    #control: AbortController | null = null;
    #ended: Promise<void> = Promise.resolve();

    constructor(models: ModelManager, settings: Signal<Settings>) {
        this.#models = models;
        this.#settings = settings;
    }

    choose(index: 0 | 1, choice: Choice | null): void {
        if (!sameChoice(choice, this.sides.value[index].choice)) {
            this.#close(index);
            this.#update(index, emptySide(choice));
        }
    }

    #update(index: number, change: Partial<Side>): void {
        const side = this.sides.value[index];
        if (side) {
            Object.assign(side, change);
            this.sides.set(this.sides.value);
        }
    }

    #close(index: number): void {
        this.#loaded[index]?.model.close();
        this.#loaded[index] = null;
    }

    /** Frees both models. */
    async close(): Promise<void> {
        await this.stop();
        this.#close(0);
        this.#close(1);
    }

    async stop(): Promise<void> {
        this.#control?.abort();
        await this.#ended;
    }

    /** Bytes that a model needs with the conversation's default length; 0: not known. */
    async #bytesOf(choice: Choice, signal: AbortSignal): Promise<number> {
        const { memory, gpu, bytes } = await Bezel.inspect(await this.#models.sourcesOf(choice), { signal });
        const fixed = gpu ? gpu.weights + gpu.work : memory ? memory.weights + memory.activations : bytes;
        const length = this.#settings.value.contextLength || 32768;
        return fixed + (memory?.caches.findLast(({ context }) => context <= length)?.bytes ?? 0);
    }

    async #fitTogether(signal: AbortSignal): Promise<boolean> {
        const { deviceMemory } = await this.#models.capabilities();
        const needed = await Promise.all(this.sides.value.map(({ choice }) => (choice ? this.#bytesOf(choice, signal) : 0)));
        return needed.reduce((sum, bytes) => sum + bytes, 0) <= SHARE * 1e9 * (deviceMemory ?? 4);
    }

    /** Resolves when both have answered, or failed. */
    run(question: string): Promise<void> {
        if (this.running.value) {
            return this.#ended;
        }
        this.#control = new AbortController();
        this.running.set(true);
        this.#ended = this.#run(question, this.#control.signal).finally(() => this.running.set(false));
        return this.#ended;
    }

    async #run(question: string, signal: AbortSignal): Promise<void> {
        for (const index of [0, 1]) {
            const side = this.sides.value[index];
            this.#update(index, { ...emptySide(side?.choice ?? null), state: "waiting" });
        }
        // An unknown seed is drawn once, so that both use the same.
        const seed = this.#settings.value.seed ?? crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
        try {
            this.inTurn.set(!(await this.#fitTogether(signal)));
        } catch {
            this.inTurn.set(false); // loading will say what is wrong with which
        }
        if (!this.inTurn.value && (await this.#loadBoth(signal))) {
            await Promise.all([0, 1].map((index) => this.#answer(index, question, seed, signal)));
            return;
        }
        for (const index of [0, 1]) {
            this.#close(1 - index);
            if (!signal.aborted && this.sides.value[index]?.state !== "failed") {
                await this.#load(index, signal);
                await this.#answer(index, question, seed, signal);
            }
            this.#stopped(index, signal);
        }
    }

    /** false: the second does not fit beside the first, which stays. */
    async #loadBoth(signal: AbortSignal): Promise<boolean> {
        for (const index of [0, 1]) {
            await this.#load(index, signal);
            const { failure } = this.sides.value[index] ?? {};
            if (index === 1 && failure && (failure.code === "out_of_memory" || failure.code === "device_lost")) {
                this.#update(1, { state: "waiting", failure: null });
                this.inTurn.set(true);
                return false;
            }
        }
        return true;
    }

    async #load(index: number, signal: AbortSignal): Promise<void> {
        const choice = this.sides.value[index]?.choice;
        const { device, contextLength } = this.#settings.value;
        if (!choice || signal.aborted || this.#loaded[index]) {
            return;
        }
        this.#update(index, { state: "loading", loaded: 0 });
        try {
            const model = await Bezel.load(await this.#models.sourcesOf(choice), {
                device,
                signal,
                onProgress: ({ stage, done, total }) => stage === "weights" && this.#update(index, { loaded: total > 0 ? done / total : 0 }),
                ...(contextLength > 0 ? { contextLength } : {}),
            });
            this.#loaded[index] = { choice, model };
            this.#update(index, { state: "waiting" });
        } catch (reason) {
            this.#update(index, signal.aborted ? { state: "stopped" } : { state: "failed", failure: failureOf(reason) });
        }
    }

    #stopped(index: number, signal: AbortSignal): void {
        const state = this.sides.value[index]?.state;
        if (signal.aborted && (state === "waiting" || state === "answering" || state === "loading")) {
            this.#update(index, { state: "stopped" });
        }
    }

    async #answer(index: number, question: string, seed: number, signal: AbortSignal): Promise<void> {
        const model = this.#loaded[index]?.model;
        if (!model || signal.aborted) {
            this.#stopped(index, signal);
            return;
        }
        const { temperature, topK, topP, maxTokens, think, system } = this.#settings.value;
        const request: StreamRequest = {
            messages: [...(system.trim() ? [{ role: "system" as const, content: system }] : []), { role: "user", content: question }],
            stream: true,
            temperature,
            top_k: topK,
            top_p: topP,
            think,
            seed,
            ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
        };
        this.#update(index, { state: "answering" });
        try {
            for await (const { choices, usage, timings, canvas } of await model.chat.completions.create(request, { signal })) {
                const side = this.sides.value[index];
                const delta = choices[0]?.delta;
                this.#update(index, {
                    text: (side?.text ?? "") + (delta?.content ?? ""),
                    canvas: canvas ? { text: canvas.text, fraction: canvas.step / canvas.steps } : null,
                    thinking: (side?.thinking ?? "") + (delta?.reasoning_content ?? ""),
                    ...(usage && {
                        figures: {
                            tokens: usage.completion_tokens,
                            perSecond: timings?.predicted_per_second ?? 0,
                            promptPerSecond: timings?.prompt_per_second ?? 0,
                            ...(timings?.draft_n && { drafted: timings.draft_n, accepted: timings.draft_n_accepted ?? 0 }),
                        },
                    }),
                });
            }
            this.#update(index, { state: signal.aborted ? "stopped" : "done" });
        } catch (reason) {
            const stopped = signal.aborted || (reason instanceof BezelError && reason.code === "aborted");
            this.#update(index, stopped ? { state: "stopped" } : { state: "failed", failure: failureOf(reason) });
        }
    }
}
