/* The input of `run --prompts`: the lines of one shard of a file, numbered, and their hashes. */
#ifndef BZ_CLI_PROMPTS_INPUT_H
#define BZ_CLI_PROMPTS_INPUT_H

#include <stdio.h>

#include "cli/batch/lines.h"

typedef struct prompts_input {
    const char *path; /* for messages */
    FILE *file;
    uint64_t shard, of; /* reads lines shard, shard + of, ... */
    uint64_t line;      /* number of the last line read, from 1 */
    bool ended;
    line_buffer buffer;
    const char *text; /* [len] of that line, without its line end */
    size_t len;
} prompts_input;

/* "2/5": shard 2 of 5; NULL: all lines. False: malformed. */
bool prompts_input_shard(prompts_input *in, const char *text);
/* path "-": standard input. */
bz_status prompts_input_open(prompts_input *in, const char *path, bz_error *err);
void prompts_input_close(prompts_input *in);
/* Reads the next line of the shard that is not blank; sets `ended` if there is none or after
 * Ctrl-C. */
bz_status prompts_input_next(prompts_input *in, bz_error *err);

/* How many lines of the shard are not blank; 0: unknown, as for a pipe. Call it before reading. */
uint64_t prompts_input_count(const prompts_input *in);

/* FNV-1a; starts with PROMPTS_HASH. */
#define PROMPTS_HASH 0xCBF29CE484222325u
uint64_t prompts_hash(uint64_t hash, const void *bytes, size_t n);
/* A seed per line, so that the same prompt on two lines gets two answers. */
uint64_t prompts_seed(uint64_t seed, uint64_t line);

#endif
