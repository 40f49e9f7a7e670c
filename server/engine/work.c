/* The border between the HTTP thread and the engine's thread: requests one way, events the other.
 */
#include <stdlib.h>
#include <string.h>

#include "server/engine/internal.h"
#include "server/os.h"

void engine_events_free(engine_event *events)
{
    while (events) {
        engine_event *next = events->next;
        free(events);
        events = next;
    }
}

void work_drop(engine_work *w)
{
    if (atomic_fetch_sub(&w->refs, 1) == 1) {
        engine_events_free(w->first);
        engine_request_free(&w->r);
        free(w->usage.ids);
        free(w->model_name);
        free(w);
    }
}

/* ---- the HTTP thread ------------------------------------------------------------------------ */

/* Under the lock. */
static bool is_full(const engine *e)
{
    return e->figures.waiting >= e->o.queue;
}

engine_work *engine_submit(engine *e, engine_request *r, bz_error *err)
{
    engine_work *w = calloc(1, sizeof *w);
    if (!w) {
        engine_request_free(r);
        bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the request.");
        return NULL;
    }
    w->e = e;
    w->r = *r;
    w->r.choices = r->choices ? r->choices : 1;
    *r = (engine_request){0};
    w->last = &w->first;
    w->submitted = bz_os_now();
    atomic_init(&w->refs, 2);                      /* the caller's and the engine's */
    const bool counts = w->r.task <= ENGINE_EMBED; /* what is computed */
    bz_lock_take(&e->lock);
    const bool full = counts && is_full(e);
    if (full) {
        e->figures.refused++;
    } else {
        *e->queue_end = w;
        e->queue_end = &w->next;
        e->figures.requests += counts;
        e->figures.waiting += counts; /* until the engine has counted its sequences */
    }
    bz_lock_give(&e->lock);
    if (full) {
        bz_fail(err, BZ_QUOTA,
                "The server is busy: %u requests are waiting already. Try again later.",
                e->o.queue);
        atomic_store(&w->refs, 1);
        work_drop(w);
        return NULL;
    }
    os_alarm_ring(e->alarm[1]);
    return w;
}

engine_state engine_poll(engine_work *w, engine_event **events)
{
    bz_lock_take(&w->e->lock);
    const engine_state state = w->state;
    *events = w->first;
    w->first = NULL;
    w->last = &w->first;
    bz_lock_give(&w->e->lock);
    return state;
}

const engine_usage *engine_usage_of(const engine_work *w)
{
    return &w->usage;
}

const bz_error *engine_error(const engine_work *w)
{
    return &w->error;
}

const char *engine_model_name(const engine_work *w)
{
    return w->model_name ? w->model_name : w->r.model ? w->r.model : "";
}

void engine_release(engine_work *w)
{
    if (w) {
        atomic_store(&w->cancelled, true);
        os_alarm_ring(w->e->alarm[1]);
        work_drop(w);
    }
}

engine_figures engine_get_figures(engine *e)
{
    bz_lock_take(&e->lock);
    const engine_figures f = e->figures;
    bz_lock_give(&e->lock);
    return f;
}

/* ---- the engine's thread -------------------------------------------------------------------- */

void work_set_state(engine_work *w, engine_state state)
{
    bz_lock_take(&w->e->lock);
    w->state = state;
    w->e->news = true;
    bz_lock_give(&w->e->lock);
}

bool work_event(engine_work *w, engine_event_kind kind, uint32_t choice, bz_finish finish,
                const char *text, size_t len)
{
    engine_event *event = malloc(sizeof *event + len + 1);
    if (!event) {
        return false;
    }
    *event = (engine_event){.kind = kind, .choice = choice, .finish = finish, .len = len};
    if (len) {
        memcpy(event->text, text, len);
    }
    event->text[len] = 0;
    bz_lock_take(&w->e->lock);
    *w->last = event;
    w->last = &event->next;
    w->e->news = true;
    bz_lock_give(&w->e->lock);
    return true;
}

void work_fail(engine_work *w, const bz_error *err)
{
    w->error = *err;
    bz_lock_take(&w->e->lock);
    w->e->figures.failed++;
    bz_lock_give(&w->e->lock);
    work_set_state(w, ENGINE_FAILED);
}
