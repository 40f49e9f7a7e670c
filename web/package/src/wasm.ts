/** The module's exports (src/wasm/exports.c) and imports. */
import type { Gpu } from "./gpu.js";

/** Objects, texts and arrays are passed as addresses in the module's memory. */
export interface Exports {
    /** Absent in bezel-mt.wasm, which imports it. */
    readonly memory?: WebAssembly.Memory;
    _initialize(): void;
    alloc(n: number): number;
    free(address: number): void;
    host_new(): number;
    report(host: number): number;
    error_code(host: number): number;
    error_text(host: number): number;
    status_name(code: number): number;
    version(): number;

    sha256_new(): number;
    sha256_add(sha: number, bytes: number, n: number): void;
    sha256_end(host: number, sha: number): number;

    input_add(host: number, name: number, length: number, size: number): number;
    model_open(host: number, json: number, length: number): number;
    job_header_only(job: number): number;
    inspect(host: number, model: number, refused: number, maxBuffer: number, maxBinding: number): number;
    model_main(model: number): number;
    job_model(job: number): number;
    model_free(model: number): void;
    model_vocab(model: number): number;
    model_context(model: number): number;

    job_step(host: number, job: number): number;
    job_free(job: number): void;
    job_finish(job: number): number;

    tokenize(
        host: number,
        model: number,
        text: number,
        length: number,
        specials: number,
        bos: number,
    ): number;
    token_piece(host: number, model: number, id: number): void;
    token_ends(model: number, id: number): number;
    stream_new(): number;
    stream_push(host: number, stream: number, model: number, id: number, showControl: number): number;

    session_new(host: number, model: number, json: number, length: number): number;
    session_free(session: number): void;
    prefill(
        host: number,
        session: number,
        ids: number,
        n: number,
        snapshotAt: number,
        allLogits: number,
    ): number;
    generate(host: number, session: number, json: number, length: number): number;
    answer(host: number, session: number, turn: number, seed: number): number;
    session_logits(session: number): number;
    session_context(session: number): number;
    session_stats(host: number, session: number): void;

    turn_new(host: number, model: number, request: number, length: number): number;
    turn_free(turn: number): void;
    turn_prompt(host: number, turn: number): void;
    turn_fit(host: number, turn: number, session: number): number;
    turn_push(host: number, turn: number, token: number): number;
    turn_next(host: number, turn: number): number;
    turn_finish(turn: number, generated: number): number;

    // Images and sounds (src/wasm/media.c); kind: 0 image, 1 sound.
    model_canvas(model: number): number;
    model_drafts(model: number): number;
    model_takes(model: number, kind: number): number;
    model_budget(model: number, detail: number): number;
    encoder_new(host: number, model: number, json: number, length: number): number;
    encoder_free(encoder: number): void;
    encoder_stats(host: number, encoder: number): void;
    encoder_notice(host: number, encoder: number): void;
    image_check(host: number, width: number, height: number, budget: number): number;
    encode_image(host: number, encoder: number, rgb: number, width: number, height: number, budget: number): number;
    encode_frame(host: number, encoder: number, rgb: number, width: number, height: number): number;
    video_new(host: number, frames: number, count: number, seconds: number): number;
    encode_audio(host: number, encoder: number, pcm: number, samples: number, rate: number): number;
    job_media(job: number): number;
    job_features(host: number, job: number): void;
    media_hold(media: number): number;
    media_free(media: number): void;
    media_rows(host: number, media: number): void;
    turn_media(turn: number): number;
    turn_media_source(host: number, turn: number, index: number): number;
    turn_attach(host: number, turn: number, index: number, media: number): number;
    turn_prefill(host: number, session: number, turn: number): number;
    prefill_media(
        host: number,
        session: number,
        ids: number,
        n: number,
        media: number,
        mediaCount: number,
        allLogits: number,
    ): number;
    // Adapters (src/wasm/adapter.c).
    adapter_open(host: number, model: number, bytes: number, n: number, name: number, length: number): number;
    adapter_free(adapter: number): void;
    adapter_info(host: number, adapter: number): void;
    session_adapters(host: number, session: number, list: number, n: number): number;
    // Vectors of texts (src/wasm/embed.c).
    model_embedding(model: number): number;
    embedder_new(host: number, model: number, json: number, length: number): number;
    embedder_free(embedder: number): void;
    embedder_longest(embedder: number): number;
    embedder_notice(embedder: number): number;
    embed(host: number, embedder: number, inputs: number, inputsLength: number, json: number, length: number): number;
    job_vectors(host: number, job: number): void;
    wav_read(host: number, bytes: number, n: number): number;

    // Only in bezel-mt.wasm (src/base/os_wasm_threads.c and the linker):
    thread_new(): number;
    thread_stack(thread: number): number;
    thread_tls(thread: number): number;
    thread_ready(thread: number): void;
    thread_main(thread: number): void;
    thread_broke(): void;
    threads_free(): number;
    threads_use(n: number): void;
    readonly __stack_pointer: WebAssembly.Global;
    __wasm_init_tls(tls: number): void;
}

/** Indexes into struct step_report, an array of doubles; the reads follow, READ_FIELDS each. */
export const Report = {
    reads: 0,
    kind: 1,
    done: 2,
    total: 3,
    token: 4,
    text: 5,
    textLength: 6,
    logProb: 7,
    top: 8,
    topCount: 9,
    logits: 10,
    position: 11,
    rows: 12,
    firstRead: 13,
} as const;
export const READ_FIELDS = 6;

/** bz_progress */
export const Progress = { again: 0, needBytes: 1, needGpu: 2, event: 3, done: 4, error: 5 } as const;

export type WasmSource = WebAssembly.Module | BufferSource | Response | PromiseLike<Response>;

/** A clock common to all threads: performance.now() starts at 0 in each worker. */
export function osImports(): { now: () => number } {
    const { timeOrigin } = performance;
    return { now: () => timeOrigin + performance.now() };
}

/** `memory`: the shared memory for bezel-mt.wasm. */
export async function instantiate(source: WasmSource, gpu: Gpu, memory?: WebAssembly.Memory): Promise<Exports> {
    const imports = { gpu: gpu.imports, os: osImports(), ...(memory && { env: { memory } }) };
    const wasm = await source;
    if (wasm instanceof WebAssembly.Module) {
        return (await WebAssembly.instantiate(wasm, imports)).exports as unknown as Exports;
    }
    const { instance } =
        wasm instanceof Response
            ? await WebAssembly.instantiateStreaming(wasm, imports)
            : await WebAssembly.instantiate(wasm, imports);
    return instance.exports as unknown as Exports;
}
