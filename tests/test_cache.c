/* Types of the KV cache on the CPU: sizes, rounding, the rotation, and numbers that cannot be kept.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bezel.h"
#include "bezel_batch.h"
#include "cpu/internal.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/random.h"

enum { MOST = 1024, GUARD = 0xA5 };

static const bz_cache_type blocks[] = {BZ_CACHE_Q8, BZ_CACHE_Q4};

static void fill(float *x, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = scale * random_float();
    }
}

/* Written and read back, unrotated again. */
static void there_and_back(const bz_kernels *k, bz_cache_type type, const float *x, float *y,
                           size_t n)
{
    uint8_t bytes[4 * MOST + 1];
    const uint32_t size = bz_cache_bytes(type, (uint32_t)n);
    memset(bytes, GUARD, sizeof bytes);
    cpu_cache_write(k, type, x, bytes, n);
    CHECK(bytes[size] == GUARD);
    cpu_cache_read(k, type, bytes, y, n);
    if (type == BZ_CACHE_Q4) {
        cpu_cache_rotate(y, n);
    }
}

static void test_sizes(void)
{
    begin("bytes of a key of 256 numbers, and of one that is no whole block");
    CHECK(bz_cache_bytes(BZ_CACHE_F32, 256) == 1024 && bz_cache_bytes(BZ_CACHE_F16, 256) == 512);
    CHECK(bz_cache_bytes(BZ_CACHE_Q8, 256) == 272 && bz_cache_bytes(BZ_CACHE_Q4, 256) == 144);
    CHECK(bz_cache_bytes(BZ_CACHE_Q8, 40) == 68 && bz_cache_bytes(BZ_CACHE_Q4, 40) == 36);
}

static void test_rotation(void)
{
    static const size_t sizes[] = {1, 2, 10, 16, 24, 32, 72, 256, 1024};
    begin("the rotation keeps lengths and is its own inverse");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float x[MOST] = {0}, y[MOST];
        double before = 0, after = 0, off = 0;
        fill(x, sizes[i], 3);
        memcpy(y, x, sizeof y);
        cpu_cache_rotate(y, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            before += (double)x[j] * (double)x[j];
            after += (double)y[j] * (double)y[j];
        }
        cpu_cache_rotate(y, sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++) {
            off = fmax(off, fabs((double)x[j] - (double)y[j]));
        }
        CHECKF(fabs(before - after) < 1e-5 * before && off < 2e-6, "%zu numbers: %g", sizes[i],
               off);
    }
}

/* An error of at most half a step; a step is the largest number of the block over 127 or over 8, a
 * bit more since the scale is an f16. With Q4 one number at the other end may be a step off, and a
 * rotated block is up to sqrt(32) as large as what was in it. */
static void test_rounding(const bz_kernels *k)
{
    static const size_t sizes[] = {1, 10, 16, 32, 72, 256, 1024};
    for (int t = 0; t < 2; t++) {
        begin("%s: rounding to %s", k->name, bz_cache_type_name(blocks[t]));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            float x[MOST], y[MOST];
            double error = 0, size = 0;
            fill(x, sizes[i], ldexpf(1, (int)random_below(12) - 6));
            there_and_back(k, blocks[t], x, y, sizes[i]);
            for (size_t j = 0; j < sizes[i]; j++) {
                const double d = (double)x[j] - (double)y[j];
                error += d * d;
                size += (double)x[j] * (double)x[j];
            }
            const double relative = sqrt(error / size);
            CHECKF(relative < (t ? 0.13 : 0.008) &&
                       (sizes[i] < 32 || relative > (t ? 0.03 : 0.002)),
                   "%zu numbers: %g", sizes[i], relative);
        }
    }
    begin("%s: zeros, and numbers too small for a scale", k->name);
    for (int t = 0; t < 2; t++) {
        float x[64] = {0}, y[64];
        x[40] = 1e-38f;
        there_and_back(k, blocks[t], x, y, 64);
        for (size_t j = 0; j < 64; j++) {
            CHECK(y[j] == 0);
        }
    }
}

/* A number that cannot be kept spoils its block, and no other. */
static void test_spoiled(const bz_kernels *k)
{
    const float wrong[] = {NAN, INFINITY, -INFINITY, 3e38f, -1e6f};
    begin("%s: a number that is not finite or too large", k->name);
    for (size_t i = 0; i < 2 * sizeof wrong / sizeof *wrong; i++) {
        const bz_cache_type type = blocks[i & 1];
        float x[96], y[96], want[96];
        fill(x, 96, 2);
        there_and_back(k, type, x, want, 96);
        x[32 + random_below(32)] = wrong[i / 2];
        uint8_t bytes[512];
        cpu_cache_write(k, type, x, bytes, 96);
        cpu_cache_read(k, type, bytes, y, 96);
        for (size_t j = 32; j < 64; j++) {
            CHECKF(!isfinite(y[j]), "%s, %g", bz_cache_type_name(type), (double)wrong[i / 2]);
        }
        if (type == BZ_CACHE_Q4) {
            cpu_cache_rotate(y, 32);
            cpu_cache_rotate(y + 64, 32);
        }
        CHECK(memcmp(y, want, 32 * sizeof *y) == 0 &&
              memcmp(y + 64, want + 64, 32 * sizeof *y) == 0);
    }
}

/* Bytes of a session's caches, as predicted for its whole context. */
static void test_memory(void)
{
    static const char *const types[] = {"f16", "q8", "q4"};
    bz_error err = {0};
    bz_model *m = open_or_fail(model_path("tiny-e-q4_0.gguf"));
    uint64_t full[3], fit[3];
    begin("memory of sessions, batches and estimates");
    for (int t = 0; t < 3; t++) {
        bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                                 .context = 256,
                                                                 .kv = types[t],
                                                                 .threads = 1});
        const int32_t ids[] = {2, 600, 601};
        CHECK(prefill(s, ids, 3, 0, NULL, &err) == BZ_OK);
        full[t] = bz_session_get_stats(s).cache_bytes;
        bz_session_free(s);
        bz_fit f = {.size = sizeof f};
        CHECKF(bz_model_fit(m,
                            &(bz_fit_options){
                                .size = sizeof(bz_fit_options), .context = 512, .kv = types[t]},
                            &f, &err) == BZ_OK,
               "%s", err.text);
        fit[t] = f.caches;
    }
    CHECK(full[1] * 32 == full[0] * 17 && full[2] * 32 == full[0] * 9);
    CHECK(fit[1] * 32 == fit[0] * 17 && fit[2] * 32 == fit[0] * 9);

    begin("a type that does not exist is refused");
    bz_session *s = NULL;
    bz_batch *b = NULL;
    bz_fit f = {.size = sizeof f};
    CHECK(bz_session_new(&s, m,
                         &(bz_session_options){.size = sizeof(bz_session_options), .kv = "q5"},
                         &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "f16, q8 or q4, not as 'q5'"));
    CHECK(bz_batch_new(&b, m, &(bz_batch_options){.size = sizeof(bz_batch_options), .kv = "f64"},
                       &err) == BZ_BAD_REQUEST);
    CHECK(bz_model_fit(m, &(bz_fit_options){.size = sizeof(bz_fit_options), .kv = ""}, &f, &err) ==
          BZ_BAD_REQUEST);
    CHECK(!s && !b);
    bz_model_free(m);
}

int main(void)
{
    random_seed_or(20261119);
    test_sizes();
    test_rotation();
    for (size_t i = 0; i < bz_kernels_count(); i++) {
        test_rounding(bz_kernels_at(i));
        test_spoiled(bz_kernels_at(i));
    }
    test_memory();
    return finish();
}
