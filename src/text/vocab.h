/* The tokenizer's tables: filled once by vocab.c, then read-only and shared by threads. Internal to
 * src/text.
 *
 * BPE works on symbols. Symbols 0 .. n_tokens-1 are the tokens of the vocabulary. Merges are
 * defined on texts, and a merge list may contain a text that is not a token; such a text becomes a
 * symbol from n_tokens on, is merged like any other, and is written as byte tokens if it remains
 * at the end. The published vocabularies have none.
 *
 * Gemma 3's vocabulary, which EmbeddingGemma has, lists no merges (scores.c): two symbols merge if
 * their joined text is a token, and the rank of a merge is that of the token's score.
 */
#ifndef BZ_TEXT_VOCAB_H
#define BZ_TEXT_VOCAB_H

#include "text/tokenizer.h"

enum {
    BZ_SYMBOL_BITS = 20, /* a pair and its rank share one 64-bit word: 20 + 20 + 24 */
    BZ_RANK_BITS = 24,
    BZ_MAX_SYMBOLS = (1 << BZ_SYMBOL_BITS) - 1,
    BZ_MAX_MERGES = (1 << BZ_RANK_BITS) - 1,
    BZ_SYMBOL_NONE = BZ_MAX_SYMBOLS,
    /* Every byte of a piece may become U+FFFD (three bytes), and so may three held bytes. */
    BZ_MAX_PIECE = (BZ_DETOK_MAX - 9) / 3,
    BZ_SPACE_MARK = 0x2581 /* stands for a space inside pieces */
};

#define BZ_RANK_NONE UINT32_MAX

/* Flags of a token. */
enum {
    BZ_TOKEN_SPECIAL = 1, /* recognized by its text in pieces that allow specials */
    BZ_TOKEN_HIDDEN = 2,  /* detokenized to nothing unless show_control */
    BZ_TOKEN_BYTE = 4,    /* <0xHH>: one byte of text */
    BZ_TOKEN_LITERAL = 8, /* USER_DEFINED: detokenized unchanged, including U+2581 */
    BZ_TOKEN_END = 16,    /* ends an answer */
    /* Plain text is never tokenized to one of these, whatever the merges are. */
    BZ_TOKEN_NOT_TEXT = BZ_TOKEN_HIDDEN | BZ_TOKEN_BYTE
};

/* Hash table from text to symbol, open addressing. The key is the text itself up to 8 bytes, so
 * that most lookups touch one cache line; for longer texts it is a hash. */
typedef struct bz_text_slot {
    uint64_t key;
    uint32_t symbol;
    uint32_t len; /* 0: empty slot */
} bz_text_slot;

typedef struct bz_special_text {
    bz_str text;
    int32_t id;
} bz_special_text;

struct bz_tokenizer {
    bz_special_ids special;
    int32_t n_tokens;
    uint32_t n_symbols;
    bz_str *text;   /* [n_symbols] */
    uint8_t *flags; /* [n_tokens] BZ_TOKEN_* */
    char *joined;   /* texts of merge results that are not tokens */

    bz_text_slot *slots;
    unsigned slot_bits; /* log2 of their count */

    uint64_t *pairs; /* left << 44 | right << 24 | rank + 1; 0: empty */
    unsigned pair_bits;
    size_t pair_reach; /* maximum distance of a pair from its home slot */
    uint32_t *result;  /* [n_merges] symbol that results from the merge of this rank */

    uint64_t *borders; /* bitmap over hashed pairs of characters, see bz_vocab_joins */
    unsigned border_bits;

    /* Vocabularies without merges; score_rank is NULL where there are merges. */
    uint32_t *score_rank;      /* [n_tokens] equal for equal scores, lower for higher ones; or
                                  BZ_RANK_NONE */
    bz_special_text *literals; /* user-defined texts, spaces as U+2581, ordered by text */
    size_t n_literals;
    uint32_t literal_first[257]; /* as special_first */
    char *literal_bytes;

    uint32_t ascii[128];  /* symbol of a character, or BZ_SYMBOL_NONE */
    int32_t byte_id[256]; /* its byte token */

    bz_special_text *specials; /* the special set, ordered by text */
    size_t n_specials;
    uint32_t special_first[257]; /* [b]: index of the first text that begins with byte b */
};

/* Fills an all-zero *t; after a failure *t may be partly filled. bz_vocab_free accepts both. */
bz_status bz_vocab_load(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err);
void bz_vocab_free(bz_tokenizer *t);

/* Sets t->flags and t->special from token types and texts. Needs the text table. */
bz_status bz_vocab_classify(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err);

/* Fills score_rank, the borders and the literals from tokenizer.ggml.scores. */
bz_status bz_vocab_load_scores(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err);

/* Symbol of a text, or BZ_SYMBOL_NONE. */
uint32_t bz_vocab_symbol(const bz_tokenizer *t, const char *text, size_t len);

/* The longest special token that text[0..len) starts with, or -1. */
int32_t bz_vocab_special_at(const bz_tokenizer *t, const char *text, size_t len);
/* The same for literals; *used: the bytes of its text. */
int32_t bz_vocab_literal_at(const bz_tokenizer *t, const char *text, size_t len, size_t *used);

/* Sorts such a list and fills `first` [257]. */
void bz_vocab_sort_texts(bz_special_text *list, size_t n, uint32_t *first);

static inline uint64_t bz_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << BZ_SYMBOL_BITS | right;
}

static inline uint64_t bz_hash64(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 32;
    return key * 0xD6E8FEB86659FD93u;
}

/* The token that two symbols of a vocabulary without merges join to, or BZ_SYMBOL_NONE. */
uint32_t bz_vocab_joined(const bz_tokenizer *t, uint32_t left, uint32_t right);

/* Rank of the merge of two symbols, or BZ_RANK_NONE. */
static inline uint32_t bz_vocab_rank(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    if (t->score_rank) {
        const uint32_t symbol = bz_vocab_joined(t, left, right);
        return symbol == BZ_SYMBOL_NONE ? BZ_RANK_NONE : t->score_rank[symbol];
    }
    uint64_t key = bz_pair_key(left, right);
    size_t mask = ((size_t)1 << t->pair_bits) - 1;
    size_t home = (size_t)(bz_hash64(key) >> (64 - t->pair_bits));
    for (size_t step = 0; step <= t->pair_reach; step++) {
        uint64_t slot = t->pairs[(home + step) & mask];
        if (slot == 0) {
            break;
        }
        if (slot >> BZ_RANK_BITS == key) {
            return (uint32_t)(slot & BZ_MAX_MERGES) - 1;
        }
    }
    return BZ_RANK_NONE;
}

/* What two symbols become by a merge of this rank. */
static inline uint32_t bz_vocab_result(const bz_tokenizer *t, uint32_t left, uint32_t right,
                                       uint32_t rank)
{
    return t->score_rank ? bz_vocab_joined(t, left, right) : t->result[rank];
}

static inline uint64_t bz_border_bit(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    return bz_hash64((uint64_t)left << 32 | right) >> (64 - t->border_bits);
}

/* Whether any merge can cross the border between these two characters, that is, whether some merge
 * has a left part that ends with the first and a right part that begins with the second. If not,
 * text can be split there without changing an id. May be falsely true (hash collision), never
 * falsely false. */
static inline bool bz_vocab_joins(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    uint64_t bit = bz_border_bit(t, left, right);
    return t->borders[bit >> 6] >> (bit & 63) & 1;
}

#endif
