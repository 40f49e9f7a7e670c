#include "support/edited.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void copy_key(gguf_build *b, const bz_gguf_kv *kv)
{
    char key[128];
    snprintf(key, sizeof key, "%.*s", (int)kv->key.len, kv->key.data);
    size_t head = kv->is_array ? 12 : 0;
    uint8_t *value = malloc(head + kv->n_bytes + 1);
    if (kv->is_array) {
        uint32_t type = (uint32_t)kv->type;
        memcpy(value, &type, 4);
        memcpy(value + 4, &kv->count, 8);
    }
    memcpy(value + head, kv->bytes, kv->n_bytes);
    gb_raw(b, key, strlen(key), kv->is_array ? BZ_GGUF_ARRAY : (uint32_t)kv->type, value,
           head + kv->n_bytes);
    free(value);
}

static bool edit_key(gguf_build *b, const edit *e)
{
    switch (e->what) {
    case DROP_KEY: return true;
    case SET_U32:
    case ADD_U32: gb_u32(b, e->name, (uint32_t)e->number); return true;
    case SET_I32: gb_i32(b, e->name, (int32_t)e->number); return true;
    case SET_F32: gb_f32(b, e->name, (float)e->number); return true;
    case SET_STR: gb_str(b, e->name, e->text); return true;
    case SET_ARRAY: {
        int32_t ones[64];
        for (int i = 0; i < 64; i++) {
            ones[i] = 1;
        }
        gb_array(b, e->name, BZ_GGUF_I32, ones, (uint64_t)e->number);
        return true;
    }
    default: return false;
    }
}

static void copy_tensor(gguf_build *b, const bz_gguf_tensor *t, const uint8_t *data, const edit *e)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
    bool hit = strcmp(name, e->name) == 0;
    uint64_t ne[4] = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    uint32_t type = t->type;
    uint8_t *copy = malloc(t->size);
    memcpy(copy, data + t->offset, t->size);
    const void *bytes = copy;
    if (hit && e->what == DROP_TENSOR) {
        free(copy);
        return;
    }
    if (hit && e->what == RENAME_TENSOR) {
        snprintf(name, sizeof name, "%s", e->text);
    }
    if (hit && (e->what == SET_ROWS || e->what == SET_COLS || e->what == SET_TYPE)) {
        bytes = NULL;
        ne[1] = e->what == SET_ROWS ? (uint64_t)e->number : ne[1];
        ne[0] = e->what == SET_COLS ? (uint64_t)e->number : ne[0];
        type = e->what == SET_TYPE ? (uint32_t)e->number : type;
    }
    if (hit && e->what == POISON_F32) {
        float bad = e->number == 0 ? NAN : INFINITY;
        memcpy(copy, &bad, sizeof bad);
    }
    gb_tensor(b, name, type, t->n_dims, ne, bytes);
    free(copy);
}

void build_edited(gguf_build *b, const golden *from, const edit *e)
{
    gb_init(b);
    for (size_t i = 0; i < from->gguf.n_kv; i++) {
        const bz_gguf_kv *kv = &from->gguf.kv[i];
        if (!bz_str_is(kv->key, e->name) || !edit_key(b, e)) {
            copy_key(b, kv);
        }
    }
    if (e->what == ADD_U32) {
        edit_key(b, e);
    }
    for (size_t i = 0; i < from->gguf.n_tensors; i++) {
        copy_tensor(b, &from->gguf.tensors[i], from->map.data, e);
    }
    if (e->what == ADD_TENSOR) {
        gb_tensor(b, e->name, BZ_F32, 1, (uint64_t[]){(uint64_t)e->number}, NULL);
    }
    gb_finish(b);
}

bz_status open_bytes(const void *bytes, size_t size, bz_model **m, bz_error *err)
{
    bz_job *job = NULL;
    const bz_input input = {"test.gguf", size, bytes};
    bz_status status = bz_model_open(&job, &input, 1, NULL, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, NULL, err);
        *m = bz_job_model(job);
        bz_job_free(job);
    }
    return status;
}
