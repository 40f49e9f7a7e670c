/** The chat page as a user meets it: what the tests do with it, in words. */
import type { Page } from "playwright-core";
import { startServer, type Server } from "./server.js";

export const modelFolder = "build/models";
/** The smallest model: it babbles, quickly. */
export const nano = "nano-e-q8_0";

/** The page with the test models in place of its own. */
export async function servePage(options: { isolated?: boolean } = {}): Promise<Server> {
    const offers = { models: [{ name: "Nano", url: `models/${nano}.gguf`, about: "Random weights" }] };
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

export async function openPage(page: Page, server: Server): Promise<void> {
    await page.goto(`${server.url}/`);
    await page.waitForSelector("html[data-started]");
}

export interface Wishes {
    device?: "auto" | "gpu" | "gpu-baseline" | "cpu";
    /** Longest answer, in tokens. */
    maxTokens?: number;
    seed?: number;
    temperature?: number;
    think?: boolean;
    system?: string;
    contextLength?: number;
}

/** Through the dialog, as a user would. */
export async function setSettings(page: Page, wishes: Wishes): Promise<void> {
    const narrow = await page.isVisible("#open-side");
    if (narrow) {
        await page.click("#open-side");
    }
    await page.click("#open-settings");
    const fill = async (id: string, value: unknown): Promise<void> => {
        if (value !== undefined) {
            await page.fill(id, String(value));
        }
    };
    await fill("#set-system", wishes.system);
    await fill("#set-maxTokens", wishes.maxTokens);
    await fill("#set-seed", wishes.seed);
    await fill("#set-temperature", wishes.temperature);
    if (wishes.think !== undefined) {
        await page.setChecked("#set-think", wishes.think);
    }
    if (wishes.device) {
        await page.selectOption("#set-device", wishes.device);
    }
    if (wishes.contextLength) {
        await page.selectOption("#set-context", String(wishes.contextLength));
    }
    await page.click("#settings .main");
    if (narrow) {
        await page.click("#close-side");
    }
}

/** Chooses the offered model and waits until one can write to it. */
export async function loadOffer(page: Page, name = "Nano"): Promise<void> {
    await page.click(`button.choice:has-text("${name}")`);
    await page.click('.card button:has-text("Load")');
    await ready(page);
}

export async function ready(page: Page): Promise<void> {
    await page.waitForSelector('#model-chip[data-state="ready"]', { timeout: 240_000 });
    await page.waitForSelector("#composer-text", { state: "visible" });
}

export async function send(page: Page, text: string): Promise<void> {
    await page.fill("#composer-text", text);
    await page.click("#send");
}

/** Until nothing is being written; gives the last answer's text. */
export async function answered(page: Page): Promise<string> {
    await page.waitForSelector('.message.assistant.last:not([data-state="answering"])', { timeout: 240_000 });
    return answerText(page);
}

export async function answerText(page: Page): Promise<string> {
    return (await page.textContent(".message.assistant.last .prose")) ?? "";
}

/** Until the answer has some text. */
export async function begun(page: Page): Promise<void> {
    await page.waitForFunction(
        () => (document.querySelector(".message.assistant.last .prose")?.textContent?.length ?? 0) > 0,
        undefined,
        { timeout: 240_000 },
    );
}
