/* complete: continue a text.
 *
 *   complete model.gguf "Once upon a time" [tokens [seed]]
 *
 * Without a seed every token is the likeliest one. With a seed tokens are drawn as the model's
 * makers recommend, and the same seed gives the same text. The text goes to stdout as it is made.
 */
#include <bezel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library never prints: it fills a bz_error and the program decides what to do with it. */
static int fail(const bz_error *err)
{
    fprintf(stderr, "complete: %s (%s)\n", err->text, bz_status_name(err->code));
    return EXIT_FAILURE;
}

/* The prompt as token ids, to be freed; NULL and *err when that fails. */
static int32_t *tokenize(const bz_model *model, const char *text, size_t *n, bz_error *err)
{
    /* specials false: what a user typed is text, even where it looks like a control token. */
    int64_t count = bz_tokenize(model, text, strlen(text), false, true, NULL, 0, err);
    if (count < 0) {
        return NULL;
    }
    *n = (size_t)count;
    int32_t *ids = malloc((*n + 1) * sizeof *ids);
    if (!ids) {
        *err = (bz_error){BZ_OUT_OF_MEMORY, "No memory for the prompt."};
    } else if (bz_tokenize(model, text, strlen(text), false, true, ids, *n, err) < 0) {
        free(ids);
        ids = NULL;
    }
    return ids;
}

/* Called for every event of a job. A return other than 0 ends the job. */
static int show(void *user, const bz_event *event)
{
    FILE *out = user;
    if (event->kind == BZ_EVENT_TOKEN) {
        fwrite(event->text, 1, event->text_len, out); /* whole characters only */
        fflush(out);
    }
    return ferror(out);
}

static bz_status complete(bz_session *session, const int32_t *ids, size_t n,
                          const bz_generate_options *options, bz_error *err)
{
    bz_job *job = NULL;
    bz_status status = bz_session_prefill(session, ids, n, NULL, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, NULL, err);
        bz_job_free(job); /* a session has one job at a time */
    }
    if (status == BZ_OK) {
        job = NULL;
        status = bz_session_generate(session, options, &job, err);
    }
    if (status == BZ_OK) {
        status = bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = show, .user = stdout},
                            err);
        bz_job_free(job);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: complete model.gguf text [tokens [seed]]\n");
        return 2;
    }
    bz_generate_options options = {.size = sizeof options,
                                   .max_tokens =
                                       argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 100};
    options.sampling.greedy = argc < 5;
    options.sampling.seed = argc < 5 ? 0 : strtoull(argv[4], NULL, 10);

    bz_error err = {0};
    bz_model *model = NULL;
    bz_session *session = NULL;
    int32_t *ids = NULL;
    size_t n = 0;
    int code = EXIT_SUCCESS;
    if (bz_model_open_file(&model, argv[1], NULL, NULL, &err) != BZ_OK ||
        bz_session_new(&session, model, NULL, &err) != BZ_OK ||
        (ids = tokenize(model, argv[2], &n, &err)) == NULL ||
        complete(session, ids, n, &options, &err) != BZ_OK) {
        code = fail(&err);
    } else {
        putchar('\n');
        fprintf(stderr, "%zu tokens read, %llu written\n", n,
                (unsigned long long)bz_session_get_stats(session).generated);
    }
    free(ids);
    bz_session_free(session); /* sessions before their model; NULL is fine */
    bz_model_free(model);
    return code;
}
