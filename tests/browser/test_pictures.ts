/** The pictures of the documentation: the page with Pebble, as a new user meets it, on a desktop and a phone, light and dark.
 * They go to build/screenshots; `make pictures` copies them to docs/pictures. */
import type { Page } from "playwright-core";
import { check, checkEqual, test } from "../web/check.js";
import { end, quick, screenshot, withBrowser, type BrowserOptions } from "./browser.js";
import { answered, openPage, ready, setSettings, settled } from "./page.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/", "build/web/app"]] });

/** Elements that reach beyond the right edge. */
const overflowing = (page: Page): Promise<string[]> =>
    page.evaluate(() =>
        [...document.querySelectorAll<HTMLElement>("#main *")]
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5 && e.checkVisibility() && !e.closest("pre, .table, .hidden"))
            .map((e) => e.outerHTML.slice(0, 80)),
    );

const looks: [name: string, options: BrowserOptions][] = (["light", "dark"] as const).flatMap((colors) => [
    [`desktop-${colors}`, { colors }] as [string, BrowserOptions],
    [`phone-${colors}`, { colors, phone: true }] as [string, BrowserOptions],
]);

for (const [name, options] of quick ? looks.filter((_, i) => i % 3 === 0) : looks) {
    await test(`${name}: a first visit, an image, a tool, the list of models`, () =>
        withBrowser({ adapter: "none", ...options }, async ({ page, log }) => {
            const look = async (what: string): Promise<void> => {
                await settled(page);
                await screenshot(page, `picture-${what}-${name}`);
                checkEqual(await overflowing(page), [], `${what}: overflow`);
            };
            await openPage(page, server);
            await ready(page);
            await setSettings(page, { seed: 3 });
            await page.waitForSelector(".suggestions button");
            await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
            checkEqual(await page.evaluate(() => document.getElementById("log")?.scrollTop), 0, "it begins at its top");
            await look("first-visit");
            await page.click('.suggestions button:has-text("Describe the image")');
            await page.waitForSelector(".message.assistant.last");
            check(/red circle/.test(await answered(page)), "the image");
            await look("image");
            await page.click(options.phone ? "#open-side" : "#new-chat");
            await (options.phone ? page.click("#new-chat") : Promise.resolve());
            await page.click('.suggestions button:has-text("57 times 38")');
            await page.waitForSelector(".message.assistant.last");
            check((await answered(page)).includes("2166"), "the calculator");
            await look("tool");
            await page.click("#model-chip");
            await page.click('#model-info button:has-text("Change")');
            await page.waitForSelector("button.choice");
            await look("models");
            checkEqual(log.filter((line) => line.startsWith("uncaught:")), [], "errors");
        }));
}

await end(server);
