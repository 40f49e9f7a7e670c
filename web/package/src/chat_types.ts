/** Requests and answers, typed as in the npm package `openai`. C parses the request (src/text/chat_json.c,
 * src/text/request.c) and refuses what it does not support. */
import type { Canvas, Draft } from "./options.js";

export interface TextPart {
    type: "text";
    text: string;
}

/** [height][width][3 or 4] bytes from the top left: red, green, blue; with a fourth byte, alpha, composited on white. */
export interface Pixels {
    data: Uint8Array | Uint8ClampedArray;
    width: number;
    height: number;
}

/** A URL (data:, blob:, or of the page's own origin), a file, or pixels. */
export type ImageSource = string | URL | Blob | ImageBitmap | ImageData | Pixels;

export interface ImagePart {
    type: "image_url";
    image_url: ImageSource | {
        url: ImageSource;
        /** Token budget: "low" 70; "high" four times the default, up to the model's limit; "original" is refused. */
        detail?: "auto" | "low" | "high" | "original";
    };
}

/** base64 or a URL, a file, or samples; several channels are mixed into one. */
export type AudioSource = string | URL | Blob | AudioBuffer;

export interface AudioPart {
    type: "input_audio";
    input_audio:
        | Blob
        | AudioBuffer
        /** `format` is ignored: the format is detected from the bytes. */
        | { data: AudioSource; format?: string }
        /** Mono samples from -1 to 1, and the sample rate in Hz. */
        | { data: Float32Array; rate: number; format?: string };
}

/** Frames of a video, in order: each is an image with its time. */
export interface VideoFrames {
    frames: readonly (Blob | ImageBitmap | ImageData | Pixels)[];
    /** When each is shown, from the beginning. Default: `fps` apart. */
    seconds?: readonly number[];
    /** Frames per second. Default: 24. */
    fps?: number;
}

/** A URL (data:, blob:, or of the page's own origin) or a file, from which 32 frames are taken (in Node: frames only). */
export type VideoSource = string | URL | Blob | VideoFrames;

export interface VideoPart {
    type: "video_url";
    video_url: VideoSource | {
        url: VideoSource;
        /** How many frames to take, evenly spread. Default: 32, or all of a shorter video. */
        frames?: number;
    };
}

export type ContentPart = TextPart | ImagePart | AudioPart | VideoPart;

/** Parts that OpenAI's types have and that a request is refused for, with a sentence. */
export type RefusedPart = { type: "file"; file: object } | { type: "refusal"; refusal: string };

export interface ToolCall {
    id: string;
    type: "function";
    /** The arguments are JSON. */
    function: { name: string; arguments: string };
}

/** Of OpenAI's types: tools without a schema, which are refused. */
export interface CustomTool {
    type: "custom";
    custom: { name: string };
}

export type Message = (
    | { role: "system" | "developer"; content: string | TextPart[]; name?: string }
    | {
          role: "user";
          content: string | (ContentPart | RefusedPart)[];
          name?: string;
          /** Ollama's form: images before the text. */
          images?: ImageSource[];
      }
    | {
          role: "assistant";
          content?: string | (TextPart | RefusedPart)[] | null;
          reasoning_content?: string | null;
          tool_calls?: (ToolCall | (CustomTool & { id: string }))[];
          refusal?: string | null;
      }
    | { role: "tool"; content: string | TextPart[]; tool_call_id: string; name?: string }
    /** As "tool", in older programs. */
    | { role: "function"; content: string | null; name: string }
) & {
    /** The turn that it belongs to stays when others are left out. */
    pinned?: boolean;
};

export interface Tool {
    type: "function";
    function: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

export interface ChatRequest {
    messages: Message[];
    /** Copied into the answer; otherwise ignored. */
    model?: string;
    tools?: (Tool | CustomTool)[];
    /** "required" or a function: the answer is a tool call with arguments that fit its parameters. */
    tool_choice?: "auto" | "none" | "required" | { type: "function"; function: { name: string } } | CustomTool | { type: "allowed_tools"; allowed_tools: object };
    parallel_tool_calls?: boolean | null;
    stream?: boolean | null;
    /** Ignored: the last chunk always has the usage. */
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
    /** Keyed by token id; -100: never sampled. */
    logit_bias?: Record<string, number> | null;
    seed?: number | null;
    stop?: string | string[] | null;
    logprobs?: boolean | null;
    top_logprobs?: number | null;
    /** 1; other numbers are refused. */
    n?: number | null;
    /** What the answer may be; a schema that cannot be obeyed is refused with the code "bad_schema". */
    response_format?:
        | { type: "text" }
        | { type: "json_object" }
        | { type: "json_schema"; json_schema: { name?: string; schema?: object; strict?: boolean | null } };
    /** A grammar in GBNF, a regular expression for the whole answer, or texts of which it is one. */
    grammar?: string;
    regex?: string;
    choices?: string[];
    /** Think before answering; Gemma 4 knows only on and off. */
    think?: boolean;
    reasoning_effort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max" | null;
    reasoning?: { effort?: string; enabled?: boolean };
    /** The last message is the assistant's; the answer continues it. */
    continue_final_message?: boolean;
    /** false: a conversation that leaves no room for an answer is refused with the code "context_full". By default its
     * oldest turns are left out, and the answer says so. */
    context_shift?: boolean | null;
    /** Who guesses the next tokens. Default: the drafter of a model that was loaded with one. */
    draft?: Draft | null;
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
        /** Prompt tokens that the session already held. */
        cached_tokens: number;
        /** Prompt tokens of images, sounds and videos. */
        image_tokens: number;
        audio_tokens: number;
        video_tokens: number;
    };
    completion_tokens_details: {
        /** Tokens of thoughts. */
        reasoning_tokens: number;
        /** Tokens that were guessed, rightly or wrongly; absent: there were none. */
        accepted_prediction_tokens?: number;
        rejected_prediction_tokens?: number;
    };
}

/** llama.cpp's names; times in milliseconds. */
export interface Timings {
    cache_n: number;
    prompt_n: number;
    prompt_ms: number;
    prompt_per_second: number;
    /** Images and sounds encoded for this request; cached ones do not count. */
    media_n: number;
    media_ms: number;
    predicted_n: number;
    predicted_ms: number;
    predicted_per_second: number;
    /** Tokens that were guessed, and of them those that were right; absent: there were none. */
    draft_n?: number;
    draft_n_accepted?: number;
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

/** Encoding progress of an image, a sound or a video. */
export interface MediaProgress {
    kind: "image" | "audio" | "video";
    /** Index among the request's media, from 0, of `count`. */
    index: number;
    count: number;
    done: number;
    total: number;
}

/** The conversation was longer than the context: its oldest turns were left out. */
export interface ContextShift {
    /** Messages of the request that the model did not see. */
    left_out: number;
}

export interface ChatChunk {
    id: string;
    object: "chat.completion.chunk";
    created: number;
    model: string;
    /** One element; empty in chunks with a canvas, media, a notice or a context_shift, and in the last one, which has the usage. */
    choices: { index: 0; delta: Delta; logprobs: LogProbs | null; finish_reason: FinishReason | null }[];
    /** A diffusion model's current canvas. Its text follows as deltas once it is final. */
    canvas?: Canvas;
    /** Sent before the answer begins. */
    media?: MediaProgress;
    /** A sentence about the request's media that the user should see. */
    notice?: string;
    /** Sent before the answer begins. */
    context_shift?: ContextShift;
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
    context_shift?: ContextShift;
    usage: Usage;
    timings: Timings;
}
