/* Looks up keys and tensors and converts the values of keys. Every read is checked against
 * kv->n_bytes again, so that a kv made by hand is as safe as one from the parser. */
#include "file/gguf.h"

#include <math.h>
#include <string.h>

/* ---- lookup ------------------------------------------------------------- */

int bz_gguf_name_order(bz_str a, bz_str b)
{
    return a.len != b.len ? (a.len < b.len ? -1 : 1) : memcmp(a.data, b.data, a.len);
}

const bz_gguf_kv *bz_gguf_find(const bz_gguf *gguf, const char *key)
{
    const bz_str wanted = {key, strlen(key)};
    size_t low = 0, high = gguf->n_kv;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bz_gguf_name_order(gguf->kv_by_name[middle]->key, wanted);
        if (order == 0) {
            return gguf->kv_by_name[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

const bz_gguf_tensor *bz_gguf_find_tensor(const bz_gguf *gguf, const char *name)
{
    const bz_str wanted = {name, strlen(name)};
    size_t low = 0, high = gguf->n_tensors;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bz_gguf_name_order(gguf->tensors_by_name[middle]->name, wanted);
        if (order == 0) {
            return gguf->tensors_by_name[middle];
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* ---- values ------------------------------------------------------------- */

/* A number of any type, converted to one of three forms. */
typedef struct number {
    enum { NOTHING, UNSIGNED, NEGATIVE, REAL } form;
    uint64_t u; /* UNSIGNED: any value from 0 up */
    int64_t i;  /* NEGATIVE: below 0 */
    double f;   /* REAL: finite */
} number;

static uint64_t load(const uint8_t *p, size_t width)
{
    uint64_t v = 0;
    for (size_t i = 0; i < width; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

size_t bz_gguf_type_size(uint32_t type)
{
    switch (type) {
    case BZ_GGUF_U8:
    case BZ_GGUF_I8:
    case BZ_GGUF_BOOL: return 1;
    case BZ_GGUF_U16:
    case BZ_GGUF_I16: return 2;
    case BZ_GGUF_U32:
    case BZ_GGUF_I32:
    case BZ_GGUF_F32: return 4;
    case BZ_GGUF_U64:
    case BZ_GGUF_I64:
    case BZ_GGUF_F64: return 8;
    default: return 0;
    }
}

static const uint8_t *element(const bz_gguf_kv *kv, uint64_t index)
{
    size_t width = kv ? bz_gguf_type_size(kv->type) : 0;
    if (width == 0 || index >= kv->count || index >= kv->n_bytes / width) {
        return NULL;
    }
    return kv->bytes + (size_t)index * width;
}

static number real(double f)
{
    return isfinite(f) ? (number){.form = REAL, .f = f} : (number){.form = NOTHING};
}

static number number_at(const bz_gguf_kv *kv, uint64_t index)
{
    number n = {.form = NOTHING};
    const uint8_t *p = element(kv, index);
    if (!p) {
        return n;
    }
    size_t width = bz_gguf_type_size(kv->type);
    uint64_t bits = load(p, width);
    switch (kv->type) {
    case BZ_GGUF_U8:
    case BZ_GGUF_U16:
    case BZ_GGUF_U32:
    case BZ_GGUF_U64: return (number){.form = UNSIGNED, .u = bits};
    case BZ_GGUF_I8:
    case BZ_GGUF_I16:
    case BZ_GGUF_I32:
    case BZ_GGUF_I64: {
        uint64_t sign = (uint64_t)1 << (8 * width - 1);
        if ((bits & sign) == 0) {
            return (number){.form = UNSIGNED, .u = bits};
        }
        /* bits - 2 * sign, without overflow */
        return (number){.form = NEGATIVE, .i = -(int64_t)(sign - (bits & (sign - 1)) - 1) - 1};
    }
    case BZ_GGUF_F32: {
        uint32_t word = (uint32_t)bits;
        float f;
        memcpy(&f, &word, sizeof f);
        return real((double)f);
    }
    case BZ_GGUF_F64: {
        double f;
        memcpy(&f, &bits, sizeof f);
        return real(f);
    }
    case BZ_GGUF_BOOL:
    case BZ_GGUF_STRING:
    case BZ_GGUF_ARRAY: break;
    }
    return n;
}

bool bz_gguf_get_u64(const bz_gguf_kv *kv, uint64_t index, uint64_t *out)
{
    number n = number_at(kv, index);
    if (n.form == UNSIGNED) {
        *out = n.u;
        return true;
    }
    if (n.form == REAL && n.f >= 0 && n.f < 18446744073709551616.0 && floor(n.f) == n.f) {
        *out = (uint64_t)n.f;
        return true;
    }
    return false;
}

bool bz_gguf_get_i64(const bz_gguf_kv *kv, uint64_t index, int64_t *out)
{
    number n = number_at(kv, index);
    if (n.form == UNSIGNED && n.u <= INT64_MAX) {
        *out = (int64_t)n.u;
        return true;
    }
    if (n.form == NEGATIVE) {
        *out = n.i;
        return true;
    }
    if (n.form == REAL && n.f >= -9223372036854775808.0 && n.f < 9223372036854775808.0 &&
        floor(n.f) == n.f) {
        *out = (int64_t)n.f;
        return true;
    }
    return false;
}

bool bz_gguf_get_f64(const bz_gguf_kv *kv, uint64_t index, double *out)
{
    const uint64_t exact = (uint64_t)1 << 53; /* every integer up to here is a double */
    number n = number_at(kv, index);
    if (n.form == REAL) {
        *out = n.f;
        return true;
    }
    if (n.form == UNSIGNED && n.u <= exact) {
        *out = (double)n.u;
        return true;
    }
    if (n.form == NEGATIVE && n.i >= -(int64_t)exact) {
        *out = (double)n.i;
        return true;
    }
    return false;
}

bool bz_gguf_get_bool(const bz_gguf_kv *kv, uint64_t index, bool *out)
{
    const uint8_t *p = element(kv, index);
    if (!p || kv->type == BZ_GGUF_F32 || kv->type == BZ_GGUF_F64) {
        return false;
    }
    *out = load(p, bz_gguf_type_size(kv->type)) != 0;
    return true;
}

/* The string at *cursor; moves *cursor past it. */
static bool next_string(const bz_gguf_kv *kv, size_t *cursor, bz_str *out)
{
    if (*cursor >= kv->n_bytes || kv->n_bytes - *cursor < 8) {
        return false;
    }
    uint64_t len = load(kv->bytes + *cursor, 8);
    if (len > kv->n_bytes - *cursor - 8) {
        return false;
    }
    out->data = (const char *)kv->bytes + *cursor + 8;
    out->len = (size_t)len;
    *cursor += 8 + (size_t)len;
    return true;
}

bool bz_gguf_get_str(const bz_gguf_kv *kv, bz_str *out)
{
    size_t cursor = 0;
    return kv && kv->type == BZ_GGUF_STRING && !kv->is_array && next_string(kv, &cursor, out);
}

bool bz_gguf_next_str(const bz_gguf_kv *kv, size_t *cursor, bz_str *out)
{
    return kv && kv->type == BZ_GGUF_STRING && kv->is_array && next_string(kv, cursor, out);
}
