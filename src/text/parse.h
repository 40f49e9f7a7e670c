/* What the model says, split as it comes: thinking, answer, tool calls.
 *
 *   bz_parser *p;
 *   bz_parser_new(&p, tokenizer, &(bz_parser_options){.thinking = true}, &err);
 *   for each token {
 *       bz_parser_push(p, id, &err);
 *       while (bz_parser_next(p, &event)) ...
 *   }
 *   bz_parser_finish(p, &err);
 *   while (bz_parser_next(p, &event)) ...
 *
 * Markers are known by their ids, so a model that merely spells one (in an explanation, in a
 * file it writes) says plain text. Texts are whole characters and never half a marker, and
 * however the stream is cut, they add up to the same. White space before a marker and after
 * a thought or a call belongs to neither and is dropped.
 */
#ifndef BZ_TEXT_PARSE_H
#define BZ_TEXT_PARSE_H

#include "base/json_read.h"
#include "text/tokenizer.h"

typedef struct bz_parser bz_parser;

typedef struct bz_parser_options {
    bool thinking;      /* false: thoughts are dropped */
    bool thinking_open; /* the prompt ended inside a thought: bz_prompt.thinking_open */
    const bz_json_node
        *tools; /* as in bz_conversation, for repairs; must outlive the parser; may be NULL */
} bz_parser_options;

typedef enum bz_said_kind {
    BZ_SAID_THINKING,    /* text: more of it */
    BZ_SAID_ANSWER,      /* text: more of it */
    BZ_SAID_CALL_BEGIN,  /* name: known as soon as the model has written it */
    BZ_SAID_CALL,        /* name; text: the arguments, a JSON object */
    BZ_SAID_BROKEN_CALL, /* text: what the model wrote, which is no call; name: if it has one */
    BZ_SAID_END
} bz_said_kind;

typedef struct bz_said {
    bz_said_kind kind;
    uint32_t call; /* counts the calls of one answer, from 0, broken ones too */
    bool repaired; /* of a call: the arguments broke the rules and were mended */
    bz_str name, text;
} bz_said;

/* The tokenizer must outlive the parser; NULL if only texts will be pushed. */
bz_status bz_parser_new(bz_parser **out, const bz_tokenizer *tokenizer,
                        const bz_parser_options *options, bz_error *err);
void bz_parser_free(bz_parser *p);

/* The only error is out of memory, after which nothing more is said. What comes after the end of
 * the turn is dropped. */
bz_status bz_parser_push(bz_parser *p, int32_t id, bz_error *err);
bz_status bz_parser_finish(bz_parser *p, bz_error *err); /* no more tokens; safe to repeat */

/* The same on texts in which markers are spelled out; do not mix with ids. */
bz_status bz_parser_push_text(bz_parser *p, const char *text, size_t len, bz_error *err);

/* The next thing said; false: push more. Its texts are valid until the next push. */
bool bz_parser_next(bz_parser *p, bz_said *said);

#endif
