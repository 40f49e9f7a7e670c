// esbuild leaves `new URL("./x", import.meta.url)` as it is, so the worker and the module go beside the app.
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
await copyFile("node_modules/bezel/dist/bezel.wasm", "out-esbuild/bezel.wasm");
await copyFile("index.html", "out-esbuild/index.html");
