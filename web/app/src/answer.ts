/** Writes one answer: requests it, applies its chunks, runs the tools that it calls, and leaves out the oldest turns when
 * the context is full. No DOM here. */
import { buildRequest, omittedNotice } from "./answer_request.js";
import { BezelError, type AppliedLora, type BezelModel, type ChatChunk, type ToolCallDelta } from "./bezel.js";
import { firstMessage, nextMessage, shiftNotice } from "./context_shift.js";
import { PaceMeter, tokensOf } from "./pace.js";
import type { Conversation, MediaItem, Message, Settings, ToolUse } from "./store.js";
import type { ToolBox } from "./toolbox.js";

/** Rounds of calls in one answer. */
const MAX_ROUNDS = 8;
/** Calls in one round; further ones are refused. */
const MAX_CALLS = 8;
/** How often turns are left out for one answer. */
const MAX_SHIFTS = 4;

export interface AnswerTask {
    conversation: Conversation;
    settings: Settings;
    model: BezelModel;
    modelName: string;
    /** Adapters of the model. */
    loras: AppliedLora[];
    /** Up to the answer, which is last. */
    path: Message[];
    /** It has a text that is continued. */
    resume: boolean;
    tools: ToolBox;
    signal: AbortSignal;
    /** Called after every change of the answer. */
    changed: () => void;
}

/** Rejects with "aborted" as soon as the signal fires, even if the promise takes longer to settle. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
    let abort = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
        abort = () => reject(new BezelError("aborted", "Stopped on request."));
        signal.addEventListener("abort", abort);
    });
    try {
        if (signal.aborted) {
            abort();
        }
        return await Promise.race([promise, aborted]);
    } finally {
        signal.removeEventListener("abort", abort);
        promise.catch(() => undefined);
    }
}

/** Why a request ended. */
type Ending = "done" | "calls" | "length" | "context";

class AnswerWriter {
    readonly #task: AnswerTask;
    readonly #message: Message;
    /** Index of the first message that the model sees. */
    #from: number;
    #shifts = 0;
    /** What the user was told about left out turns. */
    #shiftNotice = "";
    #resume: boolean;
    #calls: ToolUse[] = [];
    #pace: PaceMeter;

    constructor(task: AnswerTask, message: Message) {
        this.#task = task;
        this.#message = message;
        this.#resume = task.resume;
        const before = task.path.slice(0, -1);
        this.#from = firstMessage(before, this.#contextLength);
        this.#pace = this.#newPace();
        const earlier = before.slice(this.#from, before.findLastIndex(({ role }) => role === "user"));
        const omitted = omittedNotice(earlier, this.#takes, task.modelName);
        this.#tell(omitted === null ? [] : [omitted]);
        this.#markStart();
    }

    get #contextLength(): number {
        return this.#task.model.info.contextLength;
    }

    /** Tools that are on for this question only. */
    get #questionTools(): string[] {
        return this.#task.path.findLast(({ role }) => role === "user")?.tools ?? [];
    }

    readonly #takes = ({ kind }: MediaItem): boolean => {
        const { vision, audio, video } = this.#task.model.info;
        return { image: vision, audio, video }[kind];
    };

    #newPace(): PaceMeter {
        const { path } = this.#task;
        return new PaceMeter(tokensOf(path.slice(this.#from)), this.#contextLength);
    }

    #tell(notices: string[]): void {
        const { notices: told = [] } = this.#message;
        const added = notices.filter((notice) => !told.includes(notice));
        if (added.length > 0) {
            this.#message.notices = [...told, ...added];
        }
    }

    /** Records where the model begins to see the conversation, and tells the user if that has moved. */
    #markStart(): void {
        const { path } = this.#task;
        const first = path[this.#from];
        const before = path.slice(0, -1).findLast(({ from }) => from !== undefined)?.from;
        if (this.#from > 0 && first) {
            if (first.id !== before && first.id !== this.#message.from) {
                const notice = shiftNotice(this.#from, this.#contextLength);
                this.#message.notices = (this.#message.notices ?? []).filter((one) => one !== this.#shiftNotice);
                this.#shiftNotice = notice;
                this.#tell([notice]);
            }
            this.#message.from = first.id;
        }
    }

    async write(): Promise<void> {
        for (let round = 0; ; ) {
            const offered = round < MAX_ROUNDS ? this.#task.tools.definitions(this.#questionTools) : [];
            const ending = await this.#request(offered);
            if (ending === "context" && this.#canResume() && this.#shift()) {
                this.#message.note = null;
                this.#resume = true;
                continue;
            }
            if (ending !== "calls") {
                return;
            }
            if (round++ >= MAX_ROUNDS) {
                this.#tell([`The model called tools ${MAX_ROUNDS} times in a row and was stopped.`]);
                return;
            }
            await this.#runCalls();
            this.#resume = false;
        }
    }

    /** The cut answer is not most of the context itself. */
    #canResume(): boolean {
        const { content } = this.#message;
        return content.trim() !== "" && tokensOf([{ ...this.#message, figures: null }]) < this.#contextLength / 2;
    }

    /** Leaves out more of the oldest turns; false: nothing can be left out. */
    #shift(): boolean {
        const before = this.#task.path.slice(0, -1);
        this.#shifts++;
        // The last attempt leaves the question alone: the estimates were far off.
        const length = this.#shifts < MAX_SHIFTS ? this.#contextLength : 0;
        const from = this.#shifts <= MAX_SHIFTS ? nextMessage(before, this.#from, length, this.#shifts) : null;
        if (from === null) {
            return false;
        }
        this.#from = from;
        this.#markStart();
        this.#pace = this.#newPace();
        return true;
    }

    async #request(tools: ReturnType<ToolBox["definitions"]>): Promise<Ending> {
        const { conversation, settings, path, model, loras, signal, changed } = this.#task;
        for (;;) {
            const request = buildRequest({ conversation, settings, messages: path.slice(this.#from), takes: this.#takes, tools, contextLength: this.#contextLength, resume: this.#resume });
            const length = this.#message.content.length + this.#message.thinking.length;
            try {
                let ending: Ending = "done";
                const stream = await unlessAborted(model.chat.completions.create(request, { signal, loras }), signal);
                for (;;) {
                    const { value: chunk, done } = await unlessAborted(stream.next(), signal);
                    if (done) {
                        return this.#calls.length > 0 ? "calls" : ending;
                    }
                    ending = this.#apply(chunk, ending);
                    changed();
                }
            } catch (reason) {
                const written = this.#message.content.length + this.#message.thinking.length > length;
                if (!(reason instanceof BezelError) || reason.code !== "context_full" || written || !this.#shift()) {
                    throw reason;
                }
                changed();
            }
        }
    }

    #apply({ choices, canvas, media, notice, usage, timings }: ChatChunk, ending: Ending): Ending {
        const message = this.#message;
        const choice = choices[0];
        message.encoding = media && { ...media, fraction: media.total > 0 ? media.done / media.total : 0 };
        this.#tell(notice === undefined ? [] : [notice]);
        message.canvas = canvas && { text: canvas.text, fraction: canvas.step / canvas.steps };
        const { content = "", reasoning_content: thinking = "", tool_calls: calls = [] } = choice?.delta ?? {};
        message.content += content;
        message.thinking += thinking;
        calls.forEach((call) => this.#addCall(call));
        if (content || thinking) {
            message.pace = this.#pace.add();
        }
        if (choice?.finish_reason === "length") {
            message.note = "length";
            ending = "length";
        }
        if (usage) {
            message.figures = {
                promptTokens: usage.prompt_tokens,
                answerTokens: usage.completion_tokens,
                tokensPerSecond: timings?.predicted_per_second ?? 0,
                promptPerSecond: timings?.prompt_per_second ?? 0,
                ...(timings?.draft_n && { drafted: timings.draft_n, accepted: timings.draft_n_accepted ?? 0 }),
            };
            if (ending === "length" && usage.total_tokens >= this.#contextLength) {
                message.note = "context";
                ending = "context";
            }
        }
        return ending;
    }

    // ---- tools ----------------------------------------------------------------------------------

    #addCall({ index, id, function: { name, arguments: text = "" } }: ToolCallDelta): void {
        const call = this.#calls[index];
        if (call) {
            call.arguments += text;
        } else {
            this.#calls[index] = { id: id ?? `call_${index}`, name: name ?? "", arguments: text, result: "", state: "running" };
        }
    }

    /** Runs the calls of a round one after the other; their results belong to the answer from now on. */
    async #runCalls(): Promise<void> {
        const message = this.#message;
        const { tools, signal, changed } = this.#task;
        const calls = this.#calls;
        this.#calls = [];
        message.steps = [...(message.steps ?? []), { content: message.content, thinking: message.thinking, calls }];
        message.content = "";
        message.thinking = "";
        changed();
        for (const [i, call] of calls.entries()) {
            try {
                if (i >= MAX_CALLS) {
                    throw new Error(`At most ${MAX_CALLS} calls are allowed at once.`);
                }
                call.result = await unlessAborted(tools.run(call.name, call.arguments, signal, this.#questionTools), signal);
                call.state = "done";
            } catch (reason) {
                if (signal.aborted) {
                    calls.filter(({ state }) => state === "running").forEach((one) => (one.state = "stopped"));
                    throw reason;
                }
                call.result = `Error: ${reason instanceof Error ? reason.message : String(reason)}`;
                call.state = "failed";
            }
            changed();
        }
    }
}

/** Resolves when the answer has ended; rejects if it failed or was stopped. */
export async function writeAnswer(task: AnswerTask): Promise<void> {
    const message = task.path.at(-1);
    if (message) {
        await new AnswerWriter(task, message).write();
    }
}
