/* The kernel linker: every kernel x block type x feature set assembles, and mistakes in a file are
 * errors that name the file and the part. */
#include "gpu/kernels/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word)) {
        n++;
    }
    return n;
}

/* Directives come before declarations, and no declaration is there twice. */
static void check_text(const char *name, const char *text)
{
    enum { MAX_NAMES = 256 };
    static char names[MAX_NAMES][64];
    size_t n_names = 0;
    bool declared = false;
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        const bool directive =
            strncmp(line, "enable ", 7) == 0 || strncmp(line, "diagnostic(", 11) == 0;
        CHECKF(!directive || !declared, "%s: a directive after a declaration", name);
        const char *kinds[] = {"fn ",    "struct ",       "const ",         "override ",
                               "alias ", "var<private> ", "var<workgroup> "};
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (strncmp(line, kinds[k], strlen(kinds[k])) != 0) {
                continue;
            }
            declared = true;
            const char *at = line + strlen(kinds[k]);
            const int n = (int)strcspn(at, " (:;{=");
            CHECK(n_names < MAX_NAMES && n < 64);
            snprintf(names[n_names], sizeof names[0], "%.*s", n, at);
            for (size_t i = 0; i < n_names; i++) {
                CHECKF(strcmp(names[i], names[n_names]) != 0, "%s: %s is declared twice", name,
                       names[n_names]);
            }
            n_names++;
        }
    }
    CHECKF(count(text, "\n@compute ") == 1, "%s: entry points", name);
    CHECKF(!strstr(text, "// uses: ") && !strstr(text, "// section "), "%s: a header line", name);
}

/* The text declares the overrides that the catalog names. */
static void check_overrides(gpu_kernel kernel, const char *name, const char *text, bool subgroups)
{
    const gpu_kernel_info *info = gpu_kernel_info_of(kernel);
    for (uint32_t i = 0; i < GPU_MAX_OVERRIDES && info->overrides[i]; i++) {
        char declaration[64];
        snprintf(declaration, sizeof declaration, "override %s:", info->overrides[i]);
        const bool expected = subgroups || i != gpu_kernel_subgroup_override(kernel);
        CHECKF((strstr(text, declaration) != NULL) == expected, "%s: %s", name, declaration);
    }
}

static void test_all(void)
{
    begin("every kernel for every block type and feature set");
    size_t n_texts = 0;
    for (uint32_t k = 0; k < GPU_N_KERNELS; k++) {
        const gpu_kernel kernel = (gpu_kernel)k;
        const bool typed = gpu_kernel_info_of(kernel)->types != 0;
        for (uint32_t t = 0; t < (typed ? BZ_TYPE_END : 1); t++) {
            if (typed && !gpu_kernel_has_type(kernel, (bz_type)t)) {
                continue;
            }
            const bool forms = gpu_kernel_subgroup_override(kernel) < GPU_MAX_OVERRIDES;
            for (int subgroups = 0; subgroups <= forms; subgroups++) {
                char name[64];
                gpu_kernel_name(kernel, (bz_type)t, name, sizeof name);
                size_t n;
                bz_error err;
                char *text = gpu_link(kernel, (bz_type)t, subgroups != 0, &n, &err);
                CHECKF(text != NULL, "%s", text ? "" : err.text);
                if (text) {
                    CHECK(n == strlen(text));
                    CHECK((strstr(text, "enable subgroups") != NULL) ==
                          (subgroups || strstr(name, "matrix") || strstr(name, "linear_tile16")));
                    check_text(name, text);
                    check_overrides(kernel, name, text, subgroups != 0);
                }
                free(text);
                n_texts++;
            }
        }
    }
    CHECKF(n_texts > 300, "%zu texts", n_texts);
}

static void test_types(void)
{
    begin("a kernel has exactly the block types whose sections it uses");
    for (uint32_t k = 0; k < GPU_N_KERNELS; k++) {
        const gpu_kernel kernel = (gpu_kernel)k;
        for (uint32_t t = 0; gpu_kernel_info_of(kernel)->types && t < BZ_TYPE_END; t++) {
            if (gpu_type_file((bz_type)t) && !gpu_kernel_has_type(kernel, (bz_type)t)) {
                size_t n;
                bz_error err;
                char *text = gpu_link(kernel, (bz_type)t, false, &n, &err);
                CHECKF(!text && strstr(err.text, gpu_type_file((bz_type)t)), "%s: %s",
                       gpu_kernel_info_of(kernel)->name, text ? "has the type" : err.text);
                free(text);
            }
        }
    }
}

static void test_names(void)
{
    begin("kernels are found by their unique names");
    for (uint32_t k = 0; k < GPU_N_KERNELS; k++) {
        gpu_kernel found;
        CHECK(gpu_kernel_find(gpu_kernel_info_of((gpu_kernel)k)->name, &found) && found == k);
    }
    gpu_kernel found;
    CHECK(!gpu_kernel_find("linear", &found));
}

static void test_order(void)
{
    begin("parts come once, after those they use");
    static const gpu_source sources[] = {
        {"k.wgsl", "// uses: a b type.s <slot>\nK\n", 29},
        {"a.wgsl", "// uses: b\nA\n", 13},
        {"b.wgsl", "B\n", 2},
        {"c.wgsl", "C\n", 2},
        {"t.wgsl", "// type\n\n// section s, uses: type.u\nS\n// section u\nU\n", 53},
    };
    const gpu_link_input input = {sources, 5, "k.wgsl", "t.wgsl", "other=a slot=type.none|c",
                                  false};
    size_t n;
    bz_error err;
    char *text = gpu_link_text(&input, &n, &err);
    CHECKF(text && strcmp(text, "// ---- b\nB\n\n// ---- a\nA\n\n// ---- t.wgsl\n// type\n"
                                "\n// ---- type.u\nU\n\n// ---- type.s\nS\n\n// ---- c\nC\n"
                                "\n// ---- k\nK\n") == 0,
           "%s", text ? text : err.text);
    free(text);
}

static void test_mistakes(void)
{
    static const struct {
        const char *name, *kernel, *part, *type_file, *slots, *error;
    } cases[] = {
        {"a misspelt part", "// uses: a comon\n", "A\n", NULL, NULL,
         "Kernel dir/k.wgsl: dir/k uses comon, which src/gpu/kernels does not have."},
        {"a misspelt part of a part", "// uses: a\n", "// uses: b\n", NULL, NULL,
         "Kernel dir/k.wgsl: a uses b, which src/gpu/kernels does not have."},
        {"a misspelt family of params", "// uses: params.prodct\n", "A\n", NULL, NULL,
         "Kernel dir/k.wgsl: dir/k uses params.prodct, which params.h does not have."},
        {"a missing section", "// uses: type.dot\n", "A\n", "a.wgsl", NULL,
         "Kernel dir/k.wgsl: dir/k uses type.dot, which a.wgsl does not have."},
        {"a section without a block type", "// uses: type.dot\n", "A\n", NULL, NULL,
         "Kernel dir/k.wgsl: dir/k uses type.dot, which a kernel without a block type does not "
         "have."},
        {"no alternative exists", "// uses: type.dot|b\n", "A\n", "a.wgsl", NULL,
         "Kernel dir/k.wgsl: dir/k uses b, which src/gpu/kernels does not have."},
        {"a cycle", "// uses: a\n", "// uses: dir/k\n", NULL, NULL,
         "Kernel dir/k.wgsl: the part dir/k uses itself, by way of a."},
        {"an unfilled slot", "// uses: <shape>\n", "A\n", NULL, "shapes=a",
         "Kernel dir/k.wgsl: dir/k uses the slot <shape>, which is not filled."},
        {"a slot filled with a misspelt part", "// uses: <shape>\n", "A\n", NULL, "shape=b",
         "Kernel dir/k.wgsl: dir/k uses b, which src/gpu/kernels does not have."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("%s is an error", cases[i].name);
        const gpu_source sources[] = {{"dir/k.wgsl", cases[i].kernel, strlen(cases[i].kernel)},
                                      {"a.wgsl", cases[i].part, strlen(cases[i].part)}};
        const gpu_link_input input = {sources,        2,    "dir/k.wgsl", cases[i].type_file,
                                      cases[i].slots, false};
        size_t n;
        bz_error err = {0};
        char *text = gpu_link_text(&input, &n, &err);
        CHECKF(!text && strcmp(err.text, cases[i].error) == 0, "%s", err.text);
        free(text);
    }
}

int main(void)
{
    test_all();
    test_types();
    test_names();
    test_order();
    test_mistakes();
    return finish();
}
