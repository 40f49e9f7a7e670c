/** WebGPU with something wrong, for tests: the real device, and a few of its calls replaced. */

type Wish = GPUDeviceDescriptor | undefined;

/** A GPU whose devices are changed before anybody sees them. */
function changed(entry: GPU, change: (device: GPUDevice) => void): GPU {
    return {
        requestAdapter: async (options?: GPURequestAdapterOptions) => {
            const adapter = (await entry.requestAdapter(options)) as GPUAdapter;
            const request = adapter.requestDevice.bind(adapter);
            adapter.requestDevice = async (wish: Wish) => {
                const device = await request(wish);
                change(device);
                return device;
            };
            return adapter;
        },
    } as unknown as GPU;
}

/** Devices without memory beyond some bytes, told as WebGPU tells it: later, in an error scope. */
export function withLittleMemory(entry: GPU, bytes: number): GPU {
    const { GPUOutOfMemoryError } = globalThis as unknown as {
        GPUOutOfMemoryError: new (message: string) => GPUError;
    };
    return changed(entry, (device) => {
        const create = device.createBuffer.bind(device);
        const push = device.pushErrorScope.bind(device);
        const pop = device.popErrorScope.bind(device);
        const scopes: { filter: string; error: GPUError | null }[] = [];
        let used = 0;
        device.createBuffer = (descriptor) => {
            used += descriptor.size;
            const scope = scopes.findLast(({ filter }) => filter === "out-of-memory");
            if (used > bytes && scope) {
                scope.error = new GPUOutOfMemoryError("the memory that a test allows is full");
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

/** Devices whose compiler refuses every shader with this label. */
export function withBrokenShader(entry: GPU, label: string): GPU {
    return changed(entry, (device) => {
        const create = device.createShaderModule.bind(device);
        device.createShaderModule = (descriptor) =>
            create(
                descriptor.label === label
                    ? { ...descriptor, code: `${descriptor.code}\nthis is no WGSL` }
                    : descriptor,
            );
    });
}

/** Devices that are lost after so many submits, with 0 while weights are written; those behind the first few are not. */
export function lostAfter(entry: GPU, submits: number, devices = Infinity): GPU {
    let made = 0;
    return changed(entry, (device) => {
        if (++made > devices) {
            return;
        }
        const submit = device.queue.submit.bind(device.queue);
        let n = 0;
        device.queue.submit = (buffers) => {
            const list = [...buffers];
            submit(list);
            n += Number(list.length > 0); // an empty one only sets writes going
            if (n === submits) {
                device.destroy();
            }
        };
    });
}
