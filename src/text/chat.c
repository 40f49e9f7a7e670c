/* Renders a conversation with Gemma 4's chat template:
 *
 *   <bos>
 *   [<|turn>system\n [<|think|>\n] [system text] [tool declarations] <turn|>\n]
 *   <|turn>user\n ... <turn|>\n
 *   <|turn>model\n [thought] [calls] [results] [text] <turn|>\n
 *   ...
 *   <|turn>model\n                     the generation prompt
 *
 * Tool messages have no turn of their own: results follow the calls they belong to, and the
 * assistant's messages before and after them share one model turn.
 */
#include "text/chat_write.h"

#include <stdlib.h>
#include <string.h>

#include "text/space.h"

#define THOUGHT_OPEN  "<|channel>"
#define THOUGHT_CLOSE "<channel|>"

static const char NO_MEMORY[] = "There is not enough memory to render the conversation.";

/* ---- pieces ----------------------------------------------------------------- */

/* Doubles the capacity of a list; false: out of memory, list unchanged. */
static bool grow(void **list, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *larger = more <= SIZE_MAX / 4 / size ? realloc(*list, more * size) : NULL;
    if (larger) {
        *list = larger;
        *cap = more;
    }
    return larger != NULL;
}

static void put(bz_prompt *p, const char *text, size_t len, bool specials)
{
    if (p->failed || len == 0) {
        return;
    }
    if (p->n == p->cap) {
        void *list = p->pieces;
        if (!grow(&list, &p->cap, sizeof *p->pieces)) {
            p->failed = true;
            return;
        }
        p->pieces = list;
    }
    p->pieces[p->n++] = (bz_piece){text, len, specials};
}

void bz_put_template(bz_prompt *p, const char *text)
{
    put(p, text, strlen(text), true);
}

void bz_put_plain(bz_prompt *p, bz_str text)
{
    put(p, text.data, text.len, false);
}

static void put_media(bz_prompt *p, const bz_part *part)
{
    if (p->n_media == p->cap_media) {
        void *list = p->media;
        if (!grow(&list, &p->cap_media, sizeof *p->media)) {
            p->failed = true;
            return;
        }
        p->media = list;
    }
    p->media[p->n_media++] = (bz_prompt_media){p->n, part, *part};
    bz_put_template(p, part->kind == BZ_PART_IMAGE   ? "<|image|>"
                       : part->kind == BZ_PART_AUDIO ? "<|audio|>"
                                                     : "<|video|>");
}

void bz_prompt_free(bz_prompt *p)
{
    free(p->pieces);
    free(p->media);
    bz_arena_free(&p->arena);
    *p = (bz_prompt){0};
}

char *bz_prompt_text(const bz_prompt *p, size_t *len)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        n += p->pieces[i].len;
    }
    char *text = malloc(n + 1);
    if (text) {
        size_t at = 0;
        for (size_t i = 0; i < p->n; i++) {
            memcpy(text + at, p->pieces[i].text, p->pieces[i].len);
            at += p->pieces[i].len;
        }
        text[n] = 0;
        *len = n;
    }
    return text;
}

/* ---- texts ------------------------------------------------------------------ */

/* Offset of `what` in s, or s.len. */
static size_t find(bz_str s, const char *what)
{
    size_t n = strlen(what);
    for (size_t at = 0; at + n <= s.len; at++) {
        const char *hit = memchr(s.data + at, what[0], s.len - n - at + 1);
        if (!hit) {
            break;
        }
        at = (size_t)(hit - s.data);
        if (memcmp(hit, what, n) == 0) {
            return at;
        }
    }
    return s.len;
}

/* The text of an answer without thoughts that the client left in it. The text is split after each
 * closing marker, and of every part only what precedes the first opening marker is kept. */
static bz_str without_thoughts(bz_prompt *p, bz_str s)
{
    if (find(s, THOUGHT_OPEN) == s.len && find(s, THOUGHT_CLOSE) == s.len) {
        return bz_trim(s);
    }
    char *kept = bz_arena_alloc(&p->arena, s.len);
    size_t n = 0;
    if (!kept) {
        p->failed = true;
        return (bz_str){"", 0};
    }
    while (s.len) {
        size_t end = find(s, THOUGHT_CLOSE);
        size_t keep = find((bz_str){s.data, end}, THOUGHT_OPEN);
        memcpy(kept + n, s.data, keep);
        n += keep;
        end += end < s.len ? strlen(THOUGHT_CLOSE) : 0;
        s = (bz_str){s.data + end, s.len - end};
    }
    return bz_trim((bz_str){kept, n});
}

/* Writes a message's content; true if there was any. */
static bool put_content(bz_prompt *p, const bz_message *m)
{
    size_t before = p->n;
    bool model = m->role == BZ_ROLE_ASSISTANT;
    if (!m->parts) {
        bz_put_plain(p, model ? without_thoughts(p, m->text) : bz_trim(m->text));
    }
    for (size_t i = 0; m->parts && i < m->n_parts; i++) {
        const bz_part *part = &m->parts[i];
        if (part->kind == BZ_PART_TEXT) {
            bz_put_plain(p, model ? without_thoughts(p, part->text) : bz_trim(part->text));
        } else {
            put_media(p, part);
        }
    }
    return p->n > before;
}

/* ---- tools ------------------------------------------------------------------ */

static bz_status put_call(bz_prompt *p, const bz_tool_call *call, bz_error *err)
{
    const bz_json_node *arguments = call->arguments;
    char name[200];
    if (!arguments && bz_trim(call->arguments_text).len) {
        bz_error inner = {0};
        if (bz_json_read(&arguments, call->arguments_text.data, call->arguments_text.len, &p->arena,
                         &inner)) {
            return inner.code != BZ_BAD_REQUEST
                       ? bz_fail(err, inner.code, "%s", inner.text)
                       : bz_fail(err, BZ_BAD_REQUEST,
                                 "The arguments of a call of %s cannot be read. %s",
                                 bz_str_show(call->name, name), inner.text);
        }
    }
    if (arguments && arguments->kind != BZ_JSON_OBJECT && arguments->kind != BZ_JSON_NULL) {
        return bz_fail(err, BZ_BAD_REQUEST, "The arguments of a call of %s must be a JSON object.",
                       bz_str_show(call->name, name));
    }
    bz_put_template(p, "<|tool_call>call:");
    bz_put_plain(p, call->name);
    bz_put_template(p, "{");
    bz_put_members(p, arguments, false);
    bz_put_template(p, "}<tool_call|>");
    return BZ_OK;
}

static void open_result(bz_prompt *p, bz_str name)
{
    bz_put_template(p, "<|tool_response>response:");
    bz_put_plain(p, name.len ? name : (bz_str){"unknown", 7});
    bz_put_template(p, "{");
}

/* A result that is part of the message with the call. */
static void put_inline_result(bz_prompt *p, const bz_tool_result *result)
{
    open_result(p, result->name);
    if (bz_json_is(result->value, BZ_JSON_OBJECT)) {
        bz_put_members(p, result->value, false);
    } else {
        bz_put_template(p, "value:");
        bz_put_value(p, result->value, false);
    }
    bz_put_template(p, "}<tool_response|>");
}

/* A tool message: its text unchanged, as one string even if it is JSON. */
static void put_result(bz_prompt *p, const bz_message *caller, const bz_message *m)
{
    bz_str name = m->name;
    for (size_t i = 0; m->tool_call_id.len && i < caller->n_calls; i++) {
        bz_str id = caller->calls[i].id;
        if (id.len == m->tool_call_id.len && memcmp(id.data, m->tool_call_id.data, id.len) == 0) {
            name = caller->calls[i].name;
            break;
        }
    }
    open_result(p, name);
    bz_put_template(p, "value:" BZ_QUOTE);
    if (!m->parts) {
        bz_put_plain(p, m->text);
    }
    for (size_t i = 0; m->parts && i < m->n_parts; i++) {
        if (m->parts[i].kind == BZ_PART_TEXT) {
            bz_put_plain(p, m->parts[i].text);
        }
    }
    bz_put_template(p, BZ_QUOTE "}<tool_response|>");
    for (size_t i = 0; m->parts && i < m->n_parts; i++) {
        if (m->parts[i].kind != BZ_PART_TEXT) {
            put_media(p, &m->parts[i]);
        }
    }
}

/* ---- turns ------------------------------------------------------------------ */

/* The state after the last message. */
typedef enum ending {
    CLOSED,  /* a complete turn, or none yet */
    RESULTS, /* a model turn that continues after tool results */
    SAID,    /* a complete model turn with tool results and content after them */
    PENDING, /* a model turn that waits for tool results */
    OPEN     /* an incomplete model turn that is continued */
} ending;

/* Text, with a space after each part of a list; the template does so here only. */
static bz_status put_system_text(bz_prompt *p, const bz_message *m, bz_error *err)
{
    if (!m->parts) {
        bz_put_plain(p, bz_trim(m->text));
    }
    for (size_t i = 0; m->parts && i < m->n_parts; i++) {
        if (m->parts[i].kind != BZ_PART_TEXT) {
            return bz_fail(
                err, BZ_BAD_REQUEST,
                "The system message may contain text only; put media into a user message.");
        }
        bz_put_plain(p, bz_trim(m->parts[i].text));
        bz_put_template(p, " ");
    }
    return BZ_OK;
}

static bz_status put_system(bz_prompt *p, const bz_conversation *chat, const bz_message *system,
                            bz_error *err)
{
    bz_status status = BZ_OK;
    bz_put_template(p, "<|turn>system\n");
    if (chat->enable_thinking) {
        bz_put_template(p, "<|think|>\n");
    }
    if (system) {
        status = put_system_text(p, system, err);
    }
    if (!status) {
        status = bz_put_declarations(p, chat->tools, err);
    }
    bz_put_template(p, "<turn|>\n");
    return status;
}

/* Calls and their results, which may be the following messages. */
static bz_status put_calls(bz_prompt *p, const bz_message *m, size_t n_following, ending *end,
                           bz_error *err)
{
    for (size_t i = 0; i < m->n_calls; i++) {
        bz_status status = put_call(p, &m->calls[i], err);
        if (status) {
            return status;
        }
        *end = PENDING;
    }
    for (size_t i = 0; i < m->n_results; i++) {
        put_inline_result(p, &m->results[i]);
        *end = RESULTS;
    }
    for (size_t k = 1; m->n_calls && !m->n_results && k <= n_following && m[k].role == BZ_ROLE_TOOL;
         k++) {
        put_result(p, m, &m[k]);
        *end = RESULTS;
    }
    return BZ_OK;
}

/* A message's position in the conversation. */
typedef struct context {
    bool continues;     /* the assistant's previous message is in the same turn */
    bool continued;     /* the assistant's next message is in the same turn */
    bool last;          /* only tool messages follow */
    bool keep_thinking; /* keep the reasoning if there are calls */
    bool in_last_turn;  /* keep the reasoning in any case */
    size_t n_following;
} context;

static bz_status put_message(bz_prompt *p, const bz_message *m, context at, ending *end,
                             bz_error *err)
{
    bool model = m->role == BZ_ROLE_ASSISTANT;
    *end = CLOSED;
    if (!at.continues) {
        bz_put_template(p, model                     ? "<|turn>model\n"
                           : m->role == BZ_ROLE_USER ? "<|turn>user\n"
                                                     : "<|turn>system\n");
    }
    if (model) {
        if (m->reasoning.len && (at.in_last_turn || (at.keep_thinking && m->n_calls))) {
            bz_put_template(p, THOUGHT_OPEN "thought\n");
            bz_put_plain(p, m->reasoning);
            bz_put_template(p, "\n" THOUGHT_CLOSE);
        }
        bz_status status = put_calls(p, m, at.n_following, end, err);
        if (status) {
            return status;
        }
    }
    bool any = put_content(p, m);
    if (*end == PENDING) {
        bz_put_template(p, "<|tool_response>"); /* the token at which the model stopped */
    } else if (at.continued) {
        *end = OPEN; /* the next message, or the model, continues this turn */
    } else if (*end != RESULTS || any || !at.last) {
        bz_put_template(p, "<turn|>\n");
        *end = *end == RESULTS ? SAID : CLOSED;
    }
    return BZ_OK;
}

static bz_status put_messages(bz_prompt *p, const bz_conversation *chat, size_t first, ending *end,
                              bz_error *err)
{
    const bz_message *messages = chat->messages;
    size_t n = chat->n_messages, after_user = first;
    const bz_message *before = NULL;
    for (size_t i = first; i < n; i++) {
        if (messages[i].role == BZ_ROLE_USER) {
            after_user = i + 1;
        }
    }
    for (size_t i = first; i < n; i++) {
        const bz_message *m = &messages[i];
        p->starts[i] = p->n;
        if (m->role == BZ_ROLE_TOOL) {
            continue;
        }
        size_t next = i + 1;
        while (next < n && messages[next].role == BZ_ROLE_TOOL) {
            next++;
        }
        bool model = m->role == BZ_ROLE_ASSISTANT;
        context at = {.continues = model && before && before->role == BZ_ROLE_ASSISTANT,
                      .continued = model && (next < n ? messages[next].role == BZ_ROLE_ASSISTANT
                                                      : chat->continue_final && next == i + 1),
                      .last = next == n,
                      .keep_thinking = chat->preserve_thinking,
                      .in_last_turn = i >= after_user,
                      .n_following = n - i - 1};
        bz_status status = put_message(p, m, at, end, err);
        if (status) {
            return status;
        }
        before = m;
    }
    p->starts[n] = p->n;
    return BZ_OK;
}

static void put_generation_prompt(bz_prompt *p, const bz_conversation *chat, ending end)
{
    p->generation = p->n;
    if (!chat->add_generation_prompt) {
        return;
    }
    /* After results with content the template adds no generation prompt without thinking, although
     * the turn is closed; llama.cpp then begins a turn, and so does this. */
    if (end == CLOSED || (end == SAID && !chat->enable_thinking)) {
        bz_put_template(p, "<|turn>model\n");
        if (chat->no_ple && !chat->enable_thinking) {
            bz_put_template(p, THOUGHT_OPEN
                            "thought\n" THOUGHT_CLOSE); /* else models without per-layer
                                                       embeddings think aloud */
        }
    } else if ((end == RESULTS || end == SAID) && chat->enable_thinking) {
        bz_put_template(p, THOUGHT_OPEN "thought\n");
        p->thinking_open = true;
    }
}

bz_status bz_chat_render(bz_prompt *p, const bz_conversation *chat, bz_error *err)
{
    bz_status status = BZ_OK;
    ending end = CLOSED;
    const bz_message *system =
        chat->n_messages && chat->messages[0].role == BZ_ROLE_SYSTEM ? &chat->messages[0] : NULL;
    bz_prompt_free(p);
    p->starts = bz_arena_array(&p->arena, chat->n_messages + 1, sizeof *p->starts);
    if (!p->starts) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "%s", NO_MEMORY);
    }
    p->starts[0] = 0;
    bz_put_template(p, "<bos>");
    if (chat->enable_thinking || system || bz_json_first(chat->tools)) {
        status = put_system(p, chat, system, err);
    }
    if (!status) {
        status = put_messages(p, chat, system != NULL, &end, err);
    }
    if (!status) {
        put_generation_prompt(p, chat, end);
        if (p->failed) {
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "%s", NO_MEMORY);
        }
    }
    if (status) {
        bz_prompt_free(p);
    }
    return status;
}
