/* bezel_debug.h: headers of GGUF files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "bezel_debug.h"
#include "file/files.h"
#include "model/config.h"

/* Where the last text of an array was, so that reading them in order takes one pass. */
typedef struct text_cursor {
    const bz_gguf_kv *kv; /* NULL: none */
    uint64_t next;        /* index of the text at `at` */
    size_t at;
} text_cursor;

struct bz_debug_files {
    size_t n;
    text_cursor *cursor;
    char **paths; /* [n] */
    bz_os_map *maps;
    bz_gguf *headers;
    bz_file *files;
    bz_debug_set set;
    bz_debug_layer *layers; /* of bz_debug_files_config */
};

void bz_debug_files_free(bz_debug_files *f)
{
    if (!f) {
        return;
    }
    for (size_t i = 0; i < f->n; i++) {
        bz_gguf_free(&f->headers[i]);
        bz_os_unmap(&f->maps[i]);
        free(f->paths[i]);
    }
    free(f->cursor);
    free(f->paths);
    free(f->maps);
    free(f->headers);
    free(f->files);
    free(f->layers);
    free(f);
}

bz_status bz_debug_files_check(const bz_debug_files *f, bz_error *err)
{
    for (size_t i = 0; i < f->n; i++) {
        if (bz_os_map_cut(&f->maps[i])) {
            return bz_fail(err, BZ_BAD_FILE,
                           "%s was shortened by another program while it was read; restore it.",
                           f->paths[i]);
        }
    }
    return BZ_OK;
}

/* ---- opening --------------------------------------------------------------- */

static bz_status add_file(bz_debug_files *f, const char *path, bz_error *err)
{
    const size_t i = f->n, len = strlen(path) + 1;
    char *copy = malloc(len);
    if (!copy) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    }
    memcpy(copy, path, len);
    f->paths[i] = copy;
    f->n++; /* from here on bz_debug_files_free releases it */
    bz_status status = bz_os_map_file(path, &f->maps[i], err);
    if (status != BZ_OK) {
        return status;
    }
    const bz_os_map *map = &f->maps[i];
    uint64_t at_least;
    bz_error why = {0};
    if (bz_gguf_parse(&f->headers[i], map->data, map->size, map->size, &at_least, &why) !=
        BZ_GGUF_DONE) {
        return bz_fail(err, why.code ? why.code : BZ_BAD_FILE, "%.100s: %s", path, why.text);
    }
    f->files[i] = (bz_file){copy, &f->headers[i], map->size};
    f->set.bytes += map->size;
    return BZ_OK;
}

static bz_status add_parts(bz_debug_files *f, const char *path, uint32_t count, bz_error *err)
{
    const size_t size = strlen(path) + 1;
    char *sibling = malloc(size);
    bz_status status =
        sibling ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    for (uint32_t i = 1; status == BZ_OK && i <= count; i++) {
        if (bz_split_sibling(path, i, sibling, size) &&
            (strcmp(sibling, path) == 0 || bz_os_file_exists(sibling))) {
            status = add_file(f, sibling, err);
        }
    }
    free(sibling);
    return status;
}

static bz_status add_files(bz_debug_files *f, const char *path, const char *mmproj, bz_error *err)
{
    uint32_t count = 1;
    const bool split = bz_split_name(path, NULL, &count) && count < BZ_FILES_MAX;
    const size_t capacity = (split ? count : 1u) + 1u;
    f->paths = calloc(capacity, sizeof *f->paths);
    f->maps = calloc(capacity, sizeof *f->maps);
    f->headers = calloc(capacity, sizeof *f->headers);
    f->files = calloc(capacity, sizeof *f->files);
    f->cursor = calloc(1, sizeof *f->cursor);
    if (!f->paths || !f->maps || !f->headers || !f->files || !f->cursor) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
    }
    bz_status status = split ? add_parts(f, path, count, err) : add_file(f, path, err);
    if (status == BZ_OK && mmproj) {
        status = add_file(f, mmproj, err);
    }
    return status;
}

static bz_debug_text text_of(bz_str s)
{
    return (bz_debug_text){s.data, s.len};
}

static void describe(bz_debug_files *f)
{
    bz_files whole;
    const bool is_whole = bz_files_init(&whole, f->files, f->n, NULL) == BZ_OK;
    f->set.n_files = f->n;
    for (size_t i = 0; i < f->n; i++) {
        if (is_whole ? whole.main == &f->headers[i]
                     : bz_gguf_find(&f->headers[i], "general.architecture") != NULL) {
            f->set.main = i;
            break;
        }
    }
    bz_str architecture = {"", 0};
    bz_gguf_get_str(bz_gguf_find(&f->headers[f->set.main], "general.architecture"), &architecture);
    f->set.architecture = text_of(architecture);
    f->set.known = bz_config_knows(architecture);
    if (is_whole && f->set.known) {
        f->set.flavor = whole.flavor == BZ_FLAVOR_OLLAMA ? "ollama" : "llama.cpp";
    }
}

bz_status bz_debug_files_open(bz_debug_files **out, const char *path, const char *mmproj,
                              bz_error *err)
{
    bz_debug_files *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
    }
    const bz_status status = add_files(f, path, mmproj, err);
    if (status != BZ_OK) {
        bz_debug_files_free(f);
        return status;
    }
    describe(f);
    *out = f;
    return BZ_OK;
}

/* ---- headers --------------------------------------------------------------- */

bz_debug_set bz_debug_files_set(const bz_debug_files *f)
{
    return f->set;
}

bz_debug_file bz_debug_files_file(const bz_debug_files *f, size_t file)
{
    const bz_gguf *g = &f->headers[file];
    return (bz_debug_file){.path = f->paths[file],
                           .size = f->maps[file].size,
                           .data = f->maps[file].data,
                           .version = g->version,
                           .alignment = g->alignment,
                           .header_bytes = g->header_size,
                           .data_offset = g->data_start,
                           .n_keys = g->n_kv,
                           .n_tensors = g->n_tensors};
}

bz_debug_key bz_debug_files_key(const bz_debug_files *f, size_t file, size_t key)
{
    static const char *const types[] = {"u8",   "i8",  "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "str", "array", "u64", "i64", "f64"};
    const bz_gguf_kv *kv = &f->headers[file].kv[key];
    return (bz_debug_key){.name = text_of(kv->key),
                          .type = (size_t)kv->type < sizeof types / sizeof *types ? types[kv->type]
                                                                                  : "?",
                          .is_array = kv->is_array,
                          .count = kv->count};
}

bool bz_debug_files_find(const bz_debug_files *f, size_t file, const char *name, size_t *key)
{
    const bz_gguf_kv *kv = bz_gguf_find(&f->headers[file], name);
    if (kv) {
        *key = (size_t)(kv - f->headers[file].kv);
    }
    return kv != NULL;
}

static bool string_at(text_cursor *c, const bz_gguf_kv *kv, uint64_t index, bz_str *out)
{
    bool found = false;
    if (c->kv != kv || c->next > index) {
        *c = (text_cursor){.kv = kv};
    }
    while (c->next <= index) {
        found = bz_gguf_next_str(kv, &c->at, out);
        c->next++;
    }
    return found;
}

bz_debug_value bz_debug_files_value(const bz_debug_files *f, size_t file, size_t key,
                                    uint64_t index)
{
    const bz_gguf_kv *kv = &f->headers[file].kv[key];
    bz_debug_value v = {.kind = BZ_DEBUG_NOT_FINITE};
    bz_str s = {"", 0};
    bool b;
    if (kv->type == BZ_GGUF_STRING) {
        if (kv->is_array ? string_at(f->cursor, kv, index, &s) : bz_gguf_get_str(kv, &s)) {
            v.text = text_of(s);
        }
        v.kind = BZ_DEBUG_TEXT;
    } else if (kv->type == BZ_GGUF_BOOL && bz_gguf_get_bool(kv, index, &b)) {
        v.kind = BZ_DEBUG_BOOL;
        v.u = b;
    } else if (kv->type == BZ_GGUF_F32 || kv->type == BZ_GGUF_F64) {
        if (bz_gguf_get_f64(kv, index, &v.f)) {
            v.kind = kv->type == BZ_GGUF_F32 ? BZ_DEBUG_F32 : BZ_DEBUG_F64;
        }
    } else if (bz_gguf_get_u64(kv, index, &v.u)) {
        v.kind = BZ_DEBUG_UINT;
    } else if (bz_gguf_get_i64(kv, index, &v.i)) {
        v.kind = BZ_DEBUG_INT;
    }
    return v;
}

bz_debug_tensor bz_debug_files_tensor(const bz_debug_files *f, size_t file, size_t tensor)
{
    const bz_gguf_tensor *t = &f->headers[file].tensors[tensor];
    const bz_type_info *type = bz_type_of(t->type);
    return (bz_debug_tensor){.name = text_of(t->name),
                             .type = t->type,
                             .type_name = type->name,
                             .runs = type->runs,
                             .n_dims = t->n_dims < 4 ? t->n_dims : 4,
                             .shape = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]},
                             .values = t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3],
                             .bytes = t->size,
                             .offset = t->offset};
}

uint64_t bz_debug_files_not_finite(const bz_debug_files *f, size_t file, size_t tensor,
                                   uint64_t from, uint64_t n, uint64_t *first)
{
    enum { PIECE = 4096 };
    float values[PIECE];
    const bz_gguf_tensor *t = &f->headers[file].tensors[tensor];
    const bz_type type = (bz_type)t->type;
    const uint8_t *bytes = f->maps[file].data + t->offset;
    uint64_t bad = 0;
    for (uint64_t at = from; at < from + n; at += PIECE) {
        const size_t piece = from + n - at < PIECE ? (size_t)(from + n - at) : PIECE;
        bz_dequantize(type, bytes + bz_row_bytes(type, at), values, piece);
        for (size_t i = 0; i < piece; i++) {
            if (!isfinite(values[i])) {
                *first = bad++ ? *first : at + i;
            }
        }
    }
    return bad;
}

bz_status bz_debug_files_config(bz_debug_files *f, bz_debug_config *out, bz_error *err)
{
    bz_config c = {0};
    bz_status status = bz_config_read(&c, &f->headers[f->set.main], err);
    if (status != BZ_OK) {
        return status;
    }
    free(f->layers);
    f->layers = calloc(c.layers, sizeof *f->layers);
    if (!f->layers) {
        bz_config_free(&c);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a table of %u layers.", c.layers);
    }
    for (uint32_t i = 0; i < c.layers; i++) {
        const bz_layer_config *l = &c.layer[i];
        f->layers[i] = (bz_debug_layer){.sliding = l->sliding,
                                        .heads = l->heads,
                                        .kv_heads = l->kv_heads,
                                        .head_dim = l->head_dim,
                                        .ffn = l->ffn,
                                        .owns_kv = l->owns_kv,
                                        .kv_layer = l->kv_layer};
    }
    *out = (bz_debug_config){.layers = c.layers,
                             .width = c.width,
                             .vocabulary = c.vocab,
                             .context = c.context,
                             .window = c.window,
                             .ple_width = c.ple_width,
                             .experts = c.experts,
                             .experts_used = c.experts_used,
                             .expert_ffn = c.expert_ffn,
                             .canvas = c.canvas,
                             .canvas_steps = c.denoising.steps,
                             .rms_epsilon = c.eps,
                             .softcap = c.softcap,
                             .rope_base = c.rope_base,
                             .rope_base_sliding = c.rope_base_sliding,
                             .layer = f->layers};
    bz_config_free(&c);
    return BZ_OK;
}
