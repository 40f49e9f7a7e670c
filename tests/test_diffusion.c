/* DiffusionGemma against Hugging Face's outputs: encoder, steps over a canvas, sampler, whole
 * generations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/denoise.h"
#include "session/session.h"
#include "support/canvas.h"
#include "support/check.h"
#include "support/forward.h"

/* ---- inner tensors ------------------------------------------------------------------ */

typedef struct watch {
    const golden *g;
    bz_session *s;
    const char *part; /* "enc", "step0", ... */
    unsigned seen;
} watch;

/* K and V of one layer: the golden has [head][position][D], the last positions only. */
static void compare_cached(watch *w, const char *kind, int layer, const float *got, uint32_t rows,
                           uint32_t cols, uint32_t stride)
{
    size_t n;
    const float *want = golden_f32(w->g, &n, "enc.%s.%d", kind, layer);
    const uint32_t d = w->s->model->text.config.layer[layer].head_dim, heads = cols / d;
    const uint32_t all = 21, kept = want ? (uint32_t)(n / cols) : 0;
    for (uint32_t r = 0; want && r < rows; r++) {
        const uint32_t pos = w->s->n + r;
        for (uint32_t h = 0; pos >= all - kept && h < heads; h++) {
            double off = max_difference(got + (size_t)r * stride + h * d,
                                        want + ((size_t)h * kept + pos - (all - kept)) * d, d);
            CHECKF(off <= 1e-4, "enc.%s.%d head %u position %u: off by %g", kind, layer, h, pos,
                   off);
            w->seen++;
        }
    }
}

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    const bool encoder = strcmp(w->part, "enc") == 0;
    size_t n;
    const float *want = NULL;
    (void)output;
    if (encoder && (strcmp(step->name, "k_rope") == 0 || strcmp(step->name, "v_norm") == 0)) {
        compare_cached(w, step->name[0] == 'k' ? "k" : "v", step->layer, values, rows, cols,
                       stride);
    } else if (strcmp(step->name, "hidden") == 0) {
        want = golden_f32(w->g, &n, "%s.hidden.%d", w->part, step->layer);
    } else if (!encoder && strcmp(step->name, "input") == 0) {
        want = golden_f32(w->g, &n, "%s.input", w->part);
    }
    for (uint32_t r = 0; want && r < rows; r++) {
        const size_t row = encoder ? w->s->n + r : r;
        double off =
            max_difference((const float *)values + (size_t)r * stride, want + row * cols, cols);
        CHECKF(off <= 1e-4, "%s %s layer %d row %zu: off by %g", w->part, step->name, step->layer,
               row, off);
        w->seen++;
    }
}

static void inner_tensors(const golden *g, const bz_model *m)
{
    const uint32_t chunks[] = {512, 5, 1};
    size_t n, n_logits;
    const int32_t *prompt = golden_i32(g, &n, "prompt");
    const float *previous = golden_f32(g, &n_logits, "step0.logits");
    for (int i = 0; i < 3; i++) {
        begin("inner tensors, chunk %u", chunks[i]);
        bz_session *s = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                                 .exact = true,
                                                                 .chunk = chunks[i],
                                                                 .threads = 2});
        watch w = {g, s, "enc", 0};
        bz_error err = {0};
        float *out = malloc(n_logits * sizeof *out);
        s->backend->set_trace(s->backend, on_trace, &w);
        CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
        /* three layers of residuals; K and V of two heads in the window or one head everywhere */
        const unsigned encoder = 3 * 21 + 2 * (2 * 7 * 2 + 2 * 21);
        CHECKF(w.seen == encoder, "%u rows of the encoder compared, not %u", w.seen, encoder);
        const char *parts[] = {"step0", "step1"};
        for (int k = 0; k < 2; k++) {
            size_t c;
            w.part = parts[k];
            w.seen = 0;
            const int32_t *ids = golden_i32(g, &c, "%s.canvas", w.part);
            CHECKF(canvas_logits(s, ids, k ? previous : NULL, 0.8f, out, &err) == BZ_OK, "%s",
                   err.text);
            CHECKF(w.seen == 5 * 16, "%u rows of %s compared", w.seen, w.part);
        }
        free(out);
        bz_session_free(s);
    }
}

/* ---- the sampler alone ---------------------------------------------------------------- */

static void sampler(const golden *g)
{
    enum { STEPS = 7, N = 12, V = 40 };
    size_t n, n_accepted, n_entropy, n_best, n_stop;
    const float *z = golden_f32(g, &n, "sampler.logits"),
                *want = golden_f32(g, &n_entropy, "sampler.entropy");
    const int32_t *accepted = golden_i32(g, &n_accepted, "sampler.accepted"),
                  *best = golden_i32(g, &n_best, "sampler.argmax");
    const int32_t *stop = golden_i32(g, &n_stop, "sampler.stop");
    begin("acceptance and stopping on synthetic logits");
    if (!CHECK(z && want && accepted && best && stop && n == STEPS * N * V && n_stop == STEPS)) {
        return;
    }
    const bz_denoise_rule rule = {
        .steps = STEPS, .stability = 2, .confidence = 0.02f, .entropy_bound = 0.1f};
    bz_denoise_state state = {.n = N};
    for (int s = 0; s < STEPS; s++) {
        bool got[N];
        bz_denoise_accept(want + s * N, N, rule.entropy_bound, got);
        for (int i = 0; i < N; i++) {
            CHECKF(got[i] == (accepted[s * N + i] == 1), "step %d position %d", s, i);
        }
        CHECKF(bz_denoise_settled(&state, &rule, best + s * N, want + s * N) == (stop[s] == 1),
               "stop after step %d", s);
    }
    begin("temperature, draws from a seed");
    const bz_denoise_rule real = {.steps = 48, .t_min = 0.4f, .t_max = 0.8f};
    CHECK(fabsf(bz_denoise_temperature(&real, 48) - 0.8f) < 1e-6f &&
          fabsf(bz_denoise_temperature(&real, 1) - 0.408333f) < 1e-6f);
    double mean = 0;
    unsigned same = 0, most = 0;
    for (uint32_t i = 0; i < 4096; i++) {
        float u = bz_denoise_unit(7, i, 3);
        int32_t id = bz_denoise_noise(7, i, 3, 1000);
        CHECK(u >= 0 && u < 1 && id >= 0 && id < 1000);
        mean += (double)u / 4096;
        same += u == bz_denoise_unit(7, i, 4) || id == bz_denoise_noise(7, i, 4, 1000);
        most = (unsigned)id > most ? (unsigned)id : most;
    }
    CHECKF(fabs(mean - 0.5) < 0.03 && same < 30 && most > 900, "mean %g, %u the same, most %u",
           mean, same, most);
}

/* One certain token and a long tail far below: a running sum in f32 would call it certain. */
static void drifting_sums(void)
{
    begin("entropy of a certain token with a long tail");
    enum { V = 262144 };
    bz_weights none = {0};
    bz_plan *p = NULL;
    bz_schedule *schedule = NULL;
    bz_backend *b = NULL;
    bz_error err = {0};
    const bz_model *m = open_or_fail(golden_path("diffusion/text.gguf"));
    bz_session *s =
        session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2});
    b = s->backend;
    bz_tensor stats = BZ_NO_TENSOR;
    CHECK(bz_plan_new(&p, &none, NULL, 0, 1, 1, &err) == BZ_OK);
    bz_logit_stats(p, bz_kept_tensor(p, V), 0, &stats, "logit_stats");
    CHECK(bz_plan_finish(p, stats, &err) == BZ_OK && b->prepare(b, p, &schedule, &err) == BZ_OK);
    float *z = malloc(V * sizeof *z);
    for (int i = 0; i < V; i++) {
        z[i] = -20.8286f;
    }
    z[777] = 0;
    const int32_t zero = 0;
    const float draws[] = {0.5f, 0.0f, 0.99999988f};
    const uint32_t out[1] = {0};
    for (int k = 0; k < 3; k++) {
        const bz_rows rows = {.n = 1,
                              .n_out = 1,
                              .id = &zero,
                              .pos = &zero,
                              .seq = out,
                              .out = out,
                              .kv = s->kv_list,
                              .kept_input = z,
                              .temperature = 1,
                              .uniform = &draws[k]};
        b->begin(b, schedule, &rows);
        while (b->step(b, 0, &err) == BZ_PASS_AGAIN) {
        }
        const float *j = b->output(b, schedule);
        const double tail = (V - 1) * exp(-20.8286),
                     h = log(1 + tail) + 20.8286 * tail / (1 + tail);
        CHECKF(fabs((double)j[BZ_STAT_ENTROPY] - h) < 1e-5, "entropy %g, not %g",
               (double)j[BZ_STAT_ENTROPY], h);
        CHECK(j[BZ_STAT_BEST] == 777);
        CHECKF(k == 0   ? j[BZ_STAT_DRAWN] == 777
               : k == 1 ? j[BZ_STAT_DRAWN] == 0
                        : j[BZ_STAT_DRAWN] > 261000,
               "draw %d: %g", k, (double)j[BZ_STAT_DRAWN]);
    }
    free(z);
    b->release(b, schedule);
    bz_plan_free(p);
    bz_session_free(s);
    bz_model_free((bz_model *)(uintptr_t)m);
}

/* ---- seeds, limits, refusals ------------------------------------------------------------ */

typedef struct told {
    int32_t ids[256];
    uint32_t n, canvases;
    size_t text;
} told;

static int on_told(void *user, const bz_event *e)
{
    told *t = user;
    if (e->kind == BZ_EVENT_TOKEN && t->n < 256) {
        t->ids[t->n++] = e->token;
        t->text += e->text_len;
    }
    t->canvases += e->kind == BZ_EVENT_CANVAS;
    return 0;
}

static told answer(bz_session *s, const int32_t *prompt, size_t n, uint64_t seed, uint32_t max,
                   bz_finish *finish)
{
    told t = {0};
    bz_error err = {0};
    bz_job *job = NULL;
    const bz_generate_options o = {
        .size = sizeof o, .max_tokens = max, .ignore_end = true, .sampling = {.seed = seed}};
    CHECKF(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK, "%s", err.text);
    if (CHECKF(bz_session_generate(s, &o, &job, &err) == BZ_OK, "%s", err.text)) {
        CHECKF(bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_told, .user = &t},
                          &err) == BZ_OK,
               "%s", err.text);
        *finish = bz_job_finish(job);
    }
    bz_job_free(job);
    return t;
}

static void seeds(const golden *g, const bz_model *m)
{
    size_t n;
    const int32_t *prompt = golden_i32(g, &n, "prompt");
    bz_finish finish = BZ_FINISH_NONE;
    begin("same seed, same text; another seed, another text");
    bz_session *s = session_or_fail(
                   m, &(bz_session_options){.size = sizeof(bz_session_options), .threads = 2}),
               *one = session_or_fail(m, &(bz_session_options){.size = sizeof(bz_session_options),
                                                               .threads = 1,
                                                               .chunk = 3});
    told a = answer(s, prompt, n, 1, 40, &finish);
    CHECK(a.n == 40 && finish == BZ_FINISH_LENGTH && a.canvases >= 6);
    CHECK(bz_session_get_stats(s).position == n + 40);
    told b = answer(s, prompt, n, 1, 40, &finish), c = answer(one, prompt, n, 1, 40, &finish);
    told other = answer(s, prompt, n, 2, 40, &finish);
    CHECK(memcmp(a.ids, b.ids, sizeof a.ids) == 0 && memcmp(a.ids, c.ids, sizeof a.ids) == 0);
    CHECK(memcmp(a.ids, other.ids, sizeof a.ids) != 0);
    bz_session_free(one);

    begin("an answer in two jobs equals that of one job, where a canvas ends");
    told first = answer(s, prompt, n, 1, 16, &finish), rest = {0};
    bz_error err = {0};
    bz_job *job = NULL;
    const bz_generate_options more = {
        .size = sizeof more, .max_tokens = 24, .ignore_end = true, .sampling = {.seed = 1}};
    CHECK(bz_session_generate(s, &more, &job, &err) == BZ_OK);
    CHECK(bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_told, .user = &rest},
                     &err) == BZ_OK);
    bz_job_free(job);
    CHECK(memcmp(first.ids, a.ids, 16 * 4) == 0 && memcmp(rest.ids, a.ids + 16, 24 * 4) == 0);
    bz_session_free(s);

    begin("the context ends an answer");
    s = session_or_fail(
        m, &(bz_session_options){.size = sizeof(bz_session_options), .context = 60, .threads = 2});
    a = answer(s, prompt, n, 1, 0, &finish);
    CHECKF(a.n == 32 && finish == BZ_FINISH_CONTEXT, "%u tokens, %d", a.n, finish);
    bz_session_free(s);

    begin("refusals");
    s = session_or_fail(m, NULL);
    CHECK(bz_session_generate(s, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECK(prefill(s, prompt, n, 0, (float *)(uintptr_t)prompt, &err) == BZ_BAD_REQUEST);
    CHECK(prefill(s, prompt, n, 0, NULL, &err) == BZ_OK);
    int32_t wrong[16] = {768};
    CHECK(bz_session_canvas(s, wrong, NULL, 0, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_session_diffuse(s, NULL,
                             &(bz_denoise_options){.size = sizeof(bz_denoise_options), .t_min = -1},
                             &job, &err) == BZ_BAD_REQUEST);
    bz_session_free(s);
    bz_model *text = open_or_fail(golden_path("moe-like/text.gguf"));
    s = session_or_fail(text, NULL);
    CHECK(bz_session_diffuse(s, NULL, NULL, &job, &err) == BZ_BAD_REQUEST);
    CHECK(bz_model_canvas(text) == 0 && bz_model_canvas(m) == 16);
    bz_session_free(s);
    bz_model_free(text);
}

int main(void)
{
    golden g;
    golden_open(&g, golden_path("diffusion/golden.gguf"));
    bz_model *m = open_or_fail(golden_path("diffusion/text.gguf"));
    sampler(&g);
    drifting_sums();
    inner_tensors(&g, m);
    const char *kernels[] = {NULL, "plain"};
    for (int k = 0; k < 2; k++) {
        const bz_session_options o = {
            .size = sizeof o, .exact = true, .kernels = kernels[k], .threads = 2};
        begin("logits of a canvas%s%s", k ? ", kernels " : "", k ? kernels[k] : "");
        check_canvas_logits(&g, m, &o, 1e-3);
        begin("a prompt with an image%s%s", k ? ", kernels " : "", k ? kernels[k] : "");
        check_canvas_image("cpu", &o, 1e-3);
        begin("recorded generations%s%s", k ? ", kernels " : "", k ? kernels[k] : "");
        check_generation(&g, m, &o, "gen");
        check_generation(&g, m, &o, "gen_eos");
        check_generation(&g, m, &o, "gen_stop");
    }
    if (!quick_run()) { /* short runs are for another instruction set; this is the same code */
        seeds(&g, m);
    }
    bz_model_free(m);
    golden_close(&g);
    return finish();
}
