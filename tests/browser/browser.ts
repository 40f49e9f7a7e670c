/** Chromium without a window, on a software adapter.
 *
 * BEZEL_BROWSER_ADAPTER=swiftshader takes the driver that Chromium brings (correct, very slow, without
 * f16); the default is lavapipe. A browser that is not there, or one without WebGPU, is a failure. */
import { access, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { chromium, type BrowserContext, type Page } from "playwright-core";

export type Adapter = "lavapipe" | "swiftshader" | "none";

const executables: Record<Adapter, string> = {
    lavapipe: "build/browser/chromium/chromium",
    swiftshader: "/usr/lib/chromium/chromium",
    none: "/usr/lib/chromium/chromium",
};

export interface BrowserOptions {
    adapter?: Adapter;
    /** "390x844"; default 1280x800 */
    size?: string;
    colours?: "light" | "dark";
    phone?: boolean;
    /** What the microphone hears, once, from when it is first asked for: a WAV file. Without it, pages may not hear it. */
    microphone?: string;
}

export interface Browser {
    readonly context: BrowserContext;
    readonly page: Page;
    /** Messages of the page's console and errors nobody caught, oldest first. */
    readonly log: string[];
    /** Every address that was asked for, also by workers. */
    readonly requested: string[];
    close(): Promise<void>;
}

/** `make test` leaves out what is slow and nearly told by another case; `make test-browser` does not. */
export const quick = process.env["BEZEL_QUICK"] === "1";

function chosenAdapter(): Adapter {
    const wish = process.env["BEZEL_BROWSER_ADAPTER"] ?? "lavapipe";
    if (!(wish in executables)) {
        throw new Error(`BEZEL_BROWSER_ADAPTER=${wish}: there are ${Object.keys(executables).join(", ")}`);
    }
    return wish as Adapter;
}

/** A browser of its own, with nothing stored in it. */
export async function openBrowser(options: BrowserOptions = {}): Promise<Browser> {
    const adapter = options.adapter ?? chosenAdapter();
    const executablePath = resolve(executables[adapter]);
    await access(executablePath).catch(() => {
        throw new Error(`${executablePath} is missing: sh tools/setup.sh browser`);
    });
    const profile = await mkdtemp(join(tmpdir(), "bezel-browser-"));
    const [width, height] = (options.size ?? (options.phone ? "390x844" : "1280x800")).split("x").map(Number);
    const context = await chromium.launchPersistentContext(profile, {
        executablePath,
        headless: true,
        viewport: { width: width ?? 1280, height: height ?? 800 },
        colorScheme: options.colours ?? "light",
        permissions: options.microphone === undefined ? [] : ["microphone"],
        ...(options.phone ? { hasTouch: true, isMobile: true, deviceScaleFactor: 2 } : {}),
        args: [
            "--no-sandbox",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            ...(adapter === "none" ? [] : ["--enable-unsafe-webgpu"]),
            ...(options.microphone === undefined
                ? []
                : ["--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${resolve(options.microphone)}%noloop`]),
        ],
        timeout: 120_000,
    });
    const log: string[] = [];
    const requested: string[] = [];
    const page = context.pages()[0] ?? (await context.newPage());
    page.setDefaultTimeout(60_000);
    page.on("console", (message) => log.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => log.push(`uncaught: ${error.message}`));
    context.on("request", (request) => requested.push(request.url()));
    return {
        context,
        page,
        log,
        requested,
        close: async () => {
            await context.close();
            await rm(profile, { recursive: true, force: true, maxRetries: 5 }); // it may still be writing there
        },
    };
}

/** Runs with a browser, and closes it whatever happens. What the page logged goes with a failure. */
export async function withBrowser<T>(options: BrowserOptions, use: (browser: Browser) => Promise<T>): Promise<T> {
    const browser = await openBrowser(options);
    try {
        return await use(browser);
    } catch (reason) {
        await screenshot(browser.page, "failure").catch(() => undefined);
        const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
        throw new Error([text, ...browser.log.slice(-20).map((line) => `    page: ${line}`)].join("\n"));
    } finally {
        await browser.close();
    }
}

/** build/screenshots/NAME.png */
export async function screenshot(page: Page, name: string): Promise<string> {
    await mkdir("build/screenshots", { recursive: true });
    const path = `build/screenshots/${name}.png`;
    await page.screenshot({ path });
    return path;
}
