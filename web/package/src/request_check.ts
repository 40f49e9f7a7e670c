/** Refuses requests that C would take for others: with a misspelt setting, which would have no effect, or without
 * messages. C checks the values (src/text/request.c, src/text/chat_json.c). */
import { BezelError } from "./errors.js";

/** What C reads, or refuses with a sentence of its own. */
const read = [
    "messages", "model", "stream", "stream_options", "n", "seed", "stop", "logit_bias", "logprobs", "top_logprobs",
    "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "min_p",
    "presence_penalty", "frequency_penalty", "repetition_penalty", "context_shift", "draft",
    "tools", "tool_choice", "parallel_tool_calls",
    "response_format", "grammar", "regex", "choices",
    "think", "enable_thinking", "preserve_thinking", "reasoning_effort", "reasoning", "chat_template_kwargs",
    "add_generation_prompt", "continue_final_message",
    // OpenAI's, of which only one value can be obeyed, or none:
    "modalities", "verbosity", "store", "audio", "function_call", "functions", "prediction", "web_search_options", "lora",
    // Ollama's:
    "format", "options", "num_predict", "repeat_penalty", "repeat_last_n",
];
/** Say who asks and how it is billed, not what is answered. */
const withoutEffect = ["user", "metadata", "safety_identifier", "service_tier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "moderation"];

const known = new Set([...read, ...withoutEffect]);

export function checkRequest(request: object): void {
    const unknown = Object.entries(request).find(([key, value]) => value !== undefined && !known.has(key));
    if (unknown) {
        throw new BezelError("bad_request", `The request has "${unknown[0].slice(0, 100)}", which is not a setting.`);
    }
    const { messages, tools } = request as { messages?: unknown; tools?: unknown };
    if (Array.isArray(tools) && tools.some((tool: { type?: unknown } | null) => (tool?.type ?? "function") !== "function")) {
        throw new BezelError("bad_request", "Tools are of type function.");
    }
    if (Array.isArray(messages) && messages.length === 0) {
        throw new BezelError("bad_request", "messages is empty: it needs at least one message.");
    }
}
