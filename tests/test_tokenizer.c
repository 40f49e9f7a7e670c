/* The tokenizer against recorded ids, against a naive encoder on random vocabularies,
 * and against whatever a user may type. Run from the repository's
 * root. BEZEL_GEMMA4=model.gguf adds the published vectors of the real vocabulary. */
#include "text/tokenizer.h"
#include "base/utf8.h"
#include "support/check.h"
#include "support/naive_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "build/golden/tokenizer/"

static uint32_t random_state = 20;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * n >> 24);
}

/* ---- a tokenizer and what it stands on ------------------------------------------------ */

typedef struct subject {
    uint8_t *bytes;
    bz_gguf gguf;
    bz_tokenizer *t;
    naive_vocab naive;
} subject;

static bool open_bytes(subject *s, uint8_t *bytes, size_t len, size_t file_size)
{
    bz_error err = {0};
    uint64_t need;
    *s = (subject){.bytes = bytes};
    if (!CHECKF(bz_gguf_parse(&s->gguf, bytes, len, file_size, &need, &err) == BZ_GGUF_DONE, "%s",
                err.text)) {
        return false;
    }
    naive_from_gguf(&s->naive, &s->gguf);
    return CHECKF(bz_tokenizer_new(&s->t, &s->gguf, &err) == BZ_OK, "%s", err.text);
}

static void close_subject(subject *s)
{
    bz_tokenizer_free(s->t);
    bz_gguf_free(&s->gguf);
    naive_free(&s->naive);
    free(s->bytes);
}

static bool open_file(subject *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!CHECKF(f != NULL, "cannot open %s: run from the repository's root", path)) {
        return false;
    }
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f), len = size < 64 << 20 ? size : 64 << 20;
    rewind(f);
    uint8_t *bytes = malloc(len);
    size_t got = bytes ? fread(bytes, 1, len, f) : 0;
    fclose(f);
    return CHECK(got == len) && open_bytes(s, bytes, len, size);
}

static bool open_vocab(subject *s, const naive_vocab *v, bool ollama)
{
    gguf_build b;
    gb_init(&b);
    naive_put_keys(v, ollama, &b);
    gb_finish(&b);
    size_t len = b.size, file_size = (size_t)b.file_size;
    uint8_t *copy = malloc(len);
    if (copy) {
        memcpy(copy, b.bytes, len);
    }
    gb_free(&b);
    return CHECK(copy != NULL) && open_bytes(s, copy, len, file_size);
}

static bz_ids encode(const subject *s, const bz_piece *pieces, size_t n)
{
    bz_ids ids = {0};
    bz_error err = {0};
    CHECKF(bz_tokenize_pieces(s->t, pieces, n, &ids, &err) == BZ_OK, "%s", err.text);
    return ids;
}

static bz_ids encode_text(const subject *s, const char *text, bool specials)
{
    return encode(s, &(bz_piece){text, strlen(text), specials}, 1);
}

static bool same(bz_ids a, bz_ids b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.id, b.id, a.n * sizeof *a.id) == 0);
}

static bool are(bz_ids a, const int32_t *ids, size_t n)
{
    return same(a, (bz_ids){(int32_t *)ids, n, n});
}
#define IDS(...)                                                                                   \
    (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

/* The decoded text of ids; the caller frees it. */
static char *decode(const subject *s, bz_ids ids, bool show_control, size_t *len)
{
    char *text = malloc((ids.n + 1) * BZ_DETOK_MAX);
    bz_detok d = {0};
    *len = 0;
    for (size_t i = 0; text && i < ids.n; i++) {
        size_t n = bz_detok_push(&d, s->t, ids.id[i], show_control, text + *len);
        CHECK(n <= BZ_DETOK_MAX && bz_utf8_valid(text + *len, n));
        *len += n;
    }
    if (text) {
        *len += bz_detok_flush(&d, text + *len);
    }
    return text;
}

/* Does the text come back? A typed U+2581 is a space to the model, and stays one. */
static bool comes_back(const subject *s, const char *text, size_t len)
{
    bz_ids ids = encode(s, &(bz_piece){text, len, false}, 1);
    size_t got, at = 0;
    char *back = decode(s, ids, false, &got);
    bool good = back != NULL;
    for (size_t i = 0; good && i < len;) {
        uint32_t cp;
        char want[4];
        i += bz_utf8_decode(text + i, len - i, &cp);
        size_t n = bz_utf8_encode(cp == 0x2581 ? ' ' : cp, want);
        good = got - at >= n && memcmp(back + at, want, n) == 0;
        at += n;
    }
    good = good && at == got;
    free(back);
    bz_ids_free(&ids);
    return good;
}

/* ---- recorded ids ---------------------------------------------------------------------- */

static size_t unescape(char *text)
{
    size_t n = 0;
    for (char *p = text; *p; p++) {
        char c = *p;
        if (c == '\\') {
            c = *++p;
            c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 's' ? ' ' : c;
        }
        text[n++] = c;
    }
    return n;
}

static void recorded(const subject *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    char line[4096];
    int cases = 0;
    if (!CHECKF(f != NULL, "cannot open %s", path)) {
        return;
    }
    while (fgets(line, sizeof line, f)) {
        char *tab = strchr(line, '\t');
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#' || !tab) {
            continue;
        }
        *tab = 0;
        bz_ids want = {0};
        for (char *p = line, *end; *p; p = end) {
            bz_ids_push(&want, (int32_t)strtol(p, &end, 10));
        }
        size_t len = unescape(tab + 1);
        bz_ids got = encode(s, &(bz_piece){tab + 1, len, true}, 1);
        CHECKF(same(got, want), "%s", tab + 1);
        bz_ids_free(&got);
        bz_ids_free(&want);
        cases++;
    }
    fclose(f);
    CHECKF(cases >= 18, "only %d cases in %s", cases, path);
}

/* ---- the naive encoder ------------------------------------------------------------------ */

enum { MAX_TEXT = 4000 };

/* Text from a few pieces, so that merges and specials occur. */
static size_t random_text(char *out, size_t limit, const naive_vocab *v)
{
    static const char *const bits[] = {"a",
                                       "b",
                                       "c",
                                       "d",
                                       " ",
                                       "  ",
                                       "\n",
                                       "\n\n\n",
                                       "<",
                                       ">",
                                       "|",
                                       "\xC3\xA9",
                                       "\xE6\x97\xA5",
                                       "\xF0\x9F\x99\x82",
                                       "\xE2\x96\x81",
                                       "\t",
                                       "\xFF",
                                       "\xE2\x96",
                                       "the ",
                                       "turn",
                                       "<|turn>",
                                       "</s>",
                                       "<0x41>",
                                       "of the",
                                       "x"};
    uint32_t kind = below(4), few = 1 + below(4); /* kind 2: few letters, which form long runs */
    size_t n = 0, want = below(below(20) ? 120 : (uint32_t)limit);
    if (kind == 2 && below(2)) {
        want = below(800);
    }
    while (n < want && n + 400 < limit) {
        const char *bit;
        size_t len;
        if (kind == 0 || (kind == 1 && below(3))) { /* pieces of the vocabulary itself */
            const naive_entry *e = &v->token[below((uint32_t)v->n_tokens)];
            bit = e->text;
            len = e->len;
        } else {
            bit = bits[below(kind == 2 ? few : sizeof bits / sizeof *bits)];
            len = strlen(bit);
        }
        memcpy(out + n, bit, len);
        n += len;
        if (below(50) == 0) {
            out[n++] = (char)below(256);
        }
    }
    return n;
}

static bool agrees(subject *s, const bz_piece *pieces, size_t n)
{
    bz_ids got = encode(s, pieces, n), want = {0};
    naive_encode(&s->naive, pieces, n, &want);
    bool good = same(got, want);
    bz_ids_free(&got);
    bz_ids_free(&want);
    return good;
}

static void compare(subject *s, int texts)
{
    static char text[MAX_TEXT + 8];
    for (int k = 0; k < texts; k++) {
        size_t len = random_text(text, MAX_TEXT, &s->naive);
        bz_piece pieces[8];
        size_t n = 1 + below(8), at = 0;
        for (size_t i = 0; i < n; i++) { /* cut anywhere, inside characters too */
            size_t part = i + 1 == n ? len - at : below((uint32_t)(len - at) + 1);
            pieces[i] = (bz_piece){text + at, part, below(2)};
            at += part;
        }
        bz_piece whole = {text, len, false};
        CHECKF(agrees(s, &whole, 1), "plain text %d of %zu bytes", k, len);
        whole.specials = true;
        CHECKF(agrees(s, &whole, 1), "text %d of %zu bytes with specials", k, len);
        CHECKF(agrees(s, pieces, n), "text %d of %zu bytes in %zu pieces", k, len, n);
    }
}

/* Texts over a small alphabet as tokens; merges of known texts in random order, some
 * of which lead out of the vocabulary, come twice, or can never apply. */
static void random_vocab(naive_vocab *v)
{
    static const char *const alphabet[] = {"a",
                                           "b",
                                           "c",
                                           "d",
                                           "\xE2\x96\x81",
                                           "\n",
                                           "<",
                                           "|",
                                           ">",
                                           "\xC3\xA9",
                                           "\xE6\x97\xA5",
                                           "\xF0\x9F\x99\x82",
                                           "\xEF\xBF\xBD",
                                           "t"};
    static const char *const odd[] = {"a b c",   " a b",   "a  b",     "\xE2 \x96\x81",
                                      "\xFF a",  "a \xFF", "<|turn >", "<0x4 1>",
                                      "<0x41 >", "</ s>",  "\n a",     "a \n"};
    char known[160][40];
    size_t n_known = 0;
    bool dense = below(2); /* few letters, many merges */
    uint32_t letters = dense ? 2 + below(2) : 2 + below(12);
    for (uint32_t i = 0; i < letters; i++) {
        snprintf(known[n_known++], 40, "%s", alphabet[below(4) ? i : below(14)]);
    }
    naive_add_token(v, "<pad>", 5, CONTROL);
    naive_add_token(v, "<eos>", 5, NORMAL);
    naive_add_token(v, "<bos>", 5, CONTROL);
    naive_add_token(v, "<|turn>", 7, CONTROL);
    naive_add_token(v, "</s>", 4, below(2) ? CONTROL : NORMAL);
    naive_add_token(v, "", 0, NORMAL);
    naive_add_bytes(v, below(2) ? BYTE : below(2) ? CONTROL : NORMAL);
    uint32_t merges = dense ? 40 + below(100) : below(140);
    for (uint32_t i = 0; i < merges; i++) {
        char merge[100];
        if (below(12) == 0) {
            const char *m = odd[below(sizeof odd / sizeof *odd)];
            naive_add_merge(v, m, strlen(m));
            continue;
        }
        const char *a = known[below((uint32_t)n_known)], *b = known[below((uint32_t)n_known)];
        naive_add_merge(v, merge, (size_t)snprintf(merge, sizeof merge, "%s %s", a, b));
        if (strlen(a) + strlen(b) < 30 && n_known < 160) {
            size_t n = strlen(a); /* from the merge, without its space */
            memcpy(known[n_known], merge, n);
            strcpy(known[n_known++] + n, merge + n + 1);
        }
    }
    for (size_t i = v->n_merges; below(2) && i > 1; i--) { /* sometimes ranks in no order at all */
        size_t j = below((uint32_t)i);
        naive_entry swap = v->merge[i - 1];
        v->merge[i - 1] = v->merge[j];
        v->merge[j] = swap;
        v->merge[i - 1].at = (int32_t)(i - 1);
        v->merge[j].at = (int32_t)j;
    }
    for (size_t i = 0; i < n_known; i++) {
        int type = below(12) ? NORMAL : (int)(1 + below(5));
        if (below(6) && naive_find(v, known[i], strlen(known[i])) < 0) {
            naive_add_token(v, known[i], strlen(known[i]), type);
            free(v->token_by_text); /* sorted before this token came */
            v->token_by_text = NULL;
        }
    }
}

static void random_vocabularies(void)
{
    begin("300 random vocabularies against the naive encoder");
    for (int i = 0; i < 300; i++) {
        naive_vocab v = {0};
        subject s;
        random_vocab(&v);
        if (open_vocab(&s, &v, false)) {
            compare(&s, 12);
            for (int32_t id = 0; id < bz_tokenizer_size(s.t); id++) {
                CHECK(bz_tokenizer_is_control(s.t, id) == naive_is_special(&s.naive, id));
            }
        }
        close_subject(&s);
        naive_free(&v);
    }
}

/* ---- pieces and specials ------------------------------------------------------------------ */

static void specials(const subject *s)
{
    begin("specials only in pieces that allow them");
    bz_ids ids = encode_text(s, "<|turn>", true);
    CHECK(are(ids, IDS(105)));
    bz_ids_free(&ids);
    ids = encode_text(s, "<|turn>", false);
    CHECK(ids.n > 1 && !bz_tokenizer_is_control(s->t, ids.id[0]));
    bz_ids_free(&ids);
    ids = encode_text(s, "</s>", true);
    CHECK(ids.n > 1);
    bz_ids_free(&ids);

    static const struct {
        bz_piece piece[4];
        size_t n;
        int turns; /* specials expected */
    } cases[] = {
        {{{"<|tu", 4, true}, {"rn>", 3, true}}, 2, 1},
        {{{"<|tu", 4, true}, {"", 0, true}, {"rn>", 3, true}}, 3, 1},
        {{{"<|tu", 4, true}, {"rn>", 3, false}}, 2, 0},
        {{{"<|tu", 4, false}, {"rn>", 3, true}}, 2, 0},
        {{{"<|tu", 4, false}, {"rn>", 3, false}}, 2, 0},
        {{{"<|tu", 4, true}, {"", 0, false}, {"rn>", 3, true}}, 3, 0},
        {{{"<|turn>", 7, true}, {"<|turn>", 7, false}, {"<|turn>", 7, true}}, 3, 2},
        {{{"<", 1, false}, {"<|turn>", 7, true}, {">", 1, false}}, 3, 1},
        {{{"<|", 2, true}, {"t", 1, true}, {"urn", 3, false}, {">", 1, true}}, 4, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int turns = 0;
        ids = encode(s, cases[i].piece, cases[i].n);
        for (size_t k = 0; k < ids.n; k++) {
            turns += ids.id[k] == 105;
        }
        CHECKF(turns == cases[i].turns, "case %zu: %d", i, turns);
        bz_ids_free(&ids);
    }

    begin("appending to a list that has ids already, and nothing at all");
    bz_error err;
    ids = (bz_ids){0};
    CHECK(bz_ids_push(&ids, 2));
    CHECK(bz_tokenize_pieces(s->t, &(bz_piece){"\n", 1, false}, 1, &ids, &err) == BZ_OK);
    CHECK(bz_tokenize_pieces(s->t, NULL, 0, &ids, &err) == BZ_OK);
    CHECK(bz_tokenize_pieces(s->t, &(bz_piece){NULL, 0, true}, 1, &ids, &err) == BZ_OK);
    CHECK(are(ids, IDS(2, 107)));
    bz_ids_free(&ids);

    begin("runs of newlines and NUL bytes");
    ids = encode_text(s, "\n\n\n\n", false);
    CHECK(are(ids, IDS(110)));
    bz_ids_free(&ids);
    ids = encode(s, &(bz_piece){"\0\n\0", 3, true}, 1);
    CHECK(are(ids, IDS(238, 107, 238)));
    bz_ids_free(&ids);
    ids = encode_text(s, "\xE2\x96", false); /* cut short: one U+FFFD per byte */
    CHECK(are(ids, IDS(477, 429, 427, 477, 429, 427)));
    bz_ids_free(&ids);

    begin("texts as large as 2 GiB are refused");
    bz_piece huge[2] = {{"x", 1, false}, {"x", SIZE_MAX, false}};
    CHECK(bz_tokenize_pieces(s->t, huge, 2, &ids, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "2 GiB"));
}

static void special_ids(const subject *s)
{
    begin("special ids, end tokens and lookups");
    const bz_special_ids *x = bz_tokenizer_special(s->t);
    CHECK(x->pad == 0 && x->eos == 1 && x->bos == 2 && x->unk == 3 && x->mask == 4);
    CHECK(x->tool == 46 && x->tool_end == 47 && x->tool_call == 48 && x->tool_call_end == 49);
    CHECK(x->tool_response == 50 && x->tool_response_end == 51 && x->quote == 52);
    CHECK(x->think == 98 && x->channel == 100 && x->channel_end == 101 && x->turn == 105 &&
          x->turn_end == 106);
    int32_t n = bz_tokenizer_size(s->t);
    CHECK(x->image_begin == n - 7 && x->audio_begin == n - 6 && x->image == n - 5 &&
          x->audio == n - 4);
    CHECK(x->image_end == n - 3 && x->audio_end == n - 2 && x->video == n - 1);
    int ends = 0, controls = 0;
    for (int32_t id = -2; id < n + 2; id++) {
        ends += bz_tokenizer_is_end(s->t, id);
        controls += bz_tokenizer_is_control(s->t, id);
        bz_str piece = bz_tokenizer_piece(s->t, id);
        CHECK(id < 0 || id >= n ? piece.len == 0
                                : bz_tokenizer_find(s->t, piece.data, piece.len) == id);
    }
    CHECK(ends == 3 && bz_tokenizer_is_end(s->t, 1) && bz_tokenizer_is_end(s->t, 106) &&
          bz_tokenizer_is_end(s->t, 50));
    CHECKF(controls == 24, "%d", controls);
    CHECK(bz_tokenizer_find(s->t, "", 0) == -1 &&
          bz_tokenizer_find(s->t, "no such piece", 13) == -1);
}

/* ---- back to text -------------------------------------------------------------------------- */

static bool shows(const subject *s, bz_ids ids, bool show_control, const char *want)
{
    size_t len;
    char *text = decode(s, ids, show_control, &len);
    bool good = text && len == strlen(want) && memcmp(text, want, len) == 0;
    CHECKF(good, "'%.*s' instead of '%s'", (int)len, text ? text : "", want);
    free(text);
    return good;
}

static void decoding(const subject *s)
{
    begin("decoding: spaces, bytes, controls, broken characters");
    int32_t mark = bz_tokenizer_find(s->t, "\xE2\x96\x81", 3), a = bz_tokenizer_find(s->t, "a", 1);
#define SHOWS(control, want, ...)                                                                  \
    shows(s, (bz_ids){(int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / 4, 0}, control, \
          want)
    SHOWS(false, " a", mark, a);
    SHOWS(false, "  a\n\n", 138, a, 108);
    SHOWS(false, "\xE2\x82\xAC", 238 + 0xE2, 238 + 0x82, 238 + 0xAC);
    SHOWS(false, "\xEF\xBF\xBD\xEF\xBF\xBD", 238 + 0xE2, 238 + 0x82); /* flushed */
    SHOWS(false,
          "\xEF\xBF\xBD\xEF\xBF\xBD"
          "a",
          238 + 0xE2, 238 + 0x82, a); /* interrupted */
    SHOWS(false, "\xEF\xBF\xBD\xE2\x82\xAC", 238 + 0xE2, 238 + 0xE2, 238 + 0x82, 238 + 0xAC);
    SHOWS(false, "\xEF\xBF\xBD", 238 + 0x80);
    SHOWS(false, "aa", a, 106, a);
    SHOWS(true, "<|turn>a<turn|>", 105, a, 106);
    SHOWS(false, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD", 238 + 0xE2, 238 + 0x82, 106,
          238 + 0xAC); /* not across a turn */
    SHOWS(false, "aa", -1, a, 1 << 30, a, bz_tokenizer_size(s->t));
    SHOWS(false, "</s>", 212);
    SHOWS(false, "<unused5>", 5);
    SHOWS(false, "a", 100, a,
          48); /* USER_DEFINED in one flavor, CONTROL in the other: hidden in both */
#undef SHOWS

    begin("a character appears with its last byte");
    bz_detok d = {0};
    char out[BZ_DETOK_MAX];
    CHECK(bz_detok_push(&d, s->t, 238 + 0xF0, false, out) == 0);
    CHECK(bz_detok_push(&d, s->t, 238 + 0x9F, false, out) == 0);
    CHECK(bz_detok_push(&d, s->t, 238 + 0x99, false, out) == 0);
    CHECK(bz_detok_push(&d, s->t, 238 + 0x82, false, out) == 4 &&
          memcmp(out, "\xF0\x9F\x99\x82", 4) == 0);
    CHECK(bz_detok_flush(&d, out) == 0);

    begin("random ids never decode to half a character");
    for (int k = 0; k < 300; k++) {
        bz_ids ids = {0};
        size_t len;
        for (uint32_t i = below(60); i > 0; i--) {
            bz_ids_push(&ids, (int32_t)(below(2) ? 238 + below(256)
                                                 : below((uint32_t)bz_tokenizer_size(s->t))));
        }
        char *text = decode(s, ids, below(2), &len); /* checks each step */
        CHECK(bz_utf8_valid(text, len));
        free(text);
        bz_ids_free(&ids);
    }
}

static void round_trips(const subject *s)
{
    static char text[MAX_TEXT + 8];
    begin("text comes back from its ids");
    for (int k = 0; k < 1000; k++) {
        size_t len = random_text(text, MAX_TEXT, &s->naive);
        CHECKF(comes_back(s, text, len), "text %d of %zu bytes", k, len);
    }
}

static void megabyte(const subject *s)
{
    begin("a megabyte without spaces");
    size_t len = 1 << 20;
    char *text = malloc(len);
    if (!CHECK(text != NULL)) {
        return;
    }
    static const char *const patterns[] = {"a",    "ab",  "theand", " ", "\n", "\xE6\x97\xA5",
                                           "\xFF", "aab", NULL};
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        for (size_t i = 0; i < len; i++) {
            text[i] = patterns[p] ? patterns[p][i % strlen(patterns[p])] : "etaoinshr"[below(9)];
        }
        CHECKF(comes_back(s, text, len), "pattern %zu", p);
    }
    free(text);
}

int main(void)
{
    static const char *const names[] = {"nano", "tiny"};
    subject s, o;
    for (size_t i = 0; i < 2; i++) {
        char path[100];
        begin("%s: recorded ids of llama.cpp", names[i]);
        snprintf(path, sizeof path, GOLDEN "%s.gguf", names[i]);
        if (!open_file(&s, path)) {
            return finish();
        }
        snprintf(path, sizeof path, GOLDEN "%s.txt", names[i]);
        recorded(&s, path);
        begin("%s: the same vocabulary as Ollama writes it", names[i]);
        if (open_vocab(&o, &s.naive, true)) {
            recorded(&o, path);
            special_ids(&o);
            decoding(&o);
        }
        close_subject(&o);
        begin("%s: random texts against the naive encoder", names[i]);
        compare(&s, 400);
        specials(&s);
        special_ids(&s);
        decoding(&s);
        round_trips(&s);
        if (i == 1) {
            megabyte(&s);
        }
        close_subject(&s);
    }
    random_vocabularies();
    if (getenv("BEZEL_GEMMA4")) {
        begin("published vectors of the real vocabulary");
        if (open_file(&s, getenv("BEZEL_GEMMA4"))) {
            recorded(&s, GOLDEN "gemma4.txt");
        }
        close_subject(&s);
    }
    return finish();
}
