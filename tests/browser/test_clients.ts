/** Clients of OpenAI's and Ollama's APIs in a page, with a model in the place of a server: the packages openai, ollama, ai
 * and LangChain as they are published; and the hooks for React. */
import { build } from "esbuild";
import { check, checkEqual, test } from "../web/check.js";
import { end, withBrowser } from "./browser.js";
import { startServer } from "./server.js";

interface OpenaiResult {
    text: string;
    same: string[];
    responses: string[];
    models: string[];
    calls: boolean;
    parsed: string;
    error: unknown[];
}

interface Globals {
    model: { name: string; close(): void };
    clients: Record<string, (model: unknown) => Promise<unknown>> & { react: (hooks: unknown, source: string, options: object) => void };
    hooks: () => unknown;
}

const { outputFiles } = await build({
    entryPoints: ["tests/clients/page_clients.js"],
    bundle: true,
    format: "esm",
    platform: "browser",
    nodePaths: ["build/clients/node_modules"],
    tsconfigRaw: {},
    define: { "process.env.NODE_ENV": '"development"' },
    logLevel: "warning",
    write: false,
});
const script = outputFiles[0]?.text ?? "";
const blank = `<!doctype html><title>working</title><script type="module">
    import { Bezel } from "/bezel/index.js";
    import { hooks } from "/bezel/react.js";
    import * as clients from "/clients.js";
    Object.assign(globalThis, { clients, hooks, model: await Bezel.load("/models/pebble.gguf", { device: "cpu" }) });
    document.title = "ready";
</script>`;

const server = await startServer({
    mounts: [["/bezel", "build/web/package/dist"], ["/models", "models"]],
    intercept: (request, response) => {
        const found = request.url === "/" ? ["text/html", blank] : request.url === "/clients.js" ? ["text/javascript", script] : null;
        if (found) {
            response.writeHead(200, { "Content-Type": found[0] as string }).end(found[1]);
        }
        return found !== null;
    },
});

await withBrowser({ adapter: "none" }, async ({ page, requested, log }) => {
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => document.title === "ready");
    const run = <T>(name: string): Promise<T> =>
        page.evaluate((which) => {
            const { clients, model } = globalThis as unknown as Globals;
            return clients[which]?.(model);
        }, name) as Promise<T>;

    let text = "";
    await test("openai: chat, streams, responses, functions, schemas, errors, an aborted stream", async () => {
        const got = await run<OpenaiResult>("openai");
        text = got.text;
        check(text.length > 3, text);
        checkEqual(got.same, [text, text], "streamed, and after an aborted stream");
        check(got.responses[0] === got.responses[1] && (got.responses[0]?.length ?? 0) > 3, JSON.stringify(got.responses));
        checkEqual([got.models, got.calls, got.parsed, got.error], [["pebble"], true, "string", [true, "model_not_found"]], "the rest");
    });

    await test("ollama: chat, streams, generate, lists, formats, errors", async () => {
        const got = await run<Record<string, unknown>>("ollama");
        checkEqual(got, {
            text, same: [text, text], count: 6, list: ["pebble"], ps: 1, show: ["completion", "tools", "thinking", "vision", "audio"], formed: true,
            error: "model 'none' not found; 'pebble' is loaded",
        }, "result");
    });

    await test("ai: texts, streams, objects and tools, by both of its providers for OpenAI's APIs", async () => {
        const got = await run<Record<string, { text: string }>>("ai");
        for (const name of ["responses", "chat"]) {
            const { text: own = "", ...rest } = got[name] ?? {};
            check(own.length > 3, `${name}: ${own}`);
            checkEqual(rest, { same: true, tokens: 6, object: true, words: true } as object, name);
        }
    });

    await test("LangChain: texts, streams, tools", async () => {
        const got = await run<{ text: string; streamed: string }>("langchain");
        check(got.text.length > 3, got.text);
        checkEqual(got, { text: got.text, streamed: got.text, call: "look_up", word: true } as object, "result");
    });

    await test("no request of a client has left the page", () => {
        checkEqual(requested.filter((url) => !url.startsWith(server.url) || /\/(v1|api)\//.test(url)), [], "requests");
    });

    await test("React: a component loads a model, chats, and closes it", async () => {
        await page.evaluate(() => {
            const { clients, hooks, model } = globalThis as unknown as Globals;
            model.close();
            clients.react({ hooks }, "/models/pebble.gguf", { device: "cpu" });
        });
        await page.waitForSelector('main[data-state="ready"]');
        await page.click("#ask");
        await page.waitForFunction(() => (document.querySelector("p.assistant")?.textContent?.length ?? 0) > 0);
        await page.waitForSelector('main[data-state="ready"]');
        check(text.startsWith((await page.textContent("p.assistant")) ?? "?"), "the same answer as by other ways, one token shorter");
        await page.click("#reset");
        checkEqual(await page.locator("p").count(), 0, "reset");
        await page.click("#close");
        await page.waitForSelector('main[data-state="none"]');
        checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
    });
});

await end(server);
