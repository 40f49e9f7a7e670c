/** Debian's Firefox without a window, driven by Marionette, the protocol that is part of it: a list as JSON with its
 * length before it, over TCP. Playwright drives only a Firefox of its own, or newer ones than Debian's. */
import { spawn, type ChildProcess } from "node:child_process";
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { watchIdle } from "./idle.js";

const executable = "/usr/lib/firefox-esr/firefox-esr";

/** Upper bound of a script; before that, watchIdle ends a browser that does nothing. */
const MAX_WAIT_MS = 600_000;

/** No update, no greeting, no reports, no connection that the page does not make. */
const preferences: Record<string, string | number | boolean> = {
    "marionette.port": 0, // a free one
    "app.update.disabledForTesting": true,
    "app.normandy.enabled": false,
    "browser.aboutwelcome.enabled": false,
    "browser.safebrowsing.downloads.enabled": false,
    "browser.safebrowsing.malware.enabled": false,
    "browser.safebrowsing.phishing.enabled": false,
    "browser.shell.checkDefaultBrowser": false,
    "datareporting.policy.dataSubmissionEnabled": false,
    "extensions.update.enabled": false,
    "network.captive-portal-service.enabled": false,
    "network.connectivity-service.enabled": false,
    "services.settings.server": "http://127.0.0.1:9/",
    "toolkit.telemetry.server": "",
};

/** Polls, as Firefox announces its port with a file. */
async function portOf(profile: string, firefox: ChildProcess): Promise<number> {
    for (;;) {
        const port = Number(await readFile(join(profile, "MarionetteActivePort"), "utf8").catch(() => "0"));
        if (port > 0) {
            return port;
        }
        if (firefox.exitCode !== null) {
            throw new Error(`Firefox ended with status ${firefox.exitCode}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

type Answer = [type: number, id: number, error: { error: string; message: string } | null, result: unknown];

export class Firefox {
    readonly #socket: Socket;
    readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (reason: Error) => void }>();
    #bytes = Buffer.alloc(0);
    #lastId = 0;

    private constructor(socket: Socket) {
        this.#socket = socket;
        socket.on("data", (bytes: Buffer) => this.#receive(bytes));
        socket.on("error", () => undefined); // "close" follows
        socket.on("close", () => this.#waiting.forEach(({ reject }) => reject(new Error("Firefox has closed the connection"))));
    }

    static async connect(port: number): Promise<Firefox> {
        const socket = connect(port, "127.0.0.1");
        const firefox = new Firefox(socket);
        await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
        await firefox.#send("WebDriver:NewSession", { pageLoadStrategy: "normal" });
        await firefox.#send("WebDriver:SetTimeouts", { script: MAX_WAIT_MS, pageLoad: MAX_WAIT_MS });
        return firefox;
    }

    #receive(bytes: Buffer): void {
        this.#bytes = Buffer.concat([this.#bytes, bytes]);
        for (;;) {
            const colon = this.#bytes.indexOf(":");
            const end = colon + 1 + Number(this.#bytes.subarray(0, Math.max(0, colon)).toString());
            if (colon < 0 || this.#bytes.length < end) {
                return;
            }
            const message = JSON.parse(this.#bytes.subarray(colon + 1, end).toString()) as Answer | object;
            this.#bytes = this.#bytes.subarray(end);
            if (Array.isArray(message)) {
                const [, id, error, result] = message as Answer;
                const waiting = this.#waiting.get(id);
                this.#waiting.delete(id);
                if (error) {
                    waiting?.reject(new Error(`${error.error}: ${error.message}`));
                } else {
                    waiting?.resolve(result);
                }
            }
        }
    }

    #send(command: string, parameters: object = {}): Promise<unknown> {
        const id = ++this.#lastId;
        const text = JSON.stringify([0, id, command, parameters]);
        this.#socket.write(`${Buffer.byteLength(text)}:${text}`);
        return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    }

    async goto(url: string): Promise<void> {
        await this.#send("WebDriver:Navigate", { url });
    }

    /** Runs a function in the page. It sees its arguments and the page, nothing of the test. */
    async evaluate<A extends unknown[], T>(act: (...args: A) => T | Promise<T>, ...args: A): Promise<T> {
        const script = `return (${act.toString()})(...arguments)`;
        const { value } = (await this.#send("WebDriver:ExecuteScript", { script, args, sandbox: null })) as { value: T };
        return value;
    }

    /** Waits until a condition holds in the page. */
    async until<A extends unknown[]>(condition: (...args: A) => boolean, ...args: A): Promise<void> {
        while (!(await this.evaluate(condition, ...args))) {
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
    }

    /** Waits for an element that matches. */
    shown(selector: string): Promise<void> {
        return this.until((wanted) => [...document.querySelectorAll(wanted)].some((one) => one.checkVisibility()), selector);
    }

    async #find(selector: string): Promise<string> {
        await this.shown(selector);
        const { value } = (await this.#send("WebDriver:FindElement", { using: "css selector", value: selector })) as { value: Record<string, string> };
        return Object.values(value)[0] ?? "";
    }

    /** A click as the user's: it fails if something covers the element. */
    async click(selector: string): Promise<void> {
        await this.#send("WebDriver:ElementClick", { id: await this.#find(selector) });
    }

    async type(selector: string, text: string): Promise<void> {
        await this.#send("WebDriver:ElementSendKeys", { id: await this.#find(selector), text });
    }

    async text(selector: string): Promise<string> {
        return this.evaluate((wanted) => document.querySelector(wanted)?.textContent ?? "", selector);
    }

    /** build/screenshots/NAME.png */
    async screenshot(name: string): Promise<void> {
        const { value } = (await this.#send("WebDriver:TakeScreenshot", { full: false })) as { value: string };
        await mkdir("build/screenshots", { recursive: true });
        await writeFile(`build/screenshots/${name}.png`, Buffer.from(value, "base64"));
    }

    close(): void {
        this.#socket.destroy();
    }
}

/** Runs a case with a Firefox of its own, whose profile is new. */
export async function withFirefox(use: (firefox: Firefox) => Promise<void>): Promise<void> {
    await access(executable).catch(() => {
        throw new Error(`${executable} is missing: run sh tools/setup.sh browser`);
    });
    const profile = await mkdtemp(join(tmpdir(), "bezel-firefox-"));
    const lines = Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
    await writeFile(join(profile, "user.js"), lines.join("\n"));
    const program = spawn(executable, ["--headless", "--marionette", "--no-remote", "--profile", profile], { stdio: "ignore", env: { ...process.env, HOME: profile } });
    const ended = new Promise((resolve) => program.once("exit", resolve));
    const idle = watchIdle(() => void program.kill());
    let firefox: Firefox | null = null;
    try {
        firefox = await Firefox.connect(await portOf(profile, program));
        await use(firefox);
    } catch (reason) {
        await firefox?.screenshot("failure").catch(() => undefined);
        throw reason;
    } finally {
        idle.stop();
        firefox?.close();
        program.kill();
        await ended;
        await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    }
}
