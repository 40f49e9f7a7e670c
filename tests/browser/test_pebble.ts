/** The built-in diffusion model, as the page offers it. */
import { check, checkEqual, test } from "../web/check.js";
import { end, screenshot, withBrowser } from "./browser.js";
import { answered, loadOffer, openPage, send, setSettings } from "./page.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/", "build/web/app"]] });

await test("Pebble Diffusion: offered after Pebble, shows its canvas, answers with a story", () =>
    withBrowser({ adapter: "none" }, async ({ page }) => {
        await openPage(page, server);
        await page.waitForSelector("button.choice");
        const offered = await page.locator("button.choice b").allTextContents();
        checkEqual(offered.slice(0, 2), ["Pebble", "Pebble Diffusion"], "offers");
        await setSettings(page, { device: "cpu", seed: 3, think: false });
        await loadOffer(page, "Pebble Diffusion");
        await page.waitForSelector('button:has-text("Write a story about a fox.")');
        await send(page, "Write a story about a fox.");
        const mostlyStable = (): boolean => [...document.querySelectorAll(".canvas .stable")].map((run) => run.textContent).join("").split(" ").length > 20;
        await page.waitForFunction(mostlyStable);
        await screenshot(page, "pebble-diffusion");
        const story = await answered(page);
        check(/\bfox\b/.test(story) && story.split(/\s+/).length > 40, story);
        check(!(await page.isVisible(".canvas")), "the canvas is gone");
        await screenshot(page, "pebble-diffusion-answer");
    }));

await end(server);
