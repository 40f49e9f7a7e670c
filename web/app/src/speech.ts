/** Reading answers aloud with the browser's own voices. Only voices of this machine are used: others would send the
 * text to a server. */
import { parseBlocks, type Block, type Inline } from "./markdown.js";

const inlineText = (nodes: Inline[]): string =>
    nodes.map((node) => ("children" in node ? inlineText(node.children) : node.kind === "text" || node.kind === "code" || node.kind === "math" ? node.text : " ")).join("");

/** A block as sentences to read; code is named, not read. */
function spoken(block: Block): string {
    switch (block.kind) {
        case "heading":
        case "paragraph":
        case "footnote":
            return inlineText(block.children);
        case "list":
            return block.items.flatMap(({ children }) => children.map(spoken)).join(".\n");
        case "quote":
            return block.children.map(spoken).join("\n");
        case "table":
            return [block.head, ...block.rows].map((row) => row.map(inlineText).join(", ")).join(".\n");
        case "math":
            return block.text;
        case "code":
            return "Code.";
        case "rule":
            return "";
    }
}

/** The voice for the text's language: that of the page, unless the letters say otherwise. */
function voiceFor(text: string): SpeechSynthesisVoice | null {
    const voices = speechSynthesis.getVoices().filter(({ localService }) => localService);
    const scripts: [RegExp, string][] = [[/[\u3040-\u30ff]/, "ja"], [/[\uac00-\ud7af]/, "ko"], [/[\u4e00-\u9fff]/, "zh"], [/[\u0400-\u04ff]/, "ru"], [/[\u0600-\u06ff]/, "ar"], [/[\u0900-\u097f]/, "hi"]];
    const language = scripts.find(([letters]) => letters.test(text))?.[1] ?? navigator.language.slice(0, 2);
    return voices.find(({ lang }) => lang.startsWith(language)) ?? voices.find((voice) => voice.default) ?? voices[0] ?? null;
}

export class Speech {
    /** Id of the message that is read; null: none. */
    #reading: string | null = null;
    /** Called when reading begins or ends. */
    onChange: () => void = () => undefined;

    constructor() {
        if (this.#synthesis) {
            speechSynthesis.addEventListener("voiceschanged", () => this.onChange());
            addEventListener("pagehide", () => this.stop());
        }
    }

    get #synthesis(): boolean {
        return "speechSynthesis" in globalThis;
    }

    /** Whether the browser has a voice that needs no server. */
    get available(): boolean {
        return this.#synthesis && speechSynthesis.getVoices().some(({ localService }) => localService);
    }

    get reading(): string | null {
        return this.#reading;
    }

    stop(): void {
        this.#reading = null;
        if (this.#synthesis) {
            speechSynthesis.cancel();
        }
        this.onChange();
    }

    /** Reads an answer block by block, as browsers cut long texts. */
    read(id: string, markdown: string): void {
        this.stop();
        const parts = parseBlocks(markdown).map(spoken).filter((text) => text.trim() !== "");
        const voice = voiceFor(markdown);
        this.#reading = id;
        parts.forEach((text, i) => {
            const utterance = new SpeechSynthesisUtterance(text);
            utterance.voice = voice;
            utterance.lang = voice?.lang ?? "";
            if (i === parts.length - 1) {
                utterance.onend = () => this.#reading === id && this.stop();
            }
            utterance.onerror = () => this.#reading === id && this.stop();
            speechSynthesis.speak(utterance);
        });
        this.onChange();
    }
}
