/* Any text, in any vocabulary without merges: must agree with an encoder that is written as plainly
 * as possible, and must give the text back.
 *
 * Input: a count of tokens, each as length, type, score and text; then the text. Tokens for all
 * bytes are added. */
#include <stdlib.h>
#include <string.h>

#include "../support/gguf_build.h"
#include "base/utf8.h"
#include "text/vocab.h"

enum { MAX_TOKENS = 64, BYTES = 256, MAX_TEXT = 600, CONTROL = 3, NORMAL = 1, BYTE = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

typedef struct vocab {
    char text[MAX_TOKENS + BYTES][32];
    const char *list[MAX_TOKENS + BYTES];
    int32_t type[MAX_TOKENS + BYTES];
    float score[MAX_TOKENS + BYTES];
    size_t n;
} vocab;

static void add(vocab *v, const char *text, size_t len, int type, float score)
{
    memcpy(v->text[v->n], text, len);
    v->text[v->n][len] = 0;
    v->list[v->n] = v->text[v->n];
    v->type[v->n] = type;
    v->score[v->n++] = score;
}

static void read_vocab(vocab *v, const uint8_t **p, const uint8_t *end)
{
    static const char hex[] = "0123456789ABCDEF";
    v->n = 0;
    for (int n = *p < end ? *(*p)++ % MAX_TOKENS : 0; n > 0 && end - *p > 3; n--) {
        const uint8_t len = (*p)[0] & 15, type = (*p)[1] % 7, score = (*p)[2];
        *p += 3;
        const size_t got = len < (size_t)(end - *p) ? len : (size_t)(end - *p);
        if (!memchr(*p, 0, got)) {
            add(v, (const char *)*p, got, type, -(float)(score % 16));
        }
        *p += got;
    }
    for (int b = 0; b < BYTES; b++) {
        const char name[6] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        add(v, name, sizeof name, BYTE, 0);
    }
}

/* ---- the plain encoder ------------------------------------------------------------------------
 */

typedef struct part {
    size_t at, len;
    bool fixed; /* found whole, or not a token: it merges with nothing */
} part;

static int32_t find(const bz_tokenizer *t, const char *text, size_t len)
{
    for (int32_t i = 0; i < t->n_tokens && len; i++) {
        if (t->text[i].len == len && memcmp(t->text[i].data, text, len) == 0) {
            return i;
        }
    }
    return -1;
}

/* A user-defined token as it is found in the text. */
static size_t marked(bz_str s, char out[64])
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        n += s.data[i] == ' ' ? bz_utf8_encode(BZ_SPACE_MARK, out + n)
                              : (out[n] = s.data[i], (size_t)1);
    }
    return n;
}

static size_t literal_at(const bz_tokenizer *t, const char *text, size_t len)
{
    size_t best = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        char own[64];
        const size_t n = marked(t->text[i], own);
        const bool can = t->flags[i] & BZ_TOKEN_LITERAL && !(t->flags[i] & BZ_TOKEN_NOT_TEXT) &&
                         bz_utf8_valid(t->text[i].data, t->text[i].len);
        if (can && n > best && n <= len && memcmp(own, text, n) == 0) {
            best = n;
        }
    }
    return best;
}

static size_t encode(const bz_tokenizer *t, const vocab *v, const char *text, size_t len,
                     part parts[3 * MAX_TEXT])
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        size_t used = literal_at(t, text + i, len - i);
        const bool whole = used > 0;
        used = whole ? used : bz_utf8_decode(text + i, len - i, &cp);
        parts[n++] = (part){i, used, whole || find(t, text + i, used) < 0};
        i += used;
    }
    for (;;) {
        size_t best = n;
        float high = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const int32_t id = parts[i].fixed || parts[i + 1].fixed
                                   ? -1
                                   : find(t, text + parts[i].at, parts[i].len + parts[i + 1].len);
            if (id >= 0 && !(t->flags[id] & BZ_TOKEN_NOT_TEXT) &&
                (best == n || v->score[id] > high)) {
                best = i;
                high = v->score[id];
            }
        }
        if (best == n) {
            return n;
        }
        parts[best].len += parts[best + 1].len;
        memmove(parts + best + 1, parts + best + 2, (n - best - 2) * sizeof *parts);
        n--;
    }
}

/* ---- comparing --------------------------------------------------------------------------------
 */

static void check_text(const bz_tokenizer *t, const vocab *v, const char *text, size_t len)
{
    static char seen[3 * MAX_TEXT + 1], back[3 * MAX_TEXT + BZ_DETOK_MAX];
    static part parts[3 * MAX_TEXT];
    bz_ids ids = {0};
    size_t n = 0, at = 0, n_back = 0;
    must(bz_tokenize_pieces(t, &(bz_piece){text, len, false}, 1, &ids, NULL) == BZ_OK);
    for (size_t i = 0; i < len;) {
        uint32_t cp;
        i += bz_utf8_decode(text + i, len - i, &cp);
        n += bz_utf8_encode(cp == ' ' ? BZ_SPACE_MARK : cp, seen + n);
    }
    const size_t n_parts = encode(t, v, seen, n, parts);
    bz_detok d = {0};
    for (size_t i = 0; i < n_parts; i++) {
        const part *p = &parts[i];
        must(at < ids.n);
        const bz_str got = t->text[ids.id[at]];
        char own[64];
        const bool is_byte = t->flags[ids.id[at]] & BZ_TOKEN_BYTE;
        if (is_byte) {
            for (size_t b = 0; b < p->len; b++) {
                must(at < ids.n && ids.id[at++] == t->byte_id[(unsigned char)seen[p->at + b]]);
            }
        } else {
            const bool same = marked(got, own) == p->len && memcmp(own, seen + p->at, p->len) == 0;
            must(same && !(t->flags[ids.id[at++]] & BZ_TOKEN_NOT_TEXT));
        }
    }
    must(at == ids.n);
    for (size_t i = 0; i < ids.n; i++) { /* and back, spaces as such */
        n_back += bz_detok_push(&d, t, ids.id[i], false, back + n_back);
        must(n_back <= 3 * MAX_TEXT);
    }
    must(bz_detok_flush(&d, back + n_back) == 0);
    n = 0;
    for (size_t i = 0; i < n_back;) {
        uint32_t cp;
        i += bz_utf8_decode(back + i, n_back - i, &cp);
        char mark[4];
        const size_t k = bz_utf8_encode(cp == ' ' ? BZ_SPACE_MARK : cp, mark);
        must(memcmp(seen + n, mark, k) == 0);
        n += k;
    }
    bz_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static vocab v;
    const uint8_t *p = data, *end = data + size;
    gguf_build b;
    bz_gguf gguf;
    bz_tokenizer *t;
    bz_error err = {0};
    uint64_t need;
    read_vocab(&v, &p, end);
    gb_init(&b);
    gb_str(&b, "tokenizer.ggml.model", "llama");
    gb_strings(&b, "tokenizer.ggml.tokens", v.list, v.n);
    gb_array(&b, "tokenizer.ggml.scores", BZ_GGUF_F32, v.score, v.n);
    gb_array(&b, "tokenizer.ggml.token_type", BZ_GGUF_I32, v.type, v.n);
    gb_finish(&b);
    must(bz_gguf_parse(&gguf, b.bytes, b.size, b.file_size, &need, &err) == BZ_GGUF_DONE);
    const size_t len = (size_t)(end - p);
    if (bz_tokenizer_new(&t, &gguf, &err) == BZ_OK) {
        check_text(t, &v, (const char *)p, len < MAX_TEXT ? len : MAX_TEXT);
        bz_tokenizer_free(t);
    } else {
        must(t == NULL && err.code != BZ_OK && err.text[0]);
    }
    bz_gguf_free(&gguf);
    gb_free(&b);
    return 0;
}
