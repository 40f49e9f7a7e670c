/* Bytes of a GGUF header that nothing is believed of before it is checked against the file's size.
 * Internal to src/file/gguf*.c. */
#ifndef BZ_FILE_GGUF_READER_H
#define BZ_FILE_GGUF_READER_H

#include "base/little.h"
#include "file/gguf.h"

/* `claimed` is the heart of it: the number of bytes the header is proven to have,
 * from what was read so far. It starts with the fixed part, takes in the shortest
 * possible form of all keys and tensors once the counts are known, and grows with each
 * length that turns out longer. Passing the file's size means a cut-off file; running
 * out of bytes in memory means that `claimed` bytes are needed. at <= n and
 * at <= claimed <= size always hold. */
typedef struct gguf_reader {
    const uint8_t *bytes;
    uint64_t n;    /* bytes in memory */
    uint64_t size; /* bytes in the file */
    uint64_t at;   /* next byte to read */
    uint64_t claimed;
    const char *kind;      /* what is being read, for messages: "key", "tensor"; NULL before them */
    bz_str name;           /* its name, or data NULL as long as that is not known */
    uint64_t number;       /* its place in the list, from 1 */
    bz_gguf_answer answer; /* why a function returned false */
    bz_error *err;
} gguf_reader;

/* Fill the error with one sentence and return false, for `return bz_gguf_refuse(r, ...)`.
 * The sentence of refuse_entry begins with what is being read. */
bool bz_gguf_refuse(gguf_reader *r, const char *format, ...) BZ_PRINTF(2, 3);
bool bz_gguf_refuse_entry(gguf_reader *r, const char *format, ...) BZ_PRINTF(2, 3);
bool bz_gguf_no_memory(gguf_reader *r);

/* The header has so many bytes more than was known. */
bool bz_gguf_claim(gguf_reader *r, uint64_t more);

/* The next k bytes, which must have been claimed; NULL when they are not in memory. */
static inline const uint8_t *bz_gguf_take(gguf_reader *r, uint64_t k)
{
    if (k > r->n - r->at) {
        r->answer = BZ_GGUF_MORE;
        return NULL;
    }
    const uint8_t *p = r->bytes + r->at;
    r->at += k;
    return p;
}

static inline bool bz_gguf_take_u32(gguf_reader *r, uint32_t *out)
{
    const uint8_t *p = bz_gguf_take(r, 4);
    if (p) {
        *out = bz_le32(p);
    }
    return p != NULL;
}

static inline bool bz_gguf_take_u64(gguf_reader *r, uint64_t *out)
{
    const uint8_t *p = bz_gguf_take(r, 8);
    if (p) {
        *out = bz_le64(p);
    }
    return p != NULL;
}

/* The name of a key or tensor, of which 8 + 1 bytes are claimed. */
bool bz_gguf_take_name(gguf_reader *r, uint64_t longest, bz_str *out);

/* ---- gguf_check.c ---- */

/* All entries are read: the sorted tables, no name twice, the alignment, and where tensors lie:
 * inside the file, none on another. */
bool bz_gguf_check(gguf_reader *r, bz_gguf *g);

#endif
