/* From generated tokens to events: the text that can be shown, and whether and why a token is the
 * last. */
#ifndef BZ_EMIT_H
#define BZ_EMIT_H

#include "sample/stop.h"
#include "session/session.h"

/* The ends of an answer that need no text. */
typedef struct bz_limits {
    const bz_model *model;
    uint32_t max_tokens; /* 0: no limit */
    bool ignore_end;
    uint32_t made; /* tokens pushed */
} bz_limits;

/* Counts the token and decides whether and why it is the last. `full`: the context ends after it.
 */
bz_finish bz_limits_push(bz_limits *limits, int32_t token, bool full);

typedef struct bz_emit {
    bz_limits limits;
    bool show_control;
    int32_t *stop_ids;
    size_t n_stop_ids;
    bz_detok detok;
    bz_stop *stop;
    char *text; /* of the token pushed last: not terminated */
} bz_emit;

/* Copies what the options point to. free: also after a failed begin. */
bz_status bz_emit_begin(bz_emit *x, const bz_model *model, const bz_generate_options *o,
                        bz_error *err);
void bz_emit_free(bz_emit *x);

/* As bz_limits_push, with stop ids and stop strings. Puts the text that can be shown after this
 * token into x->text, *len bytes. Text that was held back comes with the last token. */
bz_finish bz_emit_push(bz_emit *x, int32_t token, bool full, size_t *len);

#endif
