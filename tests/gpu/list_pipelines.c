/* Lists the pipelines that models need, for devices with different features and limits:
 *
 *   list_pipelines MODEL[,MMPROJ or DRAFTER]...
 *
 * Plans are lowered without a device, for ones with different features and the least limits, with
 * and without adapters. Prints
 * a JSON array of {kernel, type, subgroups, constants}, each once; a test creates them all
 * (tests/web/wgsl_texts.ts). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bezel_diffusion.h"
#include "bezel_media.h"
#include "gpu/kernels/catalog.h"
#include "gpu/lower/lower.h"
#include "gpu/run/weights.h"
#include "model/assistant.h"
#include "model/diffusion.h"
#include "model/embedding.h"
#include "model/text.h"
#include "session/adapter.h"
#include "session/embed.h"
#include "session/model.h"

/* ---- devices ------------------------------------------------------------------------------- */

/* What GPUs offer, from a phone without features to a large card. */
static const struct {
    bool subgroups, packed_dot, matrices;
    uint32_t min, max; /* sizes of subgroups */
    bool sequential;
} devices[] = {
    {false, false, false, 0, 0, false},   {false, true, false, 0, 0, false},
    {true, true, false, 4, 4, false},     {true, true, false, 8, 32, false},
    {true, true, false, 16, 16, false},   {true, true, true, 32, 32, false},
    {true, true, false, 64, 64, false},   {true, true, false, 32, 64, false},
    {true, false, false, 16, 128, false}, {true, true, false, 4, 4, true},
};
enum { N_DEVICES = sizeof devices / sizeof *devices };

static gpu_limits limits_of(int device)
{
    return (gpu_limits){.max_buffer = UINT64_C(1) << 40,
                        .max_binding = UINT64_C(1) << 31,
                        .max_storage_buffers = 8,
                        .max_workgroup_storage = 16384,
                        .max_invocations = 256,
                        .max_workgroups = 65535,
                        .min_storage_offset = 256,
                        .min_uniform_offset = 256,
                        .f16 = devices[device].subgroups,
                        .subgroups = devices[device].subgroups,
                        .packed_dot = devices[device].packed_dot,
                        .subgroup_min = devices[device].min,
                        .subgroup_max = devices[device].max,
                        .matrices = devices[device].matrices,
                        .sequential = devices[device].sequential};
}

/* ---- what was found -------------------------------------------------------------------------- */

typedef struct found {
    gpu_kernel kernel;
    bz_type type;
    gpu_overrides overrides;
} found;

static found *all;
static size_t n_all, room;

static void note(const gpu_dispatch *d)
{
    const bool typed = gpu_kernel_info_of(d->kernel)->types != 0;
    const found f = {d->kernel, typed ? d->type : BZ_F32, d->overrides};
    for (size_t i = 0; i < n_all; i++) {
        if (all[i].kernel == f.kernel && all[i].type == f.type &&
            memcmp(&all[i].overrides, &f.overrides, sizeof f.overrides) == 0) {
            return;
        }
    }
    if (n_all == room) {
        room = room ? 2 * room : 1024;
        all = realloc(all, room * sizeof *all);
        if (!all) {
            exit(1);
        }
    }
    all[n_all++] = f;
}

static void print(void)
{
    bz_json j;
    bz_json_buffer text = {0};
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_array(&j);
    for (size_t i = 0; i < n_all; i++) {
        const found *f = &all[i];
        const gpu_kernel_info *info = gpu_kernel_info_of(f->kernel);
        const uint32_t at = gpu_kernel_subgroup_override(f->kernel);
        const bool subgroups = at < GPU_MAX_OVERRIDES && f->overrides.value[at];
        bz_json_object(&j);
        bz_json_put_text(&j, "kernel", info->name);
        bz_json_put_text(&j, "type", info->types ? bz_type_of(f->type)->name : NULL);
        bz_json_put_bool(&j, "subgroups", subgroups);
        bz_json_key(&j, "constants");
        bz_json_object(&j);
        for (uint32_t k = 0; k < GPU_MAX_OVERRIDES && info->overrides[k]; k++) {
            if (subgroups || k != at) { /* as run/pipelines.c passes them */
                bz_json_put_uint(&j, info->overrides[k], f->overrides.value[k]);
            }
        }
        bz_json_end(&j);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    if (!bz_json_finish(&j) || fwrite(text.text, 1, text.n, stdout) != text.n) {
        exit(1);
    }
    free(text.text);
}

/* ---- plans ----------------------------------------------------------------------------------- */

static void fail(const char *what, const bz_error *err)
{
    fprintf(stderr, "list_pipelines: %s: %s\n", what, err->text);
    exit(1);
}

/* Every way of computing it; frees the plan. */
static void lower(bz_plan *plan, const bz_weights *table, const uint8_t *const *bytes,
                  const char *what)
{
    for (int device = 0; device < N_DEVICES; device++) {
        const gpu_limits limits = limits_of(device);
        gpu_weights w;
        bz_error err = {0};
        if (gpu_weights_place(&w, &limits, table, BZ_NO_WEIGHT, &err) != BZ_OK) {
            fail(what, &err);
        }
        for (unsigned how = 0; how < 32; how++) {
            const gpu_lower_input in = {.plan = plan,
                                        .weights = &w.map,
                                        .host_weights = bytes,
                                        .limits = &limits,
                                        .fuse = how & 1,
                                        .packed = (how & 2) && limits.packed_dot,
                                        .matrices = (how & 4) && limits.matrices,
                                        .cache = (bz_cache_type)(how >> 3)};
            gpu_lowered l;
            if (((how & 2) && !in.packed) || ((how & 4) && !in.matrices)) {
                continue;
            }
            if (gpu_lower(&in, &l, &err) != BZ_OK) {
                fail(what, &err);
            }
            for (uint32_t i = 0; i < l.n; i++) {
                note(&l.dispatches[i]);
            }
            gpu_lowered_free(&l);
        }
        gpu_weights_free(&w, NULL);
    }
    bz_plan_free(plan);
}

static void must_record(bz_status status, const bz_error *err)
{
    if (status != BZ_OK) {
        fail("recording a plan", err);
    }
}

static void list_text(const bz_text_model *text, const uint8_t *const *bytes, const char *name)
{
    static const uint32_t sizes[] = {1, 8, 64, 512};
    const bz_weights *table = &text->weights.table;
    bz_plan *p = NULL;
    bz_error err = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int many = 0; many < 2; many++) {
            must_record(bz_text_record(text, sizes[i], many ? sizes[i] : 1, &p, &err), &err);
            p->many_sequences = many;
            lower(p, table, bytes, name);
        }
    }
    if (text->config.canvas) {
        must_record(bz_diffusion_record_canvas(text, &p, &err), &err);
        lower(p, table, bytes, name);
        must_record(bz_diffusion_record_logits(text, &p, &err), &err);
        lower(p, table, bytes, name);
        must_record(bz_diffusion_record_condition(text, &p, &err), &err);
        lower(p, table, bytes, name);
    }
}

/* The same with an adapter of every matrix; the table of embeddings of a model with a canvas cannot
 * have one. */
static void list_adapted(const bz_model *m, const char *name)
{
    const bz_weights *table = &m->text.weights.table;
    uint32_t *ranks = calloc(table->n, sizeof *ranks);
    bz_adapter *a = calloc(1, sizeof *a);
    bz_adapter_set *set = NULL;
    bz_error err = {0};
    if (!ranks || !a) {
        exit(1);
    }
    atomic_init(&a->references, 1);
    a->model = m;
    for (uint32_t i = 0; i < table->n; i++) {
        const bool mixed = m->text.config.canvas && i + 1 == m->text.weights.token_embd.id;
        ranks[i] = table->info[i].ne[1] > 1 && !mixed ? 16 : 0;
    }
    must_record(bz_adapter_make_tensors(a, ranks, &err), &err);
    must_record(bz_adapter_set_new(&set, NULL, m, &(bz_adapter_use){a, 1}, 1, &err), &err);
    list_text(&set->text, set->bytes, name);
    bz_adapter_set_free(set);
    bz_adapter_free(a);
    free(ranks);
}

/* Drafting, and passes that verify drafts. */
static void list_drafter(const bz_model *m, const char *name)
{
    enum { MAX_DRAFTS = 7 };
    bz_plan *p = NULL;
    bz_error err = {0};
    for (uint32_t n = 1; n <= MAX_DRAFTS; n++) {
        must_record(bz_assistant_record(&m->text, n, &p, &err), &err);
        lower(p, &m->text.weights.table, m->weight_bytes, name);
        must_record(bz_text_record(&m->text, n + 1, n + 1, &p, &err), &err);
        lower(p, &m->text.weights.table, m->weight_bytes, name);
    }
}

static void list_embedding(const bz_model *m, const char *name)
{
    static const uint32_t sizes[] = {8, 64, 512};
    bz_plan *p = NULL;
    bz_error err = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        must_record(bz_embedding_record(&m->text, sizes[i], BZ_EMBED_TEXTS, &p, &err), &err);
        lower(p, &m->text.weights.table, m->weight_bytes, name);
    }
}

static void list_towers(const bz_model *m, const char *name)
{
    bz_plan *p = NULL;
    bz_error err = {0};
    if (bz_model_takes(m, BZ_MEDIA_IMAGE)) {
        must_record(bz_vision_record(&m->towers, 576, 64, &p, &err), &err);
        lower(p, &m->towers.table, NULL, name);
    }
    if (bz_model_takes(m, BZ_MEDIA_AUDIO)) {
        must_record(bz_audio_record(&m->towers, 64, &p, &err), &err);
        lower(p, &m->towers.table, NULL, name);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bz_open_options o = {.size = sizeof o};
        char *beside = strchr(argv[i], ','); /* its header says which of the two it is */
        bz_model *m = NULL;
        bz_error err = {0};
        if (beside) {
            *beside++ = 0;
        }
        if (bz_model_open_file(&m, argv[i], beside, &o, &err) != BZ_OK) {
            fail(argv[i], &err);
        }
        if (bz_model_embedding(m)) {
            list_embedding(m, argv[i]);
        } else {
            list_text(&m->text, m->weight_bytes, argv[i]);
            list_adapted(m, argv[i]);
        }
        if (m->text.assistant) {
            list_drafter(m, argv[i]);
        }
        list_towers(m, argv[i]);
        bz_model_free(m);
    }
    print();
    free(all);
    return 0;
}
