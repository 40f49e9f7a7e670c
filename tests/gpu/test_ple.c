/* A table that stays in the file: the same numbers, to the bit, as with the table on the GPU,
 * however rows come and go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "gpu/device/test_hooks.h"
#include "session/model.h"
#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/gpu_wait.h"
#include "support/reads.h"

typedef enum way { FROM_MEMORY, BY_READS, STRAIGHT } way;
static const char *const way_names[] = {"from memory", "by reads", "straight into buffers"};

/* ---- rows of every type, coming and going
 * ------------------------------------------------------------ */

enum { IDS = 700, SLOTS = 24, PASSES = 60 };

typedef struct shape {
    bz_type type;
    uint64_t values;
} shape;

static const shape shapes[] = {
    {BZ_F32, 3},     {BZ_F16, 5},     {BZ_BF16, 257},   {BZ_Q8_0, 32},
    {BZ_Q4_0, 96},   {BZ_Q4_1, 64},   {BZ_Q5_0, 32},    {BZ_Q5_1, 160},
    {BZ_Q2_K, 512},  {BZ_Q3_K, 256},  {BZ_Q4_K, 1024},  {BZ_Q5_K, 256},
    {BZ_Q6_K, 2304}, {BZ_IQ4_NL, 32}, {BZ_IQ4_XS, 256}, {BZ_MXFP4, 32},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static bool load(bz_gpu_model *m, const uint8_t *file)
{
    bz_need need = {0};
    for (;;) {
        switch (bz_gpu_model_load(m, &need)) {
        case BZ_JOB_DONE: return true;
        case BZ_JOB_ERROR: return CHECKF(false, "%s", need.error.text);
        case BZ_JOB_NEED_BYTES: do_reads(file, m->g, &need); break;
        case BZ_JOB_NEED_GPU: bz_os_sleep(GPU_POLL_NS); break;
        default: break;
        }
    }
}

static bool read_back(gpu *g, gpu_buffer b, uint64_t at, uint64_t n, uint8_t *to)
{
    gpu_fence f = gpu_read(g, b, at, n, NULL);
    while (f && !gpu_read_done(g, f, to)) {
        if (gpu_state_of(g, NULL) != GPU_READY) {
            return false;
        }
        bz_os_sleep(GPU_POLL_NS);
    }
    return f != 0;
}

static uint32_t draw(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % n;
}

/* Least recently used, in the plainest way. */
typedef struct model_cache {
    int32_t id[SLOTS];
    uint64_t used[SLOTS], clock, hits, misses;
} model_cache;

static void expect_pass(model_cache *c, const int32_t *ids, uint32_t n)
{
    bool was_there[SLOTS] = {false};
    for (uint32_t round = 0; round < 2;
         round++) { /* those there are used before others are fetched */
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at = 0, oldest = 0;
            while (at < SLOTS && c->id[at] != ids[i]) {
                oldest = c->used[at] < c->used[oldest] ? at : oldest;
                at++;
            }
            if (round == 0 && at < SLOTS) {
                c->used[at] = ++c->clock;
                c->hits++;
                was_there[i] = true;
            } else if (round == 1 && at == SLOTS) {
                c->id[oldest] = ids[i];
                c->used[oldest] = ++c->clock;
                c->misses++;
            } else if (round == 1 && !was_there[i]) {
                c->hits++; /* the second of two equal ids */
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) { /* in the end all are used in their order */
        for (uint32_t at = 0; at < SLOTS; at++) {
            c->used[at] = c->id[at] == ids[i] ? ++c->clock : c->used[at];
        }
    }
}

static void test_type(const shape *s, way how)
{
    const bz_type_info *type = bz_type_of((uint32_t)s->type);
    begin("%s, rows of %u values %s", type->name, (unsigned)s->values, way_names[how]);
    bz_weight_info info = {
        .name = "rows", .type = s->type, .ne = {s->values, IDS, 1}, .offset = 13};
    info.size = bz_row_bytes(s->type, s->values) * IDS;
    const bz_weights table = {.info = &info, .n = 1};
    uint8_t *file = malloc(info.size + 13);
    uint64_t state = s->type;
    for (uint64_t i = 0; i < info.size + 13; i++) {
        file[i] = (uint8_t)draw(&state, 256);
    }
    const uint8_t *const bytes[] = {how == FROM_MEMORY ? file + 13 : NULL};
    bz_gpu_model *whole = NULL, *rows = NULL;
    bz_error err = {0};
    CHECKF(bz_gpu_model_new(&whole, &(gpu_options){0}, &table, bytes, &err) == BZ_OK &&
               load(whole, file),
           "%s", err.text);
    CHECKF(bz_gpu_model_new(&rows, &(gpu_options){0}, &table, bytes, &err) == BZ_OK, "%s",
           err.text);
    bz_gpu_model_table(rows, (bz_weight){1}, BZ_TABLE_IN_FILE);
    gpu_test_direct_reads(rows->g, how == STRAIGHT);
    CHECK(load(rows, NULL)); /* not one byte is read */
    gpu_table_limit(rows->table, SLOTS);

    const uint64_t row = gpu_row_bytes(s->type, s->values);
    const gpu_table_shape kept = gpu_table_shape_of(rows->table);
    const gpu_binding all = whole->weights.map.pieces[0].at;
    uint8_t *want = malloc(row * IDS + 8), *got = malloc(kept.row_bytes * SLOTS);
    CHECK(read_back(whole->g, all.buffer, all.offset, row * IDS, want));
    model_cache model = {0};
    memset(model.id, 0xff, sizeof model.id);
    gpu_table_use use = {0};
    for (int p = 0; p < PASSES; p++) {
        int32_t ids[SLOTS];
        uint32_t slots[SLOTS], n = 1 + draw(&state, SLOTS), reads = 0;
        for (uint32_t i = 0; i < n; i++) {
            ids[i] = (int32_t)draw(&state, draw(&state, 3) ? 30 : IDS);
        }
        bz_need need = {0};
        bz_pass_state st;
        while ((st = gpu_table_fetch(rows->table, &state, ids, n, slots, &use, &need.error)) ==
               BZ_PASS_BYTES) {
            need.n_reads = gpu_table_reads(rows->table, need.reads);
            reads += need.n_reads;
            do_reads(file, rows->g, &need);
        }
        CHECKF(st == BZ_PASS_DONE, "%s", need.error.text);
        const uint64_t misses = model.misses;
        expect_pass(&model, ids, n);
        CHECK(reads == (how == FROM_MEMORY ? 0 : model.misses - misses));
        CHECK(use.hits == model.hits && use.misses == model.misses);
        CHECK(read_back(rows->g, kept.at.buffer, 0, (uint64_t)kept.row_bytes * SLOTS, got));
        for (uint32_t i = 0; i < n; i++) {
            bool same = slots[i] < SLOTS && memcmp(got + slots[i] * kept.row_bytes,
                                                   want + (uint32_t)ids[i] * row, row) == 0;
            if (!CHECKF(same, "pass %d: row %d in slot %u is another", p, ids[i], slots[i])) {
                p = PASSES;
                break;
            }
        }
    }
    CHECK(model.misses > SLOTS && model.hits > 0);
    bz_gpu_model_drop(whole);
    bz_gpu_model_drop(rows);
    free(want);
    free(got);
    free(file);
}

static void test_taking_turns(void)
{
    begin("one session fetches at a time; others continue if their rows are resident");
    bz_weight_info info = {.name = "rows", .type = BZ_F32, .ne = {4, IDS, 1}, .size = IDS * 16};
    const bz_weights table = {.info = &info, .n = 1};
    const uint8_t *const bytes[] = {NULL};
    uint8_t *file = calloc(1, info.size);
    bz_gpu_model *m = NULL;
    bz_need need = {0};
    CHECK(bz_gpu_model_new(&m, &(gpu_options){0}, &table, bytes, &need.error) == BZ_OK);
    bz_gpu_model_table(m, (bz_weight){1}, BZ_TABLE_IN_FILE);
    CHECK(load(m, NULL));
    gpu_table_use use = {0};
    uint32_t slots[4];
    const int32_t first[] = {1, 2}, second[] = {2, 3}, late[] = {1};
    int a, b;
    CHECK(gpu_table_fetch(m->table, &a, first, 2, slots, &use, NULL) == BZ_PASS_BYTES);
    CHECK(gpu_table_fetch(m->table, &b, late, 1, slots, &use, NULL) == BZ_PASS_WAIT);
    need.n_reads = gpu_table_reads(m->table, need.reads);
    CHECK(need.n_reads == 2 && need.reads[0].offset == 16 && need.reads[1].offset == 32 &&
          need.reads[1].length == 16);
    do_reads(file, m->g, &need);
    CHECK(gpu_table_fetch(m->table, &a, first, 2, slots, &use, NULL) == BZ_PASS_DONE);
    CHECK(gpu_table_fetch(m->table, &a, second, 2, slots, &use, NULL) == BZ_PASS_BYTES);
    CHECK(gpu_table_fetch(m->table, &b, first, 2, slots, &use, NULL) == BZ_PASS_DONE);
    CHECK(gpu_table_fetch(m->table, &b, second, 2, slots, &use, NULL) == BZ_PASS_WAIT);
    gpu_table_give_up(m->table, &b); /* is not fetching */
    CHECK(gpu_table_fetch(m->table, &b, second, 2, slots, &use, NULL) == BZ_PASS_WAIT);
    gpu_table_give_up(m->table, &a);
    CHECK(gpu_table_fetch(m->table, &b, second, 2, slots, &use, NULL) ==
          BZ_PASS_BYTES); /* given up: not there */
    CHECK(gpu_table_reads(m->table, need.reads) == 1 && need.reads[0].offset == 48);
    bz_gpu_model_drop(m);
    free(file);
}

/* ---- whole models
 * ------------------------------------------------------------------------------------ */

typedef struct opened {
    bz_os_map map;
    bz_model *m;
    bool in_table;  /* a read while opening touched the table */
    uint64_t reads; /* of jobs, since */
    way how;
} opened;

static bool touches(const bz_model *m, const bz_read *r)
{
    const bz_weight_info *t =
        bz_weight_of(&m->text.weights.table, m->text.weights.per_layer_token_embd);
    return r->offset < t->offset + t->size && r->offset + r->length > t->offset;
}

static bool open_model(opened *o, const char *file, way how, const char *ple, uint64_t memory)
{
    bz_error err = {0};
    bz_job *job = NULL;
    *o = (opened){.how = how};
    if (!CHECKF(bz_os_map_file(model_path(file), &o->map, &err) == BZ_OK, "%s", err.text)) {
        return false;
    }
    const bz_input input = {file, o->map.size, how == FROM_MEMORY ? o->map.data : NULL};
    const bz_open_options options = {.size = sizeof options, .device = "gpu", .ple = ple};
    CHECKF(bz_model_open(&job, &input, 1, &options, &err) == BZ_OK, "%s", err.text);
    bz_progress p;
    bz_read seen[4096];
    uint32_t n_seen = 0;
    do {
        bz_need need = {0};
        p = bz_job_step(job, &need);
        gpu *g = bz_open_device(job);
        if (g) {
            gpu_test_direct_reads(g, how == STRAIGHT);
            if (memory) { /* for the first try; nothing else is short */
                gpu_test_limit_memory(g, gpu_counts_of(g).buffer_bytes ? UINT64_MAX : memory);
            }
        }
        if (p == BZ_JOB_NEED_BYTES) {
            for (uint32_t i = 0; i < need.n_reads && n_seen < 4096; i++) {
                seen[n_seen++] = need.reads[i];
            }
            do_reads(o->map.data, g, &need);
        } else if (p == BZ_JOB_NEED_GPU) {
            bz_os_sleep(GPU_POLL_NS);
        }
        CHECKF(p != BZ_JOB_ERROR, "%s", need.error.text);
    } while (p != BZ_JOB_DONE && p != BZ_JOB_ERROR);
    o->m = bz_job_model(job);
    bz_job_free(job);
    for (uint32_t i = 0; o->m && i < n_seen;
         i++) { /* the header is read in larger and larger pieces */
        o->in_table |= seen[i].offset >= o->m->files[0].header_bytes && touches(o->m, &seen[i]);
    }
    return o->m != NULL;
}

static void close_model(opened *o)
{
    bz_model_free(o->m);
    bz_os_unmap(&o->map);
}

/* A step of a job; true while there is more to do. */
static bool step(opened *o, bz_job *job, int32_t *made, uint32_t *n)
{
    bz_need need = {0};
    switch (bz_job_step(job, &need)) {
    case BZ_JOB_NEED_BYTES:
        for (uint32_t i = 0; i < need.n_reads; i++) {
            CHECK((need.reads[i].to == NULL) == (o->how == STRAIGHT));
        }
        gpu_test_direct_reads(bz_model_device(o->m), o->how == STRAIGHT);
        do_reads(o->map.data, bz_model_device(o->m), &need);
        o->reads += need.n_reads;
        return true;
    case BZ_JOB_NEED_GPU: bz_os_sleep(GPU_POLL_NS); return true;
    case BZ_JOB_EVENT:
        gpu_test_direct_reads(bz_model_device(o->m), o->how == STRAIGHT);
        if (need.event.kind == BZ_EVENT_TOKEN) {
            made[(*n)++] = need.event.token;
        }
        return true;
    case BZ_JOB_AGAIN:
        gpu_test_direct_reads(bz_model_device(o->m), o->how == STRAIGHT);
        return true;
    case BZ_JOB_DONE: return false;
    case BZ_JOB_ERROR: CHECKF(false, "%s", need.error.text); return false;
    }
    return false;
}

enum { MOST = 160, MADE = 10 }; /* MOST: a pass of up to 512 rows */
static int32_t prompt[MOST];

static bz_job *start_prefill(bz_session *s, uint32_t n)
{
    bz_job *job = NULL;
    bz_error err = {0};
    CHECKF(bz_session_prefill(s, prompt, n, NULL, &job, &err) == BZ_OK, "%s", err.text);
    return job;
}

static bz_job *start_generate(bz_session *s)
{
    bz_job *job = NULL;
    bz_error err = {0};
    const bz_generate_options o = {
        .size = sizeof o, .max_tokens = MADE, .ignore_end = true, .sampling = {.greedy = true}};
    CHECKF(bz_session_generate(s, &o, &job, &err) == BZ_OK, "%s", err.text);
    return job;
}

typedef struct answer {
    float *logits;
    size_t bytes;
    int32_t made[MADE];
} answer;

static answer answer_of(opened *o, uint32_t n, uint32_t chunk, bool greedy_too)
{
    answer a = {.bytes = bz_model_vocab(o->m) * sizeof(float)};
    uint32_t made = 0;
    bz_session *s = session_or_fail(
        o->m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = chunk});
    bz_job *job = start_prefill(s, n);
    while (step(o, job, a.made, &made)) {
    }
    bz_job_free(job);
    a.logits = malloc(a.bytes);
    memcpy(a.logits, bz_session_logits(s), a.bytes);
    if (greedy_too) {
        job = start_generate(s);
        while (step(o, job, a.made, &made)) {
        }
        bz_job_free(job);
        CHECK(made == MADE);
    }
    const bz_session_stats stats = bz_session_get_stats(s);
    const uint64_t rows = o->m->gpu->loaded->table ? n + made : 0;
    CHECKF(stats.ple_hits + stats.ple_misses == rows, "%u rows, %llu hits and %llu misses",
           (unsigned)rows, (unsigned long long)stats.ple_hits,
           (unsigned long long)stats.ple_misses);
    CHECK(o->how == FROM_MEMORY || !o->m->gpu->loaded->table || o->reads >= stats.ple_misses);
    bz_session_free(s);
    return a;
}

static void test_model(const char *file, uint32_t n, uint32_t chunk, uint32_t kept)
{
    begin("%s, %u tokens in chunks of %u, resident", file, n, chunk);
    opened o;
    if (!open_model(&o, file, FROM_MEMORY, "resident", 0)) {
        return;
    }
    CHECK(!o.m->gpu->loaded->table);
    bz_fit fit = {.size = sizeof fit};
    CHECK(bz_model_fit(o.m, NULL, &fit, NULL) == BZ_OK && !fit.ple_in_file);
    CHECKF(fit.weights == o.m->gpu->loaded->weights.bytes, "%llu bytes predicted, %llu are there",
           (unsigned long long)fit.weights, (unsigned long long)o.m->gpu->loaded->weights.bytes);
    answer want = answer_of(&o, n, chunk, n < MOST);
    close_model(&o);
    for (int how = FROM_MEMORY; how <= STRAIGHT; how++) {
        if (quick_run() && n == MOST && how != BY_READS) {
            continue; /* the shorter prompts come in every way */
        }
        begin("%s, %u tokens in chunks of %u, %u rows kept, %s", file, n, chunk, kept,
              way_names[how]);
        if (!open_model(&o, file, (way)how, "file", 0)) {
            continue;
        }
        CHECK(o.m->gpu->loaded->table && !o.in_table);
        const gpu_table_shape rows = gpu_table_shape_of(o.m->gpu->loaded->table);
        CHECK(bz_model_fit(o.m, &(bz_fit_options){.size = sizeof(bz_fit_options), .ple = "file"},
                           &fit, NULL) == BZ_OK &&
              fit.ple_in_file);
        CHECK(fit.weights ==
              o.m->gpu->loaded->weights.bytes + (uint64_t)rows.rows * rows.row_bytes + 4);
        if (kept) {
            gpu_table_limit(o.m->gpu->loaded->table, kept);
        }
        answer got = answer_of(&o, n, chunk, n < MOST);
        CHECK((o.reads > 0) == (how != FROM_MEMORY));
        CHECK(memcmp(want.logits, got.logits, want.bytes) == 0);
        CHECK(n == MOST || memcmp(want.made, got.made, sizeof want.made) == 0);
        free(got.logits);
        close_model(&o);
    }
    free(want.logits);
}

static void test_sessions(const char *file)
{
    begin("two sessions share few rows; a third is cancelled while its rows are read");
    opened o;
    if (!open_model(&o, file, BY_READS, "file", 0)) {
        return;
    }
    answer want = answer_of(&o, 40, 8, true);
    gpu_table_limit(o.m->gpu->loaded->table, 8);
    bz_session *third =
        session_or_fail(o.m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 8});
    bz_job *given_up = start_prefill(third, 40);
    bz_need need = {0};
    bz_progress p;
    while ((p = bz_job_step(given_up, &need)) != BZ_JOB_NEED_BYTES && p != BZ_JOB_ERROR &&
           p != BZ_JOB_DONE) {
    }
    CHECK(p == BZ_JOB_NEED_BYTES);
    bz_session *s[2];
    bz_job *job[2];
    int32_t made[2][MADE];
    uint32_t n[2] = {0};
    for (int i = 0; i < 2; i++) {
        s[i] = session_or_fail(
            o.m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 8});
        job[i] = start_prefill(s[i], 40);
    }
    for (int i = 0; i < 50; i++) {
        CHECK(step(&o, job[i % 2], made[i % 2], &n[i % 2])); /* they wait for the third */
    }
    CHECK(bz_session_get_stats(s[0]).position == 0);
    bz_job_free(given_up);
    for (int part = 0; part < 2; part++) {
        for (bool more[2] = {true, true}; more[0] || more[1];) {
            for (int i = 0; i < 2; i++) {
                more[i] = more[i] && step(&o, job[i], made[i], &n[i]);
            }
        }
        for (int i = 0; i < 2; i++) {
            bz_job_free(job[i]);
            job[i] = part == 0 ? start_generate(s[i]) : NULL;
        }
    }
    for (int i = 0; i < 2; i++) {
        CHECK(n[i] == MADE && memcmp(made[i], want.made, sizeof want.made) == 0);
        bz_session_free(s[i]);
    }
    bz_session_free(third);
    free(want.logits);
    close_model(&o);
}

static void test_lost(const char *file)
{
    begin("a lost device, with the table in the file");
    opened o;
    if (!open_model(&o, file, STRAIGHT, "file", 0)) {
        return;
    }
    answer want = answer_of(&o, 12, 8, true);
    bz_session *s =
        session_or_fail(o.m, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 8});
    int32_t made[MADE];
    uint32_t n = 0;
    bz_job *job = start_prefill(s, 12);
    while (step(&o, job, made, &n)) {
    }
    bz_job_free(job);
    job = start_generate(s);
    bool lost = false;
    while (step(&o, job, made, &n)) {
        if (n == 4 && !lost) {
            lost = true;
            gpu_test_lose(bz_model_device(o.m));
        }
    }
    bz_job_free(job);
    CHECK(lost && n == MADE && memcmp(made, want.made, sizeof made) == 0);
    CHECK(o.m->gpu->loaded->table != NULL);
    bz_session_free(s);
    free(want.logits);
    close_model(&o);
}

static void test_auto(const char *file)
{
    begin("without memory for the table it stays in the file");
    opened o;
    if (!open_model(&o, file, FROM_MEMORY, NULL, 0)) {
        return;
    }
    CHECK(!o.m->gpu->loaded->table);
    const bz_weight_info *t =
        bz_weight_of(&o.m->text.weights.table, o.m->text.weights.per_layer_token_embd);
    const uint64_t all = o.m->gpu->loaded->weights.bytes, size = t->size;
    answer want = answer_of(&o, 12, 16, true);
    close_model(&o);
    if (open_model(&o, file, FROM_MEMORY, "auto", all - 1)) {
        CHECK(o.m->gpu->loaded->table != NULL && o.m->gpu->loaded->weights.bytes < all - size / 2);
        answer got = answer_of(&o, 12, 16, true);
        CHECK(memcmp(want.logits, got.logits, want.bytes) == 0 &&
              memcmp(want.made, got.made, sizeof got.made) == 0);
        free(got.logits);
        close_model(&o);
    }
    free(want.logits);

    begin("names of placements");
    bz_model *m = NULL;
    bz_error err = {0};
    CHECK(bz_model_open_file(
              &m, model_path(file), NULL,
              &(bz_open_options){.size = sizeof(bz_open_options), .device = "gpu", .ple = "shelf"},
              &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text, "Per-layer embeddings can be auto, resident or file, not 'shelf'.") ==
               0,
           "%s", err.text);
}

int main(void)
{
    devices_keep();
    for (int i = 0; i < N_SHAPES; i++) {
        for (int how = FROM_MEMORY; how <= STRAIGHT; how++) {
            if (!quick_run() || how == i % 3) {
                test_type(&shapes[i], (way)how);
            }
        }
    }
    test_taking_turns();
    for (int i = 0; i < MOST; i++) {
        prompt[i] = i ? 10 + i * 37 % 480 : 2;
    }
    test_model("nano-e-q8_0.gguf", 40, 8, 8);
    test_model("tiny-e-q6_k.gguf", 60, 16, 17);
    test_model("nano-e-bf16.gguf", MOST, 512, 0);
    if (!quick_run()) {
        test_model("tiny-e-q4_k_m-ollama.gguf", 60, 16, 20);
    }
    test_sessions("nano-e-q8_0.gguf");
    test_lost("tiny-e-q6_k.gguf");
    test_auto("nano-e-bf16.gguf");
    return finish();
}
