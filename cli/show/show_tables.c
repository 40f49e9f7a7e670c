/* The long tables of `bezel show`: every key, every tensor. */
#include "cli/show/show.h"

#include <string.h>

static void padded(const char *text, int width)
{
    int n = show_width(text);
    printf("%s%*s", text, n < width ? width - n : 0, "");
}

const char *show_value_type(bz_gguf_type type)
{
    static const char *const names[] = {"u8",   "i8",  "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "str", "array", "u64", "i64", "f64"};
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "?";
}

static void number_text(const bz_gguf_kv *kv, uint64_t index, char out[40])
{
    uint64_t u;
    int64_t i;
    double d;
    bool b;
    out[0] = 0;
    if (kv->type == BZ_GGUF_BOOL && bz_gguf_get_bool(kv, index, &b)) {
        snprintf(out, 40, "%s", b ? "true" : "false");
    } else if ((kv->type == BZ_GGUF_F32 || kv->type == BZ_GGUF_F64)) {
        if (bz_gguf_get_f64(kv, index, &d)) {
            snprintf(out, 40, "%.*g", kv->type == BZ_GGUF_F32 ? 7 : 15, d);
        } else {
            snprintf(out, 40, "not finite");
        }
    } else if (bz_gguf_get_u64(kv, index, &u)) {
        snprintf(out, 40, "%llu", (unsigned long long)u);
    } else if (bz_gguf_get_i64(kv, index, &i)) {
        snprintf(out, 40, "%lld", (long long)i);
    }
}

/* As many elements as the line holds; equal neighbours as "6144 x15". */
static void print_numbers(const bz_gguf_kv *kv, int columns)
{
    const size_t size = bz_gguf_type_size(kv->type);
    int used = 0;
    for (uint64_t i = 0; i < kv->count;) {
        uint64_t same = 1;
        while (i + same < kv->count &&
               memcmp(kv->bytes + i * size, kv->bytes + (i + same) * size, size) == 0) {
            same++;
        }
        char value[40], item[80];
        number_text(kv, i, value);
        snprintf(item, sizeof item, same > 1 ? "%s%s x%llu" : "%s%s", i ? ", " : "", value,
                 (unsigned long long)same);
        if (used + (int)strlen(item) > columns - (i + same < kv->count ? 5 : 0)) {
            fputs(", ...", stdout);
            break;
        }
        fputs(item, stdout);
        used += (int)strlen(item);
        i += same;
    }
}

static void print_strings(const bz_gguf_kv *kv, int columns)
{
    size_t cursor = 0;
    int used = 0;
    uint64_t n = 0;
    bz_str s;
    char safe[SHOW_SAFE_MAX];
    while (bz_gguf_next_str(kv, &cursor, &s)) {
        show_safe(s, 24, safe);
        int width = show_width(safe) + (n ? 2 : 0);
        if (n && used + width > columns - 5) {
            fputs(", ...", stdout);
            break;
        }
        printf("%s%s", n ? ", " : "", safe);
        used += width;
        n++;
    }
}

static void print_value(const bz_gguf_kv *kv, int columns)
{
    char safe[SHOW_SAFE_MAX], number[40];
    bz_str s;
    if (kv->is_array && kv->type == BZ_GGUF_STRING) {
        print_strings(kv, columns);
    } else if (kv->is_array) {
        print_numbers(kv, columns);
    } else if (bz_gguf_get_str(kv, &s)) {
        fputs(show_safe(s, (unsigned)columns, safe), stdout);
    } else {
        number_text(kv, 0, number);
        fputs(number, stdout);
    }
}

static const char *type_text(const bz_gguf_kv *kv, char out[40])
{
    if (kv->is_array) {
        snprintf(out, 40, "%s[%llu]", show_value_type(kv->type), (unsigned long long)kv->count);
    } else {
        snprintf(out, 40, "%s", show_value_type(kv->type));
    }
    return out;
}

void show_metadata_table(const show_facts *f)
{
    char safe[SHOW_SAFE_MAX], type[40];
    for (size_t i = 0; i < f->n_files; i++) {
        const bz_gguf *g = &f->headers[i];
        int key_width = 0, type_width = 0;
        for (size_t k = 0; k < g->n_kv; k++) {
            const bz_gguf_kv *kv = &g->kv[k];
            int n = show_width(show_safe(kv->key, 60, safe));
            key_width = n > key_width ? n : key_width;
            n = (int)strlen(type_text(kv, type));
            type_width = n > type_width ? n : type_width;
        }
        int columns = SHOW_COLUMNS - key_width - type_width - 6;
        columns = columns < 30 ? 30 : columns > 60 ? 60 : columns;
        if (f->n_files > 1) {
            printf("\nMetadata of %s (%zu keys)\n", show_path(f->names[i], 70, safe), g->n_kv);
        } else {
            printf("\nMetadata (%zu keys)\n", g->n_kv);
        }
        for (size_t k = 0; k < g->n_kv; k++) {
            const bz_gguf_kv *kv = &g->kv[k];
            printf("  ");
            padded(show_safe(kv->key, 60, safe), key_width + 2);
            padded(type_text(kv, type), type_width + 2);
            print_value(kv, columns);
            putchar('\n');
        }
    }
}

static void shape_text(const bz_gguf_tensor *t, char out[100])
{
    int n = 0;
    out[0] = 0;
    for (uint32_t d = 0; d < t->n_dims && d < 4; d++) {
        n += snprintf(out + n, 100 - (size_t)n, "%s%llu", d ? " x " : "",
                      (unsigned long long)t->ne[d]);
    }
}

void show_tensor_table(const show_facts *f)
{
    char safe[SHOW_SAFE_MAX], shape[100];
    for (size_t i = 0; i < f->n_files; i++) {
        const bz_gguf *g = &f->headers[i];
        int name_width = 4, shape_width = 5;
        for (size_t k = 0; k < g->n_tensors; k++) {
            int n = show_width(show_safe(g->tensors[k].name, 60, safe));
            name_width = n > name_width ? n : name_width;
            shape_text(&g->tensors[k], shape);
            n = (int)strlen(shape);
            shape_width = n > shape_width ? n : shape_width;
        }
        if (f->n_files > 1) {
            printf("\nTensors of %s (%zu)\n", show_path(f->names[i], 70, safe), g->n_tensors);
        } else {
            printf("\nTensors (%zu)\n", g->n_tensors);
        }
        if (g->n_tensors) {
            printf("  %-*s %-8s %-*s %12s %12s\n", name_width + 1, "name", "type", shape_width,
                   "shape", "bytes", "offset");
        }
        for (size_t k = 0; k < g->n_tensors; k++) {
            const bz_gguf_tensor *t = &g->tensors[k];
            shape_text(t, shape);
            printf("  ");
            padded(show_safe(t->name, 60, safe), name_width + 1);
            printf(" %-8s %-*s %12llu %12llu\n", bz_type_of(t->type)->name, shape_width, shape,
                   (unsigned long long)t->size, (unsigned long long)t->offset);
        }
    }
}
