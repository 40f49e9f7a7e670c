/* A reader for GGUF headers that checks every length against the file's size before using it.
 * Internal to src/file/gguf*.c. */
#ifndef BZ_FILE_GGUF_READER_H
#define BZ_FILE_GGUF_READER_H

#include "base/little.h"
#include "file/gguf.h"

/* `claimed` is a lower bound of the header's size, computed from what was read so far. It starts
 * with the fixed part, then includes the shortest possible form of all keys and tensors once the
 * counts are known, and grows with every length read. If it exceeds the file's size, the file is
 * truncated; if the bytes in memory run out, `claimed` bytes are needed. Invariants: at <= n and
 * at <= claimed <= size. */
typedef struct gguf_reader {
    const uint8_t *bytes;
    uint64_t n;    /* bytes in memory */
    uint64_t size; /* bytes in the file */
    uint64_t at;   /* offset of the next byte to read */
    uint64_t claimed;
    const char *kind; /* of the entry being read, for messages: "key", "tensor"; NULL before them */
    bz_str name;      /* of the entry; data NULL until it is read */
    uint64_t number;  /* of the entry, from 1 */
    bz_gguf_answer answer; /* why a function returned false */
    bz_error *err;
} gguf_reader;

/* Fill the error and return false, for `return bz_gguf_refuse(r, ...)`. refuse_entry puts the
 * entry being read before the message. */
bool bz_gguf_refuse(gguf_reader *r, const char *format, ...) BZ_PRINTF(2, 3);
bool bz_gguf_refuse_entry(gguf_reader *r, const char *format, ...) BZ_PRINTF(2, 3);
bool bz_gguf_no_memory(gguf_reader *r);

/* Adds `more` bytes to `claimed`. */
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

/* The name of a key or tensor; 8 + 1 bytes of it are claimed already. */
bool bz_gguf_take_name(gguf_reader *r, uint64_t longest, bz_str *out);

/* ---- gguf_check.c ---- */

/* After all entries are read: builds the sorted tables and checks duplicate names, the alignment,
 * and that tensors are inside the file and do not overlap. */
bool bz_gguf_check(gguf_reader *r, bz_gguf *g);

#endif
