/* Reads a model's keys with their limits. The first error is kept, and every message names the key.
 */
#ifndef BZ_MODEL_KEYS_H
#define BZ_MODEL_KEYS_H

#include "file/gguf.h"

/* Far above any real model; they keep products of sizes from overflowing. */
enum {
    BZ_MOST_LAYERS = 1024,
    BZ_MOST_WIDTH = 1 << 18,
    BZ_MOST_HEADS = 1024,
    BZ_LARGEST_HEAD = 1024
};

typedef struct bz_keys {
    const bz_gguf *g;
    bz_error *err;
    bool failed;        /* after the first error; later reads do nothing */
    const char *arch;   /* prefix of the file's keys */
    const char *family; /* "Gemma 4", for messages */
} bz_keys;

/* Keys of the architecture are written with this prefix, which stands for the file's. */
#define BZ_KEY(name) ("arch." name)

const bz_gguf_kv *bz_key_find(bz_keys *r, const char *key, bool required);
void bz_key_refuse(bz_keys *r, const char *key, const char *what);
/* A number between low and high; `fallback` when the key is absent, NULL: it is required. */
uint32_t bz_key_number(bz_keys *r, const char *key, uint32_t low, uint32_t high,
                       const uint32_t *fallback);
double bz_key_real(bz_keys *r, const char *key, double low, double high, const double *fallback);
bool bz_key_flag(bz_keys *r, const char *key, bool fallback);
/* A number per layer: a scalar applies to every layer, an array has one element per layer. */
uint32_t bz_key_per_layer(bz_keys *r, const char *key, uint32_t layers, uint32_t i, uint32_t low,
                          uint32_t high);
/* Keys and values of one kind of layer have the same head size, and rope covers all of it. */
uint32_t bz_key_head_dim(bz_keys *r, const char *key_length, const char *value_length,
                         const char *rope_length);

#endif
