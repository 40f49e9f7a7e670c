/* Gemma 4's tokenizer: ranked-merge BPE over characters with byte fallback. Also Gemma 3's, which
 * merges by scores.
 *
 * Spaces become U+2581, text is split into runs of newlines and runs of anything else, and within
 * a run the pair of lowest rank is merged first, leftmost first among equals. Gemma 4's scores are
 * not used (docs/MODEL.md, tokenizer).
 */
#ifndef BZ_TEXT_TOKENIZER_H
#define BZ_TEXT_TOKENIZER_H

#include "base/error.h"
#include "file/gguf.h"

typedef struct bz_tokenizer bz_tokenizer;

/* A growing list of token ids. Zero-initialize; free with bz_ids_free. */
typedef struct bz_ids {
    int32_t *id;
    size_t n, cap;
} bz_ids;

bool bz_ids_push(bz_ids *ids, int32_t id); /* false: out of memory, list unchanged */
void bz_ids_free(bz_ids *ids);

/* Ids of Gemma 4's special tokens, found by their text; -1 where the vocabulary has none. */
typedef struct bz_special_ids {
    int32_t pad, eos, bos, unk, mask;
    int32_t tool, tool_end, tool_call, tool_call_end, tool_response, tool_response_end, quote;
    int32_t think, channel, channel_end, turn, turn_end;
    int32_t image_begin, image, image_end, audio_begin, audio, audio_end, video;
} bz_special_ids;

/* Reads tokenizer.ggml.* of either flavor. Token texts point into the header's bytes, which must
 * outlive the tokenizer. */
bz_status bz_tokenizer_new(bz_tokenizer **out, const bz_gguf *gguf, bz_error *err);
void bz_tokenizer_free(bz_tokenizer *t);

int32_t bz_tokenizer_size(const bz_tokenizer *t);
const bz_special_ids *bz_tokenizer_special(const bz_tokenizer *t);
/* Id of a token's text, or -1. */
int32_t bz_tokenizer_find(const bz_tokenizer *t, const char *text, size_t len);
/* The text of a token as in the file; empty if id is out of range. */
bz_str bz_tokenizer_piece(const bz_tokenizer *t, int32_t id);
/* The bytes that a token is detokenized to, whether it is shown or not; at most BZ_DETOK_MAX.
 * Returns their number. */
size_t bz_tokenizer_bytes(const bz_tokenizer *t, int32_t id, char *out);
/* Special tokens: Gemma 4's, recognized by their text, and those that the file marks CONTROL or
 * USER_DEFINED. Never </s> or a byte token <0xHH>. */
bool bz_tokenizer_is_control(const bz_tokenizer *t, int32_t id);
/* Tokens that end an answer: eos, <turn|>, <|tool_response> and the file's list. */
bool bz_tokenizer_is_end(const bz_tokenizer *t, int32_t id);

/* A piece of the input. Pieces are joined before BPE, so splitting a text into two pieces does not
 * change its ids. The text of a special token becomes that token only where it is entirely inside
 * neighboring pieces that allow specials: user text can never complete one, and even an empty user
 * text separates two pieces of a template. */
typedef struct bz_piece {
    const char *text;
    size_t len;
    bool specials; /* allow special tokens; false for untrusted text */
} bz_piece;

/* Appends the ids of the pieces. No BOS is added. Each invalid UTF-8 byte is read as U+FFFD. On
 * error *out is unchanged. */
bz_status bz_tokenize_pieces(const bz_tokenizer *t, const bz_piece *pieces, size_t n_pieces,
                             bz_ids *out, bz_error *err);

/* Streaming detokenizer: returns complete characters only. Zero-initialize. */
typedef struct bz_detok {
    uint8_t held[8]; /* an incomplete UTF-8 sequence */
    uint8_t n_held;
} bz_detok;

enum { BZ_DETOK_MAX = 1024 }; /* capacity that suffices for bz_detok_push */

/* Writes the text that token `id` completes to out and returns its length. Gemma 4's special
 * tokens and those that the file marks CONTROL or UNKNOWN write nothing, or their literal text with
 * show_control; either way they end an incomplete character. Other USER_DEFINED tokens are literal
 * text. Bytes that cannot become a character are written as U+FFFD each; an id out of range writes
 * nothing. */
size_t bz_detok_push(bz_detok *d, const bz_tokenizer *t, int32_t id, bool show_control,
                     char out[BZ_DETOK_MAX]);
size_t bz_detok_flush(bz_detok *d, char out[BZ_DETOK_MAX]); /* held bytes as U+FFFD */

#endif
