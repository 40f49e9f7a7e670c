/** The result of a benchmark as a picture, to be shared. */
import type { BenchmarkResult } from "./bench.js";
import { formatBytes, formatRate } from "./format.js";

const WIDTH = 1200;
const HEIGHT = 630;
const PAPER = "#fbfaf8";
const INK = "#23211e";
const SOFT = "#6a655d";
const TRACK = "#efece6";
const GEM = "#1c6b64";
const TEXT = "system-ui, sans-serif";

/** [label, tokens per second] */
export function rowsOf({ prompt, decode }: BenchmarkResult): [string, number][] {
    return [
        ...prompt.map(({ tokens, perSecond }): [string, number] => [`Reads a prompt of ${tokens}`, perSecond]),
        ...decode.map(({ depth, perSecond }): [string, number] => [`Writes after ${depth.toLocaleString("en")}`, perSecond]),
    ];
}

/** "Chrome 140 on Linux", as far as the browser says. */
export function browserName(userAgent: string): string {
    const found = /(Firefox|Edg|OPR)\/(\d+)/.exec(userAgent) ?? /(Chrome)\/(\d+)/.exec(userAgent) ?? /(?:Version\/(\d+)).*(Safari)/.exec(userAgent);
    const system = /Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux/.exec(userAgent)?.[0]?.replace("Mac OS X", "macOS");
    const [, first = "", second = ""] = found ?? [];
    const names: Record<string, string> = { Edg: "Edge", OPR: "Opera" };
    const name = /^\d/.test(first) ? `${second} ${first}` : `${names[first] ?? first} ${second}`;
    return [name.trim() || "a browser", system && `on ${system}`].filter(Boolean).join(" ");
}

/** As much of the text as fits. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
    let part = text;
    while (part.length > 1 && context.measureText(part === text ? part : `${part}\u2026`).width > width) {
        part = part.slice(0, -1);
    }
    return part === text ? text : `${part}\u2026`;
}

export function drawPicture(result: BenchmarkResult): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.width = WIDTH;
    canvas.height = HEIGHT;
    const context = canvas.getContext("2d");
    if (!context) {
        throw new Error("This browser cannot draw pictures.");
    }
    const write = (text: string, x: number, y: number, font: string, color: string, align: CanvasTextAlign = "left", width = WIDTH - 160): void => {
        context.font = font;
        context.fillStyle = color;
        context.textAlign = align;
        context.fillText(cut(context, text, width), x, y);
    };
    context.fillStyle = PAPER;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.fillStyle = GEM;
    context.fillRect(0, 0, WIDTH, 10);
    const { model, device, browser, loadSeconds, date } = result;
    write(model.name, 80, 100, `600 46px ${TEXT}`, INK);
    const on = device.kind === "cpu" ? `CPU, ${device.threads === 1 ? "one thread" : `${device.threads} threads`}` : device.name;
    write([formatBytes(model.bytes), on, browserName(browser)].join(" \u00b7 "), 80, 145, `26px ${TEXT}`, SOFT);
    const rows = rowsOf(result);
    const most = Math.max(...rows.map(([, rate]) => rate));
    rows.forEach(([label, rate], i) => {
        const y = 220 + 78 * i;
        write(label, 80, y, `26px ${TEXT}`, INK);
        write(formatRate(rate), WIDTH - 80, y, `600 26px ${TEXT}`, INK, "right");
        context.fillStyle = TRACK;
        context.fillRect(80, y + 14, WIDTH - 160, 16);
        context.fillStyle = GEM;
        context.fillRect(80, y + 14, Math.max(4, ((WIDTH - 160) * rate) / most), 16);
    });
    const loaded = loadSeconds === null ? "" : `Loaded in ${loadSeconds.toFixed(1)} s`;
    write(loaded, 80, HEIGHT - 50, `24px ${TEXT}`, SOFT);
    write(`Measured with Bezel, ${date.slice(0, 10)}`, WIDTH - 80, HEIGHT - 50, `24px ${TEXT}`, SOFT, "right");
    return canvas;
}
