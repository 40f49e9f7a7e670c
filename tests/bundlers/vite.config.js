export default {
    // Pre-bundling would separate the package from its worker and module.
    optimizeDeps: { exclude: ["bezel"] },
    build: { outDir: "out-vite", emptyOutDir: true },
    logLevel: "warn",
};
