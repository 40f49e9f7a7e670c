/* Loads a vocabulary: token texts and merges into the tables of vocab.h.
 *
 * Loading 262,144 tokens and 514,906 merges must be fast, so nothing is allocated per string, every
 * table is sized once, and merges are looked up in small groups whose cache misses overlap.
 */
#include "text/vocab.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define KEY_TOKENS "tokenizer.ggml.tokens"
#define KEY_MERGES "tokenizer.ggml.merges"
#define KEY_MODEL  "tokenizer.ggml.model"
#define KEY_SCORES "tokenizer.ggml.scores"

/* Real tables have runs of at most a few dozen full slots. A file whose texts collide on purpose
 * would make loading quadratic; it is refused. */
enum { MAX_PROBES = 2048 };

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory for the tokenizer's tables.");
}

static bz_status colliding(bz_error *err, const char *key)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "%s has texts whose hashes collide on purpose; this is not a real vocabulary.",
                   key);
}

/* Smallest b >= min_bits with 2^b >= n. */
static unsigned bits_for(size_t n, unsigned min_bits)
{
    unsigned b = min_bits;
    while (((size_t)1 << b) < n) {
        b++;
    }
    return b;
}

/* ---- text -> symbol ------------------------------------------------------------ */

static uint64_t load64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static uint32_t load32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return v;
}

/* Up to 8 bytes: the key and the length together determine the text. Longer: a hash. */
static uint64_t text_key(const char *p, size_t len)
{
    if (len >= 4 && len <= 8) {
        return (uint64_t)load32(p) << 32 | load32(p + len - 4);
    }
    if (len < 4) {
        const unsigned char *b = (const unsigned char *)p;
        return len == 0 ? 0 : (uint64_t)b[0] << 16 | (uint64_t)b[len / 2] << 8 | b[len - 1];
    }
    uint64_t h = len;
    for (size_t i = 0; i + 8 < len; i += 8) {
        h = (h ^ load64(p + i)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    h = (h ^ load64(p + len - 8)) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

static size_t text_home(uint64_t key, size_t len, unsigned bits)
{
    return (size_t)(bz_hash64(key + len) >> (64 - bits));
}

/* The slot of the text, or the empty slot where it belongs, or NULL after MAX_PROBES. */
static bz_text_slot *text_slot(const bz_tokenizer *t, uint64_t key, const char *text, size_t len)
{
    size_t mask = ((size_t)1 << t->slot_bits) - 1;
    size_t i = text_home(key, len, t->slot_bits);
    for (int probe = 0; probe < MAX_PROBES; probe++, i = (i + 1) & mask) {
        bz_text_slot *s = &t->slots[i];
        if (s->len == 0 || (s->key == key && s->len == len &&
                            (len <= 8 || memcmp(t->text[s->symbol].data, text, len) == 0))) {
            return s;
        }
    }
    return NULL;
}

uint32_t bz_vocab_joined(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    const bz_str a = t->text[left], b = t->text[right];
    char text[BZ_MAX_PIECE];
    if (a.len + b.len > sizeof text) {
        return BZ_SYMBOL_NONE;
    }
    memcpy(text, a.data, a.len);
    memcpy(text + a.len, b.data, b.len);
    return bz_vocab_symbol(t, text, a.len + b.len);
}

uint32_t bz_vocab_symbol(const bz_tokenizer *t, const char *text, size_t len)
{
    if (len == 0) {
        return BZ_SYMBOL_NONE;
    }
    const bz_text_slot *s = text_slot(t, text_key(text, len), text, len);
    return s && s->len ? s->symbol : BZ_SYMBOL_NONE;
}

/* ---- tokens -------------------------------------------------------------------- */

static bz_status load_tokens(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    const bz_gguf_kv *kv = bz_gguf_find(gguf, KEY_TOKENS);
    if (!kv || !kv->is_array || kv->type != BZ_GGUF_STRING) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The file has no list of texts " KEY_TOKENS ", so it holds no vocabulary.");
    }
    if (kv->count == 0 || kv->count > BZ_MAX_SYMBOLS - 1) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       KEY_TOKENS " has %llu tokens; between 1 and %d are supported.",
                       (unsigned long long)kv->count, BZ_MAX_SYMBOLS - 1);
    }
    t->n_tokens = (int32_t)kv->count;
    size_t n = (size_t)kv->count;
    t->slot_bits = bits_for(2 * n, 6);
    t->text = malloc(n * sizeof *t->text);
    t->flags = calloc(n, 1);
    t->slots = calloc((size_t)1 << t->slot_bits, sizeof *t->slots);
    if (!t->text || !t->flags || !t->slots) {
        return no_memory(err);
    }
    size_t cursor = 0;
    bz_str s;
    while (t->n_symbols < n && bz_gguf_next_str(kv, &cursor, &s)) {
        uint32_t id = t->n_symbols++;
        char shown[200];
        t->text[id] = s;
        if (s.len > BZ_MAX_PIECE) {
            return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                           "Token %u, '%s', is %zu bytes long; at most %d are supported.",
                           (unsigned)id, bz_str_show(s, shown), s.len, BZ_MAX_PIECE);
        }
        if (s.len == 0) {
            continue; /* keeps its id; never produced from text */
        }
        uint64_t key = text_key(s.data, s.len);
        bz_text_slot *slot = text_slot(t, key, s.data, s.len);
        if (!slot) {
            return colliding(err, KEY_TOKENS);
        }
        if (slot->len) {
            return bz_fail(err, BZ_BAD_FILE,
                           "Tokens %u and %u of " KEY_TOKENS " have the same text, '%s'.",
                           (unsigned)slot->symbol, (unsigned)id, bz_str_show(s, shown));
        }
        *slot = (bz_text_slot){key, id, (uint32_t)s.len};
    }
    if (t->n_symbols != n) {
        return bz_fail(err, BZ_BAD_FILE, KEY_TOKENS " ends after %u of its %zu tokens.",
                       (unsigned)t->n_symbols, n);
    }
    return BZ_OK;
}

/* ---- merges -------------------------------------------------------------------- */

/* Merges are processed in groups, whose cache lines are prefetched together. */
enum { GROUP = 32, WHOLE = 128 };

typedef struct merge {
    uint32_t rank;
    uint32_t symbol[3];
    bz_str part[3]; /* left, right, result */
    uint64_t key[3];
    char whole[WHOLE]; /* part[2], if it fits */
} merge;

typedef struct merge_loader {
    bz_tokenizer *t;
    bz_error *err;
    size_t cap_symbols; /* capacity of t->text */
    size_t joined_size, joined_used;
    merge group[GROUP];
    int n_group;
} merge_loader;

static void prefetch(const void *p)
{
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

static bool grow_slots(bz_tokenizer *t)
{
    unsigned bits = t->slot_bits + 1;
    size_t mask = ((size_t)1 << bits) - 1;
    bz_text_slot *bigger = calloc(mask + 1, sizeof *bigger);
    if (!bigger) {
        return false;
    }
    for (size_t i = 0; i < (size_t)1 << t->slot_bits; i++) {
        if (t->slots[i].len) {
            size_t at = text_home(t->slots[i].key, t->slots[i].len, bits);
            while (bigger[at].len) {
                at = (at + 1) & mask;
            }
            bigger[at] = t->slots[i];
        }
    }
    free(t->slots);
    t->slots = bigger;
    t->slot_bits = bits;
    return true;
}

/* A new symbol for a text that is not a token. `text` must outlive the tokenizer. */
static bz_status add_symbol(merge_loader *m, bz_str text, uint64_t key, uint32_t *symbol)
{
    bz_tokenizer *t = m->t;
    if (t->n_symbols == BZ_MAX_SYMBOLS) {
        return bz_fail(m->err, BZ_UNSUPPORTED_MODEL,
                       KEY_MERGES " has more than %d different texts.", BZ_MAX_SYMBOLS);
    }
    if (t->n_symbols == m->cap_symbols) {
        size_t cap = m->cap_symbols + m->cap_symbols / 2 + 64;
        bz_str *more = realloc(t->text, cap * sizeof *more);
        if (!more) {
            return no_memory(m->err);
        }
        t->text = more;
        m->cap_symbols = cap;
    }
    if (t->n_symbols > ((size_t)1 << t->slot_bits) / 4 * 3 && !grow_slots(t)) {
        return no_memory(m->err);
    }
    bz_text_slot *slot = text_slot(t, key, text.data, text.len);
    if (!slot) {
        return colliding(m->err, KEY_MERGES);
    }
    *symbol = t->n_symbols++;
    t->text[*symbol] = text;
    *slot = (bz_text_slot){key, *symbol, (uint32_t)text.len};
    return BZ_OK;
}

/* Stores the text of a merge result, which is not in the file. The buffer is as large as the whole
 * merge list, which suffices: every merge is stored at most once. */
static bz_status keep_joined(merge_loader *m, bz_str left, bz_str right, bz_str *out)
{
    bz_tokenizer *t = m->t;
    if (!t->joined && !(t->joined = malloc(m->joined_size))) {
        return no_memory(m->err);
    }
    char *to = t->joined + m->joined_used;
    memcpy(to, left.data, left.len);
    memcpy(to + left.len, right.data, right.len);
    *out = (bz_str){to, left.len + right.len};
    m->joined_used += out->len;
    return BZ_OK;
}

static bz_status add_pair(merge_loader *m, uint32_t left, uint32_t right, uint32_t rank)
{
    bz_tokenizer *t = m->t;
    uint64_t key = bz_pair_key(left, right);
    size_t mask = ((size_t)1 << t->pair_bits) - 1;
    size_t home = (size_t)(bz_hash64(key) >> (64 - t->pair_bits));
    for (size_t step = 0; step < MAX_PROBES; step++) {
        uint64_t *slot = &t->pairs[(home + step) & mask];
        if (*slot == 0) {
            *slot = key << BZ_RANK_BITS | (rank + 1);
            t->pair_reach = step > t->pair_reach ? step : t->pair_reach;
            return BZ_OK;
        }
        if (*slot >> BZ_RANK_BITS == key) {
            return BZ_OK; /* a duplicate: the first, lower rank counts */
        }
    }
    return colliding(m->err, KEY_MERGES);
}

/* Splits "left right" and prefetches the slots of its three texts. *usable: false for a merge that
 * can never happen. */
static bz_status read_merge(merge_loader *m, bz_str s, uint32_t rank, merge *out, bool *usable)
{
    const bz_tokenizer *t = m->t;
    const char *space = s.len > 2 ? memchr(s.data + 1, ' ', s.len - 2) : NULL;
    if (!space) {
        char shown[200];
        return bz_fail(m->err, BZ_BAD_FILE,
                       "Merge %u of " KEY_MERGES ", '%s', is not two texts with a space between.",
                       (unsigned)rank, bz_str_show(s, shown));
    }
    bz_str left = {s.data, (size_t)(space - s.data)}, right = {space + 1, s.len - left.len - 1};

    /* The two characters at the border. Spaces never reach BPE, and symbols are always whole
     * characters. */
    uint32_t before, after;
    size_t start = left.len - 1;
    while (start > 0 && left.len - start < 4 && ((unsigned char)left.data[start] & 0xC0) == 0x80) {
        start--;
    }
    size_t n_before = bz_utf8_decode(left.data + start, left.len - start, &before);
    size_t n_after = bz_utf8_decode(right.data, right.len, &after);
    *usable = n_before == left.len - start && !(n_before == 1 && before == BZ_UTF8_REPLACEMENT) &&
              !(n_after == 1 && after == BZ_UTF8_REPLACEMENT) && left.data[0] != ' ' &&
              !memchr(right.data, ' ', right.len);
    if (!*usable) {
        return BZ_OK;
    }
    uint64_t bit = bz_border_bit(t, before, after);
    t->borders[bit >> 6] |= (uint64_t)1 << (bit & 63);

    out->rank = rank;
    out->part[0] = left;
    out->part[1] = right;
    if (left.len + right.len <= WHOLE) {
        memcpy(out->whole, left.data, left.len);
        memcpy(out->whole + left.len, right.data, right.len);
        out->part[2] = (bz_str){out->whole, left.len + right.len};
    } else if (keep_joined(m, left, right, &out->part[2])) {
        return BZ_OUT_OF_MEMORY;
    }
    for (int k = 0; k < 3; k++) {
        out->key[k] = text_key(out->part[k].data, out->part[k].len);
        prefetch(&t->slots[text_home(out->key[k], out->part[k].len, t->slot_bits)]);
    }
    return BZ_OK;
}

static bz_status find_symbols(merge_loader *m, merge *g)
{
    bz_tokenizer *t = m->t;
    for (int k = 0; k < 3; k++) {
        const bz_text_slot *slot = text_slot(t, g->key[k], g->part[k].data, g->part[k].len);
        if (!slot) {
            return colliding(m->err, KEY_MERGES);
        }
        if (slot->len) {
            g->symbol[k] = slot->symbol;
            continue;
        }
        bz_status status = BZ_OK;
        if (g->part[k].data == g->whole) {
            status = keep_joined(m, g->part[0], g->part[1], &g->part[k]);
        }
        if (status == BZ_OK) {
            status = add_symbol(m, g->part[k], g->key[k], &g->symbol[k]);
        }
        if (status) {
            return status;
        }
    }
    prefetch(&t->pairs[bz_hash64(bz_pair_key(g->symbol[0], g->symbol[1])) >> (64 - t->pair_bits)]);
    return BZ_OK;
}

static bz_status finish_group(merge_loader *m)
{
    bz_tokenizer *t = m->t;
    for (int i = 0; i < m->n_group; i++) {
        bz_status status = find_symbols(m, &m->group[i]);
        if (status) {
            return status;
        }
    }
    for (int i = 0; i < m->n_group; i++) {
        const merge *g = &m->group[i];
        t->result[g->rank] = g->symbol[2];
        /* A merge that would produce a control or byte token from plain text is skipped. */
        if (g->symbol[2] < (uint32_t)t->n_tokens && t->flags[g->symbol[2]] & BZ_TOKEN_NOT_TEXT) {
            continue;
        }
        bz_status status = add_pair(m, g->symbol[0], g->symbol[1], g->rank);
        if (status) {
            return status;
        }
    }
    m->n_group = 0;
    return BZ_OK;
}

static bz_status load_merges(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    const bz_gguf_kv *kv = bz_gguf_find(gguf, KEY_MERGES);
    if (!kv || !kv->is_array || kv->type != BZ_GGUF_STRING) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       "The file has no list of texts " KEY_MERGES
                       ", which Gemma 4's tokenizer needs.");
    }
    if (kv->count > BZ_MAX_MERGES - 1) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       KEY_MERGES " has %llu entries; at most %d are supported.",
                       (unsigned long long)kv->count, BZ_MAX_MERGES - 1);
    }
    size_t n = (size_t)kv->count;
    t->pair_bits = bits_for(2 * n, 6);
    t->border_bits = bits_for(4 * n, 6);
    t->pairs = calloc((size_t)1 << t->pair_bits, sizeof *t->pairs);
    t->borders = calloc(((size_t)1 << t->border_bits) / 64, sizeof *t->borders);
    t->result = malloc((n + 1) * sizeof *t->result);
    merge_loader *m = malloc(sizeof *m);
    if (!t->pairs || !t->borders || !t->result || !m) {
        free(m);
        return no_memory(err);
    }
    m->t = t;
    m->err = err;
    m->cap_symbols = t->n_symbols;
    m->joined_size = kv->n_bytes;
    m->joined_used = 0;
    m->n_group = 0;

    bz_status status = BZ_OK;
    size_t cursor = 0, rank = 0;
    bz_str s;
    for (; status == BZ_OK && rank < n && bz_gguf_next_str(kv, &cursor, &s); rank++) {
        bool usable = false;
        status = read_merge(m, s, (uint32_t)rank, &m->group[m->n_group], &usable);
        m->n_group += usable && status == BZ_OK;
        if (m->n_group == GROUP) {
            status = finish_group(m);
        }
    }
    if (status == BZ_OK) {
        status = finish_group(m);
    }
    if (status == BZ_OK && rank != n) {
        status =
            bz_fail(err, BZ_BAD_FILE, KEY_MERGES " ends after %zu of its %zu entries.", rank, n);
    }
    free(m);
    return status;
}

/* ---- the whole vocabulary -------------------------------------------------------- */

static bz_status check_model(const bz_gguf *gguf, bz_error *err)
{
    bz_str model;
    char shown[200];
    if (!bz_gguf_get_str(bz_gguf_find(gguf, KEY_MODEL), &model)) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The file has no " KEY_MODEL ", so its vocabulary cannot be read.");
    }
    /* Ollama's converter writes "llama" for the same tokenizer. */
    if (!bz_str_is(model, "gemma4") && !bz_str_is(model, "llama")) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       KEY_MODEL " is '%s'; Gemma 4 files have 'gemma4' or, from Ollama, 'llama'.",
                       bz_str_show(model, shown));
    }
    return BZ_OK;
}

static bz_status find_bytes(bz_tokenizer *t, bz_error *err)
{
    static const char hex[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        char text[7] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>', 0};
        t->byte_id[b] = bz_tokenizer_find(t, text, 6);
        if (t->byte_id[b] < 0) {
            return bz_fail(err, BZ_BAD_FILE,
                           "The vocabulary has no token %s, so some text could not be written.",
                           text);
        }
    }
    return BZ_OK;
}

bz_status bz_vocab_load(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    bz_status status = check_model(gguf, err);
    if (status == BZ_OK) {
        status = load_tokens(t, gguf, err);
    }
    if (status == BZ_OK) {
        status = find_bytes(t, err);
    }
    if (status == BZ_OK) {
        status = bz_vocab_classify(t, gguf, err); /* before the merges, which need the flags */
    }
    if (status == BZ_OK) { /* Gemma 4's vocabulary has merges, Gemma 3's scores only */
        const bool scored = t->special.turn < 0 && !bz_gguf_find(gguf, KEY_MERGES) &&
                            bz_gguf_find(gguf, KEY_SCORES);
        status = scored ? bz_vocab_load_scores(t, gguf, err) : load_merges(t, gguf, err);
    }
    for (int c = 0; c < 128 && status == BZ_OK; c++) {
        t->ascii[c] = bz_vocab_symbol(t, &(char){(char)c}, 1);
    }
    return status;
}

void bz_vocab_free(bz_tokenizer *t)
{
    free(t->text);
    free(t->flags);
    free(t->joined);
    free(t->slots);
    free(t->pairs);
    free(t->result);
    free(t->borders);
    free(t->score_rank);
    free(t->literals);
    free(t->literal_bytes);
    free(t->specials);
}
