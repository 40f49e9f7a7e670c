/** WebGPU with injected faults: the real device, with a few calls replaced. */

type Descriptor = GPUDeviceDescriptor | undefined;

/** A GPU whose devices are modified when they are created. */
function withDevices(entry: GPU, change: (device: GPUDevice) => void): GPU {
    return {
        requestAdapter: async (options?: GPURequestAdapterOptions) => {
            const adapter = (await entry.requestAdapter(options)) as GPUAdapter;
            const request = adapter.requestDevice.bind(adapter);
            adapter.requestDevice = async (descriptor: Descriptor) => {
                const device = await request(descriptor);
                change(device);
                return device;
            };
            return adapter;
        },
    } as unknown as GPU;
}

/** Devices with limited memory; the error is reported asynchronously in an error scope, as WebGPU does. */
export function withLittleMemory(entry: GPU, bytes: number): GPU {
    const { GPUOutOfMemoryError } = globalThis as unknown as {
        GPUOutOfMemoryError: new (message: string) => GPUError;
    };
    return withDevices(entry, (device) => {
        const create = device.createBuffer.bind(device);
        const push = device.pushErrorScope.bind(device);
        const pop = device.popErrorScope.bind(device);
        const scopes: { filter: string; error: GPUError | null }[] = [];
        let used = 0;
        device.createBuffer = (descriptor) => {
            used += descriptor.size;
            const scope = scopes.findLast(({ filter }) => filter === "out-of-memory");
            if (used > bytes && scope) {
                scope.error = new GPUOutOfMemoryError("the memory limit of the test is exceeded");
            }
            return create(descriptor);
        };
        device.pushErrorScope = (filter) => {
            scopes.push({ filter, error: null });
            push(filter);
        };
        device.popErrorScope = async () => {
            const scope = scopes.pop();
            const error = await pop();
            return scope?.error ?? error;
        };
    });
}

/** Devices whose compiler rejects shaders with this label. */
export function withBrokenShader(entry: GPU, label: string): GPU {
    return withDevices(entry, (device) => {
        const create = device.createShaderModule.bind(device);
        device.createShaderModule = (descriptor) =>
            create(
                descriptor.label === label
                    ? { ...descriptor, code: `${descriptor.code}\nthis is not WGSL` }
                    : descriptor,
            );
    });
}

/** The first `devices` devices are lost after `submits` submits; 0: while weights are written. */
export function lostAfter(entry: GPU, submits: number, devices = Infinity): GPU {
    let created = 0;
    return withDevices(entry, (device) => {
        if (++created > devices) {
            return;
        }
        const submit = device.queue.submit.bind(device.queue);
        let n = 0;
        device.queue.submit = (buffers) => {
            const list = [...buffers];
            submit(list);
            n += Number(list.length > 0); // an empty submit only starts pending writes
            if (n === submits) {
                device.destroy();
            }
        };
    });
}
