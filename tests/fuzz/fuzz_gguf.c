/* libFuzzer target: the GGUF parser and the set of files.
 *
 * The input is a file. It is parsed whole and at a prefix that its last two bytes
 * choose, and every key and tensor is read. Besides memory errors, which are the
 * sanitisers' task, what gguf.h promises is checked; a broken promise aborts.
 */
#include "file/files.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* A copy with a terminator, for the lookups; the caller frees it. */
static char *text_of(bz_str s)
{
    char *text = malloc(s.len + 1);
    must(text != NULL);
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return text;
}

static void touch(bz_str s)
{
    char buf[200];
    must(strlen(bz_str_show(s, buf)) < sizeof buf);
    unsigned sum = 0;
    for (size_t i = 0; i < s.len; i++) {
        sum += (unsigned char)s.data[i];
    }
    must(sum <= 255 * s.len);
}

static void read_values(const bz_gguf_kv *kv)
{
    const uint64_t indices[] = {0, kv->count / 2, kv->count - 1, kv->count, UINT64_MAX};
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        uint64_t u;
        int64_t n;
        double f;
        bool b;
        bool inside = indices[i] < kv->count;
        must(!bz_gguf_get_u64(kv, indices[i], &u) || inside);
        must(!bz_gguf_get_i64(kv, indices[i], &n) || inside);
        must(!bz_gguf_get_f64(kv, indices[i], &f) || inside);
        must(!bz_gguf_get_bool(kv, indices[i], &b) || inside);
    }
    bz_str s;
    bool is_string = kv->type == BZ_GGUF_STRING;
    must(bz_gguf_get_str(kv, &s) == (is_string && !kv->is_array));
    if (is_string && !kv->is_array) {
        touch(s);
    }
    uint64_t n = 0;
    for (size_t cursor = 0; bz_gguf_next_str(kv, &cursor, &s); n++) {
        touch(s);
    }
    must(n == (is_string && kv->is_array ? kv->count : 0));
}

static void walk(const bz_gguf *g, uint64_t size)
{
    must(g->header_size <= size && g->data_start >= g->header_size && g->data_start <= size);
    for (size_t i = 0; i < g->n_kv; i++) {
        char *key = text_of(g->kv[i].key);
        must(bz_gguf_find(g, key) == &g->kv[i]);
        free(key);
        read_values(&g->kv[i]);
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        const bz_gguf_tensor *t = &g->tensors[i];
        char *name = text_of(t->name);
        must(bz_gguf_find_tensor(g, name) == t);
        free(name);
        must(t->size > 0 && t->offset >= g->data_start && t->offset % g->alignment == 0);
        must(t->offset <= size && t->size <= size - t->offset);
        must(bz_type_of(t->type) != NULL);
    }
}

/* The file alone, twice, and with its own strings as names. */
static void try_sets(const bz_gguf *g, uint64_t size)
{
    bz_error err;
    bz_files set;
    char *name = g->n_kv ? text_of(g->kv[0].key) : NULL;
    const bz_file files[] = {{name, g, size}, {"m-00001-of-00002.gguf", g, size}};
    if (bz_files_init(&set, files, 1, &err) == BZ_OK) {
        must(set.main == g && set.n_parts == 1 && set.mmproj == -1);
        for (size_t i = 0; i < g->n_tensors; i++) {
            size_t file = 1;
            char *tensor = text_of(g->tensors[i].name);
            must(bz_files_find(&set, tensor, &file) == &g->tensors[i] && file == 0);
            free(tensor);
        }
    }
    must(bz_files_init(&set, files, 2, &err) != BZ_OK); /* a file does not form a set with itself */
    must(strlen(err.text) > 0);
    if (name) {
        size_t room = strlen(name) + 1;
        char *sibling = malloc(room);
        must(sibling != NULL);
        uint32_t number, count;
        must(bz_split_sibling(name, 1, sibling, room) == bz_split_name(name, &number, &count));
        free(sibling);
    }
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_gguf whole, part;
    bz_error err = {0}, part_err = {0};
    uint64_t at_least = 0;

    bz_gguf_answer answer = bz_gguf_parse(&whole, data, size, size, &at_least, &err);
    must(answer != BZ_GGUF_MORE);
    if (answer == BZ_GGUF_ERROR) {
        must(err.code != BZ_OK && strlen(err.text) > 0);
    } else {
        walk(&whole, size);
        try_sets(&whole, size);
    }

    /* From the prefix on, ask for more as a job does, each time in a copy of exactly
     * the size asked for. The end must be that of the whole file. */
    uint64_t n = size < 2 ? 0 : size * (uint64_t)(data[size - 1] | data[size - 2] << 8) / 65536;
    for (;;) {
        uint8_t *copy = malloc(n ? (size_t)n : 1);
        must(copy != NULL);
        if (n) {
            memcpy(copy, data, (size_t)n);
        }
        bz_gguf_answer now = bz_gguf_parse(&part, copy, n, size, &at_least, &part_err);
        if (now == BZ_GGUF_DONE) {
            must(answer == BZ_GGUF_DONE && part.header_size == whole.header_size &&
                 part.header_size <= n);
            must(part.n_kv == whole.n_kv && part.n_tensors == whole.n_tensors);
            walk(&part, size);
            bz_gguf_free(&part);
        }
        free(copy);
        if (now == BZ_GGUF_ERROR) {
            must(answer == BZ_GGUF_ERROR && strcmp(err.text, part_err.text) == 0);
        }
        if (now != BZ_GGUF_MORE) {
            break;
        }
        must(at_least > n && at_least <= size);
        must(answer != BZ_GGUF_DONE || at_least <= whole.header_size);
        n = at_least;
    }
    if (answer == BZ_GGUF_DONE) {
        bz_gguf_free(&whole);
    }
    return 0;
}
