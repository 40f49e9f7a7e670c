/* What the server is doing: /metrics for Prometheus, /props, /slots. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/helpers.h"

/* ---- /metrics -----------------------------------------------------------------------------------
 */

static double per_second(uint64_t n, uint64_t ns)
{
    return ns ? (double)n * 1e9 / (double)ns : 0;
}

void helper_metrics(void *user, exchange *x)
{
    api *a = user;
    const engine_figures f = engine_get_figures(a->engine);
    /* Names as llama.cpp's server has them, where it has the figure. */
    const struct {
        const char *name, *type, *help;
        double value;
    } lines[] = {
        {"llamacpp:prompt_tokens_total", "counter", "Prompt tokens of finished answers.",
         (double)f.prompt_tokens},
        {"llamacpp:prompt_seconds_total", "counter", "Time until the first tokens.",
         (double)f.prompt_ns / 1e9},
        {"llamacpp:tokens_predicted_total", "counter", "Generated tokens.",
         (double)f.answer_tokens},
        {"llamacpp:tokens_predicted_seconds_total", "counter", "Time of generating.",
         (double)f.answer_ns / 1e9},
        {"llamacpp:n_decode_total", "counter", "Steps of batches.", (double)f.decode_steps},
        {"llamacpp:prompt_tokens_seconds", "gauge", "Prompt tokens per second of a sequence.",
         per_second(f.prompt_tokens, f.prompt_ns)},
        {"llamacpp:predicted_tokens_seconds", "gauge", "Generated tokens per second of a sequence.",
         per_second(f.answer_tokens, f.answer_ns)},
        {"llamacpp:requests_processing", "gauge", "Answers being generated.", (double)f.running},
        {"llamacpp:requests_deferred", "gauge", "Answers that wait.", (double)f.waiting},
        {"bezel:requests_total", "counter", "Requests for answers.", (double)f.requests},
        {"bezel:requests_failed_total", "counter", "Requests that ended with an error.",
         (double)f.failed},
        {"bezel:requests_refused_total", "counter", "Requests refused because the queue was full.",
         (double)f.refused},
        {"bezel:prompt_tokens_cached_total", "counter", "Prompt tokens that were computed before.",
         (double)f.cached_tokens},
    };
    char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const int more = snprintf(
            text + n, sizeof text - n, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", lines[i].name,
            lines[i].help, lines[i].name, lines[i].type, lines[i].name, lines[i].value);
        n += more > 0 && (size_t)more < sizeof text - n ? (size_t)more : 0;
    }
    exchange_bytes(x, 200, "text/plain; version=0.0.4; charset=utf-8", text, n);
}

/* ---- /slots -------------------------------------------------------------------------------------
 */

typedef struct slots {
    bz_json *j;
    uint32_t parallel;
} slots;

static bool put_slots(void *user, const engine_model *m)
{
    const slots *s = user;
    for (uint32_t i = 0; m->batch && i < s->parallel; i++) {
        bz_json_object(s->j);
        bz_json_put_uint(s->j, "id", i);
        bz_json_put_text(s->j, "model", m->name);
        bz_json_put_uint(s->j, "n_ctx", m->context);
        bz_json_put_bool(s->j, "is_processing", m->in_slot[i] != NULL);
        bz_json_end(s->j);
    }
    return true;
}

static bz_status run_slots(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    slots s = {j, engine_get_options(e)->parallel};
    (void)user;
    (void)m;
    bz_json_array(j);
    const bz_status status = models_each(engine_models(e), put_slots, &s, err);
    bz_json_end(j);
    return status;
}

void helper_slots(void *user, exchange *x)
{
    api_run_plain(user, x, API_OPENAI, run_slots);
}

/* ---- /props -------------------------------------------------------------------------------------
 */

/* Of the default model, which is loaded for it. */
static bz_status run_props(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    (void)user;
    (void)err;
    bz_json_object(j);
    bz_json_key(j, "default_generation_settings");
    bz_json_object(j);
    bz_json_put_uint(j, "n_ctx", m->context);
    bz_json_end(j);
    bz_json_put_uint(j, "total_slots", engine_get_options(e)->parallel);
    bz_json_put_text(j, "model_alias", m->name);
    bz_json_key(j, "modalities");
    bz_json_object(j);
    bz_json_put_bool(j, "vision", m->abilities.vision);
    bz_json_put_bool(j, "audio", m->abilities.audio);
    bz_json_end(j);
    bz_json_put_text(j, "build_info", bz_version());
    bz_json_end(j);
    return BZ_OK;
}

void helper_props(void *user, exchange *x)
{
    engine_request r = {.task = ENGINE_RUN, .run = run_props};
    api_run(user, x, API_OPENAI, &r);
}
