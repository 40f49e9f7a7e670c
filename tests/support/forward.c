#include "forward.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bz_model *open_or_fail(const char *path)
{
    return open_on_or_fail(path, NULL);
}

bz_model *open_on_or_fail(const char *path, const char *device)
{
    return open_with_drafter_or_fail(path, NULL, device);
}

bz_model *open_with_drafter_or_fail(const char *path, const char *drafter, const char *device)
{
    const bz_open_options o = {.size = sizeof o, .device = device, .draft = drafter};
    bz_model *m = NULL;
    bz_error err = {0};
    if (bz_model_open_file(&m, path, NULL, &o, &err) != BZ_OK) {
        printf("FAIL opening %s: %s\n", path, err.text);
        exit(1);
    }
    return m;
}

bz_session *session_or_fail(const bz_model *m, const bz_session_options *o)
{
    bz_session *s = NULL;
    bz_error err = {0};
    if (bz_session_new(&s, m, o, &err) != BZ_OK) {
        printf("FAIL making a session: %s\n", err.text);
        exit(1);
    }
    return s;
}

typedef struct rows {
    float *out;
    size_t vocab;
} rows;

static int on_logits(void *user, const bz_event *e)
{
    rows *r = user;
    if (e->kind == BZ_EVENT_LOGITS) {
        memcpy(r->out + e->position * r->vocab, e->logits, e->rows * r->vocab * sizeof *r->out);
    }
    return 0;
}

extern uint32_t session_vocab(const bz_session *s);

/* Runs a job that was created with `status` to its end. */
static bz_status fill(bz_session *s, bz_job *job, bz_status status, float *out, bz_error *err)
{
    rows r = {out, session_vocab(s)};
    if (status == BZ_OK) {
        status = bz_job_run(
            job, &(bz_host){.size = sizeof(bz_host), .event = on_logits, .user = &r}, err);
        bz_job_free(job);
    }
    return status;
}

bz_status prefill(bz_session *s, const int32_t *ids, size_t n, uint32_t snapshot_at, float *out,
                  bz_error *err)
{
    const bz_prefill_options o = {.size = sizeof o,
                                  .snapshot_at = snapshot_at,
                                  .logits = out ? BZ_LOGITS_ALL : BZ_LOGITS_LAST};
    bz_job *job = NULL;
    bz_status status = bz_session_prefill(s, ids, n, &o, &job, err);
    return fill(s, job, status, out, err);
}

bz_status prefill_with(bz_session *s, const int32_t *ids, size_t n, bz_media **media,
                       size_t n_media, float *out, bz_error *err)
{
    const bz_prefill_options o = {.size = sizeof o, .logits = out ? BZ_LOGITS_ALL : BZ_LOGITS_LAST};
    bz_job *job = NULL;
    bz_status status = bz_session_prefill_media(s, ids, n, media, n_media, &o, &job, err);
    return fill(s, job, status, out, err);
}

typedef struct taken {
    int32_t *ids;
    size_t n;
} taken;

static int on_token(void *user, const bz_event *e)
{
    taken *t = user;
    if (e->kind == BZ_EVENT_TOKEN) {
        t->ids[t->n++] = e->token;
    }
    return 0;
}

size_t generate(bz_session *s, int32_t *ids, size_t n)
{
    const bz_generate_options o = {
        .size = sizeof o, .max_tokens = (uint32_t)n, .ignore_end = true, .sampling.greedy = true};
    taken t = {ids, 0};
    bz_job *job = NULL;
    if (bz_session_generate(s, &o, &job, NULL) == BZ_OK) {
        bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_token, .user = &t}, NULL);
        bz_job_free(job);
    }
    return t.n;
}

double max_difference(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        if (!(d <= most)) {
            most = isnan(d) ? INFINITY : d;
        }
    }
    return most;
}
