#include "support/reads.h"

#include <string.h>

void do_reads(const void *file, gpu *g, const bz_need *need)
{
    for (uint32_t i = 0; i < need->n_reads; i++) {
        const bz_read *r = &need->reads[i];
        const uint8_t *from = (const uint8_t *)file + r->offset;
        if (r->to) {
            memcpy(r->to, from, r->length);
            continue;
        }
        uint8_t word[4] = {0};
        uint64_t whole = r->length / 4 * 4;
        gpu_write(g, r->buffer, r->buffer_offset, from, whole);
        memcpy(word, from + whole, r->length - whole);
        if (whole < r->length) {
            gpu_write(g, r->buffer, r->buffer_offset + whole, word, 4);
        }
    }
}
