/* run --prompts: answers a file of prompts, in order, several at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bezel_batch.h"
#include "bezel_diffusion.h"
#include "cli/interrupt.h"
#include "cli/adapters.h"
#include "cli/batch/prompts.h"
#include "cli/batch/prompts_input.h"
#include "cli/batch/prompts_task.h"
#include "cli/verbs/run.h"
#include "cli/term.h"

/* Answers that may wait for an earlier one to be written; the most that a kill loses. */
enum { WINDOW = 128, DEFAULT_PARALLEL = 4 };

typedef struct prompts_run {
    run_state *r;
    prompts_input in;
    journal *journal;
    bz_batch *batch;
    bz_session *media_session; /* for lines with images or audio; made when first needed */
    bz_session_options session_options;
    uint64_t hash; /* of everything that is the same for every line */

    task tasks[WINDOW]; /* ring buffer, in order of the lines */
    uint32_t first, n;
    uint32_t parallel;
    task *in_slot[BZ_BATCH_MAX_SLOTS];
    bz_error failed; /* in a callback */

    uint64_t lines; /* of the shard; 0: unknown */
    uint64_t already, answered, failed_lines, tokens;
} prompts_run;

/* ---- settings ------------------------------------------------------------------------ */

static uint64_t hash_of_settings(const run_state *r, const settings *s)
{
    uint64_t hash = PROMPTS_HASH;
    const uint64_t size = cli_model_bytes(r->m.model);
    const unsigned char flags = (unsigned char)(r->think | r->o->ignore_end << 1);
    hash = prompts_hash(hash, &size, sizeof size);
    hash = prompts_hash(hash, &flags, 1);
    for (int i = 0; i < SETTINGS; i++) {
        if (s->set[i] && i != SET_NUM_CTX) {
            const unsigned char which = (unsigned char)i;
            hash = prompts_hash(prompts_hash(hash, &which, 1), &s->value[i], sizeof s->value[i]);
        }
    }
    hash = s->set[SET_SEED] ? prompts_hash(hash, &s->seed, sizeof s->seed) : hash;
    for (size_t i = 0; i < s->n_stop; i++) {
        hash = prompts_hash(hash, s->stop[i], strlen(s->stop[i]) + 1);
    }
    if (r->o->image_tokens || r->o->video_tokens || r->o->video_frames) {
        const unsigned media[] = {r->o->image_tokens, r->o->video_tokens, r->o->video_frames};
        hash = prompts_hash(hash, media, sizeof media);
    }
    if (r->o->kv && strcmp(r->o->kv, "f16") != 0) {
        hash = prompts_hash(hash, r->o->kv, strlen(r->o->kv));
    }
    hash = s->form ? prompts_hash(hash, s->form, strlen(s->form) + 1) : hash;
    const char *system = r->conversation.system ? r->conversation.system : "";
    hash = prompts_hash(hash, system, strlen(system) + 1);
    for (size_t i = 0; i < r->conversation.n_pinned; i++) {
        const char *first = r->conversation.messages[i];
        hash = prompts_hash(hash, first, strlen(first) + 1);
    }
    return hash;
}

/* ---- results -------------------------------------------------------------------------- */

static void show_progress(const prompts_run *p)
{
    const uint64_t done = p->already + p->answered + p->failed_lines;
    term_progress(done, p->lines > done ? p->lines : 0, "prompts");
}

static bz_status write_done(prompts_run *p, bz_error *err)
{
    bz_status status = BZ_OK;
    while (p->n && p->tasks[p->first].done && status == BZ_OK) {
        task *t = &p->tasks[p->first];
        p->failed_lines += t->error.code != BZ_OK;
        p->answered += t->error.code == BZ_OK;
        status = prompts_task_write(t, p->journal, err);
        prompts_task_free(t);
        p->first = (p->first + 1) % WINDOW;
        p->n--;
    }
    show_progress(p);
    return status;
}

/* ---- answers ---------------------------------------------------------------------------- */

static void drain(prompts_run *p, task *t)
{
    const char *text;
    size_t len;
    bz_turn_part part;
    while ((part = bz_turn_next(t->turn, &text, &len)) != BZ_TURN_NOTHING) {
        t->ended = t->ended || part == BZ_TURN_END;
        if (!ask_answer_keep(&t->answer, part, text, len)) {
            bz_fail(&p->failed, BZ_OUT_OF_MEMORY, "No memory for the answer to line %llu.",
                    (unsigned long long)t->line);
        }
    }
}

static void on_token(void *user, const bz_batch_event *e)
{
    prompts_run *p = user;
    task *t = p->in_slot[e->slot];
    ask_answer *a = &t->answer;
    if (e->error.code) {
        t->error = e->error;
    } else if (e->token >= 0) {
        a->generated++;
        p->tokens++;
        if (!p->r->o->ignore_end || !bz_token_ends(p->r->m.model, e->token)) {
            bz_turn_push(t->turn, e->token, &p->failed);
            drain(p, t);
        }
    }
    if (!t->ended && !t->error.code && e->finish == BZ_FINISH_NONE) {
        return;
    }
    if (!t->ended) {
        bz_turn_push(t->turn, -1, &p->failed);
        drain(p, t);
    }
    a->finish = bz_turn_finish(t->turn, e->finish);
    bz_batch_stop(p->batch, e->slot);
    p->in_slot[e->slot] = NULL;
    bz_turn_free(t->turn);
    t->turn = NULL;
    t->done = true;
}

/* ---- prompts ------------------------------------------------------------------------------ */

static bool take_id(task *t, const bz_json_node *id)
{
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &t->id);
    bz_json_node_write(&j, id);
    return bz_json_finish(&j);
}

/* Answers a line with images or audio at once: a batch does not take media. */
static bz_status answer_media_line(prompts_run *p, task *t, const bz_json_buffer *request,
                                   const bz_generate_options *go, bz_error *err)
{
    run_state *r = p->r;
    bz_status status = run_encoder(r, err);
    if (status == BZ_OK && !p->media_session) {
        status = bz_session_new(&p->media_session, r->m.model, &p->session_options, err);
        status = status == BZ_OK ? adapters_use(&r->m, p->media_session, err) : status;
    }
    if (status != BZ_OK) {
        return status;
    }
    const ask_options o = {
        .generate = *go, .encoder = r->encoder, .video_frames = r->o->video_frames};
    status = ask(p->media_session, r->m.model, request->text, request->n, &o, &t->answer, err);
    t->prompt_tokens = t->answer.prompt_tokens;
    t->done = status == BZ_OK && t->answer.finish != BZ_FINISH_NONE;
    p->tokens += t->answer.generated;
    return status;
}

static bz_status start_line(prompts_run *p, task *t, prompt_line *line, const settings *s,
                            bz_error *err)
{
    const run_state *r = p->r;
    bz_json_buffer request = {0};
    bz_status status = prompt_line_request(line, r->conversation.system, r->conversation.messages,
                                           r->conversation.n_pinned, r->think, s, &request)
                           ? bz_turn_new_media(&t->turn, r->m.model, request.text, request.n, err)
                           : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    bz_generate_options go = settings_to_generate(s);
    go.ignore_end = r->o->ignore_end;
    go.sampling.seed = t->seed;
    if (status == BZ_OK) {
        bool has_seed;
        const bz_generate_options *own = bz_turn_options(t->turn, &has_seed);
        go.sampling.bias = own->sampling.bias;
        go.sampling.n_bias = own->sampling.n_bias;
        go.grammar = own->grammar;
    }
    if (status == BZ_OK && bz_turn_media(t->turn)) {
        status = answer_media_line(p, t, &request, &go, err);
        bz_turn_free(t->turn);
        t->turn = NULL;
        free(request.text);
        return status;
    }
    free(request.text);
    if (status != BZ_OK) {
        return status;
    }
    size_t n;
    uint32_t snapshot;
    const int32_t *ids = bz_turn_prompt(t->turn, &n, &snapshot);
    t->prompt_tokens = n;
    status = bz_batch_start(p->batch, ids, n, &go, &t->slot, err);
    if (status == BZ_OK) {
        p->in_slot[t->slot] = t;
    }
    return status;
}

/* An invalid line is a result with an error; only errors that concern all lines are returned. */
static bz_status start_task(prompts_run *p, task *t, const char *text, size_t len, bz_error *err)
{
    prompt_line line = {0};
    settings s = {0};
    bz_status status = prompt_line_read(&line, text, len, &t->error);
    if (line.id && !take_id(t, line.id)) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt.");
    } else if (status == BZ_OK) {
        status = settings_fill(&s, &line.own, err);
        if (status == BZ_OK) {
            status = settings_fill(&s, &p->r->given, err);
        }
        if (status == BZ_OK) {
            status = settings_fill(&s, &p->r->made, err);
        }
        if (status == BZ_OK) {
            t->seed = line.own.set[SET_SEED] ? line.own.seed
                                             : prompts_seed(s.set[SET_SEED] ? s.seed : 0, t->line);
            start_line(p, t, &line, &s, &t->error);
        }
    } else {
        status = BZ_OK;
    }
    t->done = t->done || t->error.code != BZ_OK;
    if (t->error.code == BZ_OUT_OF_MEMORY) {
        *err = t->error;
        status = BZ_OUT_OF_MEMORY;
    }
    settings_free(&s);
    prompt_line_free(&line);
    return status;
}

/* Reads the next line that has no result yet; p->in.ended: there is none. */
static bz_status next_line(prompts_run *p, char key[JOURNAL_KEY], bz_error *err)
{
    for (;;) {
        bz_status status = prompts_input_next(&p->in, err);
        if (status == BZ_OK && p->in.ended) {
            return interrupt_stop() ? BZ_OK : journal_check_end(p->journal, err);
        }
        bool has = false;
        if (status == BZ_OK) {
            snprintf(key, JOURNAL_KEY, "%016llx",
                     (unsigned long long)prompts_hash(p->hash, p->in.text, p->in.len));
            status = journal_has(p->journal, p->in.line, key, &has, err);
        }
        if (status != BZ_OK || !has) {
            return status;
        }
        p->already++;
    }
}

static uint32_t running(const prompts_run *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < BZ_BATCH_MAX_SLOTS; i++) {
        n += p->in_slot[i] != NULL;
    }
    return n;
}

static bz_status fill_slots(prompts_run *p, bz_error *err)
{
    bz_status status = BZ_OK;
    while (status == BZ_OK && !p->in.ended && p->n < WINDOW && running(p) < p->parallel &&
           !interrupt_stop()) {
        task *t = &p->tasks[(p->first + p->n) % WINDOW];
        status = next_line(p, t->key, err);
        if (status == BZ_OK && !p->in.ended) {
            t->line = p->in.line;
            p->n++;
            status = start_task(p, t, p->in.text, p->in.len, err);
        }
        if (status == BZ_OK) {
            status = write_done(p, err); /* invalid lines need no slot */
        }
    }
    return status;
}

static bz_status answer_all(prompts_run *p, bz_error *err)
{
    bz_status status = BZ_OK;
    do {
        status = fill_slots(p, err);
        if (status == BZ_OK && running(p)) {
            status = bz_batch_step(p->batch, on_token, p, err);
        }
        if (status == BZ_OK && p->failed.code) {
            *err = p->failed;
            status = err->code;
        }
        if (status == BZ_OK) {
            status = write_done(p, err);
        }
        if (interrupt_stop()) {
            return bz_fail(err, BZ_ABORTED, "Interrupted; the same command continues from here.");
        }
    } while (status == BZ_OK && (p->n || !p->in.ended));
    return status;
}

/* ---- the run -------------------------------------------------------------------------------- */

static bz_status open_all(prompts_run *p, bz_error *err)
{
    const run_state *r = p->r;
    const cli_options *o = r->o;
    settings s;
    bz_status status = prompts_input_open(&p->in, o->prompts, err);
    if (status == BZ_OK) {
        status = journal_open(&p->journal, o->out && strcmp(o->out, "-") != 0 ? o->out : NULL, err);
    }
    if (status == BZ_OK) {
        status = run_settings(r, &s, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    if (!r->given.set[SET_SEED] && !r->made.set[SET_SEED]) {
        s.set[SET_SEED] = false; /* without --seed a run is repeatable */
    }
    p->hash = hash_of_settings(r, &s);
    const uint32_t context = run_context(r, &s);
    p->session_options = (bz_session_options){.size = sizeof p->session_options,
                                              .context = context,
                                              .threads = o->threads,
                                              .chunk = o->chunk,
                                              .kernels = o->kernels,
                                              .kv = o->kv};
    const bz_batch_options bo = {.size = sizeof bo,
                                 .slots = p->parallel,
                                 .context = context,
                                 .chunk = o->chunk,
                                 .threads = o->threads,
                                 .kernels = o->kernels,
                                 .kv = o->kv};
    status = bz_batch_new(&p->batch, r->m.model, &bo, err);
    status = status == BZ_OK ? adapters_use_batch(&r->m, p->batch, err) : status;
    settings_free(&s);
    return status;
}

static void report(const prompts_run *p, double seconds)
{
    fprintf(stderr, "bezel: %llu answered", (unsigned long long)p->answered);
    if (journal_was_cut(p->journal)) {
        fprintf(stderr, ", an incomplete last line of %s was dropped", p->r->o->out);
    }
    if (p->already) {
        fprintf(stderr, ", %llu already had results", (unsigned long long)p->already);
    }
    const uint64_t failed = p->failed_lines + journal_failed(p->journal);
    if (failed) {
        fprintf(stderr, ", %llu failed (see \"error\")", (unsigned long long)failed);
    }
    fprintf(stderr, "; %llu tokens in %.1f s, %.1f tokens/s\n", (unsigned long long)p->tokens,
            seconds, (double)p->tokens / (seconds > 1e-3 ? seconds : 1e-3));
    if (p->r->verbose) {
        fprintf(stderr, "bezel: %llu prompt tokens reused\n",
                (unsigned long long)bz_batch_reused(p->batch));
    }
}

int run_prompts(run_state *r)
{
    prompts_run *p = calloc(1, sizeof *p);
    bz_error err = {0};
    int code = EXIT_OK;
    if (!p) {
        bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for a file of prompts.");
        return cli_error(&err);
    }
    p->r = r;
    p->parallel = r->o->parallel ? r->o->parallel : DEFAULT_PARALLEL;
    p->parallel = bz_model_canvas(r->m.model) && p->parallel <= BZ_BATCH_MAX_SLOTS
                      ? 1
                      : p->parallel; /* a diffusion model answers one at a time */
    if (p->parallel > BZ_BATCH_MAX_SLOTS) {
        code = cli_usage_error("run", "'--parallel' must be from 1 to %d.", BZ_BATCH_MAX_SLOTS);
    } else if (!prompts_input_shard(&p->in, r->o->shard)) {
        code = cli_usage_error("run", "'--shard' must be I/N with I from 0 to N, not '%s'.",
                               r->o->shard);
    } else {
        const double start = cli_seconds();
        bz_status status = open_all(p, &err);
        if (status == BZ_OK) {
            term_busy("answering");
            p->lines = term_has_lines() ? prompts_input_count(&p->in) : 0;
            status = answer_all(p, &err);
            term_idle();
        }
        if (p->batch && !r->o->quiet && (status == BZ_OK || status == BZ_ABORTED)) {
            report(p, cli_seconds() - start);
        }
        const bool lines_failed = p->failed_lines || (p->journal && journal_failed(p->journal));
        bz_error late = {0};
        if (journal_close(p->journal, &late) != BZ_OK && status == BZ_OK) {
            err = late;
            status = late.code;
        }
        code = status != BZ_OK ? cli_error(&err) : lines_failed ? EXIT_FAILED : EXIT_OK;
    }
    while (p->n) {
        prompts_task_free(&p->tasks[p->first]);
        p->first = (p->first + 1) % WINDOW;
        p->n--;
    }
    bz_batch_free(p->batch);
    bz_session_free(p->media_session);
    prompts_input_close(&p->in);
    free(p);
    return code;
}
