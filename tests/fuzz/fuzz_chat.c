/* Any JSON as a chat request: refused with a reason, or a prompt in which every control
 * token is one that the template wrote. */
#include "text/chat.h"
#include "text/shift.h"
#include "text/request.h"
#include "text/parse.h"
#include "../support/small_vocab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static size_t count_controls(const bz_piece *pieces, size_t n)
{
    const bz_tokenizer *t = small_tokenizer();
    bz_ids ids = {0};
    size_t count = 0;
    must(bz_tokenize_pieces(t, pieces, n, &ids, NULL) == BZ_OK);
    for (size_t i = 0; i < ids.n; i++) {
        count += bz_tokenizer_is_control(t, ids.id[i]);
    }
    bz_ids_free(&ids);
    return count;
}

static void check_prompt(const bz_prompt *p, const bz_conversation *chat)
{
    size_t ours = 0, n;
    must(p->n > 0 && p->generation <= p->n && !p->failed);
    must(p->pieces[0].len == 5 && memcmp(p->pieces[0].text, "<bos>", 5) == 0);
    for (size_t i = 0; i < p->n; i++) {
        must(p->pieces[i].len > 0);
        ours += p->pieces[i].specials ? count_controls(&p->pieces[i], 1) : 0;
    }
    must(count_controls(p->pieces, p->n) == ours);
    for (size_t i = 0; i < p->n_media; i++) {
        must(p->media[i].piece < p->n && count_controls(&p->pieces[p->media[i].piece], 1) == 1);
    }
    must(!p->thinking_open || chat->enable_thinking);
    char *text = bz_prompt_text(p, &n);
    must(text != NULL && text[n] == 0);
    free(text);
}

/* What was written as the assistant's must be readable as the model's. */
static void parse_back(const bz_prompt *p, const bz_conversation *chat)
{
    const bz_tokenizer *t = small_tokenizer();
    bz_ids ids = {0};
    bz_parser *parser;
    bz_parse_event said;
    bz_parser_options o = {
        .thinking = chat->enable_thinking, .thinking_open = chat->no_ple, .tools = chat->tools};
    must(bz_parser_new(&parser, t, &o, NULL) == BZ_OK);
    must(bz_tokenize_pieces(t, p->pieces, p->n, &ids, NULL) == BZ_OK);
    for (size_t i = 0; i < ids.n; i++) {
        must(bz_parser_push(parser, ids.id[i], NULL) == BZ_OK);
        while (bz_parser_next(parser, &said)) {
            continue;
        }
    }
    bz_parser_free(parser);
    bz_ids_free(&ids);
}

/* Messages begin in order, and what a shorter context leaves out can be rendered without. */
static void shorten(const bz_prompt *p, const bz_conversation *chat, bz_arena *arena)
{
    const size_t n = chat->n_messages;
    uint32_t *tokens = bz_arena_array(arena, n + 1, sizeof *tokens);
    bool *out = bz_arena_alloc(arena, n + 1);
    bz_message *left = bz_arena_array(arena, n + 1, sizeof *left);
    bz_conversation shorter = *chat;
    bz_prompt again = {0};
    bz_error err = {0};
    must(tokens && out && left && p->starts[n] <= p->generation);
    memset(out, 0, n + 1);
    for (size_t i = 0; i < n; i++) {
        must(p->starts[i] <= p->starts[i + 1]);
        tokens[i] = (uint32_t)(p->starts[i + 1] - p->starts[i]);
    }
    const size_t count =
        bz_shift_choose(chat->messages, n, tokens, 1, (uint32_t)(p->starts[n] / 2), out);
    shorter.messages = left;
    shorter.n_messages = 0;
    for (size_t i = 0; i < n; i++) {
        must(!out[i] || (chat->messages[i].role != BZ_ROLE_SYSTEM && i + 1 < n));
        if (!out[i]) {
            left[shorter.n_messages++] = chat->messages[i];
        }
    }
    must(shorter.n_messages + count == n);
    must(bz_chat_render(&again, &shorter, &err) == BZ_OK);
    bz_prompt_free(&again);
}

/* Settings are in range or refused with a sentence. */
static void check_settings(const bz_json_node *request, bz_arena *arena)
{
    bz_error err = {0};
    bz_request r;
    const bz_status status = bz_request_read(&r, request, arena, &err);
    if (status != BZ_OK) {
        must((status == BZ_BAD_REQUEST || status == BZ_BAD_SCHEMA) && err.code == status &&
             err.text[0]);
        return;
    }
    const bz_sampling *s = &r.generate.sampling;
    must(isfinite(s->temperature) && s->top_p >= 0 && s->top_p <= 1 && s->min_p <= 1);
    must(r.generate.n_stop == 0 && r.generate.top_log_probs <= 20);
    for (size_t i = 0; i < r.n_stop; i++) {
        must(r.stop[i] != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bz_arena arena = {0};
    bz_error err = {0};
    bz_conversation chat;
    bz_prompt prompt = {0};
    const bz_json_node *request;
    if (size < 1 << 16 && bz_json_read(&request, (const char *)data, size, &arena, &err) == BZ_OK) {
        check_settings(request, &arena);
        bz_status status = bz_chat_read(&chat, request, &arena, &err);
        if (!status) {
            chat.no_ple = size & 1;
            status = bz_chat_render(&prompt, &chat, &err);
        }
        if (!status) {
            check_prompt(&prompt, &chat);
            parse_back(&prompt, &chat);
            shorten(&prompt, &chat, &arena);
        } else {
            must(status == BZ_BAD_REQUEST && err.code == status && err.text[0] && prompt.n == 0);
        }
    }
    bz_prompt_free(&prompt);
    bz_arena_free(&arena);
    return 0;
}
