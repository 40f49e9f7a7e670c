/** The tool that reads an address of the web, after the user has allowed that one address. Text only. */
import { textArgument, type Arguments, type PageTool } from "./toolbox.js";

export const FETCH = "fetch_address";

const MAX_BYTES = 2_000_000;
const MAX_MS = 15_000;

/** Asks the user; resolves to whether it is allowed. */
export type AskToFetch = (url: URL, signal: AbortSignal) => Promise<boolean>;

function addressOf(args: Arguments): URL {
    let url: URL;
    try {
        url = new URL(textArgument(args, "url"));
    } catch {
        throw new Error("The address is not valid: it has to begin with https://.");
    }
    if (url.protocol !== "https:" || url.username || url.password) {
        throw new Error("Only addresses that begin with https:// and have no password can be read.");
    }
    return url;
}

/** Text of an HTML page. The document is only parsed: it has no window, so it loads and runs nothing. */
function textOfPage(html: string): string {
    const page = new DOMParser().parseFromString(html, "text/html");
    page.querySelectorAll("script, style, noscript, template, svg, nav, footer, iframe").forEach((element) => element.remove());
    page.querySelectorAll("p, br, li, tr, h1, h2, h3, h4, h5, h6, div, pre, blockquote, section").forEach((element) => element.append("\n"));
    const text = (page.body.textContent ?? "").replace(/[^\S\n]+/g, " ").replace(/ ?\n[ \n]*/g, "\n");
    return `${page.title.trim()}\n\n${text.trim()}`.trim();
}

async function readText(response: Response): Promise<string> {
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (let bytes = 0; reader; ) {
        const { done, value } = await reader.read();
        if (done) {
            break;
        }
        bytes += value.byteLength;
        text += decoder.decode(value, { stream: true });
        if (bytes > MAX_BYTES) {
            await reader.cancel();
            break;
        }
    }
    return text + decoder.decode();
}

async function fetchText(url: URL, signal: AbortSignal): Promise<string> {
    let response: Response;
    try {
        const limited = AbortSignal.any([signal, AbortSignal.timeout(MAX_MS)]);
        response = await fetch(url, { signal: limited, credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" });
    } catch {
        throw new Error(`${url.host} could not be read: it does not answer, or it does not let other pages read it.`);
    }
    if (!response.ok) {
        throw new Error(`${url.host} answered with status ${response.status}.`);
    }
    const type = response.headers.get("Content-Type")?.split(";")[0]?.trim() ?? "";
    if (type !== "" && !/^text\/|json|xml|javascript/.test(type)) {
        throw new Error(`${url.host} sent ${type}; only text can be read.`);
    }
    const text = await readText(response);
    return type === "text/html" || type === "application/xhtml+xml" ? textOfPage(text) : text;
}

export function fetchTool(ask: AskToFetch): PageTool {
    return {
        name: FETCH,
        title: "Read an address",
        about: "Reads a page of the web, if you allow that address each time. The address is sent to its site. Many sites do not let other pages read them.",
        description: "Reads the text of one web address. The user is asked for permission each time.",
        parameters: { type: "object", properties: { url: { type: "string", description: "Address that begins with https://" } }, required: ["url"] },
        run: async (args, signal) => {
            const url = addressOf(args);
            if (!(await ask(url, signal))) {
                throw new Error("The user did not allow this address.");
            }
            return fetchText(url, signal);
        },
    };
}
