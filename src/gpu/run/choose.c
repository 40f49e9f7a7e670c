/* Passes that end in short lists: two dispatches after those of the plan rank the rows of logits in
 * the arena and choose a token for each, and a few kilobytes are read back in the same submit. Of a
 * pass of one row, the next reads the chosen token on the GPU, so that several passes are in
 * flight. Decoding one token is one submit and two writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lower/forms.h"
#include "gpu/run/internal.h"

/* As choose/common.wgsl and choose/pick.wgsl lay them out, in words. */
enum {
    HEAD_LOGITS,
    HEAD_VOCAB,
    HEAD_N_CHOICES,
    HEAD_CHOICES = 4, /* of each: request, answer, draw */
    CHOICE_WORDS = 4,
    HEAD_WORDS = HEAD_CHOICES + CHOICE_WORDS * GPU_MAX_CHOICES /* then the requests */
};
enum {
    REQUEST_N_EDITS = 2,
    REQUEST_WANTED,
    REQUEST_FLAGS,
    REQUEST_TOP_K,
    REQUEST_TOP_P,
    REQUEST_LOG_MIN_P,
    REQUEST_TEMPERATURE,
    REQUEST_REPETITION,
    REQUEST_UNUSED,
    REQUEST_EDITS = 12,
    EDIT_WORDS = 4
};
enum { WANT_SUM = 1, WANT_RAW_SUM = 2, GREEDY = 4, MIN_P = 8 };
enum { RUN = 32, BLOCK = 1024, PART_WORDS = 8 };
enum {
    ANSWER_N,
    ANSWER_FINITE,
    ANSWER_CHOICE,
    ANSWER_FED, /* the token that the row embedded */
    ANSWER_SUM = 4,
    ANSWER_RAW_SUM = 6,
    ANSWER_LIST = 8,
    ENTRY_WORDS = 3
};
enum { ANSWER_WORDS = ANSWER_LIST + ENTRY_WORDS * BZ_CANDIDATES };

_Static_assert(ANSWER_WORDS * 4 <= 4096, "a token's read-back");

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- preparing -------------------------------------------------------------------------- */

bool gpu_chooses(const bz_schedule *s)
{
    return !s->plan->drafts && s->plan->rows == s->plan->out_rows &&
           s->plan->rows <= GPU_MAX_CHOICES && (s->plan->rows == 1 || s->plan->many_sequences);
}

static uint32_t blocks_of(uint32_t vocab)
{
    return (vocab + BLOCK - 1) / BLOCK;
}

/* Lists bind the old buffer: they are recorded again. */
static bool replace(gpu_backend *b, gpu_buffer *buffer, uint64_t words, bz_error *err)
{
    gpu_buffer fresh = gpu_buffer_new(b->g, words * sizeof(uint32_t), GPU_STORAGE, err);
    if (!fresh) {
        return false;
    }
    if (*buffer) {
        gpu_buffer_free(b->g, *buffer);
    }
    *buffer = fresh;
    b->arena_generation++;
    return true;
}

/* Words of a request. */
static uint32_t stride_of(uint32_t edits)
{
    return REQUEST_EDITS + EDIT_WORDS * edits;
}

/* Space for the requests of `sequences`, each with up to `edits`. */
static bz_status reserve_requests(gpu_backend *b, uint32_t sequences, uint32_t edits, bz_error *err)
{
    gpu_chooser *c = &b->chooser;
    if (c->request && sequences <= c->sequences && edits <= c->edit_capacity) {
        return BZ_OK;
    }
    sequences = sequences > c->sequences ? sequences : c->sequences;
    edits = edits > c->edit_capacity ? edits : c->edit_capacity;
    const uint64_t words = HEAD_WORDS + (uint64_t)sequences * stride_of(edits);
    uint32_t *block = calloc((size_t)words, sizeof *block);
    if (!block || !replace(b, &c->request, words, err)) {
        free(block);
        return err && err->code != BZ_OK
                   ? err->code
                   : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for bias of %u tokens.", edits);
    }
    for (uint32_t i = 0; i < c->sequences; i++) {
        memcpy(block + HEAD_WORDS + (size_t)i * stride_of(edits),
               c->block + HEAD_WORDS + (size_t)i * stride_of(c->edit_capacity),
               stride_of(c->edit_capacity) * sizeof *block);
    }
    free(c->block);
    c->block = block;
    c->sequences = sequences;
    c->edit_capacity = edits;
    gpu_write(b->g, c->request, 0, block, words * sizeof *block);
    return BZ_OK;
}

bz_status gpu_choose_prepare(gpu_backend *b, const bz_schedule *s, bz_error *err)
{
    gpu_chooser *c = &b->chooser;
    const uint32_t vocab = bz_plan_tensor(s->plan, s->plan->output)->cols,
                   blocks = blocks_of(vocab), rows = s->plan->rows;
    const gpu_overrides none = {{0}}, rolled = {{gpu_keeps_loops(gpu_limits_of(b->g))}};
    bz_error local = {0};
    bool ok =
        (c->scan = gpu_pipelines_get(b->pipelines, GPU_CHOOSE_SCAN, BZ_F32, none, &local)) != 0 &&
        (c->pick = gpu_pipelines_get(b->pipelines, GPU_CHOOSE_PICK, BZ_F32, rolled, &local)) != 0 &&
        reserve_requests(b, 1, 64, &local) == BZ_OK;
    if (ok && rows > c->rows) {
        uint32_t *words = realloc(c->words, (size_t)rows * ANSWER_WORDS * sizeof *words);
        c->words = words ? words : c->words;
        ok = words && replace(b, &c->answer, (uint64_t)rows * ANSWER_WORDS, &local);
        if (!words) {
            bz_fail(&local, BZ_OUT_OF_MEMORY, "No memory for the choices of %u rows.", rows);
        }
    }
    const uint64_t work =
        (uint64_t)(rows > c->rows ? rows : c->rows) * blocks * (BLOCK + BLOCK / RUN + PART_WORDS);
    if (ok && work > c->work_words) {
        ok = replace(b, &c->work, work, &local);
        c->work_words = ok ? work : c->work_words;
    }
    c->rows = ok && rows > c->rows ? rows : c->rows;
    if (!ok && err) {
        *err = local;
    }
    return ok ? BZ_OK : local.code;
}

bz_status gpu_choose_record(gpu_backend *b, const bz_schedule *s, bz_error *err)
{
    const gpu_chooser *c = &b->chooser;
    const gpu_binding scan[] = {{c->request, 0, 0}, {b->arena, 0, 0}, {c->work, 0, 0}};
    const gpu_binding pick[] = {
        {c->request, 0, 0}, {b->arena, 0, 0}, {c->work, 0, 0}, {b->rows, 0, 0}, {c->answer, 0, 0}};
    uint32_t x = blocks_of(bz_plan_tensor(s->plan, s->plan->output)->cols), y = 1;
    uint32_t max = gpu_limits_of(b->g)->max_workgroups;
    if (x > max) {
        y = (x + max - 1) / max;
        x = (x + y - 1) / y;
    }
    const uint32_t rows = s->plan->rows;
    bz_status status = gpu_list_add(b->g, s->list, c->scan, scan, 3, x, y, rows, err);
    return status == BZ_OK ? gpu_list_add(b->g, s->list, c->pick, pick, 5, rows, 1, 1, err)
                           : status;
}

/* ---- passes ---------------------------------------------------------------------------- */

/* Writes what the rows of a pass have in common, and the choice of each, if anything has changed.
 * sequence, u: [n]; the draw of the first choice is in the parameter block. */
static void write_head(gpu_backend *b, const bz_schedule *s, uint32_t n, const uint32_t *sequence,
                       const double *u)
{
    const gpu_chooser *c = &b->chooser;
    uint32_t head[HEAD_WORDS] = {0}, answer = 0;
    head[HEAD_LOGITS] =
        (uint32_t)(gpu_lowered_offset(&s->lowered, s->plan->output) / sizeof(float));
    head[HEAD_VOCAB] = bz_plan_tensor(s->plan, s->plan->output)->cols;
    head[HEAD_N_CHOICES] = n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t *choice = head + HEAD_CHOICES + CHOICE_WORDS * i;
        choice[0] = HEAD_WORDS + sequence[i] * stride_of(c->edit_capacity);
        choice[1] = answer;
        choice[2] = i ? bits_of((float)u[i]) : 0;
        answer += ANSWER_LIST + ENTRY_WORDS * c->wanted[sequence[i]];
    }
    const size_t bytes = (HEAD_CHOICES + CHOICE_WORDS * (size_t)n) * sizeof *head;
    if (memcmp(c->block, head, bytes) != 0) {
        memcpy(c->block, head, bytes);
        gpu_write(b->g, c->request, 0, head, bytes);
    }
}

static bz_status set_topk(bz_backend *backend, const bz_schedule *s, const bz_kv *kv,
                          const bz_topk_request *request, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_chooser *c = &b->chooser;
    const bz_edits *e = request->edits;
    const uint32_t vocab = bz_plan_tensor(s->plan, s->plan->output)->cols,
                   sequence = kv ? kv->index : 0;
    uint64_t max =
        (uint64_t)e->n_fixed + e->window; /* the maximum, so that no later call allocates */
    max = max > e->n ? max : e->n;
    bz_status status =
        reserve_requests(b, sequence + 1, (uint32_t)(max < vocab ? max : vocab), err);
    if (status != BZ_OK) {
        return status;
    }
    const size_t at = HEAD_WORDS + (size_t)sequence * stride_of(c->edit_capacity);
    uint32_t *block = c->block + at;
    block[REQUEST_N_EDITS] = e->n;
    block[REQUEST_WANTED] = request->wanted;
    block[REQUEST_FLAGS] = (request->sum ? WANT_SUM : 0u) | (request->raw_sum ? WANT_RAW_SUM : 0u) |
                           (request->greedy ? GREEDY : 0u) | (request->min_p > 0 ? MIN_P : 0u);
    block[REQUEST_TOP_K] = request->top_k;
    block[REQUEST_TOP_P] = bits_of(request->top_p);
    block[REQUEST_LOG_MIN_P] = bits_of(request->min_p > 0 ? logf(request->min_p) : 0);
    block[REQUEST_TEMPERATURE] = bits_of(request->temperature);
    block[REQUEST_REPETITION] = bits_of(e->repetition);
    for (uint32_t i = 0; i < e->n; i++) {
        const bz_edit *edit = &e->list[i];
        uint32_t *to = block + REQUEST_EDITS + EDIT_WORDS * i;
        to[0] = (uint32_t)edit->id;
        to[1] = bits_of(edit->bias);
        to[2] = edit->seen != 0;
        to[3] = bits_of((float)edit->seen * e->frequency + e->presence);
    }
    gpu_write(b->g, c->request, at * sizeof *block, block, stride_of(e->n) * sizeof *block);
    c->wanted[sequence] = request->wanted;
    if (s->plan->rows == 1) {
        write_head(b, s, 1, &sequence, NULL);
    }
    return BZ_OK;
}

static bz_pass_state send(bz_backend *backend, bz_schedule *s, const bz_rows *rows, bz_feed feed,
                          const double *u, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_chooser *c = &b->chooser;
    bz_pass_state state = gpu_ready(b, s, rows, err);
    if (state != BZ_PASS_DONE) {
        return state;
    }
    if (c->n == GPU_MAX_IN_FLIGHT) {
        return BZ_PASS_WAIT;
    }
    const uint32_t at = (c->first + c->n) % GPU_MAX_IN_FLIGHT;
    uint32_t sequence[GPU_MAX_CHOICES];
    uint64_t words = 0;
    for (uint32_t i = 0; i < rows->n_out; i++) {
        sequence[i] = ((const bz_kv *)rows->kv[rows->seq[rows->out[i]]])->index;
        c->in_flight[at].wanted[i] = c->wanted[sequence[i]];
        words += ANSWER_LIST + ENTRY_WORDS * c->wanted[sequence[i]];
    }
    write_head(b, s, rows->n_out, sequence, u);
    gpu_write_pass(b, s, rows, feed, (float)u[0]);
    gpu_fence fence =
        gpu_replay_read(b->g, s->list, 0, s->n + 2, c->answer, 0, words * sizeof(uint32_t), err);
    if (!fence) {
        return BZ_PASS_ERROR;
    }
    c->n++;
    c->in_flight[at].fence = fence;
    c->in_flight[at].choices = rows->n_out;
    c->last_sent = s;
    return BZ_PASS_DONE;
}

/* Its list ends before the choice of a token: what it drafts is in the parameter block. */
static bz_pass_state send_drafts(bz_backend *backend, bz_schedule *s, const bz_rows *rows,
                                 bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    const bz_pass_state state = gpu_ready(b, s, rows, err);
    if (state == BZ_PASS_DONE) {
        gpu_write_pass(b, s, rows, BZ_FEED_IDS, 0);
        gpu_replay(b->g, s->list, 0, s->n);
    }
    return state;
}

static bz_exp_sum sum_at(const uint32_t *words)
{
    return (bz_exp_sum){float_of(words[0]), (double)float_of(words[1])};
}

/* The list of one row from its answer. Returns the words of the answer. */
static uint32_t read_answer(const uint32_t *words, uint32_t wanted, bz_shortlist *list,
                            int32_t *choice)
{
    list->n = words[ANSWER_N] < wanted ? words[ANSWER_N] : wanted;
    list->whole = list->n < wanted;
    list->finite = words[ANSWER_FINITE] != 0;
    list->sum = sum_at(words + ANSWER_SUM);
    list->raw_sum = sum_at(words + ANSWER_RAW_SUM);
    for (uint32_t i = 0; i < list->n; i++) {
        const uint32_t *entry = words + ANSWER_LIST + ENTRY_WORDS * i;
        list->best[i] = (bz_candidate){float_of(entry[0]), (int32_t)entry[1]};
        list->raw[i] = float_of(entry[2]);
    }
    *choice = (int32_t)words[ANSWER_CHOICE];
    return ANSWER_LIST + ENTRY_WORDS * wanted;
}

static bz_pass_state receive(bz_backend *backend, bz_shortlist *lists, int32_t *choices,
                             int32_t *fed, bz_error *err)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_chooser *c = &b->chooser;
    if (c->n == 0 || !gpu_read_done(b->g, c->in_flight[c->first].fence, c->words)) {
        return gpu_state_of(b->g, err) == GPU_READY ? BZ_PASS_WAIT : BZ_PASS_ERROR;
    }
    const uint32_t *words = c->words, n = c->in_flight[c->first].choices;
    for (uint32_t i = 0; i < n; i++) {
        if (fed) {
            fed[i] = (int32_t)words[ANSWER_FED];
        }
        words += read_answer(words, c->in_flight[c->first].wanted[i], &lists[i], &choices[i]);
    }
    c->last_choices = n;
    c->first = (c->first + 1) % GPU_MAX_IN_FLIGHT;
    c->n--;
    return BZ_PASS_DONE;
}

static void discard(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_chooser *c = &b->chooser;
    for (; c->n; c->n--, c->first = (c->first + 1) % GPU_MAX_IN_FLIGHT) {
        gpu_read_drop(b->g, c->in_flight[c->first].fence);
    }
}

static void begin_logits(bz_backend *backend)
{
    gpu_backend *b = (gpu_backend *)(void *)backend;
    gpu_drop_pass(b);
    b->schedule = b->chooser.last_sent;
    b->logits_pass = (bz_rows){.n = b->chooser.last_choices, .n_out = b->chooser.last_choices};
    b->pass = &b->logits_pass;
    b->stage = PASS_READING;
}

/* Not with a table in the file: the host must know a token to fetch its row. */
static bool can_run_ahead(const bz_backend *backend)
{
    return !((const gpu_backend *)(const void *)backend)->model->table;
}

void gpu_choose_free(gpu_backend *b)
{
    gpu_chooser *c = &b->chooser;
    const gpu_buffer buffers[] = {c->request, c->work, c->answer};
    discard(&b->base);
    for (int i = 0; i < 3; i++) {
        if (buffers[i]) {
            gpu_buffer_free(b->g, buffers[i]);
        }
    }
    free(c->block);
    free(c->words);
}

void gpu_choose_interface(bz_backend *b)
{
    b->set_topk = set_topk;
    b->send = send;
    b->send_drafts = send_drafts;
    b->receive = receive;
    b->discard = discard;
    b->begin_logits = begin_logits;
    b->can_run_ahead = can_run_ahead;
}
