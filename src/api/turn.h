/* The internals of a turn, shared by turn.c and turn_fit.c. */
#ifndef BZ_API_TURN_H
#define BZ_API_TURN_H

#include "sample/stop.h"
#include "session/media.h"
#include "session/model.h"
#include "text/chat.h"
#include "text/parse.h"
#include "text/request.h"

/* An image, audio clip or video of the request. */
typedef struct turn_media {
    const bz_part *of; /* of the conversation */
    bz_part part;
    bz_media *media; /* NULL: not attached yet */
} turn_media;

struct bz_turn {
    const bz_model *model;
    bz_arena arena; /* the request's tree, which the parser keeps reading, and its settings */
    bz_request request;
    bz_conversation chat; /* of the messages that the model sees */
    bz_grammar *grammar;  /* of its options; NULL: the answer is free */
    bz_ids prompt;
    uint32_t snapshot_at;
    bz_prompt rendered; /* of a request with media: tokenized when all of them are attached */
    turn_media *media;  /* [n_media] in the order of rendered.media */
    size_t n_media;
    bool *left_out; /* [n_messages] of the request; NULL: none */
    size_t n_messages, n_left_out;

    bz_parser *parser;
    bz_stop *stop;       /* NULL: none */
    bz_parse_event said; /* waits until text that was held back before it is returned */
    bool waiting;
    bool ended;
    bz_finish finish;    /* END or STOP, once it is known */
    bz_json_buffer text; /* of the part returned last */
};

/* Renders t->chat again, which has lost messages, and with them the media of those. */
bz_status bz_turn_render_again(bz_turn *t, bz_error *err);

#endif
