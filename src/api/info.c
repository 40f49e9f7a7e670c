/* What a file says about its model, for programs. */
#include "api/inspect.h"
#include "base/options.h"
#include "bezel_embed.h"

/* Names of general.file_type as llama.cpp numbers them. */
static const char *const file_types[] = {
    [0] = "F32",      [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",    [7] = "Q8_0",
    [8] = "Q5_0",     [9] = "Q5_1",     [10] = "Q2_K",   [11] = "Q3_K_S", [12] = "Q3_K_M",
    [13] = "Q3_K_L",  [14] = "Q4_K_S",  [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",
    [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
    [23] = "IQ3_XXS", [24] = "IQ1_S",   [25] = "IQ4_NL", [26] = "IQ3_S",  [27] = "IQ3_M",
    [28] = "IQ2_S",   [29] = "IQ2_M",   [30] = "IQ4_XS", [31] = "IQ1_M",  [32] = "BF16",
    [36] = "TQ1_0",   [37] = "TQ2_0",   [38] = "MXFP4",
};

/* As the file says, else the type that most of its bytes have. */
static const char *file_type(const bz_model *m, const bz_type_sum sums[BZ_TYPE_END])
{
    uint64_t number;
    if (bz_gguf_get_u64(bz_gguf_find(m->set.main, "general.file_type"), 0, &number) &&
        number < sizeof file_types / sizeof *file_types && file_types[number]) {
        return file_types[number];
    }
    uint32_t best = 0;
    for (uint32_t i = 1; i < BZ_TYPE_END; i++) {
        best = sums[i].bytes > sums[best].bytes ? i : best;
    }
    return bz_type_of(best)->name;
}

bz_status bz_model_get_info(const bz_model *m, bz_model_info *info, bz_error *err)
{
    const bz_config *c = &m->text.config;
    bz_type_sum sums[BZ_TYPE_END];
    const bz_type_sum all = bz_inspect_types(m, sums);
    const bz_model_info known = {.size = sizeof known,
                                 .name = m->name,
                                 .architecture = m->architecture,
                                 .file_type = file_type(m, sums),
                                 .bytes = m->set.total_size,
                                 .parameters = all.values,
                                 .layers = c->layers,
                                 .width = c->width,
                                 .vocab = c->vocab,
                                 .context = c->context,
                                 .window = c->window,
                                 .experts = c->experts,
                                 .experts_used = c->experts_used,
                                 .canvas = c->canvas,
                                 .embedding = bz_model_embedding(m)};
    return BZ_WRITE_SIZED(bz_model_info, canvas, info, &known, err);
}
