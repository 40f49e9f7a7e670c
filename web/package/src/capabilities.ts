/** What this browser (or Node) supports. */
import { adapterName } from "./adapter_name.js";
import { offersMatrices } from "./matrices.js";
import { hasOpfs } from "./opfs.js";
import { canShareMemory } from "./threads.js";

export interface AdapterInfo {
    name: string;
    vendor: string;
    architecture: string;
    /** A software implementation: slower than the engine's own CPU path. */
    software: boolean;
    f16: boolean;
    subgroups: boolean;
    /** Subgroup matrices, which speed up image encoding; browsers offer them only with a flag. */
    matrices: boolean;
    timestamps: boolean;
    maxBufferSize: number;
    maxStorageBufferBindingSize: number;
    maxStorageBuffersPerShaderStage: number;
    maxComputeWorkgroupStorageSize: number;
    maxComputeInvocationsPerWorkgroup: number;
}

export interface Capabilities {
    /** navigator.gpu exists; there may still be no adapter. */
    webgpu: boolean;
    /** Null: none found. */
    adapter: AdapterInfo | null;
    /** WebAssembly SIMD; required. */
    simd: boolean;
    /** Shared memory for CPU threads: the page is cross-origin isolated. */
    threads: boolean;
    workers: boolean;
    /** Bezel.download can store models. */
    opfs: boolean;
    /** Storage of this site in bytes; null: not reported. */
    storage: { quota: number; usage: number; persisted: boolean } | null;
    /** Gigabytes, as browsers report it: rounded, at most 8; null: not reported. */
    deviceMemory: number | null;
    processors: number;
}

/** A module with one SIMD instruction: i32.const 0, i8x16.splat, drop. */
const SIMD_MODULE = Uint8Array.of(
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 0x41, 0, 0xfd, 15, 0x1a, 0x0b,
);

function hasSimd(): boolean {
    return WebAssembly.validate(SIMD_MODULE);
}

export function defaultGpu(): GPU | null {
    return (globalThis.navigator as Navigator | undefined)?.gpu ?? null;
}

export async function findAdapter(entry: GPU | null): Promise<AdapterInfo | null> {
    let adapter: GPUAdapter | null = null;
    try {
        adapter = (await entry?.requestAdapter({ powerPreference: "high-performance" })) ?? null;
    } catch {
        // treated as no adapter
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

async function storageEstimate(): Promise<Capabilities["storage"]> {
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
        storage: await storageEstimate(),
        deviceMemory: navigator?.deviceMemory ?? null,
        processors: navigator?.hardwareConcurrency ?? 1,
    };
}
