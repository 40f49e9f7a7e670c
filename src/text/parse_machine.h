/* Internals of the answer parser: the state machine (parse.c) and its input, texts and markers
 * (parse_feed.c). */
#ifndef BZ_TEXT_PARSE_MACHINE_H
#define BZ_TEXT_PARSE_MACHINE_H

#include "text/parse.h"

typedef enum bz_mark {
    BZ_MARK_CHANNEL,
    BZ_MARK_CHANNEL_END,
    BZ_MARK_TOOL_CALL,
    BZ_MARK_TOOL_CALL_END,
    BZ_MARK_TOOL_RESPONSE,
    BZ_MARK_QUOTE,
    BZ_MARK_TURN_END,
    BZ_MARK_OTHER /* markers that no model output should have */
} bz_mark;

typedef struct bz_parser_event {
    bz_parse_event event;              /* without name and text: */
    size_t name, n_name, text, n_text; /* ranges of bz_parser.text */
} bz_parser_event;

struct bz_parser {
    const bz_tokenizer *t;
    bz_parser_options options;
    bz_detok detok;
    char held[20]; /* push_text: bytes that may become a marker or a character */
    size_t n_held;

    enum { BZ_IN_ANSWER, BZ_IN_THOUGHT, BZ_IN_CALL, BZ_ENDED } state;
    bool skip_space; /* answer: only white space since a thought or a call */
    bool may_call;   /* answer: `pending` may become call:NAME{ */
    size_t n_name;   /* thought: characters of CHANNEL_NAME seen; all: the name is complete */
    bool open_quote; /* call: inside a string */
    bool named;      /* call: a brace was seen, so the name is complete */
    uint32_t n_calls;
    bz_json_buffer pending; /* held text. answer, thought: white space or the beginning of a call;
                             * call: the whole call */
    bz_json_buffer json;

    bz_json_buffer text; /* of the events */
    bz_parser_event *events;
    size_t n_events, cap_events, next_event;
    bool full; /* out of memory */
};

/* Input of the machine: complete characters without markers; a marker and its text; the end. */
void bz_parser_on_text(bz_parser *p, const char *text, size_t n);
void bz_parser_on_mark(bz_parser *p, bz_mark mark, const char *literal);
void bz_parser_on_end(bz_parser *p);

#endif
