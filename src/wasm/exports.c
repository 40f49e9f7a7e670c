/* Functions that JavaScript calls: bezel.h with numbers as arguments; media.c has images and audio.
 * Addresses that are none of handles.h are refused, by those with a host with an error.
 * web/package/src/wasm.ts declares the same functions. Texts are passed as pointer and length, in
 * memory of `alloc`, and stay the caller's. */
#include "bezel_media.h"

#if defined(__wasm__)

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sha256.h"
#include "bezel_diffusion.h"
#include "api/inspect.h"
#include "session/session.h"
#include "session/job.h"
#include "text/request.h"
#include "wasm/handles.h"
#include "wasm/host.h"
#include "wasm/options.h"

/* ---- memory and errors --------------------------------------------------------------------- */

EXPORT(alloc) void *wasm_alloc(size_t n)
{
    return handle_add(HANDLE_BLOCK, malloc(n ? n : 1), NULL);
}

/* Also of what sha256_new and stream_new return. */
EXPORT(free) void wasm_free(void *p)
{
    handle_free(HANDLE_BLOCK, p);
    handle_free(HANDLE_SHA, p);
    handle_free(HANDLE_STREAM, p);
}

/* Stays as long as the module does. */
EXPORT(host_new) host *wasm_host_new(void)
{
    return handle_add(HANDLE_HOST, calloc(1, sizeof(host)), NULL);
}

/* A number of JavaScript, which may be negative or no number. */
static uint64_t whole(double x)
{
    return x >= 0 ? x < 9007199254740992.0 ? (uint64_t)x : UINT64_C(9007199254740992) : 0;
}

static bool readable(const void *p, uint64_t n)
{
    const uint64_t size = (uint64_t)__builtin_wasm_memory_size(0) << 16;
    return n == 0 || (p && (uint64_t)(uintptr_t)p + n <= size);
}

static void drop_inputs(host *h)
{
    while (h->n_inputs) {
        free((char *)(uintptr_t)h->inputs[--h->n_inputs].name);
    }
}

EXPORT(report) double *wasm_report(host *h)
{
    if (!handle_is(HANDLE_HOST, h)) {
        return NULL;
    }
    return h->report.numbers;
}

EXPORT(error_code) uint32_t wasm_error_code(const host *h)
{
    if (!handle_is(HANDLE_HOST, h)) {
        return BZ_BAD_REQUEST;
    }
    return h->error.code;
}

EXPORT(error_text) const char *wasm_error_text(const host *h)
{
    if (!handle_is(HANDLE_HOST, h)) {
        return "";
    }
    return h->error.text;
}

EXPORT(status_name) const char *wasm_status_name(uint32_t code)
{
    return bz_status_name((bz_status)code);
}

EXPORT(version) const char *wasm_version(void)
{
    return bz_version();
}

/* ---- checksums ------------------------------------------------------------------------------- */

EXPORT(sha256_new) bz_sha256 *wasm_sha256_new(void)
{
    bz_sha256 *sha = malloc(sizeof *sha);
    if (sha) {
        bz_sha256_begin(sha);
    }
    return handle_add(HANDLE_SHA, sha, NULL);
}

EXPORT(sha256_add) void wasm_sha256_add(bz_sha256 *sha, const void *bytes, uint32_t n)
{
    if (!(handle_is(HANDLE_SHA, sha) && readable(bytes, n))) {
        return;
    }
    bz_sha256_add(sha, bytes, n);
}

/* Where its 64 hexadecimal digits are, terminated; valid until the next call with this host. */
EXPORT(sha256_end) const char *wasm_sha256_end(host *h, bz_sha256 *sha)
{
    if (!handle_check(h, HANDLE_SHA, sha)) {
        return NULL;
    }
    uint8_t digest[BZ_SHA256_BYTES];
    bz_sha256_end(sha, digest);
    bz_sha256_text(digest, h->text);
    return h->text;
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Names one file of the model that model_open will open. 0: it cannot. */
EXPORT(input_add) uint32_t wasm_input_add(host *h, const char *name, uint32_t len, double size)
{
    if (!handle_memory(h, name, len)) {
        return 0;
    }
    char *copy = h->n_inputs < MAX_INPUTS ? malloc(len + (size_t)1) : NULL;
    if (!copy) {
        bz_fail(&h->error, BZ_OUT_OF_MEMORY, "No room for another file.");
        return 0;
    }
    memcpy(copy, name, len);
    copy[len] = 0;
    h->inputs[h->n_inputs++] = (bz_input){.name = copy, .size = whole(size)};
    return 1;
}

EXPORT(model_open) bz_job *wasm_model_open(host *h, const char *json, uint32_t len)
{
    if (!handle_memory(h, json, len)) {
        return NULL;
    }
    bz_arena arena = {0};
    bz_open_options options;
    bz_job *job = NULL;
    if (bz_wasm_open_options(&options, (bz_str){json, len}, &arena, &h->error) == BZ_OK) {
        bz_model_open(&job, h->inputs, h->n_inputs, &options, &h->error);
    }
    bz_arena_free(&arena);
    drop_inputs(h);
    return handle_add(HANDLE_OPEN_JOB, job, NULL);
}

/* 0: it has none, or no more. */
EXPORT(job_model) bz_model *wasm_job_model(bz_job *job)
{
    bz_model *m = handle_is(HANDLE_OPEN_JOB, job) && job->ended && !job->error.code
                      ? bz_job_model(job)
                      : NULL;
    if (m) {
        handle_free(HANDLE_HEADER, m);
        handle_become(HANDLE_OPEN_JOB, job, HANDLE_JOB);
    }
    return handle_add(HANDLE_MODEL, m, NULL);
}

/* Makes the job end after the header. */
EXPORT(job_header_only) const bz_model *wasm_job_header_only(bz_job *job)
{
    if (!handle_is(HANDLE_OPEN_JOB, job) || job->ended) {
        return NULL;
    }
    const bz_model *m = bz_open_header_only(job);
    return handle_is(HANDLE_HEADER, m) ? m : handle_add(HANDLE_HEADER, m, job);
}

/* A model, or the header of a job that has ended. */
static bool inspectable(host *h, const bz_model *m)
{
    const bz_job *job = handle_parent(HANDLE_HEADER, m);
    return (job && job->ended && handle_is(HANDLE_HOST, h)) || handle_check(h, HANDLE_MODEL, m);
}

/* What the header says, as JSON; report: where, how long. The caller frees it. With a job that
 * failed, its error is the verdict. The limits are those of the GPU to ask about; 0: the least that
 * there are. 0: no memory. */
EXPORT(inspect)
char *wasm_inspect(host *h, const bz_model *m, bool refused, double max_buffer, double max_binding)
{
    if (!inspectable(h, m)) {
        return NULL;
    }
    const bz_fit_options fit = {
        .size = sizeof fit, .max_buffer = whole(max_buffer), .max_binding = whole(max_binding)};
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_inspect(&j, m, refused ? &h->error : NULL, &fit);
    if (!bz_json_finish(&j)) {
        bz_fail(&h->error, BZ_OUT_OF_MEMORY, "No memory for the model's facts.");
        free(text.text);
        return NULL;
    }
    h->report.numbers[0] = address(text.text);
    h->report.numbers[1] = (double)text.n;
    return handle_add(HANDLE_BLOCK, text.text, NULL);
}

EXPORT(model_free) void wasm_model_free(bz_model *m)
{
    handle_free(HANDLE_MODEL, m);
}

/* Which of its files is the text model, or its first part. */
EXPORT(model_main) uint32_t wasm_model_main(const bz_model *m)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return m->set.parts[0];
}

EXPORT(model_vocab) uint32_t wasm_model_vocab(const bz_model *m)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return bz_model_vocab(m);
}

EXPORT(model_context) uint32_t wasm_model_context(const bz_model *m)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return bz_model_context(m);
}

/* Tokens of a canvas; 0: it is no diffusion model. */
EXPORT(model_canvas) uint32_t wasm_model_canvas(const bz_model *m)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return bz_model_canvas(m);
}

/* Whether it was opened with a drafter. */
EXPORT(model_drafts) uint32_t wasm_model_drafts(const bz_model *m)
{
    return handle_is(HANDLE_MODEL, m) && m->text.assistant;
}

/* ---- jobs --------------------------------------------------------------------------------------
 */

static uint32_t bad_job(host *h)
{
    handle_check(h, HANDLE_JOB, NULL);
    return BZ_JOB_ERROR;
}

EXPORT(job_step) uint32_t wasm_job_step(host *h, bz_job *job)
{
    if (!(handle_is(HANDLE_HOST, h) &&
          (handle_is(HANDLE_JOB, job) || handle_is(HANDLE_OPEN_JOB, job)))) {
        return bad_job(h);
    }
    bz_need *need = &h->need;
    need->n_reads = 0;
    need->event = (bz_event){0};
    const bz_progress progress = bz_job_step(job, need);
    const bz_event *e = &need->event;
    step_report *r = &h->report.step;
    r->n_reads = progress == BZ_JOB_NEED_BYTES ? need->n_reads : 0;
    for (uint32_t i = 0; i < (uint32_t)r->n_reads; i++) {
        const bz_read *read = &need->reads[i];
        r->reads[i] = (report_read){.file = read->file,
                                    .offset = (double)read->offset,
                                    .length = (double)read->length,
                                    .to = address(read->to),
                                    .buffer = read->buffer,
                                    .buffer_offset = (double)read->buffer_offset};
    }
    r->kind = e->kind;
    r->done = (double)e->done;
    r->total = (double)e->total;
    r->token = e->token;
    r->text = address(e->text);
    r->text_len = (double)e->text_len;
    r->log_prob = e->log_prob;
    r->top = address(e->top);
    r->n_top = e->n_top;
    r->logits = address(e->logits);
    r->position = e->position;
    r->rows = e->rows;
    if (progress == BZ_JOB_ERROR) {
        h->error = need->error;
    }
    return progress;
}

EXPORT(job_free) void wasm_job_free(bz_job *job)
{
    handle_free(HANDLE_JOB, job);
    handle_free(HANDLE_OPEN_JOB, job);
}

EXPORT(job_finish) uint32_t wasm_job_finish(const bz_job *job)
{
    if (!handle_is(HANDLE_JOB, job) && !handle_is(HANDLE_OPEN_JOB, job)) {
        return BZ_FINISH_NONE;
    }
    return bz_job_finish(job);
}

/* ---- tokens ------------------------------------------------------------------------------------
 */

/* The number of ids; report[0] is where they are. -1: an error. */
EXPORT(tokenize)
int32_t wasm_tokenize(host *h, const bz_model *m, const char *text, uint32_t len, bool specials,
                      bool bos)
{
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, text, len))) {
        return -1;
    }
    const int64_t n = bz_tokenize(m, text, len, specials, bos, NULL, 0, &h->error);
    int32_t *ids = n >= 0 ? realloc(h->ids, ((size_t)n + 1) * sizeof *ids) : NULL;
    if (n < 0) {
        return -1;
    }
    if (!ids) {
        bz_fail(&h->error, BZ_OUT_OF_MEMORY, "No memory for the text's tokens.");
        return -1;
    }
    h->ids = ids;
    bz_tokenize(m, text, len, specials, bos, ids, (size_t)n, &h->error);
    h->report.numbers[0] = address(ids);
    return (int32_t)n;
}

/* As the vocabulary spells it: report[0] is where, [1] its length. */
EXPORT(token_piece) void wasm_token_piece(host *h, const bz_model *m, int32_t id)
{
    if (!handle_check(h, HANDLE_MODEL, m)) {
        return;
    }
    size_t len = 0;
    h->report.numbers[0] = address(bz_token_piece(m, id, &len));
    h->report.numbers[1] = (double)len;
}

EXPORT(token_ends) uint32_t wasm_token_ends(const bz_model *m, int32_t id)
{
    if (!handle_is(HANDLE_MODEL, m)) {
        return 0;
    }
    return bz_token_ends(m, id);
}

EXPORT(stream_new) bz_text_stream *wasm_stream_new(void)
{
    return handle_add(HANDLE_STREAM, calloc(1, sizeof(bz_text_stream)), NULL);
}

/* The length of what the token completes; report[0] is where it is. */
EXPORT(stream_push)
uint32_t wasm_stream_push(host *h, bz_text_stream *stream, const bz_model *m, int32_t id,
                          bool show_control)
{
    if (!(handle_check(h, HANDLE_STREAM, stream) && handle_check(h, HANDLE_MODEL, m))) {
        return 0;
    }
    h->report.numbers[0] = address(h->text);
    return (uint32_t)bz_text_push(stream, m, id, show_control, h->text);
}

/* ---- sessions ----------------------------------------------------------------------------------
 */

EXPORT(session_new)
bz_session *wasm_session_new(host *h, const bz_model *m, const char *json, uint32_t len)
{
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, json, len))) {
        return NULL;
    }
    bz_arena arena = {0};
    bz_session_options options;
    bz_session *session = NULL;
    if (bz_wasm_session_options(&options, (bz_str){json, len}, &arena, &h->error) == BZ_OK) {
        bz_session_new(&session, m, &options, &h->error);
    }
    bz_arena_free(&arena);
    return handle_add(HANDLE_SESSION, session, m);
}

EXPORT(session_free) void wasm_session_free(bz_session *s)
{
    handle_free(HANDLE_SESSION, s);
}

EXPORT(prefill)
bz_job *wasm_prefill(host *h, bz_session *s, const int32_t *ids, uint32_t n, uint32_t snapshot_at,
                     bool all_logits)
{
    if (!(handle_check(h, HANDLE_SESSION, s) && handle_memory(h, ids, (uint64_t)n * sizeof *ids))) {
        return NULL;
    }
    const bz_prefill_options options = {.size = sizeof options,
                                        .snapshot_at = snapshot_at,
                                        .logits = all_logits ? BZ_LOGITS_ALL : BZ_LOGITS_LAST};
    bz_job *job = NULL;
    bz_session_prefill(s, ids, n, &options, &job, &h->error);
    return handle_add(HANDLE_JOB, job, s);
}

EXPORT(generate) bz_job *wasm_generate(host *h, bz_session *s, const char *json, uint32_t len)
{
    if (!(handle_check(h, HANDLE_SESSION, s) && handle_memory(h, json, len))) {
        return NULL;
    }
    bz_arena arena = {0};
    bz_generate_options options;
    bz_job *job = NULL;
    if (bz_wasm_generate_options(&options, (bz_str){json, len}, &arena, &h->error) == BZ_OK) {
        bz_session_generate(s, &options, &job, &h->error);
    }
    bz_arena_free(&arena);
    return handle_add(HANDLE_JOB, job, s);
}

/* The same with the settings of a turn's request, and the seed for one that has none. */
EXPORT(answer) bz_job *wasm_answer(host *h, bz_session *s, const bz_turn *t, double seed)
{
    if (!(handle_check(h, HANDLE_SESSION, s) && handle_check(h, HANDLE_TURN, t))) {
        return NULL;
    }
    bool has_seed;
    bz_generate_options options = *bz_turn_options(t, &has_seed);
    bz_job *job = NULL;
    options.sampling.seed = has_seed ? options.sampling.seed : whole(seed);
    bz_session_generate(s, &options, &job, &h->error);
    return handle_add(HANDLE_JOB, job, s);
}

EXPORT(session_logits) const float *wasm_session_logits(const bz_session *s)
{
    if (!handle_is(HANDLE_SESSION, s)) {
        return NULL;
    }
    return bz_session_logits(s);
}

EXPORT(session_context) uint32_t wasm_session_context(const bz_session *s)
{
    if (!handle_is(HANDLE_SESSION, s)) {
        return 0;
    }
    return s->context;
}

/* report: position, prefilled, reused, generated, restores, cache bytes, PLE rows there and
 * fetched, drafts made and accepted. */
EXPORT(session_stats) void wasm_session_stats(host *h, const bz_session *s)
{
    if (!handle_check(h, HANDLE_SESSION, s)) {
        return;
    }
    const bz_session_stats stats = bz_session_get_stats(s);
    const bz_draft_stats drafts = bz_session_get_draft_stats(s);
    const double numbers[] = {stats.position,         (double)stats.prefilled,
                              (double)stats.reused,   (double)stats.generated,
                              (double)stats.restores, (double)stats.cache_bytes,
                              (double)stats.ple_hits, (double)stats.ple_misses,
                              (double)drafts.drafted, (double)drafts.accepted};
    memcpy(h->report.numbers, numbers, sizeof numbers);
}

/* ---- chat --------------------------------------------------------------------------------------
 */

EXPORT(turn_new)
bz_turn *wasm_turn_new(host *h, const bz_model *m, const char *request, uint32_t len)
{
    if (!(handle_check(h, HANDLE_MODEL, m) && handle_memory(h, request, len))) {
        return NULL;
    }
    bz_turn *turn = NULL;
    bz_turn_new_media(&turn, m, request, len, &h->error);
    return handle_add(HANDLE_TURN, turn, m);
}

EXPORT(turn_free) void wasm_turn_free(bz_turn *t)
{
    handle_free(HANDLE_TURN, t);
}

/* report: where the ids are, how many, the snapshot's place. */
EXPORT(turn_prompt) void wasm_turn_prompt(host *h, const bz_turn *t)
{
    if (!handle_check(h, HANDLE_TURN, t)) {
        return;
    }
    size_t n = 0;
    uint32_t snapshot_at = 0;
    h->report.numbers[0] = address(bz_turn_prompt(t, &n, &snapshot_at));
    h->report.numbers[1] = (double)n;
    h->report.numbers[2] = snapshot_at;
}

/* How many messages are left out so that an answer fits in the session's context; -1: an error. */
EXPORT(turn_fit) int32_t wasm_turn_fit(host *h, bz_turn *t, const bz_session *s)
{
    if (!(handle_check(h, HANDLE_TURN, t) && handle_check(h, HANDLE_SESSION, s))) {
        return -1;
    }
    return bz_turn_fit(t, s->context, true, &h->error) == BZ_OK ? (int32_t)bz_turn_left_out(t) : -1;
}

EXPORT(turn_push) uint32_t wasm_turn_push(host *h, bz_turn *t, int32_t token)
{
    if (!handle_check(h, HANDLE_TURN, t)) {
        return 0;
    }
    return bz_turn_push(t, token, &h->error) == BZ_OK;
}

/* The part; report: where its text is, its length. */
EXPORT(turn_next) uint32_t wasm_turn_next(host *h, bz_turn *t)
{
    if (!handle_check(h, HANDLE_TURN, t)) {
        return BZ_TURN_END;
    }
    const char *text = NULL;
    size_t len = 0;
    const bz_turn_part part = bz_turn_next(t, &text, &len);
    h->report.numbers[0] = address(text);
    h->report.numbers[1] = (double)len;
    return part;
}

/* generated: what job_finish returned. */
EXPORT(turn_finish) uint32_t wasm_turn_finish(const bz_turn *t, uint32_t generated)
{
    if (!handle_is(HANDLE_TURN, t)) {
        return BZ_FINISH_NONE;
    }
    return bz_turn_finish(t, (bz_finish)generated);
}

#endif
