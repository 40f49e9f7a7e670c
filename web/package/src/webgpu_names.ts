/** Names of WebGPU's types, for users whose TypeScript does not know them: they have fields only where its own library,
 * or the user's, gives them some. */
declare global {
    interface GPU {}
    interface GPUBindGroup {}
    interface GPUBuffer {}
    interface GPUCommandEncoder {}
    interface GPUComputePipeline {}
    interface GPUDevice {}
}

/** navigator.gpu, or what replaces it. */
export type GpuEntry = GPU;
