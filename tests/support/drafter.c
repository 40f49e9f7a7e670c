#include "drafter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "forward.h"
#include "golden.h"
#include "session/session.h"

enum { DRAFTS = 4 };

typedef struct watch {
    const golden *g;
    double bound;
    uint32_t step, seen;
} watch;

static void compare(watch *w, const char *name, const float *got, uint32_t cols)
{
    size_t n = 0;
    const float *want = golden_f32(w->g, &n, "%s", name);
    CHECKF(want && n == cols, "%s: %zu and %u values", name, n, cols);
    if (want && n == cols) {
        const double d = max_difference(got, want, cols);
        CHECKF(d <= w->bound, "%s: off by %g", name, d);
        w->seen++;
    }
}

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    char name[64];
    (void)output;
    (void)rows;
    (void)stride;
    if (strcmp(step->name, "hidden") == 0) {
        snprintf(name, sizeof name, "step.%u.hidden.%d", w->step, step->layer);
    } else if (strcmp(step->name, "draft_head") == 0) {
        snprintf(name, sizeof name, "step.%u.logits", w->step);
    } else if (strcmp(step->name, "draft_post") == 0) {
        snprintf(name, sizeof name, "step.%u.state", w->step);
    } else {
        w->step += strcmp(step->name, "draft_embed") == 0 && step->in[0].id;
        return;
    }
    compare(w, name, values, cols);
}

bz_status run_draft(bz_session *s, uint32_t count, bz_error *err)
{
    bz_status status = bz_session_start_draft(s, count, err);
    for (bz_pass_state state = BZ_PASS_AGAIN; status == BZ_OK && state != BZ_PASS_DONE;) {
        state = bz_session_draft_step(s, err);
        status = state == BZ_PASS_ERROR ? err->code : status;
    }
    return status;
}

void check_assistant(const char *device, const bz_session_options *o, double bound)
{
    golden g;
    size_t n = 0, one = 0;
    bz_error err = {0};
    golden_open(&g, golden_path("assistant/golden.gguf"));
    char drafter[300];
    snprintf(drafter, sizeof drafter, "%s", golden_path("assistant/assistant.gguf"));
    bz_model *m = open_with_drafter_or_fail(golden_path("dense-like/text.gguf"), drafter, device);
    bz_session *s = session_or_fail(m, o);
    const int32_t *tokens = golden_i32(&g, &n, "tokens");
    const int32_t *start = golden_i32(&g, &one, "start_token");
    CHECKF(prefill(s, tokens, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_can_draft(s));
    s->tokens[s->n] = *start;
    watch w = {.g = &g, .bound = bound};
    s->backend->set_trace(s->backend, on_trace, &w);
    CHECKF(run_draft(s, DRAFTS, &err) == BZ_OK, "%s", err.text);
    s->backend->set_trace(s->backend, NULL, NULL);
    CHECKF(w.seen == DRAFTS * 4 + DRAFTS - 1, "%u tensors compared", w.seen);
    for (uint32_t traced = 0; traced < 2; traced++) { /* then without the trace, fused */
        for (uint32_t i = 0; i < DRAFTS; i++) {
            const int32_t *want = golden_i32(&g, &one, "step.%u.token", i);
            CHECKF(s->tokens[s->n + 1 + i] == *want, "draft %u is %d instead of %d", i,
                   s->tokens[s->n + 1 + i], *want);
            s->tokens[s->n + 1 + i] = -1;
        }
        CHECKF(traced || run_draft(s, DRAFTS, &err) == BZ_OK, "%s", err.text);
    }
    CHECK(s->n == n);
    bz_session_free(s);
    bz_model_free(m);
    golden_close(&g);
}
