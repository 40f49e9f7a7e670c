/* Arrays of a schema. */
#include "grammar/schema_internal.h"

/* Items after others, all alike: at least `min` more, at most `max`. */
static void add_rest(schema_reader *r, uint32_t item, uint32_t from, uint32_t to, uint32_t min,
                     uint32_t max)
{
    bz_build *b = r->build;
    if (max == 0) {
        bz_build_empty(b, from, to);
        return;
    }
    const bool counted = min > 1 || (max != BZ_NO_LIMIT && max > 1);
    const uint32_t body = counted ? bz_build_rule(b) : 0;
    if (b->failed) {
        return;
    }
    /* ", item" */
    const uint32_t begin = counted ? b->rules[body].start : bz_build_state(b),
                   end = counted ? b->rules[body].end : bz_build_state(b),
                   comma = bz_build_state(b);
    bz_build_bytes(b, begin, comma, ',', ',');
    bz_build_call(b, bz_json_add_space(r->rules, comma), end, item);
    if (counted) {
        bz_build_call(b, from, to, bz_build_loop(b, body, min, max));
        return;
    }
    bz_build_empty(b, from, begin);
    bz_build_empty(b, end, to);
    if (min == 0) {
        bz_build_empty(b, from, to);
    }
    if (max == BZ_NO_LIMIT) {
        bz_build_empty(b, end, begin);
    }
}

void bz_schema_add_array(schema_reader *r, all_of all, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const uint32_t listed = bz_all_listed_items(all), open = bz_build_state(b),
                   close = bz_build_state(b);
    if (m->min_items > m->max_items) {
        return;
    }
    bz_build_bytes(b, from, open, '[', '[');
    bz_build_bytes(b, close, to, ']', ']');
    uint32_t at = bz_json_add_space(r->rules, open);
    for (uint32_t i = 0; i <= listed && !b->failed && r->status == BZ_OK; i++) {
        /* the array may end with i items */
        const uint32_t end = i ? bz_build_state(b) : close;
        all_of item;
        if (i) {
            bz_build_empty(b, bz_json_add_space(r->rules, end), close);
        }
        if (!bz_all_item(r, all, i < listed ? i : UINT32_MAX, &item)) {
            return;
        }
        const bool more = i < m->max_items && !bz_all_never(item);
        if (i < listed) {
            if (i >= m->min_items) {
                bz_build_empty(b, at, end);
            }
            if (!more) {
                return;
            }
            const uint32_t next = bz_build_state(b);
            uint32_t begin = at;
            if (i) {
                const uint32_t comma = bz_build_state(b);
                bz_build_bytes(b, at, comma, ',', ',');
                begin = bz_json_add_space(r->rules, comma);
            }
            bz_build_call(b, begin, next, bz_schema_rule_of(r, item));
            at = next;
            continue;
        }
        const uint32_t min = m->min_items > i ? m->min_items - i : 0,
                       max = m->max_items == BZ_NO_LIMIT ? BZ_NO_LIMIT
                             : m->max_items > i          ? m->max_items - i
                                                         : 0;
        if (!more) {
            if (min == 0) {
                bz_build_empty(b, at, end);
            }
            return;
        }
        const uint32_t some = bz_build_state(b);
        const uint32_t rule = bz_schema_rule_of(r, item);
        if (i == 0) { /* an empty array has no blank before its end */
            if (min == 0) {
                bz_build_empty(b, at, close);
            }
            const uint32_t next = bz_build_state(b);
            bz_build_call(b, at, next, rule);
            add_rest(r, rule, next, some, min ? min - 1 : 0, max == BZ_NO_LIMIT ? max : max - 1);
        } else {
            add_rest(r, rule, at, some, min, max);
        }
        bz_build_empty(b, bz_json_add_space(r->rules, some), close);
    }
}
