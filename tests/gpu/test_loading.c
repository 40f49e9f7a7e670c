/* Loading a model onto the GPU: the same bytes arrive by every way of loading, in short steps, with
 * few of them in flight; sessions share what is loaded; a cancelled load leaks nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "gpu/device/test_hooks.h"
#include "session/job.h"
#include "session/model.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/gpu_wait.h"

typedef enum way { FROM_MEMORY, BY_READS, STRAIGHT } way;
static const char *const way_names[] = {"from memory", "by reads", "straight into buffers"};

/* ---- a host ------------------------------------------------------------------------------ */

typedef struct disk {
    const uint8_t *const *files;
    gpu *g;
    uint64_t to_memory, to_buffers, largest, most_at_once;
    uint32_t steps, events;
    uint64_t done, total;
    bool backwards; /* progress decreased */
} disk;

/* Does reads as a page would: those without a memory destination go into their buffer. */
static void do_reads(disk *d, const bz_need *need)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < need->n_reads; i++) {
        const bz_read *r = &need->reads[i];
        const uint8_t *from = d->files[r->file] + r->offset;
        sum += r->length;
        d->largest = r->length > d->largest ? r->length : d->largest;
        if (r->to) {
            memcpy(r->to, from, r->length);
            d->to_memory += r->length;
            continue;
        }
        uint8_t word[4] = {0};
        uint64_t whole = r->length / 4 * 4;
        gpu_write(d->g, r->buffer, r->buffer_offset, from, whole);
        if (whole < r->length) {
            memcpy(word, from + whole, r->length - whole);
            gpu_write(d->g, r->buffer, r->buffer_offset + whole, word, 4);
        }
        d->to_buffers += r->length;
    }
    d->most_at_once = sum > d->most_at_once ? sum : d->most_at_once;
}

static void note(disk *d, const bz_need *need)
{
    d->events++;
    d->backwards |= need->event.done < d->done || need->event.done > need->event.total;
    d->done = need->event.done;
    d->total = need->event.total;
}

/* ---- tensors of every kind, against their own bytes
 * ---------------------------------------------- */

typedef struct shape {
    bz_type type;
    uint64_t ne[3];
} shape;

static const shape shapes[] = {
    {BZ_F32, {7, 1, 1}},        {BZ_Q8_0, {32, 3, 1}},      {BZ_Q6_K, {256, 1, 1}},
    {BZ_Q6_K, {512, 4101, 3}},  {BZ_Q4_K, {2560, 9000, 1}}, {BZ_BF16, {3, 5, 1}},
    {BZ_Q6_K, {2304, 5000, 1}}, {BZ_MXFP4, {64, 77, 1}},    {BZ_Q5_0, {32, 200001, 1}},
    {BZ_Q6_K, {15360, 333, 1}}, {BZ_F16, {1, 1, 1}},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static bool read_back(gpu *g, gpu_binding at, uint64_t n, uint8_t *to)
{
    gpu_fence f = gpu_read(g, at.buffer, at.offset, n, NULL);
    while (f && !gpu_read_done(g, f, to)) {
        if (gpu_state_of(g, NULL) != GPU_READY) {
            return false;
        }
        bz_os_sleep(GPU_POLL_NS);
    }
    return f != 0;
}

/* What must lie in a piece, from what the file holds. */
static uint64_t expected(const bz_weight_info *t, const uint8_t *raw, uint64_t rows, uint8_t *out)
{
    const uint64_t blocks = rows * t->ne[0] / bz_type_of((uint32_t)t->type)->block_values;
    const uint64_t from = bz_type_of((uint32_t)t->type)->block_bytes,
                   to = t->type == BZ_Q6_K ? 224 : from;
    for (uint64_t i = 0; i < blocks; i++) {
        memcpy(out + i * to, raw + i * from, from);
        memset(out + i * to + from, 0, to - from);
    }
    return blocks * to;
}

static void check_tensor(const bz_gpu_model *m, uint32_t i, const uint8_t *raw)
{
    const bz_weight_info *t = &m->weights.map.table->info[i];
    const uint64_t row = bz_row_bytes(t->type, t->ne[0]);
    for (uint32_t p = m->weights.map.first_piece[i]; p < m->weights.map.first_piece[i + 1]; p++) {
        const gpu_piece *piece = &m->weights.map.pieces[p];
        uint8_t *want = malloc(2 * piece->rows * row + 64),
                *got = malloc(2 * piece->rows * row + 64);
        uint64_t n = expected(t, raw + piece->first_row * row, piece->rows, want);
        for (uint64_t at = 0; at < n; at += GPU_MAX_READ) {
            uint64_t some = n - at < GPU_MAX_READ ? n - at : GPU_MAX_READ;
            CHECK(read_back(m->g, (gpu_binding){piece->at.buffer, piece->at.offset + at, 0}, some,
                            got + at));
        }
        uint64_t bad = 0;
        while (bad < n && want[bad] == got[bad]) {
            bad++;
        }
        CHECKF(bad == n, "%s, piece from row %u: byte %llu of %llu differs", t->name,
               piece->first_row, (unsigned long long)bad, (unsigned long long)n);
        free(want);
        free(got);
    }
}

static void test_bytes(const bz_weights *table, uint8_t *const *raw, const uint8_t *file, way how,
                       bool baseline)
{
    begin("%u tensors %s%s have the expected offsets and contents", table->n, way_names[how],
          baseline ? ", baseline" : "");
    const uint8_t **bytes = calloc(table->n, sizeof *bytes);
    for (uint32_t i = 0; how == FROM_MEMORY && i < table->n; i++) {
        bytes[i] = raw[i];
    }
    bz_gpu_model *m = NULL;
    bz_need need = {0};
    bz_status status =
        bz_gpu_model_new(&m, &(gpu_options){.baseline = baseline}, table, bytes, &need.error);
    if (!CHECKF(status == BZ_OK, "%s", need.error.text)) {
        free(bytes);
        return;
    }
    gpu_test_direct_reads(m->g, how == STRAIGHT);
    disk d = {.files = (const uint8_t *const[]){file}, .g = m->g};
    uint64_t size = 0;
    bz_progress p;
    while ((p = bz_gpu_model_load(m, &need)) != BZ_JOB_DONE && p != BZ_JOB_ERROR) {
        d.steps++;
        if (p == BZ_JOB_NEED_BYTES) {
            do_reads(&d, &need);
        } else if (p == BZ_JOB_NEED_GPU) {
            bz_os_sleep(GPU_POLL_NS);
        } else if (p == BZ_JOB_EVENT) {
            note(&d, &need);
        }
    }
    CHECKF(p == BZ_JOB_DONE && m->ready, "%s", need.error.text);
    for (uint32_t i = 0; p == BZ_JOB_DONE && i < table->n; i++) {
        size += table->info[i].size;
        check_tensor(m, i, raw[i]);
    }
    CHECK(d.events > 1 && !d.backwards && d.done == size && d.total == size);
    CHECK(d.largest <= 4 << 20 && d.most_at_once <= 32 << 20);
    CHECK(d.to_memory == (how == BY_READS ? size : 0) &&
          d.to_buffers == (how == STRAIGHT ? size : 0));
    CHECKF(gpu_counts_of(m->g).buffer_bytes == m->weights.bytes, "staging was left on the device");
    bz_gpu_model_drop(m);
    free(bytes);
}

static void make_table(bz_weights *table, const shape *s, uint32_t n, uint8_t **raw, uint8_t **file)
{
    uint64_t size = 13; /* data may begin anywhere */
    table->info = calloc(n, sizeof *table->info);
    table->n = n;
    for (uint32_t i = 0; i < n; i++) {
        bz_weight_info *t = &table->info[i];
        *t = (bz_weight_info){.name = bz_type_of((uint32_t)s[i].type)->name, .type = s[i].type};
        memcpy(t->ne, s[i].ne, sizeof t->ne);
        t->offset = size;
        t->size = bz_row_bytes(t->type, t->ne[0]) * t->ne[1] * t->ne[2];
        size += t->size + 1;
    }
    *file = malloc(size);
    uint64_t state = 1;
    for (uint64_t i = 0; i < size; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        (*file)[i] = (uint8_t)(state >> 56);
    }
    for (uint32_t i = 0; i < n; i++) {
        raw[i] = *file + table->info[i].offset;
    }
}

static void test_tensors(void)
{
    bz_weights table;
    uint8_t *raw[N_SHAPES], *file;
    make_table(&table, shapes, N_SHAPES, raw, &file);
    for (int how = FROM_MEMORY; how <= STRAIGHT; how++) {
        test_bytes(&table, raw, file, (way)how, false);
    }
    free(file);
    free(table.info);
    if (!quick_run()) { /* more than one binding holds there: two pieces, and the first ends between
                           slices */
        const shape large = {BZ_Q6_K, {2560, 65001, 1}};
        make_table(&table, &large, 1, raw, &file);
        test_bytes(&table, raw, file, STRAIGHT, true);
        free(file);
        free(table.info);
    }
}

/* ---- whole models -------------------------------------------------------------------------------
 */

typedef struct opening {
    bz_os_map map;
    bz_job *job;
    disk d;
    const uint8_t *files[1];
} opening;

static void start_opening(opening *o, const char *file, way how)
{
    bz_error err = {0};
    *o = (opening){0};
    if (bz_os_map_file(model_path(file), &o->map, &err) != BZ_OK) {
        printf("FAIL %s\n", err.text);
        exit(1);
    }
    const bz_input input = {file, o->map.size, how == FROM_MEMORY ? o->map.data : NULL};
    CHECKF(bz_model_open(&o->job, &input, 1,
                         &(bz_open_options){.size = sizeof(bz_open_options), .device = "gpu"},
                         &err) == BZ_OK,
           "%s", err.text);
    o->files[0] = o->map.data;
    o->d.files = o->files;
}

static bz_progress step_opening(opening *o, way how, bz_need *need)
{
    bz_progress p = bz_job_step(o->job, need);
    o->d.steps++;
    o->d.g = bz_open_device(o->job);
    if (o->d.g) {
        gpu_test_direct_reads(o->d.g, how == STRAIGHT);
    }
    if (p == BZ_JOB_NEED_BYTES) {
        do_reads(&o->d, need);
    } else if (p == BZ_JOB_NEED_GPU) {
        bz_os_sleep(GPU_POLL_NS);
    } else if (p == BZ_JOB_EVENT) {
        note(&o->d, need);
    }
    return p;
}

static const int32_t ids[] = {2, 500, 501, 502, 503, 2, 600, 610, 620};

/* The GPU's results have the same bits for every way to load the weights. */
static void test_ways(const char *file)
{
    float *want = NULL;
    for (int how = FROM_MEMORY; how <= STRAIGHT; how++) {
        begin("%s %s", file, way_names[how]);
        opening o;
        bz_need need = {0};
        bz_error err = {0};
        start_opening(&o, file, (way)how);
        bz_progress p;
        do {
            p = step_opening(&o, (way)how, &need);
        } while (p != BZ_JOB_DONE && p != BZ_JOB_ERROR);
        CHECKF(p == BZ_JOB_DONE, "%s", need.error.text);
        bz_model *m = bz_job_model(o.job);
        bz_job_free(o.job);
        CHECK(o.d.events > 0 && !o.d.backwards && o.d.done == o.d.total && o.d.largest <= 4 << 20);
        if (how == STRAIGHT) { /* the heap has seen the header and the small vectors only */
            CHECKF(o.d.to_buffers > 6 * o.d.to_memory, "%llu bytes to memory, %llu to buffers",
                   (unsigned long long)o.d.to_memory, (unsigned long long)o.d.to_buffers);
        }
        if (how != FROM_MEMORY) {
            bz_os_unmap(&o.map); /* it is no longer needed */
        }
        bz_session *s = session_or_fail(
            m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true});
        CHECKF(prefill(s, ids, 9, 0, NULL, &err) == BZ_OK, "%s", err.text);
        size_t bytes = bz_model_vocab(m) * sizeof *want;
        if (!want) {
            want = malloc(bytes);
            memcpy(want, bz_session_logits(s), bytes);
        }
        CHECK(memcmp(want, bz_session_logits(s), bytes) == 0);
        bz_session_free(s);
        bz_model_free(m);
        bz_os_unmap(&o.map);
    }
    free(want);
}

static void test_sharing(void)
{
    begin("two sessions share one device, its kernels and its weights");
    bz_model *m = open_on_or_fail(model_path("tiny-e-q4_k_m.gguf"), "gpu");
    gpu *g = bz_model_device(m);
    const uint64_t weights = gpu_counts_of(g).buffer_bytes;
    bz_error err = {0};
    bz_session *a = session_or_fail(m, NULL);
    CHECK(prefill(a, ids, 9, 0, NULL, &err) == BZ_OK);
    const uint64_t one = gpu_counts_of(g).buffer_bytes - weights;
    bz_session *b = session_or_fail(m, NULL);
    CHECK(prefill(b, ids, 9, 0, NULL, &err) == BZ_OK);
    const uint64_t two = gpu_counts_of(g).buffer_bytes - weights;
    CHECKF(two == 2 * one, "%llu bytes for one, %llu for two", (unsigned long long)one,
           (unsigned long long)two);
    CHECK(memcmp(bz_session_logits(a), bz_session_logits(b), bz_model_vocab(m) * sizeof(float)) ==
          0);
    CHECK(bz_model_device(m) == g);
    bz_session_free(a);
    CHECK(prefill(b, ids, 8, 0, NULL, &err) == BZ_OK);
    bz_session_free(b);
    CHECKF(gpu_counts_of(g).buffer_bytes == weights, "%llu bytes were leaked",
           (unsigned long long)(gpu_counts_of(g).buffer_bytes - weights));
    bz_model_free(m);
}

typedef struct talker {
    const bz_model *model;
    int32_t made[12];
    size_t n;
    bz_status status;
} talker;

static void talk(void *user)
{
    talker *t = user;
    bz_session *s = NULL;
    t->status = bz_session_new(
        &s, t->model, &(bz_session_options){.size = sizeof(bz_session_options), .chunk = 4}, NULL);
    if (t->status == BZ_OK) {
        t->status = prefill(s, ids, 9, 0, NULL, NULL);
        t->n = generate(s, t->made, 12);
    }
    bz_session_free(s);
}

static void test_threads(void)
{
    begin("sessions of one model in three threads");
    bz_model *m = open_on_or_fail(model_path("tiny-e-q4_k_m.gguf"), "gpu");
    talker alone = {.model = m}, t[3];
    talk(&alone);
    CHECK(alone.status == BZ_OK && alone.n == 12);
    bz_os_thread *threads[3];
    for (int i = 0; i < 3; i++) {
        t[i] = (talker){.model = m};
        threads[i] = bz_os_thread_start(talk, &t[i]);
    }
    for (int i = 0; i < 3; i++) {
        bz_os_thread_join(threads[i]);
        CHECK(t[i].status == BZ_OK && t[i].n == 12 &&
              memcmp(t[i].made, alone.made, sizeof alone.made) == 0);
    }
    bz_model_free(m);
}

/* Cancelling at any step leaks nothing (the sanitizers check). */
static void test_giving_up(void)
{
    begin("opening can be cancelled after any step");
    opening o;
    bz_need need = {0};
    for (uint32_t last = 1, more = 1; more; last += quick_run() ? 7 : 3) {
        start_opening(&o, "tiny-e-q6_k.gguf", STRAIGHT);
        for (uint32_t i = 0; i < last && more; i++) {
            bz_progress p = step_opening(&o, STRAIGHT, &need);
            more = p != BZ_JOB_DONE;
            if (!CHECKF(p != BZ_JOB_ERROR, "%s", need.error.text)) {
                more = 0;
            }
        }
        bz_job_free(o.job);
        bz_os_unmap(&o.map);
    }
}

static void test_refusals(void)
{
    begin("unknown devices");
    bz_model *m = NULL;
    bz_error err = {0};
    CHECK(
        bz_model_open_file(&m, model_path("nano-e-q8_0.gguf"), NULL,
                           &(bz_open_options){.size = sizeof(bz_open_options), .device = "abacus"},
                           &err) == BZ_BAD_REQUEST);
    CHECKF(strcmp(err.text, "Unknown device 'abacus'; use cpu or gpu.") == 0, "%s", err.text);
    CHECK(m == NULL);
}

int main(void)
{
    devices_keep();
    test_tensors();
    test_ways("tiny-e-q4_k_m.gguf");
    test_ways("tiny-moe-q6_k.gguf");
    test_ways("nano-e-q8_0.gguf");
    test_sharing();
    test_threads();
    test_giving_up();
    test_refusals();
    return finish();
}
