/** Chromium without a window, on a software adapter, or Firefox, which has none: it computes on the CPU.
 *
 * BEZEL_BROWSER=firefox runs a suite's cases in Debian's Firefox, except those of `chromiumOnly`.
 * BEZEL_BROWSER_ADAPTER=swiftshader selects the driver that Chromium contains (correct, very slow, without f16); the
 * default is lavapipe. A missing browser, or one without WebGPU, is a failure. */
import { access, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { chromium, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { finish } from "../web/check.js";
import { applyOptions, startFirefox } from "./firefox.js";
import { watchIdle } from "./idle.js";

export type Adapter = "lavapipe" | "swiftshader" | "none";

const executables: Record<Adapter, string> = {
    lavapipe: "build/browser/chromium/chromium",
    swiftshader: "/usr/lib/chromium/chromium",
    none: "/usr/lib/chromium/chromium",
};

/** Hash of the style that Playwright adds for a picture: the page's policy refuses it, which Firefox reports as an error. */
const pictureStyle = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=";

/** Upper bound of every wait. Before that, a test fails when everything has been idle (idle.ts). */
const MAX_WAIT_MS = 600_000;

export interface BrowserOptions {
    adapter?: Adapter;
    /** "390x844"; default 1280x800 */
    size?: string;
    colors?: "light" | "dark";
    phone?: boolean;
    /** A WAV file that the microphone plays once, from its first use; in Firefox it plays a tone instead. Without it, pages
     * are denied the microphone. */
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

export const inFirefox = process.env["BEZEL_BROWSER"] === "firefox";

/** Runs a case, but not in Firefox: for WebGPU, which Debian's does not have, and for what only Chromium's protocol can do. */
export const chromiumOnly = <A extends unknown[]>(run: (...all: A) => Promise<void>) => (...all: A): Promise<void> => (inFirefox ? Promise.resolve() : run(...all));

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

/** A browser process, in which one case runs at a time. */
interface Process {
    open(options: BrowserOptions): Promise<BrowserContext>;
    /** Closes the pages of a case and deletes what they stored, for the next case. */
    reset(origins: Set<string>): Promise<void>;
    close(): Promise<void>;
}

/** With a profile on disk. Not an incognito one, whose memory cache loses ranges of files. */
class Chromium implements Process {
    readonly #context: BrowserContext;
    readonly #profile: string;

    private constructor(context: BrowserContext, profile: string) {
        this.#context = context;
        this.#profile = profile;
    }

    static async start(adapter: Adapter, options: BrowserOptions): Promise<Chromium> {
        const launch = launchOptions(adapter, options.microphone);
        await access(launch.executablePath).catch(() => {
            throw new Error(`${launch.executablePath} is missing: run sh tools/setup.sh browser`);
        });
        const profile = await mkdtemp(join(tmpdir(), "bezel-browser-"));
        const context = await chromium.launchPersistentContext(profile, { ...launch, ...contextOptions(options) });
        context.setDefaultTimeout(MAX_WAIT_MS);
        return new Chromium(context, profile);
    }

    open(): Promise<BrowserContext> {
        return Promise.resolve(this.#context);
    }

    async reset(origins: Set<string>): Promise<void> {
        const blank = await this.#context.newPage();
        await Promise.all(this.#context.pages().map((page) => page === blank || page.close()));
        const session = await this.#context.newCDPSession(blank);
        for (const origin of origins) {
            await session.send("Storage.clearDataForOrigin", { origin, storageTypes: "all" });
        }
        await session.detach();
        await this.#context.clearPermissions();
    }

    async close(): Promise<void> {
        await this.#context.close();
        await rm(this.#profile, { recursive: true, force: true, maxRetries: 5 }); // Chromium may still be writing there
    }
}

/** Each case has a context of its own, whose storage is on disk and deleted with it. */
class Firefox implements Process {
    readonly #started: Awaited<ReturnType<typeof startFirefox>>;
    #context: BrowserContext | null = null;

    private constructor(started: Awaited<ReturnType<typeof startFirefox>>) {
        this.#started = started;
    }

    static async start(): Promise<Firefox> {
        return new Firefox(await startFirefox(MAX_WAIT_MS));
    }

    async open({ colors = "light", phone = false, microphone }: BrowserOptions): Promise<BrowserContext> {
        await applyOptions({ colors, phone, microphone: microphone !== undefined });
        this.#context = await this.#started.browser.newContext({ deviceScaleFactor: phone ? 2 : 1 });
        this.#context.setDefaultTimeout(MAX_WAIT_MS);
        return this.#context;
    }

    async reset(): Promise<void> {
        await this.#context?.close();
    }

    close(): Promise<void> {
        return this.#started.close();
    }
}

/** Processes that several cases use one after the other. They keep their compiled shaders. */
const shared = new Map<string, Promise<Process>>();

async function openBrowser(options: BrowserOptions): Promise<Browser> {
    const adapter = options.adapter ?? chosenAdapter();
    const own = !inFirefox && (options.ownProcess || options.microphone !== undefined);
    const key = inFirefox ? "firefox" : `${adapter}${options.phone ? " phone" : ""}`;
    const starting = (own ? undefined : shared.get(key)) ?? (inFirefox ? Firefox.start() : Chromium.start(adapter, options));
    if (!own) {
        shared.set(key, starting);
    }
    const browserProcess = await starting;
    const context = await browserProcess.open(options);
    const log: string[] = [];
    const requested: string[] = [];
    const onRequest = (request: { url(): string }): void => void requested.push(request.url());
    context.on("request", onRequest);
    const page = context.pages()[0] ?? (await context.newPage());
    const [width = 1280, height = 800] = (options.size ?? (options.phone ? "390x844" : "1280x800")).split("x").map(Number);
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: options.colors ?? "light" });
    page.on("console", (message) => log.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", ({ message }) => void (message.includes(pictureStyle) || log.push(`uncaught: ${message}`)));
    return {
        context,
        page,
        log,
        requested,
        close: async () => {
            context.off("request", onRequest);
            if (own) {
                await browserProcess.close();
            } else {
                await browserProcess.reset(new Set(requested.filter((url) => url.startsWith("http")).map((url) => new URL(url).origin)));
            }
        },
        kill: async () => {
            shared.delete(key);
            await browserProcess.close();
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

/** Lets the page read and write the clipboard. In Firefox a preference does. */
export async function allowClipboard({ context }: Browser, url: string): Promise<void> {
    if (!inFirefox) {
        await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
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

/** build/screenshots/NAME.png, in Firefox build/screenshots/firefox/NAME.png */
export async function screenshot(page: Page, name: string): Promise<string> {
    const folder = `build/screenshots${inFirefox ? "/firefox" : ""}`;
    await mkdir(folder, { recursive: true });
    const path = `${folder}/${name}.png`;
    await page.screenshot({ path });
    return path;
}
