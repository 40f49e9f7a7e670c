/* One line of a prompts file: what is asked, and how. Text in, structs out; nothing is read here.
 *
 *   {"prompt": "Why is the sky blue?"}
 *   {"id": 7, "messages": [{"role": "user", "content": "Hi"}], "think": false, "options": {"seed":
 * 1}}
 *
 * Keys are those of Ollama's API and of OpenAI's: id, prompt or messages, system, tools, think,
 * options; and beside options temperature, top_p, top_k, seed, stop, max_tokens ... Other keys of a
 * request (model, stream, ...) are passed over. An option nobody knows is an error: it would change
 * answers if it were heeded.
 */
#ifndef BZ_CLI_PROMPTS_H
#define BZ_CLI_PROMPTS_H

#include "base/json_read.h"
#include "cli/settings.h"

typedef struct prompt_line {
    bz_arena arena; /* the line's tree */
    const bz_json_node *root;
    const bz_json_node *id; /* a string or a number; NULL: none */
    settings own;
} prompt_line;

/* Zero-initialise *p. After an error it may still have an id. Free it in any case. */
bz_status prompt_line_read(prompt_line *p, const char *text, size_t len, bz_error *err);
void prompt_line_free(prompt_line *p);

/* The request for bz_turn_new. `system` (may be NULL) and `think` are for a line that does not say;
 * stop strings are those of s. false: no memory. */
bool prompt_line_request(const prompt_line *p, const char *system, bool think, const settings *s,
                         bz_json_buffer *out);

#endif
