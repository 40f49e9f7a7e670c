/* Conversations that are longer than the context: the oldest turns are left out. */
#include <stdlib.h>

#include "base/error.h"
#include "cli/term.h"
#include "cli/verbs/run.h"

static void forget_file(void *user, bz_media_kind kind, bz_str path)
{
    media_cache_forget(user, kind, path.data, path.len);
}

static void tell(const run_state *r)
{
    if (!r->o->quiet) {
        fprintf(stderr, "%s(The context is full: the model no longer sees the oldest turns.)%s\n",
                term_dim(), term_plain());
    }
}

/* From now on requests do without these messages, and their images and audio need no memory. */
static void leave_out(void *user, const bz_turn *turn)
{
    run_state *r = user;
    conversation_leave_out(&r->conversation, turn, forget_file, &r->cache);
    tell(r);
}

bz_status run_ask(run_state *r, const settings *s, ask_options *o, ask_answer *a, bz_error *err)
{
    bz_json_buffer request = {0};
    o->fit = r->context;
    o->on_shift = leave_out;
    o->shift_user = r;
    const bz_status status =
        conversation_request(&r->conversation, r->think, r->shift, s, &request)
            ? ask(r->session, r->m.model, request.text, request.n, o, a, err)
            : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the conversation.");
    free(request.text);
    return status;
}
