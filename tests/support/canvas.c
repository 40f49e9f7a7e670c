#include "canvas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "forward.h"
#include "media.h"
#include "session/session.h"

typedef struct sink {
    float *out;
    uint32_t first, vocab;
} sink;

static int on_rows(void *user, const bz_event *e)
{
    sink *x = user;
    if (e->kind == BZ_EVENT_LOGITS) {
        memcpy(x->out + (size_t)(e->position - x->first) * x->vocab, e->logits,
               (size_t)e->rows * x->vocab * sizeof *x->out);
    }
    return 0;
}

extern uint32_t session_vocab(const bz_session *s);

bz_status canvas_logits(bz_session *s, const int32_t *ids, const float *previous, float temperature,
                        float *out, bz_error *err)
{
    bz_job *job = NULL;
    sink x = {out, bz_session_get_stats(s).position, session_vocab(s)};
    bz_status status = bz_session_canvas(s, ids, previous, temperature, &job, err);
    if (status == BZ_OK) {
        status =
            bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_rows, .user = &x}, err);
        bz_job_free(job);
    }
    return status;
}

/* Compares some rows of the canvas ("%s.rows") or all. Returns all logits that the engine computed;
 * the caller frees them. */
static float *check_step(const golden *g, bz_session *s, const char *step, const float *previous,
                         float temperature, double bound)
{
    size_t n, n_logits, n_rows = 0;
    const uint32_t vocab = session_vocab(s);
    const int32_t *ids = golden_i32(g, &n, "%s.canvas", step),
                  *rows = golden_i32(g, &n_rows, "%s.rows", step);
    const float *want = golden_f32(g, &n_logits, "%s.logits", step);
    n_rows = rows ? n_rows : n;
    if (!CHECK(ids && want && n_logits == n_rows * vocab)) {
        return NULL;
    }
    float *got = calloc(n * vocab, sizeof *got);
    bz_error err = {0};
    if (CHECKF(canvas_logits(s, ids, previous, temperature, got, &err) == BZ_OK, "%s: %s", step,
               err.text)) {
        for (size_t i = 0; i < n_rows; i++) {
            const size_t row = rows ? (size_t)rows[i] : i;
            double d = max_difference(got + row * vocab, want + i * vocab, vocab);
            CHECKF(d <= bound, "%s: logits of row %zu off by %g", step, row, d);
        }
    }
    return got;
}

void check_canvas_logits(const golden *g, const bz_model *m, const bz_session_options *o,
                         double bound)
{
    size_t n, n_commit, n_logits, n_canvas;
    const int32_t *prompt = golden_i32(g, &n, "prompt"),
                  *commit = golden_i32(g, &n_commit, "commit.tokens");
    const float *before = golden_f32(g, &n_logits, "step0.logits");
    if (!CHECK(prompt && commit && before && golden_i32(g, &n_canvas, "step0.canvas"))) {
        return;
    }
    bz_session *s = session_or_fail(m, o);
    bz_error err = {0};
    CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    float *first = check_step(g, s, "step0", NULL, 0, bound);
    const bool whole = n_logits == n_canvas * session_vocab(s);
    free(check_step(g, s, "step1", whole ? before : first, 0.8f, bound));
    free(check_step(g, s, "step0", NULL, 0, bound)); /* nothing of the previous steps remains */
    int32_t *all = malloc((n + n_commit) * sizeof *all);
    memcpy(all, prompt, n * sizeof *all);
    memcpy(all + n, commit, n_commit * sizeof *all);
    CHECKF(prefill(s, all, n + n_commit, 0, NULL, &err) == BZ_OK, "%s", err.text);
    bz_session_stats stats = bz_session_get_stats(s);
    CHECKF(stats.prefilled == n + n_commit && stats.reused == n, "%d tokens encoded, %d reused",
           (int)stats.prefilled, (int)stats.reused);
    free(check_step(g, s, "after_commit", NULL, 0, bound));
    free(first);
    free(all);
    bz_session_free(s);
}

void check_canvas_image(const char *device, const bz_session_options *o, double bound)
{
    golden media;
    bz_model *m = NULL;
    bz_error err = {0};
    golden_open(&media, golden_path("diffusion/media.gguf"));
    if (!CHECKF(bz_model_open_file(
                    &m, golden_path("diffusion/text.gguf"), golden_path("diffusion/mmproj.gguf"),
                    &(bz_open_options){.size = sizeof(bz_open_options), .device = device},
                    &err) == BZ_OK,
                "%s", err.text)) {
        return;
    }
    size_t n, n_soft;
    const int32_t *prompt = golden_i32(&media, &n, "mm.tokens");
    const float *soft = golden_f32(&media, &n_soft, "image.2.soft_tokens");
    const uint32_t width = m->text.config.width;
    bz_media *image = bz_media_new(BZ_MEDIA_IMAGE, (uint32_t)(n_soft / width), width);
    if (!CHECK(prompt && soft && image)) {
        return;
    }
    memcpy(image->values, soft, n_soft * sizeof *soft);
    image->content = bz_content_of(soft, n_soft * sizeof *soft, 0);
    bz_session *s = session_or_fail(m, o);
    bz_job *job = NULL;
    bz_media *list[] = {image};
    CHECKF(bz_session_prefill_media(s, prompt, n, list, 1, NULL, &job, &err) == BZ_OK &&
               bz_job_run(job, NULL, &err) == BZ_OK,
           "%s", err.text);
    bz_job_free(job);
    free(check_step(&media, s, "mm.step0", NULL, 0, bound));
    bz_session_free(s);
    bz_media_free(image);
    bz_model_free(m);
    golden_close(&media);
}

/* ---- generations --------------------------------------------------------------------- */

typedef struct replay {
    const golden *g;
    const char *name;
    const bz_job *job;
    uint32_t canvases, passes; /* drawn for, so far */
    uint32_t seen, n_said;
    int32_t said[256];
    const bz_session *s;
    size_t prompt;
} replay;

static bool from_golden(void *user, uint32_t n, float *units, int32_t *ids)
{
    replay *r = user;
    size_t have, also;
    if (!units) {
        const int32_t *init = golden_i32(r->g, &have, "%s.init", r->name);
        if (!init || (r->canvases + 1) * (size_t)n > have) {
            return false;
        }
        memcpy(ids, init + r->canvases++ * n, n * sizeof *ids);
        return true;
    }
    const float *u = golden_f32(r->g, &have, "%s.u", r->name);
    const int32_t *noise = golden_i32(r->g, &also, "%s.random", r->name);
    if (!u || !noise || (r->passes + 1) * (size_t)n > have || have != also) {
        return false;
    }
    memcpy(units, u + r->passes * n, n * sizeof *units);
    memcpy(ids, noise + r->passes++ * n, n * sizeof *ids);
    return true;
}

static void same_ids(const replay *r, const char *what, const int32_t *got, uint32_t n)
{
    size_t have;
    const int32_t *want = golden_i32(r->g, &have, "%s.%s", r->name, what);
    if (CHECKF(want && have >= (r->seen + 1) * (size_t)n, "%s.%s has no pass %u", r->name, what,
               r->seen)) {
        CHECKF(memcmp(got, want + r->seen * n, n * sizeof *got) == 0, "%s.%s: pass %u differs",
               r->name, what, r->seen);
    }
}

static void check_pass(replay *r, const bz_canvas *c)
{
    size_t have;
    int32_t accepted[512], left = (int32_t)c->left, certain = c->certain;
    for (uint32_t i = 0; i < c->n; i++) {
        accepted[i] = c->accepted[i];
    }
    same_ids(r, "step", &left, 1);
    same_ids(r, "stop", &certain, 1);
    same_ids(r, "canvas_in", c->input, c->n);
    same_ids(r, "argmax", c->best, c->n);
    same_ids(r, "sampled", c->drawn, c->n);
    same_ids(r, "accepted", accepted, c->n);
    same_ids(r, "canvas_out", c->next, c->n);
    const float *entropy = golden_f32(r->g, &have, "%s.entropy", r->name);
    if (CHECK(entropy && have >= (r->seen + 1) * (size_t)c->n)) {
        double d = max_difference(c->entropy, entropy + r->seen * c->n, c->n);
        CHECKF(d <= 1e-2, "%s: entropy of pass %u off by %g", r->name, r->seen, d);
    }
    r->seen++;
}

static int on_event(void *user, const bz_event *e)
{
    replay *r = user;
    if (e->kind == BZ_EVENT_CANVAS) {
        const bz_canvas *c = bz_job_canvas(r->job);
        check_pass(r, c);
        CHECK(e->done == e->total - c->left + 1 && e->rows == c->n && e->position == c->position);
        CHECK(bz_session_get_stats(r->s).prefilled ==
              r->prompt); /* the prompt is never encoded again */
    } else if (e->kind == BZ_EVENT_TOKEN && r->n_said < 256) {
        r->said[r->n_said++] = e->token;
    }
    return 0;
}

void check_generation(const golden *g, const bz_model *m, const bz_session_options *o,
                      const char *name)
{
    size_t n, n_sequence, n_steps;
    const int32_t *prompt = golden_i32(g, &n, "prompt"),
                  *sequence = golden_i32(g, &n_sequence, "%s.sequence", name);
    const int32_t *first = golden_i32(g, &n_steps, "%s.step", name);
    if (!CHECK(prompt && sequence && first)) {
        return;
    }
    bz_session *s = session_or_fail(m, o);
    replay r = {.g = g, .name = name, .s = s, .prompt = n};
    const bool stops = strcmp(name, "gen_stop") == 0, ends = sequence[n_sequence - 1] == 0;
    const bz_generate_options go = {.size = sizeof go, .max_tokens = (uint32_t)(n_sequence - n)};
    const bz_denoise_options d = {.size = sizeof d,
                                  .draw = from_golden,
                                  .user = &r,
                                  .stability = stops ? -1 : 0,
                                  .confidence = stops ? 0.6f : 0};
    bz_error err = {0};
    bz_job *job = NULL;
    CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    if (CHECKF(bz_session_diffuse(s, &go, &d, &job, &err) == BZ_OK, "%s", err.text)) {
        r.job = job;
        CHECKF(bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = &r},
                          &err) == BZ_OK,
               "%s", err.text);
        CHECK(bz_job_finish(job) == (ends ? BZ_FINISH_END : BZ_FINISH_LENGTH));
        bz_job_free(job);
    }
    CHECKF(r.seen == n_steps, "%s: %u passes, the golden has %zu", name, r.seen, n_steps);
    for (size_t i = n; i < n_sequence; i++) {
        int32_t got = i - n < r.n_said ? r.said[i - n] : 0;
        CHECKF(got == sequence[i], "%s: token %zu is %d, not %d", name, i, got, sequence[i]);
    }
    bz_session_free(s);
}
