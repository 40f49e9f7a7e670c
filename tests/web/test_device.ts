/** The GPU imports (gpu.ts and device.ts), called as C does, without C. */
import { Gpu, statusNames } from "../../web/package/src/index.js";
import { Memory } from "../../web/package/src/memory.js";
import { withLittleMemory } from "./faults.js";
import { check, checkEqual, finish, test } from "./check.js";
import { gpuEntry, hostName, isDeno } from "./platform.js";

const STORAGE = 0;
const UNIFORM = 1;
const [STARTING, READY, LOST, FAILED] = [0, 1, 2, 3];

/** Addresses in each case's memory. */
const TEXT = 1024;
const CODE = 4096;
const CONSTANTS = 65536;
const BINDINGS = 66560;
const DATA = 131072;

const entry = await gpuEntry();

class Fixture {
    readonly memory = new Memory(new WebAssembly.Memory({ initial: 64 }));
    readonly gpu: Gpu;
    device = 0;

    constructor(gpu: GPU | null = entry) {
        this.gpu = new Gpu(gpu, () => this.memory);
    }

    get js(): Gpu["imports"] {
        return this.gpu.imports;
    }

    async open(flags = 0): Promise<number> {
        this.device = this.js.open(flags);
        await this.until(() => this.js.state(this.device) !== STARTING);
        return this.js.state(this.device);
    }

    /** Waits like runJob: checks only after a change. */
    async until(condition: () => boolean): Promise<void> {
        while (!condition()) {
            await this.gpu.changed();
        }
    }

    failure(): { code: string | undefined; text: string } {
        const code = statusNames[this.js.failure(this.device, TEXT, 400)];
        return { code, text: this.memory.cString(TEXT) };
    }

    pipeline(label: string, code: string, constants: [string, number][] = []): number {
        this.memory.putCString(TEXT, 100, label);
        this.memory.putCString(CODE, 60000, code);
        constants.forEach(([name, value], i) => {
            this.memory.putCString(CONSTANTS + 512 + 32 * i, 32, name);
            new Uint32Array(this.memory.bytes.buffer, CONSTANTS + 16 * i, 1)[0] = CONSTANTS + 512 + 32 * i;
            this.memory.doubles[CONSTANTS / 8 + 2 * i + 1] = value;
        });
        return this.js.pipeline(
            this.device,
            TEXT,
            CODE,
            new TextEncoder().encode(code).length,
            CONSTANTS,
            constants.length,
        );
    }

    async compiled(pipeline: number): Promise<{ state: number; message: string }> {
        await this.until(() => this.js.pipeline_state(pipeline, TEXT, 400) !== 0);
        return { state: this.js.pipeline_state(pipeline, TEXT, 400), message: this.memory.cString(TEXT) };
    }

    add(list: number, pipeline: number, bindings: [number, number, number][], x = 1): void {
        this.memory.doublesAt(BINDINGS, 3 * bindings.length).set(bindings.flat());
        this.js.list_add(this.device, list, pipeline, BINDINGS, bindings.length, x, 1, 1);
    }

    writeWords(buffer: number, offset: number, words: number[]): void {
        new Uint32Array(this.memory.bytes.buffer, DATA, words.length).set(words);
        this.js.write(this.device, buffer, offset, DATA, 4 * words.length);
    }

    async bytesOf(fence: number, n: number): Promise<Uint8Array> {
        await this.until(() => this.js.done(fence, DATA) === 1 || this.js.state(this.device) !== READY);
        return this.memory.bytes.slice(DATA, DATA + n);
    }

    async words(buffer: number, offset: number, n: number): Promise<number[]> {
        const bytes = await this.bytesOf(this.js.read(this.device, buffer, offset, 4 * n), 4 * n);
        return [...new Uint32Array(bytes.buffer)];
    }
}

const ADD = `
override STEP: u32 = 1u;
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<uniform> amount: vec4<u32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x] += amount.x * STEP;
}
`;

const name = (text: string): string => `${hostName} device: ${text}`;

await test(name("limits and features are those of the GPUDevice"), async () => {
    const b = new Fixture();
    checkEqual(await b.open(), READY, "state");
    b.js.describe(b.device, DATA, TEXT, 128);
    const fields = [...b.memory.doublesAt(DATA, 11)];
    const { limits } = b.gpu.devices[0]?.object ?? {};
    checkEqual(fields[0], limits?.maxBufferSize, "buffer");
    checkEqual(fields[5], limits?.maxComputeWorkgroupsPerDimension, "workgroups");
    check((fields[0] ?? 0) > 256 << 20 && (fields[4] ?? 0) > 256, "limits are raised");
    check(b.memory.cString(TEXT).length > 3, "the adapter has a name");
    check(
        isDeno || ((fields[10] ?? 0) & 15) === 15,
        "lavapipe has f16, subgroups, timestamps and packed dot products",
    );
});

await test(name("the baseline has no features and no raised limits"), async () => {
    const b = new Fixture();
    checkEqual(await b.open(1), READY, "state");
    b.js.describe(b.device, DATA, TEXT, 128);
    const fields = [...b.memory.doublesAt(DATA, 11)];
    checkEqual(fields.slice(0, 8), [256 << 20, 128 << 20, 8, 16384, 256, 65535, 256, 256], "limits");
    checkEqual((fields[10] ?? 0) & 15, 0, "features");
});

await test(name("the flags no_f16 and no_subgroups disable features"), async () => {
    const b = new Fixture();
    await b.open(6);
    b.js.describe(b.device, DATA, TEXT, 128);
    checkEqual((b.memory.doublesAt(DATA, 11)[10] ?? 0) & 3, 0, "features");
});

await test(name("buffers are zero-initialized and can be written, read and copied at any offset"), async () => {
    const b = new Fixture();
    await b.open();
    const buffer = b.js.buffer(b.device, 4096, STORAGE);
    checkEqual(await b.words(buffer, 0, 4), [0, 0, 0, 0], "initial");
    b.writeWords(buffer, 8, [0x04030201, 0x08070605]);
    const bytes = await b.bytesOf(b.js.read(b.device, buffer, 9, 5), 5);
    checkEqual([...bytes], [2, 3, 4, 5, 6], "five bytes at 9");
    const other = b.js.buffer(b.device, 64, STORAGE);
    b.js.copy(b.device, buffer, 8, other, 16, 8);
    checkEqual(await b.words(other, 16, 2), [0x04030201, 0x08070605], "copy");
    checkEqual(b.gpu.counts.bufferBytes, 4160, "bytes of buffers");
    b.js.buffer_free(buffer);
    checkEqual(b.gpu.counts.bufferBytes, 64, "after one is freed");
});

await test(name("replay, and replay with a read in one submit"), async () => {
    const b = new Fixture();
    await b.open();
    const data = b.js.buffer(b.device, 1024, STORAGE);
    const amount = b.js.buffer(b.device, 16, UNIFORM);
    b.writeWords(data, 256, [10, 20, 30, 40]);
    b.writeWords(amount, 0, [3, 0, 0, 0]);
    const pipeline = b.pipeline("add", ADD, [["STEP", 100]]);
    checkEqual((await b.compiled(pipeline)).state, 1, "compiled");
    const list = b.js.list(b.device);
    b.add(list, pipeline, [
        [data, 256, 256],
        [amount, 0, 0],
    ]);
    b.add(list, pipeline, [
        [data, 256, 0],
        [amount, 0, 0],
    ]);
    const before = { ...b.gpu.counts };
    b.js.replay(b.device, list, 0, 1);
    b.js.pipeline_free(pipeline); // a list holds references to its pipelines
    const fence = b.js.replay_read(b.device, list, 0, 2, data, 256, 16);
    checkEqual(b.gpu.counts.submits - before.submits, 2, "submits");
    checkEqual(b.gpu.counts.dispatches - before.dispatches, 3, "dispatches");
    const bytes = await b.bytesOf(fence, 16);
    checkEqual([...new Uint32Array(bytes.buffer)], [910, 920, 930, 940], "values");
    const signal = b.js.signal(b.device);
    await b.until(() => b.js.done(signal, 0) === 1);
    checkEqual(b.js.done(signal, 0), 0, "a fence completes once");
});

await test(name("repeated reads reuse staging buffers"), async () => {
    const b = new Fixture();
    await b.open();
    const buffer = b.js.buffer(b.device, 64, STORAGE);
    const device = b.gpu.devices[0]?.object as GPUDevice;
    await b.words(buffer, 0, 4);
    let created = 0;
    const create = device.createBuffer.bind(device);
    device.createBuffer = (descriptor) => {
        created++;
        return create(descriptor);
    };
    for (let i = 0; i < 10; i++) {
        await b.words(buffer, 0, 4);
    }
    for (let i = 0; i < 5; i++) {
        b.js.drop(b.js.read(b.device, buffer, 0, 16)); // a dropped read returns its buffer as well
        const signal = b.js.signal(b.device);
        await b.until(() => b.js.done(signal, 0) === 1);
        await b.words(buffer, 0, 4);
    }
    check(created <= 1, `${created} buffers created`);
});

await test(name("a shader error is reported with its line"), async () => {
    const b = new Fixture();
    await b.open();
    const { state, message } = await b.compiled(b.pipeline("broken", ADD.replace("amount.x", "amounts.x")));
    checkEqual(state, 2, "state");
    check(message.startsWith("Kernel broken") && message.includes("amounts"), `message: ${message}`);
    check(isDeno || message.includes("line 6"), `message: ${message}`);
    checkEqual(b.js.state(b.device), READY, "the device is still usable");
});

await test(name("an unknown override is reported"), async () => {
    const b = new Fixture();
    await b.open();
    const { state, message } = await b.compiled(b.pipeline("unknown", ADD, [["NONE", 1]]));
    checkEqual(state, 2, "state");
    check(message.startsWith("Kernel unknown"), `message: ${message}`);
});

await test(name("a device loss is reported, and no fence completes"), async () => {
    const b = new Fixture();
    await b.open();
    const buffer = b.js.buffer(b.device, 64, STORAGE);
    b.gpu.devices[0]?.object.destroy();
    const fence = b.js.read(b.device, buffer, 0, 4);
    await b.until(() => b.js.state(b.device) === LOST);
    checkEqual(b.failure().code, "device_lost", "code");
    checkEqual(fence && b.js.done(fence, DATA), 0, "fence");
    checkEqual(b.js.buffer(b.device, 64, STORAGE), 0, "a new buffer");
});

await test(name("running out of GPU memory is reported before the next fence completes"), async () => {
    const b = new Fixture(withLittleMemory(entry, 1 << 20));
    await b.open();
    check(b.js.buffer(b.device, 1 << 16, STORAGE) > 0, "a small buffer");
    const signal = b.js.signal(b.device);
    await b.until(() => b.js.done(signal, 0) === 1);
    b.js.buffer(b.device, 1 << 20, STORAGE);
    const second = b.js.signal(b.device);
    await b.until(() => b.js.done(second, 0) === 1 || b.js.state(b.device) === FAILED);
    checkEqual(b.failure().code, "out_of_memory", "code");
    check(b.failure().text.includes("1048576"), b.failure().text);
});

await test(name("invalid bindings fail the device before results are read"), async () => {
    const b = new Fixture();
    await b.open();
    const small = b.js.buffer(b.device, 64, STORAGE);
    const pipeline = b.pipeline("add", ADD);
    await b.compiled(pipeline);
    const list = b.js.list(b.device);
    b.add(list, pipeline, [[small, 0, 0]]); // the second is missing
    const fence = b.js.replay_read(b.device, list, 0, 1, small, 0, 16);
    await b.until(() => b.js.state(b.device) !== READY || (fence > 0 && b.js.done(fence, DATA) === 1));
    checkEqual(b.js.state(b.device), FAILED, "state");
    checkEqual(b.failure().code, "bad_request", "code");
});

await test(name("wrong handles and ranges fail the device without an exception"), async () => {
    for (const wrong of [
        (b: Fixture) => b.js.write(b.device, 99, 0, DATA, 4),
        (b: Fixture) => b.js.replay(b.device, 99, 0, 1),
        (b: Fixture) => b.js.read(b.device, 99, 0, 4),
        (b: Fixture) => b.add(b.js.list(b.device), 99, []),
        (b: Fixture) => b.js.replay(b.device, b.js.list(b.device), 0, 1),
        (b: Fixture) => b.js.write(b.device, b.js.buffer(b.device, 16, STORAGE), 16, DATA, 4),
    ]) {
        const b = new Fixture();
        await b.open();
        wrong(b);
        const signal = b.js.signal(b.device);
        await b.until(() => b.js.state(b.device) === FAILED || (signal > 0 && b.js.done(signal, 0) === 1));
        checkEqual(b.js.state(b.device), FAILED, `state after ${String(wrong)}`);
        checkEqual(b.failure().code, "bad_request", "code");
    }
});

await test(name("without WebGPU, and without a GPU"), async () => {
    const none = new Fixture(null);
    checkEqual(await none.open(), FAILED, "state");
    checkEqual(none.failure().code, "no_webgpu", "code");
    const empty = new Fixture({ requestAdapter: () => Promise.resolve(null) } as unknown as GPU);
    checkEqual(await empty.open(), FAILED, "state");
    checkEqual(empty.failure().code, "no_adapter", "code");
});

await test(name("dispatch timing"), async () => {
    const b = new Fixture();
    await b.open();
    const data = b.js.buffer(b.device, 1024, STORAGE);
    const amount = b.js.buffer(b.device, 16, UNIFORM);
    const pipeline = b.pipeline("add", ADD);
    await b.compiled(pipeline);
    const list = b.js.list(b.device);
    for (let i = 0; i < 3; i++) {
        b.add(list, pipeline, [
            [data, 0, 0],
            [amount, 0, 0],
        ]);
    }
    const times = await b.gpu.devices[0]?.time(b.gpu.lists[0] as never);
    checkEqual(
        times?.map(({ label }) => label),
        ["add", "add", "add"],
        "labels",
    );
    check(times?.every(({ ns }) => ns >= 0) ?? false, "times");
});

finish();
