/* Reads from a GGUF header and reports errors by the entry being read. */
#include "file/gguf_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { HEADER_MAX = 1 << 30 }; /* must fit in memory; the largest real headers have 20 MB */

/* The entry being read: `key "general.name"`, or `key number 3` before the name is read. */
static const char *describe(const gguf_reader *r, char buf[240])
{
    char shown[200];
    if (!r->kind) {
        snprintf(buf, 240, "the number of entries");
    } else if (!r->name.data) {
        snprintf(buf, 240, "%s number %" PRIu64, r->kind, r->number);
    } else {
        snprintf(buf, 240, "%s \"%s\"", r->kind, bz_str_show(r->name, shown));
    }
    return buf;
}

bool bz_gguf_refuse(gguf_reader *r, const char *format, ...)
{
    bz_error message;
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, sizeof message.text, format, args);
    va_end(args);
    bz_fail(r->err, BZ_BAD_FILE, "%s", message.text);
    r->answer = BZ_GGUF_ERROR;
    return false;
}

bool bz_gguf_refuse_entry(gguf_reader *r, const char *format, ...)
{
    bz_error message;
    char what[240];
    va_list args;
    va_start(args, format);
    vsnprintf(message.text, sizeof message.text, format, args);
    va_end(args);
    return bz_gguf_refuse(r, "%s %s", describe(r, what), message.text);
}

bool bz_gguf_no_memory(gguf_reader *r)
{
    bz_fail(r->err, BZ_OUT_OF_MEMORY, "there is not enough memory to read the file's header");
    r->answer = BZ_GGUF_ERROR;
    return false;
}

bool bz_gguf_claim(gguf_reader *r, uint64_t more)
{
    if (more > r->size - r->claimed) {
        char what[240];
        uint64_t need = more > UINT64_MAX - r->claimed ? UINT64_MAX : r->claimed + more;
        return bz_gguf_refuse(r,
                              "the file is cut off at %s (%" PRIu64
                              " bytes, header needs at least %" PRIu64 "); download it again",
                              describe(r, what), r->size, need);
    }
    r->claimed += more;
    if (r->claimed > HEADER_MAX) {
        return bz_gguf_refuse_entry(
            r, "makes the header at least %" PRIu64 " bytes long, more than any model has",
            r->claimed);
    }
    return true;
}

bool bz_gguf_take_name(gguf_reader *r, uint64_t longest, bz_str *out)
{
    uint64_t len;
    if (!bz_gguf_take_u64(r, &len)) {
        return false;
    }
    if (len == 0) {
        return bz_gguf_refuse_entry(r, "has an empty name");
    }
    if (len > longest) {
        return bz_gguf_refuse_entry(
            r, "has a name of %" PRIu64 " bytes; at most %" PRIu64 " are allowed", len, longest);
    }
    if (!bz_gguf_claim(r, len - 1)) {
        return false;
    }
    const uint8_t *p = bz_gguf_take(r, len);
    if (!p) {
        return false;
    }
    out->data = (const char *)p;
    out->len = (size_t)len;
    r->name = *out;
    for (uint64_t i = 0; i < len; i++) {
        if (p[i] < 0x20 || p[i] == 0x7F) {
            return bz_gguf_refuse_entry(r, "has a control character in its name");
        }
    }
    return true;
}
