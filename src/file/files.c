/* Orders the files of one model: which are parts, which are the mmproj and the drafter, and whether
 * they belong together. */
#include "file/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the keys of one file say about it. */
typedef struct part_role {
    bz_str architecture; /* len 0: no such key */
    bool has_total;
    uint32_t no, count;     /* split.no, split.count; 0 of 1 when not split */
    uint64_t total_tensors; /* split.tensors.count */
} part_role;

/* The last component of a path, printable. A long one loses its beginning: the part's number is
 * at the end. */
static const char *title(const bz_file *file, char buf[200])
{
    const char *name = file->name ? file->name : "file";
    for (const char *p = name; *p; p++) {
        if ((*p == '/' || *p == '\\') && p[1]) {
            name = p + 1;
        }
    }
    size_t len = strlen(name), skip = len > 60 ? len - 60 : 0;
    return bz_str_show((bz_str){name + skip, len - skip}, buf);
}

static bz_status read_role(part_role *role, const bz_file *file, bz_error *err)
{
    char shown[200];
    const bz_gguf_kv *architecture = bz_gguf_find(file->gguf, "general.architecture");
    const bz_gguf_kv *no = bz_gguf_find(file->gguf, "split.no");
    const bz_gguf_kv *count = bz_gguf_find(file->gguf, "split.count");
    const bz_gguf_kv *total = bz_gguf_find(file->gguf, "split.tensors.count");
    uint64_t value = 1;

    role->architecture = (bz_str){"", 0};
    role->has_total = false;
    role->no = 0;
    role->count = 1;
    role->total_tensors = 0;
    if (architecture && !bz_gguf_get_str(architecture, &role->architecture)) {
        return bz_fail(err, BZ_BAD_FILE, "%s: key \"general.architecture\" is not a string",
                       title(file, shown));
    }
    if (count && (count->is_array || !bz_gguf_get_u64(count, 0, &value) || value > 65535)) {
        return bz_fail(err, BZ_BAD_FILE, "%s: key \"split.count\" is not a number of parts",
                       title(file, shown));
    }
    if (value <= 1) {
        return BZ_OK;
    }
    role->count = (uint32_t)value;
    if (!no || no->is_array || !bz_gguf_get_u64(no, 0, &value)) {
        return bz_fail(err, BZ_BAD_FILE,
                       "%s: the file is one of %" PRIu32
                       " parts, but key \"split.no\" does not say which",
                       title(file, shown), role->count);
    }
    if (value >= role->count) {
        return bz_fail(err, BZ_BAD_FILE,
                       "%s: key \"split.no\" is %" PRIu64
                       ", but \"split.count\" says there are %" PRIu32 " parts, numbered from 0",
                       title(file, shown), value, role->count);
    }
    role->no = (uint32_t)value;
    if (total) {
        if (total->is_array || !bz_gguf_get_u64(total, 0, &role->total_tensors)) {
            return bz_fail(err, BZ_BAD_FILE,
                           "%s: key \"split.tensors.count\" is not a number of tensors",
                           title(file, shown));
        }
        role->has_total = true;
    }
    return BZ_OK;
}

/* ---- parts -------------------------------------------------------------- */

/* Names the file of the missing part, if the known part has a name of that form. */
static bz_status missing_part(const bz_file *known, uint32_t no, uint32_t count, bz_error *err)
{
    char shown[200], sibling[200];
    uint32_t named;
    size_t len = known->name ? strlen(known->name) : 0;
    const char *name = known->name;
    if (len >= sizeof sibling) { /* only the end matters */
        name += len - (sizeof sibling - 1);
    }
    if (name && bz_split_name(name, NULL, &named) && named == count &&
        bz_split_sibling(name, no + 1, sibling, sizeof sibling)) {
        bz_file wanted = {.name = sibling};
        return bz_fail(err, BZ_NOT_FOUND,
                       "part %" PRIu32 " of %" PRIu32 " is missing; add the file %s", no + 1, count,
                       title(&wanted, shown));
    }
    return bz_fail(err, BZ_NOT_FOUND,
                   "part %" PRIu32 " of %" PRIu32 " is missing; %s needs all its parts", no + 1,
                   count, title(known, shown));
}

/* Sorts the parts of the text model by number. roles: [n_files], parallel to set->files; text:
 * [n_text] indices of its files. */
static bz_status order_parts(bz_files *set, const part_role *roles, const uint8_t *text,
                             size_t n_text, bz_error *err)
{
    char shown[200], other[200];
    const bz_file *files = set->files;
    uint32_t count = roles[text[0]].count;
    int by_number[BZ_FILES_MAX];

    for (size_t i = 1; i < n_text; i++) {
        const part_role *a = &roles[text[0]], *b = &roles[text[i]];
        if (a->count == 1 || b->count == 1) {
            return bz_fail(
                err, BZ_BAD_REQUEST,
                "%s and %s are two text models; open one at a time (only an mmproj file, a "
                "drafter or the parts of a split model belong together)",
                title(&files[text[0]], shown), title(&files[text[i]], other));
        }
        if (a->count != b->count) {
            return bz_fail(err, BZ_BAD_FILE,
                           "%s says it is one of %" PRIu32 " parts, but %s says one of %" PRIu32
                           "; they are not the same model",
                           title(&files[text[0]], shown), a->count, title(&files[text[i]], other),
                           b->count);
        }
        if (a->has_total && b->has_total && a->total_tensors != b->total_tensors) {
            return bz_fail(err, BZ_BAD_FILE,
                           "%s says the whole model has %" PRIu64 " tensors, but %s says %" PRIu64
                           "; they are not the same model",
                           title(&files[text[0]], shown), a->total_tensors,
                           title(&files[text[i]], other), b->total_tensors);
        }
    }
    if (count > BZ_FILES_MAX) {
        return bz_fail(err, BZ_BAD_FILE, "%s is one of %" PRIu32 " parts; at most %d are supported",
                       title(&files[text[0]], shown), count, BZ_FILES_MAX);
    }
    for (uint32_t no = 0; no < count; no++) {
        by_number[no] = -1;
    }
    for (size_t i = 0; i < n_text; i++) {
        uint32_t no = roles[text[i]].no;
        if (by_number[no] >= 0) {
            return bz_fail(
                err, BZ_BAD_FILE, "%s and %s both say they are part %" PRIu32 " of %" PRIu32,
                title(&files[by_number[no]], shown), title(&files[text[i]], other), no + 1, count);
        }
        by_number[no] = text[i];
    }
    for (uint32_t no = 0; no < count; no++) {
        if (by_number[no] < 0) {
            return missing_part(&files[text[0]], no, count, err);
        }
        set->parts[no] = (uint8_t)by_number[no];
    }
    set->n_parts = count;
    return BZ_OK;
}

typedef struct entry {
    const bz_gguf_tensor *tensor;
    uint8_t file;
} entry;

static int entry_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    int order = bz_gguf_name_order(x->tensor->name, y->tensor->name);
    return order ? order : (int)x->file - (int)y->file;
}

/* Checks that the parts have the promised number of tensors and no name twice. (Within one part
 * the parser has checked the names.) */
static bz_status check_tensors(const bz_files *set, const part_role *roles, bz_error *err)
{
    char shown[200], first[200], second[200];
    size_t n = 0;
    for (size_t i = 0; i < set->n_parts; i++) {
        n += set->files[set->parts[i]]
                 .gguf->n_tensors; /* each has 33 bytes in memory: no overflow */
    }
    for (size_t i = 0; i < set->n_parts; i++) {
        const part_role *role = &roles[set->parts[i]];
        if (role->has_total && role->total_tensors != n) {
            return bz_fail(
                err, BZ_BAD_FILE,
                "%s says the whole model has %" PRIu64 " tensors, but its %zu parts hold %zu",
                title(&set->files[set->parts[i]], shown), role->total_tensors, set->n_parts, n);
        }
    }
    if (set->n_parts == 1 || n == 0) {
        return BZ_OK;
    }
    if (n > SIZE_MAX / sizeof(entry)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "there is not enough memory to compare the parts of the model");
    }
    entry *all = malloc(n * sizeof *all);
    if (!all) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "there is not enough memory to compare the parts of the model");
    }
    size_t filled = 0;
    for (size_t i = 0; i < set->n_parts; i++) {
        const bz_gguf *gguf = set->files[set->parts[i]].gguf;
        for (size_t t = 0; t < gguf->n_tensors; t++) {
            all[filled++] = (entry){&gguf->tensors[t], set->parts[i]};
        }
    }
    qsort(all, n, sizeof *all, entry_order);
    bz_status status = BZ_OK;
    for (size_t i = 1; i < n && status == BZ_OK; i++) {
        bz_str a = all[i - 1].tensor->name, b = all[i].tensor->name;
        if (bz_gguf_name_order(a, b) == 0) {
            status = bz_fail(err, BZ_BAD_FILE, "tensor \"%s\" is in two parts, %s and %s",
                             bz_str_show(a, shown), title(&set->files[all[i - 1].file], first),
                             title(&set->files[all[i].file], second));
        }
    }
    free(all);
    return status;
}

/* ---- flavor ------------------------------------------------------------ */

static bool starts_with(bz_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.data, prefix, n) == 0;
}

/* Ollama's own rule: towers in the text model's file, or a tokenizer called "llama". */
static bz_flavor flavor_of(const bz_files *set)
{
    bz_str tokenizer;
    if (!bz_str_is(set->architecture, "gemma4")) {
        return BZ_FLAVOR_LLAMACPP;
    }
    if (bz_gguf_get_str(bz_gguf_find(set->main, "tokenizer.ggml.model"), &tokenizer) &&
        bz_str_is(tokenizer, "llama")) {
        return BZ_FLAVOR_OLLAMA;
    }
    for (size_t i = 0; i < set->n_parts; i++) {
        const bz_gguf *gguf = set->files[set->parts[i]].gguf;
        for (size_t t = 0; t < gguf->n_tensors; t++) {
            bz_str name = gguf->tensors[t].name;
            if (starts_with(name, "v.") || starts_with(name, "a.") || starts_with(name, "mm.") ||
                starts_with(name, "model.vision_tower.")) {
                return BZ_FLAVOR_OLLAMA;
            }
        }
    }
    return BZ_FLAVOR_LLAMACPP;
}

/* ---- the set ------------------------------------------------------------ */

/* A file beside the text model, of which there is one: *slot is its index, or -1 before. */
static bz_status take_beside(bz_files *set, const part_role *role, size_t i, int *slot,
                             const char *kind, const char *kinds, bz_error *err)
{
    char shown[200], other[200];
    if (role->count > 1) {
        return bz_fail(err, BZ_BAD_FILE, "%s is %s in parts, which is not supported",
                       title(&set->files[i], shown), kind);
    }
    if (*slot >= 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "%s and %s are both %s; give one",
                       title(&set->files[*slot], shown), title(&set->files[i], other), kinds);
    }
    *slot = (int)i;
    return BZ_OK;
}

/* Which files are the text model's: text[*n_text]. */
static bz_status sort_files(bz_files *set, part_role *roles, uint8_t *text, size_t *n_text,
                            bz_error *err)
{
    for (size_t i = 0; i < set->n_files; i++) {
        bz_status status = read_role(&roles[i], &set->files[i], err);
        if (status == BZ_OK && bz_str_is(roles[i].architecture, "clip")) {
            status =
                take_beside(set, &roles[i], i, &set->mmproj, "an mmproj file", "mmproj files", err);
        } else if (status == BZ_OK && bz_str_is(roles[i].architecture, "gemma4-assistant")) {
            status = take_beside(set, &roles[i], i, &set->assistant, "a drafter", "drafters", err);
        } else if (status == BZ_OK) {
            text[(*n_text)++] = (uint8_t)i;
        }
        if (status != BZ_OK) {
            return status;
        }
        set->total_size += set->files[i].size;
    }
    return BZ_OK;
}

bz_status bz_files_init(bz_files *set, const bz_file *files, size_t n_files, bz_error *err)
{
    char shown[200], other[200];
    part_role roles[BZ_FILES_MAX];
    uint8_t text[BZ_FILES_MAX];
    size_t n_text = 0;
    bz_status status;

    *set = (bz_files){.files = files, .n_files = n_files, .mmproj = -1, .assistant = -1};
    if (n_files == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "no model file was given");
    }
    if (n_files > BZ_FILES_MAX) {
        return bz_fail(err, BZ_BAD_REQUEST, "%zu files were given; a model has at most %d", n_files,
                       BZ_FILES_MAX);
    }
    status = sort_files(set, roles, text, &n_text, err);
    if (status != BZ_OK) {
        return status;
    }
    if (n_text == 0) {
        const int alone = set->mmproj >= 0 ? set->mmproj : set->assistant;
        return bz_fail(err, BZ_BAD_REQUEST, "%s holds only %s; add the text model's GGUF file",
                       title(&files[alone], shown),
                       set->mmproj >= 0 ? "vision and audio towers (mmproj)"
                                        : "a drafter, which speeds up another model");
    }
    status = order_parts(set, roles, text, n_text, err);
    if (status != BZ_OK) {
        return status;
    }
    set->main = files[set->parts[0]].gguf;
    set->architecture = roles[set->parts[0]].architecture;
    if (set->architecture.len == 0) {
        return bz_fail(err, BZ_BAD_FILE,
                       "%s: key \"general.architecture\" is missing, so it holds no model",
                       title(&files[set->parts[0]], shown));
    }
    for (size_t i = 1; i < set->n_parts; i++) { /* later parts need not repeat it */
        bz_str architecture = roles[set->parts[i]].architecture;
        if (architecture.len && bz_gguf_name_order(architecture, set->architecture) != 0) {
            return bz_fail(err, BZ_BAD_FILE, "%s and %s are parts of different models",
                           title(&files[set->parts[0]], shown),
                           title(&files[set->parts[i]], other));
        }
    }
    status = check_tensors(set, roles, err);
    if (status != BZ_OK) {
        return status;
    }
    set->flavor = flavor_of(set);
    return BZ_OK;
}

const bz_gguf_tensor *bz_files_find(const bz_files *set, const char *name, size_t *file)
{
    for (size_t i = 0; i < set->n_parts; i++) {
        const bz_gguf_tensor *tensor = bz_gguf_find_tensor(set->files[set->parts[i]].gguf, name);
        if (tensor) {
            if (file) {
                *file = set->parts[i];
            }
            return tensor;
        }
    }
    return NULL;
}

/* ---- names of parts ----------------------------------------------------- */

static const char split_tail[] = "-00000-of-00000.gguf"; /* 0 stands for any digit */

static uint32_t five_digits(const char *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 5; i++) {
        value = value * 10 + (uint32_t)(p[i] - '0');
    }
    return value;
}

bool bz_split_name(const char *path, uint32_t *number, uint32_t *count)
{
    size_t len = strlen(path), n = sizeof split_tail - 1;
    if (len <= n) {
        return false;
    }
    const char *tail = path + len - n;
    for (size_t i = 0; i < n; i++) {
        bool fits =
            split_tail[i] == '0' ? tail[i] >= '0' && tail[i] <= '9' : tail[i] == split_tail[i];
        if (!fits) {
            return false;
        }
    }
    uint32_t a = five_digits(tail + 1), b = five_digits(tail + 10);
    if (a < 1 || a > b) {
        return false;
    }
    if (number) {
        *number = a;
    }
    if (count) {
        *count = b;
    }
    return true;
}

bool bz_split_sibling(const char *path, uint32_t number, char *out, size_t n_out)
{
    uint32_t count;
    size_t len = strlen(path), n = sizeof split_tail - 1;
    if (!bz_split_name(path, NULL, &count) || number < 1 || number > count || n_out <= len) {
        return false;
    }
    memcpy(out, path, len + 1);
    char *digits = out + len - n + 1;
    for (int i = 4; i >= 0; i--) {
        digits[i] = (char)('0' + number % 10);
        number /= 10;
    }
    return true;
}
