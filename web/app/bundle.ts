/** Builds the page: one script per entry, one style sheet, everything whose address contains a hash of its content, and
 * compressed copies.
 *
 *   node bundle.js TO MODELS.json FILE...    from the repository's root; `make web` calls it
 *
 *   TO/index.html, sw.js, manifest.webmanifest, icons, models.json, builtin/ with FILE...    under fixed names
 *   TO/v/HASH/    scripts, style and WebAssembly; HASH depends on all of them, so these files never change
 */
import { createHash } from "node:crypto";
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import process from "node:process";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type BuildOptions, type Plugin } from "esbuild";

const source = "web/app";
const wasm = ["build/web/bezel.wasm", "build/web/bezel-mt.wasm"];
const packages = "build/web/node_modules";
const compressible = /\.(html|js|css|json|svg|webmanifest|wasm)$/;

const [to, list, ...builtin] = process.argv.slice(2);
if (to === undefined || list === undefined) {
    throw new Error("usage: node bundle.js TO MODELS.json FILE...");
}

/** Files of their own: the package, which tests replace, and what is fetched when it is first needed. */
const apart: Plugin = {
    name: "apart",
    setup: ({ onResolve }) => onResolve({ filter: /^\.\/(bezel|\w+_chunk)\.js$/ }, ({ path }) => ({ path, external: true })),
};
const chunks = ["math_chunk", "pdf_chunk"];
/** Packages of which the page contains parts. */
const included = ["@jitl/quickjs-ffi-types", "@jitl/quickjs-wasmfile-release-sync", "devlop", "highlight.js", "katex", "lowlight", "marked", "pdfjs-dist", "quickjs-emscripten-core"];
const workers = ["highlight_worker", "sandbox_worker"];

/**
 * Packages are found as Node finds them, by their exports: the paths of tsconfig.json are for tsc. Source maps name files by the
 * paths they are found at, also where build/web/node_modules is a link, so that they do not depend on the machine.
 */
const common: BuildOptions = { nodePaths: [packages], preserveSymlinks: true, tsconfigRaw: {}, bundle: true, format: "esm", target: "es2022", minify: true, legalComments: "none", logLevel: "warning" };

async function bundle(entry: string, outfile: string, more: BuildOptions = {}): Promise<void> {
    await build({ ...common, entryPoints: [entry], outfile, sourcemap: "linked", sourcesContent: true, ...more });
}

/** Hash of the contents of files and of their names, whatever their order. */
async function hashOf(paths: string[]): Promise<string> {
    const hash = createHash("sha256");
    for (const path of [...paths].sort()) {
        hash.update(`${basename(path)}\0`).update(await readFile(path)).update("\0");
    }
    return hash.digest("hex").slice(0, 12);
}

/** The license of a package, which has to go with copies of it. */
async function licenseOf(name: string): Promise<string> {
    const folder = join(packages, name);
    const file = (await readdir(folder)).find((one) => /^licen[sc]e/i.test(one));
    if (file === undefined) {
        throw new Error(`${folder} has no license file`);
    }
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as { version: string };
    return `${name} ${version}\n\n${(await readFile(join(folder, file), "utf8")).trim()}\n`;
}

async function compress(path: string): Promise<void> {
    const bytes = await readFile(path);
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength };
    await writeFile(`${path}.br`, brotliCompressSync(bytes, { params }));
    await writeFile(`${path}.gz`, gzipSync(bytes, { level: 9 }));
}

await rm(to, { recursive: true, force: true });
const unnamed = join(to, "v", "new");
await mkdir(unnamed, { recursive: true });

// ---- what the hash names -------------------------------------------------------------------------

await Promise.all([
    bundle(`${source}/src/main.ts`, join(unnamed, "main.js"), { plugins: [apart] }),
    bundle(`${source}/src/bezel.ts`, join(unnamed, "bezel.js")),
    bundle("web/package/src/worker.ts", join(unnamed, "worker.js")),
    bundle(`${source}/src/capture.ts`, join(unnamed, "capture.js")),
    ...[...chunks, ...workers].map((name) => bundle(`${source}/src/${name}.ts`, join(unnamed, `${name}.js`))),
    copyFile(join(packages, "pdfjs-dist/legacy/build/pdf.worker.min.mjs"), join(unnamed, "pdf_worker.js")),
    copyFile(join(packages, "@jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.wasm"), join(unnamed, "quickjs.wasm")),
    // Of the three formats of each font, the one that all browsers with WebAssembly know.
    bundle(join(packages, "katex/dist/katex.min.css"), join(unnamed, "math_chunk.css"), {
        sourcemap: false,
        assetNames: "[name]",
        loader: { ".woff2": "file", ".woff": "empty", ".ttf": "empty" },
    }),
    ...wasm.map((path) => copyFile(path, join(unnamed, basename(path)))),
]);
const page = await readFile(`${source}/index.html`, "utf8");
const styles = [...page.matchAll(/<link rel="stylesheet" href="([^"]+)" \/>/g)].map(([, href]) => href ?? "");
await build({
    ...common,
    stdin: { contents: styles.map((href) => `@import "./${href}";`).join("\n"), resolveDir: source, loader: "css" },
    outfile: join(unnamed, "style.css"),
});

const names = (await readdir(unnamed)).sort();
const version = await hashOf(names.map((name) => join(unnamed, name)));
const folder = join(to, "v", version);
await cp(unnamed, folder, { recursive: true });
await rm(unnamed, { recursive: true });

// ---- under fixed names ---------------------------------------------------------------------------

let first = true;
const linked = page
    .replace(/\n *<link rel="stylesheet" href="[^"]+" \/>/g, () => {
        const line = first ? `\n        <link rel="stylesheet" href="v/${version}/style.css" />` : "";
        first = false;
        return line;
    })
    .replace('src="app/src/main.js"', `src="v/${version}/main.js"`)
    .replace(/( *)<script type="module"/, `$1<link rel="modulepreload" href="v/${version}/bezel.js" />\n$&`);
if (styles.length === 0 || !linked.includes(`src="v/${version}/main.js"`)) {
    throw new Error(`${source}/index.html does not name its style sheets and its script as expected`);
}
await writeFile(join(to, "index.html"), linked);
await writeFile(join(to, "licenses.txt"), (await Promise.all(included.map(licenseOf))).join("\n\n"));
await cp(`${source}/fixed`, to, { recursive: true });
await copyFile(list, join(to, "models.json"));
await mkdir(join(to, "builtin"));
await Promise.all(builtin.map((path) => copyFile(path, join(to, "builtin", basename(path)))));

/** What the page needs without its server, but for models, of which it keeps what is used. */
const offline = [
    "index.html",
    "licenses.txt",
    "models.json",
    ...(await readdir(`${source}/fixed`)),
    ...builtin.filter((path) => !path.endsWith(".gguf")).map((path) => `builtin/${basename(path)}`),
    ...names.filter((name) => !name.endsWith(".map")).map((name) => `v/${version}/${name}`),
];
await bundle(`${source}/src/sw.ts`, join(to, "sw.js"), {
    sourcemap: false,
    define: {
        VERSION: JSON.stringify(await hashOf(offline.map((name) => join(to, name)))),
        FILES: JSON.stringify(offline.map((name) => (name === "index.html" ? "./" : name))),
    },
});

const written = await readdir(to, { recursive: true });
await Promise.all(written.filter((name) => compressible.test(name)).map((name) => compress(join(to, name))));
