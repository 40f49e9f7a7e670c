/* The answer parser: a state machine over texts and markers.
 *
 *   state    marker       next state
 *   answer   <|channel>   thought     the channel's name, "thought\n", is dropped
 *            <|tool_call> call
 *   thought  <channel|>   answer
 *            <|tool_call> call        models sometimes do not close a thought
 *   call     <tool_call|> answer      the text between is one call (parse_call.c)
 *
 * Text is emitted as soon as it is final. White space at the end of a text is held back, because it
 * is dropped before a marker. After a thought or a call, a text that begins with "call:" and a
 * tool's name is held back too: it is a call without its marker.
 */
#include "text/parse_machine.h"

#include <stdlib.h>
#include <string.h>

#include "text/parse_call.h"
#include "text/space.h"

static const char CHANNEL_NAME[] = "thought\n";

/* ---- events ----------------------------------------------------------------- */

static void append(bz_parser *p, bz_json_buffer *to, const char *bytes, size_t n)
{
    p->full = p->full || (n && !bz_json_to_buffer(to, bytes, n));
}

static bz_parser_event *add_event(bz_parser *p, bz_parse_kind kind)
{
    if (p->n_events == p->cap_events) {
        size_t cap = p->cap_events ? 2 * p->cap_events : 8;
        bz_parser_event *more =
            cap <= SIZE_MAX / 4 / sizeof *more ? realloc(p->events, cap * sizeof *more) : NULL;
        if (!more) {
            p->full = true;
            return NULL;
        }
        p->events = more;
        p->cap_events = cap;
    }
    bz_parser_event *e = &p->events[p->n_events++];
    *e = (bz_parser_event){
        .event = {.kind = kind, .call = p->n_calls}, .name = p->text.n, .text = p->text.n};
    return e;
}

static void emit_text(bz_parser *p, bz_parse_kind kind, const char *text, size_t n)
{
    if (n == 0 || (kind == BZ_PARSE_THINKING && !p->options.thinking)) {
        return;
    }
    bz_parser_event *e = p->n_events > p->next_event ? &p->events[p->n_events - 1] : NULL;
    if (!e || e->event.kind != kind) {
        e = add_event(p, kind);
    }
    if (e) {
        append(p, &p->text, text, n);
        e->n_text += n;
    }
}

static void emit_call(bz_parser *p, bz_parse_kind kind, bz_str name, const char *text, size_t n,
                      bool repaired)
{
    bz_parser_event *e = add_event(p, kind);
    if (e) {
        append(p, &p->text, name.data, name.len);
        e->n_name = name.len;
        e->text = p->text.n;
        append(p, &p->text, text, n);
        e->n_text = n;
        e->event.repaired = repaired;
    }
}

bool bz_parser_next(bz_parser *p, bz_parse_event *event)
{
    if (p->full || p->next_event == p->n_events) {
        return false; /* after an allocation failure texts may be incomplete */
    }
    const bz_parser_event *e = &p->events[p->next_event++];
    const char *text = p->text.text ? p->text.text : "";
    *event = e->event;
    event->name = (bz_str){text + e->name, e->n_name};
    event->text = (bz_str){text + e->text, e->n_text};
    return true;
}

/* ---- answers and thoughts --------------------------------------------------- */

static bz_parse_kind text_kind(const bz_parser *p)
{
    return p->state == BZ_IN_THOUGHT ? BZ_PARSE_THINKING : BZ_PARSE_ANSWER;
}

/* Emits the held text and this one, except for white space at the end, which is held. */
static void emit(bz_parser *p, const char *text, size_t n)
{
    size_t space = bz_space_after((bz_str){text, n});
    if (space < n) {
        emit_text(p, text_kind(p), p->pending.text, p->pending.n);
        emit_text(p, text_kind(p), text, n - space);
        p->pending.n = 0;
    }
    append(p, &p->pending, text + n - space, space);
}

static void begin_call(bz_parser *p)
{
    p->state = BZ_IN_CALL;
    p->open_quote = p->named = false;
}

typedef enum match { MATCH, PARTIAL_MATCH, NO_MATCH } match;

/* Whether s is the beginning of a call of a declared tool. */
static match match_call(const bz_parser *p, bz_str s)
{
    static const char word[] = "call:";
    match best = NO_MATCH;
    size_t n = sizeof word - 1;
    if (memcmp(s.data, word, s.len < n ? s.len : n) != 0) {
        return NO_MATCH;
    }
    if (s.len <= n) {
        return PARTIAL_MATCH;
    }
    s = (bz_str){s.data + n, s.len - n};
    for (const bz_json_node *tool = bz_json_first(p->options.tools); tool && best != MATCH;
         tool = tool->next) {
        const bz_json_node *function = bz_json_get(tool, "function");
        bz_str name = bz_json_string(bz_json_get(function ? function : tool, "name"));
        if (name.len && memcmp(s.data, name.data, s.len < name.len ? s.len : name.len) == 0) {
            if (s.len <= name.len) {
                best = PARTIAL_MATCH;
            } else if (s.data[name.len] == '{') {
                best = MATCH;
            }
        }
    }
    return best;
}

static void emit_held(bz_parser *p)
{
    bz_json_buffer waited = p->pending;
    p->may_call = false;
    if (waited.n) {
        p->pending = (bz_json_buffer){0};
        emit(p, waited.text, waited.n);
        free(waited.text);
    }
}

static void call_text(bz_parser *p, const char *text, size_t n);

static void answer_text(bz_parser *p, const char *text, size_t n)
{
    if (p->skip_space) {
        size_t space = bz_space_before((bz_str){text, n});
        text += space;
        n -= space;
        if (n == 0) {
            return;
        }
        p->skip_space = false;
    }
    if (!p->may_call) {
        emit(p, text, n);
        return;
    }
    append(p, &p->pending, text, n);
    bz_str waiting = {p->pending.text, p->pending.n};
    if (p->full) {
        return;
    }
    match how = match_call(p, waiting);
    if (how == MATCH) {
        bz_json_buffer waited = p->pending;
        p->pending = (bz_json_buffer){0};
        begin_call(p);
        call_text(p, waited.text, waited.n);
        free(waited.text);
    } else if (how == NO_MATCH) {
        emit_held(p);
    }
}

static void begin_answer(bz_parser *p, bool skip_space)
{
    p->state = BZ_IN_ANSWER;
    p->skip_space = skip_space;
    p->may_call = bz_json_first(p->options.tools) != NULL;
    p->pending.n = 0;
}

static void begin_thought(bz_parser *p)
{
    p->state = BZ_IN_THOUGHT;
    p->n_name = 0;
    p->pending.n = 0;
}

/* The channel's name ended early: what came of it was text, unless only the line end is missing. */
static void end_name(bz_parser *p)
{
    size_t whole = sizeof CHANNEL_NAME - 1, n = p->n_name;
    p->n_name = whole;
    if (n < whole - 1) {
        emit(p, CHANNEL_NAME, n);
    }
}

static void thought_text(bz_parser *p, const char *text, size_t n)
{
    size_t whole = sizeof CHANNEL_NAME - 1;
    while (n && p->n_name < whole) {
        if (*text != CHANNEL_NAME[p->n_name]) {
            size_t came = p->n_name;
            p->n_name = whole;
            emit(p, CHANNEL_NAME, came);
            break;
        }
        p->n_name++;
        text++;
        n--;
    }
    emit(p, text, n);
}

/* ---- calls ------------------------------------------------------------------ */

static void call_text(bz_parser *p, const char *text, size_t n)
{
    bz_str name, arguments;
    append(p, &p->pending, text, n);
    if (p->named || p->full || !memchr(text, '{', n)) {
        return;
    }
    p->named = true;
    if (bz_call_name((bz_str){p->pending.text, p->pending.n}, &name, &arguments)) {
        emit_call(p, BZ_PARSE_CALL_BEGIN, name, "", 0, false);
    }
}

/* Emits the model's text with its quote tokens spelled out. */
static void emit_broken_call(bz_parser *p, bz_str name)
{
    static const char quote[] = "<|\"|>";
    p->json.n = 0;
    for (size_t at = 0; at < p->pending.n;) {
        const char *next = memchr(p->pending.text + at, BZ_CALL_QUOTE, p->pending.n - at);
        size_t end = next ? (size_t)(next - p->pending.text) : p->pending.n;
        append(p, &p->json, p->pending.text + at, end - at);
        append(p, &p->json, quote, next ? sizeof quote - 1 : 0);
        at = end + 1;
    }
    emit_call(p, BZ_PARSE_BROKEN_CALL, name, p->json.text, p->json.n, false);
}

static void end_call(bz_parser *p)
{
    bz_str call = {p->pending.text ? p->pending.text : "", p->pending.n}, name = {"", 0}, arguments;
    p->json.n = 0;
    bz_call_answer answer = bz_call_to_json(call, p->options.tools, &p->json);
    if (!bz_call_name(call, &name, &arguments)) {
        name = (bz_str){"", 0};
    }
    if (answer == BZ_CALL_NO_MEMORY) {
        p->full = true;
    } else if (answer == BZ_CALL_BROKEN) {
        emit_broken_call(p, name);
    } else {
        emit_call(p, BZ_PARSE_CALL, name, p->json.text, p->json.n, answer == BZ_CALL_REPAIRED);
    }
    p->n_calls++;
    begin_answer(p, true);
}

/* ---- the machine ------------------------------------------------------------ */

void bz_parser_on_text(bz_parser *p, const char *text, size_t n)
{
    if (n == 0 || p->full) {
        return;
    }
    switch (p->state) {
    case BZ_IN_ANSWER: answer_text(p, text, n); return;
    case BZ_IN_THOUGHT: thought_text(p, text, n); return;
    case BZ_IN_CALL: call_text(p, text, n); return;
    case BZ_ENDED: return;
    }
}

void bz_parser_on_end(bz_parser *p)
{
    if (p->state == BZ_IN_CALL) {
        end_call(p);
    } else if (p->state == BZ_IN_THOUGHT) {
        end_name(p);
    } else if (p->state == BZ_IN_ANSWER) {
        if (p->may_call) {
            emit_held(p);
        }
        emit_text(p, BZ_PARSE_ANSWER, p->pending.text, p->pending.n);
    }
    if (p->state != BZ_ENDED) {
        p->pending.n = 0;
        p->state = BZ_ENDED;
        add_event(p, BZ_PARSE_END);
    }
}

static void answer_mark(bz_parser *p, bz_mark m, const char *literal)
{
    if (m == BZ_MARK_QUOTE) {
        answer_text(p, literal, strlen(literal)); /* outside calls it is text */
        return;
    }
    if (m != BZ_MARK_CHANNEL && m != BZ_MARK_TOOL_CALL) {
        return; /* a stray marker is ignored */
    }
    if (p->may_call) {
        emit_held(p);
    }
    p->pending.n = 0;
    if (m == BZ_MARK_CHANNEL) {
        begin_thought(p);
    } else {
        begin_call(p);
    }
}

static void thought_mark(bz_parser *p, bz_mark m, const char *literal)
{
    if (m == BZ_MARK_QUOTE) {
        thought_text(p, literal, strlen(literal));
    } else if (m == BZ_MARK_CHANNEL || m == BZ_MARK_CHANNEL_END || m == BZ_MARK_TOOL_CALL) {
        end_name(p);
        p->pending.n = 0;
        if (m == BZ_MARK_CHANNEL) {
            begin_thought(p); /* models sometimes repeat the marker */
        } else if (m == BZ_MARK_CHANNEL_END) {
            begin_answer(p, true);
        } else {
            begin_call(p);
        }
    }
}

static void call_mark(bz_parser *p, bz_mark m, const char *literal)
{
    char quote = BZ_CALL_QUOTE;
    if (m == BZ_MARK_QUOTE) {
        p->open_quote = !p->open_quote;
        append(p, &p->pending, &quote, 1);
    } else if (m == BZ_MARK_TOOL_CALL_END || m == BZ_MARK_TOOL_RESPONSE) {
        end_call(p);
    } else if (m == BZ_MARK_TOOL_CALL && !p->open_quote) {
        end_call(p);
        begin_call(p);
    } else {
        call_text(p, literal, strlen(literal)); /* inside a string it is text */
    }
}

void bz_parser_on_mark(bz_parser *p, bz_mark m, const char *literal)
{
    if (p->full) {
        return;
    }
    if (m == BZ_MARK_TURN_END) {
        bz_parser_on_end(p);
        return;
    }
    switch (p->state) {
    case BZ_IN_ANSWER: answer_mark(p, m, literal); return;
    case BZ_IN_THOUGHT: thought_mark(p, m, literal); return;
    case BZ_IN_CALL: call_mark(p, m, literal); return;
    case BZ_ENDED: return;
    }
}

/* ---- creation ---------------------------------------------------------------- */

bz_status bz_parser_new(bz_parser **out, const bz_tokenizer *tokenizer,
                        const bz_parser_options *options, bz_error *err)
{
    bz_parser *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) {
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to read the model's answer.");
    }
    p->t = tokenizer;
    p->options = *options;
    begin_answer(p, false);
    if (options->thinking_open) {
        begin_thought(p);
        p->n_name = sizeof CHANNEL_NAME - 1; /* the name is in the prompt */
    }
    return BZ_OK;
}

void bz_parser_free(bz_parser *p)
{
    if (p) {
        free(p->pending.text);
        free(p->json.text);
        free(p->text.text);
        free(p->events);
        free(p);
    }
}
