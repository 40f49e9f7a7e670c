/* GGUF container: parses the header and checks every entry.
 *
 *   magic "GGUF", version u32, tensor count u64, key count u64,
 *   keys:    name, value type u32, value
 *   tensors: name, n_dims u32, dims u64[n_dims], type u32, offset u64
 *   padding to the alignment, then the tensors' data
 *
 * All little-endian; a string is a u64 length and its bytes. gguf_reader.c reads bytes,
 * gguf_check.c checks the entries against each other, gguf_values.c converts values.
 */
#include "file/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "file/gguf_reader.h"
#include "file/sniff.h"

enum {
    FIXED_BYTES = 4 + 4 + 8 + 8,          /* magic, version, two counts */
    KEY_BYTES = 8 + 1 + 4 + 1,            /* the shortest key: one letter, one byte */
    TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* the shortest tensor info: one letter, one dimension */
    KEY_NAME_MAX = 65536,
    TENSOR_NAME_MAX = 127,
    STRING_MAX = 1 << 30
};

/* ---- the fixed part ------------------------------------------------------ */

static bool check_magic(gguf_reader *r)
{
    size_t n = (size_t)(r->size < FIXED_BYTES ? r->size : FIXED_BYTES);
    if (r->size == 0) {
        return bz_gguf_refuse(r, "the file is empty; download it again");
    }
    if (r->n < n) { /* needed to recognize other file types */
        r->claimed = n;
        r->answer = BZ_GGUF_MORE;
        return false;
    }
    if (memcmp(r->bytes, "GGUF", n < 4 ? n : 4) != 0) {
        const char *what = bz_sniff(r->bytes, n);
        char shown[200];
        if (what) {
            return bz_gguf_refuse(r, "this is not a GGUF file but %s", what);
        }
        bz_str start = {(const char *)r->bytes, n < 8 ? n : 8};
        return bz_gguf_refuse(r, "this is not a GGUF file: it starts with \"%s\"",
                              bz_str_show(start, shown));
    }
    if (n < FIXED_BYTES) {
        return bz_gguf_refuse(r,
                              "the file is cut off (%" PRIu64
                              " bytes, header needs at least %d); download it again",
                              r->size, FIXED_BYTES);
    }
    r->at = 4;
    r->claimed = FIXED_BYTES;
    return true;
}

static bool check_version(gguf_reader *r, uint32_t version)
{
    if (version == 2 || version == 3) {
        return true;
    }
    if (version == 1) {
        return bz_gguf_refuse(
            r, "the file is GGUF version 1, of 2023; convert the model to GGUF again");
    }
    if (version != 0 && (version & 0xFFFF) == 0) {
        return bz_gguf_refuse(
            r, "the file is big-endian GGUF; get the little-endian file of this model");
    }
    return bz_gguf_refuse(r, "the file is GGUF version %" PRIu32 "; versions 2 and 3 are supported",
                          version);
}

/* ---- keys --------------------------------------------------------------- */

/* Skips `count` strings, whose lengths (8 bytes each) are claimed already. Real files have
 * 777,000 of them, all read again at each call. */
static bool skip_strings(gguf_reader *r, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t len;
        if (!bz_gguf_take_u64(r, &len)) {
            return false;
        }
        if (len > STRING_MAX) {
            return bz_gguf_refuse_entry(
                r, "holds a string of %" PRIu64 " bytes; at most %d are allowed", len, STRING_MAX);
        }
        if (!bz_gguf_claim(r, len) || !bz_gguf_take(r, len)) {
            return false;
        }
    }
    return true;
}

static bool read_value(gguf_reader *r, bz_gguf_kv *kv)
{
    uint32_t type;
    uint64_t count = 1, claimed = 1; /* claimed: of the value's bytes; KEY_BYTES has 1 */
    if (!bz_gguf_take_u32(r, &type)) {
        return false;
    }
    if (type == BZ_GGUF_ARRAY) {
        if (!bz_gguf_claim(r, 12 - 1) || !bz_gguf_take_u32(r, &type) ||
            !bz_gguf_take_u64(r, &count)) {
            return false;
        }
        claimed = 0;
        kv->is_array = true;
        if (type == BZ_GGUF_ARRAY) {
            return bz_gguf_refuse_entry(r, "is an array of arrays, which GGUF does not allow");
        }
    }
    if (type > BZ_GGUF_F64) {
        return bz_gguf_refuse_entry(r, "has a value of unknown type %" PRIu32, type);
    }
    uint64_t each = type == BZ_GGUF_STRING ? 8 : bz_gguf_type_size(type);
    if (count > UINT64_MAX / each) {
        return bz_gguf_refuse_entry(
            r, "claims %" PRIu64 " elements, more than a file of %" PRIu64 " bytes can hold", count,
            r->size);
    }
    if (!bz_gguf_claim(r, count * each - claimed)) {
        return false;
    }
    uint64_t start = r->at;
    if (type == BZ_GGUF_STRING ? !skip_strings(r, count) : !bz_gguf_take(r, count * each)) {
        return false;
    }
    kv->type = (bz_gguf_type)type;
    kv->count = count;
    kv->bytes = r->bytes + start;
    kv->n_bytes = (size_t)(r->at - start);
    return true;
}

/* Grows an array for one more entry. Arrays grow as entries are read, not by the counts in the
 * file, so memory stays proportional to the bytes given. */
static void *grow(void *array, size_t used, size_t *capacity, size_t each)
{
    if (used < *capacity) {
        return array;
    }
    size_t wanted = *capacity ? *capacity * 2 : 64;
    if (wanted < *capacity || wanted > SIZE_MAX / each) {
        return NULL;
    }
    void *larger = realloc(array, wanted * each);
    if (larger) {
        *capacity = wanted;
    }
    return larger;
}

static bool read_keys(gguf_reader *r, bz_gguf *g, uint64_t n)
{
    size_t capacity = 0;
    for (uint64_t i = 0; i < n; i++) {
        bz_gguf_kv kv = {0};
        r->kind = "key";
        r->name.data = NULL;
        r->number = i + 1;
        if (!bz_gguf_take_name(r, KEY_NAME_MAX, &kv.key) || !read_value(r, &kv)) {
            return false;
        }
        bz_gguf_kv *array = grow(g->kv, g->n_kv, &capacity, sizeof *array);
        if (!array) {
            return bz_gguf_no_memory(r);
        }
        g->kv = array;
        g->kv[g->n_kv++] = kv;
    }
    return true;
}

/* ---- tensors ------------------------------------------------------------ */

static bool multiply(uint64_t *product, uint64_t factor)
{
    if (factor != 0 && *product > UINT64_MAX / factor) {
        return false;
    }
    *product *= factor;
    return true;
}

static bool check_shape(gguf_reader *r, bz_gguf_tensor *t)
{
    const bz_type_info *info = bz_type_of(t->type);
    if (!info) {
        return bz_gguf_refuse_entry(
            r, "has the unknown type %" PRIu32 "; the file is damaged or newer than this program",
            t->type);
    }
    if (t->ne[0] % info->block_values != 0) {
        return bz_gguf_refuse_entry(r,
                                    "has rows of %" PRIu64 " values, not a multiple of the %" PRIu32
                                    " values in a block of its type %s",
                                    t->ne[0], info->block_values, info->name);
    }
    uint64_t bytes = t->ne[0] / info->block_values;
    uint64_t values = t->ne[0];
    if (!multiply(&bytes, info->block_bytes) || !multiply(&bytes, t->ne[1]) ||
        !multiply(&bytes, t->ne[2]) || !multiply(&bytes, t->ne[3]) ||
        !multiply(&values, t->ne[1]) || !multiply(&values, t->ne[2]) ||
        !multiply(&values, t->ne[3])) {
        return bz_gguf_refuse_entry(
            r, "has impossible dimensions %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64,
            t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
    }
    t->size = bytes;
    return true;
}

static bool read_tensor(gguf_reader *r, bz_gguf_tensor *t)
{
    if (!bz_gguf_take_name(r, TENSOR_NAME_MAX, &t->name) || !bz_gguf_take_u32(r, &t->n_dims)) {
        return false;
    }
    if (t->n_dims < 1 || t->n_dims > 4) {
        return bz_gguf_refuse_entry(r, "has %" PRIu32 " dimensions; 1 to 4 are allowed", t->n_dims);
    }
    if (!bz_gguf_claim(r, (t->n_dims - 1) * (uint64_t)8)) {
        return false;
    }
    for (uint32_t d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims && !bz_gguf_take_u64(r, &t->ne[d])) {
            return false;
        }
        if (t->ne[d] == 0) {
            return bz_gguf_refuse_entry(r, "has no values: dimension %" PRIu32 " is 0", d);
        }
    }
    return bz_gguf_take_u32(r, &t->type) && bz_gguf_take_u64(r, &t->offset) && check_shape(r, t);
}

static bool read_tensors(gguf_reader *r, bz_gguf *g, uint64_t n)
{
    size_t capacity = 0;
    for (uint64_t i = 0; i < n; i++) {
        bz_gguf_tensor tensor = {0};
        r->kind = "tensor";
        r->name.data = NULL;
        r->number = i + 1;
        if (!read_tensor(r, &tensor)) {
            return false;
        }
        bz_gguf_tensor *array = grow(g->tensors, g->n_tensors, &capacity, sizeof *array);
        if (!array) {
            return bz_gguf_no_memory(r);
        }
        g->tensors = array;
        g->tensors[g->n_tensors++] = tensor;
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------- */

static bool parse(gguf_reader *r, bz_gguf *g)
{
    uint64_t n_tensors, n_kv;
    if (!check_magic(r) || !bz_gguf_take_u32(r, &g->version) || !check_version(r, g->version) ||
        !bz_gguf_take_u64(r, &n_tensors) || !bz_gguf_take_u64(r, &n_kv)) {
        return false;
    }
    /* Before any entry is read: refuse counts that the file cannot hold. */
    uint64_t left = r->size - r->claimed;
    if (n_kv > left / KEY_BYTES) {
        return bz_gguf_refuse(r,
                              "the header claims %" PRIu64 " keys, more than a file of %" PRIu64
                              " bytes can hold; download it again",
                              n_kv, r->size);
    }
    left -= n_kv * KEY_BYTES;
    if (n_tensors > left / TENSOR_BYTES) {
        return bz_gguf_refuse(r,
                              "the header claims %" PRIu64 " tensors, more than a file of %" PRIu64
                              " bytes can hold; download it again",
                              n_tensors, r->size);
    }
    return bz_gguf_claim(r, n_kv * KEY_BYTES + n_tensors * TENSOR_BYTES) && read_keys(r, g, n_kv) &&
           read_tensors(r, g, n_tensors) && bz_gguf_check(r, g);
}

bz_gguf_answer bz_gguf_parse(bz_gguf *gguf, const uint8_t *bytes, uint64_t n_bytes,
                             uint64_t file_size, uint64_t *at_least, bz_error *err)
{
    bz_gguf g = {0};
    gguf_reader r = {.bytes = bytes,
                     .n = n_bytes < file_size ? n_bytes : file_size,
                     .size = file_size,
                     .err = err};
    if (parse(&r, &g)) {
        *gguf = g;
        return BZ_GGUF_DONE;
    }
    bz_gguf_free(&g);
    if (r.answer == BZ_GGUF_MORE) {
        *at_least = r.claimed;
    }
    return r.answer;
}

void bz_gguf_free(bz_gguf *gguf)
{
    if (gguf) {
        free(gguf->kv);
        free(gguf->tensors);
        free(gguf->kv_by_name);
        free(gguf->tensors_by_name);
        *gguf = (bz_gguf){0};
    }
}
