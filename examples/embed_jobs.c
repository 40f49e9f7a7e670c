/* embed_jobs: Bezel inside a program that has a loop of its own.
 *
 *   embed_jobs model.gguf tokens "first prompt" "second prompt"
 *
 * Two conversations over one model take turns in one thread. Nothing here blocks for long: a step
 * computes for about 10 ms, and between steps a real program looks after its sockets or its window.
 * The file is read with fread as the library asks for bytes; they could come from anywhere. Each
 * answer is stopped by ending its job after some tokens.
 */
#define _POSIX_C_SOURCE 200809L /* fseeko, open_memstream */
#include <bezel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(const bz_error *err)
{
    fprintf(stderr, "embed_jobs: %s\n", err->text);
    return false;
}

/* ---- opening ------------------------------------------------------------------------ */

/* The reads a job asks for may be done in any order; all of them before the next step. */
static bool fetch(FILE *file, const bz_need *need)
{
    for (uint32_t i = 0; i < need->n_reads; i++) {
        const bz_read *r = &need->reads[i];
        if (fseeko(file, (off_t)r->offset, SEEK_SET) != 0 ||
            fread(r->to, 1, r->length, file) != r->length) {
            fprintf(stderr, "embed_jobs: the model file cannot be read\n");
            return false;
        }
    }
    return true;
}

static bz_model *open_model(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseeko(file, 0, SEEK_END) != 0) {
        perror(path);
        if (file) {
            fclose(file);
        }
        return NULL;
    }
    const bz_input input = {.name = path,
                            .size = (uint64_t)ftello(file)}; /* no data: the job asks */
    bz_error err = {0};
    bz_need need = {0};
    bz_job *job = NULL;
    bz_model *model = NULL;
    bool more = bz_model_open(&job, &input, 1, NULL, &err) == BZ_OK || complain(&err);
    while (more) {
        switch (bz_job_step(job, &need)) {
        case BZ_JOB_NEED_BYTES: more = fetch(file, &need); break;
        case BZ_JOB_DONE:
            model = bz_job_model(job); /* ours from here on */
            more = false;
            break;
        case BZ_JOB_ERROR: more = complain(&need.error); break;
        default: break; /* progress, or just more to do */
        }
    }
    bz_job_free(job);
    fclose(file); /* everything is in memory now */
    return model;
}

/* ---- a conversation ------------------------------------------------------------------- */

typedef struct talk {
    bz_session *session;
    bz_job *job; /* NULL: nothing left to do */
    bool answering;
    unsigned limit, tokens, steps;
    FILE *out; /* collects the answer */
    char *text;
    size_t size;
} talk;

static bool begin(talk *t, const bz_model *model, const char *prompt, unsigned limit)
{
    bz_error err = {0};
    int32_t ids[1024];
    int64_t n = bz_tokenize(model, prompt, strlen(prompt), false, true, ids, 1024, &err);
    if (n < 0) {
        return complain(&err);
    }
    if (n > 1024) {
        fprintf(stderr, "embed_jobs: a prompt of %lld tokens is too long here\n", (long long)n);
        return false;
    }
    t->limit = limit;
    t->out = open_memstream(&t->text, &t->size);
    return t->out && (bz_session_new(&t->session, model, NULL, &err) == BZ_OK || complain(&err)) &&
           (bz_session_prefill(t->session, ids, (size_t)n, NULL, &t->job, &err) == BZ_OK ||
            complain(&err));
}

/* Ends the job, finished or not. The session keeps what it has computed and could go on. */
static void end_job(talk *t)
{
    bz_job_free(t->job);
    t->job = NULL;
}

/* One step; false if the conversation failed. */
static bool advance(talk *t)
{
    bz_need need = {0};
    bz_error err = {0};
    t->steps++;
    switch (bz_job_step(t->job, &need)) {
    case BZ_JOB_EVENT:
        if (need.event.kind == BZ_EVENT_TOKEN) {
            fwrite(need.event.text, 1, need.event.text_len, t->out);
            if (++t->tokens == t->limit) {
                end_job(t);
            }
        }
        return true;
    case BZ_JOB_DONE:
        end_job(t);
        if (!t->answering) { /* the prompt is in: answer it */
            const bz_generate_options greedy = {.size = sizeof greedy,
                                                .sampling = {.greedy = true}};
            t->answering = true;
            return bz_session_generate(t->session, &greedy, &t->job, &err) == BZ_OK ||
                   complain(&err);
        }
        return true;
    case BZ_JOB_ERROR: end_job(t); return complain(&need.error);
    default: return true; /* on a CPU a session asks for no bytes and no device */
    }
}

static void end(talk *t)
{
    end_job(t);
    if (t->out) {
        fclose(t->out);
    }
    free(t->text);
    bz_session_free(t->session);
}

int main(int argc, char **argv)
{
    enum { TALKS = 2 };
    if (argc != 3 + TALKS) {
        fprintf(stderr, "usage: embed_jobs model.gguf tokens prompt prompt\n");
        return 2;
    }
    bz_model *model = open_model(argv[1]);
    bool ok = model != NULL;
    talk talks[TALKS] = {{0}};
    for (int i = 0; ok && i < TALKS; i++) {
        ok = begin(&talks[i], model, argv[3 + i], (unsigned)strtoul(argv[2], NULL, 10));
    }
    while (ok && (talks[0].job || talks[1].job)) {
        for (int i = 0; ok && i < TALKS; i++) {
            ok = !talks[i].job || advance(&talks[i]);
        }
        /* here the rest of the program gets its turn */
    }
    for (int i = 0; i < TALKS; i++) {
        if (ok && fflush(talks[i].out) == 0) {
            printf("%d: ", i + 1);
            fwrite(talks[i].text, 1, talks[i].size, stdout); /* no string: a model can say NUL */
            putchar('\n');
            fprintf(stderr, "%d: %u tokens in %u steps\n", i + 1, talks[i].tokens, talks[i].steps);
        }
        end(&talks[i]);
    }
    bz_model_free(model);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
