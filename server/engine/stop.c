#include "server/engine/stop.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct text_stop {
    char **strings; /* [n] */
    size_t n;
    bz_json_buffer held; /* not shown yet */
    size_t shown;        /* bytes at the start of `held` that were returned by the last call */
};

void text_stop_free(text_stop *s)
{
    if (s) {
        for (size_t i = 0; i < s->n; i++) {
            free(s->strings[i]);
        }
        free(s->strings);
        free(s->held.text);
        free(s);
    }
}

bz_status text_stop_new(text_stop **out, const bz_json_node *stop, bz_error *err)
{
    *out = NULL;
    if (!stop || stop->kind == BZ_JSON_NULL || (stop->kind == BZ_JSON_ARRAY && !stop->n)) {
        return BZ_OK;
    }
    const bool list = stop->kind == BZ_JSON_ARRAY;
    const size_t n = list ? stop->n : 1;
    const bz_json_node *item = list ? stop->of.first : stop;
    text_stop *s = calloc(1, sizeof *s);
    bz_status status = s && (s->strings = calloc(n, sizeof *s->strings)) ? BZ_OK : BZ_OUT_OF_MEMORY;
    for (size_t i = 0; status == BZ_OK && i < n; i++, item = item->next) {
        const bz_str text = bz_json_string(item);
        if (text.len == 0 || memchr(text.data, 0, text.len)) {
            status = BZ_BAD_REQUEST;
        } else if (!(s->strings[i] = bz_text_copy(text.data, text.len))) {
            status = BZ_OUT_OF_MEMORY;
        } else {
            s->n++;
        }
    }
    if (status != BZ_OK) {
        text_stop_free(s);
        return status == BZ_BAD_REQUEST
                   ? bz_fail(err, status,
                             "stop is a text without zero bytes, or a list of such texts.")
                   : bz_fail(err, status, "No memory for the stop strings.");
    }
    *out = s;
    return BZ_OK;
}

/* The first position at which a stop string occurs, or could occur when more text comes. */
static size_t first_match(const text_stop *s, const char *text, size_t n, bool last, bool *found)
{
    for (size_t at = 0; at < n; at++) {
        for (size_t i = 0; i < s->n; i++) {
            const size_t len = strlen(s->strings[i]), left = n - at,
                         compared = len < left ? len : left;
            if (memcmp(text + at, s->strings[i], compared) == 0 && (compared == len || !last)) {
                *found = compared == len;
                return at;
            }
        }
    }
    *found = false;
    return n;
}

const char *text_stop_push(text_stop *s, const char *text, size_t n, bool last, size_t *shown,
                           bool *found)
{
    if (s->shown) {
        memmove(s->held.text, s->held.text + s->shown, s->held.n - s->shown);
        s->held.n -= s->shown;
        s->shown = 0;
    }
    if (!bz_json_to_buffer(&s->held, text, n)) {
        return NULL;
    }
    s->shown = first_match(s, s->held.text, s->held.n, last, found);
    *shown = s->shown;
    return s->held.text;
}
