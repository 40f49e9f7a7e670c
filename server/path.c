#include "server/path.h"

static int hex_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Reads the next character of a path and advances *i; -1: malformed. *coded: it was written as %XX.
 */
static int next_character(bz_str path, size_t *i, bool *coded)
{
    *coded = path.data[*i] == '%';
    if (!*coded) {
        return (unsigned char)path.data[(*i)++];
    }
    const int high = path.len - *i > 2 ? hex_value(path.data[*i + 1]) : -1;
    const int low = high >= 0 ? hex_value(path.data[*i + 2]) : -1;
    *i += 3;
    return low < 0 ? -1 : high << 4 | low;
}

path_answer path_decode(bz_str path, char out[PATH_SIZE], bool *folder)
{
    size_t n = 0, part = 0; /* bytes written; start of the current part */
    bool hidden = false;
    if (path.len == 0 || path.data[0] != '/') {
        return PATH_BAD;
    }
    for (size_t i = 1; i < path.len;) {
        bool coded;
        const int c = next_character(path, &i, &coded);
        if (c < 0x20 || c == 0x7F || c == '\\' || (c == '/' && coded)) {
            return PATH_BAD;
        }
        hidden |= n == part && (c == '.' || c == '/'); /* starts with a dot, or is empty */
        if (n + 1 >= PATH_SIZE) {
            n = part = 0; /* the rest is only checked */
            hidden = true;
        }
        out[n++] = (char)c;
        part = c == '/' ? n : part;
    }
    *folder = n == part;
    n -= n && *folder;
    out[n] = 0;
    return hidden ? PATH_HIDDEN : PATH_OK;
}
