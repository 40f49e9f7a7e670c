/* Detokenizer: token ids to text, one token at a time. */
#include "text/vocab.h"
#include "base/utf8.h"

#include <string.h>

#define REPLACEMENT "\xEF\xBF\xBD"

static int hex_digit(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

size_t bz_detok_flush(bz_detok *d, char out[BZ_DETOK_MAX])
{
    size_t n = 0;
    for (; d->n_held > 0; d->n_held--) {
        memcpy(out + n, REPLACEMENT, 3);
        n += 3;
    }
    return n;
}

/* The bytes of a token; at most BZ_MAX_PIECE. */
static size_t token_bytes(const bz_tokenizer *t, int32_t id, char out[BZ_MAX_PIECE])
{
    bz_str s = t->text[id];
    if (t->flags[id] & BZ_TOKEN_BYTE) {
        out[0] = (char)(hex_digit(s.data[3]) * 16 + hex_digit(s.data[4]));
        return 1;
    }
    /* Without merges the literals are runs of spaces too, in either spelling. */
    if (t->flags[id] & (t->score_rank ? BZ_TOKEN_HIDDEN : BZ_TOKEN_LITERAL | BZ_TOKEN_HIDDEN)) {
        memcpy(out, s.data, s.len);
        return s.len;
    }
    size_t n = 0;
    for (size_t i = 0; i < s.len;) {
        if (s.len - i >= 3 && memcmp(s.data + i, "\xE2\x96\x81", 3) == 0) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = s.data[i++];
        }
    }
    return n;
}

size_t bz_tokenizer_bytes(const bz_tokenizer *t, int32_t id, char *out)
{
    return id < 0 || id >= t->n_tokens ? 0 : token_bytes(t, id, out);
}

size_t bz_detok_push(bz_detok *d, const bz_tokenizer *t, int32_t id, bool show_control,
                     char out[BZ_DETOK_MAX])
{
    if (id < 0 || id >= t->n_tokens) {
        return 0;
    }
    size_t n = 0;
    if (t->flags[id] & BZ_TOKEN_HIDDEN) {
        /* Another part of the answer begins: nothing can complete an incomplete character. */
        n = bz_detok_flush(d, out);
        if (!show_control) {
            return n;
        }
    }
    char bytes[3 + BZ_MAX_PIECE];
    size_t len = d->n_held;
    memcpy(bytes, d->held, len);
    len += token_bytes(t, id, bytes + len);

    size_t whole = bz_utf8_complete(bytes, len);
    d->n_held = (uint8_t)(len - whole);
    memcpy(d->held, bytes + whole, len - whole);
    for (size_t i = 0; i < whole;) {
        uint32_t cp;
        size_t size = bz_utf8_decode(bytes + i, whole - i, &cp);
        n += bz_utf8_encode(cp, out + n);
        i += size;
    }
    return n;
}
