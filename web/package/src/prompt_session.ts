/** Conversations in the shape of the Prompt API that browsers with a model of their own have (LanguageModel). */
import type { BezelModel } from "./bezel.js";
import type { AudioSource, ChatRequest, ContentPart, ImageSource, Message } from "./chat_types.js";
import { BezelError } from "./errors.js";
import type { RunnableTool } from "./run_tools.js";

export interface PromptPart {
    type: "text" | "image" | "audio";
    value: string | ImageSource | AudioSource;
}

export interface PromptMessage {
    role: "system" | "user" | "assistant";
    content: string | PromptPart[];
    /** Of the last message, the assistant's: the answer continues it. */
    prefix?: boolean;
}

export type PromptInput = string | PromptMessage[];

export interface PromptTool {
    name: string;
    description?: string;
    inputSchema?: object;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    execute: (args: any) => unknown;
}

export interface PromptSessionOptions {
    initialPrompts?: PromptMessage[];
    temperature?: number;
    topK?: number;
    tools?: PromptTool[];
    signal?: AbortSignal;
}

export interface PromptOptions {
    signal?: AbortSignal;
    /** A JSON schema, or a regular expression for the whole answer. */
    responseConstraint?: object | RegExp;
    /** Taken, without effect: the constraint is never put into the prompt. */
    omitResponseConstraintInput?: boolean;
}

function contentOf(content: PromptMessage["content"]): string | ContentPart[] {
    return typeof content === "string"
        ? content
        : content.map(({ type, value }): ContentPart => {
              switch (type) {
                  case "text":
                      return { type, text: String(value) };
                  case "image":
                      return { type: "image_url", image_url: { url: value as ImageSource } };
                  case "audio":
                      return { type: "input_audio", input_audio: { data: value as AudioSource } };
                  default:
                      throw new BezelError("bad_request", `A prompt has a part of type '${String(type)}'; it must be text, image or audio.`);
              }
          });
}

function messagesOf(input: PromptInput): Message[] {
    return typeof input === "string" ? [{ role: "user", content: input }] : input.map(({ role, content }) => ({ role, content: contentOf(content) }) as Message);
}

function formOf(constraint: object | RegExp | undefined): Partial<ChatRequest> {
    if (constraint instanceof RegExp) {
        return { regex: constraint.source };
    }
    return constraint ? { response_format: { type: "json_schema", json_schema: { schema: constraint } } } : {};
}

/** A conversation that remembers what was said. Prompts of one session wait for each other. */
export class PromptSession extends EventTarget {
    readonly #model: BezelModel;
    readonly #options: PromptSessionOptions;
    #messages: Message[];
    #usage = 0;
    readonly #destroyed = new AbortController();
    /** Resolves when all prompts so far have ended. */
    #queue: Promise<unknown> = Promise.resolve();

    constructor(model: BezelModel, options: PromptSessionOptions = {}, messages: Message[] = messagesOf(options.initialPrompts ?? [])) {
        super();
        this.#model = model;
        this.#options = options;
        this.#messages = messages;
        options.signal?.addEventListener("abort", () => this.destroy());
    }

    /** Tokens of the conversation, as of the last answer. */
    get contextUsage(): number {
        return this.#usage;
    }

    get contextWindow(): number {
        return this.#model.contextLength;
    }

    /** The same under the names that they had first. */
    get inputUsage(): number {
        return this.contextUsage;
    }

    get inputQuota(): number {
        return this.contextWindow;
    }

    /** Tokens of a text, without those around it. */
    async measureContextUsage(input: PromptInput): Promise<number> {
        const texts = messagesOf(input).flatMap(({ content }) => (typeof content === "string" ? [content] : (content ?? []).map((part) => ("text" in part ? part.text : null))));
        if (texts.includes(null)) {
            throw new BezelError("bad_request", "Only texts can be measured: images and sounds have to be encoded for that.");
        }
        return (await this.#model.tokenize(texts.join("\n"))).length;
    }

    measureInputUsage(input: PromptInput): Promise<number> {
        return this.measureContextUsage(input);
    }

    /** Adds to the conversation without an answer. */
    append(input: PromptInput): Promise<void> {
        return this.#enqueue(() => {
            this.#messages = [...this.#messages, ...messagesOf(input)];
            return Promise.resolve();
        });
    }

    async prompt(input: PromptInput, options: PromptOptions = {}): Promise<string> {
        let answer = "";
        await this.#answer(input, options, (text) => (answer += text));
        return answer;
    }

    /** Pieces of the answer. Cancelling the stream stops it. */
    promptStreaming(input: PromptInput, options: PromptOptions = {}): ReadableStream<string> {
        const left = new AbortController();
        const signal = options.signal ? AbortSignal.any([options.signal, left.signal]) : left.signal;
        return new ReadableStream<string>({
            start: (controller) => {
                void this.#answer(input, { ...options, signal }, (text) => controller.enqueue(text)).then(
                    () => controller.close(),
                    (reason: unknown) => left.signal.aborted || controller.error(reason),
                );
            },
            cancel: () => left.abort(),
        });
    }

    /** Another session with the same conversation so far. */
    async clone(options: { signal?: AbortSignal } = {}): Promise<PromptSession> {
        return this.#enqueue(() => {
            const { signal: _, ...same } = this.#options;
            const copy = new PromptSession(this.#model, { ...same, ...options }, [...this.#messages]);
            copy.#usage = this.#usage;
            return Promise.resolve(copy);
        });
    }

    /** Stops what is being answered. The model stays loaded. */
    destroy(): void {
        this.#destroyed.abort();
    }

    #enqueue<T>(act: () => Promise<T>): Promise<T> {
        const result = this.#queue.then(() => {
            if (this.#destroyed.signal.aborted) {
                throw new BezelError("aborted", "The session was destroyed.");
            }
            return act();
        });
        this.#queue = result.catch(() => undefined);
        return result;
    }

    /** What was said is remembered if the answer is complete. */
    #answer(input: PromptInput, { signal, responseConstraint }: PromptOptions, onText: (text: string) => void): Promise<void> {
        return this.#enqueue(async () => {
            const { temperature, topK, tools = [] } = this.#options;
            const messages = [...this.#messages, ...messagesOf(input)];
            const prefix = typeof input !== "string" && (input.at(-1)?.prefix ?? false);
            const request: ChatRequest = {
                messages,
                ...(temperature !== undefined && { temperature }),
                ...(topK !== undefined && { top_k: topK }),
                ...formOf(responseConstraint),
                ...(prefix && { continue_final_message: true }),
            };
            const options = { signal: AbortSignal.any([this.#destroyed.signal, ...(signal ? [signal] : [])]) };
            if (tools.length > 0) {
                await this.#answerWithTools({ ...request, tools: tools.map(runnable) }, options, onText);
                return;
            }
            let answer = "";
            for await (const { choices, usage, context_shift } of await this.#model.chat.completions.create({ ...request, stream: true }, options)) {
                const piece = choices[0]?.delta.content ?? "";
                answer += piece;
                if (piece !== "") {
                    onText(piece);
                }
                this.#usage = usage?.total_tokens ?? this.#usage;
                if (context_shift) {
                    this.#overflow();
                }
            }
            const begun = prefix ? messages.pop() : undefined;
            this.#messages = [...messages, { role: "assistant", content: `${typeof begun?.content === "string" ? begun.content : ""}${answer}` }];
        });
    }

    async #answerWithTools(request: ChatRequest & { tools: RunnableTool[] }, options: { signal: AbortSignal }, onText: (text: string) => void): Promise<void> {
        const { completion, messages } = await this.#model.chat.completions.runTools(request, options);
        this.#messages = messages;
        this.#usage = completion.usage.total_tokens;
        if (completion.context_shift) {
            this.#overflow();
        }
        onText(completion.choices[0].message.content ?? "");
    }

    /** The model no longer sees the oldest turns. */
    #overflow(): void {
        this.dispatchEvent(new Event("contextoverflow"));
        this.dispatchEvent(new Event("quotaoverflow"));
    }
}

function runnable({ name, description, inputSchema, execute }: PromptTool): RunnableTool {
    return { type: "function", function: { name, function: execute, ...(description !== undefined && { description }), ...(inputSchema && { parameters: inputSchema }) } };
}

/** What browsers with a model of their own call LanguageModel, for a loaded model. */
export interface LanguageModelLike {
    availability(): Promise<"available">;
    create(options?: PromptSessionOptions): Promise<PromptSession>;
}

export function languageModel(model: BezelModel): LanguageModelLike {
    return {
        availability: () => Promise.resolve("available"),
        create: (options) => Promise.resolve(new PromptSession(model, options)),
    };
}
