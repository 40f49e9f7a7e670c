/* Converts one tool call from the model's syntax to JSON. Internal to src/text/parse*.c. */
#ifndef BZ_TEXT_PARSE_CALL_H
#define BZ_TEXT_PARSE_CALL_H

#include "base/json_read.h"

/* Represents the quote token in a call's text. The byte does not occur in UTF-8, so a string that
 * only spells the token stays text. */
#define BZ_CALL_QUOTE '\xFF'

typedef enum bz_call_answer {
    BZ_CALL_GOOD,
    BZ_CALL_REPAIRED,
    BZ_CALL_BROKEN,
    BZ_CALL_NO_MEMORY
} bz_call_answer;

/* The name in `call:NAME{...`; false: there is none yet. *arguments: the text from the brace on. */
bool bz_call_name(bz_str call, bz_str *name, bz_str *arguments);

/* Writes the arguments as a JSON object to out, which must be empty. If they are invalid, several
 * repairs are tried; the last one uses the tool's declaration in `tools`, which may be NULL. */
bz_call_answer bz_call_to_json(bz_str call, const bz_json_node *tools, bz_json_buffer *out);

#endif
