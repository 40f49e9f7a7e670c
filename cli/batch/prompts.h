/* Parses one line of a prompts file.
 *
 *   {"prompt": "Why is the sky blue?"}
 *   {"id": 7, "messages": [{"role": "user", "content": "Hi"}], "think": false, "options": {"seed":
 * 1}}
 *
 * Keys are those of Ollama's API and of OpenAI's: id, prompt or messages, system, tools, think,
 * options; and beside options temperature, top_p, top_k, seed, stop, max_tokens ... Every
 * other key goes into the request, where the library obeys or refuses it (bezel.h). An unknown key
 * of `options` is an error. */
#ifndef BZ_CLI_PROMPTS_H
#define BZ_CLI_PROMPTS_H

#include "base/json_read.h"
#include "cli/settings.h"

typedef struct prompt_line {
    bz_arena arena; /* holds the parsed line */
    const bz_json_node *root;
    const bz_json_node *id; /* a string or a number; NULL: none */
    settings own;
} prompt_line;

/* Zero-initialize *p and free it in any case. It may have an id even after an error. */
bz_status prompt_line_read(prompt_line *p, const char *text, size_t len, bz_error *err);
void prompt_line_free(prompt_line *p);

/* Writes the request for bz_turn_new. `system` (may be NULL) and `think` apply to a line that does
 * not set them; the `first` messages [n_first], JSON objects, come after the system prompt; stop
 * strings come from s. false: no memory. */
bool prompt_line_request(prompt_line *p, const char *system, char *const *first, size_t n_first,
                         bool think, const settings *s, bz_json_buffer *out);

#endif
