#include "synth.h"

#include <stdlib.h>
#include <string.h>

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
