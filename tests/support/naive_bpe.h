/* Gemma 4's encoding written as plainly as possible, as a reference for the real one:
 * strings instead of ids, one list, and a full look at all neighbors before every
 * merge. It shares no code with src/. Also writes small vocabularies as GGUF. Out of
 * memory ends the program.
 */
#ifndef BZ_TEST_NAIVE_BPE_H
#define BZ_TEST_NAIVE_BPE_H

#include "text/tokenizer.h"
#include "gguf_build.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

typedef struct naive_entry {
    char *text;
    size_t len;
    int type;   /* of a token */
    int32_t at; /* index in its list: id or rank */
} naive_entry;

typedef struct naive_vocab {
    naive_entry *token, *merge; /* in file order */
    size_t n_tokens, n_merges, cap_tokens, cap_merges;
    naive_entry *token_by_text, *merge_by_text; /* sorted copies, made by the first encode */
} naive_vocab;

void naive_add_token(naive_vocab *v, const char *text, size_t len, int type);
void naive_add_merge(naive_vocab *v, const char *text, size_t len); /* "left right" */
void naive_add_bytes(naive_vocab *v, int type);                     /* <0x00> .. <0xFF> */
void naive_from_gguf(naive_vocab *v, const bz_gguf *gguf);
void naive_free(naive_vocab *v);

int32_t naive_find(naive_vocab *v, const char *text, size_t len);
bool naive_is_special(naive_vocab *v, int32_t id);
void naive_encode(naive_vocab *v, const bz_piece *pieces, size_t n_pieces, bz_ids *out);

/* Adds the keys of a file with this vocabulary, in the manner of llama.cpp's converter
 * or of Ollama's, which has fewer types. */
void naive_put_keys(const naive_vocab *v, bool ollama, gguf_build *b);

#endif
