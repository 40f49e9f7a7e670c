// esbuild does not process `new URL("./x", import.meta.url)`, so the worker and the module are placed next to the app.
import { copyFile } from "node:fs/promises";
import { build } from "esbuild";

await build({
    entryPoints: { app: "app.js", worker: "node_modules/bezel/dist/worker.js" },
    bundle: true,
    format: "esm",
    minify: true,
    outdir: "out-esbuild",
    logLevel: "warning",
});
for (const module of ["bezel.wasm", "bezel-mt.wasm"]) {
    await copyFile(`node_modules/bezel/dist/${module}`, `out-esbuild/${module}`);
}
await copyFile("index.html", "out-esbuild/index.html");
