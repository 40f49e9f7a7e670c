/** A full context: the oldest turns are left out of the request, and the user is told. The turns themselves stay in the
 * conversation. No DOM here. */
import { tokensOf } from "./pace.js";
import type { Message } from "./store.js";

/** Share of the context that is left after turns were dropped, so that this does not happen with every message. */
const KEPT = 0.6;
/** Tokens that an answer should at least have room for. */
const RESERVE = 192;

/** Where the last answer of a branch began to see it. */
function lastStart(path: Message[]): number {
    const from = path.findLast((message) => message.from !== undefined)?.from;
    return Math.max(0, path.findIndex(({ id }) => id === from));
}

/** Begins of turns after `from`: a turn is a question and what follows it. */
function laterTurns(path: Message[], from: number): number[] {
    return path.flatMap(({ role }, i) => (role === "user" && i > from ? [i] : []));
}

/** Drops whole turns until about `tokens` remain, at least one turn; null: only one is left. */
export function dropTurns(path: Message[], from: number, tokens: number): number | null {
    const turns = laterTurns(path, from);
    // The engine's counts include what is dropped now, so only estimates are of use here.
    const size = (start: number): number => tokensOf(path.slice(start).map((message) => ({ ...message, figures: null })));
    return turns.find((start) => size(start) <= tokens) ?? turns.at(-1) ?? null;
}

/** The first message to send, before anything is known from the engine. */
export function firstMessage(path: Message[], contextLength: number): number {
    const from = lastStart(path);
    if (contextLength <= 0 || tokensOf(path.slice(from)) + Math.min(RESERVE, contextLength / 8) <= contextLength) {
        return from;
    }
    return dropTurns(path, from, KEPT * contextLength) ?? from;
}

/** The first message to send after the engine has said that the context is full, for the nth time; null: nothing can
 * be left out. */
export function nextMessage(path: Message[], from: number, contextLength: number, attempt: number): number | null {
    return dropTurns(path, from, KEPT ** attempt * contextLength);
}

export function shiftNotice(dropped: number, contextLength: number): string {
    return `The context of ${contextLength.toLocaleString("en")} tokens is full: the oldest ${dropped === 1 ? "message is" : `${dropped} messages are`} no longer sent to the model.`;
}
