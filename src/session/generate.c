/* The job that generates an answer, token by token. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bezel_diffusion.h"
#include "session/constraint.h"
#include "session/draft.h"
#include "session/job.h"
#include "model/hints.h"
#include "session/recover.h"
#include "sample/random.h"
#include "sample/sampler.h"
#include "session/session.h"
#include "session/emit.h"

enum { MAX_FEEDS = 64 }; /* tokens that a grammar prescribes, fed in one pass */
enum { DRY = 8 };        /* tokens without drafts after which passes are sent ahead again */

typedef struct generate_job {
    bz_job job;
    bz_session *s;
    uint64_t seed;
    bz_emit emit;
    bz_constraint *constraint; /* NULL: the answer is free */
    bool log_probs;

    int32_t token; /* to be fed back */
    bool in_pass, feed;
    /* Prescribed tokens are reported without logits, and fed together when a token must be chosen.
     * `token` is the last of them. */
    int32_t feeds[MAX_FEEDS];
    uint32_t n_feeds;    /* 0: `token` alone is fed */
    bool feeding_many;   /* in the pass that runs */
    uint32_t not_wanted; /* tokens of the device that the grammar did not allow */

    bz_drafts drafts;
    bool drafting;                         /* the pass that runs is the drafter's */
    bool verifying;                        /* it has rows of drafts, */
    bool by_lists;                         /* and ends in a list for each row, */
    bool drafts_sent;                      /* before it, on the device */
    bz_shortlist lists[BZ_MAX_DRAFTS + 1]; /* which are these */

    /* Where the device ranks its logits itself, passes are sent before the host has checked the
     * tokens before them. The device continues with its own choice; passes that turn out to be
     * superfluous or wrong are discarded. */
    uint32_t max_ahead; /* passes in flight at most; 0: rows of logits are read */
    uint32_t ahead;     /* at most now: drafts are found after a token that is known */
    uint32_t dry;       /* tokens since the last drafts */
    uint32_t end;       /* no position from here on is computed */
    bool begun;         /* `max_ahead` is set */
    bool requested;     /* the device has the top-k request */
    bool listed;        /* the next token is chosen from `list`, else from the session's logits */
    bool getting_row, has_row;
    uint32_t rows_missed; /* times the list was too short */
    bz_shortlist list;
    int32_t guess;
} generate_job;

static void free_generate(bz_job *job)
{
    generate_job *j = (generate_job *)(void *)job;
    bz_session_end_job(j->s);
    bz_emit_free(&j->emit);
    bz_constraint_free(j->constraint);
    bz_drafts_free(&j->drafts);
    free(j);
}

/* Penalties depend on tokens that are not known yet. */
static bool can_run_ahead(const generate_job *j)
{
    const bz_session *s = j->s;
    return s->backend->can_run_ahead(s->backend) && bz_sampler_edits(s->sampler)->window == 0;
}

static void limit_ahead(generate_job *j, uint32_t most)
{
    j->max_ahead = j->max_ahead < most ? j->max_ahead : most;
    j->ahead = j->ahead < most ? j->ahead : most;
}

/* How passes are sent on the current device. */
static void begin_on_device(generate_job *j)
{
    const bz_session *s = j->s;
    const bool lists = s->ahead && !bz_sampler_needs_rows(s->sampler);
    j->begun = true;
    j->max_ahead = j->ahead = !lists ? 0 : can_run_ahead(j) ? s->ahead : 1;
    j->drafts.on_device = j->drafts.kind == BZ_DRAFT_MODEL && lists && can_run_ahead(j);
    j->dry = 0;
}

/* Whether passes may be sent ahead depends on how long ago there were drafts. */
static void note_drafts(generate_job *j, bool found)
{
    if (j->drafts.kind > BZ_DRAFT_OFF) {
        j->dry = found ? 0 : j->dry + 1;
        j->ahead = j->max_ahead && j->dry < DRY ? 1 : j->max_ahead;
    }
}

/* The list of the row that counts now. */
static bz_status take_list(generate_job *j, bz_error *err)
{
    j->list = j->lists[j->drafts.used - 1];
    j->listed = true;
    j->has_row = false;
    return bz_shortlist_check(&j->list, err);
}

/* A pass over the token to be fed and rows - 1 drafts after it. Edits differ from row to row if
 * they depend on the tokens before, so then rows of logits are read. */
static bz_status start_rows(generate_job *j, uint32_t rows, bz_error *err)
{
    bz_session *s = j->s;
    j->verifying = rows > 1;
    j->by_lists = j->verifying && j->ahead && bz_sampler_edits(s->sampler)->window == 0;
    bz_drafts_pass(&j->drafts, s, rows);
    if (j->by_lists || (j->ahead && !j->verifying)) {
        return BZ_OK; /* the next step sends it */
    }
    return bz_session_start_pass(s, s->n, rows, rows, j->verifying ? PASS_ALL : PASS_LAST, err);
}

/* Sends the token to be fed, unless it is in flight, and as many after it as allowed. */
static bz_pass_state send_passes(generate_job *j, bz_error *err)
{
    bz_session *s = j->s;
    while (s->sent < j->ahead && (s->sent == 0 || s->n + s->sent < j->end)) {
        const uint32_t at = s->n + s->sent;
        const bool first = s->sent == 0,
                   fresh = !j->requested || bz_sampler_edits(s->sampler)->window;
        if (first) {
            s->tokens[at] = j->token; /* unused until the pass is done */
            bz_sampler_see(s->sampler, s->tokens, at + 1);
        }
        const bz_topk_request request = bz_sampler_topk_request(s->sampler);
        bz_pass_state state = bz_session_send(s, first ? j->token : -1, fresh ? &request : NULL,
                                              bz_random_unit(j->seed, at + 1), err);
        if (state != BZ_PASS_DONE) {
            return first ? state : BZ_PASS_DONE; /* passes ahead are optional */
        }
        j->requested = true;
    }
    return BZ_PASS_DONE;
}

/* Sends a pass over the token to be fed and the drafts after it, or receives its lists. */
static bz_pass_state step_lists(generate_job *j, bz_error *err)
{
    bz_session *s = j->s;
    bz_pass_state state = BZ_PASS_DONE;
    if (s->sent == 0 && j->drafts.on_device && !j->drafts_sent) {
        state = bz_session_send_drafts(s, j->drafts.rows - 1, err);
        if (state != BZ_PASS_DONE) {
            return state;
        }
        j->drafts_sent = true;
    }
    if (s->sent == 0) {
        const bz_topk_request request = bz_sampler_topk_request(s->sampler);
        double u[BZ_MAX_DRAFTS + 1];
        for (uint32_t i = 0; i < j->drafts.rows; i++) {
            u[i] = bz_random_unit(j->seed, s->n + i + 1);
        }
        state = bz_session_send_rows(
            s, j->drafts.rows, j->drafts_sent ? BZ_FEED_DRAFTS : BZ_FEED_IDS, &request, u, err);
    }
    state = state == BZ_PASS_DONE ? bz_session_receive_rows(s, j->lists, err) : state;
    if (state == BZ_PASS_DONE) {
        j->verifying = j->drafts_sent = false;
        bz_drafts_passed(&j->drafts, s);
        state = take_list(j, err) == BZ_OK ? state : BZ_PASS_ERROR;
    }
    return state;
}

/* The pass of the token fed, or the reading of logits that turned out to be needed. */
static bz_pass_state step_pass(generate_job *j, bz_error *err)
{
    if (j->drafting) {
        uint32_t rows = 0;
        const bz_pass_state state = bz_drafts_step(&j->drafts, j->s, &rows, err);
        if (state != BZ_PASS_DONE) {
            return state;
        }
        j->drafting = false;
        return start_rows(j, rows, err) == BZ_OK ? BZ_PASS_AGAIN : BZ_PASS_ERROR;
    }
    if (j->verifying && j->by_lists) {
        return step_lists(j, err);
    }
    if (j->ahead == 0 || j->getting_row || j->verifying) {
        bz_pass_state state =
            j->verifying ? bz_session_verify_step(j->s, err) : bz_session_pass_step(j->s, err);
        if (state == BZ_PASS_DONE) {
            j->has_row = true;
            j->getting_row = j->feeding_many = j->verifying = false;
            bz_drafts_passed(&j->drafts, j->s);
        }
        return state;
    }
    bz_pass_state state = send_passes(j, err);
    if (state == BZ_PASS_DONE) {
        state = bz_session_receive(j->s, &j->list, &j->guess, err);
    }
    if (state == BZ_PASS_DONE) {
        j->listed = true;
        j->has_row = false;
        bz_drafts_passed(&j->drafts, j->s);
        state = bz_shortlist_check(&j->list, err) == BZ_OK ? state : BZ_PASS_ERROR;
    }
    return state;
}

static bz_status get_row(generate_job *j, bool there, bz_error *err)
{
    bz_session_forget(j->s);
    j->in_pass = j->getting_row = true;
    return bz_session_row(j->s, there, j->drafts.used ? j->drafts.used - 1 : 0, err);
}

/* Tells the sampler which tokens the grammar allows. */
static bz_status allow(generate_job *j, bz_error *err)
{
    const uint64_t *bits = NULL;
    uint32_t n = 0;
    if (!j->constraint) {
        return BZ_OK;
    }
    const int32_t forced = bz_constraint_forced(j->constraint);
    bz_status status = BZ_OK;
    if (forced >= 0) { /* with log-probabilities: it is chosen like others */
        bits = bz_constraint_only(j->constraint, forced);
        n = 1;
    } else {
        status = bz_constraint_allowed(j->constraint, &bits, &n, err);
    }
    bz_sampler_allow(j->s->sampler, bits, n);
    return status;
}

/* A token that the grammar prescribes needs no logits, unless its log-probability is wanted. */
static int32_t prescribed(generate_job *j)
{
    return j->constraint && !j->log_probs ? bz_constraint_forced(j->constraint) : -1;
}

/* AGAIN: the logits must be read first. */
static bz_progress choose(generate_job *j, bz_choice *choice, bz_error *err)
{
    bz_session *s = j->s;
    if (allow(j, err) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    const double u =
        bz_random_unit(j->seed, s->n); /* by position: two jobs produce the same answer as one */
    const float *row = j->listed && !j->has_row ? NULL : s->logits;
    if (row) { /* also where a list was too short: then the host computes the sums, too */
        bz_sampler_see(s->sampler, s->tokens, s->n);
        if (bz_sampler_shortlist(s->sampler, s->logits, &j->list, err) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
    }
    if (!bz_sampler_choose(s->sampler, &j->list, row, u, choice)) {
        bool there = s->sent == 0;
        j->rows_missed++;
        if (!there && j->rows_missed * 8 > j->emit.limits.made + 8) {
            limit_ahead(j, 1); /* most passes sent ahead would be discarded */
        }
        return get_row(j, there, err) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    if (s->sent && choice->id != j->guess) {
        bz_session_forget(s); /* the device continued with another token */
        j->not_wanted += j->constraint != NULL;
        if (j->not_wanted * 4 > j->emit.limits.made + 4) {
            limit_ahead(j,
                        1); /* too many passes ahead are discarded: it does not know the grammar */
        }
    }
    j->listed = j->has_row = false;
    return BZ_JOB_DONE;
}

/* With the context or the limit reached the last token is fed too, so that the session can continue
 * after it. */
static size_t finish_token(generate_job *j)
{
    size_t len;
    const uint32_t held = j->s->n + (j->n_feeds ? j->n_feeds - 1 : 0);
    j->job.finish = bz_emit_push(&j->emit, j->token, held + 1 == j->s->context, &len);
    j->feed = j->job.finish != BZ_FINISH_END && j->job.finish != BZ_FINISH_STOP;
    return len;
}

/* The event of a chosen token. */
static bz_progress report(generate_job *j, const bz_choice *choice, bz_need *need)
{
    j->token = choice->id;
    j->feeds[j->n_feeds++] = choice->id;
    j->s->stats.generated++;
    const size_t len = finish_token(j);
    if (j->constraint && j->feed &&
        bz_constraint_take(j->constraint, j->token, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    need->event = (bz_event){.kind = BZ_EVENT_TOKEN,
                             .done = j->emit.limits.made,
                             .token = j->token,
                             .text = j->emit.text,
                             .text_len = len,
                             .log_prob = choice->log_prob,
                             .top = choice->top,
                             .n_top = choice->n_top};
    return BZ_JOB_EVENT;
}

static bz_progress report_prescribed(generate_job *j, bz_need *need)
{
    const bz_choice choice = {.id = prescribed(j)};
    return report(j, &choice, need);
}

/* A pass over the token reported last, and over drafts after it. */
static bz_status feed_token(generate_job *j, bz_error *err)
{
    bz_session *s = j->s;
    s->tokens[s->n] = j->token; /* belongs to the session when the pass is done */
    const uint32_t wanted = bz_drafts_wanted(&j->drafts, s, j->end);
    uint32_t rows = 1 + wanted;
    if (j->drafts.kind == BZ_DRAFT_LOOKUP) {
        rows = bz_drafts_look_up(&j->drafts, s, wanted);
    }
    note_drafts(j, rows > 1);
    if (s->sent) { /* the token's pass is in flight, with others after it; drafts have to wait */
        return start_rows(j, 1, err);
    }
    if (wanted && j->drafts.kind == BZ_DRAFT_MODEL && !j->drafts.on_device) {
        j->drafting = true;
        return bz_drafts_start(&j->drafts, s, wanted, err);
    }
    return start_rows(j, rows, err);
}

/* The token to be fed is the next draft: its row of the last pass is used instead of another one.
 */
static bz_status use_row(generate_job *j, bz_error *err)
{
    bz_session *s = j->s;
    j->feed = false;
    if (j->by_lists) {
        s->n++;
        return take_list(j, err);
    }
    j->has_row = true;
    return bz_session_take_row(s, s->n - s->first, err);
}

static bz_progress work_generate(bz_job *job, bz_need *need)
{
    generate_job *j = (generate_job *)(void *)job;
    bz_session *s = j->s;
    if (!j->begun) {
        begin_on_device(j);
    }
    if (j->in_pass) {
        bz_pass_state state = step_pass(j, &need->error);
        if (state != BZ_PASS_DONE) {
            return bz_session_progress(s, state, need);
        }
        j->in_pass = false;
    }
    if (j->feed && j->n_feeds == 1 && bz_drafts_confirm(&j->drafts, s, j->token)) {
        if (use_row(j, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
    }
    if (j->feed && job->finish == BZ_FINISH_NONE && j->n_feeds < MAX_FEEDS &&
        j->n_feeds < s->chunk && prescribed(j) >= 0) {
        return report_prescribed(j, need);
    }
    if (j->feed && j->n_feeds > 1) {
        bz_session_forget(s);
        bz_drafts_drop(&j->drafts);
        if (bz_session_pass(s, j->feeds, j->n_feeds, PASS_LAST, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->feed = false;
        j->in_pass = j->getting_row = j->feeding_many = true;
        return BZ_JOB_AGAIN;
    }
    if (j->feed) { /* the last reported token becomes part of the sequence */
        if (feed_token(j, &need->error) != BZ_OK) {
            return BZ_JOB_ERROR;
        }
        j->feed = false;
        j->in_pass = true;
        return BZ_JOB_AGAIN;
    }
    if (job->finish == BZ_FINISH_NONE && s->n == s->context) {
        job->finish = BZ_FINISH_CONTEXT; /* full before the first token */
    }
    if (job->finish != BZ_FINISH_NONE) {
        return BZ_JOB_DONE;
    }
    j->n_feeds = 0;
    if (prescribed(j) >= 0) { /* the first token, or after a pass over others */
        bz_session_forget(s);
        j->listed = j->has_row = false;
        return report_prescribed(j, need);
    }
    if (!j->listed && !s->has_logits) { /* the previous job read lists */
        return get_row(j, false, &need->error) == BZ_OK ? BZ_JOB_AGAIN : BZ_JOB_ERROR;
    }
    bz_choice choice;
    bz_progress chosen = choose(j, &choice, &need->error);
    return chosen == BZ_JOB_DONE ? report(j, &choice, need) : chosen;
}

/* Passes in flight are lost: the last reported token is fed again, and logits that were needed are
 * computed. */
static void restart_generate(bz_job *job)
{
    generate_job *j = (generate_job *)(void *)job;
    j->feed |= j->in_pass && (!j->getting_row || j->feeding_many);
    j->feeding_many = j->drafting = j->drafts_sent = j->verifying = false;
    bz_drafts_drop(&j->drafts);
    j->in_pass = j->getting_row = j->has_row = false;
    j->listed = false;
    j->requested = false;
    j->begun = false;
}

static bz_progress step_generate(bz_job *job, bz_need *need)
{
    return bz_session_work(((generate_job *)(void *)job)->s, job, work_generate, restart_generate,
                           need);
}

/* Copies what the options point to and readies the session's sampler. */
static bz_status fill_generate(generate_job *j, const bz_generate_options *o, bz_error *err)
{
    bz_session *s = j->s;
    bz_status status = bz_emit_begin(&j->emit, s->model, o, err);
    if (status != BZ_OK) {
        return status;
    }
    bz_sampling sampling = o->sampling;
    bz_hints_sampling(s->model->set.main, &sampling);
    j->end = o->max_tokens && o->max_tokens < s->context - s->n ? s->n + o->max_tokens : s->context;
    j->log_probs = o->log_probs || o->top_log_probs;
    status = bz_sampler_begin(s->sampler, &sampling, o->log_probs, o->top_log_probs, err);
    if (status == BZ_OK && o->grammar) {
        status = o->ignore_end ? bz_fail(err, BZ_BAD_REQUEST,
                                         "A grammar says where the answer ends, so end tokens "
                                         "cannot be ignored.")
                               : bz_constraint_new(&j->constraint, s->model, o->grammar, err);
    }
    if (status == BZ_OK && j->constraint) {
        status = bz_sampler_begin_masks(s->sampler, err);
    }
    return status == BZ_OK ? bz_drafts_begin(&j->drafts, s, o->draft, o->drafts, err) : status;
}

bz_status bz_session_generate(bz_session *s, const bz_generate_options *options, bz_job **out,
                              bz_error *err)
{
    bz_generate_options o;
    const bz_status read = BZ_READ_GENERATE(&o, options, err);
    if (read != BZ_OK) {
        return read;
    }
    if (s->model->text.config.canvas && o.grammar) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A diffusion model writes many tokens at once, so its answer cannot follow "
                       "a grammar or schema; use another model.");
    }
    if (s->model->text.config.canvas && o.draft > BZ_DRAFT_OFF) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "A diffusion model writes many tokens at once, so there is nothing to "
                       "draft.");
    }
    if (s->model->text.config.canvas) {
        return bz_session_diffuse(s, &o, NULL, out, err);
    }
    if (s->busy) {
        return bz_fail(err, BZ_BAD_REQUEST, "The session is busy with another job.");
    }
    if (!s->has_logits && !s->logits_on_device) {
        return bz_fail(err, BZ_BAD_REQUEST, "Prefill a prompt before generating.");
    }
    generate_job *j = calloc(1, sizeof *j);
    if (!j) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a generation job.");
    }
    *j = (generate_job){.job = {.step = step_generate,
                                .free = free_generate,
                                .lock = bz_model_lock(s->model),
                                .uses = s->model},
                        .s = s,
                        .seed = o.sampling.seed};
    bz_status status = fill_generate(j, &o, err);
    if (status != BZ_OK) {
        free_generate(&j->job);
        return status;
    }
    bz_session_begin_job(s);
    *out = &j->job;
    return BZ_OK;
}
