/** Chromium without a window, on a software adapter.
 *
 * BEZEL_BROWSER_ADAPTER=swiftshader selects the driver that Chromium contains (correct, very slow, without f16); the
 * default is lavapipe. A missing browser, or one without WebGPU, is a failure. */
import { access, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { chromium, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { finish } from "../web/check.js";
import { watchIdle } from "./idle.js";

export type Adapter = "lavapipe" | "swiftshader" | "none";

const executables: Record<Adapter, string> = {
    lavapipe: "build/browser/chromium/chromium",
    swiftshader: "/usr/lib/chromium/chromium",
    none: "/usr/lib/chromium/chromium",
};

/** Upper bound of every wait. Before that, a test fails when everything has been idle (idle.ts). */
const MAX_WAIT_MS = 600_000;

export interface BrowserOptions {
    adapter?: Adapter;
    /** "390x844"; default 1280x800 */
    size?: string;
    colors?: "light" | "dark";
    phone?: boolean;
    /** A WAV file that the microphone plays once, from its first use. Without it, pages are denied the microphone. */
    microphone?: string;
    /** A browser process for this case only. By default, cases share one process and start with empty storage. */
    ownProcess?: boolean;
}

export interface Browser {
    readonly context: BrowserContext;
    readonly page: Page;
    /** Console messages and uncaught errors of the page, oldest first. */
    readonly log: string[];
    /** Every URL that was requested, also by workers. */
    readonly requested: string[];
    /** Ends the case. */
    close(): Promise<void>;
    /** Ends the browser process, which makes pending calls reject. */
    kill(): Promise<void>;
}

/** Set by `make test`, which omits slow cases that others nearly cover; `make test-browser` runs all. */
export const quick = process.env["BEZEL_QUICK"] === "1";

function chosenAdapter(): Adapter {
    const name = process.env["BEZEL_BROWSER_ADAPTER"] ?? "lavapipe";
    if (!(name in executables)) {
        throw new Error(`BEZEL_BROWSER_ADAPTER=${name}: must be one of ${Object.keys(executables).join(", ")}`);
    }
    return name as Adapter;
}

interface LaunchOptions {
    executablePath: string;
    headless: boolean;
    args: string[];
    timeout: number;
}

function launchOptions(adapter: Adapter, microphone: string | undefined): LaunchOptions {
    return {
        executablePath: resolve(executables[adapter]),
        headless: true,
        args: [
            "--no-sandbox",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            ...(adapter === "none" ? [] : ["--enable-unsafe-webgpu"]),
            ...(microphone === undefined
                ? []
                : ["--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${resolve(microphone)}%noloop`]),
        ],
        timeout: MAX_WAIT_MS,
    };
}

function contextOptions({ phone, microphone }: BrowserOptions): BrowserContextOptions {
    return {
        permissions: microphone === undefined ? [] : ["microphone"],
        ...(phone ? { hasTouch: true, isMobile: true, deviceScaleFactor: 2 } : {}),
    };
}

/** A Chromium process with a profile on disk. Not an incognito one, whose memory cache loses ranges of files. */
class Process {
    readonly context: BrowserContext;
    readonly #profile: string;

    private constructor(context: BrowserContext, profile: string) {
        this.context = context;
        this.#profile = profile;
    }

    static async start(adapter: Adapter, options: BrowserOptions): Promise<Process> {
        const launch = launchOptions(adapter, options.microphone);
        await access(launch.executablePath).catch(() => {
            throw new Error(`${launch.executablePath} is missing: run sh tools/setup.sh browser`);
        });
        const profile = await mkdtemp(join(tmpdir(), "bezel-browser-"));
        const context = await chromium.launchPersistentContext(profile, { ...launch, ...contextOptions(options) });
        context.setDefaultTimeout(MAX_WAIT_MS);
        return new Process(context, profile);
    }

    /** Closes the pages of a case and deletes what they stored, for the next case. */
    async reset(origins: Set<string>): Promise<void> {
        const blank = await this.context.newPage();
        await Promise.all(this.context.pages().map((page) => page === blank || page.close()));
        const session = await this.context.newCDPSession(blank);
        for (const origin of origins) {
            await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
        }
        await session.detach();
        await this.context.clearPermissions();
    }

    async close(): Promise<void> {
        await this.context.close();
        await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 }); // Chromium may still be writing there
    }
}

/** Processes that several cases use one after the other. They keep their compiled shaders. */
const shared = new Map<string, Promise<Process>>();

async function openBrowser(options: BrowserOptions): Promise<Browser> {
    const adapter = options.adapter ?? chosenAdapter();
    const own = options.ownProcess || options.microphone !== undefined;
    const key = `${adapter}${options.phone ? " phone" : ""}`;
    const starting = (own ? undefined : shared.get(key)) ?? Process.start(adapter, options);
    if (!own) {
        shared.set(key, starting);
    }
    const chromiumProcess = await starting;
    const { context } = chromiumProcess;
    const log: string[] = [];
    const requested: string[] = [];
    const onRequest = (request: { url(): string }): void => void requested.push(request.url());
    context.on("request", onRequest);
    const page = context.pages()[0] ?? (await context.newPage());
    const [width = 1280, height = 800] = (options.size ?? (options.phone ? "390x844" : "1280x800")).split("x").map(Number);
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: options.colors ?? "light" });
    page.on("console", (message) => log.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => log.push(`uncaught: ${error.message}`));
    return {
        context,
        page,
        log,
        requested,
        close: async () => {
            context.off("request", onRequest);
            if (own) {
                await chromiumProcess.close();
            } else {
                await chromiumProcess.reset(new Set(requested.filter((url) => url.startsWith("http")).map((url) => new URL(url).origin)));
            }
        },
        kill: async () => {
            shared.delete(key);
            await chromiumProcess.close();
        },
    };
}

/** Runs a case with a browser. A failure includes the page's last log lines. */
export async function withBrowser<T>(options: BrowserOptions, use: (browser: Browser) => Promise<T>): Promise<T> {
    const browser = await openBrowser(options);
    const idle = watchIdle(() => void browser.kill());
    try {
        return await use(browser);
    } catch (reason) {
        await screenshot(browser.page, "failure").catch(() => undefined);
        const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
        const why = idle.expired ? [`the browser was idle for ${idle.seconds} s`] : [];
        throw new Error([...why, text, ...browser.log.slice(-20).map((line) => `    page: ${line}`)].join("\n"));
    } finally {
        idle.stop();
        await (idle.expired ? Promise.resolve() : browser.close());
    }
}

/** Closes the servers and the shared processes, and ends the test program. */
export async function end(...servers: { close(): Promise<void> }[]): Promise<never> {
    await Promise.all(servers.map((server) => server.close()));
    for (const starting of shared.values()) {
        await (await starting).close();
    }
    return finish();
}

/** build/screenshots/NAME.png */
export async function screenshot(page: Page, name: string): Promise<string> {
    await mkdir("build/screenshots", { recursive: true });
    const path = `build/screenshots/${name}.png`;
    await page.screenshot({ path });
    return path;
}
