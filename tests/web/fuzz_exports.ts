/** Random calls of the module's exports, with objects of the right kind and of others, with addresses that are none and
 * with odd numbers. A call returns or reports an error; afterwards the module still computes the same answer. */
import { Gpu } from "../../web/package/src/index.js";
import { Memory } from "../../web/package/src/memory.js";
import { instantiate, Progress, READ_FIELDS, Report, type Exports } from "../../web/package/src/wasm.js";
import { check, checkEqual } from "./check.js";
import { goldenFolder } from "./golden.js";
import { wasmPath } from "./models.js";
import { nano } from "./package.js";
import { readBytes } from "./platform.js";

type Random = (n: number) => number;
type Kind = "block" | "sha" | "stream" | "job" | "model" | "session" | "turn" | "encoder" | "embedder" | "adapter" | "media" | "host";

/** What an argument is: an object, the address of a text and its length, n values of a size at an address, numbers. */
type Argument = Kind | "text" | "bytes" | "ids" | "list" | "uses" | "n" | "double" | "flag";

const CALLS: [keyof Exports, Argument[], Kind?][] = [
    ["alloc", ["n"], "block"],
    ["free", ["block"]],
    ["report", ["host"]],
    ["error_code", ["host"]],
    ["error_text", ["host"]],
    ["status_name", ["n"]],
    ["sha256_new", [], "sha"],
    ["sha256_add", ["sha", "bytes"]],
    ["sha256_end", ["host", "sha"]],
    ["input_add", ["host", "text", "double"]],
    ["model_open", ["host", "text"], "job"],
    ["job_header_only", ["job"], "model"],
    ["inspect", ["host", "model", "flag", "double", "double"], "block"],
    ["model_main", ["model"]],
    ["job_model", ["job"], "model"],
    ["model_free", ["model"]],
    ["model_vocab", ["model"]],
    ["model_context", ["model"]],
    ["job_step", ["host", "job"]],
    ["job_free", ["job"]],
    ["job_finish", ["job"]],
    ["tokenize", ["host", "model", "text", "flag", "flag"]],
    ["token_piece", ["host", "model", "n"]],
    ["token_ends", ["model", "n"]],
    ["stream_new", [], "stream"],
    ["stream_push", ["host", "stream", "model", "n", "flag"]],
    ["session_new", ["host", "model", "text"], "session"],
    ["session_free", ["session"]],
    ["prefill", ["host", "session", "ids", "n", "flag"], "job"],
    ["generate", ["host", "session", "text"], "job"],
    ["answer", ["host", "session", "turn", "double"], "job"],
    ["session_logits", ["session"]],
    ["session_context", ["session"]],
    ["session_stats", ["host", "session"]],
    ["turn_new", ["host", "model", "text"], "turn"],
    ["turn_free", ["turn"]],
    ["turn_prompt", ["host", "turn"]],
    ["turn_fit", ["host", "turn", "session"]],
    ["turn_push", ["host", "turn", "n"]],
    ["turn_next", ["host", "turn"]],
    ["turn_finish", ["turn", "n"]],
    ["model_canvas", ["model"]],
    ["model_drafts", ["model"]],
    ["model_takes", ["model", "n"]],
    ["model_budget", ["model", "n"]],
    ["encoder_new", ["host", "model", "text"], "encoder"],
    ["encoder_free", ["encoder"]],
    ["encoder_stats", ["host", "encoder"]],
    ["encoder_notice", ["host", "encoder"]],
    ["image_check", ["host", "double", "double", "n"]],
    ["encode_image", ["host", "encoder", "block", "n", "n", "n"], "job"],
    ["encode_frame", ["host", "encoder", "block", "n", "n"], "job"],
    ["video_new", ["host", "list", "block"], "media"],
    ["encode_audio", ["host", "encoder", "list", "double"], "job"],
    ["job_media", ["job"], "media"],
    ["job_features", ["host", "job"]],
    ["media_hold", ["media"], "media"],
    ["media_free", ["media"]],
    ["media_rows", ["host", "media"]],
    ["turn_media", ["turn"]],
    ["turn_media_source", ["host", "turn", "n"]],
    ["turn_attach", ["host", "turn", "n", "media"]],
    ["turn_prefill", ["host", "session", "turn"], "job"],
    ["prefill_media", ["host", "session", "ids", "list", "flag"], "job"],
    ["adapter_open", ["host", "model", "bytes", "text"], "adapter"],
    ["adapter_free", ["adapter"]],
    ["adapter_info", ["host", "adapter"]],
    ["session_adapters", ["host", "session", "uses"]],
    ["model_embedding", ["model"]],
    ["embedder_new", ["host", "model", "text"], "embedder"],
    ["embedder_free", ["embedder"]],
    ["embedder_longest", ["embedder"]],
    ["embedder_notice", ["embedder"]],
    ["embed", ["host", "embedder", "text", "text"], "job"],
    ["job_vectors", ["host", "job"]],
    ["wav_read", ["host", "bytes"]],
];

/** Calls that get far are made more often. */
const OFTEN: (keyof Exports)[] = ["job_step", "job_step", "job_step", "job_step", "session_new", "prefill", "generate", "turn_new", "turn_prefill", "answer", "encoder_new", "encode_image", "encode_frame", "video_new", "encode_audio", "job_media", "turn_attach", "embedder_new", "embed"];

const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
const chat = (content: unknown): string => JSON.stringify({ messages: [{ role: "user", content }], max_tokens: 3, temperature: 0 });
const TEXTS = [
    "{}", "", "[]", "null", "{", "hello", "\u0000", "é漢😀", "{\"context\":64}", "{\"context\":64,\"chunk\":8}", "{\"context\":0}", "{\"context\":4294967295}", "{\"chunk\":1}", "{\"exact\":true}", "{\"kernels\":\"x\"}",
    "{\"snapshots\":4294967295,\"context\":32}", "{\"maxTokens\":2,\"greedy\":true}", "{\"maxTokens\":3,\"logProbs\":true,\"topLogProbs\":20}", "{\"stop\":[\"a\",\"\"],\"stopIds\":[1,2]}", "{\"bias\":[[1,null],[5,100]]}",
    "{\"temperature\":1e308,\"topK\":-1,\"window\":2147483647}", "{\"topP\":0,\"minP\":1,\"repetition\":0}", "{\"device\":\"cpu\"}", "{\"headersOnly\":true}", "{\"device\":\"gpu\"}", "{\"budget\":70}", "{\"budget\":4294967295,\"keep\":1}",
    chat("hi"), chat([{ type: "text", text: "a" }, image]), chat([image, image]), "{\"messages\":[]}", "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"tools\":[{\"function\":{\"name\":\"f\"}}]}",
];
/** What a call mostly gets, so that it gets far. */
const FITTING: Partial<Record<keyof Exports, string[]>> = {
    session_new: ["{\"context\":64}", "{\"context\":64,\"chunk\":8}"],
    generate: ["{\"maxTokens\":2,\"greedy\":true}", "{\"maxTokens\":3,\"logProbs\":true,\"topLogProbs\":20}"],
    embedder_new: ["{}"],
    embed: ["{}", "[\"hello\"]", "[\"\",[2,50,1]]", "[[]]", "{\"dimensions\":8}"],
    turn_new: [chat("hi"), chat([{ type: "text", text: "a" }, image])],
    encoder_new: ["{}", "{\"budget\":70}"],
    model_open: ["{\"device\":\"cpu\"}", "{\"headersOnly\":true}"],
};
const NUMBERS = [0, 1, 2, 3, 7, 16, 32, 48, 64, 255, 256, 639, 640, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff];
const DOUBLES = [0, -0, 1, 16000, 48, 64, -1, 0.5, NaN, Infinity, -Infinity, 1e308, 2 ** 53, 4294967295, 1e6];
const MAX_BLOCK = 1 << 16;
const TOKEN_EVENT = 1; // bz_event_kind
const HANDLE_KINDS: Kind[] = ["block", "sha", "stream", "job", "model", "session", "turn", "encoder", "embedder", "adapter", "media"];

let wasm: WebAssembly.Module | undefined;
const files = new Map<string, Uint8Array>();

async function bytesOf(path: string): Promise<Uint8Array> {
    const known = files.get(path) ?? (await readBytes(path));
    files.set(path, known);
    return known;
}

class Fuzzed {
    readonly objects = new Map<Kind, number[]>(HANDLE_KINDS.map((kind) => [kind, []]));
    readonly host: number;
    readonly exports: Exports;
    readonly memory: Memory;
    readonly random: Random;
    readonly inputs: Uint8Array[];

    constructor(exports: Exports, memory: Memory, random: Random, inputs: Uint8Array[]) {
        this.exports = exports;
        this.memory = memory;
        this.random = random;
        this.inputs = inputs;
        this.host = exports.host_new();
    }

    pick<T>(list: readonly T[]): T {
        return list[this.random(list.length)] as T;
    }

    add(kind: Kind, address: number): void {
        if (address) {
            this.objects.get(kind)?.push(address);
        }
    }

    bytes(): Uint8Array {
        return new Uint8Array((this.exports.memory as WebAssembly.Memory).buffer);
    }

    /** The address of a new block with these bytes. */
    put(bytes: Uint8Array): number {
        const at = this.exports.alloc(bytes.length);
        check(at !== 0, "no memory");
        this.bytes().set(bytes, at);
        this.add("block", at);
        return at;
    }

    number(): number {
        return this.random(3) === 0 ? this.random(1000) : this.pick(NUMBERS);
    }

    /** Mostly one of that kind; also another object, a freed one (they stay in the lists), or a number. */
    object(kind: Kind): number {
        const own = kind === "host" ? [this.host] : (this.objects.get(kind) ?? []);
        const other = this.objects.get(this.pick(HANDLE_KINDS)) ?? [];
        const way = this.random(20);
        if (own.length && way > 1) {
            return own[Math.max(0, own.length - 1 - this.random(way > 5 ? 2 : own.length))] as number;
        }
        return way === 0 && other.length ? this.pick(other) : way === 1 && own.length ? this.pick(own) + this.pick([1, 4, 8, 16]) : this.number();
    }

    argument(kind: Argument, call: keyof Exports): number[] {
        switch (kind) {
            case "n":
                return [this.number()];
            case "flag":
                return [this.random(2)];
            case "double":
                return [this.pick(DOUBLES)];
            case "text":
            case "bytes": {
                if (this.random(12) === 0) {
                    return [this.number(), this.number()];
                }
                const fitting = FITTING[call];
                const text = new TextEncoder().encode(this.pick(fitting && this.random(4) ? fitting : TEXTS));
                return [this.put(text), text.length];
            }
            case "ids": {
                const ids = Int32Array.from({ length: this.random(9) }, () => (this.random(20) ? this.random(640) : this.number()));
                return this.random(12) === 0 ? [this.number(), this.number()] : [this.put(new Uint8Array(ids.buffer)), ids.length];
            }
            case "list": {
                const media = Uint32Array.from({ length: this.random(3) }, () => this.object("media"));
                return [this.put(new Uint8Array(media.buffer)), this.random(12) ? media.length : this.number()];
            }
            case "uses": {
                const uses = Float64Array.from(Array.from({ length: this.random(3) }, () => [this.object("adapter"), this.pick(DOUBLES)]).flat());
                return [this.put(new Uint8Array(uses.buffer)), this.random(12) ? uses.length / 2 : this.number()];
            }
            default:
                return [this.object(kind)];
        }
    }

    /** What the job reads, as far as the files have it. */
    serve(): void {
        const { host, exports, memory } = this;
        const report = memory.doublesAt(exports.report(host), Report.firstRead + READ_FIELDS * 64);
        for (let i = 0; i < (report[Report.reads] ?? 0); i++) {
            const [file = 0, offset = 0, length = 0, to = 0] = report.subarray(Report.firstRead + READ_FIELDS * i);
            const from = this.inputs[file]?.subarray(offset, offset + length);
            if (from && to) {
                this.bytes().set(from, to);
            }
        }
    }

    /** Steps a job to its end; the tokens it made, or -1 after an error. */
    finish(job: number): number[] {
        const tokens: number[] = [];
        for (;;) {
            const progress = this.exports.job_step(this.host, job);
            if (progress === Progress.needBytes) {
                this.serve();
            } else if (progress === Progress.error) {
                return [-1];
            } else if (progress === Progress.done) {
                return tokens;
            } else if (progress === Progress.event) {
                const report = this.memory.doublesAt(this.exports.report(this.host), Report.firstRead);
                if (report[Report.kind] === TOKEN_EVENT) {
                    tokens.push(report[Report.token] ?? -1);
                }
            }
        }
    }

    text(text: string): [number, number] {
        const bytes = new TextEncoder().encode(text);
        return [this.put(bytes), bytes.length];
    }

    open(sizes: number[]): number {
        sizes.forEach((size, i) => this.exports.input_add(this.host, ...this.text(`file-${i}.gguf`), size));
        const job = this.exports.model_open(this.host, ...this.text("{\"device\":\"cpu\"}"));
        this.add("job", job);
        return job;
    }

    randomCall(): void {
        const often = this.random(2) ? this.pick(OFTEN) : null;
        const [name, kinds, result] = often ? (CALLS.find(([n]) => n === often) as (typeof CALLS)[number]) : this.pick(CALLS);
        const args = kinds.flatMap((kind) => this.argument(kind, name));
        if (name === "alloc" && (args[0] ?? 0) > MAX_BLOCK) {
            args[0] = MAX_BLOCK;
        }
        const got = (this.exports[name] as (...all: number[]) => number)(...args);
        if (name === "job_step" && got === Progress.needBytes && args[0] === this.host) {
            this.serve();
        }
        if (result) {
            this.add(result, got);
        }
        check(this.memory.cString(this.exports.error_text(this.host)).length < 1000, "the error's text");
    }

    /** The vector of a text. */
    vector(model: number): number[] {
        const embedder = this.exports.embedder_new(this.host, model, ...this.text("{}"));
        const job = this.exports.embed(this.host, embedder, ...this.text("[\"hello\"]"), ...this.text("{}"));
        check(job !== 0, this.memory.cString(this.exports.error_text(this.host)));
        checkEqual(this.finish(job), [], "embedding");
        this.exports.job_vectors(this.host, job);
        const [at = 0, n, width = 0] = this.memory.doublesAt(this.exports.report(this.host), 3);
        checkEqual(n, 1, "vectors");
        const vector = Array.from(new Float32Array(this.bytes().slice(at, at + 4 * width).buffer));
        check(vector.length > 0, "the vector is empty");
        this.exports.embedder_free(embedder); // and its job
        return vector;
    }

    /** A short greedy answer of a new session, or a vector. */
    answer(model: number): number[] {
        if (this.exports.model_embedding(model)) {
            return this.vector(model);
        }
        const session = this.exports.session_new(this.host, model, ...this.text("{\"context\":64}"));
        check(session !== 0, this.memory.cString(this.exports.error_text(this.host)));
        const ids = Int32Array.of(2, 50, 51, 52, 53);
        const prefill = this.exports.prefill(this.host, session, this.put(new Uint8Array(ids.buffer)), ids.length, 0, 0);
        checkEqual(this.finish(prefill), [], "prefilling");
        this.exports.job_free(prefill);
        const generate = this.exports.generate(this.host, session, ...this.text("{\"maxTokens\":3,\"greedy\":true,\"ignoreEnd\":true}"));
        const tokens = this.finish(generate);
        this.exports.session_free(session); // and its job
        checkEqual(tokens.length, 3, "tokens");
        return tokens;
    }
}

export async function fuzzExports(random: Random): Promise<void> {
    wasm ??= await WebAssembly.compile((await readBytes(wasmPath)) as BufferSource);
    const paths = ([
        [`${goldenFolder}/e-like/text.gguf`, `${goldenFolder}/e-like/mmproj.gguf`], [`${goldenFolder}/dense-like/text.gguf`, `${goldenFolder}/assistant/assistant.gguf`],
        [`${goldenFolder}/embedding/model.gguf`], [nano], [nano],
    ] as const)[random(5)] ?? [];
    const inputs = await Promise.all(paths.map(bytesOf));
    let memory: Memory | undefined;
    const gpu = new Gpu(null, () => memory as Memory);
    const exports = await instantiate(wasm, gpu);
    memory = new Memory(exports.memory as WebAssembly.Memory);
    exports._initialize();
    const f = new Fuzzed(exports, memory, random, inputs);
    const sizes = inputs.map(({ length }) => length);
    const job = f.open(sizes);
    if (random(4)) {
        checkEqual(f.finish(job), [], "opening");
        f.add("model", exports.job_model(job));
    }
    const opened = f.objects.get("model")?.[0];
    if (opened && random(4)) {
        f.add("session", exports.session_new(f.host, opened, ...f.text("{\"context\":64}")));
    }
    for (let i = 0; i < 150; i++) {
        f.randomCall();
    }
    const again = new Fuzzed(exports, memory, random, inputs); // a second host
    const reopened = again.open(sizes);
    checkEqual(again.finish(reopened), [], "opening at the end");
    const model = exports.job_model(reopened);
    const tokens = again.answer(model);
    const name = paths.join();
    checkEqual(tokens, answers.get(name) ?? tokens, "the answer at the end");
    answers.set(name, tokens);
    exports.model_free(model);
}

/** By the names of the files: all runs must agree. */
const answers = new Map<string, number[]>();
