/** Requests and answers in the shapes of the npm package `openai`. C reads the request
 * (src/text/chat_json.c, src/text/request.c) and refuses what it cannot do. */
import type { Canvas } from "./options.js";

export interface TextPart {
    type: "text";
    text: string;
}

/** Pixels, row by row from the top: red, green, blue, and with 4 bytes each an alpha that is not looked at. */
export interface Pixels {
    data: Uint8Array | Uint8ClampedArray;
    width: number;
    height: number;
}

/** An address (data:, blob:, or of the page's own site), a file, or pixels. */
export type PictureSource = string | URL | Blob | ImageBitmap | ImageData | Pixels;

export interface ImagePart {
    type: "image_url";
    image_url: PictureSource | {
        url: PictureSource;
        /** How many tokens it may take: "low" 70, "high" four times the usual where the model allows it. */
        detail?: "auto" | "low" | "high";
    };
}

/** base64 or an address, a file, or samples; more than one channel becomes one. */
export type SoundSource = string | URL | Blob | AudioBuffer;

export interface AudioPart {
    type: "input_audio";
    input_audio:
        | Blob
        | AudioBuffer
        /** `format` is not looked at: the bytes say what they are. */
        | { data: SoundSource; format?: string }
        /** Samples of one channel from -1 to 1, and how many there are in a second. */
        | { data: Float32Array; rate: number; format?: string };
}

export type ContentPart = TextPart | ImagePart | AudioPart;

export interface ToolCall {
    id: string;
    type: "function";
    /** The arguments are JSON. */
    function: { name: string; arguments: string };
}

export type Message =
    | { role: "system" | "developer"; content: string | TextPart[]; name?: string }
    | {
          role: "user";
          content: string | ContentPart[];
          name?: string;
          /** Ollama's way: pictures that stand before the text. */
          images?: PictureSource[];
      }
    | {
          role: "assistant";
          content?: string | TextPart[] | null;
          reasoning_content?: string | null;
          tool_calls?: ToolCall[];
          refusal?: string | null;
      }
    | { role: "tool"; content: string | TextPart[]; tool_call_id: string; name?: string };

export interface Tool {
    type: "function";
    function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

export interface ChatRequest {
    messages: Message[];
    /** Taken and given back, nothing more: a loaded model is the only one. */
    model?: string;
    tools?: Tool[];
    tool_choice?: "auto" | "none";
    stream?: boolean | null;
    /** Accepted: the last chunk always has the usage. */
    stream_options?: { include_usage?: boolean } | null;
    max_tokens?: number | null;
    max_completion_tokens?: number | null;
    temperature?: number | null;
    top_p?: number | null;
    top_k?: number | null;
    min_p?: number | null;
    presence_penalty?: number | null;
    frequency_penalty?: number | null;
    repetition_penalty?: number | null;
    /** By token; -100: never. */
    logit_bias?: Record<string, number> | null;
    seed?: number | null;
    stop?: string | string[] | null;
    logprobs?: boolean | null;
    top_logprobs?: number | null;
    n?: 1 | null;
    response_format?: { type: "text" };
    /** To think before answering; Gemma 4 knows on and off. */
    think?: boolean;
    reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | null;
    reasoning?: { effort?: string; enabled?: boolean };
    /** The last message is the assistant's, and the answer goes on where it breaks off. */
    continue_final_message?: boolean;
    chat_template_kwargs?: Record<string, unknown>;
}

export type StreamRequest = ChatRequest & { stream: true };
export type WholeRequest = ChatRequest & { stream?: false | null };

export type FinishReason = "stop" | "length" | "tool_calls";

export interface TopLogProb {
    token: string;
    logprob: number;
    bytes: number[];
}

export interface TokenLogProb extends TopLogProb {
    top_logprobs: TopLogProb[];
}

export interface LogProbs {
    content: TokenLogProb[];
    refusal: null;
}

export interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    prompt_tokens_details: {
        /** Of the prompt, what the session already held. */
        cached_tokens: number;
        /** Of the prompt, what pictures and sounds take. */
        image_tokens: number;
        audio_tokens: number;
    };
}

/** llama.cpp's names. Milliseconds. */
export interface Timings {
    cache_n: number;
    prompt_n: number;
    prompt_ms: number;
    prompt_per_second: number;
    /** Pictures and sounds that were encoded for this request; what is known from before is not encoded again. */
    media_n: number;
    media_ms: number;
    predicted_n: number;
    predicted_ms: number;
    predicted_per_second: number;
}

export interface ToolCallDelta {
    index: number;
    id?: string;
    type?: "function";
    function: { name?: string; arguments?: string };
}

export interface Delta {
    role?: "assistant";
    content?: string;
    reasoning_content?: string;
    tool_calls?: ToolCallDelta[];
}

/** A picture or sound on its way through the model's eyes or ears. */
export interface MediaProgress {
    kind: "image" | "audio";
    /** Of the request's, from 0, and how many they are. */
    index: number;
    count: number;
    done: number;
    total: number;
}

export interface ChatChunk {
    id: string;
    object: "chat.completion.chunk";
    created: number;
    model: string;
    /** One; none in a chunk with a canvas, media or a notice, and in the last, which has the usage. */
    choices: { index: 0; delta: Delta; logprobs: LogProbs | null; finish_reason: FinishReason | null }[];
    /** Of a diffusion model: what it has in mind at this moment. Its words follow as deltas when it is settled. */
    canvas?: Canvas;
    /** Before the answer begins. */
    media?: MediaProgress;
    /** A sentence about the request's media that the user should see. */
    notice?: string;
    usage?: Usage;
    timings?: Timings;
}

export interface AnswerMessage {
    role: "assistant";
    content: string | null;
    refusal: null;
    reasoning_content?: string;
    tool_calls?: ToolCall[];
}

export interface ChatCompletion {
    id: string;
    object: "chat.completion";
    created: number;
    model: string;
    choices: [{ index: 0; message: AnswerMessage; logprobs: LogProbs | null; finish_reason: FinishReason }];
    /** Sentences about the request's media that the user should see. */
    notices?: string[];
    usage: Usage;
    timings: Timings;
}
