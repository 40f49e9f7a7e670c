#include "synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "golden.h"

void synth_open(synth_file *s)
{
    s->f = fopen(golden_path("synth/manifest.txt"), "r");
    if (!s->f) {
        printf("FAIL fixture synth/manifest.txt cannot be read\n");
        exit(1);
    }
}

void synth_close(synth_file *s)
{
    fclose(s->f);
}

/* Numbers separated by spaces; returns how many. */
static size_t numbers(const char *text, long *out, size_t cap)
{
    size_t n = 0;
    char *end;
    for (const char *p = text; n < cap; p = end) {
        long v = strtol(p, &end, 10);
        if (end == p) {
            break;
        }
        out[n++] = v;
    }
    return n;
}

bool synth_next(synth_file *s, synth_entry *e)
{
    *e = (synth_entry){0};
    while (fgets(s->line, sizeof s->line, s->f)) {
        char key[32], sum[80], type[32];
        long list[SYNTH_MAX_TOKENS];
        int used = 0;
        if (sscanf(s->line, "%31s %n", key, &used) != 1) {
            continue;
        }
        const char *rest = s->line + used;
        if (strcmp(key, "model") == 0) {
            *e = (synth_entry){0};
            sscanf(rest, "%63s %79s %31s %31s %u", e->name, sum, e->preset, type, &e->vocab);
        } else if (strcmp(key, "answer") == 0) {
            sscanf(rest, "%63s", e->answer);
        } else if (strcmp(key, "tokens") == 0) {
            e->n_tokens = numbers(rest, list, SYNTH_MAX_TOKENS);
            for (size_t i = 0; i < e->n_tokens; i++) {
                e->tokens[i] = (int32_t)list[i];
            }
        } else if (strcmp(key, "positions") == 0) {
            e->n_positions = numbers(rest, list, SYNTH_MAX_POSITIONS);
            for (size_t i = 0; i < e->n_positions; i++) {
                e->positions[i] = (uint32_t)list[i];
            }
        } else if (strcmp(key, "stride") == 0) {
            sscanf(rest, "%u", &e->stride);
        } else if (strcmp(key, "peer_rms") == 0) {
            sscanf(rest, "%*f %*f %lf", &e->peer_rms);
        } else if (strcmp(key, "peer_median") == 0) { /* the last line we need of a block */
            sscanf(rest, "%*f %*f %lf", &e->peer_median);
            return true;
        }
    }
    return false;
}

/* ---- judging -------------------------------------------------------------------------------- */

static double rms_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum / (double)n);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Files that differ in their seed only ("NAME", "NAME-s2", ...) are judged together: where an
 * expert flips in one random MoE is chance, for llama.cpp as for us. */
typedef struct group {
    char name[64];
    double log_ratio;
    int files;
} group;

static group groups[160];
static int n_groups;

static void add_ratio(const char *name, double ratio)
{
    char base[64];
    snprintf(base, sizeof base, "%s", name);
    char *seed = strstr(base, "-s");
    if (seed && seed[2] >= '0' && seed[2] <= '9') {
        *seed = 0;
    }
    int g = 0;
    while (g < n_groups && strcmp(groups[g].name, base) != 0) {
        g++;
    }
    if (g == n_groups) {
        snprintf(groups[n_groups++].name, sizeof groups[0].name, "%s", base);
    }
    groups[g].log_ratio += log(ratio);
    groups[g].files++;
}

void synth_judge(const synth_entry *e, const float *got, const float *sample)
{
    size_t columns = (e->vocab + e->stride - 1) / e->stride;
    double *error = malloc(e->n_tokens * columns * sizeof *error),
           *by_row = malloc(e->n_tokens * sizeof *by_row);
    for (size_t t = 0; t < e->n_tokens; t++) {
        for (size_t c = 0; c < columns; c++) {
            error[t * columns + c] =
                (double)got[t * e->vocab + c * e->stride] - (double)sample[t * columns + c];
        }
        by_row[t] = rms_of(error + t * columns, columns);
    }
    /* an expert that flips moves a whole row, so for them the middle row counts */
    bool moe = strstr(e->preset, "moe") != NULL;
    double ours = moe ? median_of(by_row, e->n_tokens) : rms_of(error, e->n_tokens * columns);
    double theirs = moe ? e->peer_median : e->peer_rms;
    printf("  %s: %s %.4f, llama.cpp %.4f, ratio %.2f\n", e->name, moe ? "median" : "rms", ours,
           theirs, ours / theirs);
    CHECK(isfinite(ours));
    add_ratio(e->name, ours / theirs);
    free(error);
    free(by_row);
}

void synth_judge_all(const char *where)
{
    for (int g = 0; g < n_groups; g++) {
        double ratio = exp(groups[g].log_ratio / groups[g].files);
        begin("%s%s with 8-bit activations: error against llama.cpp's", where, groups[g].name);
        CHECKF(ratio <= 1.1, "%.2f times llama.cpp's over %d files", ratio, groups[g].files);
    }
}
