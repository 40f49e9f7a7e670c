#include "store/pull_journal.h"

#include <stdlib.h>
#include <string.h>

bool bz_ranges_add(bz_ranges *r, uint64_t from, uint64_t to)
{
    if (from >= to) {
        return true;
    }
    /* first: the first range that ends at or after `from`; last: past those that touch it */
    size_t first = 0, last;
    while (first < r->n && r->list[first].to < from) {
        first++;
    }
    for (last = first; last < r->n && r->list[last].from <= to; last++) {
        from = r->list[last].from < from ? r->list[last].from : from;
        to = r->list[last].to > to ? r->list[last].to : to;
    }
    if (first == last && r->n == r->cap) {
        const size_t cap = r->cap ? 2 * r->cap : 16;
        bz_range *more = realloc(r->list, cap * sizeof *more);
        if (!more) {
            return false;
        }
        r->list = more;
        r->cap = cap;
    }
    memmove(r->list + first + 1, r->list + last, (r->n - last) * sizeof *r->list);
    r->n = r->n + 1 + first - last;
    r->list[first] = (bz_range){from, to};
    return true;
}

uint64_t bz_ranges_bytes(const bz_ranges *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n; i++) {
        bytes += r->list[i].to - r->list[i].from;
    }
    return bytes;
}

bool bz_ranges_gap(const bz_ranges *r, uint64_t at, uint64_t size, bz_range *gap)
{
    size_t i = 0;
    for (; i < r->n && r->list[i].from <= at; i++) {
        at = r->list[i].to > at ? r->list[i].to : at;
    }
    *gap = (bz_range){at, i < r->n && r->list[i].from < size ? r->list[i].from : size};
    return gap->from < gap->to;
}
