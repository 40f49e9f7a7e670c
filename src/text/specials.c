/* Special tokens: which tokens are special, hidden or end an answer, and how they are found in a
 * template's text.
 *
 * Files disagree about token types: Ollama's mark every special token CONTROL and byte tokens
 * NORMAL, llama.cpp's mark seven special tokens USER_DEFINED, some mark <eos> NORMAL. So Gemma 4's
 * special tokens are recognized by their text, and types only add to them.
 */
#include "text/vocab.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define KEY_TYPES "tokenizer.ggml.token_type"

enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4 };

static const struct {
    const char *text;
    size_t at; /* offset in bz_special_ids */
} known[] = {
    {"<pad>", offsetof(bz_special_ids, pad)},
    {"<eos>", offsetof(bz_special_ids, eos)},
    {"<bos>", offsetof(bz_special_ids, bos)},
    {"<unk>", offsetof(bz_special_ids, unk)},
    {"<mask>", offsetof(bz_special_ids, mask)},
    {"<|tool>", offsetof(bz_special_ids, tool)},
    {"<tool|>", offsetof(bz_special_ids, tool_end)},
    {"<|tool_call>", offsetof(bz_special_ids, tool_call)},
    {"<tool_call|>", offsetof(bz_special_ids, tool_call_end)},
    {"<|tool_response>", offsetof(bz_special_ids, tool_response)},
    {"<tool_response|>", offsetof(bz_special_ids, tool_response_end)},
    {"<|\"|>", offsetof(bz_special_ids, quote)},
    {"<|think|>", offsetof(bz_special_ids, think)},
    {"<|channel>", offsetof(bz_special_ids, channel)},
    {"<channel|>", offsetof(bz_special_ids, channel_end)},
    {"<|turn>", offsetof(bz_special_ids, turn)},
    {"<turn|>", offsetof(bz_special_ids, turn_end)},
    {"<|image>", offsetof(bz_special_ids, image_begin)},
    {"<|image|>", offsetof(bz_special_ids, image)},
    {"<image|>", offsetof(bz_special_ids, image_end)},
    {"<|audio>", offsetof(bz_special_ids, audio_begin)},
    {"<|audio|>", offsetof(bz_special_ids, audio)},
    {"<audio|>", offsetof(bz_special_ids, audio_end)},
    {"<|video|>", offsetof(bz_special_ids, video)},
};
enum { N_KNOWN = sizeof known / sizeof *known };
_Static_assert(N_KNOWN * sizeof(int32_t) == sizeof(bz_special_ids),
               "every special id has its text");

static void mark(bz_tokenizer *t, int64_t id, int flags)
{
    /* Keys may name ids outside a reduced vocabulary; such a token never occurs. */
    if (id >= 0 && id < t->n_tokens) {
        t->flags[id] = (uint8_t)(t->flags[id] | flags);
    }
}

static bz_status mark_types(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    const bz_gguf_kv *kv = bz_gguf_find(gguf, KEY_TYPES);
    if (!kv || !kv->is_array) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The file has no list " KEY_TYPES ", so its vocabulary cannot be read.");
    }
    if (kv->count != (uint64_t)t->n_tokens) {
        return bz_fail(err, BZ_BAD_FILE, KEY_TYPES " has %llu entries for %d tokens.",
                       (unsigned long long)kv->count, (int)t->n_tokens);
    }
    for (int32_t id = 0; id < t->n_tokens; id++) {
        int64_t type;
        if (!bz_gguf_get_i64(kv, (uint64_t)id, &type)) {
            return bz_fail(err, BZ_BAD_FILE, KEY_TYPES " has no number for token %d.", (int)id);
        }
        if (type == TYPE_UNKNOWN) {
            mark(t, id, BZ_TOKEN_HIDDEN);
        } else if (type == TYPE_CONTROL) {
            mark(t, id, BZ_TOKEN_HIDDEN | BZ_TOKEN_SPECIAL);
        } else if (type == TYPE_USER_DEFINED) {
            mark(t, id, BZ_TOKEN_LITERAL | BZ_TOKEN_SPECIAL);
        }
    }
    return BZ_OK;
}

static void mark_ends(bz_tokenizer *t, const bz_gguf *gguf)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eos_token_ids",
                                       "tokenizer.ggml.eot_token_id"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const bz_gguf_kv *kv = bz_gguf_find(gguf, keys[k]);
        int64_t id;
        for (uint64_t i = 0; kv && i < kv->count; i++) {
            if (bz_gguf_get_i64(kv, i, &id)) {
                mark(t, id, BZ_TOKEN_END);
            }
        }
    }
    mark(t, t->special.eos, BZ_TOKEN_END);
    mark(t, t->special.turn_end, BZ_TOKEN_END);
    mark(t, t->special.tool_response, BZ_TOKEN_END);
}

static int by_text(const void *a, const void *b)
{
    bz_str x = ((const bz_special_text *)a)->text, y = ((const bz_special_text *)b)->text;
    int order = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

void bz_vocab_sort_texts(bz_special_text *list, size_t n, uint32_t *first)
{
    size_t i = 0;
    qsort(list, n, sizeof *list, by_text);
    for (unsigned b = 0; b < 256; b++) {
        first[b] = (uint32_t)i;
        while (i < n && (unsigned char)list[i].text.data[0] == b) {
            i++;
        }
    }
    first[256] = (uint32_t)i;
}

static bz_status collect(bz_tokenizer *t, bz_error *err)
{
    size_t n = 0;
    for (int32_t id = 0; id < t->n_tokens; id++) {
        bz_str text = t->text[id];
        if (!(t->flags[id] & BZ_TOKEN_SPECIAL)) {
            continue;
        }
        /* A text that is not valid UTF-8 could match inside a character. */
        if (text.len == 0 || !bz_utf8_valid(text.data, text.len)) {
            t->flags[id] &= (uint8_t)~BZ_TOKEN_SPECIAL;
            continue;
        }
        n++;
    }
    t->specials = malloc((n + 1) * sizeof *t->specials);
    if (!t->specials) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the tokenizer's tables.");
    }
    for (int32_t id = 0; id < t->n_tokens; id++) {
        if (t->flags[id] & BZ_TOKEN_SPECIAL) {
            t->specials[t->n_specials++] = (bz_special_text){t->text[id], id};
        }
    }
    bz_vocab_sort_texts(t->specials, n, t->special_first);
    return BZ_OK;
}

bz_status bz_vocab_classify(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err)
{
    bz_status status = mark_types(t, gguf, err);
    if (status) {
        return status;
    }
    for (size_t k = 0; k < N_KNOWN; k++) {
        int32_t id = bz_tokenizer_find(t, known[k].text, strlen(known[k].text));
        memcpy((char *)&t->special + known[k].at, &id, sizeof id);
        mark(t, id, BZ_TOKEN_HIDDEN | BZ_TOKEN_SPECIAL);
    }
    int32_t strike = bz_tokenizer_find(t, "</s>", 4); /* an HTML tag here, whatever its type is */
    if (strike >= 0) {
        t->flags[strike] = 0;
    }
    for (int b = 0; b < 256; b++) {
        t->flags[t->byte_id[b]] = BZ_TOKEN_BYTE;
    }
    mark_ends(t, gguf);
    return collect(t, err);
}

/* First of list[lo..hi) whose byte at `depth` is at least c; all are longer than depth. */
static size_t lower_bound(const bz_special_text *list, size_t lo, size_t hi, size_t depth,
                          unsigned c)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((unsigned char)list[mid].text.data[depth] < c) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static const bz_special_text *longest_at(const bz_special_text *list, const uint32_t *first,
                                         const char *text, size_t len)
{
    if (len == 0) {
        return NULL;
    }
    /* The texts that match the input so far are neighbors in the sorted list, shortest first. */
    const unsigned char byte = (unsigned char)text[0];
    size_t lo = first[byte], hi = first[byte + 1];
    const bz_special_text *best = NULL;
    for (size_t depth = 1; lo < hi; depth++) {
        while (lo < hi && list[lo].text.len == depth) {
            best = &list[lo++];
        }
        if (depth == len) {
            break;
        }
        unsigned c = (unsigned char)text[depth];
        lo = lower_bound(list, lo, hi, depth, c);
        hi = lower_bound(list, lo, hi, depth, c + 1);
    }
    return best;
}

int32_t bz_vocab_special_at(const bz_tokenizer *t, const char *text, size_t len)
{
    const bz_special_text *found = longest_at(t->specials, t->special_first, text, len);
    return found ? found->id : -1;
}

int32_t bz_vocab_literal_at(const bz_tokenizer *t, const char *text, size_t len, size_t *used)
{
    const bz_special_text *found = longest_at(t->literals, t->literal_first, text, len);
    *used = found ? found->text.len : 0;
    return found ? found->id : -1;
}
