/** Debian's Firefox without a window, driven over WebDriver BiDi by Playwright, which speaks a newer version of that protocol. */
import { access, mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { firefox, type Browser } from "playwright-core";

const executable = "/usr/lib/firefox-esr/firefox-esr";

type Preferences = Record<string, string | number | boolean>;

/** No greeting, no reports, no connection that the page does not make. */
const preferences: Preferences = {
    "app.normandy.enabled": false,
    "browser.aboutwelcome.enabled": false,
    "dom.events.testing.asyncClipboard": true, // no question before a page reads it
    "dom.maxHardwareConcurrency": 2, // as many threads on every machine
    "media.cubeb.force_mock_context": true, // sound goes nowhere, instead of waiting for a device
    "network.captive-portal-service.enabled": false,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.server": "",
};

/** What a case chooses. Firefox follows these preferences while it runs. */
export interface FirefoxOptions {
    colors: "light" | "dark";
    phone: boolean;
    /** One that plays a tone; without it, pages are denied a microphone. */
    microphone: boolean;
}

/** Pointers that a page can ask for, as bits. */
const FINGER = 1;
const MOUSE = 2 | 4; // fine, and can hover

const ALLOWED = 1;
const DENIED = 2;

const preferencesOf = ({ colors, phone, microphone }: FirefoxOptions): Preferences => ({
    "layout.css.prefers-color-scheme.content-override": colors === "dark" ? 0 : 1,
    "media.navigator.permission.disabled": microphone,
    "media.navigator.streams.fake": microphone,
    "permissions.default.microphone": microphone ? ALLOWED : DENIED,
    "ui.allPointerCapabilities": phone ? FINGER : MOUSE,
    "ui.primaryPointerCapabilities": phone ? FINGER : MOUSE,
});

// ---- between Playwright and Firefox -----------------------------------------------------------------------

interface Message {
    id?: number;
    method?: string;
    params?: { url?: string };
    result?: unknown;
}

/** Playwright's WebSockets, which it uses for Firefox only. */
interface Socket {
    send(text: string, ...rest: unknown[]): void;
    emit(event: string, ...rest: unknown[]): boolean;
}

const COLOR_SCHEME = "emulation.setMediaFeaturesOverride";
const DOWNLOAD = "browsingContext.download";

/** There is no command for the color scheme, which a preference sets: sends another one that changes nothing. */
function toFirefox(text: string): string {
    const message = JSON.parse(text) as Message;
    return message.method === COLOR_SCHEME ? JSON.stringify({ ...message, method: "session.status", params: {} }) : text;
}

/** Events of a download have no name for it, except its address. */
function toPlaywright(text: string): string {
    const message = text.includes(DOWNLOAD) ? (JSON.parse(text) as Message) : {};
    return message.method?.startsWith(DOWNLOAD) ? JSON.stringify({ ...message, params: { download: message.params?.url, ...message.params } }) : text;
}

/** Commands of our own have greater numbers than Playwright's. */
const FIRST_ID = 1_000_000_000;

/** The connection that was used last. */
const connection = {
    send: (_: string): void => undefined,
    lastId: FIRST_ID,
    waiting: new Map<number, (answer: Message) => void>(),
};

let installed = false;

function install(): void {
    const { ws } = createRequire(import.meta.url)("playwright-core/lib/utilsBundle") as { ws: { prototype: Socket } };
    const { send, emit } = ws.prototype;
    ws.prototype.send = function (text, ...rest): void {
        connection.send = (own) => send.call(this, own);
        send.call(this, toFirefox(text), ...rest);
    };
    ws.prototype.emit = function (event, data, ...rest): boolean {
        if (event !== "message") {
            return emit.call(this, event, data, ...rest);
        }
        const text = String(data);
        const id = Number(/^\{"type":"\w+","id":(\d+)/.exec(text)?.[1] ?? 0);
        const own = connection.waiting.get(id);
        if (own) {
            connection.waiting.delete(id);
            own(JSON.parse(text) as Message);
            return true;
        }
        return emit.call(this, event, Buffer.from(toPlaywright(text)), ...rest);
    };
    installed = true;
}

function command(method: string, params: object): Promise<unknown> {
    const id = ++connection.lastId;
    connection.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) =>
        connection.waiting.set(id, (answer) => (answer.result === undefined ? reject(new Error(JSON.stringify(answer))) : resolve(answer.result))));
}

/** Runs code of Firefox's own. */
async function inFirefoxItself(expression: string): Promise<void> {
    const { contexts } = (await command("browsingContext.getTree", { "moz:scope": "chrome" })) as { contexts: { context: string }[] };
    const answer = (await command("script.evaluate", { expression, target: { context: contexts[0]?.context }, awaitPromise: false })) as { type: string };
    if (answer.type !== "success") {
        throw new Error(`${expression}: ${JSON.stringify(answer)}`);
    }
}

// ---- the browser ------------------------------------------------------------------------------------------

export function applyOptions(options: FirefoxOptions): Promise<void> {
    const set = (value: unknown): string => ({ number: "Int", boolean: "Bool" })[String(typeof value)] ?? "String";
    const lines = Object.entries(preferencesOf(options)).map(([name, value]) => `Services.prefs.set${set(value)}Pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
    return inFirefoxItself(lines.join("\n"));
}

export async function startFirefox(timeout: number): Promise<{ browser: Browser; close(): Promise<void> }> {
    await access(executable).catch(() => {
        throw new Error(`${executable} is missing: run sh tools/setup.sh browser`);
    });
    if (!installed) {
        install();
    }
    const home = await mkdtemp(join(tmpdir(), "bezel-firefox-"));
    const browser = await firefox.launch({
        channel: "moz-firefox",
        executablePath: executable,
        args: ["--remote-allow-system-access"],
        env: { ...process.env, HOME: home },
        headless: true,
        timeout,
        firefoxUserPrefs: preferences,
    });
    // Firefox tells its driver about every worker. Then a page that starts workers in workers may wait for one for ever.
    await inFirefoxItself('ChromeUtils.unregisterProcessActor("WebDriverWorkerListener")');
    const close = async (): Promise<void> => {
        await browser.close();
        await rm(home, { recursive: true, force: true, maxRetries: 5 }); // Firefox may still be writing there
    };
    return { browser, close };
}
