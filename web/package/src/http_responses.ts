/** POST /v1/responses: an answer as a list of items (thinking, messages, calls), whole or as events. */
import type { ChatChunk, ChatRequest, ContextShift, Usage } from "./chat_types.js";
import { now, type Call } from "./http_openai.js";
import { jsonReply, readBoolean, streamReply, type Fields } from "./http_reply.js";
import { readResponsesRequest } from "./http_responses_input.js";

type Emit = (type: string, fields: object) => void;

interface Item {
    id: string;
    type: "message" | "reasoning" | "function_call";
    text: string;
    name: string;
}

const newId = (prefix: string): string => `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;

function partOf({ type }: Item, text: string): object {
    return type === "message" ? { type: "output_text", text, annotations: [], logprobs: [] } : { type: "reasoning_text", text };
}

function itemObject(item: Item, complete: boolean): object {
    const { id, type, text, name } = item;
    const status = complete ? "completed" : "in_progress";
    if (type === "function_call") {
        return { id, type, status, call_id: `call_${id.slice(3)}`, name, arguments: complete ? text : "" };
    }
    return { id, type, status, ...(type === "message" ? { role: "assistant" } : { summary: [] }), content: complete ? [partOf(item, text)] : [] };
}

/** Collects the items of an answer, and emits the events of each. */
class Output {
    readonly #emit: Emit;
    readonly items: object[] = [];
    #open: Item | null = null;

    constructor(emit: Emit) {
        this.#emit = emit;
    }

    get #index(): number {
        return this.items.length;
    }

    #begin(type: Item["type"], name = ""): Item {
        this.close();
        const prefix = type === "message" ? "msg" : type === "reasoning" ? "rs" : "fc";
        const item = { id: newId(prefix), type, text: "", name };
        this.#open = item;
        this.#emit("response.output_item.added", { output_index: this.#index, item: itemObject(item, false) });
        if (type === "message") {
            this.#emit("response.content_part.added", { ...this.#place(item), part: partOf(item, "") });
        }
        return item;
    }

    #place({ id, type }: Item): object {
        return { item_id: id, output_index: this.#index, ...(type !== "function_call" && { content_index: 0 }) };
    }

    #event(item: Item, what: "delta" | "done", text: string): void {
        const { type } = item;
        const name = type === "message" ? "output_text" : type === "reasoning" ? "reasoning_text" : "function_call_arguments";
        const key = what === "delta" ? "delta" : type === "function_call" ? "arguments" : "text";
        this.#emit(`response.${name}.${what}`, { ...this.#place(item), [key]: text, ...(type === "message" && { logprobs: [] }) });
    }

    #add(item: Item, text: string): void {
        item.text += text;
        this.#event(item, "delta", text);
    }

    text(type: "message" | "reasoning", text: string): void {
        this.#add(this.#open?.type === type ? this.#open : this.#begin(type), text);
    }

    /** The name comes first, then the arguments. */
    call(name: string | undefined, text: string): void {
        const item = name !== undefined ? this.#begin("function_call", name) : this.#open;
        if (item && text !== "") {
            this.#add(item, text);
        }
    }

    close(): void {
        const item = this.#open;
        if (!item) {
            return;
        }
        this.#event(item, "done", item.text);
        if (item.type === "message") {
            this.#emit("response.content_part.done", { ...this.#place(item), part: partOf(item, item.text) });
        }
        const done = itemObject(item, true);
        this.#emit("response.output_item.done", { output_index: this.#index, item: done });
        this.items.push(done);
        this.#open = null;
    }
}

function usageObject({ prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details }: Usage): object {
    return {
        input_tokens: prompt_tokens,
        input_tokens_details: { cached_tokens: prompt_tokens_details.cached_tokens, cache_write_tokens: 0 },
        output_tokens: completion_tokens,
        output_tokens_details: { reasoning_tokens: completion_tokens_details.reasoning_tokens },
        total_tokens,
    };
}

/** One answer, from its chunks. */
class ResponseWriter {
    readonly #frame: object;
    readonly #tools: unknown;
    readonly #output: Output;
    readonly #emit: Emit;
    #usage: Usage | null = null;
    #cut = false;
    #shift: ContextShift | null = null;

    constructor(model: string, { tools }: Fields, emit: Emit) {
        this.#frame = { id: newId("resp"), object: "response", created_at: now(), model };
        this.#tools = tools ?? [];
        this.#emit = emit;
        this.#output = new Output(emit);
    }

    #object(complete: boolean): object {
        return {
            ...this.#frame,
            status: !complete ? "in_progress" : this.#cut ? "incomplete" : "completed",
            error: null,
            incomplete_details: complete && this.#cut ? { reason: "max_output_tokens" } : null,
            output: [...this.#output.items],
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: this.#tools,
            ...(complete && this.#usage && { usage: usageObject(this.#usage) }),
            ...(this.#shift && { context_shift: this.#shift }),
        };
    }

    begin(): void {
        this.#emit("response.created", { response: this.#object(false) });
        this.#emit("response.in_progress", { response: this.#object(false) });
    }

    add({ choices: [choice], usage, context_shift }: ChatChunk): void {
        this.#usage = usage ?? this.#usage;
        this.#shift = context_shift ?? this.#shift;
        const { content, reasoning_content: thinking, tool_calls: calls = [] } = choice?.delta ?? {};
        if (thinking) {
            this.#output.text("reasoning", thinking);
        }
        if (content) {
            this.#output.text("message", content);
        }
        calls.forEach(({ function: { name, arguments: text = "" } }) => this.#output.call(name, text));
        this.#cut ||= choice?.finish_reason === "length";
    }

    end(): object {
        this.#output.close();
        const response = this.#object(true);
        this.#emit(this.#cut ? "response.incomplete" : "response.completed", { response });
        return response;
    }
}

export async function responses({ model, body, signal, cancel }: Call): Promise<Response> {
    const stream = readBoolean(body, "stream", false);
    const request = { ...readResponsesRequest(body), stream: true } as unknown as ChatRequest & { stream: true };
    const queue: string[] = [];
    let sequence = 0;
    const emit: Emit = (type, fields) => {
        if (stream) {
            queue.push(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}\n\n`);
        }
    };
    const chunks = await model.chat.completions.create(request, { signal });
    const writer = new ResponseWriter(model.name, body, emit);
    writer.begin();
    if (!stream) {
        for await (const chunk of chunks) {
            writer.add(chunk);
        }
        return jsonReply(writer.end());
    }
    async function* events(): AsyncGenerator<string> {
        for await (const chunk of chunks) {
            writer.add(chunk);
            yield queue.splice(0).join("");
        }
        writer.end();
        yield queue.splice(0).join("");
    }
    return streamReply("openai", events(), signal, cancel);
}
