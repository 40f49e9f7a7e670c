/* Status names, error sentences and printable excerpts of untrusted strings. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(x)          #x
#define VERSION_OF(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *bz_version(void)
{
    return VERSION_OF(BZ_VERSION_MAJOR, BZ_VERSION_MINOR, BZ_VERSION_PATCH);
}

const char *bz_status_name(bz_status code)
{
    switch (code) {
#define BZ_STATUS_NAME(name, number, text)                                                         \
    case BZ_##name: return text;
        BZ_STATUS_LIST(BZ_STATUS_NAME)
#undef BZ_STATUS_NAME
    }
    return "unknown";
}

bz_status bz_fail(bz_error *err, bz_status code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

bool bz_str_is(bz_str s, const char *text)
{
    size_t n = strlen(text);
    return s.len == n && memcmp(s.data, text, n) == 0;
}

const char *bz_str_show(bz_str s, char buf[200])
{
    /* ASCII printable characters pass; everything else becomes \xNN, so that a
     * hostile name cannot garble a terminal. 189 + 4 + "..." stays below 200. */
    size_t out = 0, i = 0;
    for (; i < s.len && i < 60 && out < 190; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c >= 0x20 && c < 0x7F) {
            buf[out++] = (char)c;
        } else {
            out += (size_t)snprintf(buf + out, 200 - out, "\\x%02X", c);
        }
    }
    snprintf(buf + out, 200 - out, "%s", i < s.len ? "..." : "");
    return buf;
}
