/* Text of an untrusted file, made safe for a terminal: it cannot move the cursor, hide itself or
 * reverse the line. */
#include "cli/show/show.h"

#include <string.h>

#include "base/utf8.h"

static bool invisible(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7F && cp <= 0x9F) || cp == 0xAD || cp == 0x61C || cp == 0x180E ||
           (cp >= 0x200B && cp <= 0x200F) || (cp >= 0x2028 && cp <= 0x202E) ||
           (cp >= 0x2060 && cp <= 0x206F) || cp == 0xFEFF || (cp >= 0xFFF9 && cp <= 0xFFFB) ||
           (cp >= 0xE0000 && cp <= 0xE0FFF);
}

static bool wide(uint32_t cp)
{
    return (cp >= 0x1100 && cp <= 0x115F) || (cp >= 0x2E80 && cp <= 0xA4CF) ||
           (cp >= 0xAC00 && cp <= 0xD7A3) || (cp >= 0xF900 && cp <= 0xFAFF) ||
           (cp >= 0xFE30 && cp <= 0xFE6F) || (cp >= 0xFF00 && cp <= 0xFF60) ||
           (cp >= 0xFFE0 && cp <= 0xFFE6) || (cp >= 0x1F300 && cp <= 0x1FAFF) ||
           (cp >= 0x20000 && cp <= 0x3FFFD);
}

/* One character as it may be shown; returns its bytes and sets the columns it takes. */
static size_t safe_character(const char *text, size_t len, char piece[16], unsigned *columns,
                             size_t *taken)
{
    uint32_t cp;
    *taken = bz_utf8_decode(text, len, &cp);
    if (cp == BZ_UTF8_REPLACEMENT && *taken == 1) {
        *columns = (unsigned)snprintf(piece, 16, "\\x%02X", (unsigned)(unsigned char)text[0]);
    } else if (!invisible(cp)) {
        memcpy(piece, text, *taken);
        *columns = wide(cp) ? 2 : 1;
        return *taken;
    } else if (cp == '\n' || cp == '\r' || cp == '\t') {
        *columns = (unsigned)snprintf(piece, 16, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
    } else {
        *columns = (unsigned)snprintf(piece, 16, cp < 0x80 ? "\\x%02X" : "\\u{%X}", (unsigned)cp);
    }
    return *columns;
}

const char *show_safe(bz_str s, unsigned columns, char out[SHOW_SAFE_MAX])
{
    size_t n = 0, cut = 0; /* cut: what fits together with the dots */
    unsigned used = 0;
    for (size_t at = 0; at < s.len;) {
        char piece[16];
        unsigned more;
        size_t taken, bytes = safe_character(s.data + at, s.len - at, piece, &more, &taken);
        if (used + more > columns || n + bytes + 4 > SHOW_SAFE_MAX) {
            memcpy(out + cut, "...", 4);
            return out;
        }
        memcpy(out + n, piece, bytes);
        n += bytes;
        used += more;
        at += taken;
        cut = used + 3 <= columns ? n : cut;
    }
    out[n] = 0;
    return out;
}

int show_width(const char *text)
{
    int n = 0;
    for (; *text; text++) {
        n += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return n;
}

const char *show_path(const char *path, unsigned columns, char out[SHOW_SAFE_MAX])
{
    return show_safe((bz_str){path, strlen(path)}, columns, out);
}
