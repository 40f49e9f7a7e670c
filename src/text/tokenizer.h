/* Gemma 4's tokenizer: ranked-merge BPE over characters with byte fallback.
 *
 * Spaces become U+2581, text is cut into runs of newlines and runs of anything
 * else, and within a run the pair of lowest rank merges first, leftmost first
 * among equals. Scores in the file are never used (docs/MODEL.md, tokenizer).
 */
#ifndef BZ_TEXT_TOKENIZER_H
#define BZ_TEXT_TOKENIZER_H

#include "base/error.h"
#include "file/gguf.h"

typedef struct bz_tokenizer bz_tokenizer;

/* A growing list of token ids; zero-initialise, release with bz_ids_free. */
typedef struct bz_ids {
    int32_t *id;
    size_t n, cap;
} bz_ids;

bool bz_ids_push(bz_ids *ids, int32_t id); /* false: out of memory, list unchanged */
void bz_ids_free(bz_ids *ids);

/* Token ids that chat and generation need, found by text; -1 where the vocabulary
 * has none. */
typedef struct bz_special_ids {
    int32_t pad, eos, bos, unk, mask;
    int32_t tool, tool_end, tool_call, tool_call_end, tool_response, tool_response_end, quote;
    int32_t think, channel, channel_end, turn, turn_end;
    int32_t image_begin, image, image_end, audio_begin, audio, audio_end, video;
} bz_special_ids;

/* Reads tokenizer.ggml.* of either flavour. Token texts stay in the header's bytes,
 * which must outlive the tokenizer. */
bz_status bz_tokenizer_new(bz_tokenizer **out, const bz_gguf *gguf, bz_error *err);
void bz_tokenizer_free(bz_tokenizer *t);

int32_t bz_tokenizer_size(const bz_tokenizer *t);
const bz_special_ids *bz_tokenizer_special(const bz_tokenizer *t);
int32_t bz_tokenizer_find(const bz_tokenizer *t, const char *text,
                          size_t len); /* id of a piece, or -1 */
bz_str bz_tokenizer_piece(const bz_tokenizer *t,
                          int32_t id); /* as in the file; empty if id is out of range */
/* Of the special set: Gemma 4's own, known by their texts, and what the file marks
 * CONTROL or USER_DEFINED. Never </s>, nor a byte token <0xHH>. */
bool bz_tokenizer_is_control(const bz_tokenizer *t, int32_t id);
bool bz_tokenizer_is_end(
    const bz_tokenizer *t,
    int32_t id); /* ends an answer: eos, <turn|>, <|tool_response>, file's own list */

/* A stretch of input. Neighbouring texts are joined before BPE, so cutting a text in
 * two pieces does not change its ids. A special token's text counts only where it lies
 * wholly in neighbouring pieces that allow specials: what a user typed never completes
 * one, not even an empty text between two pieces of a template. */
typedef struct bz_piece {
    const char *text;
    size_t len;
    bool
        specials; /* texts of special tokens inside become those tokens; false for untrusted text */
} bz_piece;

/* Appends the ids of the pieces. No BOS is added: the caller pushes it. Invalid UTF-8
 * gives one U+FFFD per bad byte. On error *out is unchanged. */
bz_status bz_tokenizer_encode(const bz_tokenizer *t, const bz_piece *pieces, size_t n_pieces,
                              bz_ids *out, bz_error *err);

/* Streaming text of tokens: never half a code point. Zero-initialise. */
typedef struct bz_detok {
    uint8_t held[8]; /* an incomplete UTF-8 sequence */
    uint8_t n_held;
} bz_detok;

enum {
    BZ_DETOK_MAX = 1024
}; /* room that bz_detok_push always fits in (longest piece + held bytes) */

/* Writes the bytes that token `id` completes to out and returns how many. Gemma 4's
 * specials and what the file marks CONTROL or UNKNOWN give nothing unless show_control,
 * then their literal text; either way they end a character that is still open. Other
 * USER_DEFINED tokens are literal text. Bytes that can no longer become a character come
 * out as one U+FFFD each; an id out of range gives nothing. */
size_t bz_detok_push(bz_detok *d, const bz_tokenizer *t, int32_t id, bool show_control,
                     char out[BZ_DETOK_MAX]);
size_t bz_detok_flush(bz_detok *d, char out[BZ_DETOK_MAX]); /* what is held, as U+FFFD */

#endif
