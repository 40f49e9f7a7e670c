/* tests/golden/synth/manifest.txt, entry by entry (tests/golden/README.md explains the lines). */
#ifndef BZ_TEST_SYNTH_H
#define BZ_TEST_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SYNTH_MAX_TOKENS = 256, SYNTH_MAX_POSITIONS = 16 };

typedef struct synth_entry {
    char name[64], answer[64], preset[32];
    uint32_t vocab, stride;
    int32_t tokens[SYNTH_MAX_TOKENS];
    size_t n_tokens;
    uint32_t positions[SYNTH_MAX_POSITIONS];
    size_t n_positions;
    double peer_rms, peer_median; /* llama.cpp's error over what NAME.all.f32 holds */
} synth_entry;

typedef struct synth_file {
    FILE *f;
    char line[8192];
} synth_file;

void synth_open(synth_file *s); /* ends the program when the manifest is missing */
bool synth_next(synth_file *s, synth_entry *e);
void synth_close(synth_file *s);

/* Judging 8-bit activations: the error of logits `got` [n_tokens][vocab] against `sample`, beside
 * llama.cpp's on the same file; then, over all files judged, one case each: at most 1.1 times as
 * far off. */
void synth_judge(const synth_entry *e, const float *got, const float *sample);
void synth_judge_all(const char *where);

#endif
