/* One turn of a conversation: a request in, its prompt out; tokens in, parts of the answer out. */
#include "api/turn.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/calls.h"
#include "grammar/schema.h"
#include "sample/stop.h"
#include "text/parse.h"

void bz_turn_free(bz_turn *t)
{
    if (!t) {
        return;
    }
    bz_parser_free(t->parser);
    bz_grammar_free(t->grammar);
    bz_stop_free(t->stop);
    bz_ids_free(&t->prompt);
    bz_prompt_free(&t->rendered);
    for (size_t i = 0; i < t->n_media; i++) {
        bz_media_free(t->media[i].media);
    }
    free(t->media);
    bz_arena_free(&t->arena);
    free(t->text.text);
    free(t);
}

/* ---- the prompt -------------------------------------------------------------- */

/* Two calls: tokens are split where the generation prompt begins, so that a later turn, whose
 * prompt continues differently from there, has the same tokens before it. */
static bz_status tokenize(const bz_model *m, const bz_prompt *p, bz_ids *ids, uint32_t *snapshot_at,
                          bz_error *err)
{
    bz_status status = bz_tokenize_pieces(m->tokenizer, p->pieces, p->generation, ids, err);
    *snapshot_at = p->generation < p->n ? (uint32_t)ids->n : 0;
    if (status == BZ_OK) {
        status = bz_tokenize_pieces(m->tokenizer, p->pieces + p->generation, p->n - p->generation,
                                    ids, err);
    }
    return status;
}

static bz_status take_media(bz_turn *t, const bz_prompt *p, bool allowed, bz_error *err)
{
    if (p->n_media && !allowed) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "The request has image, audio or video content (image_url, input_audio, video_url), "
            "which is not taken here; encode it and attach it (bezel_media.h).");
    }
    t->media = calloc(p->n_media + 1, sizeof *t->media);
    if (!t->media) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the conversation's images.");
    }
    for (size_t i = 0; i < p->n_media; i++) {
        t->media[t->n_media++] = (turn_media){.of = p->media[i].of, .part = p->media[i].part};
    }
    return BZ_OK;
}

static bz_status render(bz_turn *t, const bz_model *m, const bz_conversation *chat, bool media,
                        bool *thinking_open, bz_error *err)
{
    bz_prompt prompt = {0};
    bz_status status = bz_chat_render(&prompt, chat, err);
    if (status == BZ_OK) {
        status = take_media(t, &prompt, media, err);
    }
    if (status == BZ_OK) {
        *thinking_open = prompt.thinking_open;
        if (t->n_media) { /* waits for the number of their rows */
            t->rendered = prompt;
            return BZ_OK;
        }
        status = tokenize(m, &prompt, &t->prompt, &t->snapshot_at, err);
    }
    bz_prompt_free(&prompt);
    return status;
}

/* ---- the form of the answer ----------------------------------------------------------- */

static bz_status form_grammar(bz_grammar **out, const bz_request_answer *a, bz_error *err)
{
    switch (a->form) {
    case BZ_FORM_FREE: return BZ_OK;
    case BZ_FORM_JSON: return bz_grammar_new(out, BZ_GRAMMAR_JSON, "", 0, err);
    case BZ_FORM_SCHEMA: return bz_schema_read(out, a->schema, err);
    case BZ_FORM_GBNF: return bz_grammar_new(out, BZ_GRAMMAR_GBNF, a->text.data, a->text.len, err);
    case BZ_FORM_REGEX:
        return bz_grammar_new(out, BZ_GRAMMAR_REGEX, a->text.data, a->text.len, err);
    case BZ_FORM_CHOICES: return bz_choices_read(out, a->schema, err);
    }
    return BZ_OK;
}

/* What the request says of tools and of the form of the answer, as a grammar. Tools that may be
 * called leave the answer free, unless a call begins. */
static bz_status make_grammar(bz_turn *t, const bz_conversation *chat, bool thinking_open,
                              bz_error *err)
{
    const bz_request_answer *a = &t->request.answer;
    const bool tools = bz_json_first(chat->tools) != NULL,
               json = a->form == BZ_FORM_JSON || a->form == BZ_FORM_SCHEMA,
               watched = bz_calls_strict(chat->tools) || a->one_call;
    bz_calls_options o = {
        .tools = chat->tools, .only = a->tool, .all_strict = a->must_call, .several = !a->one_call};
    bz_status status;
    if (a->form != BZ_FORM_FREE && a->must_call) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "An answer that must call a tool has no other form; leave out either "
                       "tool_choice or the form.");
    }
    if (tools && a->form != BZ_FORM_FREE && !json) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "grammar, regex and choices cannot be combined with tools, unless "
                       "tool_choice is none.");
    }
    if (a->must_call || (tools && json)) {
        o.or_json = json;
        o.or_schema = a->schema;
        status = bz_calls_read(&t->grammar, &o, err);
    } else if (tools && watched) {
        o.several = false;
        status = bz_calls_read(&t->grammar, &o, err);
        if (status == BZ_OK) {
            t->grammar->place.calls_only = true;
            t->grammar->place.one_call = a->one_call;
        }
    } else {
        status = form_grammar(&t->grammar, a, err);
    }
    if (status == BZ_OK && t->grammar) {
        t->grammar->place.thought_first = chat->enable_thinking;
        t->grammar->place.thought_open = thinking_open;
        t->request.generate.grammar = t->grammar;
    }
    return status;
}

/* ---- making one ----------------------------------------------------------------- */

static bz_status fill(bz_turn *t, const bz_model *m, const char *request, size_t len, bool media,
                      bz_error *err)
{
    const bz_json_node *root;
    bz_conversation *chat = &t->chat;
    bool thinking_open = false;
    bz_status status = bz_model_check_writes(m, err);
    if (status == BZ_OK) {
        status = bz_json_read(&root, request, len, &t->arena, err);
    }
    if (status == BZ_OK) {
        status = bz_request_read(&t->request, root, &t->arena, err);
    }
    if (status == BZ_OK) {
        status = bz_chat_read(chat, root, &t->arena, err);
    }
    if (status == BZ_OK && t->request.n_stop) {
        status = bz_stop_new(&t->stop, t->request.stop, t->request.n_stop, err);
    }
    if (status == BZ_OK) {
        chat->no_ple = m->text.config.ple_width == 0;
        status = render(t, m, chat, media, &thinking_open, err);
    }
    if (status == BZ_OK) {
        status = make_grammar(t, chat, thinking_open, err);
    }
    if (status == BZ_OK) {
        const bz_parser_options o = {.thinking = chat->enable_thinking,
                                     .thinking_open = thinking_open,
                                     .tools = chat->tools};
        status = bz_parser_new(&t->parser, m->tokenizer, &o, err);
    }
    return status;
}

static bz_status new_turn(bz_turn **out, const bz_model *m, const char *request, size_t len,
                          bool media, bz_error *err)
{
    bz_turn *t = calloc(1, sizeof *t);
    if (!t) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a turn of the conversation.");
    }
    t->model = m;
    bz_status status = fill(t, m, request, len, media, err);
    if (status != BZ_OK) {
        bz_turn_free(t);
        return status;
    }
    *out = t;
    return BZ_OK;
}

bz_status bz_turn_new(bz_turn **out, const bz_model *m, const char *request, size_t len,
                      bz_error *err)
{
    return new_turn(out, m, request, len, false, err);
}

/* ---- media ------------------------------------------------------------------------ */

bz_status bz_turn_new_media(bz_turn **out, const bz_model *m, const char *request, size_t len,
                            bz_error *err)
{
    return new_turn(out, m, request, len, true, err);
}

static bz_media_kind kind_of(const turn_media *m)
{
    return m->part.kind == BZ_PART_IMAGE   ? BZ_MEDIA_IMAGE
           : m->part.kind == BZ_PART_AUDIO ? BZ_MEDIA_AUDIO
                                           : BZ_MEDIA_VIDEO;
}

size_t bz_turn_media(const bz_turn *t)
{
    return t->n_media;
}

bz_media_kind bz_turn_media_source(const bz_turn *t, size_t i, const char **source, size_t *len)
{
    *source = t->media[i].part.text.data;
    *len = t->media[i].part.text.len;
    return kind_of(&t->media[i]);
}

/* One token for each image, audio clip and frame, as they stand in `ids`; appends the prompt with
 * one token per row. Around images and audio there are begin and end tokens; those of frames are in
 * `ids`. */
static bool put_rows(bz_turn *t, const bz_ids *ids, uint32_t snapshot)
{
    const bz_special_ids *special = bz_tokenizer_special(t->model->tokenizer);
    size_t next = 0;
    uint32_t frame = 0; /* of a video */
    bool ok = true;
    t->snapshot_at = 0;
    for (size_t i = 0; i < ids->n && ok; i++) {
        const int32_t id = ids->id[i];
        t->snapshot_at = snapshot && i == snapshot ? (uint32_t)t->prompt.n : t->snapshot_at;
        if (next == t->n_media ||
            (id != special->image && id != special->audio && id != special->video)) {
            ok = bz_ids_push(&t->prompt, id);
            continue;
        }
        const bz_media *m = t->media[next].media;
        const bz_media *one = m->frames ? m->frames[frame].media : m;
        if (!m->frames) {
            ok = bz_ids_push(&t->prompt,
                             id == special->image ? special->image_begin : special->audio_begin);
        }
        for (uint32_t row = 0; row < one->rows && ok; row++) {
            ok = bz_ids_push(&t->prompt, id);
        }
        if (!m->frames && ok) {
            ok = bz_ids_push(&t->prompt,
                             id == special->image ? special->image_end : special->audio_end);
        }
        frame = m->frames && frame + 1 < m->pieces ? frame + 1 : 0;
        next += frame == 0;
    }
    if (snapshot == ids->n) {
        t->snapshot_at = (uint32_t)t->prompt.n;
    }
    t->prompt.n = next == t->n_media ? t->prompt.n : 0;
    return ok;
}

/* The whole prompt, once all media are attached. Times of frames are text, which may share a token
 * with the text before them. */
static bz_status expand(bz_turn *t, bz_error *err)
{
    bz_ids ids = {0};
    uint32_t snapshot;
    bool ok = true;
    for (size_t i = 0; i < t->n_media; i++) {
        if (!t->media[i].media) {
            return BZ_OK;
        }
    }
    t->prompt.n = 0;
    for (size_t i = 0; i < t->n_media && ok; i++) {
        if (t->media[i].media->frames) {
            const char *text = bz_video_text(t->media[i].media, &t->arena);
            bz_piece *piece = &t->rendered.pieces[t->rendered.media[i].piece];
            ok = text != NULL;
            *piece = (bz_piece){ok ? text : "", ok ? strlen(text) : 0, true};
        }
    }
    bz_status status =
        ok ? tokenize(t->model, &t->rendered, &ids, &snapshot, err) : BZ_OUT_OF_MEMORY;
    ok = status == BZ_OK && put_rows(t, &ids, snapshot);
    bz_ids_free(&ids);
    if (!ok) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt with media.");
    }
    return t->prompt.n
               ? BZ_OK
               : bz_fail(err, BZ_UNSUPPORTED_MODEL,
                         "This model's vocabulary has no tokens for images, audio or video.");
}

/* The media of a shortened conversation are some of those that it had, in the same order. */
static void keep_media(bz_turn *t, const bz_prompt *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->n_media; i++) {
        if (kept < p->n_media && p->media[kept].of == t->media[i].of) {
            t->media[kept++] = t->media[i];
        } else {
            bz_media_free(t->media[i].media);
        }
    }
    t->n_media = kept;
}

bz_status bz_turn_render_again(bz_turn *t, bz_error *err)
{
    bz_prompt prompt = {0};
    bz_status status = bz_chat_render(&prompt, &t->chat, err);
    if (status != BZ_OK) {
        return status;
    }
    keep_media(t, &prompt);
    t->prompt.n = 0;
    bz_prompt_free(&t->rendered);
    if (t->n_media) {
        t->rendered = prompt;
        return expand(t, err);
    }
    status = tokenize(t->model, &prompt, &t->prompt, &t->snapshot_at, err);
    bz_prompt_free(&prompt);
    return status;
}

bz_status bz_turn_attach(bz_turn *t, size_t i, const bz_media *media, bz_error *err)
{
    static const char *const what[] = {"an image", "audio", "a video"};
    if (i >= t->n_media) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The request has %zu images, audio clips and videos; there is none with "
                       "index %zu.",
                       t->n_media, i);
    }
    if (kind_of(&t->media[i]) != media->kind) {
        return bz_fail(err, BZ_BAD_REQUEST, "Number %zu of the request's media is %s.", i + 1,
                       what[kind_of(&t->media[i])]);
    }
    bz_media *held = bz_media_hold(media);
    bz_media_free(t->media[i].media);
    t->media[i].media = held;
    return expand(t, err);
}

bz_status bz_turn_prefill(bz_session *session, bz_turn *t, bz_job **job, bz_error *err)
{
    if (t->prompt.n == 0) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The request has images, audio or video that were not attached yet.");
    }
    bz_media **list = malloc((t->n_media + 1) * sizeof *list);
    if (!list) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the conversation's images.");
    }
    for (size_t i = 0; i < t->n_media; i++) {
        list[i] = t->media[i].media;
    }
    const bz_prefill_options o = {.size = sizeof o, .snapshot_at = t->snapshot_at};
    const bz_status status = bz_session_prefill_media(session, t->prompt.id, t->prompt.n, list,
                                                      t->n_media, &o, job, err);
    free(list);
    return status;
}

const int32_t *bz_turn_prompt(const bz_turn *t, size_t *n, uint32_t *snapshot_at)
{
    *n = t->prompt.n;
    *snapshot_at = t->snapshot_at;
    return t->prompt.id;
}

/* ---- parts of the answer ----------------------------------------------------------- */

bz_status bz_turn_push(bz_turn *t, int32_t token, bz_error *err)
{
    if (token >= 0 && t->finish == BZ_FINISH_NONE && bz_token_ends(t->model, token)) {
        t->finish = BZ_FINISH_END;
    }
    return token < 0 ? bz_parser_finish(t->parser, err) : bz_parser_push(t->parser, token, err);
}

/* Makes t->text an empty buffer for n bytes and a terminator. */
static bool reserve_text(bz_turn *t, size_t n)
{
    t->text.n = 0;
    if (t->text.cap <= n) {
        char *more = realloc(t->text.text, 2 * n + 64);
        if (!more) {
            return false;
        }
        t->text.text = more;
        t->text.cap = 2 * n + 64;
    }
    return true;
}

/* The answer without stop strings; what may be the beginning of one is held back. */
static bool filter_answer(bz_turn *t, bz_str said)
{
    if (!reserve_text(t, said.len + bz_stop_longest(t->stop))) {
        return false;
    }
    t->text.n = bz_stop_push(t->stop, said.data, said.len, t->text.text);
    return true;
}

static bool flush_held(bz_turn *t)
{
    if (!reserve_text(t, bz_stop_longest(t->stop))) {
        return false;
    }
    t->text.n = bz_stop_flush(t->stop, t->text.text);
    return true;
}

/* {"name":..., "arguments":...}; the arguments are JSON already. */
static bool write_call(bz_turn *t, const bz_parse_event *said)
{
    static const char before[] = "{\"name\":", between[] = ",\"arguments\":";
    bz_json j;
    t->text.n = 0;
    bool ok = bz_json_to_buffer(&t->text, before, sizeof before - 1);
    bz_json_init(&j, bz_json_to_buffer, &t->text);
    bz_json_str(&j, said->name);
    return ok && bz_json_finish(&j) && bz_json_to_buffer(&t->text, between, sizeof between - 1) &&
           bz_json_to_buffer(&t->text, said->text.data, said->text.len) &&
           bz_json_to_buffer(&t->text, "}", 1);
}

static bz_turn_part return_part(bz_turn *t, bz_turn_part part, bz_str said, const char **text,
                                size_t *len)
{
    t->ended = t->ended || part == BZ_TURN_END;
    *text = said.data;
    *len = said.len;
    return part;
}

static bz_str own_text(const bz_turn *t)
{
    return (bz_str){t->text.text, t->text.n};
}

static const bz_str nothing = {"", 0};

/* Without memory for a text the turn ends: missing text would go unnoticed. */
static bz_turn_part return_said(bz_turn *t, const bz_parse_event *said, const char **text,
                                size_t *len)
{
    switch (said->kind) {
    case BZ_PARSE_THINKING: return return_part(t, BZ_TURN_THINKING, said->text, text, len);
    case BZ_PARSE_ANSWER: return return_part(t, BZ_TURN_ANSWER, said->text, text, len);
    case BZ_PARSE_CALL_BEGIN: return return_part(t, BZ_TURN_CALL_BEGIN, said->name, text, len);
    case BZ_PARSE_BROKEN_CALL: return return_part(t, BZ_TURN_BROKEN_CALL, said->text, text, len);
    case BZ_PARSE_CALL:
        if (write_call(t, said)) {
            return return_part(t, BZ_TURN_CALL, own_text(t), text, len);
        }
        break;
    case BZ_PARSE_END: break;
    }
    return return_part(t, BZ_TURN_END, nothing, text, len);
}

bz_turn_part bz_turn_next(bz_turn *t, const char **text, size_t *len)
{
    if (t->waiting) {
        t->waiting = false;
        return return_said(t, &t->said, text, len);
    }
    while (!t->ended) {
        if (t->stop && bz_stop_matched(t->stop)) {
            t->finish = BZ_FINISH_STOP;
            return return_part(t, BZ_TURN_END, nothing, text, len);
        }
        if (!bz_parser_next(t->parser, &t->said)) {
            break;
        }
        const bool answer = t->said.kind == BZ_PARSE_ANSWER;
        if (!t->stop) {
            return return_said(t, &t->said, text, len);
        }
        if (answer ? !filter_answer(t, t->said.text) : !flush_held(t)) {
            return return_part(t, BZ_TURN_END, nothing, text, len);
        }
        if (t->text.n) { /* text that was held back comes first */
            t->waiting = !answer;
            return return_part(t, BZ_TURN_ANSWER, own_text(t), text, len);
        }
        if (!answer) {
            return return_said(t, &t->said, text, len);
        }
    }
    return return_part(t, BZ_TURN_NOTHING, nothing, text, len);
}

const bz_generate_options *bz_turn_options(const bz_turn *t, bool *has_seed)
{
    *has_seed = t->request.has_seed;
    return &t->request.generate;
}

bz_finish bz_turn_finish(const bz_turn *t, bz_finish generated)
{
    return t->finish != BZ_FINISH_NONE ? t->finish : generated;
}
