/** Answers a request and runs the functions that the model calls, until it calls none. */
import type { ChatCompletion, ChatRequest, Message, Tool, ToolCall, WholeRequest } from "./chat_types.js";
import { BezelError } from "./errors.js";

const MAX_ROUNDS = 8;
/** Calls of one round; further ones are refused. */
const MAX_CALLS = 16;

/** A tool with the function that it stands for, in the form of the package `openai`. */
export interface RunnableTool {
    type: "function";
    function: Tool["function"] & {
        /** Its result is told to the model: a text as it is, anything else as JSON. What it throws is told as well. */
        // eslint-disable-next-line @typescript-eslint/no-explicit-any
        function: (args: any, context: { signal: AbortSignal | undefined }) => unknown;
        /** Reads the arguments. Default: JSON.parse. */
        parse?: (text: string) => unknown;
    };
}

export type ToolsRequest = Omit<ChatRequest, "tools" | "stream"> & {
    tools: RunnableTool[];
    /** How often calls are run; after that the model has to answer without them. Default: 8. */
    maxRounds?: number;
};

export interface ToolRun {
    /** The last answer. */
    completion: ChatCompletion;
    /** The request's messages, and all that followed: calls, results, the last answer. */
    messages: Message[];
    /** How often calls were run. */
    rounds: number;
}

async function resultOf(call: ToolCall, tools: RunnableTool[], signal: AbortSignal | undefined): Promise<string> {
    const tool = tools.find(({ function: { name } }) => name === call.function.name)?.function;
    if (!tool) {
        return `Error: there is no function ${call.function.name}.`;
    }
    try {
        const { parse = JSON.parse, function: run } = tool;
        const result: unknown = await run(parse(call.function.arguments), { signal });
        return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
    } catch (reason) {
        signal?.throwIfAborted();
        return `Error: ${reason instanceof Error ? reason.message : String(reason)}`;
    }
}

export async function runTools(
    create: (request: WholeRequest) => Promise<ChatCompletion>,
    { tools: runnable, maxRounds = MAX_ROUNDS, ...request }: ToolsRequest,
    signal: AbortSignal | undefined,
): Promise<ToolRun> {
    if (!runnable.every((tool) => typeof tool?.function?.function === "function")) {
        throw new BezelError("bad_request", "Each of the tools needs function.function, which runs it.");
    }
    const tools = runnable.map(({ function: { function: _, parse: __, ...definition } }): Tool => ({ type: "function", function: definition }));
    const messages: Message[] = [...request.messages];
    for (let rounds = 0; ; rounds++) {
        // A forced call is forced once: with it in every round the model could never answer.
        const choice = rounds >= maxRounds ? { tool_choice: "none" as const } : rounds > 0 ? { tool_choice: "auto" as const } : {};
        const completion = await create({ ...request, ...choice, messages, tools, stream: false });
        const { message, finish_reason: finish } = completion.choices[0];
        messages.push(message);
        if (finish !== "tool_calls" || rounds >= maxRounds) {
            return { completion, messages, rounds };
        }
        for (const [i, call] of (message.tool_calls ?? []).entries()) {
            const content = i < MAX_CALLS ? await resultOf(call, runnable, signal) : `Error: at most ${MAX_CALLS} calls at once.`;
            messages.push({ role: "tool", tool_call_id: call.id, name: call.function.name, content });
        }
    }
}
