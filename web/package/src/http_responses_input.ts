/** Requests to /v1/responses: their items become messages of a chat request. */
import { isObject, Refusal, without, type Fields } from "./http_reply.js";

function bad(message: string): Refusal {
    return new Refusal(400, message, "bad_request");
}

function messageOf(item: unknown): object | null {
    if (!isObject(item)) {
        throw bad("input is a text, or a list of items, which are objects.");
    }
    const { type = "message", call_id: id } = item;
    switch (type) {
        case "message":
            return { role: item["role"], content: item["content"] };
        case "function_call":
            return { role: "assistant", tool_calls: [{ id, type: "function", function: { name: item["name"], arguments: item["arguments"] } }] };
        case "function_call_output":
            return { role: "tool", tool_call_id: id, content: item["output"] };
        case "reasoning":
            return null; // thinking of earlier turns is not repeated
        default:
            throw bad(`input has an item of type '${String(type).slice(0, 100)}'; it must be message, function_call, function_call_output or reasoning.`);
    }
}

function messagesOf({ input, instructions }: Fields): object[] {
    if (instructions !== undefined && instructions !== null && typeof instructions !== "string") {
        throw bad("instructions is a text.");
    }
    if (typeof input !== "string" && !Array.isArray(input)) {
        throw bad("input is a text or a list of items.");
    }
    const system = typeof instructions === "string" ? [{ role: "system", content: instructions }] : [];
    const told = typeof input === "string" ? [{ role: "user", content: input }] : input.map(messageOf).filter((message) => message !== null);
    return [...system, ...told];
}

/** Without the inner object that tools have in the chat API. */
function toolOf(tool: unknown): object {
    if (!isObject(tool) || tool["type"] !== "function") {
        throw bad(`Tools are of type function, not '${String(isObject(tool) ? tool["type"] : tool).slice(0, 100)}'.`);
    }
    return { type: "function", function: without(tool, ["type", "strict"]) };
}

function check(body: Fields): void {
    for (const key of ["previous_response_id", "conversation", "prompt"]) {
        if (body[key] !== undefined && body[key] !== null) {
            throw bad(`${key} is not supported: nothing is stored here; send the whole conversation as input.`);
        }
    }
    if (body["background"] === true) {
        throw bad("background is not supported: wait for the answer, or stream it.");
    }
    if (!["auto", "disabled", undefined, null].includes(body["truncation"] as string)) {
        throw bad("truncation is auto or disabled.");
    }
    if ((body["top_logprobs"] ?? 0) !== 0) {
        throw bad("top_logprobs is not supported here; /v1/chat/completions has it.");
    }
    // Agents always ask for it; there is none, as thinking is not kept from turn to turn.
    const refused = (Array.isArray(body["include"]) ? body["include"] : []).find((what) => what !== "reasoning.encrypted_content");
    if (refused !== undefined) {
        throw bad(`include cannot have '${String(refused).slice(0, 100)}'.`);
    }
}

const own = ["input", "instructions", "tools", "text", "store", "max_output_tokens", "truncation", "include", "top_logprobs",
    "previous_response_id", "conversation", "prompt", "background", "stream_options"];

export function readResponsesRequest(body: Fields): Fields {
    check(body);
    const { tools, text, max_output_tokens: max, truncation } = body;
    const { format, verbosity } = isObject(text) ? text : ({} as Fields);
    return {
        ...without(body, own),
        messages: messagesOf(body),
        context_shift: truncation === "auto",
        ...(Array.isArray(tools) && tools.length > 0 && { tools: tools.map(toolOf) }),
        ...(max !== undefined && max !== null && { max_completion_tokens: max }),
        ...(format !== undefined && format !== null && { response_format: format }), // {"type", "name", "schema"}: C takes that, too
        ...(verbosity !== undefined && verbosity !== null && { verbosity }),
    };
}
