/** Random inputs for the parts in JavaScript and WebAssembly: fuzz.ts runs them for a while, tests run a few. Both are
 * repeatable: an input depends on the seed only. */
import { Bezel, BezelError } from "../../web/package/src/index.js";
import { parseBlocks } from "../../web/app/src/markdown.js";
import { fuzzExports } from "./fuzz_exports.js";
import { fuzzFetch } from "./fuzz_fetch.js";
import { localOptions, nano } from "./package.js";
import { readBytes } from "./platform.js";

export interface FuzzTarget {
    name: string;
    /** Rejects with the reason if it finds something. */
    run: (seed: number) => Promise<void>;
}

function randomFrom(seed: number): (n: number) => number {
    let state = (Math.imul(seed, 2654435761) ^ 0x9e3779b9) >>> 0;
    return (n) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * n);
    };
}

// ---- Markdown ---------------------------------------------------------------------------------------

const PIECES = [
    "*", "**", "_", "`", "```", "~~~", "[", "](", ")", "![", "<", ">", "> ", "- ", "1. ", "+ ", "# ", "## ", "|", "|-", ":-:", "---", "\n", "\n\n", "  \n", "    ", "\t", "\\", "a", "é",
    "漢", "😀", " ", "http://a.b", "javascript:x", "mailto:a@b", "<b>", "&amp;", "\u0000", "\r\n", "~~", "x".repeat(50), " ".repeat(50),
];
/** Characters may take this long, in milliseconds of CPU time. */
const SLOW_MS = 1000;

const markdown: FuzzTarget = {
    name: "markdown",
    run: async (seed) => {
        const random = randomFrom(seed);
        const repeat = random(4) === 0 ? 200 : 1;
        const text = Array.from({ length: random(60) }, () => (PIECES[random(PIECES.length)] ?? "").repeat(1 + random(repeat))).join("");
        const before = process.cpuUsage();
        const blocks = parseBlocks(text);
        const { user, system } = process.cpuUsage(before);
        if ((user + system) / 1e3 > SLOW_MS) {
            throw new Error(`${Math.round((user + system) / 1e3)} ms for ${JSON.stringify(text)}`);
        }
        const links = JSON.stringify(blocks).match(/"href":"[^"]*/g) ?? [];
        if (links.some((link) => !/^"href":"(https?:\/\/|mailto:)/i.test(link))) {
            throw new Error(`an unsafe link in ${JSON.stringify(text)}`);
        }
    },
};

// ---- WebAssembly ------------------------------------------------------------------------------------

const ODD = [0n, 1n, 2n, 7n, 31n, 32n, 255n, 256n, 65535n, 65536n, 0x7fffffffn, 0x80000000n, 0xffffffffn, 0x100000000n, 0x7fffffffffffffffn, 0xffffffffffffffffn];
let whole: Uint8Array<ArrayBuffer> | null = null;
/** Tensors follow; changing them changes numbers only. */
const HEADER_BYTES = 40_000;

const model: FuzzTarget = {
    name: "wasm",
    run: async (seed) => {
        whole ??= await readBytes(nano);
        const random = randomFrom(seed);
        const bytes = whole.slice(0, random(8) === 0 ? random(whole.length) : whole.length);
        const view = new DataView(bytes.buffer);
        const header = Math.min(HEADER_BYTES, bytes.length - 8);
        for (let i = 1 + random(6); i > 0 && header > 0; i--) {
            const at = random(header);
            const kind = random(4);
            if (kind === 0) {
                view.setUint8(at, random(256));
            } else if (kind === 1) {
                view.setUint32(at, Number((ODD[random(ODD.length)] ?? 0n) & 0xffffffffn), true);
            } else if (kind === 2) {
                view.setBigUint64(at, ODD[random(ODD.length)] ?? 0n, true);
            } else {
                bytes.copyWithin(at, random(header), at + random(64));
            }
        }
        try {
            const loaded = await Bezel.load(new Blob([bytes]), await localOptions({ device: "cpu" }));
            try {
                await loaded.chat.completions.create({ messages: [{ role: "user", content: "hi" }], max_tokens: 1 });
            } finally {
                loaded.close();
            }
        } catch (reason) {
            if (!(reason instanceof BezelError) || /crashed/.test(reason.message)) {
                throw reason; // a trap, or a mistake of the package
            }
        }
    },
};

const calls: FuzzTarget = { name: "exports", run: async (seed) => await fuzzExports(randomFrom(seed)) };

const requests: FuzzTarget = { name: "fetch", run: async (seed) => await fuzzFetch(randomFrom(seed)) };

export const fuzzTargets = [markdown, model, calls, requests];
