/* GGUF container: walking the header and checking everything in it.
 *
 *   magic "GGUF", version u32, tensor count u64, key count u64,
 *   keys:    name, value type u32, value
 *   tensors: name, n_dims u32, dims u64[n_dims], type u32, offset u64
 *   padding to the alignment, then the tensors' data
 *
 * All little-endian; a string is a u64 length and its bytes. The bytes may come from
 * anywhere, so nothing is believed before it is checked against the file's size.
 */
#include "file/gguf.h"
#include "file/sniff.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIXED_BYTES = 4 + 4 + 8 + 8,          /* magic, version, two counts */
    KEY_BYTES = 8 + 1 + 4 + 1,            /* the shortest key: one letter, one byte */
    TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8, /* the shortest tensor info: one letter, one dimension */
    KEY_NAME_MAX = 65536,
    TENSOR_NAME_MAX = 127,
    STRING_MAX = 1 << 30,
    HEADER_MAX = 1 << 30, /* it must fit in memory; the largest real ones have 20 MB */
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MAX = 1 << 20
};

/* ---- reader ------------------------------------------------------------- */

/* `claimed` is the heart of it: the number of bytes the header is proven to have,
 * from what was read so far. It starts with the fixed part, takes in the shortest
 * possible form of all keys and tensors once the counts are known, and grows with each
 * length that turns out longer. Passing the file's size means a cut-off file; running
 * out of bytes in memory means that `claimed` bytes are needed. at <= n and
 * at <= claimed <= size always hold. */
typedef struct reader {
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
} reader;

/* What is being read: `key "general.name"`, or `key number 3` when the name is still
 * unread. */
static const char *describe(const reader *r, char buf[240])
{
    char shown[200];
    if (!r->kind) {
        snprintf(buf, 240, "the number of entries");
    } else if (!r->name.data) {
        snprintf(buf, 240, "%s number %" PRIu64, r->kind, r->number);
    } else {
        snprintf(buf, 240, "%s \"%s\"", r->kind, bz_str_show(r->name, shown));
    }
    return buf;
}

/* Fill the error with one sentence and return false, for `return refuse(r, ...)`.
 * The sentence of refuse_entry begins with what is being read. */
static bool refuse(reader *r, const char *format, ...) BZ_PRINTF(2, 3);
static bool refuse_entry(reader *r, const char *format, ...) BZ_PRINTF(2, 3);

static bool refuse(reader *r, const char *format, ...)
{
    bz_error said;
    va_list args;
    va_start(args, format);
    vsnprintf(said.text, sizeof said.text, format, args);
    va_end(args);
    bz_fail(r->err, BZ_BAD_FILE, "%s", said.text);
    r->answer = BZ_GGUF_ERROR;
    return false;
}

static bool refuse_entry(reader *r, const char *format, ...)
{
    bz_error said;
    char what[240];
    va_list args;
    va_start(args, format);
    vsnprintf(said.text, sizeof said.text, format, args);
    va_end(args);
    return refuse(r, "%s %s", describe(r, what), said.text);
}

static bool out_of_memory(reader *r)
{
    bz_fail(r->err, BZ_OUT_OF_MEMORY, "there is not enough memory to read the file's header");
    r->answer = BZ_GGUF_ERROR;
    return false;
}

static bool claim(reader *r, uint64_t more)
{
    if (more > r->size - r->claimed) {
        char what[240];
        uint64_t need = more > UINT64_MAX - r->claimed ? UINT64_MAX : r->claimed + more;
        return refuse(r,
                      "the file is cut off at %s (%" PRIu64 " bytes, header needs at least %" PRIu64
                      "); download it again",
                      describe(r, what), r->size, need);
    }
    r->claimed += more;
    if (r->claimed > HEADER_MAX) {
        return refuse_entry(r, "makes the header at least %" PRIu64 " bytes long, more than any model has",
                            r->claimed);
    }
    return true;
}

/* The next k bytes, which must have been claimed; NULL when they are not in memory. */
static const uint8_t *take(reader *r, uint64_t k)
{
    if (k > r->n - r->at) {
        r->answer = BZ_GGUF_MORE;
        return NULL;
    }
    const uint8_t *p = r->bytes + r->at;
    r->at += k;
    return p;
}

/* Compilers turn these into one load. */
static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t load_u64(const uint8_t *p)
{
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

static bool take_u32(reader *r, uint32_t *out)
{
    const uint8_t *p = take(r, 4);
    if (p) {
        *out = load_u32(p);
    }
    return p != NULL;
}

static bool take_u64(reader *r, uint64_t *out)
{
    const uint8_t *p = take(r, 8);
    if (p) {
        *out = load_u64(p);
    }
    return p != NULL;
}

/* The name of a key or tensor, of which 8 + 1 bytes are claimed. */
static bool take_name(reader *r, uint64_t longest, bz_str *out)
{
    uint64_t len;
    if (!take_u64(r, &len)) {
        return false;
    }
    if (len == 0) {
        return refuse_entry(r, "has an empty name");
    }
    if (len > longest) {
        return refuse_entry(r, "has a name of %" PRIu64 " bytes; at most %" PRIu64 " are allowed", len,
                            longest);
    }
    if (!claim(r, len - 1)) {
        return false;
    }
    const uint8_t *p = take(r, len);
    if (!p) {
        return false;
    }
    out->data = (const char *)p;
    out->len = (size_t)len;
    r->name = *out;
    for (uint64_t i = 0; i < len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7F) {
            return refuse_entry(r, "has a control character in its name");
        }
    }
    return true;
}

/* ---- the fixed part ------------------------------------------------------ */

static bool check_magic(reader *r)
{
    size_t n = (size_t)(r->size < FIXED_BYTES ? r->size : FIXED_BYTES);
    if (r->size == 0) {
        return refuse(r, "the file is empty; download it again");
    }
    if (r->n < n) { /* a sentence about a strange file needs all of these */
        r->claimed = n;
        r->answer = BZ_GGUF_MORE;
        return false;
    }
    if (memcmp(r->bytes, "GGUF", n < 4 ? n : 4) != 0) {
        const char *what = bz_sniff(r->bytes, n);
        char shown[200];
        if (what) {
            return refuse(r, "this is not a GGUF file but %s", what);
        }
        bz_str start = {(const char *)r->bytes, n < 8 ? n : 8};
        return refuse(r, "this is not a GGUF file: it starts with \"%s\"", bz_str_show(start, shown));
    }
    if (n < FIXED_BYTES) {
        return refuse(r,
                      "the file is cut off (%" PRIu64 " bytes, header needs at least %d); download it again",
                      r->size, FIXED_BYTES);
    }
    r->at = 4;
    r->claimed = FIXED_BYTES;
    return true;
}

static bool check_version(reader *r, uint32_t version)
{
    if (version == 2 || version == 3) {
        return true;
    }
    if (version == 1) {
        return refuse(r, "the file is GGUF version 1, of 2023; convert the model to GGUF again");
    }
    if (version != 0 && (version & 0xFFFF) == 0) {
        return refuse(r, "the file is big-endian GGUF; get the little-endian file of this model");
    }
    return refuse(r, "the file is GGUF version %" PRIu32 "; versions 2 and 3 are supported", version);
}

/* ---- keys --------------------------------------------------------------- */

/* `count` strings, of which the lengths (8 bytes each) are claimed. Real files have
 * 777,000 of them, walked anew at each call. */
static bool walk_strings(reader *r, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t len;
        if (!take_u64(r, &len)) {
            return false;
        }
        if (len > STRING_MAX) {
            return refuse_entry(r, "holds a string of %" PRIu64 " bytes; at most %d are allowed", len,
                                STRING_MAX);
        }
        if (!claim(r, len) || !take(r, len)) {
            return false;
        }
    }
    return true;
}

static bool read_value(reader *r, bz_gguf_kv *kv)
{
    uint32_t type;
    uint64_t count = 1, claimed = 1; /* of the value's bytes; 1 by KEY_BYTES */
    if (!take_u32(r, &type)) {
        return false;
    }
    if (type == BZ_GGUF_ARRAY) {
        if (!claim(r, 12 - 1) || !take_u32(r, &type) || !take_u64(r, &count)) {
            return false;
        }
        claimed = 0;
        kv->is_array = true;
        if (type == BZ_GGUF_ARRAY) {
            return refuse_entry(r, "is an array of arrays, which GGUF does not allow");
        }
    }
    if (type > BZ_GGUF_F64) {
        return refuse_entry(r, "has a value of unknown type %" PRIu32, type);
    }
    uint64_t each = type == BZ_GGUF_STRING ? 8 : bz_gguf_type_size(type);
    if (count > UINT64_MAX / each) {
        return refuse_entry(r, "claims %" PRIu64 " elements, more than a file of %" PRIu64 " bytes can hold",
                            count, r->size);
    }
    if (!claim(r, count * each - claimed)) {
        return false;
    }
    uint64_t start = r->at;
    if (type == BZ_GGUF_STRING ? !walk_strings(r, count) : !take(r, count * each)) {
        return false;
    }
    kv->type = (bz_gguf_type)type;
    kv->count = count;
    kv->bytes = r->bytes + start;
    kv->n_bytes = (size_t)(r->at - start);
    return true;
}

/* Makes room for one more entry. Arrays grow as entries are found, never by the
 * counts in the file, so memory stays in proportion to the bytes given. */
static void *grown(void *array, size_t used, size_t *room, size_t each)
{
    if (used < *room) {
        return array;
    }
    size_t wanted = *room ? *room * 2 : 64;
    if (wanted < *room || wanted > SIZE_MAX / each) {
        return NULL;
    }
    void *larger = realloc(array, wanted * each);
    if (larger) {
        *room = wanted;
    }
    return larger;
}

static bool read_keys(reader *r, bz_gguf *g, uint64_t n)
{
    size_t room = 0;
    for (uint64_t i = 0; i < n; i++) {
        bz_gguf_kv kv = {0};
        r->kind = "key";
        r->name.data = NULL;
        r->number = i + 1;
        if (!take_name(r, KEY_NAME_MAX, &kv.key) || !read_value(r, &kv)) {
            return false;
        }
        bz_gguf_kv *array = grown(g->kv, g->n_kv, &room, sizeof *array);
        if (!array) {
            return out_of_memory(r);
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

static bool check_shape(reader *r, bz_gguf_tensor *t)
{
    const bz_type_info *info = bz_type_of(t->type);
    if (!info) {
        return refuse_entry(
            r, "has the unknown type %" PRIu32 "; the file is damaged or newer than this program", t->type);
    }
    if (t->ne[0] % info->block_values != 0) {
        return refuse_entry(r,
                            "has rows of %" PRIu64 " values, not a multiple of the %" PRIu32
                            " values in a block of its type %s",
                            t->ne[0], info->block_values, info->name);
    }
    uint64_t bytes = t->ne[0] / info->block_values;
    uint64_t values = t->ne[0];
    if (!multiply(&bytes, info->block_bytes) || !multiply(&bytes, t->ne[1]) || !multiply(&bytes, t->ne[2]) ||
        !multiply(&bytes, t->ne[3]) || !multiply(&values, t->ne[1]) || !multiply(&values, t->ne[2]) ||
        !multiply(&values, t->ne[3])) {
        return refuse_entry(r, "has impossible dimensions %" PRIu64 " x %" PRIu64 " x %" PRIu64 " x %" PRIu64,
                            t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
    }
    t->size = bytes;
    return true;
}

static bool read_tensor(reader *r, bz_gguf_tensor *t)
{
    if (!take_name(r, TENSOR_NAME_MAX, &t->name) || !take_u32(r, &t->n_dims)) {
        return false;
    }
    if (t->n_dims < 1 || t->n_dims > 4) {
        return refuse_entry(r, "has %" PRIu32 " dimensions; 1 to 4 are allowed", t->n_dims);
    }
    if (!claim(r, (t->n_dims - 1) * (uint64_t)8)) {
        return false;
    }
    for (uint32_t d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims && !take_u64(r, &t->ne[d])) {
            return false;
        }
        if (t->ne[d] == 0) {
            return refuse_entry(r, "has no values: dimension %" PRIu32 " is 0", d);
        }
    }
    return take_u32(r, &t->type) && take_u64(r, &t->offset) && check_shape(r, t);
}

static bool read_tensors(reader *r, bz_gguf *g, uint64_t n)
{
    size_t room = 0;
    for (uint64_t i = 0; i < n; i++) {
        bz_gguf_tensor tensor = {0};
        r->kind = "tensor";
        r->name.data = NULL;
        r->number = i + 1;
        if (!read_tensor(r, &tensor)) {
            return false;
        }
        bz_gguf_tensor *array = grown(g->tensors, g->n_tensors, &room, sizeof *array);
        if (!array) {
            return out_of_memory(r);
        }
        g->tensors = array;
        g->tensors[g->n_tensors++] = tensor;
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------- */

static int kv_order(const void *a, const void *b)
{
    return bz_gguf_name_order((*(const bz_gguf_kv *const *)a)->key, (*(const bz_gguf_kv *const *)b)->key);
}

static int tensor_order(const void *a, const void *b)
{
    return bz_gguf_name_order((*(const bz_gguf_tensor *const *)a)->name,
                              (*(const bz_gguf_tensor *const *)b)->name);
}

static int offset_order(const void *a, const void *b)
{
    const bz_gguf_tensor *x = *(const bz_gguf_tensor *const *)a, *y = *(const bz_gguf_tensor *const *)b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* same array: the order of the file, for a stable message */
}

static bool sort_keys(reader *r, bz_gguf *g)
{
    char shown[200];
    if (g->n_kv == 0) {
        return true;
    }
    g->kv_by_name = malloc(g->n_kv * sizeof *g->kv_by_name);
    if (!g->kv_by_name) {
        return out_of_memory(r);
    }
    for (size_t i = 0; i < g->n_kv; i++) {
        g->kv_by_name[i] = &g->kv[i];
    }
    qsort(g->kv_by_name, g->n_kv, sizeof *g->kv_by_name, kv_order);
    for (size_t i = 1; i < g->n_kv; i++) {
        if (kv_order(&g->kv_by_name[i - 1], &g->kv_by_name[i]) == 0) {
            return refuse(r, "key \"%s\" appears twice", bz_str_show(g->kv_by_name[i]->key, shown));
        }
    }
    return true;
}

static bool read_alignment(reader *r, bz_gguf *g)
{
    uint64_t alignment = ALIGNMENT_DEFAULT;
    const bz_gguf_kv *kv = bz_gguf_find(g, "general.alignment");
    if (kv && (kv->is_array || kv->type == BZ_GGUF_F32 || kv->type == BZ_GGUF_F64 ||
               !bz_gguf_get_u64(kv, 0, &alignment))) {
        return refuse(r, "key \"general.alignment\" is not a positive integer");
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > ALIGNMENT_MAX) {
        return refuse(r,
                      "key \"general.alignment\" is %" PRIu64 "; it must be a power of two between 1 and %d",
                      alignment, ALIGNMENT_MAX);
    }
    g->alignment = (uint32_t)alignment;
    return true;
}

/* Offsets from the file's start, and every tensor inside the file. */
static bool place_tensors(reader *r, bz_gguf *g)
{
    char shown[200];
    const bz_gguf_tensor *incomplete = NULL;
    uint64_t last_end = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        bz_gguf_tensor *t = &g->tensors[i];
        if (t->offset % g->alignment != 0) {
            return refuse(
                r, "tensor \"%s\" has offset %" PRIu64 ", not a multiple of the file's alignment %" PRIu32,
                bz_str_show(t->name, shown), t->offset, g->alignment);
        }
        if (t->offset > UINT64_MAX - g->data_start || t->size > UINT64_MAX - g->data_start - t->offset) {
            return refuse(r, "tensor \"%s\" has the impossible offset %" PRIu64, bz_str_show(t->name, shown),
                          t->offset);
        }
        t->offset += g->data_start;
        uint64_t end = t->offset + t->size;
        if (end > r->size && !incomplete) {
            incomplete = t;
        }
        last_end = end > last_end ? end : last_end;
    }
    if (incomplete) {
        return refuse(r,
                      "the file is cut off: %" PRIu64 " of %" PRIu64
                      " bytes are missing, from tensor \"%s\" on; download it again",
                      last_end - r->size, last_end, bz_str_show(incomplete->name, shown));
    }
    return true;
}

static bool sort_tensors(reader *r, bz_gguf *g)
{
    char shown[200], other[200];
    const bz_gguf_tensor *below = NULL, *above = NULL; /* two that overlap */
    if (g->n_tensors == 0) {
        return true;
    }
    const bz_gguf_tensor **sorted = malloc(g->n_tensors * sizeof *sorted);
    if (!sorted) {
        return out_of_memory(r);
    }
    g->tensors_by_name = sorted;
    for (size_t i = 0; i < g->n_tensors; i++) {
        sorted[i] = &g->tensors[i];
    }
    qsort(sorted, g->n_tensors, sizeof *sorted, offset_order);
    for (size_t i = 1; i < g->n_tensors && !above; i++) {
        if (sorted[i - 1]->offset + sorted[i - 1]->size > sorted[i]->offset) {
            below = sorted[i - 1];
            above = sorted[i];
        }
    }
    qsort(sorted, g->n_tensors, sizeof *sorted, tensor_order);
    for (size_t i = 1; i < g->n_tensors; i++) {
        if (tensor_order(&sorted[i - 1], &sorted[i]) == 0) {
            return refuse(r, "tensor \"%s\" appears twice", bz_str_show(sorted[i]->name, shown));
        }
    }
    if (above) { /* after the names: a tensor listed twice overlaps itself */
        return refuse(r, "tensors \"%s\" and \"%s\" overlap in the file", bz_str_show(below->name, shown),
                      bz_str_show(above->name, other));
    }
    return true;
}

static bool parse(reader *r, bz_gguf *g)
{
    uint64_t n_tensors, n_kv;
    if (!check_magic(r) || !take_u32(r, &g->version) || !check_version(r, g->version) ||
        !take_u64(r, &n_tensors) || !take_u64(r, &n_kv)) {
        return false;
    }
    /* Before any entry is read: can the file hold so many? */
    uint64_t left = r->size - r->claimed;
    if (n_kv > left / KEY_BYTES) {
        return refuse(r,
                      "the header claims %" PRIu64 " keys, more than a file of %" PRIu64
                      " bytes can hold; download it again",
                      n_kv, r->size);
    }
    left -= n_kv * KEY_BYTES;
    if (n_tensors > left / TENSOR_BYTES) {
        return refuse(r,
                      "the header claims %" PRIu64 " tensors, more than a file of %" PRIu64
                      " bytes can hold; download it again",
                      n_tensors, r->size);
    }
    if (!claim(r, n_kv * KEY_BYTES + n_tensors * TENSOR_BYTES) || !read_keys(r, g, n_kv) ||
        !read_tensors(r, g, n_tensors)) {
        return false;
    }
    /* The header is complete from here on: no more MORE. */
    if (!sort_keys(r, g) || !read_alignment(r, g)) {
        return false;
    }
    g->header_size = r->at;
    g->data_start = (r->at + g->alignment - 1) & ~(uint64_t)(g->alignment - 1);
    if (!place_tensors(r, g) || !sort_tensors(r, g)) {
        return false;
    }
    if (g->data_start > r->size) { /* a file without tensors may end without padding */
        g->data_start = r->size;
    }
    return true;
}

bz_gguf_answer bz_gguf_parse(bz_gguf *gguf, const uint8_t *bytes, uint64_t n_bytes, uint64_t file_size,
                             uint64_t *at_least, bz_error *err)
{
    bz_gguf g = {0};
    reader r = {
        .bytes = bytes, .n = n_bytes < file_size ? n_bytes : file_size, .size = file_size, .err = err};
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
