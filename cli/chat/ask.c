#include "cli/chat/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/chat/media_file.h"
#include "cli/term.h"

const char *ask_finish_name(bz_finish finish)
{
    static const char *const names[] = {"interrupted", "end", "stop", "length", "context"};
    return names[finish];
}

void ask_answer_free(ask_answer *a)
{
    free(a->text.text);
    free(a->thinking.text);
    free(a->calls.text);
    *a = (ask_answer){0};
}

bz_str ask_answer_calls(ask_answer *a)
{
    if (a->calls.n && a->calls.text[a->calls.n - 1] != ']') {
        bz_json_to_buffer(&a->calls, "]", 1);
    }
    return (bz_str){a->calls.text, a->calls.n};
}

static bool append(bz_json_buffer *to, const char *text, size_t len)
{
    return len == 0 || bz_json_to_buffer(to, text, len);
}

bool ask_answer_keep(ask_answer *a, bz_turn_part part, const char *text, size_t len)
{
    switch (part) {
    case BZ_TURN_ANSWER:
    case BZ_TURN_BROKEN_CALL: return append(&a->text, text, len);
    case BZ_TURN_THINKING: return append(&a->thinking, text, len);
    case BZ_TURN_CALL: {
        const char *open = a->calls.n ? ",{\"function\":" : "[{\"function\":";
        return append(&a->calls, open, strlen(open)) && append(&a->calls, text, len) &&
               append(&a->calls, "}", 1);
    }
    case BZ_TURN_CALL_BEGIN:
    case BZ_TURN_NOTHING:
    case BZ_TURN_END: break;
    }
    return true;
}

/* ---- the answer -------------------------------------------------------------------- */

typedef struct asking {
    const ask_options *o;
    const bz_model *model;
    bz_turn *turn;
    ask_answer *a;
    bool quiet; /* no part yet: the progress line may show */
    bool ended; /* the turn has ended, by an end token or a stop string */
    bool full;  /* no memory */

    const bz_session *session; /* until the first step of a prefill has told what it reuses */
    uint64_t reused_before;
} asking;

static void drain(asking *k)
{
    const char *text;
    size_t len;
    bz_turn_part part;
    while ((part = bz_turn_next(k->turn, &text, &len)) != BZ_TURN_NOTHING) {
        if (part == BZ_TURN_END) {
            k->ended = true;
            continue;
        }
        if (k->quiet && (part != BZ_TURN_THINKING || k->o->reports_thinking)) {
            k->quiet = false;
            term_idle();
        }
        k->full = !ask_answer_keep(k->a, part, text, len) || k->full;
        if (k->o->on_part) {
            k->o->on_part(k->o->user, part, text, len);
        }
    }
}

/* ---- jobs --------------------------------------------------------------------------- */

/* Draws the canvas, or counts its steps on the progress line. */
static void on_canvas(asking *k, const bz_job *job, const bz_event *e)
{
    if (!k->o->canvas) {
        term_progress(e->done, e->total, "steps");
        return;
    }
    if (k->quiet) {
        k->quiet = false;
        term_idle();
    }
    k->o->canvas(k->o->user, job, e);
}

static bz_status on_event(asking *k, const bz_event *e, bz_error *err)
{
    if (e->kind == BZ_EVENT_PROGRESS) {
        term_progress(e->done, e->total, "tokens");
        return BZ_OK;
    }
    if (e->kind != BZ_EVENT_TOKEN) {
        return BZ_OK;
    }
    if (k->quiet) {
        term_progress(e->done, 0, "tokens");
    }
    if (k->o->generate.ignore_end && bz_token_ends(k->model, e->token)) {
        return BZ_OK;
    }
    bz_status status = bz_turn_push(k->turn, e->token, err);
    if (status == BZ_OK) {
        drain(k);
    }
    return k->full ? bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.") : status;
}

/* The speed of a prompt, and so the time left, counts from the tokens that are reused. */
static void begin_progress(asking *k)
{
    if (k->session) {
        term_progress(bz_session_get_stats(k->session).reused - k->reused_before,
                      k->a->prompt_tokens, "tokens");
        k->session = NULL;
    }
}

/* Steps a job until it is done, the turn has ended or the user pressed Ctrl-C, which is checked
 * between steps of a few milliseconds. */
static bz_status run(asking *k, bz_job *job, bz_error *err)
{
    while (!k->ended) {
        if (interrupt_stop()) {
            return bz_fail(err, BZ_ABORTED, "Interrupted.");
        }
        bz_need need = {0};
        bz_status status = BZ_OK;
        switch (bz_job_step(job, &need)) {
        case BZ_JOB_AGAIN:
        case BZ_JOB_NEED_GPU: begin_progress(k); break;
        case BZ_JOB_NEED_BYTES:
            return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
        case BZ_JOB_EVENT:
            if (need.event.kind == BZ_EVENT_CANVAS) {
                on_canvas(k, job, &need.event);
            } else {
                status = on_event(k, &need.event, err);
            }
            break;
        case BZ_JOB_DONE: return BZ_OK;
        case BZ_JOB_ERROR: *err = need.error; return need.error.code;
        }
        if (status != BZ_OK) {
            return status;
        }
    }
    return BZ_OK;
}

static void busy(asking *k, const char *what)
{
    k->quiet = k->o->show_progress;
    if (k->quiet) {
        term_busy(what);
    }
}

/* How many media of the request before the i-th have the same source. */
static size_t named_before(const bz_turn *turn, size_t i)
{
    const char *source, *other;
    size_t len, other_len, n = 0;
    const bz_media_kind kind = bz_turn_media_source(turn, i, &source, &len);
    for (size_t j = 0; j < i; j++) {
        n += bz_turn_media_source(turn, j, &other, &other_len) == kind && other_len == len &&
             memcmp(other, source, len) == 0;
    }
    return n;
}

/* Attaches image or audio i of the request: from the cache, else from the file that it names. */
static bz_status attach_one(asking *k, size_t i, bz_error *err)
{
    const char *source;
    size_t len;
    const bz_media_kind kind = bz_turn_media_source(k->turn, i, &source, &len);
    const bz_media *known =
        k->o->cache ? media_cache_find(k->o->cache, kind, source, len, named_before(k->turn, i))
                    : NULL;
    if (known) {
        return bz_turn_attach(k->turn, i, known, err);
    }
    const media_file_options fo = {.progress = k->o->show_progress,
                                   .video_frames = k->o->video_frames};
    char *path = bz_text_copy(source, len);
    bz_media *media = NULL;
    bz_status status = path ? media_file_encode(k->o->encoder, kind, path, &fo, &media, err)
                            : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    if (status == BZ_OK) {
        status = bz_turn_attach(k->turn, i, media, err);
    }
    free(path);
    if (status != BZ_OK || !k->o->cache) {
        bz_media_free(media);
        return status;
    }
    return media_cache_add(k->o->cache, kind, source, len, media)
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image.");
}

static bz_status attach(asking *k, bz_error *err)
{
    bz_status status = BZ_OK;
    for (size_t i = 0; i < bz_turn_media(k->turn) && status == BZ_OK; i++) {
        status = attach_one(k, i, err);
    }
    return status;
}

static bz_status prefill(asking *k, bz_session *session, bz_error *err)
{
    uint32_t snapshot_at;
    size_t n;
    bz_turn_prompt(k->turn, &n, &snapshot_at);
    const double start = cli_seconds();
    const uint64_t reused = bz_session_get_stats(session).reused;
    bz_job *job = NULL;
    k->a->prompt_tokens = n;
    bz_status status = bz_turn_prefill(session, k->turn, &job, err);
    if (status == BZ_OK) {
        busy(k, "reading the prompt");
        k->session = session;
        k->reused_before = reused;
        status = run(k, job, err);
        k->session = NULL;
    }
    bz_job_free(job);
    k->a->prompt_s = cli_seconds() - start;
    k->a->reused = bz_session_get_stats(session).reused - reused;
    return status;
}

static bz_status generate(asking *k, bz_session *session, bz_error *err)
{
    const double start = cli_seconds();
    const uint64_t generated = bz_session_get_stats(session).generated;
    const bz_draft_stats before = bz_session_get_draft_stats(session);
    bz_job *job = NULL;
    bool has_seed;
    bz_generate_options go = k->o->generate;
    go.grammar = bz_turn_options(k->turn, &has_seed)->grammar;
    bz_status status = bz_session_generate(session, &go, &job, err);
    if (status == BZ_OK) {
        busy(k, "thinking");
        status = run(k, job, err);
        k->a->finish = bz_job_finish(job);
    }
    bz_job_free(job);
    k->a->generate_s = cli_seconds() - start;
    k->a->generated = bz_session_get_stats(session).generated - generated;
    const bz_draft_stats after = bz_session_get_draft_stats(session);
    k->a->drafted = after.drafted - before.drafted;
    k->a->accepted = after.accepted - before.accepted;
    return status;
}

static bz_status fit(asking *k, bz_error *err)
{
    const bz_status status = k->o->fit ? bz_turn_fit(k->turn, k->o->fit, true, err) : BZ_OK;
    uint32_t snapshot_at;
    size_t n;
    bz_turn_prompt(k->turn, &n, &snapshot_at);
    k->a->left_out = bz_turn_left_out(k->turn);
    if (k->a->left_out && k->o->on_shift && n < k->o->fit) { /* else it is not asked */
        k->o->on_shift(k->o->shift_user, k->turn);
    }
    return status;
}

bz_status ask(bz_session *session, const bz_model *model, const char *request, size_t len,
              const ask_options *o, ask_answer *a, bz_error *err)
{
    *a = (ask_answer){.seed = o->generate.sampling.seed};
    asking k = {.o = o, .model = model, .a = a};
    bz_status status = o->encoder ? bz_turn_new_media(&k.turn, model, request, len, err)
                                  : bz_turn_new(&k.turn, model, request, len, err);
    if (status != BZ_OK) {
        return status;
    }
    status = attach(&k, err);
    if (status == BZ_OK) {
        status = fit(&k, err);
    }
    if (status == BZ_OK) {
        status = prefill(&k, session, err);
    }
    if (status == BZ_OK) {
        status = generate(&k, session, err);
    }
    if (status == BZ_OK ||
        status == BZ_ABORTED) { /* text held back for stop strings belongs to the answer */
        if (!k.ended && bz_turn_push(k.turn, -1, err) == BZ_OK) {
            drain(&k);
        }
        a->finish = status == BZ_ABORTED ? BZ_FINISH_NONE : bz_turn_finish(k.turn, a->finish);
        status = BZ_OK;
    }
    term_idle();
    bz_turn_free(k.turn);
    return status;
}
