/* White space at the ends of a text. */
#include "text/space.h"

#include "base/utf8.h"

static bool is_space(uint32_t cp)
{
    return (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x20) || cp == 0x85 || cp == 0xA0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

size_t bz_space_before(bz_str s)
{
    size_t at = 0;
    while (at < s.len) {
        uint32_t cp;
        size_t n = bz_utf8_decode(s.data + at, s.len - at, &cp);
        if (!is_space(cp)) {
            break;
        }
        at += n;
    }
    return at;
}

size_t bz_space_after(bz_str s)
{
    size_t end = s.len;
    while (end > 0) {
        /* the first byte of the last character */
        size_t from = end - 1;
        while (from > 0 && end - from < 4 && ((unsigned char)s.data[from] & 0xC0) == 0x80) {
            from--;
        }
        uint32_t cp;
        size_t n = bz_utf8_decode(s.data + from, end - from, &cp);
        if (n != end - from || !is_space(cp)) {
            break;
        }
        end = from;
    }
    return s.len - end;
}

bz_str bz_trim(bz_str s)
{
    size_t before = bz_space_before(s);
    if (before) {
        s = (bz_str){s.data + before, s.len - before};
    }
    s.len -= bz_space_after(s);
    return s;
}
