/* Checks that need the whole GGUF header: duplicate names, the alignment, and tensors that overlap
 * or end after the file. */
#include <inttypes.h>
#include <stdlib.h>

#include "file/gguf_reader.h"

enum { ALIGNMENT_DEFAULT = 32, ALIGNMENT_MAX = 1 << 20 };

static int kv_order(const void *a, const void *b)
{
    return bz_gguf_name_order((*(const bz_gguf_kv *const *)a)->key,
                              (*(const bz_gguf_kv *const *)b)->key);
}

static int tensor_order(const void *a, const void *b)
{
    return bz_gguf_name_order((*(const bz_gguf_tensor *const *)a)->name,
                              (*(const bz_gguf_tensor *const *)b)->name);
}

static int offset_order(const void *a, const void *b)
{
    const bz_gguf_tensor *x = *(const bz_gguf_tensor *const *)a,
                         *y = *(const bz_gguf_tensor *const *)b;
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x < y ? -1 : x > y; /* same array: the order of the file, for a stable message */
}

static bool sort_keys(gguf_reader *r, bz_gguf *g)
{
    char shown[200];
    if (g->n_kv == 0) {
        return true;
    }
    g->kv_by_name = malloc(g->n_kv * sizeof *g->kv_by_name);
    if (!g->kv_by_name) {
        return bz_gguf_no_memory(r);
    }
    for (size_t i = 0; i < g->n_kv; i++) {
        g->kv_by_name[i] = &g->kv[i];
    }
    qsort(g->kv_by_name, g->n_kv, sizeof *g->kv_by_name, kv_order);
    for (size_t i = 1; i < g->n_kv; i++) {
        if (kv_order(&g->kv_by_name[i - 1], &g->kv_by_name[i]) == 0) {
            return bz_gguf_refuse(r, "key \"%s\" appears twice",
                                  bz_str_show(g->kv_by_name[i]->key, shown));
        }
    }
    return true;
}

static bool read_alignment(gguf_reader *r, bz_gguf *g)
{
    uint64_t alignment = ALIGNMENT_DEFAULT;
    const bz_gguf_kv *kv = bz_gguf_find(g, "general.alignment");
    if (kv && (kv->is_array || kv->type == BZ_GGUF_F32 || kv->type == BZ_GGUF_F64 ||
               !bz_gguf_get_u64(kv, 0, &alignment))) {
        return bz_gguf_refuse(r, "key \"general.alignment\" is not a positive integer");
    }
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > ALIGNMENT_MAX) {
        return bz_gguf_refuse(r,
                              "key \"general.alignment\" is %" PRIu64
                              "; it must be a power of two between 1 and %d",
                              alignment, ALIGNMENT_MAX);
    }
    g->alignment = (uint32_t)alignment;
    return true;
}

/* Makes offsets relative to the file's start and checks that every tensor is inside the file. */
static bool resolve_offsets(gguf_reader *r, bz_gguf *g)
{
    char shown[200];
    const bz_gguf_tensor *incomplete = NULL;
    uint64_t last_end = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        bz_gguf_tensor *t = &g->tensors[i];
        if (t->offset % g->alignment != 0) {
            return bz_gguf_refuse(r,
                                  "tensor \"%s\" has offset %" PRIu64
                                  ", not a multiple of the file's alignment %" PRIu32,
                                  bz_str_show(t->name, shown), t->offset, g->alignment);
        }
        if (t->offset > UINT64_MAX - g->data_start ||
            t->size > UINT64_MAX - g->data_start - t->offset) {
            return bz_gguf_refuse(r, "tensor \"%s\" has the impossible offset %" PRIu64,
                                  bz_str_show(t->name, shown), t->offset);
        }
        t->offset += g->data_start;
        uint64_t end = t->offset + t->size;
        if (end > r->size && !incomplete) {
            incomplete = t;
        }
        last_end = end > last_end ? end : last_end;
    }
    if (incomplete) {
        return bz_gguf_refuse(r,
                              "the file is cut off: %" PRIu64 " of %" PRIu64
                              " bytes are missing, from tensor \"%s\" on; download it again",
                              last_end - r->size, last_end, bz_str_show(incomplete->name, shown));
    }
    return true;
}

static bool sort_tensors(gguf_reader *r, bz_gguf *g)
{
    char shown[200], other[200];
    const bz_gguf_tensor *below = NULL, *above = NULL; /* two that overlap */
    if (g->n_tensors == 0) {
        return true;
    }
    const bz_gguf_tensor **sorted = malloc(g->n_tensors * sizeof *sorted);
    if (!sorted) {
        return bz_gguf_no_memory(r);
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
            return bz_gguf_refuse(r, "tensor \"%s\" appears twice",
                                  bz_str_show(sorted[i]->name, shown));
        }
    }
    if (above) { /* after the names: a tensor listed twice overlaps itself */
        return bz_gguf_refuse(r, "tensors \"%s\" and \"%s\" overlap in the file",
                              bz_str_show(below->name, shown), bz_str_show(above->name, other));
    }
    return true;
}

bool bz_gguf_check(gguf_reader *r, bz_gguf *g)
{
    if (!sort_keys(r, g) || !read_alignment(r, g)) {
        return false;
    }
    g->header_size = r->at;
    g->data_start = (r->at + g->alignment - 1) & ~(uint64_t)(g->alignment - 1);
    if (!resolve_offsets(r, g) || !sort_tensors(r, g)) {
        return false;
    }
    if (g->data_start > r->size) { /* a file without tensors may end without padding */
        g->data_start = r->size;
    }
    return true;
}
