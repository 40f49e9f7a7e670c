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
#include "text/parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/parse_call.h"
#include "text/space.h"

typedef enum mark {
    NO_MARK,
    CHANNEL,
    CHANNEL_END,
    TOOL_CALL,
    TOOL_CALL_END,
    TOOL_RESPONSE,
    QUOTE,
    TURN_END,
    OTHER /* nothing a model should say */
} mark;

static const struct {
    const char *text;
    size_t at; /* in bz_special_ids */
    mark mark;
} markers[] = {
    {"<|channel>", offsetof(bz_special_ids, channel), CHANNEL},
    {"<channel|>", offsetof(bz_special_ids, channel_end), CHANNEL_END},
    {"<|tool_call>", offsetof(bz_special_ids, tool_call), TOOL_CALL},
    {"<tool_call|>", offsetof(bz_special_ids, tool_call_end), TOOL_CALL_END},
    {"<|tool_response>", offsetof(bz_special_ids, tool_response), TOOL_RESPONSE},
    {"<|\"|>", offsetof(bz_special_ids, quote), QUOTE},
    {"<turn|>", offsetof(bz_special_ids, turn_end), TURN_END},
    {"<eos>", offsetof(bz_special_ids, eos), TURN_END},
    {"<tool_response|>", offsetof(bz_special_ids, tool_response_end), OTHER},
    {"<|turn>", offsetof(bz_special_ids, turn), OTHER},
    {"<|think|>", offsetof(bz_special_ids, think), OTHER},
    {"<|tool>", offsetof(bz_special_ids, tool), OTHER},
    {"<tool|>", offsetof(bz_special_ids, tool_end), OTHER},
    {"<|image>", offsetof(bz_special_ids, image_begin), OTHER},
    {"<|image|>", offsetof(bz_special_ids, image), OTHER},
    {"<image|>", offsetof(bz_special_ids, image_end), OTHER},
    {"<|audio>", offsetof(bz_special_ids, audio_begin), OTHER},
    {"<|audio|>", offsetof(bz_special_ids, audio), OTHER},
    {"<audio|>", offsetof(bz_special_ids, audio_end), OTHER},
    {"<|video|>", offsetof(bz_special_ids, video), OTHER},
    {"<bos>", offsetof(bz_special_ids, bos), OTHER},
    {"<pad>", offsetof(bz_special_ids, pad), OTHER},
    {"<unk>", offsetof(bz_special_ids, unk), OTHER},
    {"<mask>", offsetof(bz_special_ids, mask), OTHER},
};
enum { N_MARKERS = sizeof markers / sizeof *markers };

static const char CHANNEL_NAME[] = "thought\n";

typedef struct event {
    bz_said said; /* without its texts: */
    size_t name, n_name, text, n_text;
} event;

struct bz_parser {
    const bz_tokenizer *t;
    bz_parser_options options;
    bz_detok detok;
    char held[20]; /* of a pushed text: what may become a marker or a character */
    size_t n_held;

    enum { ANSWER, THOUGHT, CALL, ENDED } state;
    bool skip_space; /* answer: nothing has come since a thought or a call */
    bool may_call;   /* answer: `wait` may become call:NAME{ */
    size_t n_name;   /* thought: characters of CHANNEL_NAME that have come; all: they are behind us */
    bool open_quote; /* call */
    bool named;      /* call: a brace has come, and with it the name */
    uint32_t n_calls;
    bz_json_buffer wait; /* answer, thought: white space or the beginning of a call; call: all of it */
    bz_json_buffer json;

    bz_json_buffer text; /* of the events */
    event *events;
    size_t n_events, cap_events, next_event;
    bool full; /* no memory */
};

/* ---- events ----------------------------------------------------------------- */

static void append(bz_parser *p, bz_json_buffer *to, const char *bytes, size_t n)
{
    p->full = p->full || (n && !bz_json_to_buffer(to, bytes, n));
}

static event *add_event(bz_parser *p, bz_said_kind kind)
{
    if (p->n_events == p->cap_events) {
        size_t cap = p->cap_events ? 2 * p->cap_events : 8;
        event *more = cap <= SIZE_MAX / 4 / sizeof *more ? realloc(p->events, cap * sizeof *more) : NULL;
        if (!more) {
            p->full = true;
            return NULL;
        }
        p->events = more;
        p->cap_events = cap;
    }
    event *e = &p->events[p->n_events++];
    *e = (event){.said = {.kind = kind, .call = p->n_calls}, .name = p->text.n, .text = p->text.n};
    return e;
}

static void say_text(bz_parser *p, bz_said_kind kind, const char *text, size_t n)
{
    if (n == 0 || (kind == BZ_SAID_THINKING && !p->options.thinking)) {
        return;
    }
    event *e = p->n_events > p->next_event ? &p->events[p->n_events - 1] : NULL;
    if (!e || e->said.kind != kind) {
        e = add_event(p, kind);
    }
    if (e) {
        append(p, &p->text, text, n);
        e->n_text += n;
    }
}

static void say_call(bz_parser *p, bz_said_kind kind, bz_str name, const char *text, size_t n, bool repaired)
{
    event *e = add_event(p, kind);
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
    const event *e = &p->events[p->next_event++];
    const char *text = p->text.text ? p->text.text : "";
    *said = e->said;
    said->name = (bz_str){text + e->name, e->n_name};
    said->text = (bz_str){text + e->text, e->n_text};
    return true;
}

/* ---- answers and thoughts --------------------------------------------------- */

static bz_said_kind speaking(const bz_parser *p)
{
    return p->state == THOUGHT ? BZ_SAID_THINKING : BZ_SAID_ANSWER;
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
    p->state = CALL;
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
    p->state = ANSWER;
    p->skip_space = skip_space;
    p->may_call = bz_json_first(p->options.tools) != NULL;
    p->wait.n = 0;
}

static void begin_thought(bz_parser *p)
{
    p->state = THOUGHT;
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

static void on_text(bz_parser *p, const char *text, size_t n)
{
    if (n == 0 || p->full) {
        return;
    }
    switch (p->state) {
    case ANSWER: answer_text(p, text, n); return;
    case THOUGHT: thought_text(p, text, n); return;
    case CALL: call_text(p, text, n); return;
    case ENDED: return;
    }
}

static void end(bz_parser *p)
{
    if (p->state == CALL) {
        end_call(p);
    } else if (p->state == THOUGHT) {
        end_name(p);
    } else if (p->state == ANSWER) {
        if (p->may_call) {
            end_of_waiting(p);
        }
        say_text(p, BZ_SAID_ANSWER, p->wait.text, p->wait.n);
    }
    if (p->state != ENDED) {
        p->wait.n = 0;
        p->state = ENDED;
        add_event(p, BZ_SAID_END);
    }
}

static void answer_mark(bz_parser *p, mark m, const char *literal)
{
    if (m == QUOTE) {
        answer_text(p, literal, strlen(literal)); /* the one marker that means nothing by itself */
        return;
    }
    if (m != CHANNEL && m != TOOL_CALL) {
        return; /* strays; text goes on as if they were not there */
    }
    if (p->may_call) {
        end_of_waiting(p);
    }
    p->wait.n = 0;
    if (m == CHANNEL) {
        begin_thought(p);
    } else {
        begin_call(p);
    }
}

static void thought_mark(bz_parser *p, mark m, const char *literal)
{
    if (m == QUOTE) {
        thought_text(p, literal, strlen(literal));
    } else if (m == CHANNEL || m == CHANNEL_END || m == TOOL_CALL) {
        end_name(p);
        p->wait.n = 0;
        if (m == CHANNEL) {
            begin_thought(p); /* models double the marker */
        } else if (m == CHANNEL_END) {
            begin_answer(p, true);
        } else {
            begin_call(p);
        }
    }
}

static void call_mark(bz_parser *p, mark m, const char *literal)
{
    char quote = BZ_CALL_QUOTE;
    if (m == QUOTE) {
        p->open_quote = !p->open_quote;
        append(p, &p->wait, &quote, 1);
    } else if (m == TOOL_CALL_END || m == TOOL_RESPONSE) {
        end_call(p);
    } else if (m == TOOL_CALL && !p->open_quote) {
        end_call(p);
        begin_call(p);
    } else {
        call_text(p, literal, strlen(literal)); /* in a string: a model may write about itself */
    }
}

static void on_mark(bz_parser *p, mark m, const char *literal)
{
    if (p->full) {
        return;
    }
    if (m == TURN_END) {
        end(p);
        return;
    }
    switch (p->state) {
    case ANSWER: answer_mark(p, m, literal); return;
    case THOUGHT: thought_mark(p, m, literal); return;
    case CALL: call_mark(p, m, literal); return;
    case ENDED: return;
    }
}

/* ---- tokens ----------------------------------------------------------------- */

/* Events that were taken make room. */
static void make_room(bz_parser *p)
{
    if (p->next_event == p->n_events) {
        p->next_event = p->n_events = 0;
        p->text.n = 0;
    }
}

static bz_status status_of(const bz_parser *p, bz_error *err)
{
    return p->full ? bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory to read the model's answer.")
                   : BZ_OK;
}

static size_t marker_of(const bz_parser *p, int32_t id)
{
    const bz_special_ids *ids = bz_tokenizer_special(p->t);
    for (size_t i = 0; i < N_MARKERS; i++) {
        int32_t own;
        memcpy(&own, (const char *)ids + markers[i].at, sizeof own);
        if (own == id) {
            return i;
        }
    }
    return N_MARKERS;
}

bz_status bz_parser_push(bz_parser *p, int32_t id, bz_error *err)
{
    char text[BZ_DETOK_MAX];
    make_room(p);
    if (id >= 0 && bz_tokenizer_is_control(p->t, id)) {
        size_t i = marker_of(p, id);
        on_text(p, text, bz_detok_flush(&p->detok, text));
        if (i < N_MARKERS) {
            on_mark(p, markers[i].mark, markers[i].text);
            return status_of(p, err);
        }
    }
    if (bz_tokenizer_is_end(p->t, id)) { /* one of the file's own */
        on_text(p, text, bz_detok_flush(&p->detok, text));
        end(p);
    } else {
        on_text(p, text, bz_detok_push(&p->detok, p->t, id, false, text));
    }
    return status_of(p, err);
}

bz_status bz_parser_finish(bz_parser *p, bz_error *err)
{
    char text[BZ_DETOK_MAX];
    make_room(p);
    on_text(p, text, bz_detok_flush(&p->detok, text));
    if (p->state == ANSWER && p->skip_space && p->n_held > 1) {
        p->n_held = 0; /* the stream was cut in a marker: nobody begins an answer like that */
    }
    for (size_t at = 0; at < p->n_held;) { /* no marker, maybe not even characters */
        uint32_t cp;
        at += bz_utf8_decode(p->held + at, p->n_held - at, &cp);
        on_text(p, text, bz_utf8_encode(cp, text));
    }
    p->n_held = 0;
    end(p);
    return status_of(p, err);
}

/* ---- texts ------------------------------------------------------------------ */

/* The marker at the start of s, or N_MARKERS; *partial: s may become one. None begins with
 * another. */
static size_t marker_at(bz_str s, bool *partial)
{
    *partial = false;
    for (size_t i = 0; i < N_MARKERS; i++) {
        size_t n = strlen(markers[i].text);
        if (memcmp(s.data, markers[i].text, s.len < n ? s.len : n) == 0) {
            if (s.len >= n) {
                return i;
            }
            *partial = true;
        }
    }
    return N_MARKERS;
}

/* Says whole characters without markers. */
static void pass_text(bz_parser *p, bz_str s)
{
    size_t kept = 0;
    for (size_t at = 0; at < s.len;) {
        uint32_t cp;
        size_t n = bz_utf8_decode(s.data + at, s.len - at, &cp);
        if (n == 1 && cp == BZ_UTF8_REPLACEMENT) {
            on_text(p, s.data + kept, at - kept);
            on_text(p, "\xEF\xBF\xBD", 3);
            kept = at + 1;
        }
        at += n;
    }
    on_text(p, s.data + kept, s.len - kept);
}

bz_status bz_parser_push_text(bz_parser *p, const char *text, size_t len, bz_error *err)
{
    make_room(p);
    char *joined = len < SIZE_MAX / 2 ? malloc(p->n_held + len + 1) : NULL;
    if (!joined) {
        p->full = true;
        return status_of(p, err);
    }
    memcpy(joined, p->held, p->n_held);
    if (len) {
        memcpy(joined + p->n_held, text, len);
    }
    len += p->n_held;
    size_t said = 0, whole = bz_utf8_complete(joined, len), at = 0;
    bool partial = false;
    while (at < whole) {
        size_t i = N_MARKERS;
        if (joined[at] == '<') {
            i = marker_at((bz_str){joined + at, whole - at}, &partial);
        }
        if (partial) {
            break;
        }
        if (i == N_MARKERS) {
            at++;
            continue;
        }
        pass_text(p, (bz_str){joined + said, at - said});
        on_mark(p, markers[i].mark, markers[i].text);
        at += strlen(markers[i].text);
        said = at;
    }
    pass_text(p, (bz_str){joined + said, at - said});
    p->n_held = len - at; /* a marker's beginning, or a character's */
    memcpy(p->held, joined + at, p->n_held);
    free(joined);
    return status_of(p, err);
}

/* ---- life ------------------------------------------------------------------- */

bz_status bz_parser_new(bz_parser **out, const bz_tokenizer *tokenizer, const bz_parser_options *options,
                        bz_error *err)
{
    bz_parser *p = calloc(1, sizeof *p);
    *out = p;
    if (!p) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory to read the model's answer.");
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
