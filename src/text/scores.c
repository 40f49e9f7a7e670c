/* Gemma 3's vocabulary, which EmbeddingGemma has: SentencePiece BPE, whose merges follow from the
 * tokens. Two neighbors merge if their joined text is a token, the one of the highest score first.
 *
 * User-defined tokens are found in the text before anything is merged. Files spell the runs of
 * spaces among them as spaces or as U+2581; here both are U+2581, and so is the text. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/vocab.h"

#define KEY_SCORES "tokenizer.ggml.scores"

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for the tokenizer's tables.");
}

typedef struct scored {
    double score;
    uint32_t id;
} scored;

static int highest_first(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score ? 1 : -1)
           : x->id < y->id      ? -1
                                : x->id > y->id;
}

static bz_status rank_tokens(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    const bz_gguf_kv *kv = bz_gguf_find(gguf, KEY_SCORES);
    const size_t n = (size_t)t->n_tokens;
    if (!kv->is_array || kv->count != n) {
        return bz_fail(err, BZ_BAD_FILE, KEY_SCORES " does not have one number for each token.");
    }
    scored *order = malloc(n * sizeof *order);
    t->score_rank = malloc(n * sizeof *t->score_rank);
    bz_status status = order && t->score_rank ? BZ_OK : no_memory(err);
    for (size_t i = 0; i < n && status == BZ_OK; i++) {
        order[i].id = (uint32_t)i;
        if (!bz_gguf_get_f64(kv, i, &order[i].score) || order[i].score != order[i].score) {
            status = bz_fail(err, BZ_BAD_FILE, KEY_SCORES " has no number for token %zu.", i);
        }
    }
    if (status == BZ_OK) {
        qsort(order, n, sizeof *order, highest_first);
    }
    uint32_t rank = 0;
    for (size_t i = 0; i < n && status == BZ_OK; i++) {
        rank += i > 0 && order[i].score != order[i - 1].score;
        t->score_rank[order[i].id] =
            t->flags[order[i].id] & BZ_TOKEN_NOT_TEXT ? BZ_RANK_NONE : rank;
    }
    free(order);
    return status;
}

/* Text can be split between two characters that are nowhere neighbors inside a token. */
static bz_status mark_borders(bz_tokenizer *t, bz_error *err)
{
    size_t bytes = 0;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        bytes += t->text[id].len;
    }
    t->border_bits = 6;
    while (t->border_bits < 32 && (size_t)1 << t->border_bits < 4 * bytes) {
        t->border_bits++;
    }
    t->borders = calloc(((size_t)1 << t->border_bits) / 64, sizeof *t->borders);
    if (!t->borders) {
        return no_memory(err);
    }
    for (int32_t id = 0; id < t->n_tokens; id++) {
        const bz_str s = t->text[id];
        uint32_t before = 0, cp;
        for (size_t i = 0; i < s.len; before = cp) {
            const bool first = i == 0;
            i += bz_utf8_decode(s.data + i, s.len - i, &cp);
            if (!first) {
                const uint64_t bit = bz_border_bit(t, before, cp);
                t->borders[bit >> 6] |= (uint64_t)1 << (bit & 63);
            }
        }
    }
    return BZ_OK;
}

/* Tokens that text is searched for. Control tokens are not among them: text never becomes one. */
static bool is_literal(const bz_tokenizer *t, int32_t id)
{
    return (t->flags[id] & BZ_TOKEN_LITERAL) && !(t->flags[id] & BZ_TOKEN_NOT_TEXT) &&
           t->text[id].len && bz_utf8_valid(t->text[id].data, t->text[id].len);
}

static bz_status collect_literals(bz_tokenizer *t, bz_error *err)
{
    size_t n = 0, bytes = 0;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        if (is_literal(t, id)) {
            n++;
            bytes += 3 * t->text[id].len;
        }
    }
    t->literals = malloc((n + 1) * sizeof *t->literals);
    t->literal_bytes = malloc(bytes + 1);
    if (!t->literals || !t->literal_bytes) {
        return no_memory(err);
    }
    char *to = t->literal_bytes;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        if (!is_literal(t, id)) {
            continue;
        }
        char *start = to;
        for (size_t i = 0; i < t->text[id].len; i++) {
            if (t->text[id].data[i] == ' ') {
                to += bz_utf8_encode(BZ_SPACE_MARK, to);
            } else {
                *to++ = t->text[id].data[i];
            }
        }
        t->literals[t->n_literals++] =
            (bz_special_text){.text = {start, (size_t)(to - start)}, .id = id};
    }
    bz_vocab_sort_texts(t->literals, t->n_literals, t->literal_first);
    return BZ_OK;
}

bz_status bz_vocab_load_scores(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    /* In Gemma 3's vocabulary too it is an HTML tag; files mark it as a control token. */
    const int32_t strike = bz_tokenizer_find(t, "</s>", 4);
    if (strike >= 0) {
        t->flags[strike] = BZ_TOKEN_LITERAL;
    }
    bz_status status = rank_tokens(t, gguf, err);
    if (status == BZ_OK) {
        status = mark_borders(t, err);
    }
    return status == BZ_OK ? collect_literals(t, err) : status;
}
