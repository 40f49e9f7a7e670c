/* Tokenizer: creation and lookups. Tables: vocab.c; text to ids: tokenize.c; ids to text: detok.c.
 */
#include "text/vocab.h"

#include <stdlib.h>

bool bz_ids_push(bz_ids *ids, int32_t id)
{
    if (ids->n == ids->cap) {
        size_t cap = ids->cap ? 2 * ids->cap : 64;
        int32_t *more = cap > SIZE_MAX / sizeof *more ? NULL : realloc(ids->id, cap * sizeof *more);
        if (!more) {
            return false;
        }
        ids->id = more;
        ids->cap = cap;
    }
    ids->id[ids->n++] = id;
    return true;
}

void bz_ids_free(bz_ids *ids)
{
    free(ids->id);
    *ids = (bz_ids){0};
}

bz_status bz_tokenizer_new(bz_tokenizer **out, const bz_gguf *gguf, bz_error *err)
{
    *out = NULL;
    bz_tokenizer *t = calloc(1, sizeof *t);
    if (!t) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for a tokenizer.");
    }
    bz_status status = bz_vocab_load(t, gguf, err);
    if (status) {
        bz_tokenizer_free(t);
        return status;
    }
    *out = t;
    return BZ_OK;
}

void bz_tokenizer_free(bz_tokenizer *t)
{
    if (t) {
        bz_vocab_free(t);
        free(t);
    }
}

int32_t bz_tokenizer_size(const bz_tokenizer *t)
{
    return t->n_tokens;
}

const bz_special_ids *bz_tokenizer_special(const bz_tokenizer *t)
{
    return &t->special;
}

int32_t bz_tokenizer_find(const bz_tokenizer *t, const char *text, size_t len)
{
    uint32_t symbol = bz_vocab_symbol(t, text, len);
    return symbol < (uint32_t)t->n_tokens ? (int32_t)symbol : -1;
}

static bool has(const bz_tokenizer *t, int32_t id, int flag)
{
    return id >= 0 && id < t->n_tokens && t->flags[id] & flag;
}

bz_str bz_tokenizer_piece(const bz_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_tokens ? t->text[id] : (bz_str){"", 0};
}

bool bz_tokenizer_is_control(const bz_tokenizer *t, int32_t id)
{
    return has(t, id, BZ_TOKEN_SPECIAL);
}

bool bz_tokenizer_is_end(const bz_tokenizer *t, int32_t id)
{
    return has(t, id, BZ_TOKEN_END);
}
