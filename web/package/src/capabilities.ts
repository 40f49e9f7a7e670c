/** What this browser, or Node, can do. */
import { adapterName } from "./adapter_name.js";
import { offersMatrices } from "./matrices.js";
import { hasOpfs } from "./opfs.js";
import { canShareMemory } from "./threads.js";

export interface AdapterFacts {
    name: string;
    vendor: string;
    architecture: string;
    /** Computed by the CPU: slower than the engine's own CPU path. */
    software: boolean;
    f16: boolean;
    subgroups: boolean;
    /** Subgroup matrices, with which pictures are looked at faster; browsers have them behind a flag. */
    matrices: boolean;
    timestamps: boolean;
    maxBufferSize: number;
    maxStorageBufferBindingSize: number;
    maxStorageBuffersPerShaderStage: number;
    maxComputeWorkgroupStorageSize: number;
    maxComputeInvocationsPerWorkgroup: number;
}

export interface Capabilities {
    /** navigator.gpu is there, which needs no adapter yet. */
    webgpu: boolean;
    /** Null: WebGPU found none. */
    adapter: AdapterFacts | null;
    /** WebAssembly SIMD, without which nothing runs. */
    simd: boolean;
    /** Shared memory, for several threads on the CPU: the page is cross-origin isolated. */
    threads: boolean;
    workers: boolean;
    /** Models can be kept: Bezel.download. */
    opfs: boolean;
    /** Bytes that the browser lets this site have in all, and has given it; null: not said. */
    storage: { quota: number; usage: number; persisted: boolean } | null;
    /** Gigabytes, rounded and at most 8, as browsers say it; null: not said. */
    deviceMemory: number | null;
    processors: number;
}

/** A module with one SIMD instruction: i32.const 0, i8x16.splat, drop. */
const SIMD = Uint8Array.of(
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 0x41, 0, 0xfd, 15, 0x1a, 0x0b,
);

function hasSimd(): boolean {
    return WebAssembly.validate(SIMD);
}

export function defaultGpu(): GPU | null {
    return (globalThis.navigator as Navigator | undefined)?.gpu ?? null;
}

export async function findAdapter(entry: GPU | null): Promise<AdapterFacts | null> {
    let adapter: GPUAdapter | null = null;
    try {
        adapter = (await entry?.requestAdapter({ powerPreference: "high-performance" })) ?? null;
    } catch {
        // the same as none
    }
    if (!adapter) {
        return null;
    }
    const { info, limits, features } = adapter;
    return {
        name: adapterName(info),
        vendor: info.vendor,
        architecture: info.architecture,
        software: info.isFallbackAdapter ?? false,
        f16: features.has("shader-f16"),
        subgroups: features.has("subgroups"),
        matrices: offersMatrices(adapter),
        timestamps: features.has("timestamp-query"),
        maxBufferSize: limits.maxBufferSize,
        maxStorageBufferBindingSize: limits.maxStorageBufferBindingSize,
        maxStorageBuffersPerShaderStage: limits.maxStorageBuffersPerShaderStage,
        maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize,
        maxComputeInvocationsPerWorkgroup: limits.maxComputeInvocationsPerWorkgroup,
    };
}

async function storageFacts(): Promise<Capabilities["storage"]> {
    const { storage } = (globalThis.navigator as Navigator | undefined) ?? {};
    try {
        if (!storage?.estimate) {
            return null;
        }
        const { quota = 0, usage = 0 } = await storage.estimate();
        return { quota, usage, persisted: (await storage.persisted?.()) ?? false };
    } catch {
        return null;
    }
}

export async function findCapabilities(entry: GPU | null = defaultGpu()): Promise<Capabilities> {
    const navigator = globalThis.navigator as (Navigator & { deviceMemory?: number }) | undefined;
    return {
        webgpu: entry !== null,
        adapter: await findAdapter(entry),
        simd: hasSimd(),
        threads: canShareMemory(),
        workers: typeof Worker !== "undefined",
        opfs: hasOpfs(),
        storage: await storageFacts(),
        deviceMemory: navigator?.deviceMemory ?? null,
        processors: navigator?.hardwareConcurrency ?? 1,
    };
}
