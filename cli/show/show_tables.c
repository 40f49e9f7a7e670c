/* The long tables of `bezel show`: every key, every tensor. */
#include "cli/show/show.h"

#include <string.h>

static void padded(const char *text, int width)
{
    int n = show_width(text);
    printf("%s%*s", text, n < width ? width - n : 0, "");
}

enum { NUMBER_MAX = 40 };

static const char *number_text(const bz_debug_value *v, char out[NUMBER_MAX])
{
    switch (v->kind) {
    case BZ_DEBUG_UINT: snprintf(out, NUMBER_MAX, "%llu", (unsigned long long)v->u); break;
    case BZ_DEBUG_INT: snprintf(out, NUMBER_MAX, "%lld", (long long)v->i); break;
    case BZ_DEBUG_F32: snprintf(out, NUMBER_MAX, "%.7g", v->f); break;
    case BZ_DEBUG_F64: snprintf(out, NUMBER_MAX, "%.15g", v->f); break;
    case BZ_DEBUG_BOOL: snprintf(out, NUMBER_MAX, "%s", v->u ? "true" : "false"); break;
    case BZ_DEBUG_NOT_FINITE: snprintf(out, NUMBER_MAX, "not finite"); break;
    case BZ_DEBUG_TEXT: out[0] = 0; break;
    }
    return out;
}

static bool same_number(const bz_debug_value *a, const bz_debug_value *b)
{
    return a->kind == b->kind && a->u == b->u && a->i == b->i && memcmp(&a->f, &b->f, 8) == 0;
}

/* One key's value on a line. */
typedef struct value_line {
    const bz_debug_files *files;
    size_t file, key;
    uint64_t count;
    int columns;
} value_line;

static bz_debug_value value_at(const value_line *l, uint64_t index)
{
    return bz_debug_files_value(l->files, l->file, l->key, index);
}

/* As many elements as fit; equal neighbors as "6144 x15". */
static void print_numbers(const value_line *l)
{
    int used = 0;
    for (uint64_t i = 0; i < l->count;) {
        const bz_debug_value v = value_at(l, i);
        uint64_t same = 1;
        while (i + same < l->count) {
            const bz_debug_value next = value_at(l, i + same);
            if (!same_number(&v, &next)) {
                break;
            }
            same++;
        }
        char value[NUMBER_MAX], item[2 * NUMBER_MAX];
        number_text(&v, value);
        snprintf(item, sizeof item, same > 1 ? "%s%s x%llu" : "%s%s", i ? ", " : "", value,
                 (unsigned long long)same);
        if (used + (int)strlen(item) > l->columns - (i + same < l->count ? 5 : 0)) {
            fputs(", ...", stdout);
            break;
        }
        fputs(item, stdout);
        used += (int)strlen(item);
        i += same;
    }
}

static void print_strings(const value_line *l)
{
    char safe[SHOW_SAFE_MAX];
    int used = 0;
    for (uint64_t i = 0; i < l->count; i++) {
        const bz_debug_value v = value_at(l, i);
        show_safe(show_str(v.text), 24, safe);
        const int width = show_width(safe) + (i ? 2 : 0);
        if (i && used + width > l->columns - 5) {
            fputs(", ...", stdout);
            break;
        }
        printf("%s%s", i ? ", " : "", safe);
        used += width;
    }
}

static void print_value(const value_line *l, const bz_debug_key *key)
{
    char safe[SHOW_SAFE_MAX], number[NUMBER_MAX];
    if (key->is_array && strcmp(key->type, "str") == 0) {
        print_strings(l);
    } else if (key->is_array) {
        print_numbers(l);
    } else {
        const bz_debug_value v = value_at(l, 0);
        fputs(v.kind == BZ_DEBUG_TEXT ? show_safe(show_str(v.text), (unsigned)l->columns, safe)
                                      : number_text(&v, number),
              stdout);
    }
}

static const char *type_text(const bz_debug_key *key, char out[NUMBER_MAX])
{
    if (key->is_array) {
        snprintf(out, NUMBER_MAX, "%s[%llu]", key->type, (unsigned long long)key->count);
    } else {
        snprintf(out, NUMBER_MAX, "%s", key->type);
    }
    return out;
}

void show_metadata_table(const show_info *info)
{
    char safe[SHOW_SAFE_MAX], type[NUMBER_MAX];
    for (size_t i = 0; i < info->set.n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(info->files, i);
        int key_width = 0, type_width = 0;
        for (size_t k = 0; k < file.n_keys; k++) {
            const bz_debug_key key = bz_debug_files_key(info->files, i, k);
            int n = show_width(show_safe(show_str(key.name), 60, safe));
            key_width = n > key_width ? n : key_width;
            n = (int)strlen(type_text(&key, type));
            type_width = n > type_width ? n : type_width;
        }
        int columns = SHOW_COLUMNS - key_width - type_width - 6;
        columns = columns < 30 ? 30 : columns > 60 ? 60 : columns;
        if (info->set.n_files > 1) {
            printf("\nMetadata of %s (%zu keys)\n", show_path(file.path, 70, safe), file.n_keys);
        } else {
            printf("\nMetadata (%zu keys)\n", file.n_keys);
        }
        for (size_t k = 0; k < file.n_keys; k++) {
            const bz_debug_key key = bz_debug_files_key(info->files, i, k);
            printf("  ");
            padded(show_safe(show_str(key.name), 60, safe), key_width + 2);
            padded(type_text(&key, type), type_width + 2);
            print_value(&(value_line){info->files, i, k, key.count, columns}, &key);
            putchar('\n');
        }
    }
}

static void shape_text(const bz_debug_tensor *t, char out[100])
{
    int n = 0;
    out[0] = 0;
    for (uint32_t d = 0; d < t->n_dims; d++) {
        n += snprintf(out + n, 100 - (size_t)n, "%s%llu", d ? " x " : "",
                      (unsigned long long)t->shape[d]);
    }
}

void show_tensor_table(const show_info *info)
{
    char safe[SHOW_SAFE_MAX], shape[100];
    for (size_t i = 0; i < info->set.n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(info->files, i);
        int name_width = 4, shape_width = 5;
        for (size_t k = 0; k < file.n_tensors; k++) {
            const bz_debug_tensor t = bz_debug_files_tensor(info->files, i, k);
            int n = show_width(show_safe(show_str(t.name), 60, safe));
            name_width = n > name_width ? n : name_width;
            shape_text(&t, shape);
            n = (int)strlen(shape);
            shape_width = n > shape_width ? n : shape_width;
        }
        if (info->set.n_files > 1) {
            printf("\nTensors of %s (%zu)\n", show_path(file.path, 70, safe), file.n_tensors);
        } else {
            printf("\nTensors (%zu)\n", file.n_tensors);
        }
        if (file.n_tensors) {
            printf("  %-*s %-8s %-*s %12s %12s\n", name_width + 1, "name", "type", shape_width,
                   "shape", "bytes", "offset");
        }
        for (size_t k = 0; k < file.n_tensors; k++) {
            const bz_debug_tensor t = bz_debug_files_tensor(info->files, i, k);
            shape_text(&t, shape);
            printf("  ");
            padded(show_safe(show_str(t.name), 60, safe), name_width + 1);
            printf(" %-8s %-*s %12llu %12llu\n", t.type_name, shape_width, shape,
                   (unsigned long long)t.bytes, (unsigned long long)t.offset);
        }
    }
}
