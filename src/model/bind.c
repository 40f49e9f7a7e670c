/* Finds tensors by name, checks their shape and type, and appends them to a table of weights. */
#include "model/bind.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 160 };

void bz_bind_refuse(bz_binder *b, bz_status code, const char *format, ...)
{
    if (b->failed) {
        return;
    }
    char text[320];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bz_fail(b->err, code, "%s", text);
    b->failed = true;
}

static const bz_gguf_tensor *find(const bz_binder *b, const char *name, size_t *file)
{
    *file = b->only_file;
    return b->only ? bz_gguf_find_tensor(b->only, name) : bz_files_find(b->files, name, file);
}

bool bz_bind_has(const bz_binder *b, const char *format, ...)
{
    char name[NAME_BYTES];
    size_t file;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    return find(b, name, &file) != NULL;
}

bz_type bz_bind_type(const bz_binder *b, const char *name)
{
    size_t file;
    const bz_gguf_tensor *t = find(b, name, &file);
    return t ? (bz_type)t->type : BZ_TYPE_END;
}

bz_weight bz_bind_add(bz_weights *ws, const bz_weight_info *info)
{
    if (ws->n == ws->cap) {
        const uint32_t cap = ws->cap ? ws->cap * 2 : 256;
        bz_weight_info *more = realloc(ws->info, cap * sizeof *more);
        if (!more) {
            return BZ_NO_WEIGHT;
        }
        ws->info = more;
        ws->cap = cap;
    }
    char *copy = strdup(info->name);
    if (!copy) {
        return BZ_NO_WEIGHT;
    }
    ws->info[ws->n] = *info;
    ws->info[ws->n].name = copy;
    return (bz_weight){++ws->n};
}

/* Multiplies consecutive dimensions, starting at *at, until the product reaches `want`; with
 * want 0, until it is more than 1. *at moves past the dimensions used. */
static bool take(const bz_gguf_tensor *t, int *at, uint64_t want, uint64_t *got)
{
    uint64_t n = *at < 4 ? t->ne[(*at)++] : 1;
    while (*at < 4 && (want ? n < want : n == 1)) {
        n *= t->ne[(*at)++];
    }
    *got = n;
    return want == 0 || n == want;
}

bz_weight bz_bind(bz_binder *b, int flags, uint64_t cols, uint64_t rows, uint64_t planes,
                  const char *format, ...)
{
    char name[NAME_BYTES];
    size_t file;
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const bz_gguf_tensor *t = b->failed ? NULL : find(b, name, &file);
    if (!t) {
        if (!(flags & BZ_BIND_OPTIONAL)) {
            bz_bind_refuse(b, BZ_BAD_FILE, "The tensor %s is missing.", name);
        }
        return BZ_NO_WEIGHT;
    }
    int at = 0;
    bz_weight_info info = {.name = name,
                           .type = (bz_type)t->type,
                           .file = (uint32_t)file,
                           .offset = t->offset,
                           .size = t->size};
    bool fits = take(t, &at, cols, &info.ne[0]) && take(t, &at, rows, &info.ne[1]) &&
                take(t, &at, planes, &info.ne[2]);
    for (; at < 4; at++) {
        fits = fits && t->ne[at] == 1;
    }
    if (!fits) {
        bz_bind_refuse(b, BZ_BAD_FILE,
                       "The tensor %s has shape [%llu, %llu, %llu, %llu]; [%llu, %llu, %llu] is "
                       "expected.",
                       name, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                       (unsigned long long)t->ne[2], (unsigned long long)t->ne[3],
                       (unsigned long long)cols, (unsigned long long)rows,
                       (unsigned long long)planes);
        return BZ_NO_WEIGHT;
    }
    const bz_type_info *type = bz_type_of(t->type);
    if (flags & BZ_BIND_IDS) {
        if (!bz_type_is_ids(info.type)) {
            bz_bind_refuse(b, BZ_UNSUPPORTED_MODEL,
                           "The tensor %s has type %s; ids must be I32 or I64.", name, type->name);
            return BZ_NO_WEIGHT;
        }
    } else if (!type->runs || ((flags & BZ_BIND_VECTOR) && t->type != BZ_F32)) {
        bz_bind_refuse(b, BZ_UNSUPPORTED_MODEL,
                       flags & BZ_BIND_VECTOR
                           ? "The tensor %s has type %s; norms and scales must be F32."
                           : "The tensor %s has type %s, which Bezel does not run.",
                       name, type->name);
        return BZ_NO_WEIGHT;
    }
    const bz_weight w = bz_bind_add(b->table, &info);
    if (!w.id) {
        bz_bind_refuse(b, BZ_OUT_OF_MEMORY, "There is not enough memory for the table of tensors.");
    }
    return w;
}

void bz_bind_free(bz_weights *table)
{
    for (uint32_t i = 0; i < table->n; i++) {
        free((char *)(uintptr_t)table->info[i].name);
    }
    free(table->info);
    *table = (bz_weights){0};
}
