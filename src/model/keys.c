#include "model/keys.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KEY = 96 };

/* The key with this file's architecture as its prefix. */
static const char *full_key(const bz_keys *r, const char *key, char out[MAX_KEY])
{
    const size_t n = strlen(BZ_KEY(""));
    if (strncmp(key, BZ_KEY(""), n) != 0) {
        return key;
    }
    snprintf(out, MAX_KEY, "%s.%s", r->arch, key + n);
    return out;
}

const bz_gguf_kv *bz_key_find(bz_keys *r, const char *key, bool required)
{
    char buf[MAX_KEY];
    key = full_key(r, key, buf);
    const bz_gguf_kv *kv = r->failed ? NULL : bz_gguf_find(r->g, key);
    if (!kv && required && !r->failed) {
        bz_fail(r->err, BZ_BAD_FILE, "The key %s is missing, so this is not a complete %s file.",
                key, r->family);
        r->failed = true;
    }
    return kv;
}

void bz_key_refuse(bz_keys *r, const char *key, const char *what)
{
    char buf[MAX_KEY];
    if (!r->failed) {
        bz_fail(r->err, BZ_BAD_FILE, "The key %s %s.", full_key(r, key, buf), what);
        r->failed = true;
    }
}

uint32_t bz_key_number(bz_keys *r, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *fallback)
{
    const bz_gguf_kv *kv = bz_key_find(r, key, fallback == NULL);
    uint64_t v = 0;
    if (!kv) {
        return fallback ? *fallback : 0;
    }
    if (kv->is_array || !bz_gguf_get_u64(kv, 0, &v)) {
        bz_key_refuse(r, key, "is not a whole number");
    } else if (v < low || v > high) {
        char what[100];
        snprintf(what, sizeof what, "is %llu; it must be between %u and %u", (unsigned long long)v,
                 low, high);
        bz_key_refuse(r, key, what);
        v = low;
    }
    return (uint32_t)v;
}

double bz_key_real(bz_keys *r, const char *key, double low, double high, const double *fallback)
{
    const bz_gguf_kv *kv = bz_key_find(r, key, fallback == NULL);
    double v = 0;
    if (!kv) {
        return fallback ? *fallback : low;
    }
    if (kv->is_array || !bz_gguf_get_f64(kv, 0, &v)) {
        bz_key_refuse(r, key, "is not a number");
        return low;
    }
    if (!(v >= low && v <= high)) { /* also refuses NaN */
        char what[100];
        snprintf(what, sizeof what, "is %g; it must be between %g and %g", v, low, high);
        bz_key_refuse(r, key, what);
        return low;
    }
    return v;
}

bool bz_key_flag(bz_keys *r, const char *key, bool fallback)
{
    const bz_gguf_kv *kv = bz_key_find(r, key, false);
    bool v = fallback;
    if (kv && !bz_gguf_get_bool(kv, 0, &v)) {
        bz_key_refuse(r, key, "is not true or false");
    }
    return v;
}

uint32_t bz_key_per_layer(bz_keys *r, const char *key, uint32_t layers, uint32_t i, uint32_t low,
                          uint32_t high)
{
    const bz_gguf_kv *kv = bz_key_find(r, key, true);
    if (!kv) {
        return low;
    }
    char what[120];
    uint64_t v = 0;
    if (kv->is_array && kv->count != layers) {
        snprintf(what, sizeof what, "has %llu elements for %u layers",
                 (unsigned long long)kv->count, layers);
        bz_key_refuse(r, key, what);
        return low;
    }
    if (!bz_gguf_get_u64(kv, kv->is_array ? i : 0, &v)) {
        bz_key_refuse(r, key, "does not hold whole numbers");
        return low;
    }
    if (v < low || v > high) {
        snprintf(what, sizeof what, "is %llu for layer %u; it must be between %u and %u",
                 (unsigned long long)v, i, low, high);
        bz_key_refuse(r, key, what);
        return low;
    }
    return (uint32_t)v;
}

uint32_t bz_key_head_dim(bz_keys *r, const char *key_length, const char *value_length,
                         const char *rope_length)
{
    uint32_t d = bz_key_number(r, key_length, 2, BZ_LARGEST_HEAD, NULL);
    uint32_t v = bz_key_number(r, value_length, 2, BZ_LARGEST_HEAD, &d);
    uint32_t rope = bz_key_number(r, rope_length, 2, BZ_LARGEST_HEAD, &d);
    if (v != d) {
        bz_key_refuse(r, value_length, "differs from the key length; Gemma 4 has them equal");
    }
    if (rope != d) {
        bz_key_refuse(r, rope_length,
                      "differs from the head size; Gemma 4 rotates over the whole head");
    }
    if (d % 2) {
        bz_key_refuse(r, key_length, "is odd; rotary position needs pairs");
    }
    return d;
}
