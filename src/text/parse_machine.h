/* What the parser's parts share: the machine (parse.c), and what feeds it with texts and
 * markers (parse_feed.c). Internal to src/text/parse*.c. */
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
    BZ_MARK_OTHER /* nothing a model should say */
} bz_mark;

typedef struct bz_parser_event {
    bz_said said; /* without its texts: */
    size_t name, n_name, text, n_text;
} bz_parser_event;

struct bz_parser {
    const bz_tokenizer *t;
    bz_parser_options options;
    bz_detok detok;
    char held[20]; /* of a pushed text: what may become a marker or a character */
    size_t n_held;

    enum { BZ_IN_ANSWER, BZ_IN_THOUGHT, BZ_IN_CALL, BZ_ENDED } state;
    bool skip_space; /* answer: nothing has come since a thought or a call */
    bool may_call;   /* answer: `wait` may become call:NAME{ */
    size_t n_name; /* thought: characters of CHANNEL_NAME that have come; all: they are behind us */
    bool open_quote; /* call */
    bool named;      /* call: a brace has come, and with it the name */
    uint32_t n_calls;
    bz_json_buffer
        wait; /* answer, thought: white space or the beginning of a call; call: all of it */
    bz_json_buffer json;

    bz_json_buffer text; /* of the events */
    bz_parser_event *events;
    size_t n_events, cap_events, next_event;
    bool full; /* no memory */
};

/* Whole characters that hold no marker; a marker and its spelling; no more of either. */
void bz_parser_on_text(bz_parser *p, const char *text, size_t n);
void bz_parser_on_mark(bz_parser *p, bz_mark mark, const char *literal);
void bz_parser_on_end(bz_parser *p);

#endif
