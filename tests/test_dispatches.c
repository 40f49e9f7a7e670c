/* How many dispatches passes of E2B have, without a device and without its weights: a token is
 * bound by them, so a rule that stops to fire must not go unnoticed. */
#include <stdlib.h>
#include <string.h>

#include "gpu/lower/lower.h"
#include "gpu/run/weights.h"
#include "session/adapter.h"
#include "support/check.h"
#include "support/e2b_shape.h"

/* A large GPU. */
static const gpu_limits limits = {.max_buffer = UINT64_C(1) << 32,
                                  .max_binding = UINT64_C(1) << 32,
                                  .max_storage_buffers = 8,
                                  .max_workgroup_storage = 49152,
                                  .max_invocations = 1024,
                                  .max_workgroups = 65535,
                                  .min_storage_offset = 256,
                                  .min_uniform_offset = 256,
                                  .subgroups = true,
                                  .packed_dot = true,
                                  .subgroup_min = 32,
                                  .subgroup_max = 32,
                                  .matrices = true};

/* An adapter of rank 16 for what tools/lora_synth.py adapts, in a model without experts. */
static bz_adapter *adapter_of_projections(const bz_model *m)
{
    const bz_weights *table = &m->text.weights.table;
    bz_adapter *a = calloc(1, sizeof *a);
    uint32_t *ranks = calloc(table->n, sizeof *ranks);
    bz_error err = {0};
    atomic_init(&a->references, 1);
    a->model = m;
    for (uint32_t i = 0; i < table->n; i++) {
        const bool matrix = table->info[i].ne[1] > 1 && !strstr(table->info[i].name, "token_embd");
        ranks[i] = matrix ? 16 : 0;
    }
    CHECKF(bz_adapter_make_tensors(a, ranks, &err) == BZ_OK, "%s", err.text);
    free(ranks);
    return a;
}

/* Of the list for caches of 1,024 positions. */
static uint32_t dispatches_with_caches(const gpu_lowered *l, const bz_text_model *text)
{
    gpu_cache_shape *shapes = calloc(text->n_caches, sizeof *shapes);
    gpu_dispatch *list = NULL;
    uint32_t n = 0;
    uint64_t scratch = 0;
    for (uint32_t i = 0; i < text->n_caches; i++) {
        shapes[i] = (gpu_cache_shape){.positions = 1024,
                                      .piece_rows = 1 << 20,
                                      .n_pieces = 1,
                                      .ring = text->caches[i].window != 0};
    }
    CHECK(gpu_split_caches(l, shapes, limits.max_binding, &list, &n, &scratch, NULL) == BZ_OK);
    free(list);
    free(shapes);
    return n;
}

/* Dispatches of all of E2B, decoding and reading a prompt, without and with one, or three, adapters
 * on every projection. A token has one more for each of the six inputs of a layer, and two for the
 * projection of per-layer embeddings, which is BF16; but A of the second product of the per-layer
 * gate is computed with it, if it is of one adapter. */
static void test_e2b(void)
{
    static const struct {
        uint32_t rows, plain, one, three; /* adapters */
        bool matrices;
    } cases[] = {{1, 275, 275 + 5 * 35 + 2, 275 + 6 * 35 + 2, false},
                 {8, 275, 275 + 5 * 35 + 2, 275 + 6 * 35 + 2, false},
                 {512, 633, 633 + 2 * (6 * 35 + 1), 633 + 2 * (6 * 35 + 1), false},
                 {512, 633, 633 + 2 * (6 * 35 + 1), 633 + 2 * (6 * 35 + 1), true}};
    static e2b_shape e2b;
    bz_error err = {0};
    e2b_shape_open(&e2b);
    bz_adapter *a = adapter_of_projections(&e2b.model);
    const bz_adapter_use uses[3] = {{a, 1}, {a, 0.5f}, {a, 2}};
    for (int adapters = 0; adapters <= 3; adapters += adapters ? 2 : 1) {
        bz_adapter_set *set = NULL;
        gpu_weights w;
        CHECKF(bz_adapter_set_new(&set, NULL, &e2b.model, uses, (size_t)adapters, &err) == BZ_OK,
               "%s", err.text);
        const bz_text_model *text = bz_adapted_text(&e2b.model, set);
        CHECK(gpu_weights_place(&w, &limits, &text->weights.table, BZ_NO_WEIGHT, &err) == BZ_OK);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            begin("E2B, %d adapters, %u rows%s", adapters, cases[i].rows,
                  cases[i].matrices ? ", subgroup matrices" : "");
            bz_plan *plan = NULL;
            CHECKF(bz_text_record(text, cases[i].rows, 1, &plan, &err) == BZ_OK, "%s", err.text);
            const gpu_lower_input in = {.plan = plan,
                                        .weights = &w.map,
                                        .host_weights = set ? set->bytes : e2b.model.weight_bytes,
                                        .limits = &limits,
                                        .fuse = true,
                                        .packed = true,
                                        .matrices = cases[i].matrices};
            gpu_lowered l;
            if (CHECKF(gpu_lower(&in, &l, &err) == BZ_OK, "%s", err.text)) {
                const uint32_t want = adapters == 0   ? cases[i].plain
                                      : adapters == 1 ? cases[i].one
                                                      : cases[i].three;
                const uint32_t n = dispatches_with_caches(&l, text);
                CHECKF(n == want, "%u dispatches, not %u", n, want);
                gpu_lowered_free(&l);
            }
            bz_plan_free(plan);
        }
        gpu_weights_free(&w, NULL);
        bz_adapter_set_free(set);
    }
    bz_adapter_free(a);
    e2b_shape_close(&e2b);
}

int main(void)
{
    test_e2b();
    return finish();
}
