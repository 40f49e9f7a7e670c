/** The page with a fake engine, for tests that need certain answers. */
import type { Page } from "playwright-core";
import { test } from "../web/check.js";
import { withBrowser, type Browser, type BrowserOptions } from "./browser.js";
import type { Scenario } from "./fake_bezel.js";
import { openPage, packageScript, ready, servePebble } from "./page.js";

export const fakeServer = await servePebble([[packageScript, "build/web/js/tests/browser/fake_bezel.js"]]);

export const setScenario = (page: Page, scenario: Scenario): Promise<void> => page.evaluate((value) => void (globalThis.scenario = value), scenario);

/** Loads the fake model. */
export async function loadFake(page: Page): Promise<void> {
    await page.click("button.choice >> nth=0");
    await page.click('.card button:has-text("Load")');
    await ready(page);
}

/** A case with the page open and the fake model loaded. */
export function withFakePage(name: string, scenario: Scenario, body: (page: Page, browser: Browser) => Promise<void>, options: BrowserOptions = {}): Promise<void> {
    return test(name, () =>
        withBrowser({ adapter: "none", ...options }, async (browser) => {
            const { page } = browser;
            await page.addInitScript((value) => (globalThis.scenario = value as Scenario), scenario);
            await openPage(page, fakeServer);
            await loadFake(page);
            await body(page, browser);
        }));
}
