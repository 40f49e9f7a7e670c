/* Sessions on the GPU that are forked, saved and loaded: a fork copies caches and snapshots on the
 * device and computes nothing again; all of them continue as the session would have. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/session.h"
#include "support/check.h"
#include "support/devices.h"
#include "support/forward.h"
#include "support/golden.h"

enum { PROMPT = 90, KEEP = 80, FIRST = 12, ANSWER = 20, NEXT = 30, CONTEXT = 256 };

static int32_t prompt[CONTEXT];

static bz_session *new_session(const bz_model *m, const char *kv)
{
    const bz_session_options o = {
        .size = sizeof o, .context = CONTEXT, .chunk = 16, .threads = 1, .kv = kv};
    return session_or_fail(m, &o);
}

/* How many tokens were computed. */
static uint64_t go(bz_session *s, const int32_t *ids, size_t n, uint32_t snapshot)
{
    bz_error err = {0};
    const uint64_t before = bz_session_get_stats(s).prefilled;
    CHECKF(prefill(s, ids, n, snapshot, NULL, &err) == BZ_OK, "%s", err.text);
    return bz_session_get_stats(s).prefilled - before;
}

/* An answer, then another prompt that goes back to the snapshot. */
static void go_on(bz_session *s, int32_t ids[2 * ANSWER], uint64_t *computed)
{
    int32_t next[KEEP + NEXT];
    memcpy(next, prompt, KEEP * sizeof *next);
    memcpy(next + KEEP, prompt + 2 * PROMPT, NEXT * sizeof *next);
    CHECK(generate(s, ids, ANSWER) == ANSWER);
    *computed = go(s, next, KEEP + NEXT, 0);
    CHECK(generate(s, ids + ANSWER, ANSWER) == ANSWER);
}

static bz_session *talked(const bz_model *m, const char *kv)
{
    int32_t made[FIRST];
    bz_session *s = new_session(m, kv);
    go(s, prompt, PROMPT, KEEP);
    CHECK(generate(s, made, FIRST) == FIRST);
    return s;
}

static void test_fork(const bz_model *m, const char *kv)
{
    int32_t mine[2 * ANSWER], its[2 * ANSWER];
    uint64_t n = 0;
    bz_error err = {0};
    bz_session *f = NULL;
    begin("a fork with keys and values in %s has all that was computed", kv ? kv : "f16");
    bz_session *s = talked(m, kv);
    CHECKF(bz_session_fork(&f, s, &err) == BZ_OK, "%s", err.text);
    CHECK(!f->recomputing && f->n == s->n);
    go_on(s, mine, &n);
    CHECK(n == NEXT);
    bz_session_free(s);
    go_on(f, its, &n);
    CHECKF(n == NEXT, "%llu tokens are computed", (unsigned long long)n);
    CHECK(memcmp(mine, its, sizeof mine) == 0);
    bz_session_free(f);
}

static void test_saved(const bz_model *device, const bz_model *cpu)
{
    char path[] = "/tmp/bezel-saved-gpu-XXXXXX";
    int32_t mine[ANSWER], its[ANSWER];
    bz_error err = {0};
    begin("a saved session continues after its last token");
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    bz_session *s = talked(device, NULL), *t = new_session(device, NULL),
               *u = new_session(cpu, NULL);
    CHECKF(bz_session_save(s, path, &err) == BZ_OK, "%s", err.text);
    CHECK(generate(s, mine, ANSWER) == ANSWER);
    CHECKF(bz_session_load(t, path, &err) == BZ_OK, "%s", err.text);
    CHECK(generate(t, its, ANSWER) == ANSWER);
    CHECK(memcmp(mine, its, sizeof mine) == 0);
    CHECKF(bz_session_load(u, path, &err) == BZ_OK, "%s", err.text);
    CHECK(generate(u, its, ANSWER) == ANSWER);
    bz_session_free(s);
    bz_session_free(t);
    bz_session_free(u);
    unlink(path);
}

int main(void)
{
    devices_keep();
    devices_count_as(DEVICES_AS_THEY_ARE);
    bz_model *device = open_on_or_fail(model_path("nano-e-q8_0.gguf"), "gpu");
    bz_model *cpu = open_or_fail(model_path("nano-e-q8_0.gguf"));
    for (int i = 0; i < CONTEXT; i++) {
        prompt[i] = i ? 494 + i * 37 % 139 : 2;
    }
    test_fork(device, NULL);
    test_fork(device, "q4");
    test_saved(device, cpu);
    bz_model_free(device);
    bz_model_free(cpu);
    return finish();
}
