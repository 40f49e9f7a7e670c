#include "session/emit.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_CAPACITY = 2 * BZ_DETOK_MAX
}; /* a token's text, and an incomplete character before it */

bz_status bz_emit_begin(bz_emit *x, const bz_model *model, const bz_generate_options *o,
                        bz_error *err)
{
    const uint32_t vocab = model->text.config.vocab;
    *x = (bz_emit){
        .limits = {.model = model, .max_tokens = o->max_tokens, .ignore_end = o->ignore_end},
        .show_control = o->show_control};
    for (size_t i = 0; i < o->n_stop_ids; i++) {
        if (o->stop_ids[i] < 0 || (uint32_t)o->stop_ids[i] >= vocab) {
            return bz_fail(err, BZ_BAD_REQUEST, "The stop token %d is not in the vocabulary of %u.",
                           o->stop_ids[i], vocab);
        }
    }
    bz_status status = bz_stop_new(&x->stop, o->stop, o->n_stop, err);
    if (status != BZ_OK) {
        return status;
    }
    x->text = malloc(TEXT_CAPACITY + bz_stop_longest(x->stop));
    x->stop_ids = malloc((o->n_stop_ids + 1) * sizeof *x->stop_ids);
    if (!x->text || !x->stop_ids) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    }
    if (o->n_stop_ids) {
        memcpy(x->stop_ids, o->stop_ids, o->n_stop_ids * sizeof *x->stop_ids);
    }
    x->n_stop_ids = o->n_stop_ids;
    return BZ_OK;
}

void bz_emit_free(bz_emit *x)
{
    bz_stop_free(x->stop);
    free(x->stop_ids);
    free(x->text);
}

static bool is_stop_id(const bz_emit *x, int32_t id)
{
    for (size_t i = 0; i < x->n_stop_ids; i++) {
        if (x->stop_ids[i] == id) {
            return true;
        }
    }
    return false;
}

bz_finish bz_limits_push(bz_limits *x, int32_t token, bool full)
{
    x->made++;
    if (!x->ignore_end && bz_token_ends(x->model, token)) {
        return BZ_FINISH_END;
    }
    return x->max_tokens && x->made >= x->max_tokens ? BZ_FINISH_LENGTH
           : full                                    ? BZ_FINISH_CONTEXT
                                                     : BZ_FINISH_NONE;
}

bz_finish bz_emit_push(bz_emit *x, int32_t token, bool full, size_t *len)
{
    char piece[BZ_DETOK_MAX];
    size_t n = 0;
    bz_finish finish = bz_limits_push(&x->limits, token, full);
    if (finish != BZ_FINISH_END && is_stop_id(x, token)) {
        finish = BZ_FINISH_STOP;
    }
    if (finish != BZ_FINISH_END && finish != BZ_FINISH_STOP) {
        size_t bytes =
            bz_detok_push(&x->detok, x->limits.model->tokenizer, token, x->show_control, piece);
        n = bz_stop_push(x->stop, piece, bytes, x->text);
    }
    if (finish != BZ_FINISH_NONE) {
        size_t bytes = bz_detok_flush(&x->detok, piece);
        n += bz_stop_push(x->stop, piece, bytes, x->text + n);
        n += bz_stop_flush(x->stop, x->text + n);
    }
    *len = n;
    return bz_stop_matched(x->stop) ? BZ_FINISH_STOP : finish;
}
