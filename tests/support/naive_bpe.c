#include "naive_bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *p)
{
    if (!p) {
        fprintf(stderr, "naive_bpe: out of memory\n");
        abort();
    }
    return p;
}

/* ---- vocabulary ------------------------------------------------------------------- */

static void add(naive_entry **list, size_t *n, size_t *cap, const char *text, size_t len, int type)
{
    if (*n == *cap) {
        *cap = *cap ? 2 * *cap : 64;
        *list = need(realloc(*list, *cap * sizeof **list));
    }
    char *copy = need(malloc(len + 1));
    memcpy(copy, text, len);
    (*list)[*n] = (naive_entry){copy, len, type, (int32_t)*n};
    ++*n;
}

void naive_add_token(naive_vocab *v, const char *text, size_t len, int type)
{
    add(&v->token, &v->n_tokens, &v->cap_tokens, text, len, type);
}

void naive_add_merge(naive_vocab *v, const char *text, size_t len)
{
    add(&v->merge, &v->n_merges, &v->cap_merges, text, len, 0);
}

void naive_add_bytes(naive_vocab *v, int type)
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        naive_add_token(v, text, 6, type);
    }
}

void naive_from_gguf(naive_vocab *v, const bz_gguf *gguf)
{
    const bz_gguf_kv *tokens = bz_gguf_find(gguf, "tokenizer.ggml.tokens");
    const bz_gguf_kv *types = bz_gguf_find(gguf, "tokenizer.ggml.token_type");
    const bz_gguf_kv *merges = bz_gguf_find(gguf, "tokenizer.ggml.merges");
    bz_str s;
    int64_t type;
    for (size_t cursor = 0; bz_gguf_next_str(tokens, &cursor, &s);) {
        naive_add_token(v, s.data, s.len,
                        bz_gguf_get_i64(types, v->n_tokens, &type) ? (int)type : NORMAL);
    }
    for (size_t cursor = 0; bz_gguf_next_str(merges, &cursor, &s);) {
        naive_add_merge(v, s.data, s.len);
    }
}

void naive_free(naive_vocab *v)
{
    for (size_t i = 0; i < v->n_tokens; i++) {
        free(v->token[i].text);
    }
    for (size_t i = 0; i < v->n_merges; i++) {
        free(v->merge[i].text);
    }
    free(v->token);
    free(v->merge);
    free(v->token_by_text);
    free(v->merge_by_text);
    *v = (naive_vocab){0};
}

static int by_text(const void *a, const void *b)
{
    const naive_entry *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    if (order || x->len != y->len) {
        return order ? order : x->len < y->len ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

/* Index of the first entry with this text, or -1. */
static int32_t look_up(naive_entry **sorted, const naive_entry *list, size_t n, const char *text,
                       size_t len)
{
    if (!*sorted) {
        *sorted = need(malloc((n + 1) * sizeof **sorted));
        if (n) {
            memcpy(*sorted, list, n * sizeof **sorted);
            qsort(*sorted, n, sizeof **sorted, by_text);
        }
    }
    char *copy = need(malloc(len + 1));
    memcpy(copy, text, len);
    naive_entry wanted = {copy, len, 0, -1}; /* sorts before every entry of the same text */
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (by_text(&(*sorted)[mid], &wanted) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    free(copy);
    bool found = lo < n && (*sorted)[lo].len == len && memcmp((*sorted)[lo].text, text, len) == 0;
    return found ? (*sorted)[lo].at : -1;
}

int32_t naive_find(naive_vocab *v, const char *text, size_t len)
{
    return len ? look_up(&v->token_by_text, v->token, v->n_tokens, text, len) : -1;
}

/* ---- what a token is ---------------------------------------------------------------- */

static bool is(const naive_entry *e, const char *text)
{
    return e->len == strlen(text) && memcmp(e->text, text, e->len) == 0;
}

static bool is_gemma_special(const naive_entry *e)
{
    static const char *const texts[] = {"<pad>",
                                        "<eos>",
                                        "<bos>",
                                        "<unk>",
                                        "<mask>",
                                        "<|tool>",
                                        "<tool|>",
                                        "<|tool_call>",
                                        "<tool_call|>",
                                        "<|tool_response>",
                                        "<tool_response|>",
                                        "<|\"|>",
                                        "<|think|>",
                                        "<|channel>",
                                        "<channel|>",
                                        "<|turn>",
                                        "<turn|>",
                                        "<|image>",
                                        "<|audio>",
                                        "<|image|>",
                                        "<|audio|>",
                                        "<image|>",
                                        "<audio|>",
                                        "<|video|>"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (is(e, texts[i])) {
            return true;
        }
    }
    return false;
}

static bool is_byte(const naive_entry *e)
{
    return e->len == 6 && memcmp(e->text, "<0x", 3) == 0 && e->text[5] == '>' &&
           memchr("0123456789ABCDEF", e->text[3], 16) && memchr("0123456789ABCDEF", e->text[4], 16);
}

/* Length of the character that starts here, 0 if none does. */
static size_t character(const char *text, size_t len)
{
    const unsigned char *b = (const unsigned char *)text;
    uint32_t value = b[0], least = 0;
    size_t n = b[0] < 0x80 ? 1 : b[0] >> 5 == 6 ? 2 : b[0] >> 4 == 14 ? 3 : b[0] >> 3 == 30 ? 4 : 0;
    if (n == 0 || n > len) {
        return 0;
    }
    if (n > 1) {
        value &= n == 2 ? 31 : n == 3 ? 15 : 7;
        least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
    }
    for (size_t i = 1; i < n; i++) {
        if (b[i] >> 6 != 2) {
            return 0;
        }
        value = value * 64 + (b[i] & 63u);
    }
    return value >= least && value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF) ? n : 0;
}

static bool all_characters(const naive_entry *e)
{
    for (size_t i = 0; i < e->len;) {
        size_t n = character(e->text + i, e->len - i);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return e->len > 0;
}

bool naive_is_special(naive_vocab *v, int32_t id)
{
    const naive_entry *e = &v->token[id];
    if (is(e, "</s>") || is_byte(e) || !all_characters(e)) {
        return false;
    }
    return is_gemma_special(e) || e->type == CONTROL || e->type == USER_DEFINED;
}

/* Text that was merely typed must not become one of these. */
static bool never_from_text(naive_vocab *v, int32_t id)
{
    const naive_entry *e = &v->token[id];
    if (is(e, "</s>")) {
        return false;
    }
    return is_byte(e) || is_gemma_special(e) || e->type == CONTROL || e->type == UNKNOWN;
}

/* ---- encoding ------------------------------------------------------------------------ */

typedef struct word {
    char *text;
    size_t len;
} word;

static void push(bz_ids *out, int32_t id)
{
    if (!bz_ids_push(out, id)) {
        abort();
    }
}

static void emit(naive_vocab *v, const char *text, size_t len, bz_ids *out)
{
    int32_t id = naive_find(v, text, len);
    if (id >= 0 && !never_from_text(v, id)) {
        push(out, id);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        char byte[8];
        snprintf(byte, sizeof byte, "<0x%02X>", (unsigned char)text[i]);
        push(out, naive_find(v, byte, 6));
    }
}

/* Rank of joining two words, or -1. */
static int32_t rank_of(naive_vocab *v, word a, word b)
{
    char *text = need(malloc(a.len + b.len + 1));
    memcpy(text, a.text, a.len);
    memcpy(text + a.len, b.text, b.len);
    int32_t whole = naive_find(v, text, a.len + b.len);
    text[a.len] = ' ';
    memcpy(text + a.len + 1, b.text, b.len);
    int32_t rank = look_up(&v->merge_by_text, v->merge, v->n_merges, text, a.len + b.len + 1);
    free(text);
    return whole >= 0 && never_from_text(v, whole) ? -1 : rank;
}

static void encode_run(naive_vocab *v, const char *text, size_t len, bz_ids *out)
{
    word *words = need(malloc((len + 1) * sizeof *words));
    int32_t *rank = need(malloc((len + 1) * sizeof *rank));
    size_t n = 0;
    for (size_t i = 0; i < len; i += words[n++].len) {
        words[n] = (word){(char *)text + i, character(text + i, len - i)};
    }
    for (size_t i = 0; i + 1 < n; i++) {
        rank[i] = rank_of(v, words[i], words[i + 1]);
    }
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i + 1 < n; i++) {
            if (rank[i] >= 0 && (best == n || rank[i] < rank[best])) {
                best = i;
            }
        }
        if (best == n) {
            break;
        }
        words[best].len += words[best + 1].len; /* neighbors in the text too */
        n--;
        memmove(words + best + 1, words + best + 2, (n - best - 1) * sizeof *words);
        memmove(rank + best, rank + best + 1, (n - best) * sizeof *rank);
        if (best > 0) {
            rank[best - 1] = rank_of(v, words[best - 1], words[best]);
        }
        if (best + 1 < n) {
            rank[best] = rank_of(v, words[best], words[best + 1]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        emit(v, words[i].text, words[i].len, out);
    }
    free(rank);
    free(words);
}

static void encode_text(naive_vocab *v, const char *text, size_t len, bz_ids *out)
{
    char *clean = need(malloc(3 * len + 1));
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        size_t size = character(text + i, len - i);
        if (size == 0) {
            memcpy(clean + n, "\xEF\xBF\xBD", 3);
            n += 3;
            i++;
        } else if (text[i] == ' ') {
            memcpy(clean + n, "\xE2\x96\x81", 3);
            n += 3;
            i++;
        } else {
            memcpy(clean + n, text + i, size);
            n += size;
            i += size;
        }
    }
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && (clean[end] == '\n') == (clean[i] == '\n')) {
            end++;
        }
        if (clean[i] == '\n' && naive_find(v, clean + i, end - i) >= 0) {
            emit(v, clean + i, end - i, out);
        } else {
            encode_run(v, clean + i, end - i, out);
        }
        i = end;
    }
    free(clean);
}

void naive_encode(naive_vocab *v, const bz_piece *pieces, size_t n_pieces, bz_ids *out)
{
    size_t len = 0, at = 0, done = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        len += pieces[i].len;
    }
    char *text = need(malloc(len + 1));
    size_t *region = need(malloc((len + 1) * sizeof *region)); /* even: specials allowed */
    size_t current = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        if (current % 2 == pieces[i].specials) {
            current++;
        }
        for (size_t k = 0; k < pieces[i].len; k++) {
            region[at] = current;
            text[at++] = pieces[i].text[k];
        }
    }
    for (at = 0; at < len;) {
        int32_t best = -1;
        for (size_t id = 0; region[at] % 2 == 0 && id < v->n_tokens; id++) {
            const naive_entry *e = &v->token[id];
            if (e->len > 0 && e->len <= len - at && e->text[0] == text[at] &&
                memcmp(e->text, text + at, e->len) == 0 && region[at + e->len - 1] == region[at] &&
                (best < 0 || e->len > v->token[best].len) && naive_is_special(v, (int32_t)id)) {
                best = (int32_t)id;
            }
        }
        if (best < 0) {
            at++;
            continue;
        }
        encode_text(v, text + done, at - done, out);
        push(out, best);
        at += v->token[best].len;
        done = at;
    }
    encode_text(v, text + done, len - done, out);
    free(region);
    free(text);
}

/* ---- GGUF ------------------------------------------------------------------------------ */

/* An array of strings that may hold any bytes. */
static void put_texts(gguf_build *b, const char *key, const naive_entry *list, size_t n)
{
    size_t size = 12, at = 12;
    for (size_t i = 0; i < n; i++) {
        size += 8 + list[i].len;
    }
    uint8_t *value = need(malloc(size));
    uint32_t type = BZ_GGUF_STRING;
    uint64_t count = n;
    memcpy(value, &type, 4);
    memcpy(value + 4, &count, 8);
    for (size_t i = 0; i < n; i++) {
        uint64_t len = list[i].len;
        memcpy(value + at, &len, 8);
        memcpy(value + at + 8, list[i].text, list[i].len);
        at += 8 + list[i].len;
    }
    gb_raw(b, key, strlen(key), BZ_GGUF_ARRAY, value, size);
    free(value);
}

void naive_put_keys(const naive_vocab *v, bool ollama, gguf_build *b)
{
    int32_t *types = need(malloc((v->n_tokens + 1) * sizeof *types));
    for (size_t i = 0; i < v->n_tokens; i++) {
        int type = v->token[i].type;
        types[i] = !ollama ? type : type == CONTROL || type == USER_DEFINED ? CONTROL : NORMAL;
    }
    gb_str(b, "general.architecture", "gemma4");
    if (ollama) {
        gb_array(b, "tokenizer.ggml.eos_token_ids", BZ_GGUF_I32, (int32_t[]){1, 106, 50}, 3);
    }
    put_texts(b, "tokenizer.ggml.merges", v->merge, v->n_merges);
    gb_str(b, "tokenizer.ggml.model", ollama ? "llama" : "gemma4");
    if (ollama) {
        gb_str(b, "tokenizer.ggml.pre", "gemma4");
    }
    gb_array(b, "tokenizer.ggml.token_type", BZ_GGUF_I32, types, v->n_tokens);
    put_texts(b, "tokenizer.ggml.tokens", v->token, v->n_tokens);
    free(types);
}
