/* Assembles the WGSL text of a kernel from the files under src/gpu/kernels.
 *
 * The first line of a file, or the header line of a section of a block type's file, names the parts
 * it uses:
 *     // uses: common/pass <shape> type.run|product/run_unpacked
 *     // section dot, uses: product/dot_vec4 type.scales
 *   common/pass   the file common/pass.wgsl
 *   params.norm   the uniform of that family (params.h)
 *   type.run      the section `run` of the current block type's file, types/q4_k.wgsl
 *   <shape>       a slot, which the catalog fills for this kernel; <sum> is filled by `subgroups`
 *   a|b           the first of these that exists
 * Parts are resolved transitively; each is put into the text once, after the parts it uses, with
 * its name as a title. */
#ifndef BZ_GPU_LINK_H
#define BZ_GPU_LINK_H

#include "base/error.h"
#include "gpu/kernels/catalog.h"
#include "gpu/kernels/sources.h"

/* The text, which the caller frees, and its length; NULL and *err on failure. `type` counts if the
 * kernel reads blocks; `subgroups` selects subgroup operations where the kernel has them. */
char *gpu_link(gpu_kernel kernel, bz_type type, bool subgroups, size_t *n, bz_error *err);

/* The same for any file of a given set of sources: what gpu_link calls, and tests with errors in
 * it.
 */
typedef struct gpu_link_input {
    const gpu_source *sources;
    size_t n_sources;
    const char *file;      /* the kernel's, "product/linear_row.wgsl" */
    const char *type_file; /* the block type's, "types/q4_k.wgsl"; NULL: none */
    const char *slots;     /* "shape=product/even_shape run=type.run|product/run_unpacked" */
    bool subgroups;
} gpu_link_input;

char *gpu_link_text(const gpu_link_input *input, size_t *n, bz_error *err);

#endif
