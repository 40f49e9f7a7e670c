/** Answers a chat request on a session. C renders the prompt, samples the tokens and parses the answer; this file
 * wraps its parts in OpenAI's chunks. */
import type {
    ChatChunk,
    ChatCompletion,
    ChatRequest,
    ContextShift,
    Delta,
    FinishReason,
    LogProbs,
    MediaProgress,
    Timings,
    TokenLogProb,
    ToolCall,
    TopLogProb,
    Usage,
} from "./chat_types.js";
import type { MediaKind } from "./encoder.js";
import { BezelError } from "./errors.js";
import type { MediaEncoder } from "./media_encoder.js";
import type { PortableMedia } from "./request_media.js";
import type { Model } from "./model.js";
import type { Canvas, Finish, Token, TokenProb } from "./options.js";
import type { Session } from "./session.js";
import type { Part, Turn } from "./turn.js";

const ARGUMENTS = ',"arguments":';

/** Random letters and digits for an id. */
function randomId(): string {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => (byte % 36).toString(36)).join("");
}

function randomSeed(): number {
    const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
    return (high % 0x200000) * 0x100000000 + low;
}

/** The arguments of {"name":...,"arguments":...} verbatim: parsing would round large numbers. */
function argumentsOf(call: string): string {
    const at = call.indexOf(ARGUMENTS); // cannot occur in the name: quotes there are escaped
    return call.slice(at + ARGUMENTS.length, -1);
}

function perSecond(n: number, ms: number): number {
    return ms > 0 ? (1000 * n) / ms : 0;
}

/** Turns the parts of one answer into deltas. */
class Deltas {
    calls = 0;
    #open = false;

    of(part: Part): Delta | null {
        switch (part.kind) {
            case "thinking":
                return { reasoning_content: part.text };
            case "answer":
                return { content: part.text };
            case "callBegin":
                return this.#begin(part.text);
            case "call": {
                const opened = this.#open ? null : this.#begin((JSON.parse(part.text) as { name: string }).name);
                return this.#end(opened, argumentsOf(part.text));
            }
            case "brokenCall":
                // After callBegin, the text that the model wrote as arguments; not valid JSON, which OpenAI's API allows.
                return this.#open ? this.#end(null, part.text) : { content: part.text };
            default:
                return null;
        }
    }

    #begin(name: string): Delta {
        this.#open = true;
        return {
            tool_calls: [{ index: this.calls++, id: `call_${randomId()}`, type: "function", function: { name, arguments: "" } }],
        };
    }

    #end(opened: Delta | null, text: string): Delta {
        this.#open = false;
        const call = opened?.tool_calls?.[0];
        return {
            tool_calls: [
                call ? { ...call, function: { ...call.function, arguments: text } } : { index: this.calls - 1, function: { arguments: text } },
            ],
        };
    }
}

function finishReason(finish: Finish, calls: number): FinishReason {
    return finish === "length" || finish === "context" ? "length" : calls > 0 ? "tool_calls" : "stop"; // cut off, a call is not one
}

/** Sends the chunks of one answer. */
class Answer {
    readonly #model: Model;
    readonly #request: ChatRequest;
    readonly #send: (chunk: ChatChunk) => void;
    readonly #frame: Pick<ChatChunk, "id" | "object" | "created" | "model">;
    readonly #deltas = new Deltas();
    readonly #decoder = new TextDecoder();
    /** Log-probabilities for the next delta. */
    #logProbs: TokenLogProb[] = [];
    ended = false;
    thinkingTokens = 0;

    constructor(model: Model, name: string, request: ChatRequest, send: (chunk: ChatChunk) => void) {
        this.#model = model;
        this.#request = request;
        this.#send = send;
        this.#frame = {
            id: `chatcmpl-${randomId()}`,
            object: "chat.completion.chunk",
            created: Math.floor(Date.now() / 1000),
            model: request.model ?? name,
        };
    }

    delta(delta: Delta, finish_reason: FinishReason | null = null): void {
        const logprobs: LogProbs | null = this.#logProbs.length ? { content: this.#logProbs, refusal: null } : null;
        this.#logProbs = [];
        this.#send({ ...this.#frame, choices: [{ index: 0, delta, logprobs, finish_reason }] });
    }

    parts(parts: Part[]): void {
        for (const part of parts) {
            const delta = this.#deltas.of(part);
            if (delta) {
                this.delta(delta);
            }
            this.ended ||= part.kind === "end";
        }
    }

    token(token: Token, turn: Turn): void {
        if (this.#request.logprobs && !this.#model.endsAnswer(token.token)) {
            this.#logProbs.push({ ...this.#named(token), top_logprobs: token.top.map((top) => this.#named(top)) });
        }
        const parts = turn.push(token.token);
        this.thinkingTokens += Number(parts.some(({ kind }) => kind === "thinking"));
        this.parts(parts);
    }

    #named({ token, logProb }: TokenProb): TopLogProb {
        const bytes = this.#model.pieceOf(token);
        return { token: this.#decoder.decode(bytes), logprob: logProb, bytes: [...bytes] };
    }

    /** A diffusion model's canvas; its tokens are not final yet. */
    canvas(canvas: Canvas): void {
        this.#send({ ...this.#frame, choices: [], canvas });
    }

    /** Encoding progress of an image, a sound or a video, before the answer. */
    media(media: MediaProgress): void {
        this.#send({ ...this.#frame, choices: [], media });
    }

    /** The oldest messages that the model does not see. */
    shift(left_out: number): void {
        this.#send({ ...this.#frame, choices: [], context_shift: { left_out } });
    }

    notice(notice: string): void {
        this.#send({ ...this.#frame, choices: [], notice });
    }

    finish(finish: Finish, usage: Usage, timings: Timings): void {
        this.delta({}, finishReason(finish, this.#deltas.calls));
        this.#send({ ...this.#frame, choices: [], usage, timings });
    }
}

/** What encoding a request's media took. */
interface MediaCost {
    encoded: number;
    /** Tokens of each, by source. */
    rows: Map<string, number>;
    ms: number;
}

const kindNames: Record<MediaKind, string> = { image: "image", audio: "sound", video: "video" };

/** Encodes the request's media and attaches them to the turn. */
async function attachAll(turn: Turn, given: PortableMedia[], encoder: MediaEncoder, answer: Answer, signal: AbortSignal | undefined): Promise<MediaCost> {
    const began = performance.now();
    const before = encoder.stats.encoded;
    const cost: MediaCost = { encoded: 0, rows: new Map(), ms: 0 };
    const all = turn.media;
    const count = all.length;
    encoder.check(all.map(({ kind }) => kind));
    for (const [index, { kind, source }] of all.entries()) {
        const item = given[Number(source)];
        if (item?.kind !== kind) {
            throw new BezelError("bad_request", `The conversation's ${kindNames[kind]} ${index + 1} is missing from the request.`);
        }
        const media = await encoder.encode(item, {
            signal,
            onProgress: (done, total) => answer.media({ kind, index, count, done, total }),
            onNotice: (text) => answer.notice(text),
        });
        try {
            turn.attach(index, media);
            cost.rows.set(source, media.rows);
        } finally {
            media.free();
        }
    }
    cost.encoded = encoder.stats.encoded - before;
    cost.ms = performance.now() - began;
    return cost;
}

/** What a request is answered with. */
export interface ChatContext {
    model: Model;
    session: Session;
    encoder: MediaEncoder;
    /** Of the model. */
    name: string;
}

/** Answers on the session, which then holds the conversation: a request that continues it computes only its new
 * tokens. */
export async function answerChat(
    { model, session, encoder, name }: ChatContext,
    request: ChatRequest,
    media: PortableMedia[],
    signal: AbortSignal | undefined,
    send: (chunk: ChatChunk) => void,
): Promise<void> {
    const turn = model.newTurn(request);
    try {
        const answer = new Answer(model, name, request, send);
        const cost = await attachAll(turn, media, encoder, answer, signal);
        const leftOut = turn.fit(session);
        if (leftOut > 0) {
            answer.shift(leftOut);
        }
        const tokensOf = (kind: MediaKind): number =>
            turn.media.reduce((sum, one) => sum + (one.kind === kind ? cost.rows.get(one.source) ?? 0 : 0), 0);
        const started = performance.now();
        const before = session.stats;
        await session.prefillTurn(turn, signal ? { signal } : {});
        const read = performance.now();
        const cached = session.stats.reused - before.reused;
        let generated = 0;
        const control = { ...(signal && { signal }), onCanvas: (canvas: Canvas) => answer.canvas(canvas) };
        const tokens = session.answer(turn, randomSeed(), control);
        answer.delta({ role: "assistant", content: "" });
        for await (const token of tokens) {
            generated++;
            answer.token(token, turn);
            if (answer.ended) {
                break; // a stop string, which the turn detects and the session does not
            }
        }
        if (!answer.ended) {
            answer.parts(turn.push(-1));
        }
        const ended = performance.now();
        const prompt = turn.prompt.length;
        const after = session.stats;
        const drafted = after.drafted - before.drafted;
        const accepted = after.accepted - before.accepted;
        answer.finish(
            turn.finish(session.finish),
            {
                prompt_tokens: prompt,
                completion_tokens: generated,
                total_tokens: prompt + generated,
                prompt_tokens_details: { cached_tokens: cached, image_tokens: tokensOf("image"), audio_tokens: tokensOf("audio"), video_tokens: tokensOf("video") },
                completion_tokens_details: {
                    reasoning_tokens: answer.thinkingTokens,
                    ...(drafted > 0 && { accepted_prediction_tokens: accepted, rejected_prediction_tokens: drafted - accepted }),
                },
            },
            {
                cache_n: cached,
                prompt_n: prompt - cached,
                prompt_ms: read - started,
                prompt_per_second: perSecond(prompt - cached, read - started),
                media_n: cost.encoded,
                media_ms: cost.ms,
                predicted_n: generated,
                predicted_ms: ended - read,
                predicted_per_second: perSecond(generated, ended - read),
                ...(drafted > 0 && { draft_n: drafted, draft_n_accepted: accepted }),
            },
        );
    } finally {
        turn.free();
    }
}

/** Collects the chunks of one answer. */
export class Collector {
    #first: ChatChunk | null = null;
    #content = "";
    #reasoning = "";
    readonly #calls: ToolCall[] = [];
    readonly #logProbs: TokenLogProb[] = [];
    #finish: FinishReason = "stop";
    #last: ChatChunk | null = null;
    readonly #notices: string[] = [];
    #shift: ContextShift | undefined;

    add(chunk: ChatChunk): void {
        this.#first ??= chunk;
        this.#last = chunk;
        this.#shift ??= chunk.context_shift;
        this.#notices.push(...(chunk.notice === undefined ? [] : [chunk.notice]));
        for (const { delta, logprobs, finish_reason } of chunk.choices) {
            this.#content += delta.content ?? "";
            this.#reasoning += delta.reasoning_content ?? "";
            this.#logProbs.push(...(logprobs?.content ?? []));
            this.#finish = finish_reason ?? this.#finish;
            for (const { index, id, function: part } of delta.tool_calls ?? []) {
                const call = (this.#calls[index] ??= { id: id ?? "", type: "function", function: { name: "", arguments: "" } });
                call.function.name += part.name ?? "";
                call.function.arguments += part.arguments ?? "";
            }
        }
    }

    /** The complete answer; call it after the last chunk. */
    whole(request: ChatRequest): ChatCompletion {
        const { id, created, model } = this.#first as ChatChunk;
        const { usage, timings } = this.#last as ChatChunk;
        return {
            id,
            object: "chat.completion",
            created,
            model,
            choices: [
                {
                    index: 0,
                    message: {
                        role: "assistant",
                        content: this.#content || !this.#calls.length ? this.#content : null,
                        refusal: null,
                        ...(this.#reasoning && { reasoning_content: this.#reasoning }),
                        ...(this.#calls.length && { tool_calls: this.#calls }),
                    },
                    logprobs: request.logprobs ? { content: this.#logProbs, refusal: null } : null,
                    finish_reason: this.#finish,
                },
            ],
            ...(this.#shift && { context_shift: this.#shift }),
            ...(this.#notices.length && { notices: this.#notices }),
            usage: usage as Usage,
            timings: timings as Timings,
        };
    }
}
