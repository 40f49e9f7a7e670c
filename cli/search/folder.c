#include "cli/search/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/os_program.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 64 };

void folder_free(folder *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->files[i].path);
    }
    free(f->files);
    *f = (folder){0};
}

static bool add(folder *f, char *path, const char *skipped, bool markdown)
{
    if (f->n == f->cap) {
        const size_t cap = 2 * f->cap + 64;
        folder_file *more = realloc(f->files, cap * sizeof *more);
        if (!more) {
            free(path);
            return false;
        }
        f->files = more;
        f->cap = cap;
    }
    f->files[f->n++] = (folder_file){path, skipped, markdown};
    return true;
}

/* A name without an ending (README) is taken for text; its content decides. */
static bool is_text(const char *name, bool *markdown)
{
    static const char *const texts[] = {".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".log"};
    static const char *const markdowns[] = {".md", ".markdown", ".mdown", ".mkd"};
    const char *dot = strrchr(name, '.');
    *markdown = false;
    for (size_t i = 0; dot && i < sizeof markdowns / sizeof *markdowns; i++) {
        *markdown |= strcasecmp(dot, markdowns[i]) == 0;
    }
    bool text = !dot || *markdown;
    for (size_t i = 0; dot && i < sizeof texts / sizeof *texts; i++) {
        text |= strcasecmp(dot, texts[i]) == 0;
    }
    return text;
}

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
}

typedef struct listing {
    folder *f;
    const char *path;
    unsigned depth;
    bz_status status;
    bz_error *err; /* no memory; other errors skip a file or a folder */
} listing;

static bz_status list(folder *f, const char *path, unsigned depth, bz_error *err);

static bz_status list_entry(folder *f, char *path, const char *name, unsigned depth, bz_error *err)
{
    bz_os_info info;
    bz_error why = {0};
    bool markdown = false, kept = true;
    bz_status status = BZ_OK;
    if (bz_os_is_link(path)) {
        kept = add(f, path, "a link", false);
    } else if (bz_os_stat(path, &info, &why) != BZ_OK) {
        kept = add(f, path, "cannot be read", false);
    } else if (info.folder) {
        if (depth == MAX_DEPTH) {
            kept = add(f, path, "a folder too deep", false);
        } else {
            status = list(f, path, depth + 1, &why);
            if (status == BZ_OUT_OF_MEMORY) {
                *err = why;
                free(path);
            } else if (status != BZ_OK) { /* the others are still searched */
                status = BZ_OK;
                kept = add(f, path, "cannot be read", false);
            } else {
                free(path);
            }
        }
    } else {
        const char *skipped = info.special                   ? "not a plain file"
                              : !is_text(name, &markdown)    ? "not text or Markdown"
                              : info.size > FOLDER_MAX_BYTES ? "larger than 64 MB"
                                                             : NULL;
        kept = add(f, path, skipped, markdown);
    }
    return kept ? status : no_memory(err);
}

static bool on_entry(void *user, const char *name)
{
    listing *l = user;
    if (name[0] == '.') {
        return true;
    }
    const size_t n = strlen(l->path), room = n + strlen(name) + 2;
    char *whole = malloc(room);
    if (!whole) {
        l->status = no_memory(l->err);
        return false;
    }
    snprintf(whole, room, "%s%s%s", l->path, l->path[n - 1] == '/' ? "" : "/", name);
    l->status = list_entry(l->f, whole, name, l->depth, l->err);
    return l->status == BZ_OK;
}

static bz_status list(folder *f, const char *path, unsigned depth, bz_error *err)
{
    listing l = {f, path, depth, BZ_OK, err};
    bz_error why = {0};
    if (bz_os_list(path, on_entry, &l, &why) != BZ_OK) {
        return bz_fail(err, BZ_NOT_FOUND, "Cannot read the folder %.200s: %s.", path, why.text);
    }
    return l.status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const folder_file *)a)->path, ((const folder_file *)b)->path);
}

bz_status folder_list(folder *f, const char *path, bz_error *err)
{
    const bz_status status = *path ? list(f, path, 0, err)
                                   : bz_fail(err, BZ_NOT_FOUND, "The name of the folder is empty.");
    if (status == BZ_OK && f->n) {
        qsort(f->files, f->n, sizeof *f->files, by_path);
    }
    return status;
}

bool folder_read(folder_file *file, char **memory, bz_str *text)
{
    size_t n = 0;
    bz_error why = {0};
    *memory = NULL;
    *text = (bz_str){"", 0};
    const bz_status status = bz_os_read_small(file->path, FOLDER_MAX_BYTES, memory, &n, &why);
    if (status != BZ_OK) {
        file->skipped = "cannot be read";
        return status != BZ_OUT_OF_MEMORY;
    }
    if (memchr(*memory, 0, n) || !bz_utf8_valid(*memory, n)) {
        file->skipped = "not text in UTF-8";
        return true;
    }
    const size_t mark = n >= 3 && memcmp(*memory, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    *text = (bz_str){*memory + mark, n - mark};
    return true;
}
