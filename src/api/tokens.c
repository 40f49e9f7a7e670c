/* Public functions of the tokenizer. */
#include <string.h>

#include "session/model.h"

_Static_assert(sizeof(bz_detok) <= sizeof(bz_text_stream), "a text stream holds a detokenizer");
_Static_assert((int)BZ_DETOK_MAX <= (int)BZ_TEXT_MAX, "capacity for what a token completes");

int64_t bz_tokenize(const bz_model *m, const char *text, size_t len, bool specials, bool bos,
                    int32_t *ids, size_t cap, bz_error *err)
{
    bz_ids list = {0};
    bz_piece piece = {text, len, specials};
    int32_t first = bz_tokenizer_special(m->tokenizer)->bos;
    if (bos && first < 0) {
        bz_fail(err, BZ_BAD_FILE, "The vocabulary has no <bos> token.");
        return -1;
    }
    if (bos && !bz_ids_push(&list, first)) {
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the text's tokens.");
        return -1;
    }
    if (bz_tokenize_pieces(m->tokenizer, &piece, 1, &list, err) != BZ_OK) {
        bz_ids_free(&list);
        return -1;
    }
    /* A rendered prompt may bring its own <bos>: never two. */
    size_t skip = bos && list.n > 1 && list.id[1] == first ? 1 : 0;
    size_t total = list.n - skip, n = total < cap ? total : cap;
    if (n) {
        memcpy(ids, list.id + skip, n * sizeof *ids);
    }
    bz_ids_free(&list);
    return (int64_t)total;
}

const char *bz_token_piece(const bz_model *m, int32_t id, size_t *len)
{
    bz_str s = bz_tokenizer_piece(m->tokenizer, id);
    *len = s.len;
    return s.data;
}

bool bz_token_ends(const bz_model *m, int32_t id)
{
    return bz_tokenizer_is_end(m->tokenizer, id);
}

size_t bz_text_push(bz_text_stream *stream, const bz_model *m, int32_t id, bool show_control,
                    char out[BZ_TEXT_MAX])
{
    bz_detok d;
    memcpy(&d, stream->state, sizeof d);
    size_t n =
        id < 0 ? bz_detok_flush(&d, out) : bz_detok_push(&d, m->tokenizer, id, show_control, out);
    memcpy(stream->state, &d, sizeof d);
    return n;
}
