#include "cli/settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os_program.h"

static const struct {
    const char *name, *about;
    bool whole;
    double low, high;
    const char *unset; /* shown if it is not set */
} table[SETTINGS] = {
    [SET_TEMPERATURE] = {"temperature", "0: always the most likely token", false, 0, 100,
                         "the file's, or 1"},
    [SET_TOP_K] = {"top_k", "most likely tokens to choose from; 0: all", true, 0, 1 << 30,
                   "the file's, or 64"},
    [SET_TOP_P] = {"top_p", "total probability to choose from", false, 0, 1, "the file's, or 0.95"},
    [SET_MIN_P] = {"min_p", "minimum probability, relative to the best", false, 0, 1, "off"},
    [SET_REPEAT_PENALTY] = {"repeat_penalty", "above 1: fewer repetitions", false, 0.01, 100,
                            "off"},
    [SET_REPEAT_LAST_N] = {"repeat_last_n", "tokens it looks back at; -1: all", true, -1, 1 << 30,
                           "64"},
    [SET_PRESENCE_PENALTY] = {"presence_penalty", "penalty for tokens already used", false, -100,
                              100, "off"},
    [SET_FREQUENCY_PENALTY] = {"frequency_penalty", "penalty for each use of a token", false, -100,
                               100, "off"},
    [SET_SEED] = {"seed", "same seed, same answer", true, -1, 18446744073709549568.0, "random"},
    [SET_NUM_PREDICT] = {"num_predict", "maximum tokens of an answer; -1: no limit", true, -2,
                         1 << 30, "no limit"},
    [SET_NUM_CTX] = {"num_ctx", "context size in tokens", true, 1, 1 << 30, "what fits in memory"},
};

void settings_free(settings *s)
{
    settings_clear_stops(s);
    free(s->form);
    *s = (settings){0};
}

const char *settings_name(setting id)
{
    return table[id].name;
}

const char *settings_about(setting id)
{
    return table[id].about;
}

int settings_find(const char *name, size_t len)
{
    int i = 0;
    while (i < SETTINGS &&
           (strlen(table[i].name) != len || memcmp(table[i].name, name, len) != 0)) {
        i++;
    }
    return i;
}

/* ---- setting ------------------------------------------------------------------- */

bz_status settings_put_number(settings *s, setting id, double value, bz_error *err)
{
    if (isnan(value) || value < table[id].low || value > table[id].high ||
        (table[id].whole && value != floor(value))) {
        return bz_fail(err, BZ_BAD_REQUEST, "%s must be a %snumber from %.17g to %.17g.",
                       table[id].name, table[id].whole ? "whole " : "", table[id].low,
                       table[id].high);
    }
    if (id == SET_SEED && value < 0) { /* in Ollama: a random seed */
        s->set[id] = false;
        return BZ_OK;
    }
    s->set[id] = true;
    s->value[id] = value;
    if (id == SET_SEED) {
        s->seed = (uint64_t)value;
    }
    return BZ_OK;
}

bz_status settings_put_text(settings *s, setting id, const char *text, bz_error *err)
{
    char *end;
    errno = 0;
    if (id == SET_SEED && text[0] >= '0' && text[0] <= '9') {
        uint64_t seed = strtoull(text, &end, 10);
        if (*end == 0 && !errno) {
            s->set[id] = true;
            s->value[id] = (double)seed;
            s->seed = seed;
            return BZ_OK;
        }
    }
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value)) {
        return bz_fail(err, BZ_BAD_REQUEST, "%s must be a %snumber, not '%.40s'.", table[id].name,
                       table[id].whole ? "whole " : "", text);
    }
    return settings_put_number(s, id, value, err);
}

bz_status settings_add_stop(settings *s, const char *text, size_t len, bz_error *err)
{
    if (len == 0 || memchr(text, 0, len)) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A stop string must not be empty or contain a zero byte.");
    }
    char **more = realloc(s->stop, (s->n_stop + 1) * sizeof *more);
    char *copy = malloc(len + 1);
    if (more) {
        s->stop = more;
    }
    if (!more || !copy) {
        free(copy);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a stop string.");
    }
    memcpy(copy, text, len);
    copy[len] = 0;
    s->stop[s->n_stop++] = copy;
    s->stop_set = true;
    return BZ_OK;
}

bool settings_draws(setting id)
{
    return id < SET_SEED;
}

void settings_unset(settings *s, setting id)
{
    s->set[id] = false;
}

void settings_clear_stops(settings *s)
{
    for (size_t i = 0; i < s->n_stop; i++) {
        free(s->stop[i]);
    }
    free(s->stop);
    s->stop = NULL;
    s->n_stop = 0;
    s->stop_set = false;
}

/* ---- layers ---------------------------------------------------------------------- */

bz_status settings_from_store(settings *s, const bz_store_params *p, bz_error *err)
{
    const bz_store_number *const given[SETTINGS] = {
        [SET_TEMPERATURE] = &p->temperature,
        [SET_TOP_K] = &p->top_k,
        [SET_TOP_P] = &p->top_p,
        [SET_MIN_P] = &p->min_p,
        [SET_REPEAT_PENALTY] = &p->repeat_penalty,
        [SET_REPEAT_LAST_N] = &p->repeat_last_n,
        [SET_PRESENCE_PENALTY] = &p->presence_penalty,
        [SET_FREQUENCY_PENALTY] = &p->frequency_penalty,
        [SET_SEED] = &p->seed,
        [SET_NUM_PREDICT] = &p->num_predict,
        [SET_NUM_CTX] = &p->num_ctx,
    };
    bz_status status = BZ_OK;
    for (int i = 0; i < SETTINGS; i++) {
        if (given[i]->set) { /* an invalid value in the store is ignored; the model still runs */
            settings_put_number(s, (setting)i, given[i]->value, NULL);
        }
    }
    for (size_t i = 0; i < p->n_stop && status == BZ_OK; i++) {
        status = settings_add_stop(s, p->stop[i], strlen(p->stop[i]), err);
    }
    return status;
}

bz_status settings_fill(settings *s, const settings *under, bz_error *err)
{
    for (int i = 0; i < SETTINGS; i++) {
        if (!s->set[i] && under->set[i]) {
            s->set[i] = true;
            s->value[i] = under->value[i];
            s->seed = i == SET_SEED ? under->seed : s->seed;
        }
    }
    bz_status status = BZ_OK;
    if (!s->stop_set) {
        s->stop_set = under->stop_set;
        for (size_t i = 0; i < under->n_stop && status == BZ_OK; i++) {
            status = settings_add_stop(s, under->stop[i], strlen(under->stop[i]), err);
        }
    }
    if (!s->form && under->form && status == BZ_OK) {
        s->form = strdup(under->form);
        status = s->form ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a schema.");
    }
    return status;
}

/* ---- using ----------------------------------------------------------------------- */

/* In the library's options zero means "default"; here an explicit zero must be kept. */
bz_generate_options settings_to_generate(const settings *s)
{
    bz_generate_options o = {.size = sizeof o};
    bz_sampling *a = &o.sampling;
    const double *v = s->value;
    if (s->set[SET_TEMPERATURE]) {
        a->greedy = v[SET_TEMPERATURE] == 0;
        a->temperature = a->greedy ? -1 : (float)v[SET_TEMPERATURE];
    }
    if (s->set[SET_TOP_K]) {
        a->top_k = v[SET_TOP_K] == 0 ? -1 : (int32_t)v[SET_TOP_K];
    }
    if (s->set[SET_TOP_P]) { /* 0 still leaves the most likely token */
        a->top_p = v[SET_TOP_P] >= 1 ? -1 : v[SET_TOP_P] < 1e-6 ? 1e-6f : (float)v[SET_TOP_P];
    }
    a->min_p = s->set[SET_MIN_P] ? (float)v[SET_MIN_P] : 0;
    const bool none_seen = s->set[SET_REPEAT_LAST_N] && v[SET_REPEAT_LAST_N] == 0;
    if (!none_seen) {
        a->repetition = s->set[SET_REPEAT_PENALTY] ? (float)v[SET_REPEAT_PENALTY] : 0;
        a->presence = s->set[SET_PRESENCE_PENALTY] ? (float)v[SET_PRESENCE_PENALTY] : 0;
        a->frequency = s->set[SET_FREQUENCY_PENALTY] ? (float)v[SET_FREQUENCY_PENALTY] : 0;
        a->window = s->set[SET_REPEAT_LAST_N] ? (int32_t)v[SET_REPEAT_LAST_N] : 0;
    }
    a->seed = s->set[SET_SEED] ? s->seed : 0;
    o.max_tokens =
        s->set[SET_NUM_PREDICT] && v[SET_NUM_PREDICT] > 0 ? (uint32_t)v[SET_NUM_PREDICT] : 0;
    return o;
}

const char *settings_show(const settings *s, setting id, char out[SETTING_TEXT])
{
    if (!s->set[id]) {
        return table[id].unset;
    }
    if (id == SET_SEED) {
        snprintf(out, SETTING_TEXT, "%llu", (unsigned long long)s->seed);
    } else {
        snprintf(out, SETTING_TEXT, "%.10g", s->value[id]);
    }
    return out;
}

/* Below 2^53, so that every JSON reader keeps it exactly. */
uint64_t settings_new_seed(void)
{
    uint64_t seed;
    if (!bz_os_random(&seed, sizeof seed)) {
        seed = (uint64_t)time(NULL) * 1000000007u ^ bz_os_now();
    }
    return seed >> 11;
}
