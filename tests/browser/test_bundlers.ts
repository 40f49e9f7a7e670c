/** The npm tarball: its contents, its types, and its use with Vite, webpack, esbuild and a plain script, in Node and Deno; in full
 * also with Next.js and in Bun. */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, stat } from "node:fs/promises";
import { resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { check, checkEqual, test } from "../web/check.js";
import { end, quick, withBrowser } from "./browser.js";
import { startServer } from "./server.js";

const run = promisify(execFile);
const work = "build/bundlers";
const frameworks = "build/frameworks";
const deno = "build/web/node_modules/@deno/linux-x64-glibc/deno";
const bun = `${frameworks}/node_modules/@oven/bun-linux-x64-baseline/bin/bun`;
const { version } = JSON.parse(await readFile("web/package/package.json", "utf8")) as { version: string };
const tarball = `build/web/bezel-${version}.tgz`;

for (const folder of [work, ...(quick ? [] : [frameworks])]) {
    await rm(`${folder}/node_modules/bezel`, { recursive: true, force: true });
    await mkdir(`${folder}/node_modules/bezel`, { recursive: true });
    await run("tar", ["xzf", tarball, "-C", `${folder}/node_modules/bezel`, "--strip-components=1"]);
    await cp(folder.replace("build/", "tests/"), folder, { recursive: true });
}

await test("the tarball is small and contains only the expected files", async () => {
    const { size } = await stat(tarball);
    check(size < 1.5e6, `${size} bytes`);
    const { stdout } = await run("tar", ["tzf", tarball]);
    const files = stdout.trim().split("\n");
    const unexpected = files.filter((f) => !/^package\/(package\.json|README\.md|LICENSE|THIRD-PARTY\.txt|dist\/(bezel(-mt)?\.wasm|\w+\.(js|d\.ts)))$/.test(f));
    checkEqual(unexpected, [], "unexpected files");
    const needed = ["README.md", "LICENSE", "THIRD-PARTY.txt", "dist/bezel.wasm", "dist/bezel-mt.wasm", "dist/index.js", "dist/index.d.ts", "dist/worker.js"];
    checkEqual(needed.filter((f) => !files.includes(`package/${f}`)), [], "missing");
    const header = await readFile("include/bezel.h", "utf8");
    const numbers = ["MAJOR", "MINOR", "PATCH"].map((part) => new RegExp(`BZ_VERSION_${part} (\\d+)`).exec(header)?.[1]);
    checkEqual(version, numbers.join("."), "version of the package and of the library");
    const published = JSON.parse(await readFile(`${work}/node_modules/bezel/package.json`, "utf8")) as { dependencies?: object };
    checkEqual(published.dependencies, undefined, "dependencies");
});

for (const [what, compiler, project] of [
    ["a user's program", "build/web/node_modules/.bin/tsc", "tsconfig.json"],
    ["a program that passes the openai package's types in and out", "build/web/node_modules/.bin/tsc", "tsconfig.openai.json"],
    ["with a TypeScript that does not know WebGPU, a user's program", `${work}/node_modules/.bin/tsc`, "tsconfig.json"],
] as const) {
    await test(`${what} compiles against the published types`, async () => {
        const { stdout } = await run(compiler, ["-p", `${work}/${project}`]).catch((error: { stdout: string }) => error);
        checkEqual(stdout, "", "errors");
    });
}

for (const [host, command] of [["Node", [process.execPath]], ["Deno", [deno, "run", "-A", "--no-lock"]], ...(quick ? [] : [["Bun", [bun]] as const])] as const) {
    await test(`${host} runs a model`, async () => {
        const [program, ...more] = command.map((one) => (one.startsWith("build/") ? resolve(one) : one));
        const { stdout } = await run(program ?? "", [...more, "host.mjs", resolve("build/models/nano-e-q8_0.gguf")], { cwd: work });
        checkEqual(stdout.trim(), "3 tokens, streamed alike", "output");
    });
}

await test("vite builds it", async () => {
    await run(process.execPath, ["node_modules/vite/bin/vite.js", "build"], { cwd: work });
});

await test("webpack builds it", async () => {
    const { stderr } = await run(process.execPath, ["build-webpack.js"], { cwd: work });
    checkEqual(stderr, "", "warnings");
});

await test("esbuild builds it", async () => {
    await run(process.execPath, ["build-esbuild.js"], { cwd: work });
});

await withBrowser({ adapter: "none" }, async ({ page }) => {
    const plain = '<!doctype html><title>working</title><script type="importmap">{"imports":{"bezel":"/bezel/index.js"}}</script>' +
        '<script type="module" src="/app.js"></script>';
    for (const [name, mounts] of [
        ["vite", [["/", `${work}/out-vite`]]],
        ["webpack", [["/", `${work}/out-webpack`]]],
        ["esbuild", [["/", `${work}/out-esbuild`]]],
        ["a plain script", [["/bezel", `${work}/node_modules/bezel/dist`], ["/app.js", "tests/bundlers/app.js"]]],
    ] as [string, [string, string][]][]) {
        await test(`${name}: the page runs a model in a worker with threads`, async () => {
            const server = await startServer({
                isolated: true,
                mounts: [["/models", "build/models"], ...mounts],
                intercept: (request, response) => {
                    const isPlain = request.url === "/" && name === "a plain script";
                    if (isPlain) {
                        response.writeHead(200, { "Content-Type": "text/html" }).end(plain);
                    }
                    return isPlain;
                },
            });
            try {
                await page.goto(`${server.url}/`);
                await page.waitForFunction(() => document.title !== "working");
                checkEqual(await page.title(), "3 tokens, 2 threads, after engine header weights session", "title");
                const workers = new Set(server.requests.filter((line) => /worker/.test(line)));
                check(name === "webpack" || workers.size === 1, `one worker script: ${String([...workers])}`); // webpack names it otherwise
            } finally {
                await server.close();
            }
        });
    }
    if (!quick) {
        await test("the reference is made without a warning", async () => {
            const { stderr, stdout } = await run(process.execPath, [`${work}/node_modules/typedoc/bin/typedoc`, "--options", "web/package/typedoc.json"]);
            checkEqual(stdout + stderr, "", "warnings");
        });

        await test("Next.js: a client component with the hooks runs a model in a worker with threads", async () => {
            await run(process.execPath, ["node_modules/next/dist/bin/next", "build"], { cwd: frameworks, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } });
            const server = await startServer({ isolated: true, mounts: [["/models", "build/models"], ["/", `${frameworks}/out`]] });
            try {
                await page.goto(`${server.url}/`);
                await page.waitForFunction(() => document.title !== "working");
                checkEqual(await page.title(), "answered with 2 threads", "title");
            } finally {
                await server.close();
            }
        });
    }
});

await end();
