/* Input of the answer parser: token ids, or texts with markers spelled out. */
#include "text/parse_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const struct {
    const char *text;
    size_t at; /* offset in bz_special_ids */
    bz_mark mark;
} markers[] = {
    {"<|channel>", offsetof(bz_special_ids, channel), BZ_MARK_CHANNEL},
    {"<channel|>", offsetof(bz_special_ids, channel_end), BZ_MARK_CHANNEL_END},
    {"<|tool_call>", offsetof(bz_special_ids, tool_call), BZ_MARK_TOOL_CALL},
    {"<tool_call|>", offsetof(bz_special_ids, tool_call_end), BZ_MARK_TOOL_CALL_END},
    {"<|tool_response>", offsetof(bz_special_ids, tool_response), BZ_MARK_TOOL_RESPONSE},
    {"<|\"|>", offsetof(bz_special_ids, quote), BZ_MARK_QUOTE},
    {"<turn|>", offsetof(bz_special_ids, turn_end), BZ_MARK_TURN_END},
    {"<eos>", offsetof(bz_special_ids, eos), BZ_MARK_TURN_END},
    {"<tool_response|>", offsetof(bz_special_ids, tool_response_end), BZ_MARK_OTHER},
    {"<|turn>", offsetof(bz_special_ids, turn), BZ_MARK_OTHER},
    {"<|think|>", offsetof(bz_special_ids, think), BZ_MARK_OTHER},
    {"<|tool>", offsetof(bz_special_ids, tool), BZ_MARK_OTHER},
    {"<tool|>", offsetof(bz_special_ids, tool_end), BZ_MARK_OTHER},
    {"<|image>", offsetof(bz_special_ids, image_begin), BZ_MARK_OTHER},
    {"<|image|>", offsetof(bz_special_ids, image), BZ_MARK_OTHER},
    {"<image|>", offsetof(bz_special_ids, image_end), BZ_MARK_OTHER},
    {"<|audio>", offsetof(bz_special_ids, audio_begin), BZ_MARK_OTHER},
    {"<|audio|>", offsetof(bz_special_ids, audio), BZ_MARK_OTHER},
    {"<audio|>", offsetof(bz_special_ids, audio_end), BZ_MARK_OTHER},
    {"<|video|>", offsetof(bz_special_ids, video), BZ_MARK_OTHER},
    {"<bos>", offsetof(bz_special_ids, bos), BZ_MARK_OTHER},
    {"<pad>", offsetof(bz_special_ids, pad), BZ_MARK_OTHER},
    {"<unk>", offsetof(bz_special_ids, unk), BZ_MARK_OTHER},
    {"<mask>", offsetof(bz_special_ids, mask), BZ_MARK_OTHER},
};
enum { N_MARKERS = sizeof markers / sizeof *markers };

/* ---- tokens ----------------------------------------------------------------- */

/* Resets the event buffers when all events have been read. */
static void reset_events(bz_parser *p)
{
    if (p->next_event == p->n_events) {
        p->next_event = p->n_events = 0;
        p->text.n = 0;
    }
}

static bz_status status_of(const bz_parser *p, bz_error *err)
{
    return p->full ? bz_fail(err, BZ_OUT_OF_MEMORY,
                             "There is not enough memory to read the model's answer.")
                   : BZ_OK;
}

static size_t marker_of(const bz_parser *p, int32_t id)
{
    const bz_special_ids *ids = bz_tokenizer_special(p->t);
    for (size_t i = 0; i < N_MARKERS; i++) {
        int32_t marker;
        memcpy(&marker, (const char *)ids + markers[i].at, sizeof marker);
        if (marker == id) {
            return i;
        }
    }
    return N_MARKERS;
}

bz_status bz_parser_push(bz_parser *p, int32_t id, bz_error *err)
{
    char text[BZ_DETOK_MAX];
    reset_events(p);
    if (id >= 0 && bz_tokenizer_is_control(p->t, id)) {
        size_t i = marker_of(p, id);
        bz_parser_on_text(p, text, bz_detok_flush(&p->detok, text));
        if (i < N_MARKERS) {
            bz_parser_on_mark(p, markers[i].mark, markers[i].text);
            return status_of(p, err);
        }
    }
    if (bz_tokenizer_is_end(p->t, id)) { /* an end token from the file's list */
        bz_parser_on_text(p, text, bz_detok_flush(&p->detok, text));
        bz_parser_on_end(p);
    } else {
        bz_parser_on_text(p, text, bz_detok_push(&p->detok, p->t, id, false, text));
    }
    return status_of(p, err);
}

bz_status bz_parser_finish(bz_parser *p, bz_error *err)
{
    char text[BZ_DETOK_MAX];
    reset_events(p);
    bz_parser_on_text(p, text, bz_detok_flush(&p->detok, text));
    if (p->state == BZ_IN_ANSWER && p->skip_space && p->n_held > 1) {
        p->n_held = 0; /* part of a marker: the stream was cut off there */
    }
    for (size_t at = 0; at < p->n_held;) { /* not a marker, possibly invalid UTF-8 */
        uint32_t cp;
        at += bz_utf8_decode(p->held + at, p->n_held - at, &cp);
        bz_parser_on_text(p, text, bz_utf8_encode(cp, text));
    }
    p->n_held = 0;
    bz_parser_on_end(p);
    return status_of(p, err);
}

/* ---- texts ------------------------------------------------------------------ */

/* The marker at the start of s, or N_MARKERS; *partial: s may become one. No marker is a prefix of
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

/* Passes on text without markers; invalid UTF-8 becomes U+FFFD. */
static void pass_text(bz_parser *p, bz_str s)
{
    size_t kept = 0;
    for (size_t at = 0; at < s.len;) {
        uint32_t cp;
        size_t n = bz_utf8_decode(s.data + at, s.len - at, &cp);
        if (n == 1 && cp == BZ_UTF8_REPLACEMENT) {
            bz_parser_on_text(p, s.data + kept, at - kept);
            bz_parser_on_text(p, "\xEF\xBF\xBD", 3);
            kept = at + 1;
        }
        at += n;
    }
    bz_parser_on_text(p, s.data + kept, s.len - kept);
}

bz_status bz_parser_push_text(bz_parser *p, const char *text, size_t len, bz_error *err)
{
    reset_events(p);
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
    size_t done = 0, whole = bz_utf8_complete(joined, len), at = 0;
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
        pass_text(p, (bz_str){joined + done, at - done});
        bz_parser_on_mark(p, markers[i].mark, markers[i].text);
        at += strlen(markers[i].text);
        done = at;
    }
    pass_text(p, (bz_str){joined + done, at - done});
    p->n_held = len - at; /* the beginning of a marker or a character */
    memcpy(p->held, joined + at, p->n_held);
    free(joined);
    return status_of(p, err);
}
