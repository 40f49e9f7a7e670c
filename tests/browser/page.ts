/** Actions on the chat page that several tests use. */
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { startServer, type Server, type ServerOptions } from "./server.js";

export const modelFolder = "build/models";
/** The smallest model; it has random weights. */
export const nano = "nano-e-q8_0";

/** Address of the npm package in the page, for a test to replace. */
export const packageScript = await (async (): Promise<string> => {
    const folder = /href="(v\/[0-9a-f]+)\/bezel\.js"/.exec(await readFile("build/web/app/index.html", "utf8"))?.[1];
    if (folder === undefined) {
        throw new Error("build/web/app/index.html does not name bezel.js");
    }
    return `/${folder}/bezel.js`;
})();

/** Serves the page with a test model instead of the built-in ones. */
export async function servePage({ model = nano, ...options }: { isolated?: boolean; model?: string } = {}): Promise<Server> {
    const offers = { models: [{ name: "Nano", url: `models/${model}.gguf`, about: "Random weights" }] };
    return startServer({
        ...options,
        mounts: [["/models", modelFolder], ["/", "build/web/app"]],
        intercept: (request, response) => {
            if (request.url !== "/models.json") {
                return false;
            }
            response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(offers));
            return true;
        },
    });
}

/** Sends the published list of models, except that Pebble waits until it is chosen. */
export async function withoutAuto(): Promise<NonNullable<ServerOptions["intercept"]>> {
    const list = (await readFile("build/web/app/models.json", "utf8")).replace('"auto": true', '"auto": false');
    return (request, response) => {
        if (request.url !== "/models.json") {
            return false;
        }
        response.writeHead(200, { "Content-Type": "application/json" }).end(list);
        return true;
    };
}

/** Serves the page as it is published, except that Pebble waits until it is chosen, with `mounts` before its own files. */
export async function servePebble(mounts: ServerOptions["mounts"] = []): Promise<Server> {
    return startServer({ mounts: [...mounts, ["/", "build/web/app"]], intercept: await withoutAuto() });
}

export async function openPage(page: Page, server: Server): Promise<void> {
    await page.goto(`${server.url}/`);
    await page.waitForSelector("html[data-started]");
}

export interface PageSettings {
    device?: "auto" | "gpu" | "gpu-baseline" | "cpu";
    /** Maximum length of an answer, in tokens. */
    maxTokens?: number;
    seed?: number;
    temperature?: number;
    think?: boolean;
    system?: string;
    contextLength?: number;
}

/** Types a value in the place of a field's. Unlike Playwright's fill, it works with numbers in Firefox, and "change" follows. */
export async function enter(page: Page, field: string, value: string): Promise<void> {
    await page.focus(field);
    await page.keyboard.press("Control+A");
    await (value === "" ? page.keyboard.press("Delete") : page.keyboard.type(value));
}

/** Sets them in the dialog, as a user does. */
export async function setSettings(page: Page, settings: PageSettings): Promise<void> {
    const narrow = await page.isVisible("#open-side");
    if (narrow) {
        await page.click("#open-side");
    }
    await page.click("#open-settings");
    const fill = async (id: string, value: unknown): Promise<void> => {
        if (value !== undefined) {
            await enter(page, id, String(value));
        }
    };
    await fill("#set-system", settings.system);
    await fill("#set-maxTokens", settings.maxTokens);
    await fill("#set-seed", settings.seed);
    await fill("#set-temperature", settings.temperature);
    if (settings.think !== undefined) {
        await page.setChecked("#set-think", settings.think);
    }
    if (settings.device) {
        await page.selectOption("#set-device", settings.device);
    }
    if (settings.contextLength) {
        await page.selectOption("#set-context", String(settings.contextLength));
    }
    await page.click("#settings .main");
    if (narrow) {
        await page.click("#close-side");
    }
}

/** Chooses an entry of a conversation's menu. */
export async function chooseAction(page: Page, title: string, action: string): Promise<void> {
    await page.hover(`.conversation:has-text("${title}")`);
    await page.click(`.conversation:has-text("${title}") .tools button`);
    await page.click(`.menu [role="menuitem"]:has-text("${action}")`);
}

/** Chooses an offered model and waits until it is ready. */
export async function loadOffer(page: Page, name = "Nano"): Promise<void> {
    await page.click(`button.choice:has-text("${name}")`);
    await page.click('.card button:has-text("Load")');
    await ready(page);
}

export async function ready(page: Page): Promise<void> {
    await page.waitForSelector('#model-chip[data-state="ready"]');
    await page.waitForSelector("#composer-text", { state: "visible" });
}

export async function send(page: Page, text: string): Promise<void> {
    await page.fill("#composer-text", text);
    await page.click("#send");
}

/** Waits until no answer is being written; returns the last answer's text. */
export async function answered(page: Page): Promise<string> {
    await page.waitForSelector('.message.assistant.last:not([data-state="answering"])');
    return answerText(page);
}

export async function answerText(page: Page): Promise<string> {
    return (await page.textContent(".message.assistant.last .prose")) ?? "";
}

/** Waits until the answer has some text. */
export async function begun(page: Page): Promise<void> {
    await page.waitForFunction(() => (document.querySelector(".message.assistant.last .prose")?.textContent?.length ?? 0) > 0);
}

/** Runs all finite CSS transitions and animations to their end. */
export async function settled(page: Page): Promise<void> {
    await page.evaluate(async () => {
        const finite = document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime));
        await Promise.allSettled(finite.map((one) => one.finished));
    });
}

/** All values of an object store of the page's database. */
export async function stored<T>(page: Page, store: "messages" | "conversations"): Promise<T[]> {
    return page.evaluate(
        (name) =>
            new Promise<T[]>((resolve, reject) => {
                const open = indexedDB.open("bezel-chat");
                open.onerror = () => reject(open.error ?? new Error("indexedDB"));
                open.onsuccess = () => {
                    const all = open.result.transaction(name).objectStore(name).getAll();
                    all.onsuccess = () => resolve(all.result as T[]);
                };
            }),
        store,
    );
}

/** Keys of the store "values" with a prefix. */
export async function storedKeys(page: Page, prefix: string): Promise<string[]> {
    const keys = await page.evaluate(
        () =>
            new Promise<string[]>((resolve, reject) => {
                const open = indexedDB.open("bezel-chat");
                open.onerror = () => reject(open.error ?? new Error("indexedDB"));
                open.onsuccess = () => {
                    const all = open.result.transaction("values").objectStore("values").getAllKeys();
                    all.onsuccess = () => resolve(all.result.map(String));
                };
            }),
    );
    return keys.filter((key) => key.startsWith(prefix));
}

/** Polls until a condition holds, for as long as the test may run (browser.ts ends an idle one). */
export async function until(page: Page, condition: () => Promise<boolean>): Promise<void> {
    while (!(await condition())) {
        await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50))); // rejects when the page is closed
    }
}
