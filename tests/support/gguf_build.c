#include "gguf_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void give_up(const char *why)
{
    fprintf(stderr, "gguf_build: %s\n", why);
    abort();
}

static void *resized(void *p, size_t n)
{
    p = realloc(p, n);
    if (!p) {
        give_up("out of memory");
    }
    return p;
}

static void append(gb_bytes *to, const void *bytes, size_t n)
{
    if (n > to->room - to->size) {
        to->room = (to->room + n) * 2;
        to->data = resized(to->data, to->room);
    }
    if (n > 0) {
        if (bytes) {
            memcpy(to->data + to->size, bytes, n);
        } else {
            memset(to->data + to->size, 0, n);
        }
    }
    to->size += n;
}

static void store(uint8_t *at, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static void append_number(gb_bytes *to, unsigned width, uint64_t value)
{
    uint8_t bytes[8];
    store(bytes, width, value);
    append(to, bytes, width);
}

static void append_name(gb_bytes *to, const char *name, size_t n)
{
    append_number(to, 8, n);
    append(to, name, n);
}

static gb_spot *new_spot(gguf_build *b, const char *name, size_t n)
{
    if (b->n_spots == b->room) {
        b->room = b->room ? b->room * 2 : 64;
        b->spots = resized(b->spots, b->room * sizeof *b->spots);
    }
    gb_spot *spot = &b->spots[b->n_spots++];
    *spot = (gb_spot){.name = resized(NULL, n + 1)};
    memcpy(spot->name, name, n);
    spot->name[n] = 0;
    return spot;
}

void gb_init(gguf_build *b)
{
    *b = (gguf_build){.version = 3, .alignment = 32};
}

void gb_free(gguf_build *b)
{
    for (size_t i = 0; i < b->n_spots; i++) {
        free(b->spots[i].name);
    }
    free(b->spots);
    free(b->keys.data);
    free(b->infos.data);
    free(b->data.data);
    free(b->bytes);
    *b = (gguf_build){0};
}

/* ---- keys --------------------------------------------------------------- */

void gb_raw(gguf_build *b, const char *key, size_t key_size, uint32_t type, const void *value,
            size_t n)
{
    gb_spot *spot = new_spot(b, key, key_size);
    spot->name_length = b->keys.size;
    append_name(&b->keys, key, key_size);
    spot->name_bytes = spot->name_length + 8;
    spot->type = b->keys.size;
    append_number(&b->keys, 4, type);
    spot->value = b->keys.size;
    append(&b->keys, value, n);
    b->n_keys++;
}

static void put_number(gguf_build *b, const char *key, bz_gguf_type type, unsigned width,
                       uint64_t value)
{
    uint8_t bytes[8];
    store(bytes, width, value);
    gb_raw(b, key, strlen(key), type, bytes, width);
}

void gb_u8(gguf_build *b, const char *key, uint8_t value)
{
    put_number(b, key, BZ_GGUF_U8, 1, value);
}

void gb_i8(gguf_build *b, const char *key, int8_t value)
{
    put_number(b, key, BZ_GGUF_I8, 1, (uint64_t)value);
}

void gb_u16(gguf_build *b, const char *key, uint16_t value)
{
    put_number(b, key, BZ_GGUF_U16, 2, value);
}

void gb_i16(gguf_build *b, const char *key, int16_t value)
{
    put_number(b, key, BZ_GGUF_I16, 2, (uint64_t)value);
}

void gb_u32(gguf_build *b, const char *key, uint32_t value)
{
    put_number(b, key, BZ_GGUF_U32, 4, value);
}

void gb_i32(gguf_build *b, const char *key, int32_t value)
{
    put_number(b, key, BZ_GGUF_I32, 4, (uint64_t)value);
}

void gb_u64(gguf_build *b, const char *key, uint64_t value)
{
    put_number(b, key, BZ_GGUF_U64, 8, value);
}

void gb_i64(gguf_build *b, const char *key, int64_t value)
{
    put_number(b, key, BZ_GGUF_I64, 8, (uint64_t)value);
}

void gb_f32(gguf_build *b, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(b, key, BZ_GGUF_F32, 4, bits);
}

void gb_f64(gguf_build *b, const char *key, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(b, key, BZ_GGUF_F64, 8, bits);
}

void gb_bool(gguf_build *b, const char *key, bool value)
{
    put_number(b, key, BZ_GGUF_BOOL, 1, value);
}

void gb_str(gguf_build *b, const char *key, const char *value)
{
    gb_bytes bytes = {0};
    append_name(&bytes, value, strlen(value));
    gb_raw(b, key, strlen(key), BZ_GGUF_STRING, bytes.data, bytes.size);
    free(bytes.data);
}

void gb_array(gguf_build *b, const char *key, bz_gguf_type type, const void *values, uint64_t count)
{
    gb_bytes bytes = {0};
    append_number(&bytes, 4, type);
    append_number(&bytes, 8, count);
    append(&bytes, values, (size_t)count * bz_gguf_type_size(type));
    gb_raw(b, key, strlen(key), BZ_GGUF_ARRAY, bytes.data, bytes.size);
    free(bytes.data);
}

void gb_strings(gguf_build *b, const char *key, const char *const *values, uint64_t count)
{
    gb_bytes bytes = {0};
    append_number(&bytes, 4, BZ_GGUF_STRING);
    append_number(&bytes, 8, count);
    for (uint64_t i = 0; i < count; i++) {
        append_name(&bytes, values[i], strlen(values[i]));
    }
    gb_raw(b, key, strlen(key), BZ_GGUF_ARRAY, bytes.data, bytes.size);
    free(bytes.data);
}

/* ---- tensors ------------------------------------------------------------ */

void gb_tensor_raw(gguf_build *b, const char *name, size_t name_size, uint32_t type,
                   uint32_t n_dims, const uint64_t *dims, const void *data)
{
    const bz_type_info *info = bz_type_of(type);
    uint64_t values = 1;
    gb_spot *spot = new_spot(b, name, name_size);
    spot->is_tensor = true;
    spot->name_length = b->infos.size;
    append_name(&b->infos, name, name_size);
    spot->name_bytes = spot->name_length + 8;
    spot->n_dims = b->infos.size;
    append_number(&b->infos, 4, n_dims);
    spot->dims = b->infos.size;
    for (uint32_t d = 0; d < n_dims; d++) {
        append_number(&b->infos, 8, dims[d]);
        values *= dims[d];
    }
    spot->type = b->infos.size;
    append_number(&b->infos, 4, type);
    spot->offset = b->infos.size;
    append_number(&b->infos, 8, b->data_size);
    b->n_tensors++;

    uint64_t size = info ? values / info->block_values * info->block_bytes : values * 4;
    uint64_t padding = (b->alignment - size % b->alignment) % b->alignment;
    if (!b->header_only) {
        append(&b->data, data, (size_t)size);
        append(&b->data, NULL, (size_t)padding);
    }
    b->data_size += size + padding;
}

void gb_tensor(gguf_build *b, const char *name, uint32_t type, uint32_t n_dims,
               const uint64_t *dims, const void *data)
{
    gb_tensor_raw(b, name, strlen(name), type, n_dims, dims, data);
}

/* ---- the whole ---------------------------------------------------------- */

void gb_finish(gguf_build *b)
{
    gb_bytes all = {0};
    append(&all, "GGUF", 4);
    append_number(&all, 4, b->version);
    append_number(&all, 8, b->n_tensors);
    append_number(&all, 8, b->n_keys);
    size_t keys_at = all.size, infos_at = keys_at + b->keys.size;
    append(&all, b->keys.data, b->keys.size);
    append(&all, b->infos.data, b->infos.size);
    b->header_size = all.size;
    size_t padding = (b->alignment - all.size % b->alignment) % b->alignment;
    b->file_size = all.size + padding + b->data_size;
    if (!b->header_only) {
        append(&all, NULL, padding);
        append(&all, b->data.data, b->data.size);
    }
    /* exactly as large as the file, so that sanitisers see a read past its end */
    b->size = all.size;
    b->bytes = resized(all.data, all.size);

    for (size_t i = 0; i < b->n_spots; i++) {
        gb_spot *spot = &b->spots[i];
        size_t shift = spot->is_tensor ? infos_at : keys_at;
        spot->name_length += shift;
        spot->name_bytes += shift;
        spot->type += shift;
        spot->value += shift;
        spot->n_dims += shift;
        spot->dims += shift;
        spot->offset += shift;
    }
}

const gb_spot *gb_spot_of(const gguf_build *b, const char *name)
{
    for (size_t i = b->n_spots; i-- > 0;) {
        if (strcmp(b->spots[i].name, name) == 0) {
            return &b->spots[i];
        }
    }
    give_up(name);
    return NULL;
}

void gb_set(gguf_build *b, size_t at, unsigned width, uint64_t value)
{
    if (width > b->size || at > b->size - width) {
        give_up("gb_set outside the file");
    }
    store(b->bytes + at, width, value);
}

void gb_sample(gguf_build *b)
{
    static const int32_t numbers[] = {1, -2, 3};
    static const char *const words[] = {"alpha", "", "gamma"};
    gb_init(b);
    gb_str(b, "general.architecture", "gemma4");
    gb_u32(b, "general.alignment", 32);
    gb_u32(b, "test.u32", 7);
    gb_array(b, "test.numbers", BZ_GGUF_I32, numbers, 3);
    gb_strings(b, "test.words", words, 3);
    gb_tensor(b, "a.weight", BZ_F32, 2, (uint64_t[]){4, 3}, NULL);
    gb_tensor(b, "b.weight", BZ_Q4_0, 2, (uint64_t[]){64, 2}, NULL);
    gb_tensor(b, "c", BZ_F16, 1, (uint64_t[]){5}, NULL);
}

bz_gguf_answer gb_parse_copy(const uint8_t *bytes, size_t n, uint64_t file_size, uint64_t *at_least,
                             bz_error *err)
{
    bz_gguf gguf = {0};
    uint8_t *copy = resized(NULL, n ? n : 1);
    memcpy(copy, bytes, n);
    *at_least = 0;
    bz_gguf_answer answer = bz_gguf_parse(&gguf, copy, n, file_size, at_least, err);
    bz_gguf_free(&gguf);
    free(copy);
    return answer;
}
