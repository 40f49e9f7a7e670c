/** Measures an answer while it is written: its speed, and how full the context is. The engine counts exactly when the
 * answer ends; until then, a piece of text counts as a token, which it nearly always is. */
import type { Message, Pace } from "./store.js";

/** The speed is that of the last pieces, as it falls while a conversation grows. */
const WINDOW = 64;
/** Text without known counts: characters per token, and tokens of one image, of a second of sound, and of a video. */
const CHARACTERS = 3.5;
const IMAGE_TOKENS = 280;
const SOUND_TOKENS = 25;
const VIDEO_TOKENS = 32 * 74;
/** Tokens around a message. */
const FRAME_TOKENS = 6;

/** About how many tokens a message takes in a prompt. */
export function estimateTokens({ content, media = [], steps = [] }: Message): number {
    const ofMedia = media.reduce((sum, { kind, seconds }) => sum + (kind === "image" ? IMAGE_TOKENS : kind === "video" ? VIDEO_TOKENS : SOUND_TOKENS * (seconds ?? 10)), 0);
    const ofSteps = steps.reduce((sum, step) => sum + step.content.length + step.calls.reduce((all, call) => all + call.arguments.length + call.result.length + 40, 0), 0);
    return FRAME_TOKENS + Math.ceil((content.length + ofSteps) / CHARACTERS + ofMedia);
}

/** Tokens of a conversation: the engine's count at its last finished answer, and estimates for what came after. */
export function tokensOf(messages: Message[]): number {
    const known = messages.findLastIndex(({ figures }) => figures !== null);
    const counted = messages[known]?.figures;
    const start = counted ? counted.promptTokens + counted.answerTokens : 0;
    return messages.slice(known + 1).reduce((sum, message) => sum + estimateTokens(message), start);
}

export class PaceMeter {
    readonly #prompt: number;
    readonly #contextLength: number;
    readonly #times: number[] = [];
    #tokens = 0;

    constructor(promptTokens: number, contextLength: number) {
        this.#prompt = promptTokens;
        this.#contextLength = contextLength;
    }

    /** Counts a piece of text. */
    add(now = performance.now()): Pace {
        this.#tokens++;
        this.#times.push(now);
        if (this.#times.length > WINDOW) {
            this.#times.shift();
        }
        const [first = now] = this.#times;
        const seconds = (now - first) / 1000;
        return {
            tokens: this.#tokens,
            tokensPerSecond: seconds > 0 ? (this.#times.length - 1) / seconds : 0,
            context: this.#contextLength > 0 ? Math.min(1, (this.#prompt + this.#tokens) / this.#contextLength) : 0,
        };
    }
}
