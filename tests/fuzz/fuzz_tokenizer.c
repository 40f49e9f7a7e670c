/* Any text, in any vocabulary: must not crash, must agree with the naive encoder, and
 * must give the text back.
 *
 * Input: a byte of flags. With VOCAB set, a vocabulary follows: a count of tokens, each
 * as length, type and text; a count of merges, each as length and text. Everything
 * after that is text, cut into pieces at each 0xFE byte; bit i of the next byte says
 * whether piece i allows specials.
 */
#include "text/tokenizer.h"
#include "base/utf8.h"
#include "../support/naive_bpe.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 1, OLLAMA = 2, NO_BYTES = 4, CUT = 0xFE, MAX_NAIVE = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint8_t take(const uint8_t **p, const uint8_t *end)
{
    return *p < end ? *(*p)++ : 0;
}

static size_t take_text(const uint8_t **p, const uint8_t *end, size_t len, const char **text)
{
    *text = (const char *)*p;
    len = len < (size_t)(end - *p) ? len : (size_t)(end - *p);
    *p += len;
    return len;
}

static void read_vocab(naive_vocab *v, const uint8_t **p, const uint8_t *end)
{
    const char *text;
    for (int n = take(p, end) & 63; n > 0; n--) {
        uint8_t len = take(p, end), type = take(p, end);
        size_t got = take_text(p, end, len & 31, &text);
        naive_add_token(v, text, got, type);
    }
    for (int n = take(p, end) & 127; n > 0; n--) {
        uint8_t len = take(p, end);
        size_t got = take_text(p, end, len & 31, &text);
        naive_add_merge(v, text, got);
    }
}

static void fixed_vocab(naive_vocab *v)
{
    static const char *const tokens[] = {"<pad>",
                                         "<eos>",
                                         "<bos>",
                                         "<unk>",
                                         "<|turn>",
                                         "<turn|>",
                                         "</s>",
                                         "\n",
                                         "\n\n",
                                         "\n\n\n",
                                         "a",
                                         "b",
                                         "c",
                                         "<",
                                         "t",
                                         "\xE2\x96\x81",
                                         "\xC3\xA9",
                                         "\xE6\x97\xA5",
                                         "ab",
                                         "abc",
                                         "aa",
                                         "aaa",
                                         "\xE2\x96\x81\x61",
                                         "\xE2\x96\x81\xE2\x96\x81",
                                         "\xE6\x97\xA5\x61"};
    static const char *const merges[] = {"a b",
                                         "a a",
                                         "aa a",
                                         "\n \n",
                                         "\n\n \n",
                                         "\xE2\x96\x81 a",
                                         "ab c",
                                         "a bc",
                                         "\xE2\x96\x81 \xE2\x96\x81",
                                         "b c",
                                         "\xE6\x97\xA5 a",
                                         "x y",
                                         "xy a",
                                         "< t"};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        naive_add_token(v, tokens[i], strlen(tokens[i]), i < 6 ? CONTROL : NORMAL);
    }
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        naive_add_merge(v, merges[i], strlen(merges[i]));
    }
}

/* The text as the model sees it: bad bytes as U+FFFD, U+2581 as a space. */
static size_t as_seen(char *out, const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += bz_utf8_decode(text + i, len - i, &cp);
        n += bz_utf8_encode(cp == 0x2581 ? ' ' : cp, out + n);
    }
    return n;
}

static void check_round_trip(const bz_tokenizer *t, const char *text, size_t len)
{
    bz_ids ids = {0};
    char out[BZ_DETOK_MAX];
    char *back = NULL, *want = malloc(3 * len + 1);
    size_t n_back = 0;
    must(bz_tokenize_pieces(t, &(bz_piece){text, len, false}, 1, &ids, NULL) == BZ_OK);
    back = malloc((ids.n + 1) * BZ_DETOK_MAX);
    bz_detok d = {0};
    for (size_t i = 0; i < ids.n; i++) {
        must(ids.id[i] >= 0 && ids.id[i] < bz_tokenizer_size(t));
        size_t n = bz_detok_push(&d, t, ids.id[i], false, out);
        must(n <= BZ_DETOK_MAX && bz_utf8_valid(out, n));
        memcpy(back + n_back, out, n);
        n_back += n;
    }
    must(bz_detok_flush(&d, out) == 0);
    n_back = as_seen(back, back, n_back); /* a space may have come as the bytes of U+2581 */
    size_t n_want = as_seen(want, text, len);
    must(n_back == n_want && memcmp(back, want, n_want) == 0);
    free(back);
    free(want);
    bz_ids_free(&ids);
}

/* Ids that no encoder produced, as a model may generate them. */
static void check_decoder(const bz_tokenizer *t, const uint8_t *data, size_t size)
{
    bz_detok d = {0};
    for (size_t i = 0; i < size; i++) {
        char out[BZ_DETOK_MAX];
        size_t n = bz_detok_push(&d, t, data[i] * 3 - 5, i & 1, out);
        must(n <= BZ_DETOK_MAX && bz_utf8_valid(out, n) && d.n_held <= 3);
    }
}

static void check_text(const bz_tokenizer *t, naive_vocab *v, bool literal, const uint8_t *p,
                       const uint8_t *end)
{
    uint8_t allow = take(&p, end);
    bz_piece pieces[8];
    size_t n = 0, len = (size_t)(end - p);
    const char *text = (const char *)p;
    while (n < 8) {
        const uint8_t *cut = n == 7 ? NULL : memchr(p, CUT, (size_t)(end - p));
        pieces[n] = (bz_piece){(const char *)p, (size_t)((cut ? cut : end) - p), allow >> n & 1};
        n++;
        if (!cut) {
            break;
        }
        p = cut + 1;
    }
    bz_ids ids = {0}, naive = {0};
    must(bz_tokenize_pieces(t, pieces, n, &ids, NULL) == BZ_OK);
    if (len <= MAX_NAIVE) {
        naive_encode(v, pieces, n, &naive);
        must(ids.n == naive.n &&
             (ids.n == 0 || memcmp(ids.id, naive.id, ids.n * sizeof *ids.id) == 0));
    }
    bz_ids_free(&ids);
    bz_ids_free(&naive);
    if (!literal) { /* a USER_DEFINED piece shows U+2581 as it stands */
        check_round_trip(t, text, len);
    }
}

/* A vocabulary, as a file has it and as the naive encoder does. */
typedef struct vocab {
    naive_vocab naive;
    gguf_build built;
    bz_gguf gguf;
    bz_tokenizer *tokenizer; /* NULL: refused */
    bool literal;
} vocab;

/* From v->naive; it stays where it is. */
static void finish_vocab(vocab *v, bool ollama)
{
    bz_error err = {0};
    uint64_t need;
    if (ollama) { /* so that the naive encoder sees the types that the file has */
        for (size_t i = 0; i < v->naive.n_tokens; i++) {
            int type = v->naive.token[i].type;
            v->naive.token[i].type = type == CONTROL || type == USER_DEFINED ? CONTROL : NORMAL;
        }
    }
    for (size_t i = 0; i < v->naive.n_tokens; i++) {
        v->literal = v->literal || v->naive.token[i].type == USER_DEFINED;
    }
    gb_init(&v->built);
    naive_put_keys(&v->naive, ollama, &v->built);
    gb_finish(&v->built);
    must(bz_gguf_parse(&v->gguf, v->built.bytes, v->built.size, v->built.file_size, &need, &err) ==
         BZ_GGUF_DONE);
    if (bz_tokenizer_new(&v->tokenizer, &v->gguf, &err) != BZ_OK) {
        must(v->tokenizer == NULL && err.code != BZ_OK && err.text[0]);
    }
}

static void free_vocab(vocab *v)
{
    bz_tokenizer_free(v->tokenizer);
    bz_gguf_free(&v->gguf);
    gb_free(&v->built);
    naive_free(&v->naive);
}

/* Made once: that takes a hundred times as long as the text of a usual input. */
static vocab *fixed(bool ollama)
{
    static vocab made[2];
    vocab *v = &made[ollama];
    if (!v->tokenizer) {
        fixed_vocab(&v->naive);
        naive_add_bytes(&v->naive, BYTE);
        finish_vocab(v, ollama);
        must(v->tokenizer != NULL);
    }
    return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *p = data, *end = data + size;
    const uint8_t flags = take(&p, end);
    vocab own = {0}, *v = &own;
    if (flags & VOCAB) {
        read_vocab(&own.naive, &p, end);
        if (!(flags & NO_BYTES)) {
            naive_add_bytes(&own.naive, BYTE);
        }
        finish_vocab(&own, flags & OLLAMA);
    } else {
        v = fixed(flags & OLLAMA);
    }
    if (v->tokenizer) {
        check_text(v->tokenizer, &v->naive, v->literal, p, end);
        check_decoder(v->tokenizer, data, size);
    }
    if (v == &own) {
        free_vocab(&own);
    }
    return 0;
}
