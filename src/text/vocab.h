/* The tables behind a tokenizer: filled once by vocab.c, then only read, by any
 * number of threads. Internal to src/text.
 *
 * BPE works on symbols. Symbols 0 .. n_tokens-1 are the tokens of the vocabulary.
 * Merges are defined on texts, and a list may name a part or a result that is no
 * token; such a text becomes a symbol above n_tokens, takes part in merging like
 * any other, and is written as byte tokens if it is left at the end. The published
 * vocabularies have none.
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
    /* Every byte of a piece may come out as U+FFFD (three bytes), after three held ones. */
    BZ_MAX_PIECE = (BZ_DETOK_MAX - 9) / 3,
    BZ_SPACE_MARK = 0x2581 /* stands for a space inside pieces */
};

#define BZ_RANK_NONE UINT32_MAX

/* What a token is, beside its text. */
enum {
    BZ_TOKEN_SPECIAL = 1, /* found by its text in pieces that allow specials */
    BZ_TOKEN_HIDDEN = 2,  /* shows nothing unless asked to */
    BZ_TOKEN_BYTE = 4,    /* <0xHH>: one byte of text */
    BZ_TOKEN_LITERAL = 8, /* USER_DEFINED: shown as it stands, U+2581 included */
    BZ_TOKEN_END = 16,    /* ends an answer */
    /* Ordinary text never becomes one of these, whatever the merges say. */
    BZ_TOKEN_NOT_TEXT = BZ_TOKEN_HIDDEN | BZ_TOKEN_BYTE
};

/* Text -> symbol, open addressing. Texts of up to 8 bytes lie in the key itself, so
 * most lookups touch one cache line; longer ones have their hash there. */
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
    char *joined;   /* texts of merge results that are no tokens */

    bz_text_slot *slots;
    unsigned slot_bits; /* log2 of their number */

    uint64_t *pairs; /* left << 44 | right << 24 | rank + 1; 0: empty */
    unsigned pair_bits;
    size_t pair_reach; /* no pair lies further than this from its home slot */
    uint32_t *result;  /* [n_merges] symbol that the merge of this rank makes */

    uint64_t *borders; /* bitmap over hashed pairs of characters, see bz_vocab_joins */
    unsigned border_bits;

    uint32_t ascii[128];  /* symbol of a character, or BZ_SYMBOL_NONE */
    int32_t byte_id[256]; /* its byte token */

    bz_special_text *specials; /* the special set, ordered by text */
    size_t n_specials;
    uint32_t special_first[257]; /* where the texts beginning with byte b start */
};

/* Fills an all-zero *t; on failure *t may be half full. vocab_free takes either. */
bz_status bz_vocab_load(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err);
void bz_vocab_free(bz_tokenizer *t);

/* Marks the special set, the hidden and the end tokens and fills t->special, from
 * token types and texts. Needs the text table. */
bz_status bz_vocab_classify(bz_tokenizer *t, const bz_gguf *gguf, bz_error *err);

/* Symbol of a text, or BZ_SYMBOL_NONE. */
uint32_t bz_vocab_symbol(const bz_tokenizer *t, const char *text, size_t len);

/* The longest special token that text[0..len) starts with, or -1. */
int32_t bz_vocab_special_at(const bz_tokenizer *t, const char *text, size_t len);

static inline uint64_t bz_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << BZ_SYMBOL_BITS | right;
}

static inline uint64_t bz_spread(uint64_t key)
{
    key *= 0x9E3779B97F4A7C15u;
    key ^= key >> 32;
    return key * 0xD6E8FEB86659FD93u;
}

/* Rank of the merge of two symbols, or BZ_RANK_NONE. */
static inline uint32_t bz_vocab_rank(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    uint64_t key = bz_pair_key(left, right);
    size_t mask = ((size_t)1 << t->pair_bits) - 1;
    size_t home = (size_t)(bz_spread(key) >> (64 - t->pair_bits));
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

static inline uint64_t bz_border_bit(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    return bz_spread((uint64_t)left << 32 | right) >> (64 - t->border_bits);
}

/* May any merge ever reach over the border between these two characters? Only one
 * whose left part ends with the first and whose right part starts with the second;
 * if there is none, text can be cut there without changing a single id. The answer
 * may be a wrong yes (hash collision), never a wrong no. */
static inline bool bz_vocab_joins(const bz_tokenizer *t, uint32_t left, uint32_t right)
{
    uint64_t bit = bz_border_bit(t, left, right);
    return t->borders[bit >> 6] >> (bit & 63) & 1;
}

#endif
