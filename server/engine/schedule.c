/* The engine's thread: takes requests, starts sequences as slots become free, steps all of them in
 * turn, and sleeps when there is nothing to do. */
#include <stdlib.h>
#include <string.h>

#include "server/engine/adapters.h"
#include "server/engine/internal.h"
#include "server/os.h"

enum { DEFAULT_PARALLEL = 16, DEFAULT_QUEUE = 512, GPU_WAIT_NS = 50 * 1000 };
static const int64_t DEFAULT_KEEP_ALIVE = 300ll * 1000 * 1000 * 1000;

/* ---- ending sequences -------------------------------------------------------------------------
 */

/* Ends a sequence. The first error of a request ends its other sequences too. */
static void end_sequence(engine *e, sequence *s, const bz_error *err)
{
    engine_work *w = s->w;
    sequence_stop(s);
    s->done = true;
    e->admit = true;
    w->left--;
    if (err && err->code) {
        if (!atomic_exchange(&w->cancelled, true)) {
            work_fail(w, err);
        }
    } else if (!atomic_load(&w->cancelled)) {
        sequence_report_end(e, s);
        if (w->left == 0) {
            work_set_state(w, ENGINE_DONE);
        }
    }
}

/* Frees what has ended, and what clients have given up. */
static void sweep(engine *e)
{
    uint32_t running = 0, waiting = 0;
    for (sequence *s = e->sequences; s; s = s->next) {
        if (!s->done && atomic_load(&s->w->cancelled)) {
            sequence_stop(s);
            s->done = e->admit = true;
            s->w->left--;
        }
    }
    for (sequence **at = &e->sequences; *at;) {
        sequence *s = *at;
        if (!s->done) {
            running += s->phase != SEQUENCE_WAITING;
            waiting += s->phase == SEQUENCE_WAITING;
            at = &s->next;
            continue;
        }
        *at = s->next;
        engine_work *w = s->w;
        sequence_free(s);
        if (--w->held == 0) {
            work_drop(w);
        }
    }
    e->n_waiting = waiting;
    bz_lock_take(&e->lock);
    e->figures.running = running;
    e->figures.waiting = waiting;
    for (const engine_work *w = e->queue; w; w = w->next) { /* not taken yet */
        e->figures.waiting += w->r.task <= ENGINE_EMBED;
    }
    bz_lock_give(&e->lock);
}

/* ---- taking requests --------------------------------------------------------------------------
 */

static bz_status run_function(engine *e, engine_work *w, bz_error *err)
{
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_status status = w->r.run(w->r.user, e, w->m, &j, err);
    if (status == BZ_OK && (!bz_json_finish(&j) ||
                            !work_event(w, ENGINE_ANSWER, 0, BZ_FINISH_NONE, text.text, text.n))) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the response.");
    }
    free(text.text);
    return status;
}

static void finish_work(engine_work *w, const bz_error *err)
{
    if (err->code) {
        work_fail(w, err);
    } else {
        w->usage.total_ns = bz_os_now() - w->submitted;
        work_set_state(w, ENGINE_DONE);
    }
}

/* Finds the model; requests that need none, or only to unload it, are done at once. */
static bool do_at_once(engine *e, engine_work *w, bz_error *err)
{
    if (w->r.task == ENGINE_RUN && w->r.without_model) {
        run_function(e, w, err);
        return true;
    }
    if (models_find(&e->models, w->r.model, &w->m, err) != BZ_OK) {
        return true;
    }
    w->model_name = strdup(w->m->name);
    if (w->r.task == ENGINE_UNLOAD) {
        w->m->unload = true;
        return true;
    }
    return false;
}

static void append(engine *e, sequence *s)
{
    sequence **end = &e->sequences;
    while (*end) {
        end = &(*end)->next;
    }
    *end = s;
}

static void take(engine *e, engine_work *w)
{
    bz_error err = {0};
    if (do_at_once(e, w, &err)) {
        finish_work(w, &err);
        work_drop(w);
        return;
    }
    const size_t n = w->r.task == ENGINE_PROMPT ? w->r.n_prompts * w->r.choices
                     : w->r.task == ENGINE_CHAT ? w->r.choices
                                                : 1;
    for (size_t i = 0; i < n; i++) {
        sequence *s = sequence_new(w, (uint32_t)i);
        if (!s) {
            bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the request.");
            atomic_store(&w->cancelled, true);
            break;
        }
        append(e, s);
    }
    if (err.code) {
        work_fail(w, &err);
    }
    if (w->held == 0) {
        work_drop(w);
    }
    e->admit = true;
}

static void take_all(engine *e)
{
    bz_lock_take(&e->lock);
    engine_work *w = e->queue;
    e->queue = NULL;
    e->queue_end = &e->queue;
    bz_lock_give(&e->lock);
    while (w) {
        engine_work *next = w->next;
        w->next = NULL;
        take(e, w);
        w = next;
    }
}

/* ---- starting sequences -----------------------------------------------------------------------
 */

/* What the client of a sequence has already, and of that its program; less comes first. */
typedef struct share {
    uint32_t client_runs, client_began, program_runs, program_began;
} share;

static share share_of(const engine *e, const engine_request *r)
{
    share n = {0};
    for (const sequence *s = e->sequences; s; s = s->next) {
        const bool same = s->phase != SEQUENCE_WAITING && s->w->r.client == r->client;
        n.client_runs += same;
        n.program_runs += same && s->w->r.program == r->program;
    }
    for (uint64_t i = 0; i < RECENT_STARTS && i < e->n_started; i++) {
        const bool same = e->recent[i].client == r->client;
        n.client_began += same;
        n.program_began += same && e->recent[i].program == r->program;
    }
    return n;
}

static bool is_less(const share *a, const share *b)
{
    return a->client_runs != b->client_runs     ? a->client_runs < b->client_runs
           : a->client_began != b->client_began ? a->client_began < b->client_began
           : a->program_runs != b->program_runs ? a->program_runs < b->program_runs
                                                : a->program_began < b->program_began;
}

/* The waiting sequence that is next: of the client with the fewest running ones, or with the fewest
 * of those that began lately; among a client's programs likewise; then the oldest. A program can
 * pretend to be several, but only at the cost of others on its own machine. */
static sequence *next_waiting(const engine *e, const sequence *blocked)
{
    sequence *best = NULL;
    share fewest = {0};
    for (sequence *s = e->sequences; s && s != blocked; s = s->next) {
        if (s->done || s->phase != SEQUENCE_WAITING || s->tried || sequence_must_wait(s)) {
            continue;
        }
        const share n = share_of(e, &s->w->r);
        if (!best || is_less(&n, &fewest)) {
            best = s;
            fewest = n;
        }
    }
    return best;
}

static void note_start(engine *e, const engine_request *r)
{
    e->recent[e->n_started++ % RECENT_STARTS] = (recent_start){r->client, r->program};
}

/* The model of a sequence is loaded: what can be done for it now? */
static void advance(engine *e, sequence *s)
{
    engine_work *w = s->w;
    bz_error err = {0};
    w->m->last_used = bz_os_now();
    if (w->r.task != ENGINE_RUN) {
        w->m->keep_alive = w->r.has_keep_alive ? w->r.keep_alive : e->o.keep_alive;
    }
    if (w->r.task == ENGINE_LOAD || w->r.task == ENGINE_RUN) {
        if (w->r.task == ENGINE_RUN) {
            run_function(e, w, &err);
        }
        s->done = true;
        w->left--;
        finish_work(w, &err);
        return;
    }
    if (w->r.task != ENGINE_EMBED && w->m->embedder) {
        bz_fail(&err, BZ_BAD_REQUEST,
                "This model computes vectors of texts and writes none; use /v1/embeddings or "
                "/api/embed.");
        end_sequence(e, s, &err);
        return;
    }
    if (w->r.task != ENGINE_EMBED && !s->turn && sequence_prepare(e, s, &err) != BZ_OK) {
        end_sequence(e, s, &err);
        return;
    }
    if ((w->r.task == ENGINE_EMBED ? embed_job_start(s, &err) : sequence_start(e, s, &err)) !=
        BZ_OK) {
        end_sequence(e, s, &err);
    } else if (s->phase != SEQUENCE_WAITING) {
        note_start(e, &w->r);
        bz_lock_take(&e->lock);
        if (w->state == ENGINE_WAITING) {
            w->state = ENGINE_RUNNING;
            e->news = true;
        }
        bz_lock_give(&e->lock);
    }
}

static void admit(engine *e)
{
    const sequence *blocked = NULL; /* waits for memory: later ones must not overtake it */
    sequence *s;
    e->admit = false;
    for (s = e->sequences; s; s = s->next) {
        s->tried = false;
    }
    while ((s = next_waiting(e, blocked)) != NULL) {
        bz_error err = {0};
        const bool loaded = s->w->m->model != NULL;
        s->tried = true;
        switch (models_load(&e->models, s->w->m, &err)) {
        case MODELS_READY:
            s->w->usage.load_ns = loaded ? s->w->usage.load_ns : s->w->m->load_ns;
            advance(e, s);
            break;
        case MODELS_WAIT: blocked = s; break;
        case MODELS_FAILED: end_sequence(e, s, &err); break;
        }
    }
}

/* ---- steps ------------------------------------------------------------------------------------
 */

typedef struct batch_step {
    engine *e;
    engine_model *m;
} batch_step;

static void on_batch_event(void *user, const bz_batch_event *event)
{
    const batch_step *b = user;
    sequence *s = b->m->in_slot[event->slot];
    bz_error err = event->error;
    if (!s) {
        return;
    }
    if (err.code || sequence_token(s, event->token, event->finish, &err)) {
        end_sequence(b->e, s, &err);
    }
}

/* A failed batch can only be freed. */
static void fail_model(engine *e, engine_model *m, const bz_error *err)
{
    for (sequence *s = e->sequences; s; s = s->next) {
        if (s->w->m == m && !s->done && s->phase != SEQUENCE_WAITING) {
            end_sequence(e, s, err);
        }
    }
    m->unload = true;
}

static bool step_batches(engine *e)
{
    bool any = false;
    for (engine_model *m = e->models.first; m; m = m->next) {
        bool busy = false;
        for (uint32_t i = 0; m->batch && i < BZ_BATCH_MAX_SLOTS; i++) {
            busy |= m->in_slot[i] != NULL;
        }
        /* Slots that were stopped in a pass become free when it ends. */
        busy |= m->batch && !bz_batch_has_free(m->batch);
        batch_step b = {e, m};
        bz_error err = {0};
        if (busy && bz_batch_step(m->batch, on_batch_event, &b, &err) != BZ_OK) {
            fail_model(e, m, &err);
        }
        e->admit |= busy && e->n_waiting && bz_batch_has_free(m->batch);
        e->n_steps += busy;
        any |= busy;
    }
    return any;
}

static bool step_sessions(engine *e, bool *idle)
{
    bool any = false;
    for (sequence *s = e->sequences; s; s = s->next) {
        if (s->done || s->phase == SEQUENCE_WAITING || s->phase == SEQUENCE_BATCH) {
            continue;
        }
        bz_error err = {0};
        bool ended = false, waits = false;
        if (s->phase == SEQUENCE_EMBEDDING) {
            embed_job_step(s, &ended, &waits, &err);
        } else {
            session_job_step(e, s, &ended, &waits, &err);
        }
        if (err.code || ended) {
            end_sequence(e, s, &err);
        } else if (s->phase == SEQUENCE_WAITING) { /* encoded */
            e->admit = true;
        }
        *idle = *idle && waits;
        any = true;
    }
    return any;
}

static void report_news(engine *e)
{
    bz_lock_take(&e->lock);
    const bool news = e->news;
    e->news = false;
    e->figures.decode_steps = e->n_steps;
    e->figures.steps_while_opening = e->n_opening_steps;
    bz_lock_give(&e->lock);
    if (news) {
        e->wake(e->wake_user);
    }
}

/* Until a request arrives, one is cancelled, or a model's time is over. */
static void sleep_until(engine *e, uint64_t end)
{
    os_watch watch = {.fd = e->alarm[0], .wanted = OS_READ};
    const uint64_t now = bz_os_now();
    const uint64_t ms = end > now ? (end - now) / 1000000 + 1 : 0;
    os_wait(&watch, 1, end == 0 ? -1 : ms < 60000 ? (int)ms : 60000);
}

/* Answers of other models go on while one is opened, which takes long on a GPU. Sequences may end
 * here, but none is freed or started. */
static bool while_opening(void *user)
{
    engine *e = user;
    bool idle = true;
    const uint64_t before = e->n_steps;
    step_batches(e);
    step_sessions(e, &idle);
    e->n_opening_steps += e->n_steps - before;
    report_news(e);
    return atomic_load(&e->stop);
}

static void run(void *user)
{
    engine *e = user;
    while (!atomic_load(&e->stop)) {
        os_alarm_clear(e->alarm[0]);
        take_all(e);
        sweep(e);
        if (e->admit) {
            admit(e);
        }
        bool idle = true;
        const bool batches = step_batches(e), sessions = step_sessions(e, &idle);
        sweep(e);
        report_news(e);
        const uint64_t end = models_expire(&e->models);
        if (!batches && !sessions && !e->admit) {
            sleep_until(e, end);
        } else if (!batches && sessions && idle) {
            bz_os_sleep(GPU_WAIT_NS);
        }
    }
    const bz_error stopped = {BZ_ABORTED, "The server was stopped."};
    take_all(e);
    for (sequence *s = e->sequences; s; s = s->next) {
        if (!s->done) {
            end_sequence(e, s, &stopped);
        }
    }
    sweep(e);
    report_news(e);
}

/* ---- beginning and end ------------------------------------------------------------------------
 */

engine *engine_new(const engine_options *options, bz_error *err)
{
    engine *e = calloc(1, sizeof *e);
    if (!e || !os_alarm_open(e->alarm)) {
        free(e);
        bz_fail(err, BZ_OUT_OF_MEMORY, "Not enough memory for a server.");
        return NULL;
    }
    e->o = *options;
    e->o.parallel = e->o.parallel ? e->o.parallel : DEFAULT_PARALLEL;
    e->o.queue = e->o.queue ? e->o.queue : DEFAULT_QUEUE;
    e->o.keep_alive = e->o.keep_alive ? e->o.keep_alive : DEFAULT_KEEP_ALIVE;
    e->models.refuse_larger = e->o.max_memory != 0;
    e->o.max_memory = e->o.max_memory ? e->o.max_memory : bz_os_memory_available();
    e->models.options = &e->o;
    e->models.while_opening = while_opening;
    e->models.user = e;
    e->queue_end = &e->queue;
    e->seed = bz_os_now();
    return e;
}

bz_status engine_add_model(engine *e, const char *name, const char *path, const char *mmproj,
                           bz_error *err)
{
    return models_add(&e->models, name, path, mmproj, err);
}

bz_status engine_add_adapter(engine *e, const char *path, float scale, bz_error *err)
{
    engine_model *m = e->models.first;
    while (m && m->next) {
        m = m->next;
    }
    return m ? model_adapters_add(m, path, scale, err)
             : bz_fail(err, BZ_BAD_REQUEST, "There is no model for the adapter %s.", path);
}

bz_status engine_add_stored(engine *e, const char *name, bz_error *err)
{
    engine_model *m;
    return models_find(&e->models, name, &m, err);
}

bz_status engine_start(engine *e, void (*wake)(void *user), void *user, bz_error *err)
{
    e->wake = wake;
    e->wake_user = user;
    e->thread = bz_os_thread_start(run, e);
    return e->thread ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "The system refuses another thread.");
}

void engine_stop(engine *e)
{
    atomic_store(&e->stop, true);
    os_alarm_ring(e->alarm[1]);
}

void engine_free(engine *e)
{
    if (!e) {
        return;
    }
    engine_stop(e);
    if (e->thread) {
        bz_os_thread_join(e->thread);
    }
    models_free(&e->models);
    os_close(e->alarm[0]);
    os_close(e->alarm[1]);
    free(e);
}

models *engine_models(engine *e)
{
    return &e->models;
}

const engine_options *engine_get_options(const engine *e)
{
    return &e->o;
}
