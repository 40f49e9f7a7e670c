/** One GPUDevice: features and limits, buffers, pipelines, dispatch lists, read-back, timing.
 *
 * WebGPU reports errors asynchronously. Every operation opens error scopes, and a fence is signalled only after all
 * earlier scopes have resolved, so that the result of a failed command is never read. */
import { adapterName } from "./adapter_name.js";
import type { ErrorCode } from "./errors.js";
import { MATRICES, MATRIX_PROBE, offersMatrices } from "./matrices.js";

/* WebGPU constants as numbers: not every host defines the global names. */
const MAP_READ = 0x1;
const COPY_SRC = 0x4;
const COPY_DST = 0x8;
const QUERY_RESOLVE = 0x200;
const MAP_MODE_READ = 1;

/** gpu_state and gpu_pipeline_state of gpu.h. */
export const State = { starting: 0, ready: 1, lost: 2, failed: 3 } as const;
export const PipelineState = { compiling: 0, ready: 1, failed: 2 } as const;

const MIN_STAGING = 4096;
const MAX_IDLE_STAGING = 64 << 20;
const TIMED_PER_SUBMIT = 1024;

export interface DeviceOptions {
    /** No features and default limits, as on Safari, Firefox and phones. */
    baseline: boolean;
    noF16: boolean;
    noSubgroups: boolean;
}

export interface DeviceCounts {
    dispatches: number;
    submits: number;
    readBytes: number;
    writtenBytes: number;
    /** Of the buffers that currently exist. */
    bufferBytes: number;
}

export interface Binding {
    buffer: number;
    offset: number;
    size: number;
}

export interface Dispatch {
    pipeline: GPUComputePipeline;
    label: string;
    bindings: Binding[];
    group: GPUBindGroup | null;
    x: number;
    y: number;
    z: number;
}

export interface Pipeline {
    device: Device;
    label: string;
    state: (typeof PipelineState)[keyof typeof PipelineState];
    object: GPUComputePipeline | null;
    message: string;
}

export interface List {
    device: Device;
    dispatches: Dispatch[];
    /** How many dispatches have their bind group. */
    built: number;
}

export interface Fence {
    device: Device;
    /** Receives the bytes that are read; null for a signal. */
    staging: GPUBuffer | null;
    skip: number;
    n: number;
    arrived: boolean;
    /** The caller no longer waits: its staging buffer is released on arrival. */
    dropped: boolean;
}

/** The first line of an implementation's message, without a full stop: callers add their own. */
function oneLine(message: string): string {
    const end = message.indexOf("\n    at "); // Dawn's stack trace follows
    const text = end < 0 ? message : message.slice(0, end);
    return text.replace(/\s+/g, " ").replace(/[. ]+$/, "") || "no reason given";
}

export function messageOf(reason: unknown): string {
    return oneLine(reason instanceof Error ? reason.message : String(reason));
}

/* The error code for a GPUError. bad_request: a validation error, hence a bug of this package; no_webgpu: a valid call
 * that this implementation failed to execute. */
function codeOf(error: GPUError): ErrorCode {
    const kind = error.constructor.name;
    return kind === "GPUOutOfMemoryError"
        ? "out_of_memory"
        : kind === "GPUValidationError"
          ? "bad_request"
          : "no_webgpu";
}

async function compiles(device: GPUDevice, code: string): Promise<boolean> {
    device.pushErrorScope("validation");
    device.createShaderModule({ code });
    return (await device.popErrorScope()) === null;
}

/** What a device needs from its owner. */
export interface DeviceHost {
    /** navigator.gpu or a replacement; null: there is none. */
    readonly entry: GPU | null;
    bufferOf(handle: number): GPUBuffer;
    /** Called after any change that a job may be waiting for. */
    wake(): void;
}

/** One GPUDevice, from the request for it to its end. */
export class Device {
    readonly host: DeviceHost;
    state: (typeof State)[keyof typeof State] = State.starting;
    failure: { code: ErrorCode; message: string } | null = null;
    name = "unknown GPU";
    features = { f16: false, subgroups: false, timestamps: false, packedDot: false, cpu: false, matrices: false };
    subgroupMin = 0;
    subgroupMax = 0;
    readonly counts: DeviceCounts = {
        dispatches: 0,
        submits: 0,
        readBytes: 0,
        writtenBytes: 0,
        bufferBytes: 0,
    };
    #object: GPUDevice | null = null;
    #closed = false;
    /** Resolves when all open error scopes have. */
    #pendingScopes: Promise<void> | null = null;
    #idle: GPUBuffer[] = [];
    #idleBytes = 0;
    /** Something was written since the last submit. */
    #written = false;

    constructor(host: DeviceHost, options: DeviceOptions) {
        this.host = host;
        this.#start(options).catch((reason: unknown) => this.fail("no_adapter", messageOf(reason)));
    }

    get object(): GPUDevice {
        if (!this.#object) {
            throw new Error("the device is not ready yet");
        }
        return this.#object;
    }

    get usable(): boolean {
        return this.state === State.ready;
    }

    /** Marks the device as failed. The first cause is kept, except that a device loss replaces it. */
    fail(code: ErrorCode, message: string): void {
        const lost = code === "device_lost";
        if (
            !this.#closed &&
            (this.state === State.starting ||
                this.state === State.ready ||
                (lost && this.state !== State.lost))
        ) {
            this.state = lost ? State.lost : State.failed;
            this.failure = { code, message };
        }
        this.host.wake();
    }

    close(): void {
        this.#closed = true;
        this.state = State.failed;
        this.failure = { code: "device_lost", message: "it was closed" };
        this.#object?.destroy();
    }

    // ---- starting ---------------------------------------------------------------------------

    async #start(options: DeviceOptions): Promise<void> {
        const entry = this.host.entry;
        if (!entry) {
            this.fail(
                "no_webgpu",
                "WebGPU is not available; it needs a current browser and a page served over https",
            );
            return;
        }
        const adapter = await entry.requestAdapter({ powerPreference: "high-performance" });
        if (!adapter) {
            this.fail("no_adapter", "WebGPU found no usable GPU");
            return;
        }
        const wanted: [GPUFeatureName, boolean][] = [
            ["shader-f16", !options.noF16],
            ["subgroups", !options.noSubgroups],
            ["timestamp-query", true],
            [MATRICES, !options.noF16 && !options.noSubgroups && offersMatrices(adapter)],
        ];
        const requiredFeatures = wanted
            .filter(([name, enabled]) => enabled && !options.baseline && adapter.features.has(name))
            .map(([name]) => name);
        const limits = adapter.limits;
        const requiredLimits = {
            maxBufferSize: limits.maxBufferSize,
            maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
            maxStorageBuffersPerShaderStage: limits.maxStorageBuffersPerShaderStage,
            maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize,
            maxComputeInvocationsPerWorkgroup: limits.maxComputeInvocationsPerWorkgroup,
            maxComputeWorkgroupSizeX: limits.maxComputeWorkgroupSizeX,
            maxComputeWorkgroupSizeY: limits.maxComputeWorkgroupSizeY,
            maxComputeWorkgroupSizeZ: limits.maxComputeWorkgroupSizeZ,
            maxComputeWorkgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
            minStorageBufferOffsetAlignment: limits.minStorageBufferOffsetAlignment,
            minUniformBufferOffsetAlignment: limits.minUniformBufferOffsetAlignment,
        };
        const device = await adapter.requestDevice(
            options.baseline ? {} : { requiredFeatures, requiredLimits },
        );
        if (this.#closed) {
            device.destroy();
            return;
        }
        this.#object = device;
        void device.lost.then((info) => this.fail("device_lost", oneLine(info.message || info.reason)));
        device.addEventListener("uncapturederror", (event) => {
            this.fail(codeOf(event.error), oneLine(event.error.message));
        });
        const info = adapter.info;
        this.name = adapterName(info);
        this.features.cpu = info.isFallbackAdapter ?? false;
        if (!options.baseline) {
            // Some implementations announce features that do not compile, so each one is tried.
            this.features.f16 =
                device.features.has("shader-f16") &&
                (await compiles(device, "enable f16; @compute @workgroup_size(1) fn main() { _ = 1.0h; }"));
            this.features.subgroups =
                device.features.has("subgroups") &&
                (await compiles(
                    device,
                    "enable subgroups; @compute @workgroup_size(64) fn main() { _ = subgroupAdd(1u); }",
                ));
            this.features.packedDot = await compiles(
                device,
                "@compute @workgroup_size(1) fn main() { _ = dot4I8Packed(1u, 2u); }",
            );
            this.features.timestamps = device.features.has("timestamp-query");
            this.features.matrices =
                device.features.has(MATRICES) &&
                this.features.f16 &&
                this.features.subgroups &&
                (await compiles(device, MATRIX_PROBE));
        }
        if (this.features.subgroups) {
            this.subgroupMin = info.subgroupMinSize;
            this.subgroupMax = info.subgroupMaxSize;
        }
        if (this.state === State.starting) {
            this.state = State.ready;
        }
        this.host.wake();
    }

    // ---- errors -----------------------------------------------------------------------------

    /** Runs an operation in error scopes. An error fails the device before the next fence is signalled. */
    withErrorScopes<T>(what: string, make: () => T): T {
        const device = this.object;
        const filters: GPUErrorFilter[] = ["internal", "out-of-memory", "validation"];
        filters.forEach((filter) => device.pushErrorScope(filter));
        const result = make();
        const before = this.#pendingScopes;
        const resolved = Promise.all([before, ...filters.map(() => device.popErrorScope())]).then(
            ([, ...errors]) => {
                for (const error of errors) {
                    if (error) {
                        this.fail(codeOf(error), `${what}: ${oneLine(error.message)}`);
                    }
                }
            },
            () => undefined, // the device is lost, which device.lost reports
        );
        this.#pendingScopes = resolved;
        void resolved.then(() => {
            if (this.#pendingScopes === resolved) {
                this.#pendingScopes = null;
            }
        });
        return result;
    }

    // ---- buffers ----------------------------------------------------------------------------

    createBuffer(size: number, usage: number): GPUBuffer {
        return this.withErrorScopes(`A buffer of ${size} bytes could not be created`, () =>
            this.object.createBuffer({ size, usage }),
        );
    }

    write(buffer: GPUBuffer, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
        this.object.queue.writeBuffer(buffer, offset, bytes);
        this.counts.writtenBytes += bytes.byteLength;
        this.#written = true;
    }

    submit(encoder: GPUCommandEncoder): void {
        this.object.queue.submit([encoder.finish()]);
        this.counts.submits++;
        this.#written = false;
    }

    // ---- read-back --------------------------------------------------------------------------

    /** Appends a copy to `encoder`, submits it, and signals the fence when the bytes have arrived. */
    read(encoder: GPUCommandEncoder, buffer: GPUBuffer, offset: number, n: number): Fence {
        const begin = offset - (offset % 4);
        const length = Math.ceil((offset + n) / 4) * 4 - begin;
        const staging = this.#takeStaging(length);
        encoder.copyBufferToBuffer(buffer, begin, staging, 0, length);
        this.submit(encoder);
        this.counts.readBytes += n;
        return this.#fence(staging.mapAsync(MAP_MODE_READ, 0, length), staging, offset - begin, n);
    }

    signal(): Fence {
        if (this.#written) {
            this.object.queue.submit([]); // some implementations start a write only with the next submit
            this.#written = false;
        }
        return this.#fence(this.object.queue.onSubmittedWorkDone(), null, 0, 0);
    }

    #fence(done: Promise<void>, staging: GPUBuffer | null, skip: number, n: number): Fence {
        const fence: Fence = { device: this, staging, skip, n, arrived: false, dropped: false };
        const scopes = this.#pendingScopes;
        done.then(
            async () => {
                await scopes;
                fence.arrived = true;
                if (fence.dropped) {
                    this.finish(fence, null);
                }
                this.host.wake();
            },
            (reason: unknown) => this.fail("device_lost", `reading a buffer failed, ${messageOf(reason)}`),
        );
        return fence;
    }

    /** Copies the bytes of a fence that has arrived, and recycles its staging buffer. */
    finish(fence: Fence, to: Uint8Array | null): void {
        const staging = fence.staging;
        if (!staging || !this.usable) {
            return;
        }
        if (to) {
            const length = Math.ceil((fence.skip + fence.n) / 4) * 4;
            to.set(new Uint8Array(staging.getMappedRange(0, length), fence.skip, fence.n));
        }
        staging.unmap();
        if (this.#idleBytes + staging.size > MAX_IDLE_STAGING) {
            staging.destroy();
        } else {
            this.#idle.push(staging);
            this.#idleBytes += staging.size;
        }
    }

    /** The smallest idle staging buffer that is large enough, or a new one. */
    #takeStaging(bytes: number): GPUBuffer {
        let best = -1;
        this.#idle.forEach((buffer, i) => {
            const smallest = this.#idle[best];
            if (buffer.size >= bytes && (!smallest || buffer.size < smallest.size)) {
                best = i;
            }
        });
        const [found] = best < 0 ? [] : this.#idle.splice(best, 1);
        if (found) {
            this.#idleBytes -= found.size;
            return found;
        }
        let size = MIN_STAGING;
        while (size < bytes) {
            size *= 2;
        }
        return this.createBuffer(size, MAP_READ | COPY_DST);
    }

    // ---- pipelines --------------------------------------------------------------------------

    async compile(pipeline: Pipeline, code: string, constants: Record<string, number>): Promise<void> {
        const { label } = pipeline;
        this.object.pushErrorScope("validation");
        const module = this.object.createShaderModule({ label, code });
        void this.object.popErrorScope(); // getCompilationInfo says more
        try {
            pipeline.object = await this.object.createComputePipelineAsync({
                label,
                layout: "auto",
                compute: { module, entryPoint: "main", constants },
            });
            pipeline.state = PipelineState.ready;
        } catch (reason) {
            pipeline.message = `Kernel ${label} could not be compiled: ${messageOf(reason)}`;
            const info = await module.getCompilationInfo().catch(() => null);
            const first = info?.messages.find((message) => message.type === "error");
            if (first) {
                const place = `line ${first.lineNum}, column ${first.linePos}`;
                pipeline.message = `Kernel ${label}, ${place}: ${oneLine(first.message)}`;
            }
            pipeline.state = PipelineState.failed;
        }
        this.host.wake();
    }

    // ---- lists ------------------------------------------------------------------------------

    /** Creates the bind groups that are missing. */
    build(list: List): void {
        if (list.built === list.dispatches.length) {
            return;
        }
        this.withErrorScopes("The bindings of a kernel do not match its layout", () => {
            for (const dispatch of list.dispatches.slice(list.built)) {
                const entries = dispatch.bindings.map(({ buffer, offset, size }, binding) => ({
                    binding,
                    resource: { buffer: this.host.bufferOf(buffer), offset, ...(size ? { size } : {}) },
                }));
                const layout = dispatch.pipeline.getBindGroupLayout(0);
                dispatch.group = this.object.createBindGroup({ label: dispatch.label, layout, entries });
            }
        });
        list.built = list.dispatches.length;
    }

    /** Encodes a range of the list as one compute pass, without submitting it. */
    encode(list: List, first: number, count: number): GPUCommandEncoder {
        this.build(list);
        const encoder = this.object.createCommandEncoder();
        const pass = encoder.beginComputePass();
        let current: GPUComputePipeline | null = null;
        for (let i = first; i < first + count; i++) {
            const dispatch = list.dispatches[i] as Dispatch;
            if (dispatch.pipeline !== current) {
                current = dispatch.pipeline;
                pass.setPipeline(current);
            }
            pass.setBindGroup(0, dispatch.group);
            pass.dispatchWorkgroups(dispatch.x, dispatch.y, dispatch.z);
        }
        pass.end();
        this.counts.dispatches += count;
        return encoder;
    }

    // ---- timing -----------------------------------------------------------------------------

    /** Nanoseconds per dispatch, each run in a pass of its own; for benchmarks. */
    async time(list: List): Promise<{ label: string; ns: number }[]> {
        const times: { label: string; ns: number }[] = [];
        if (!this.features.timestamps) {
            return times;
        }
        this.build(list);
        const querySet = this.object.createQuerySet({ type: "timestamp", count: 2 * TIMED_PER_SUBMIT });
        const resolved = this.object.createBuffer({
            size: 16 * TIMED_PER_SUBMIT,
            usage: QUERY_RESOLVE | COPY_SRC,
        });
        for (let first = 0; first < list.dispatches.length; first += TIMED_PER_SUBMIT) {
            const some = list.dispatches.slice(first, first + TIMED_PER_SUBMIT);
            const encoder = this.object.createCommandEncoder();
            some.forEach((dispatch, i) => {
                const pass = encoder.beginComputePass({
                    timestampWrites: {
                        querySet,
                        beginningOfPassWriteIndex: 2 * i,
                        endOfPassWriteIndex: 2 * i + 1,
                    },
                });
                pass.setPipeline(dispatch.pipeline);
                pass.setBindGroup(0, dispatch.group);
                pass.dispatchWorkgroups(dispatch.x, dispatch.y, dispatch.z);
                pass.end();
            });
            encoder.resolveQuerySet(querySet, 0, 2 * some.length, resolved, 0);
            const staging = this.object.createBuffer({ size: 16 * some.length, usage: MAP_READ | COPY_DST });
            encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16 * some.length);
            this.submit(encoder);
            await staging.mapAsync(MAP_MODE_READ);
            const ticks = new BigUint64Array(staging.getMappedRange());
            some.forEach(({ label }, i) => {
                times.push({ label, ns: Number((ticks[2 * i + 1] ?? 0n) - (ticks[2 * i] ?? 0n)) });
            });
            staging.destroy();
        }
        querySet.destroy();
        resolved.destroy();
        return times;
    }
}
