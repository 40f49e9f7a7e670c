/** The browsers that the other tests use: each adapter computes, in the page and in a worker. */
import { check, checkEqual, test } from "../web/check.js";
import { end, withBrowser, type Adapter } from "./browser.js";
import { startServer } from "./server.js";

const blank = "<!doctype html><title>blank</title>";

/** Computes on the GPU; runs in the page or in a worker, so it must not refer to anything outside itself. */
async function addOnGpu(): Promise<{ sum: number; f16: boolean; info: string } | null> {
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) {
        return null;
    }
    const device = await adapter.requestDevice();
    const code = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;" +
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) { x[i.x] = i.x + 1u; }";
    const pipeline = device.createComputePipeline({
        layout: "auto",
        compute: { module: device.createShaderModule({ code }) },
    });
    // GPUBufferUsage: STORAGE 0x80, COPY_SRC 4, COPY_DST 8, MAP_READ 1.
    const buffer = device.createBuffer({ size: 256, usage: 0x80 | 0x4 });
    const result = device.createBuffer({ size: 256, usage: 0x1 | 0x8 });
    const group = device.createBindGroup({
        layout: pipeline.getBindGroupLayout(0),
        entries: [{ binding: 0, resource: { buffer } }],
    });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(1);
    pass.end();
    encoder.copyBufferToBuffer(buffer, 0, result, 0, 256);
    device.queue.submit([encoder.finish()]);
    await result.mapAsync(1);
    const sum = new Uint32Array(result.getMappedRange()).reduce((a, b) => a + b, 0);
    return { sum, f16: adapter.features.has("shader-f16"), info: adapter.info.vendor };
}

const worker = `onmessage = async () => postMessage(await (${addOnGpu.toString()})());`;

const server = await startServer({
    mounts: [],
    isolated: true,
    intercept: (request, response) => {
        const script = request.url === "/worker.js";
        response.writeHead(200, { "Content-Type": script ? "text/javascript" : "text/html" }).end(script ? worker : blank);
        return true;
    },
});

for (const adapter of ["lavapipe", "swiftshader"] as Adapter[]) {
    await test(`${adapter} computes in the page and in a worker`, () =>
        withBrowser({ adapter }, async ({ page }) => {
            await page.goto(`${server.url}/`);
            const inPage = await page.evaluate(addOnGpu);
            const inWorker = await page.evaluate(
                () =>
                    new Promise<Awaited<ReturnType<typeof addOnGpu>>>((resolve, reject) => {
                        const w = new Worker("/worker.js");
                        w.onmessage = ({ data }) => resolve(data);
                        w.onerror = (event) => reject(new Error(event.message));
                        w.postMessage(0);
                    }),
            );
            checkEqual(inPage?.sum, 2080, "sum in the page");
            checkEqual(inWorker?.sum, 2080, "sum in a worker");
            // SwiftShader has no f16, which distinguishes the two.
            checkEqual(inPage?.f16, adapter === "lavapipe", "f16");
            check(await page.evaluate(() => crossOriginIsolated), "isolated");
        }));
}

await test("a browser without WebGPU has none", () =>
    withBrowser({ adapter: "none" }, async ({ page }) => {
        await page.goto(`${server.url}/`);
        checkEqual(await page.evaluate(addOnGpu), null, "adapter");
    }));

await end(server);
