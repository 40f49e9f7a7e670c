/* Decoding at depth with each type of KV cache, in processor time of one thread, alternating.
 *
 *     build/bench/bench_kv MODEL.gguf [DEPTH [TOKENS [REPEATS]]]
 *
 * Prints for each type the best milliseconds per token, the ratio to f16 and the bytes of the
 * caches. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bezel.h"

enum { TYPES = 3 };

static const char *const names[TYPES] = {"f16", "q8", "q4"};

static void check(bz_status status, const bz_error *err)
{
    if (status != BZ_OK) {
        fprintf(stderr, "bench_kv: %s\n", err->text);
        exit(1);
    }
}

static void run(bz_job *job)
{
    bz_error err;
    check(bz_job_run(job, NULL, &err), &err);
    bz_job_free(job);
}

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC; /* of the process, which has one thread */
}

int main(int argc, char **argv)
{
    const uint32_t depth = argc > 2 ? (uint32_t)atoi(argv[2]) : 8192,
                   tokens = argc > 3 ? (uint32_t)atoi(argv[3]) : 16,
                   repeats = argc > 4 ? (uint32_t)atoi(argv[4]) : 5;
    bz_error err;
    bz_model *model;
    bz_session *session[TYPES];
    double best[TYPES] = {0};
    if (argc < 2 || depth == 0 || tokens == 0) {
        fprintf(stderr, "usage: bench_kv MODEL.gguf [DEPTH [TOKENS [REPEATS]]]\n");
        return 2;
    }
    check(bz_model_open_file(&model, argv[1], NULL, NULL, &err), &err);
    const uint32_t vocab = bz_model_vocab(model);
    int32_t *ids = malloc(depth * sizeof *ids);
    for (uint32_t i = 0; ids && i < depth; i++) {
        ids[i] = (int32_t)(600 + i * 7919u % (vocab - 700));
    }
    for (int t = 0; ids && t < TYPES; t++) {
        const bz_session_options o = {
            .size = sizeof o, .context = depth + tokens, .threads = 1, .kv = names[t]};
        bz_job *job;
        check(bz_session_new(&session[t], model, &o, &err), &err);
        check(bz_session_prefill(session[t], ids, depth, NULL, &job, &err), &err);
        run(job);
    }
    const bz_generate_options g = {
        .size = sizeof g, .max_tokens = tokens, .ignore_end = true, .sampling = {.greedy = true}};
    for (uint32_t r = 0; ids && r < repeats; r++) {
        for (int t = 0; t < TYPES; t++) {
            bz_job *job;
            check(bz_session_prefill(session[t], ids, depth, NULL, &job, &err), &err);
            run(job);
            const double start = seconds();
            check(bz_session_generate(session[t], &g, &job, &err), &err);
            run(job);
            const double took = seconds() - start;
            best[t] = r == 0 || took < best[t] ? took : best[t];
        }
    }
    for (int t = 0; ids && t < TYPES; t++) {
        printf("%-4s %8.3f ms per token  %5.3f of f16  %.1f MB\n", names[t], 1e3 * best[t] / tokens,
               best[t] / best[0], (double)bz_session_get_stats(session[t]).cache_bytes / 1e6);
        bz_session_free(session[t]);
    }
    free(ids);
    bz_model_free(model);
    return 0;
}
