#include "gpu/kernels/params.h"

#include <string.h>

#define WGSL_FIELD(S, type, name, comment) "    " #name ": " #type ", // " comment "\n"
#define WGSL_STRUCT(family, LIST)                                                                  \
    {#family, "struct Params {\n" LIST(                                                            \
                  WGSL_FIELD, ) "}\n\n"                                                            \
                                "@group(0) @binding(0) var<uniform> params: Params;\n"},

static const struct {
    const char *family, *wgsl;
} texts[] = {GPU_PARAM_FAMILIES(WGSL_STRUCT)};

const char *gpu_params_wgsl(const char *family)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(texts[i].family, family) == 0) {
            return texts[i].wgsl;
        }
    }
    return NULL;
}
