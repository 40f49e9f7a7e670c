#include "gpu/kernels/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/kernels/params.h"

enum { MAX_PARTS = 32, MAX_NAME = 64 };

#define USES    "// uses: "
#define SECTION "// section "

/* A range of a source's text. */
typedef struct span {
    const char *at;
    size_t n;
} span;

typedef struct linker {
    const gpu_link_input *in;
    char done[MAX_PARTS][MAX_NAME]; /* [n_done] parts in the text */
    char open[MAX_PARTS][MAX_NAME]; /* [n_open] parts whose uses are being resolved */
    uint32_t n_done, n_open;
    char *text;
    size_t n, capacity;
    bz_error *err;
} linker;

static bool is_name(span s, const char *name)
{
    return s.n == strlen(name) && memcmp(s.at, name, s.n) == 0;
}

static bool starts_with(span s, const char *prefix)
{
    return s.n >= strlen(prefix) && memcmp(s.at, prefix, strlen(prefix)) == 0;
}

/* Cuts the text up to the first `separator`, which is dropped, off *rest. */
static span cut(span *rest, char separator)
{
    const char *end = rest->n ? memchr(rest->at, separator, rest->n) : NULL;
    span head = {rest->at, end ? (size_t)(end - rest->at) : rest->n};
    rest->at += head.n + (end != NULL);
    rest->n -= head.n + (end != NULL);
    return head;
}

static bool find_file(const linker *l, const char *name, span *text)
{
    for (size_t i = 0; i < l->in->n_sources; i++) {
        if (strcmp(l->in->sources[i].name, name) == 0) {
            *text = (span){l->in->sources[i].text, l->in->sources[i].n};
            return true;
        }
    }
    return false;
}

/* Splits a file's text into what it uses and the rest. */
static void split_uses(span *text, span *uses)
{
    *uses = (span){text->at, 0};
    if (starts_with(*text, USES)) {
        *uses = cut(text, '\n');
        cut(uses, ':');
    }
}

/* A section of a block type's file. An empty name: what precedes the first section. */
static bool find_section(span file, const char *name, span *text, span *uses)
{
    span rest = file;
    bool found = *name == 0;
    *text = (span){file.at, 0};
    *uses = (span){file.at, 0};
    while (rest.n > 0) {
        const char *line_at = rest.at;
        span line = cut(&rest, '\n');
        if (starts_with(line, SECTION)) {
            if (found) {
                text->n = (size_t)(line_at - text->at);
                return true;
            }
            line.at += strlen(SECTION);
            line.n -= strlen(SECTION);
            if (is_name(cut(&line, ','), name)) {
                found = true;
                *text = (span){rest.at, 0};
                cut(&line, ':');
                *uses = line;
            }
        }
    }
    text->n = (size_t)(rest.at - text->at);
    return found;
}

/* The text of "common/pass", "params.product", "type.dot" or "type." (the type's opening comment).
 */
static bool find_part(const linker *l, const char *name, span *text, span *uses)
{
    if (strncmp(name, "type.", 5) == 0) {
        span file;
        return l->in->type_file && find_file(l, l->in->type_file, &file) &&
               find_section(file, name + 5, text, uses);
    }
    if (strncmp(name, "params.", 7) == 0) {
        const char *wgsl = gpu_params_wgsl(name + 7);
        *text = (span){wgsl, wgsl ? strlen(wgsl) : 0};
        *uses = (span){wgsl, 0};
        return wgsl != NULL;
    }
    char path[MAX_NAME + 8];
    snprintf(path, sizeof path, "%s.wgsl", name);
    if (!find_file(l, path, text)) {
        return false;
    }
    split_uses(text, uses);
    return true;
}

static bool append(linker *l, span s)
{
    if (l->n + s.n + 2 > l->capacity) {
        l->capacity = 2 * (l->n + s.n + 2);
        char *text = realloc(l->text, l->capacity);
        if (!text) {
            bz_fail(l->err, BZ_OUT_OF_MEMORY, "No memory to assemble the kernel %s.", l->in->file);
            return false;
        }
        l->text = text;
    }
    memcpy(l->text + l->n, s.at, s.n);
    l->n += s.n;
    l->text[l->n] = 0;
    return true;
}

/* Without empty lines at its end. */
static span trimmed(span s)
{
    while (s.n > 1 && s.at[s.n - 1] == '\n' && s.at[s.n - 2] == '\n') {
        s.n--;
    }
    return s;
}

static bool contains(char list[MAX_PARTS][MAX_NAME], uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(list[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* What a slot is filled with; false if it is not. */
static bool find_slot(const linker *l, span slot, span *value)
{
    if (is_name(slot, "sum")) {
        const char *sum = l->in->subgroups ? "common/sum_subgroup" : "common/sum_plain";
        *value = (span){sum, strlen(sum)};
        return true;
    }
    span rest = {l->in->slots ? l->in->slots : "", l->in->slots ? strlen(l->in->slots) : 0};
    while (rest.n > 0) {
        span entry = cut(&rest, ' ');
        span name = cut(&entry, '=');
        if (name.n == slot.n && memcmp(name.at, slot.at, slot.n) == 0) {
            *value = entry;
            return true;
        }
    }
    return false;
}

static bool add_uses(linker *l, const char *user, span uses);

/* A part after those it uses. `user` is the part that names it. */
static bool add_part(linker *l, const char *user, const char *name)
{
    if (contains(l->done, l->n_done, name)) {
        return true;
    }
    if (contains(l->open, l->n_open, name)) {
        bz_fail(l->err, BZ_NOT_FOUND, "Kernel %s: the part %s uses itself, by way of %s.",
                l->in->file, name, user);
        return false;
    }
    if (l->n_open == MAX_PARTS || l->n_done == MAX_PARTS) {
        bz_fail(l->err, BZ_NOT_FOUND, "Kernel %s: more than %d parts.", l->in->file, MAX_PARTS);
        return false;
    }
    span text, uses;
    if (!find_part(l, name, &text, &uses)) {
        bz_fail(l->err, BZ_NOT_FOUND, "Kernel %s: %s uses %s, which %s does not have.", l->in->file,
                user, name,
                strncmp(name, "params.", 7) == 0 ? "params.h"
                : strncmp(name, "type.", 5) != 0 ? "src/gpu/kernels"
                : l->in->type_file               ? l->in->type_file
                                                 : "a kernel without a block type");
        return false;
    }
    snprintf(l->open[l->n_open++], MAX_NAME, "%s", name);
    const bool is_section = strncmp(name, "type.", 5) == 0 && name[5];
    if ((is_section && !add_part(l, name, "type.")) || !add_uses(l, name, uses)) {
        return false;
    }
    l->n_open--;
    snprintf(l->done[l->n_done++], MAX_NAME, "%s", name);
    char title[MAX_NAME + 32];
    const int n = snprintf(title, sizeof title, "%s// ---- %s\n", l->n ? "\n" : "",
                           strcmp(name, "type.") == 0 ? l->in->type_file : name);
    return append(l, (span){title, (size_t)n}) && append(l, trimmed(text));
}

/* The first alternative of "a|b" that exists, else the last one. */
static bool add_first(linker *l, const char *user, span alternatives)
{
    char name[MAX_NAME];
    do {
        span one = cut(&alternatives, '|');
        if (one.n >= sizeof name) {
            bz_fail(l->err, BZ_NOT_FOUND, "Kernel %s: %s uses a part with too long a name: %.*s.",
                    l->in->file, user, (int)one.n, one.at);
            return false;
        }
        snprintf(name, sizeof name, "%.*s", (int)one.n, one.at);
        span text, uses;
        if (find_part(l, name, &text, &uses)) {
            break;
        }
    } while (alternatives.n > 0);
    return add_part(l, user, name);
}

static bool add_uses(linker *l, const char *user, span uses)
{
    while (uses.n > 0) {
        span word = cut(&uses, ' ');
        if (word.n == 0) {
            continue;
        }
        if (word.at[0] == '<' && word.at[word.n - 1] == '>') {
            span slot = {word.at + 1, word.n - 2};
            if (!find_slot(l, slot, &word)) {
                bz_fail(l->err, BZ_NOT_FOUND,
                        "Kernel %s: %s uses the slot <%.*s>, which is not filled.", l->in->file,
                        user, (int)slot.n, slot.at);
                return false;
            }
        }
        if (!add_first(l, user, word)) {
            return false;
        }
    }
    return true;
}

char *gpu_link_text(const gpu_link_input *input, size_t *n, bz_error *err)
{
    linker l = {.in = input, .err = err};
    char name[MAX_NAME];
    snprintf(name, sizeof name, "%.*s", (int)(strlen(input->file) - strlen(".wgsl")), input->file);
    if (!add_part(&l, "the catalog", name)) {
        free(l.text);
        return NULL;
    }
    *n = l.n;
    return l.text;
}

char *gpu_link(gpu_kernel kernel, bz_type type, bool subgroups, size_t *n, bz_error *err)
{
    const gpu_kernel_info *info = gpu_kernel_info_of(kernel);
    const gpu_link_input input = {.sources = gpu_sources,
                                  .n_sources = gpu_n_sources,
                                  .file = info->file,
                                  .type_file = info->types ? gpu_type_file(type) : NULL,
                                  .slots = info->slots,
                                  .subgroups = subgroups};
    return gpu_link_text(&input, n, err);
}
