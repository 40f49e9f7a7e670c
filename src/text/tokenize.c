/* Text to token ids.
 *
 *   pieces -> one text -> split at special tokens -> characters, spaces as U+2581
 *          -> runs that no merge can cross -> merging by rank -> ids
 */
#include "text/bpe.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef struct writer {
    const bz_tokenizer *t;
    bz_bpe bpe;
    bz_ids *out;
} writer;

/* All functions below return false only when out of memory. */

static bool put_bytes(writer *e, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!bz_ids_push(e->out, e->t->byte_id[(unsigned char)text[i]])) {
            return false;
        }
    }
    return true;
}

static bool put_symbol(writer *e, uint32_t symbol)
{
    const bz_tokenizer *t = e->t;
    if (symbol < (uint32_t)t->n_tokens && !(t->flags[symbol] & BZ_TOKEN_NOT_TEXT)) {
        return bz_ids_push(e->out, (int32_t)symbol);
    }
    return put_bytes(e, t->text[symbol].data, t->text[symbol].len);
}

/* Merges the run collected so far and writes its tokens. */
static bool finish_run(writer *e)
{
    if (!bz_bpe_merge(e->t, &e->bpe)) {
        return false;
    }
    for (size_t i = 0; i < e->bpe.n; i++) {
        if (!put_symbol(e, e->bpe.symbol[i])) {
            return false;
        }
    }
    e->bpe.n = 0;
    return true;
}

/* A run of newlines that is a token becomes that token, whatever the merges would do. */
static bool put_newlines(writer *e, const char *text, size_t n)
{
    const bz_tokenizer *t = e->t;
    uint32_t whole = n <= BZ_MAX_PIECE ? bz_vocab_symbol(t, text, n) : BZ_SYMBOL_NONE;
    if (whole < (uint32_t)t->n_tokens) {
        return put_symbol(e, whole);
    }
    if (t->ascii['\n'] == BZ_SYMBOL_NONE) {
        return put_bytes(e, text, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (!bz_bpe_push(&e->bpe, t->ascii['\n'])) {
            return false;
        }
    }
    return finish_run(e);
}

/* Text without special tokens. */
static bool put_text(writer *e, const char *text, size_t len)
{
    const bz_tokenizer *t = e->t;
    uint32_t previous = 0;
    for (size_t i = 0; i < len;) {
        if (text[i] == '\n') {
            size_t n = 1;
            while (i + n < len && text[i + n] == '\n') {
                n++;
            }
            if (!finish_run(e) || !put_newlines(e, text + i, n)) {
                return false;
            }
            i += n;
            continue;
        }
        uint32_t cp, symbol;
        char utf8[4];
        size_t n_utf8 = 0;
        i += bz_utf8_decode(text + i, len - i, &cp);
        if (cp == ' ') {
            cp = BZ_SPACE_MARK;
        }
        if (cp < 128) {
            symbol = t->ascii[cp];
        } else {
            n_utf8 = bz_utf8_encode(cp, utf8);
            symbol = bz_vocab_symbol(t, utf8, n_utf8);
        }
        if (e->bpe.n && !bz_vocab_joins(t, previous, cp) && !finish_run(e)) {
            return false;
        }
        previous = cp;
        if (symbol != BZ_SYMBOL_NONE) {
            if (!bz_bpe_push(&e->bpe, symbol)) {
                return false;
            }
            continue;
        }
        /* Not a token and in no merge: write it as byte tokens. */
        if (cp < 128) {
            n_utf8 = bz_utf8_encode(cp, utf8);
        }
        if (!finish_run(e) || !put_bytes(e, utf8, n_utf8)) {
            return false;
        }
    }
    return finish_run(e);
}

/* The same of a vocabulary without merges, which joins whatever is a token: user-defined texts
 * first, longest first, spaces as U+2581 in both. */
static bool put_scored_text(writer *e, const char *text, size_t len)
{
    const bz_tokenizer *t = e->t;
    char *marked = len <= SIZE_MAX / 3 ? malloc(3 * len + 1) : NULL; /* a space becomes three bytes,
                                                                        and so does a bad byte */
    size_t n = 0;
    if (!marked) {
        return false;
    }
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += bz_utf8_decode(text + i, len - i, &cp);
        n += bz_utf8_encode(cp == ' ' ? BZ_SPACE_MARK : cp, marked + n);
    }
    bool good = true;
    uint32_t previous = 0;
    for (size_t i = 0; i < n && good;) {
        size_t used;
        const int32_t literal = bz_vocab_literal_at(t, marked + i, n - i, &used);
        if (literal >= 0) {
            good = finish_run(e) && bz_ids_push(e->out, literal);
            i += used;
            continue;
        }
        uint32_t cp;
        used = bz_utf8_decode(marked + i, n - i, &cp);
        const uint32_t symbol = bz_vocab_symbol(t, marked + i, used);
        good = !e->bpe.n || bz_vocab_joins(t, previous, cp) || finish_run(e);
        if (symbol != BZ_SYMBOL_NONE) {
            good = good && bz_bpe_push(&e->bpe, symbol);
        } else { /* no token begins with or contains a character that is none */
            good = good && finish_run(e) && put_bytes(e, marked + i, used);
        }
        previous = cp;
        i += used;
    }
    free(marked);
    return good && finish_run(e);
}

static bool put_plain(writer *e, const char *text, size_t len)
{
    return e->t->score_rank ? put_scored_text(e, text, len) : put_text(e, text, len);
}

/* Finds the next range text[*at .. *end) of neighboring pieces that allow special tokens, and
 * moves *i past them. An empty piece that does not allow them ends a range too. */
static bool next_region(const bz_piece *pieces, size_t n_pieces, size_t *i, size_t *at, size_t *end)
{
    while (*i < n_pieces && !pieces[*i].specials) {
        *at += pieces[(*i)++].len;
    }
    *end = *at;
    while (*i < n_pieces && pieces[*i].specials) {
        *end += pieces[(*i)++].len;
    }
    return *end > *at || *i < n_pieces;
}

static bool put_pieces(writer *e, const bz_piece *pieces, size_t n_pieces, const char *text,
                       size_t len)
{
    const bz_tokenizer *t = e->t;
    size_t done = 0; /* bytes of text already written */
    size_t i = 0, at = 0, end = 0;
    while (next_region(pieces, n_pieces, &i, &at, &end)) {
        while (at < end) {
            int32_t id = bz_vocab_special_at(t, text + at, end - at);
            if (id < 0) {
                at++;
                continue;
            }
            if (!put_plain(e, text + done, at - done) || !bz_ids_push(e->out, id)) {
                return false;
            }
            at += t->text[id].len;
            done = at;
        }
    }
    return put_plain(e, text + done, len - done);
}

bz_status bz_tokenize_pieces(const bz_tokenizer *t, const bz_piece *pieces, size_t n_pieces,
                             bz_ids *out, bz_error *err)
{
    size_t len = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        if (pieces[i].len > INT32_MAX - len) { /* bpe.c has 32-bit positions */
            return bz_fail(err, BZ_BAD_REQUEST,
                           "The text is longer than 2 GiB, which is too long to tokenize.");
        }
        len += pieces[i].len;
    }
    if (len == 0) {
        return BZ_OK;
    }
    char *joined = NULL;
    const char *text = pieces[0].text;
    if (n_pieces > 1) {
        size_t at = 0;
        joined = malloc(len);
        for (size_t i = 0; joined && i < n_pieces; i++) {
            if (pieces[i].len) {
                memcpy(joined + at, pieces[i].text, pieces[i].len);
            }
            at += pieces[i].len;
        }
        text = joined;
    }
    writer e = {.t = t, .out = out};
    size_t before = out->n;
    bool good = text && put_pieces(&e, pieces, n_pieces, text, len);
    bz_bpe_free(&e.bpe);
    free(joined);
    if (!good) {
        out->n = before;
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to tokenize a text of %zu bytes.", len);
    }
    return BZ_OK;
}
