#include "cli/pebble.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "cli/verbs/list.h"
#include "server/os.h"

static bool find(const char *name, char out[PATH_MAX])
{
    /* beside an installed program, where the page has them too, or without the page; the last is
     * for sanitizer and cross builds, which are one folder deeper */
    static const char *const places[] = {"../share/bezel/web/builtin", "../share/bezel/models",
                                         "../models", "../../models"};
    char program[PATH_MAX];
    char *slash = bz_os_program_path(program, sizeof program) ? strrchr(program, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        char path[PATH_MAX];
        *slash = 0;
        const int n = snprintf(path, sizeof path, "%s/%s/%s.gguf", program, places[i], name);
        if (n > 0 && n < (int)sizeof path && bz_os_file_exists(path) &&
            bz_os_real_path(path, out, PATH_MAX)) {
            return true;
        }
    }
    return false;
}

bool pebble_find(char out[PATH_MAX])
{
    return find(PEBBLE, out);
}

bz_status pebble_resolve(const char *model, bz_store_model *out, bz_error *err)
{
    char path[PATH_MAX];
    bz_status status = bz_store_resolve(model, out, err);
    if (status != BZ_OK && (strcmp(model, PEBBLE) == 0 || strcmp(model, PEBBLE_DIFFUSION) == 0) &&
        find(model, path)) {
        *err = (bz_error){0};
        status = bz_store_resolve(path, out, err);
    }
    return status;
}

enum { MAX_NAMES = 4 };

void pebble_introduce(void)
{
    bz_store_list list = {0};
    bz_error err = {0};
    const char *first = NULL;
    size_t found = 0;
    fputs("bezel: no model given; this is Pebble, a tiny demo model.", stderr);
    if (bz_store_list_all(&list, &err) == BZ_OK) {
        for (size_t i = 0; i < list.n; i++) {
            if (!list_runs(&list.entries[i])) {
                continue;
            }
            if (found < MAX_NAMES) {
                fprintf(stderr, "%s%s", found ? ", " : " Ollama's store has ",
                        list.entries[i].name);
            }
            first = first ? first : list.entries[i].name;
            found++;
        }
    }
    if (found > MAX_NAMES) {
        fprintf(stderr, " and %zu more", found - MAX_NAMES);
    }
    fprintf(stderr,
            found ? "; try 'bezel run %s'.\n"
                  : " For a full model: 'bezel run %s', or a name from 'bezel list'.\n",
            first ? first : "model.gguf");
    bz_store_list_free(&list);
}
