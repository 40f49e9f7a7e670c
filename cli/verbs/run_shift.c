/* Conversations that are longer than the context: the oldest turns are left out. */
#include <stdlib.h>

#include "base/error.h"
#include "bezel_diffusion.h"
#include "cli/term.h"
#include "cli/verbs/run.h"

enum { MAX_ROOM = 1024 }; /* tokens that are kept free for an answer; at most a quarter of all */

/* Tokens of the context that a prompt may take. */
static uint32_t longest_prompt(const run_state *r, const settings *s, uint32_t context)
{
    uint32_t room = context / 4 < MAX_ROOM ? context / 4 : MAX_ROOM;
    const double wanted = s->set[SET_NUM_PREDICT] ? s->value[SET_NUM_PREDICT] : 0;
    if (wanted > 0) { /* it needs no more, and should get what it asks for */
        room = wanted < context / 2 ? (uint32_t)wanted : context / 2;
    }
    const uint32_t canvas = bz_model_canvas(r->m.model); /* comes whole */
    room = room < canvas && canvas < context ? canvas : room;
    return context - room;
}

/* The encoded files of a conversation, and those of turns that are left out. */
typedef struct shelves {
    media_cache *kept, left_out;
} shelves;

static void leave_out_file(void *user, bool sound, bz_str path)
{
    shelves *s = user;
    media_cache_move(s->kept, &s->left_out, sound ? BZ_MEDIA_AUDIO : BZ_MEDIA_IMAGE, path.data,
                     path.len);
}

static void tell(const run_state *r)
{
    if (!r->o->quiet) {
        fprintf(stderr, "%s(The context is full: the model no longer sees the oldest turns.)%s\n",
                term_dim(), term_plain());
    }
}

static bz_status ask_once(run_state *r, const settings *s, const ask_options *o, ask_answer *a,
                          bz_error *err)
{
    bz_json_buffer request = {0};
    const bz_status status =
        conversation_request(&r->conversation, r->think, s, &request)
            ? ask(r->session, r->m.model, request.text, request.n, o, a, err)
            : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the conversation.");
    free(request.text);
    return status;
}

bz_status run_ask(run_state *r, const settings *s, ask_options *o, ask_answer *a, bz_error *err)
{
    const uint32_t longest = longest_prompt(r, s, r->context);
    const size_t before = r->conversation.n_left_out;
    shelves files = {.kept = &r->cache};
    bool told = false;
    o->max_prompt = r->shift ? longest : 0;
    bz_status status = ask_once(r, s, o, a, err);
    /* Once turns are left out all of the prompt is computed again, which should be rare: more than
     * needed are left out. */
    while (status == BZ_CONTEXT_FULL && o->max_prompt &&
           conversation_leave_out_turn(&r->conversation, leave_out_file, &files)) {
        if (!told) {
            told = true;
            tell(r);
        }
        o->max_prompt = longest - longest / 4;
        ask_answer_free(a);
        status = ask_once(r, s, o, a, err);
    }
    if (status == BZ_CONTEXT_FULL && o->max_prompt) { /* what is left may have all there is */
        o->max_prompt = 0;
        ask_answer_free(a);
        status = ask_once(r, s, o, a, err);
    }
    if (status != BZ_OK) { /* the question is not asked: nothing is left out for it */
        r->conversation.n_left_out = before;
        media_cache_put_back(&files.left_out, files.kept);
    }
    media_cache_clear(&files.left_out);
    return status;
}
