export default {
    // Dependencies that Vite bundles beforehand lose their neighbours: the worker and the module.
    optimizeDeps: { exclude: ["bezel"] },
    build: { outDir: "out-vite", emptyOutDir: true },
    logLevel: "warn",
};
