/* The chat template of Gemma 4: renders a conversation to the prompt that the model continues.
 *
 * A prompt is a list of pieces. Markers such as <|turn> come from the template and become special
 * tokens; text of users, tools and models is plain text, even where it spells a marker. The rules
 * are those of Google's template of July 2026 (docs/MODEL.md, chat); templates inside model files
 * are ignored.
 */
#ifndef BZ_TEXT_CHAT_H
#define BZ_TEXT_CHAT_H

#include "base/json_read.h"
#include "text/tokenizer.h"

/* ---- a conversation --------------------------------------------------------- */

typedef enum bz_role { BZ_ROLE_SYSTEM, BZ_ROLE_USER, BZ_ROLE_ASSISTANT, BZ_ROLE_TOOL } bz_role;

typedef enum bz_part_kind {
    BZ_PART_TEXT,
    BZ_PART_IMAGE,
    BZ_PART_AUDIO,
    BZ_PART_VIDEO
} bz_part_kind;

typedef struct bz_part {
    bz_part_kind kind;
    bz_str text; /* media: its source as the caller gave it (URL, base64) */
} bz_part;

typedef struct bz_tool_call {
    bz_str id, name;
    const bz_json_node *arguments; /* an object, or null; NULL: read arguments_text */
    bz_str arguments_text;         /* JSON; empty: no arguments */
} bz_tool_call;

typedef struct bz_tool_result {
    bz_str name;
    const bz_json_node *value;
} bz_tool_result;

typedef struct bz_message {
    bz_role role;
    bool pinned;          /* stays when the conversation is shortened */
    bz_str text;          /* the content if parts is NULL */
    const bz_part *parts; /* the content as a list, or NULL */
    size_t n_parts;

    /* assistant */
    bz_str reasoning;
    const bz_tool_call *calls;
    size_t n_calls;
    const bz_tool_result *results; /* results in the same message; usually tool messages follow */
    size_t n_results;

    /* tool */
    bz_str tool_call_id, name;
} bz_message;

typedef struct bz_conversation {
    const bz_message *messages;
    size_t n_messages;
    const bz_json_node *tools; /* an array of declarations in OpenAI's form, or NULL */
    bool enable_thinking;
    bool preserve_thinking;     /* keep the reasoning of earlier turns that called tools */
    bool add_generation_prompt; /* the model's turn follows */
    bool continue_final; /* the model continues the assistant's message, if that is the last one */
    bool no_ple;         /* a model without per-layer embeddings */
} bz_conversation;

/* Fills *chat from a request: an object with `messages`, `tools` and the options above, in the form
 * of OpenAI's or Ollama's API. Thinking is enabled by think, enable_thinking or reasoning_effort;
 * add_generation_prompt is true unless the request sets it to false; continue_final_message
 * continues the assistant's last message. The caller sets no_ple. Memory is in the arena or in the
 * request's tree. */
bz_status bz_chat_read(bz_conversation *chat, const bz_json_node *request, bz_arena *arena,
                       bz_error *err);

/* ---- a prompt --------------------------------------------------------------- */

typedef struct bz_prompt_media {
    size_t piece;      /* its marker */
    const bz_part *of; /* of the conversation */
    bz_part part;
} bz_prompt_media;

/* Zero-initialize. */
typedef struct bz_prompt {
    bz_piece *pieces; /* <bos> is the first; texts point into the conversation */
    size_t n;
    size_t generation;  /* number of pieces before the generation prompt, where tokenization is
                           split; n: no generation prompt */
    bool thinking_open; /* the prompt ends inside a thought: the answer begins with thinking */
    bz_prompt_media *media;
    size_t n_media;
    size_t *starts; /* [messages + 1] the piece with which each message begins; of a tool message,
                       which the message with the call includes, and of the last: where it ends */

    size_t cap, cap_media; /* private from here */
    bz_arena arena;
    bool failed;
} bz_prompt;

/* The conversation must outlive the prompt. After an error the prompt is empty. */
bz_status bz_chat_render(bz_prompt *prompt, const bz_conversation *chat, bz_error *err);
void bz_prompt_free(bz_prompt *prompt);

/* All pieces as one NUL-terminated text; the caller frees it. NULL: out of memory. */
char *bz_prompt_text(const bz_prompt *prompt, size_t *len);

#endif
