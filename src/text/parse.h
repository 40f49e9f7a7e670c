/* Splits the model's output into thinking, answer and tool calls, as it arrives.
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
 * Markers are recognized by their ids, so a model that only spells one (in an explanation, in a
 * file it writes) produces plain text. Texts are complete characters and never part of a marker,
 * and their concatenation does not depend on how the stream is split. White space before a marker
 * and after a thought or a call is dropped.
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

typedef enum bz_parse_kind {
    BZ_PARSE_THINKING,    /* text */
    BZ_PARSE_ANSWER,      /* text */
    BZ_PARSE_CALL_BEGIN,  /* name: emitted as soon as it is known */
    BZ_PARSE_CALL,        /* name; text: the arguments, a JSON object */
    BZ_PARSE_BROKEN_CALL, /* text: the model's text, which is not a valid call; name: if it has one
                           */
    BZ_PARSE_END
} bz_parse_kind;

typedef struct bz_parse_event {
    bz_parse_kind kind;
    uint32_t call; /* index of the call in the answer, including broken ones */
    bool repaired; /* of a call: the arguments were invalid and have been repaired */
    bz_str name, text;
} bz_parse_event;

/* The tokenizer must outlive the parser; NULL if only texts will be pushed. */
bz_status bz_parser_new(bz_parser **out, const bz_tokenizer *tokenizer,
                        const bz_parser_options *options, bz_error *err);
void bz_parser_free(bz_parser *p);

/* The only error is out of memory, after which there are no more events. Tokens after the end of
 * the turn are ignored. */
bz_status bz_parser_push(bz_parser *p, int32_t id, bz_error *err);
bz_status bz_parser_finish(bz_parser *p, bz_error *err); /* no more tokens; safe to repeat */

/* The same on texts in which markers are spelled out; do not mix with ids. */
bz_status bz_parser_push_text(bz_parser *p, const char *text, size_t len, bz_error *err);

/* The next event; false: push more. Its texts are valid until the next push. */
bool bz_parser_next(bz_parser *p, bz_parse_event *event);

#endif
