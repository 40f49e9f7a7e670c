/* Will it fit on a GPU? From the header alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "session/model.h"
#include "support/check.h"
#include "support/golden.h"

static uint64_t bytes_read, furthest;

static bz_model *open_header(const char *file)
{
    bz_os_map map;
    bz_error err = {0};
    bz_job *job = NULL;
    if (bz_os_map_file(model_path(file), &map, &err) != BZ_OK) {
        printf("FAIL %s\n", err.text);
        exit(1);
    }
    const bz_input input = {file, map.size, NULL};
    CHECKF(bz_model_open(&job, &input, 1,
                         &(bz_open_options){.size = sizeof(bz_open_options), .headers_only = true},
                         &err) == BZ_OK,
           "%s", err.text);
    bytes_read = furthest = 0;
    for (;;) {
        bz_need need = {0};
        bz_progress p = bz_job_step(job, &need);
        for (uint32_t i = 0; p == BZ_JOB_NEED_BYTES && i < need.n_reads; i++) {
            const bz_read *r = &need.reads[i];
            memcpy(r->to, (const uint8_t *)map.data + r->offset, r->length);
            bytes_read += r->length;
            furthest = r->offset + r->length > furthest ? r->offset + r->length : furthest;
        }
        if (p == BZ_JOB_DONE || p == BZ_JOB_ERROR) {
            CHECKF(p == BZ_JOB_DONE, "%s", need.error.text);
            break;
        }
    }
    bz_model *m = bz_job_model(job);
    bz_job_free(job);
    bz_os_unmap(&map);
    return m;
}

static uint64_t total_of(const bz_fit *f)
{
    return f->weights + f->towers + f->caches + f->work;
}

static void test_header(void)
{
    begin("a header suffices to inspect a model, not to run it");
    bz_model *m = open_header("tiny-e-q4_k_m.gguf");
    uint64_t weights = 0;
    for (uint32_t i = 0; i < m->text.weights.table.n; i++) {
        weights += m->text.weights.table.info[i].size;
    }
    CHECKF(furthest < weights / 2 && bytes_read == furthest, "%llu bytes read",
           (unsigned long long)bytes_read);
    bz_session *s = NULL;
    bz_error err = {0};
    CHECK(bz_session_new(&s, m, NULL, &err) == BZ_BAD_REQUEST && !s);
    CHECKF(strstr(err.text, "header alone") != NULL, "%s", err.text);
    int32_t ids[8];
    CHECK(bz_tokenize(m, "hello", 5, false, true, ids, 8, &err) > 1);
    bz_fit f = {.size = sizeof f};
    CHECKF(bz_model_fit(m, NULL, &f, &err) == BZ_OK, "%s", err.text);
    CHECK(f.weights >= weights && f.weights < weights + weights / 10);
    CHECK(f.caches > 0 && f.work > 0 && f.max_context == bz_model_context(m) && !f.ple_in_file);
    bz_model_free(m);
}

static void test_memory(void)
{
    begin("known memory decides");
    bz_model *m = open_header("nano-long.gguf");
    bz_error err = {0};
    bz_fit f = {.size = sizeof f}, small = {.size = sizeof small};
    CHECK(bz_model_context(m) >= 4096);
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .context = 4096}, &f,
                       &err) == BZ_OK);
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .context = 1024},
                       &small, &err) == BZ_OK);
    CHECK(small.caches < f.caches && small.weights == f.weights && small.work == f.work);
    const uint64_t need = total_of(&f);
    CHECK(bz_model_fit(m,
                       &(bz_fit_options){.size = sizeof(bz_fit_options),
                                         .context = 4096,
                                         .memory = need,
                                         .ple = "resident"},
                       &f, &err) == BZ_OK);
    CHECK(f.max_context == 4096);

    bz_fit_options o = {
        .size = sizeof o, .context = 4096, .memory = total_of(&small), .ple = "resident"};
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OUT_OF_MEMORY && f.max_context == 1024);
    CHECKF(strncmp(err.text, "This model needs 0.0", 20) == 0 &&
               strstr(err.text, "a context of 4096") &&
               strstr(err.text, "Use a context of at most 1024"),
           "%s", err.text);
    o.context = f.max_context;
    CHECKF(bz_model_fit(m, &o, &f, &err) == BZ_OK, "%s", err.text);
    o.context++;
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OUT_OF_MEMORY);

    o.memory = 1000;
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OUT_OF_MEMORY && f.max_context == 0);
    CHECKF(strstr(err.text, "smaller quantization, or run on the CPU") != NULL, "%s", err.text);
    bz_model_free(m);
}

static void test_streamed(void)
{
    begin("layers of a diffusion model are streamed where they must");
    bz_model *m = NULL;
    bz_error err = {0};
    bz_fit all = {.size = sizeof all}, f = {.size = sizeof f};
    CHECK(bz_model_open_file(
              &m, golden_path("diffusion/text.gguf"), NULL,
              &(bz_open_options){.size = sizeof(bz_open_options), .headers_only = true},
              &err) == BZ_OK);
    CHECK(bz_model_fit(m, NULL, &all, &err) == BZ_OK);
    bz_fit_options o = {.size = sizeof o, .memory = total_of(&all)};
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OK && f.weights == all.weights);
    o.memory = total_of(&all) - all.weights / 4;
    CHECKF(bz_model_fit(m, &o, &f, &err) == BZ_OK && f.weights <= all.weights * 3 / 4, "%s",
           err.text);
    CHECK(total_of(&f) <= o.memory && f.max_context >= 4096);
    o.memory = total_of(&all) - all.weights + 1000;
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OUT_OF_MEMORY);
    bz_model_free(m);
}

static void test_table(void)
{
    begin("per-layer embeddings stay in the file where they must");
    bz_model *m = open_header("nano-e-bf16.gguf");
    bz_error err = {0};
    bz_fit all = {.size = sizeof all}, f = {.size = sizeof f};
    /* no table has more rows than are kept: what is won is the place between buffers at most */
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .ple = "resident"},
                       &all, &err) == BZ_OK &&
          !all.ple_in_file);
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .ple = "file"}, &f,
                       &err) == BZ_OK &&
          f.ple_in_file);
    CHECK(f.weights == all.weights - all.ple && f.ple == all.ple);
    CHECK(bz_model_fit(
              m, &(bz_fit_options){.size = sizeof(bz_fit_options), .memory = total_of(&all) - 1},
              &f, &err) != BZ_BAD_REQUEST &&
          f.ple_in_file);
    CHECK(bz_model_fit(m,
                       &(bz_fit_options){.size = sizeof(bz_fit_options), .memory = total_of(&all)},
                       &f, &err) == BZ_OK &&
          !f.ple_in_file);
    /* as published: 262,144 rows of 8,960 values, of which 4,096 are kept */
    bz_weight_info *t = &m->text.weights.table.info[m->text.weights.per_layer_token_embd.id - 1];
    t->ne[0] = 8960;
    t->ne[1] = 262144;
    t->size = 8960 * 2ull * 262144;
    CHECK(bz_model_fit(m, NULL, &f, &err) == BZ_OK && !f.ple_in_file);
    CHECKF(f.ple > 4600000000u && f.ple < 4640000000u, "%llu bytes less",
           (unsigned long long)f.ple);
    bz_fit_options o = {.size = sizeof o, .memory = 4000000000u, .ple = "resident"};
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OUT_OF_MEMORY);
    CHECKF(strstr(err.text, "Leave the per-layer embeddings in the file.") != NULL, "%s", err.text);
    o.ple = NULL;
    CHECK(bz_model_fit(m, &o, &f, &err) == BZ_OK && f.ple_in_file);
    bz_model_free(m);
}

static void test_limits(void)
{
    begin("limits of a GPU");
    bz_model *m = open_header("nano-long.gguf");
    bz_error err = {0};
    bz_fit f = {.size = sizeof f};
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .max_binding = 1 << 20},
                       &f, &err) == BZ_BAD_REQUEST);
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .ple = "shelf"}, &f,
                       &err) == BZ_BAD_REQUEST);
    CHECK(bz_model_fit(
              m,
              &(bz_fit_options){.size = sizeof(bz_fit_options), .context = bz_model_context(m) + 1},
              &f, &err) == BZ_BAD_REQUEST);
    bz_weight_info *t = &m->text.weights.table.info[0];
    t->ne[0] = 1ull << 31;
    CHECK(bz_model_fit(m, NULL, &f, &err) == BZ_UNSUPPORTED_MODEL);
    CHECKF(strstr(err.text, "larger than this GPU binds") != NULL, "%s", err.text);
    bz_model_free(m);
}

int main(void)
{
    test_header();
    test_memory();
    test_streamed();
    test_table();
    test_limits();
    return finish();
}
