/* A state machine over texts and markers:
 *
 *   answer   <|channel>   thought     drop the channel's name, "thought\n"
 *            <|tool_call> call
 *   thought  <channel|>   answer
 *            <|tool_call> call        models do forget to close a thought
 *   call     <tool_call|> answer      the text between is one call (parse_call.c)
 *
 * A text is said as soon as it cannot change: white space at its end waits, because before
 * a marker it is dropped. Behind a thought or a call, a text that begins with call: and the
 * name of a tool waits too: it is a call whose marker was forgotten.
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

static bz_parser_event *add_event(bz_parser *p, bz_said_kind kind)
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
        .said = {.kind = kind, .call = p->n_calls}, .name = p->text.n, .text = p->text.n};
    return e;
}

static void say_text(bz_parser *p, bz_said_kind kind, const char *text, size_t n)
{
    if (n == 0 || (kind == BZ_SAID_THINKING && !p->options.thinking)) {
        return;
    }
    bz_parser_event *e = p->n_events > p->next_event ? &p->events[p->n_events - 1] : NULL;
    if (!e || e->said.kind != kind) {
        e = add_event(p, kind);
    }
    if (e) {
        append(p, &p->text, text, n);
        e->n_text += n;
    }
}

static void say_call(bz_parser *p, bz_said_kind kind, bz_str name, const char *text, size_t n,
                     bool repaired)
{
    bz_parser_event *e = add_event(p, kind);
    if (e) {
        append(p, &p->text, name.data, name.len);
        e->n_name = name.len;
        e->text = p->text.n;
        append(p, &p->text, text, n);
        e->n_text = n;
        e->said.repaired = repaired;
    }
}

bool bz_parser_next(bz_parser *p, bz_said *said)
{
    if (p->full || p->next_event == p->n_events) {
        return false; /* without memory, texts may be missing */
    }
    const bz_parser_event *e = &p->events[p->next_event++];
    const char *text = p->text.text ? p->text.text : "";
    *said = e->said;
    said->name = (bz_str){text + e->name, e->n_name};
    said->text = (bz_str){text + e->text, e->n_text};
    return true;
}

/* ---- answers and thoughts --------------------------------------------------- */

static bz_said_kind speaking(const bz_parser *p)
{
    return p->state == BZ_IN_THOUGHT ? BZ_SAID_THINKING : BZ_SAID_ANSWER;
}

/* Says what has waited and the text, but for white space at the end. */
static void say(bz_parser *p, const char *text, size_t n)
{
    size_t space = bz_space_after((bz_str){text, n});
    if (space < n) {
        say_text(p, speaking(p), p->wait.text, p->wait.n);
        say_text(p, speaking(p), text, n - space);
        p->wait.n = 0;
    }
    append(p, &p->wait, text + n - space, space);
}

static void begin_call(bz_parser *p)
{
    p->state = BZ_IN_CALL;
    p->open_quote = p->named = false;
}

typedef enum fit { FITS, MAY_FIT, FITS_NOT } fit;

/* Is this the beginning of a call of a tool that exists? */
static fit fits_call(const bz_parser *p, bz_str s)
{
    static const char word[] = "call:";
    fit best = FITS_NOT;
    size_t n = sizeof word - 1;
    if (memcmp(s.data, word, s.len < n ? s.len : n) != 0) {
        return FITS_NOT;
    }
    if (s.len <= n) {
        return MAY_FIT;
    }
    s = (bz_str){s.data + n, s.len - n};
    for (const bz_json_node *tool = bz_json_first(p->options.tools); tool && best != FITS;
         tool = tool->next) {
        const bz_json_node *function = bz_json_get(tool, "function");
        bz_str name = bz_json_string(bz_json_get(function ? function : tool, "name"));
        if (name.len && memcmp(s.data, name.data, s.len < name.len ? s.len : name.len) == 0) {
            if (s.len <= name.len) {
                best = MAY_FIT;
            } else if (s.data[name.len] == '{') {
                best = FITS;
            }
        }
    }
    return best;
}

static void end_of_waiting(bz_parser *p)
{
    bz_json_buffer waited = p->wait;
    p->may_call = false;
    if (waited.n) {
        p->wait = (bz_json_buffer){0};
        say(p, waited.text, waited.n);
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
        say(p, text, n);
        return;
    }
    append(p, &p->wait, text, n);
    bz_str waiting = {p->wait.text, p->wait.n};
    if (p->full) {
        return;
    }
    fit how = fits_call(p, waiting);
    if (how == FITS) {
        bz_json_buffer waited = p->wait;
        p->wait = (bz_json_buffer){0};
        begin_call(p);
        call_text(p, waited.text, waited.n);
        free(waited.text);
    } else if (how == FITS_NOT) {
        end_of_waiting(p);
    }
}

static void begin_answer(bz_parser *p, bool skip_space)
{
    p->state = BZ_IN_ANSWER;
    p->skip_space = skip_space;
    p->may_call = bz_json_first(p->options.tools) != NULL;
    p->wait.n = 0;
}

static void begin_thought(bz_parser *p)
{
    p->state = BZ_IN_THOUGHT;
    p->n_name = 0;
    p->wait.n = 0;
}

/* The name is over without having come whole: it was text, unless only its line end is
 * missing. */
static void end_name(bz_parser *p)
{
    size_t whole = sizeof CHANNEL_NAME - 1, n = p->n_name;
    p->n_name = whole;
    if (n < whole - 1) {
        say(p, CHANNEL_NAME, n);
    }
}

static void thought_text(bz_parser *p, const char *text, size_t n)
{
    size_t whole = sizeof CHANNEL_NAME - 1;
    while (n && p->n_name < whole) {
        if (*text != CHANNEL_NAME[p->n_name]) {
            size_t came = p->n_name;
            p->n_name = whole;
            say(p, CHANNEL_NAME, came);
            break;
        }
        p->n_name++;
        text++;
        n--;
    }
    say(p, text, n);
}

/* ---- calls ------------------------------------------------------------------ */

static void call_text(bz_parser *p, const char *text, size_t n)
{
    bz_str name, arguments;
    append(p, &p->wait, text, n);
    if (p->named || p->full || !memchr(text, '{', n)) {
        return;
    }
    p->named = true;
    if (bz_call_name((bz_str){p->wait.text, p->wait.n}, &name, &arguments)) {
        say_call(p, BZ_SAID_CALL_BEGIN, name, "", 0, false);
    }
}

/* What the model wrote, with its quote tokens spelled out. */
static void say_broken_call(bz_parser *p, bz_str name)
{
    static const char quote[] = "<|\"|>";
    p->json.n = 0;
    for (size_t at = 0; at < p->wait.n;) {
        const char *next = memchr(p->wait.text + at, BZ_CALL_QUOTE, p->wait.n - at);
        size_t end = next ? (size_t)(next - p->wait.text) : p->wait.n;
        append(p, &p->json, p->wait.text + at, end - at);
        append(p, &p->json, quote, next ? sizeof quote - 1 : 0);
        at = end + 1;
    }
    say_call(p, BZ_SAID_BROKEN_CALL, name, p->json.text, p->json.n, false);
}

static void end_call(bz_parser *p)
{
    bz_str call = {p->wait.text ? p->wait.text : "", p->wait.n}, name = {"", 0}, arguments;
    p->json.n = 0;
    bz_call_answer answer = bz_call_to_json(call, p->options.tools, &p->json);
    if (!bz_call_name(call, &name, &arguments)) {
        name = (bz_str){"", 0};
    }
    if (answer == BZ_CALL_NO_MEMORY) {
        p->full = true;
    } else if (answer == BZ_CALL_BROKEN) {
        say_broken_call(p, name);
    } else {
        say_call(p, BZ_SAID_CALL, name, p->json.text, p->json.n, answer == BZ_CALL_REPAIRED);
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
            end_of_waiting(p);
        }
        say_text(p, BZ_SAID_ANSWER, p->wait.text, p->wait.n);
    }
    if (p->state != BZ_ENDED) {
        p->wait.n = 0;
        p->state = BZ_ENDED;
        add_event(p, BZ_SAID_END);
    }
}

static void answer_mark(bz_parser *p, bz_mark m, const char *literal)
{
    if (m == BZ_MARK_QUOTE) {
        answer_text(p, literal, strlen(literal)); /* the one marker that means nothing by itself */
        return;
    }
    if (m != BZ_MARK_CHANNEL && m != BZ_MARK_TOOL_CALL) {
        return; /* strays; text goes on as if they were not there */
    }
    if (p->may_call) {
        end_of_waiting(p);
    }
    p->wait.n = 0;
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
        p->wait.n = 0;
        if (m == BZ_MARK_CHANNEL) {
            begin_thought(p); /* models double the marker */
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
        append(p, &p->wait, &quote, 1);
    } else if (m == BZ_MARK_TOOL_CALL_END || m == BZ_MARK_TOOL_RESPONSE) {
        end_call(p);
    } else if (m == BZ_MARK_TOOL_CALL && !p->open_quote) {
        end_call(p);
        begin_call(p);
    } else {
        call_text(p, literal, strlen(literal)); /* in a string: a model may write about itself */
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

/* ---- life ------------------------------------------------------------------- */

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
        p->n_name = sizeof CHANNEL_NAME - 1; /* it stands in the prompt */
    }
    return BZ_OK;
}

void bz_parser_free(bz_parser *p)
{
    if (p) {
        free(p->wait.text);
        free(p->json.text);
        free(p->text.text);
        free(p->events);
        free(p);
    }
}
