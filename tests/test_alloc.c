/* Generating tokens allocates nothing. The linker redirects malloc, calloc, realloc and
 * aligned_alloc to the functions below. */
#include <stdatomic.h>
#include <stdlib.h>

#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

static atomic_int calls;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

void *__wrap_malloc(size_t n)
{
    calls++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    calls++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    calls++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
    calls++;
    return __real_aligned_alloc(alignment, n);
}

static void test_model(const char *file, bool exact)
{
    begin("%s %s: no allocation from the second token on", file, exact ? "exact" : "8 bit");
    bz_model *m = open_or_fail(model_path(file));
    bz_session *s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .exact = exact, .threads = 2});
    const int32_t ids[] = {2, 500, 501, 502};
    bz_error err = {0};
    bz_job *job = NULL;
    bz_need need;
    CHECK(prefill(s, ids, 4, 0, NULL, &err) == BZ_OK);
    CHECK(bz_session_generate(s,
                              &(bz_generate_options){.size = sizeof(bz_generate_options),
                                                     .max_tokens = 100,
                                                     .ignore_end = true},
                              &job, &err) == BZ_OK);
    int tokens = 0, at_second = 0;
    bz_progress p;
    while ((p = bz_job_step(job, &need)) != BZ_JOB_DONE && p != BZ_JOB_ERROR) {
        if (p == BZ_JOB_EVENT && need.event.kind == BZ_EVENT_TOKEN && ++tokens == 2) {
            at_second = calls;
        }
    }
    CHECK(p == BZ_JOB_DONE && tokens == 100);
    CHECKF(calls == at_second, "%d allocations", calls - at_second);
    CHECK(at_second > 0); /* the counting itself works */
    bz_job_free(job);
    bz_session_free(s);
    bz_model_free(m);
}

int main(void)
{
    test_model("nano-e-q4_0.gguf", false);
    test_model("nano-e-q4_0.gguf", true);
    test_model("tiny-moe-q4_k_m.gguf", false);
    test_model("tiny-dense-q3_k.gguf", false);
    return finish();
}
