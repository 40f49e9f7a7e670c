// webpack 5 resolves the worker and the modules by itself.
import { copyFile } from "node:fs/promises";
import { resolve } from "node:path";
import webpack from "webpack";

const stats = await new Promise((done, fail) => {
    const options = {
        mode: "production",
        entry: "./app.js",
        output: { path: resolve("out-webpack"), filename: "app.js", publicPath: "auto" },
        experiments: { outputModule: true },
        performance: false,
    };
    webpack(options, (error, result) => (error ? fail(error) : done(result)));
});
const { errors = [], warnings = [] } = stats.toJson({ all: false, errors: true, warnings: true });
for (const { message } of [...errors, ...warnings]) {
    console.error(message);
}
if (errors.length > 0) {
    process.exit(1);
}
await copyFile("index.html", "out-webpack/index.html");
