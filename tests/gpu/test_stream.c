/* Models larger than the memory they may have: where layers that take turns lie, that they give to
 * the bit what resident ones give, from a mapping or by reads, with several sessions, and after
 * memory ran out.
 *
 *   sh tools/gpu-env.sh build/tests/gpu/test_stream
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/test_hooks.h"
#include "session/session.h"
#include "support/canvas.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/gpu_wait.h"
#include "support/reads.h"

enum { CANVAS = 16, VOCAB = 768, MADE = 32 };

static golden g;
static const int32_t *prompt;
static size_t n_prompt;
static uint64_t all_bytes; /* of the weights, resident */

/* ---- places --------------------------------------------------------------------------- */

static void check_places(const bz_weights *table, const gpu_limits *limits, uint32_t streamed)
{
    gpu_weights w;
    bz_error err = {0};
    if (!CHECKF(gpu_weights_place_streamed(&w, limits, table, BZ_NO_WEIGHT, streamed, &err) ==
                    BZ_OK,
                "%s", err.text)) {
        return;
    }
    const uint32_t pieces = w.map.first_piece[table->n];
    uint32_t *layer = calloc(pieces, sizeof *layer), seen = 0;
    for (uint32_t i = 0; i < table->n; i++) {
        for (uint32_t p = w.map.first_piece[i]; p < w.map.first_piece[i + 1]; p++) {
            layer[p] = w.streamed[i];
        }
        CHECK(!w.streamed[i] || (table->info[i].layer && table->info[i].size >= 4096));
        seen |= w.streamed[i] ? 1u << w.streamed[i] : 0;
    }
    CHECKF(seen == ((2u << streamed) - 2), "layers %x of %u", seen, streamed);
    for (uint32_t a = 0; a < pieces; a++) {
        const gpu_binding x = w.map.pieces[a].at;
        CHECK(x.buffer < w.n_buffers && x.offset + x.size <= w.sizes[x.buffer] &&
              w.sizes[x.buffer] <= limits->max_buffer);
        for (uint32_t b = 0; b < a;
             b++) { /* only layers that never are there together share memory */
            const gpu_binding y = w.map.pieces[b].at;
            const bool apart = x.buffer != y.buffer || x.offset >= y.offset + y.size ||
                               y.offset >= x.offset + x.size;
            CHECKF(apart || (layer[a] && layer[b] && layer[a] != layer[b] &&
                             (layer[a] - layer[b]) % GPU_SLOTS == 0),
                   "pieces %u and %u, of layers %u and %u", a, b, layer[a], layer[b]);
        }
    }
    free(layer);
    gpu_weights_free(&w, NULL);
}

static void test_places(const bz_model *m)
{
    const bz_weights *table = &m->text.weights.table;
    const gpu_limits large = {.max_buffer = 1u << 30, .max_binding = 1u << 30};
    const gpu_limits small = {.max_buffer = 100000, .max_binding = 30000};
    bz_error err = {0};
    uint64_t last = UINT64_MAX;
    for (uint32_t k = 0; k <= 4; k++) {
        check_places(table, &large, k);
        check_places(table, &small, k);
        gpu_weights w;
        CHECK(gpu_weights_place_streamed(&w, &large, table, BZ_NO_WEIGHT, k, &err) == BZ_OK);
        uint32_t least;
        CHECK(gpu_weights_fit(&large, table, BZ_NO_WEIGHT, w.bytes, &least, &err) == BZ_OK);
        CHECKF(least <= k, "%u layers were needed, %u are enough", least, k);
        CHECKF(k < 3 || w.bytes < last, "%u layers streamed save nothing",
               k); /* two slots hold two layers */
        last = w.bytes;
        gpu_weights_free(&w, NULL);
    }
}

/* ---- models ------------------------------------------------------------------------------ */

typedef enum source { MAPPED, READ, STRAIGHT } source;

typedef struct opened {
    bz_os_map map;
    bz_model *m;
    source how;
    uint32_t reads;
} opened;

/* One step of a job, serving what it needs; false at its end. */
static bool step(opened *o, bz_job *job, int32_t *made, uint32_t *n)
{
    bz_need need = {0};
    const bz_progress p = bz_job_step(job, &need);
    gpu *d = o->m ? bz_model_device(o->m) : bz_open_device(job);
    if (d && o->how == STRAIGHT) {
        gpu_test_direct_reads(d, true);
    }
    if (p == BZ_JOB_NEED_BYTES) {
        o->reads += o->m != NULL;
        for (uint32_t i = 0; i < need.n_reads; i++) {
            CHECK(!d || o->how != STRAIGHT || !o->m || !need.reads[i].to);
        }
        do_reads(o->map.data, d, &need);
    } else if (p == BZ_JOB_NEED_GPU) {
        bz_os_sleep(GPU_POLL_NS);
    } else if (p == BZ_JOB_EVENT && made && need.event.kind == BZ_EVENT_TOKEN && *n < MADE) {
        made[(*n)++] = need.event.token;
    }
    CHECKF(p != BZ_JOB_ERROR, "%s", need.error.text);
    return p != BZ_JOB_DONE && p != BZ_JOB_ERROR;
}

static bool open_model(opened *o, source how, uint64_t memory)
{
    const char *path = golden_path("diffusion/text.gguf");
    const bz_open_options options = {.size = sizeof options, .device = "gpu", .gpu_memory = memory};
    bz_error err = {0};
    bz_job *job = NULL;
    *o = (opened){.how = how};
    CHECKF(bz_os_map_file(path, &o->map, &err) == BZ_OK, "%s", err.text);
    const bz_input input = {path, o->map.size, how == MAPPED ? o->map.data : NULL};
    if (!CHECKF(bz_model_open(&job, &input, 1, &options, &err) == BZ_OK, "%s", err.text)) {
        return false;
    }
    while (step(o, job, NULL, NULL)) {
    }
    o->m = bz_job_model(job);
    bz_job_free(job);
    return CHECK(o->m != NULL);
}

static void close_model(opened *o)
{
    bz_model_free(o->m);
    bz_os_unmap(&o->map);
}

static void run(opened *o, bz_job *job, int32_t *made, uint32_t *n)
{
    while (step(o, job, made, n)) {
    }
    bz_job_free(job);
}

static bz_session *begin_session(opened *o)
{
    bz_session *s = session_or_fail(
        o->m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 8});
    bz_job *job = NULL;
    bz_error err = {0};
    CHECKF(bz_session_prefill(s, prompt, n_prompt, NULL, &job, &err) == BZ_OK, "%s", err.text);
    run(o, job, NULL, NULL);
    return s;
}

static bz_job *begin_answer(bz_session *s, uint64_t seed)
{
    bz_job *job = NULL;
    bz_error err = {0};
    const bz_generate_options go = {
        .size = sizeof go, .max_tokens = MADE, .ignore_end = true, .sampling = {.seed = seed}};
    CHECKF(bz_session_generate(s, &go, &job, &err) == BZ_OK, "%s", err.text);
    return job;
}

static void answer(opened *o, uint64_t seed, int32_t made[MADE])
{
    uint32_t n = 0;
    bz_session *s = begin_session(o);
    run(o, begin_answer(s, seed), made, &n);
    CHECKF(n == MADE, "%u tokens", n);
    bz_session_free(s);
}

enum { SEED = 1, OTHER_SEED = 6 };
static int32_t want[MADE], want_other[MADE]; /* answers of the whole model, of the two seeds */

/* The same bits in 8-bit and in float arithmetic, fused and not. */
static void test_same(source how, uint64_t memory)
{
    int32_t got[MADE] = {0};
    opened o;
    if (!open_model(&o, how, memory)) {
        return;
    }
    const bz_streaming s = bz_model_streaming(o.m);
    CHECKF(s.resident < s.layers && s.bytes > 0 && s.gpu_bytes <= memory,
           "%u of %u layers stay, %d bytes", s.resident, s.layers, (int)s.gpu_bytes);
    CHECK(gpu_counts_of(bz_model_device(o.m)).buffer_bytes <= memory + 4096);
    answer(&o, SEED, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    CHECKF((o.reads > 0) == (how != MAPPED), "%u times bytes were asked for", o.reads);
    if (how == MAPPED) {
        const bz_session_options exact = {.size = sizeof exact, .exact = true};
        check_canvas_logits(&g, o.m, &exact, 1e-3);
        check_generation(&g, o.m, &exact, "gen");
    }
    close_model(&o);
}

/* Steps of two answers by turns: the slots belong to one pass at a time. One of them is given up in
 * the middle. */
static void test_sessions(void)
{
    int32_t got[3][MADE] = {{0}};
    uint32_t n[3] = {0};
    opened o;
    if (!open_model(&o, READ, all_bytes * 3 / 4)) {
        return;
    }
    bz_session *s[3];
    bz_job *jobs[3];
    bool more[3] = {true, true, true};
    for (int i = 0; i < 3; i++) {
        s[i] = begin_session(&o);
        jobs[i] = begin_answer(s[i], i % 2 ? OTHER_SEED : SEED);
    }
    for (uint32_t k = 0; more[0] || more[1]; k++) {
        for (int i = 0; i < 3; i++) {
            more[i] = more[i] && step(&o, jobs[i], got[i], &n[i]);
        }
        if (k == 40) {
            bz_job_free(jobs[2]);
            more[2] = false;
        }
    }
    CHECK(memcmp(want, got[0], sizeof want) == 0);
    CHECK(memcmp(want_other, got[1], sizeof want_other) == 0);
    bz_job_free(jobs[0]);
    bz_job_free(jobs[1]);
    for (int i = 0; i < 3; i++) {
        bz_session_free(s[i]);
    }
    close_model(&o);
}

/* The device is lost between segments: generation continues, streamed again. */
static void test_lost(void)
{
    int32_t got[MADE] = {0};
    uint32_t n = 0;
    opened o;
    if (!open_model(&o, MAPPED, all_bytes * 3 / 4)) {
        return;
    }
    bz_session *s = begin_session(&o);
    bz_job *job = begin_answer(s, SEED);
    for (uint32_t k = 0; step(&o, job, got, &n); k++) {
        if (k == 60 && bz_model_device(o.m)) {
            gpu_test_lose(bz_model_device(o.m));
        }
    }
    bz_job_free(job);
    CHECK(n == MADE && memcmp(want, got, sizeof want) == 0);
    CHECK(bz_model_streaming(o.m).resident < 4);
    bz_session_free(s);
    close_model(&o);
}

/* The memory limit is unknown: the device refuses a buffer, and layers are streamed. */
static void test_found_out(void)
{
    int32_t got[MADE] = {0};
    const char *path = golden_path("diffusion/text.gguf");
    opened o = {0};
    bz_error err = {0};
    bz_job *job = NULL;
    CHECK(bz_os_map_file(path, &o.map, &err) == BZ_OK);
    const bz_input input = {path, o.map.size, o.map.data};
    CHECK(bz_model_open(&job, &input, 1,
                        &(bz_open_options){.size = sizeof(bz_open_options), .device = "gpu"},
                        &err) == BZ_OK);
    bool set = false, more = true;
    while (more) {
        more = step(&o, job, NULL, NULL);
        gpu *d = bz_open_device(job);
        if (d && !set && gpu_state_of(d, NULL) == GPU_READY) { /* before anything is placed */
            gpu_limits limits = *gpu_limits_of(d);
            limits.max_buffer = 200000;
            limits.max_binding = 200000;
            gpu_test_limits(d, &limits);
            CHECK(gpu_test_limit_memory(d, all_bytes * 4 / 5));
            set = true;
        }
    }
    o.m = bz_job_model(job);
    bz_job_free(job);
    if (CHECK(o.m && set)) {
        const bz_streaming s = bz_model_streaming(o.m);
        CHECKF(s.resident < s.layers, "all %u layers are there", s.layers);
        gpu_test_limit_memory(bz_model_device(o.m), UINT64_MAX);
        gpu_limits limits =
            *gpu_limits_of(bz_model_device(o.m)); /* what passes compute in is more than that */
        limits.max_buffer = limits.max_binding = 128u << 20;
        gpu_test_limits(bz_model_device(o.m), &limits);
        answer(&o, SEED, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        bz_model_free(o.m);
    }
    bz_os_unmap(&o.map);
}

int main(void)
{
    devices_keep();
    golden_open(&g, golden_path("diffusion/golden.gguf"));
    prompt = golden_i32(&g, &n_prompt, "prompt");
    opened whole;
    begin("all of a model");
    if (open_model(&whole, MAPPED, 0)) {
        const bz_streaming s = bz_model_streaming(whole.m);
        CHECK(s.resident == s.layers && s.layers == 4 && s.bytes == 0);
        all_bytes = s.gpu_bytes;
        answer(&whole, SEED, want);
        answer(&whole, OTHER_SEED, want_other);
        CHECK(memcmp(want, want_other, sizeof want) != 0);
        begin("slots of streamed layers");
        test_places(whole.m);
        begin("streamed from a mapping");
        test_same(MAPPED, all_bytes * 3 / 4);
        begin("streamed by reads");
        test_same(READ, all_bytes * 3 / 4);
        begin("streamed by reads straight into buffers");
        test_same(STRAIGHT, all_bytes * 4 / 5);
        begin("several sessions");
        test_sessions();
        begin("a lost device");
        test_lost();
        begin("running out of memory");
        test_found_out();
        begin("less than the minimum");
        bz_model *m = NULL;
        bz_error err = {0};
        CHECK(bz_model_open_file(&m, golden_path("diffusion/text.gguf"), NULL,
                                 &(bz_open_options){.size = sizeof(bz_open_options),
                                                    .device = "gpu",
                                                    .gpu_memory = 1000},
                                 &err) == BZ_OUT_OF_MEMORY);
        CHECKF(strstr(err.text, "even with every layer streamed"), "%s", err.text);
        close_model(&whole);
    }
    golden_close(&g);
    return finish();
}
