#include "cli/chat/width.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct char_range {
    uint32_t first, last;
} char_range;

#include "cli/chat/width_table.h"

static bool is_in(const char_range *ranges, size_t n, uint32_t cp)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t mid = (low + high) / 2;
        if (cp > ranges[mid].last) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < n && cp >= ranges[low].first;
}

int char_width(uint32_t cp)
{
    if (cp < 0x300) {
        return 1;
    }
    if (is_in(zero_columns, sizeof zero_columns / sizeof *zero_columns, cp)) {
        return 0;
    }
    return is_in(two_columns, sizeof two_columns / sizeof *two_columns, cp) ? 2 : 1;
}
