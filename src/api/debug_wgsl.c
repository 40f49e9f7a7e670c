/* bezel_debug.h: the WGSL text of a GPU kernel. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bezel_debug.h"
#include "gpu/kernels/link.h"

enum { MAX_TYPES_TEXT = 160 };

/* The names of the kernel's block types, each after a space. */
static void list_types(gpu_kernel kernel, char out[MAX_TYPES_TEXT])
{
    size_t n = 0;
    out[0] = 0;
    const bool typed = gpu_kernel_info_of(kernel)->types != 0;
    for (uint32_t t = 0; typed && t < BZ_TYPE_END; t++) {
        if (gpu_kernel_has_type(kernel, (bz_type)t)) {
            n += (size_t)snprintf(out + n, MAX_TYPES_TEXT - n, " %s", bz_type_of(t)->name);
        }
    }
}

static bool list_kernels(bz_debug_write write, void *user)
{
    for (uint32_t k = 0; k < GPU_N_KERNELS; k++) {
        char types[MAX_TYPES_TEXT], line[MAX_TYPES_TEXT + 64];
        list_types((gpu_kernel)k, types);
        const int n = snprintf(line, sizeof line, "%-*s%s\n", types[0] ? 20 : 0,
                               gpu_kernel_info_of((gpu_kernel)k)->name, types);
        if (!write(user, line, (size_t)n)) {
            return false;
        }
    }
    return true;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* The kernel's block type of that name. */
static bz_status find_type(gpu_kernel kernel, const char *name, bz_type *type, bz_error *err)
{
    const char *kernel_name = gpu_kernel_info_of(kernel)->name;
    const bool typed = gpu_kernel_info_of(kernel)->types != 0;
    char types[MAX_TYPES_TEXT];
    for (uint32_t t = 0; typed && name && t < BZ_TYPE_END; t++) {
        if (gpu_kernel_has_type(kernel, (bz_type)t) && same_name(name, bz_type_of(t)->name)) {
            *type = (bz_type)t;
            return BZ_OK;
        }
    }
    if (!typed) {
        return name ? bz_fail(err, BZ_BAD_REQUEST,
                              "The kernel %s has one text for all models; omit '%s'.", kernel_name,
                              name)
                    : BZ_OK;
    }
    list_types(kernel, types);
    return bz_fail(err, BZ_BAD_REQUEST, "Name a block type that the kernel %s reads:%s.",
                   kernel_name, types);
}

static bz_status put_kernel(bz_json *j, gpu_kernel kernel, bz_type type, bool typed, bool subgroups,
                            bz_error *err)
{
    size_t n;
    char *text = gpu_link(kernel, type, subgroups, &n, err);
    if (!text) {
        return err->code;
    }
    bz_json_object(j);
    bz_json_put_text(j, "kernel", gpu_kernel_info_of(kernel)->name);
    bz_json_put_text(j, "type", typed ? bz_type_of((uint32_t)type)->name : NULL);
    bz_json_put_bool(j, "subgroups", subgroups);
    bz_json_put_str(j, "text", (bz_str){text, n});
    bz_json_end(j);
    free(text);
    return BZ_OK;
}

bz_status bz_debug_wgsl_all(bz_debug_write write, void *user, bz_error *err)
{
    bz_json j;
    bz_error unwanted;
    bz_status status = BZ_OK;
    err = err ? err : &unwanted;
    bz_json_init(&j, write, user);
    bz_json_array(&j);
    for (uint32_t k = 0; k < GPU_N_KERNELS; k++) {
        const gpu_kernel kernel = (gpu_kernel)k;
        const bool typed = gpu_kernel_info_of(kernel)->types != 0;
        const bool forms = gpu_kernel_subgroup_override(kernel) < GPU_MAX_OVERRIDES;
        for (uint32_t t = 0; status == BZ_OK && t < (typed ? BZ_TYPE_END : 1); t++) {
            for (int s = 0; status == BZ_OK && s <= forms; s++) {
                if (!typed || gpu_kernel_has_type(kernel, (bz_type)t)) {
                    status = put_kernel(&j, kernel, typed ? (bz_type)t : BZ_F32, typed, s, err);
                }
            }
        }
    }
    bz_json_end(&j);
    if (status == BZ_OK && !bz_json_finish(&j)) {
        status = bz_fail(err, BZ_ABORTED, "Writing ended.");
    }
    return status;
}

bz_status bz_debug_wgsl(const char *kernel_name, const char *type_name, bz_debug_write write,
                        void *user, bz_error *err)
{
    gpu_kernel kernel;
    bz_type type = BZ_F32;
    if (!kernel_name) {
        return list_kernels(write, user) ? BZ_OK : bz_fail(err, BZ_ABORTED, "Writing ended.");
    }
    if (!gpu_kernel_find(kernel_name, &kernel)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "There is no GPU kernel '%s'. 'bezel show --wgsl' lists them.", kernel_name);
    }
    bz_status status = find_type(kernel, type_name, &type, err);
    if (status != BZ_OK) {
        return status;
    }
    const bool subgroups = gpu_kernel_subgroup_override(kernel) < GPU_MAX_OVERRIDES;
    size_t n;
    char *text = gpu_link(kernel, type, subgroups, &n, err);
    if (!text) {
        return err->code;
    }
    status = write(user, text, n) ? BZ_OK : bz_fail(err, BZ_ABORTED, "Writing ended.");
    free(text);
    return status;
}
