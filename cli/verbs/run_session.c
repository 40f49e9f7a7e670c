/* Settings, context size and session of `bezel run`. */
#include "base/os.h"
#include "bezel_debug.h"
#include "cli/adapters.h"
#include "cli/verbs/run.h"

enum { MAX_CONTEXT = 32768, MIN_CONTEXT = 2048, SNAPSHOTS = 4 };

bz_status run_settings(const run_state *r, settings *out, bz_error *err)
{
    *out = (settings){0};
    bz_status status = settings_fill(out, &r->given, err);
    if (status == BZ_OK) {
        status = settings_fill(out, &r->made, err);
    }
    if (status == BZ_OK && !out->set[SET_SEED]) {
        out->seed = settings_new_seed();
        out->set[SET_SEED] = true;
    }
    if (status != BZ_OK) {
        settings_free(out);
    }
    return status;
}

/* Weights are mapped: those that do not fit are read again for every pass, which is slow but works,
 * and a smaller cache would not help. So the cache always counts, the weights only if they fit. */
static uint32_t context_that_fits(const bz_model *m, const char *kv, uint32_t limit)
{
    bz_debug_memory need;
    const uint64_t available = bz_os_memory_available();
    if (available == 0 || bz_debug_model_memory(m, kv, 0, &need, NULL) != BZ_OK) {
        return limit;
    }
    uint64_t fixed = need.activation_bytes + SNAPSHOTS * need.snapshot_bytes;
    fixed += need.weight_bytes + fixed < available ? need.weight_bytes : 0;
    uint32_t context = limit;
    while (context > MIN_CONTEXT && fixed + bz_debug_cache_bytes(m, kv, context, 0) > available) {
        context /= 2;
    }
    return context;
}

uint32_t run_context(const run_state *r, const settings *s)
{
    const uint32_t limit = bz_model_context(r->m.model);
    if (r->o->context) {
        return r->o->context;
    }
    if (s->set[SET_NUM_CTX] && s->value[SET_NUM_CTX] <= limit) {
        return (uint32_t)s->value[SET_NUM_CTX];
    }
    return context_that_fits(r->m.model, r->o->kv, limit < MAX_CONTEXT ? limit : MAX_CONTEXT);
}

bz_status run_session(run_state *r, bz_error *err)
{
    settings s;
    bz_status status = run_settings(r, &s, err);
    if (status != BZ_OK) {
        return status;
    }
    const cli_options *o = r->o;
    const bz_session_options so = {.size = sizeof so,
                                   .context = run_context(r, &s),
                                   .threads = o->threads,
                                   .chunk = o->chunk,
                                   .kernels = o->kernels,
                                   .no_fuse = o->no_fuse,
                                   .exact = o->exact,
                                   .snapshots = SNAPSHOTS,
                                   .kv = o->kv};
    bz_session *fresh = NULL;
    status = bz_session_new(&fresh, r->m.model, &so, err);
    status = status == BZ_OK ? adapters_use(&r->m, fresh, err) : status;
    if (status != BZ_OK) {
        bz_session_free(fresh);
    } else {
        bz_session_free(r->session);
        r->session = fresh;
        r->context = so.context;
        conversation_see_all(&r->conversation); /* there may be room for it */
    }
    settings_free(&s);
    return status;
}
