/* Shortening a conversation until it leaves room for an answer in the context. */
#include <string.h>

#include "api/turn.h"
#include "text/shift.h"

enum { ANSWER_TOKENS = 1024 }; /* that are kept free; at most a quarter of the context */

/* Tokens of the context that a prompt may take. */
static uint32_t longest_prompt(const bz_turn *t, uint32_t context)
{
    uint32_t room = context / 4 < ANSWER_TOKENS ? context / 4 : ANSWER_TOKENS;
    const uint32_t wanted = t->request.generate.max_tokens;
    if (wanted) { /* it needs no more, and should get what it asks for */
        room = wanted < context / 2 ? wanted : context / 2;
    }
    const uint32_t canvas = t->model->text.config.canvas; /* comes whole */
    room = room < canvas && canvas < context ? canvas : room;
    return context - room;
}

/* Tokens of each message of the conversation as it is rendered, its media included. Times between
 * frames of videos are not counted here: they only matter for the result, which is counted whole.
 */
static bz_status count_tokens(const bz_turn *t, uint32_t *tokens, uint64_t *sum, bz_error *err)
{
    bz_prompt p = {0};
    bz_ids ids = {0};
    size_t media = 0;
    bz_status status = bz_chat_render(&p, &t->chat, err);
    *sum = 0;
    for (size_t i = 0; i < t->chat.n_messages && status == BZ_OK; i++) {
        const size_t first = p.starts[i], end = p.starts[i + 1];
        ids.n = 0;
        status = bz_tokenize_pieces(t->model->tokenizer, p.pieces + first, end - first, &ids, err);
        tokens[i] = (uint32_t)ids.n;
        for (; media < p.n_media && p.media[media].piece < end; media++) {
            tokens[i] += t->media[media].media->rows;
        }
        *sum += tokens[i];
    }
    bz_ids_free(&ids);
    bz_prompt_free(&p);
    return status;
}

/* The messages that are not left out become the conversation. */
static bool drop_messages(bz_turn *t, const bz_message *all)
{
    bz_message *list = bz_arena_array(&t->arena, t->n_messages + 1, sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < t->n_messages; i++) {
        if (!t->left_out[i]) {
            list[n++] = all[i];
        }
    }
    t->chat.messages = list;
    t->chat.n_messages = n;
    return list != NULL;
}

static bz_status shorten(bz_turn *t, uint32_t limit, bz_error *err)
{
    const bz_message *all = t->chat.messages;
    const size_t n = t->n_messages = t->chat.n_messages;
    uint32_t *tokens = bz_arena_array(&t->arena, n + 1, sizeof *tokens);
    uint64_t sum, fixed;
    t->left_out = bz_arena_alloc(&t->arena, n + 1);
    if (!tokens || !t->left_out) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to shorten the conversation.");
    }
    memset(t->left_out, 0, n + 1);
    bz_status status = count_tokens(t, tokens, &sum, err);
    fixed = t->prompt.n > sum ? t->prompt.n - sum : 0;
    /* More than once only if what is left has more tokens than those of its messages. */
    while (status == BZ_OK && t->prompt.n > limit) {
        const size_t added = bz_shift_choose(all, n, tokens, fixed, limit, t->left_out);
        if (added == 0) {
            break;
        }
        t->n_left_out += added;
        status = drop_messages(t, all)
                     ? bz_turn_render_again(t, err)
                     : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to shorten the conversation.");
        fixed += t->prompt.n > limit ? t->prompt.n - limit : 0;
    }
    return status;
}

bz_status bz_turn_fit(bz_turn *t, uint32_t context, bool shift, bz_error *err)
{
    const bool wanted = t->request.has_context_shift ? t->request.context_shift : shift;
    if (t->prompt.n == 0) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The request has images, audio or video that were not attached yet.");
    }
    if (t->left_out) {
        return bz_fail(err, BZ_BAD_REQUEST, "The conversation was shortened already.");
    }
    const uint32_t limit = longest_prompt(t, context);
    return wanted && t->prompt.n > limit ? shorten(t, limit, err) : BZ_OK;
}

size_t bz_turn_left_out(const bz_turn *t)
{
    return t->n_left_out;
}

bool bz_turn_leaves_out(const bz_turn *t, size_t message)
{
    return t->left_out && message < t->n_messages && t->left_out[message];
}
