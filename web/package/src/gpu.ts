/** WebGPU for the engine: implements the imports of module "gpu" (src/gpu/device/web.c) on devices.
 *
 * Handles are small numbers; 0 is none. Nothing here depends on the model: C creates buffers, pipelines and dispatch
 * lists, and one call replays a range of a list. */
import {
    Device,
    messageOf,
    PipelineState,
    State,
    type DeviceCounts,
    type DeviceHost,
    type Fence,
    type List,
    type Pipeline,
} from "./device.js";
import { statusNumber } from "./errors.js";
import type { Memory } from "./memory.js";

/** GPUBufferUsage by gpu_usage of gpu.h: STORAGE, UNIFORM, none; COPY is added to all. */
const USAGES = [0x80, 0x40, 0];
const COPY = 0x4 | 0x8;

/** Objects by handle; handles are never reused. */
class Table<T> {
    readonly #items = new Map<number, T>();
    #last = 0;

    add(item: T): number {
        this.#items.set(++this.#last, item);
        return this.#last;
    }

    at(handle: number): T | undefined {
        return this.#items.get(handle);
    }

    remove(handle: number): T | undefined {
        const item = this.#items.get(handle);
        this.#items.delete(handle);
        return item;
    }

        removeIf(matches: (item: T) => boolean): void {
        this.#items.forEach((item, handle) => matches(item) && this.#items.delete(handle));
    }

    get values(): T[] {
        return [...this.#items.values()];
    }
}

/** All devices of one engine, and the imports through which C uses them. */
export class Gpu implements DeviceHost {
    readonly entry: GPU | null;
    readonly #memory: () => Memory;
    readonly #devices = new Table<Device>();
    readonly #buffers = new Table<{ device: Device; object: GPUBuffer }>();
    readonly #pipelines = new Table<Pipeline>();
    readonly #lists = new Table<List>();
    readonly #fences = new Table<Fence>();
    #waiting: (() => void)[] = [];
    /** Called whenever a kernel is requested or has been compiled. */
    onCompile: ((done: number, total: number) => void) | null = null;

    constructor(entry: GPU | null, memory: () => Memory) {
        this.entry = entry;
        this.#memory = memory;
    }

    /** Resolves the promises of changed(). */
    wake(): void {
        const waiting = this.#waiting;
        this.#waiting = [];
        waiting.forEach((resolve) => resolve());
    }

    /** Resolves at the next fence, compiled pipeline, or ready or failed device. */
    changed(): Promise<void> {
        return new Promise((resolve) => this.#waiting.push(resolve));
    }

    bufferOf(handle: number): GPUBuffer {
        const buffer = this.#buffers.at(handle);
        if (!buffer) {
            throw new Error(`there is no GPU buffer ${handle}`);
        }
        return buffer.object;
    }

    /** Writes a file's bytes into a buffer, padding the last word with zeros. */
    upload(handle: number, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
        const buffer = this.#buffers.at(handle);
        if (buffer?.device.usable) {
            const whole = bytes.byteLength - (bytes.byteLength % 4);
            buffer.device.write(buffer.object, offset, bytes.subarray(0, whole));
            if (whole < bytes.byteLength) {
                const last = new Uint8Array(4);
                last.set(bytes.subarray(whole));
                buffer.device.write(buffer.object, offset + whole, last);
            }
        }
    }

    /** Summed over all devices. */
    get counts(): DeviceCounts {
        const sum: DeviceCounts = {
            dispatches: 0,
            submits: 0,
            readBytes: 0,
            writtenBytes: 0,
            bufferBytes: 0,
        };
        for (const { counts } of this.#devices.values) {
            for (const key of Object.keys(sum) as (keyof DeviceCounts)[]) {
                sum[key] += counts[key];
            }
        }
        return sum;
    }

    /** For tests and benchmarks. */
    get devices(): Device[] {
        return this.#devices.values;
    }

    get lists(): List[] {
        return this.#lists.values;
    }

    // ---- the imports ------------------------------------------------------------------------

    /** Runs `act` on a usable device; an exception, as for a wrong handle, fails the device. */
    #withDevice<T>(handle: number, fallback: T, act: (device: Device) => T): T {
        const device = this.#devices.at(handle);
        if (!device?.usable) {
            return fallback;
        }
        try {
            return act(device);
        } catch (reason) {
            device.fail("bad_request", messageOf(reason));
            return fallback;
        }
    }

    #reportCompiled(): void {
        const all = this.#pipelines.values;
        this.onCompile?.(all.filter(({ state }) => state !== PipelineState.compiling).length, all.length);
    }

    #listOf(handle: number, first: number, count: number): List {
        const list = this.#lists.at(handle);
        if (!list || first + count > list.dispatches.length) {
            throw new Error(
                `dispatches ${first} to ${first + count} are outside a list of ${list?.dispatches.length ?? 0}`,
            );
        }
        return list;
    }

    readonly imports = {
        open: (flags: number): number =>
            this.#devices.add(
                new Device(this, {
                    baseline: (flags & 1) !== 0,
                    noF16: (flags & 2) !== 0,
                    noSubgroups: (flags & 4) !== 0,
                }),
            ),

        close: (handle: number): void => {
            const device = this.#devices.remove(handle);
            device?.close();
            for (const table of [this.#buffers, this.#pipelines, this.#lists, this.#fences]) {
                table.removeIf((item: { device: Device }) => item.device === device);
            }
        },

        state: (handle: number): number => this.#devices.at(handle)?.state ?? State.failed,

        failure: (handle: number, text: number, capacity: number): number => {
            const failure = this.#devices.at(handle)?.failure;
            this.#memory().putCString(text, capacity, failure?.message ?? "it was closed");
            return statusNumber(failure?.code ?? "device_lost");
        },

        describe: (handle: number, limitsTo: number, name: number, nameCapacity: number): void => {
            const device = this.#devices.at(handle);
            if (!device) {
                return;
            }
            const { limits } = device.object;
            const f = device.features;
            this.#memory()
                .doublesAt(limitsTo, 11)
                .set([
                    limits.maxBufferSize,
                    limits.maxStorageBufferBindingSize,
                    limits.maxStorageBuffersPerShaderStage,
                    limits.maxComputeWorkgroupStorageSize,
                    limits.maxComputeInvocationsPerWorkgroup,
                    limits.maxComputeWorkgroupsPerDimension,
                    limits.minStorageBufferOffsetAlignment,
                    limits.minUniformBufferOffsetAlignment,
                    device.subgroupMin,
                    device.subgroupMax,
                    Number(f.f16) |
                        (Number(f.subgroups) << 1) |
                        (Number(f.timestamps) << 2) |
                        (Number(f.packedDot) << 3) |
                        (Number(f.cpu) << 4) |
                        (Number(f.matrices) << 5),
                ]);
            this.#memory().putCString(name, nameCapacity, device.name);
        },

        counts: (handle: number, numbers: number): void => {
            const counts = this.#devices.at(handle)?.counts;
            if (counts) {
                const { dispatches, submits, readBytes, writtenBytes, bufferBytes } = counts;
                this.#memory()
                    .doublesAt(numbers, 5)
                    .set([dispatches, submits, readBytes, writtenBytes, bufferBytes]);
            }
        },

        buffer: (handle: number, bytes: number, usage: number): number =>
            this.#withDevice(handle, 0, (device) => {
                const object = device.createBuffer(bytes, (USAGES[usage] ?? 0) | COPY);
                device.counts.bufferBytes += bytes;
                return this.#buffers.add({ device, object });
            }),

        buffer_free: (handle: number): void => {
            const buffer = this.#buffers.remove(handle);
            if (buffer) {
                buffer.device.counts.bufferBytes -= buffer.object.size;
                buffer.object.destroy();
            }
        },

        write: (handle: number, buffer: number, offset: number, address: number, n: number): void =>
            this.#withDevice(handle, undefined, (device) => {
                device.write(
                    this.bufferOf(buffer),
                    offset,
                    this.#memory().bytes.subarray(address, address + n),
                );
            }),

        copy: (
            handle: number,
            from: number,
            fromOffset: number,
            to: number,
            toOffset: number,
            n: number,
        ): void =>
            this.#withDevice(handle, undefined, (device) => {
                const encoder = device.object.createCommandEncoder();
                encoder.copyBufferToBuffer(this.bufferOf(from), fromOffset, this.bufferOf(to), toOffset, n);
                device.submit(encoder);
            }),

        pipeline: (
            handle: number,
            label: number,
            wgsl: number,
            length: number,
            constants: number,
            n: number,
        ): number =>
            this.#withDevice(handle, 0, (device) => {
                const memory = this.#memory();
                const values: Record<string, number> = {};
                for (let i = 0; i < n; i++) {
                    const at = constants + 16 * i; // struct gpu_constant
                    values[memory.cString(memory.uint32At(at))] = memory.doubles[at / 8 + 1] ?? 0;
                }
                const pipeline: Pipeline = {
                    device,
                    label: memory.cString(label),
                    state: PipelineState.compiling,
                    object: null,
                    message: "",
                };
                const added = this.#pipelines.add(pipeline);
                void device.compile(pipeline, memory.text(wgsl, length), values).then(() => this.#reportCompiled());
                this.#reportCompiled();
                return added;
            }),

        pipeline_state: (handle: number, text: number, capacity: number): number => {
            const pipeline = this.#pipelines.at(handle);
            this.#memory().putCString(text, capacity, pipeline?.message ?? `There is no kernel ${handle}`);
            return pipeline?.state ?? PipelineState.failed;
        },

        pipeline_free: (handle: number): void => {
            this.#pipelines.remove(handle);
        },

        list: (handle: number): number =>
            this.#withDevice(handle, 0, (device) => this.#lists.add({ device, dispatches: [], built: 0 })),

        list_free: (handle: number): void => {
            this.#lists.remove(handle);
        },

        list_add: (
            handle: number,
            list: number,
            pipeline: number,
            bindings: number,
            n: number,
            x: number,
            y: number,
            z: number,
        ): void =>
            this.#withDevice(handle, undefined, () => {
                const { object, label } = this.#pipelines.at(pipeline) ?? {};
                if (!object || label === undefined) {
                    throw new Error(`kernel ${pipeline} is not compiled`);
                }
                const fields = this.#memory().doublesAt(bindings, 3 * n);
                this.#listOf(list, 0, 0).dispatches.push({
                    pipeline: object,
                    label,
                    bindings: Array.from({ length: n }, (_, i) => ({
                        buffer: fields[3 * i] ?? 0,
                        offset: fields[3 * i + 1] ?? 0,
                        size: fields[3 * i + 2] ?? 0,
                    })),
                    group: null,
                    x,
                    y,
                    z,
                });
            }),

        replay: (handle: number, list: number, first: number, count: number): void =>
            this.#withDevice(handle, undefined, (device) => {
                device.submit(device.encode(this.#listOf(list, first, count), first, count));
            }),

        read: (handle: number, buffer: number, offset: number, n: number): number =>
            this.#withDevice(handle, 0, (device) => {
                const encoder = device.object.createCommandEncoder();
                return this.#fences.add(device.read(encoder, this.bufferOf(buffer), offset, n));
            }),

        replay_read: (
            handle: number,
            list: number,
            first: number,
            count: number,
            buffer: number,
            offset: number,
            n: number,
        ): number =>
            this.#withDevice(handle, 0, (device) => {
                const encoder = device.encode(this.#listOf(list, first, count), first, count);
                return this.#fences.add(device.read(encoder, this.bufferOf(buffer), offset, n));
            }),

        signal: (handle: number): number =>
            this.#withDevice(handle, 0, (device) => this.#fences.add(device.signal())),

        done: (handle: number, to: number): number => {
            const fence = this.#fences.at(handle);
            if (!fence?.arrived || !fence.device.usable) {
                return 0;
            }
            this.#fences.remove(handle);
            fence.device.finish(fence, to ? this.#memory().bytes.subarray(to, to + fence.n) : null);
            return 1;
        },

        drop: (handle: number): void => {
            const fence = this.#fences.remove(handle);
            if (fence?.arrived) {
                fence.device.finish(fence, null);
            } else if (fence) {
                fence.dropped = true;
            }
        },
    };
}
