/** The first minute on the page: Pebble loads by itself, and each example question works. */
import { check, checkEqual, test } from "../web/check.js";
import { end, screenshot, withBrowser } from "./browser.js";
import { answered, loadOffer, openPage, ready, send, setSettings } from "./page.js";
import { startServer } from "./server.js";

const server = await startServer({ mounts: [["/", "build/web/app"]] });

/** What the answer to each example must match, whatever the seed. */
const expected: [question: string, answer: RegExp][] = [
    ["Who are you?", /Pebble|tiny demo model/],
    ["Describe the image.", /red circle.*blue square/],
    ["What did the speaker say?", /play the music/],
    ["Tell me a short story about a fox.", /fox/],
    ["What is 57 times 38?", /2166/],
    // Last: it loads Pebble Diffusion.
    ["Write a story about a fox.", /fox/],
];

await test("a first visit: Pebble is ready by itself, says what it is, and answers every example question", () =>
    withBrowser({ adapter: "none" }, async ({ page }) => {
        await openPage(page, server);
        await ready(page);
        const suggestions = page.locator(".suggestions button");
        await suggestions.first().waitFor();
        checkEqual((await suggestions.allTextContents()).map((text) => text.replace(/ with .*$/, "")).sort(), expected.map(([question]) => question).sort(), "examples");
        check(/tiny Gemma 4/.test((await page.textContent(".empty .about")) ?? ""), "about");
        await screenshot(page, "first-visit");
        await page.click('.empty button:has-text("Choose another model")');
        await page.waitForSelector("button.choice");
        await page.click('button.choice:has-text("Back to the conversation")');
        for (const [question, answer] of expected) {
            await page.click(`.suggestions button:has-text("${question}")`);
            await page.waitForSelector(".message.assistant.last");
            const text = await answered(page);
            check(answer.test(text), `${question} ${text}`);
            if (question === "Describe the image.") {
                await screenshot(page, "first-image");
            }
            await page.click("#new-chat");
        }
    }));

await test("Pebble Diffusion: offered after Pebble, shows its canvas, answers with a story", () =>
    withBrowser({ adapter: "none" }, async ({ page }) => {
        await openPage(page, server);
        await ready(page);
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Change")');
        await page.waitForSelector("button.choice");
        const offered = await page.locator("button.choice b").allTextContents();
        checkEqual(offered.filter((name) => name.startsWith("Pebble")), ["Pebble", "Pebble Diffusion"], "offers");
        await page.click('button.choice:has-text("Back to the conversation")');
        await setSettings(page, { seed: 3, think: false });
        await page.click("#model-chip");
        await page.click('#model-info button:has-text("Change")');
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
