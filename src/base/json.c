/* The JSON writer. Each open object or array has a level that tracks what may come next. */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Bits of bz_json.level. */
enum { IN_OBJECT = 1, HAS_ITEM = 2, HAS_KEY = 4 };

void bz_json_init(bz_json *j, bz_json_sink sink, void *user)
{
    *j = (bz_json){.sink = sink, .user = user};
}

bool bz_json_finish(bz_json *j)
{
    if (j->depth != 0 || !(j->level[0] & HAS_ITEM)) {
        j->failed = true;
    }
    return !j->failed;
}

static void put(bz_json *j, const char *bytes, size_t n)
{
    if (!j->failed && n > 0 && !j->sink(j->user, bytes, n)) {
        j->failed = true;
    }
}

/* Called before every value: writes the comma, and fails if no value is allowed here. */
static bool begin_value(bz_json *j)
{
    uint8_t *level = &j->level[j->depth];
    if (j->failed) {
        return false;
    }
    if (*level & IN_OBJECT) {
        if (!(*level & HAS_KEY)) {
            j->failed = true;
            return false;
        }
        *level &= (uint8_t)~HAS_KEY;
    } else if (*level & HAS_ITEM) {
        if (j->depth == 0) {
            j->failed = true; /* a second value */
            return false;
        }
        put(j, ",", 1);
    }
    *level |= HAS_ITEM;
    return !j->failed;
}

static void open_level(bz_json *j, uint8_t kind, const char *bracket)
{
    if (!begin_value(j)) {
        return;
    }
    if (j->depth == BZ_JSON_DEPTH) {
        j->failed = true;
        return;
    }
    j->level[++j->depth] = kind;
    put(j, bracket, 1);
}

void bz_json_object(bz_json *j)
{
    open_level(j, IN_OBJECT, "{");
}

void bz_json_array(bz_json *j)
{
    open_level(j, 0, "[");
}

void bz_json_end(bz_json *j)
{
    if (j->failed || j->depth == 0 || (j->level[j->depth] & HAS_KEY)) {
        j->failed = true;
        return;
    }
    put(j, j->level[j->depth] & IN_OBJECT ? "}" : "]", 1);
    j->depth--;
}

/* ---- strings ---------------------------------------------------------------- */

/* JSON requires escapes for quotes, backslashes and control characters below U+0020. The other
 * control characters and U+2028, U+2029 are legal unescaped, but some readers break lines there
 * and terminals interpret them. */
static bool must_escape(uint32_t cp)
{
    return cp < 0x20 || cp == '"' || cp == '\\' || (cp >= 0x7F && cp <= 0x9F) || cp == 0x2028 ||
           cp == 0x2029;
}

static void put_escaped(bz_json *j, uint32_t cp)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: character, letter */
    char text[8];
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (cp == (unsigned char)letters[i]) {
            text[0] = '\\';
            text[1] = letters[i + 1];
            put(j, text, 2);
            return;
        }
    }
    snprintf(text, sizeof text, "\\u%04x", (unsigned)(cp & 0xFFFF));
    put(j, text, 6);
}

static void put_string(bz_json *j, bz_str s)
{
    size_t kept = 0; /* bytes [kept, at) are written unescaped */
    put(j, "\"", 1);
    for (size_t at = 0; at < s.len && !j->failed;) {
        uint32_t cp;
        size_t n = bz_utf8_decode(s.data + at, s.len - at, &cp);
        bool bad = cp == BZ_UTF8_REPLACEMENT && n == 1;
        if (bad || must_escape(cp)) {
            put(j, s.data + kept, at - kept);
            kept = at + n;
            if (bad) {
                put(j, "\xEF\xBF\xBD", 3);
            } else {
                put_escaped(j, cp);
            }
        }
        at += n;
    }
    if (kept < s.len) {
        put(j, s.data + kept, s.len - kept);
    }
    put(j, "\"", 1);
}

void bz_json_key_str(bz_json *j, bz_str key)
{
    uint8_t *level = &j->level[j->depth];
    if (j->failed || !(*level & IN_OBJECT) || (*level & HAS_KEY)) {
        j->failed = true;
        return;
    }
    if (*level & HAS_ITEM) {
        put(j, ",", 1);
    }
    put_string(j, key);
    put(j, ":", 1);
    *level |= HAS_KEY;
}

void bz_json_key(bz_json *j, const char *key)
{
    bz_json_key_str(j, (bz_str){key, strlen(key)});
}

void bz_json_str(bz_json *j, bz_str text)
{
    if (begin_value(j)) {
        put_string(j, text);
    }
}

void bz_json_text(bz_json *j, const char *text)
{
    if (text) {
        bz_json_str(j, (bz_str){text, strlen(text)});
    } else {
        bz_json_null(j);
    }
}

/* ---- numbers and words ------------------------------------------------------ */

static void put_word(bz_json *j, const char *word)
{
    if (begin_value(j)) {
        put(j, word, strlen(word));
    }
}

void bz_json_int(bz_json *j, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_word(j, text);
}

void bz_json_uint(bz_json *j, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    put_word(j, text);
}

/* The host program may have set a locale whose decimal point is a comma or several bytes long:
 * whatever is not part of a number is the point. */
static void put_number(bz_json *j, const char *printed)
{
    char text[40];
    size_t n = 0;
    for (const char *p = printed; *p && n + 1 < sizeof text; p++) {
        if (strchr("0123456789+-e", *p)) {
            text[n++] = *p;
        } else if (n > 0 && text[n - 1] != '.') {
            text[n++] = '.';
        }
    }
    text[n] = 0;
    put_word(j, text);
}

void bz_json_double(bz_json *j, double value)
{
    char text[40];
    if (!isfinite(value)) {
        bz_json_null(j);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    put_number(j, text);
}

void bz_json_float(bz_json *j, float value)
{
    char text[40];
    if (!isfinite(value)) {
        bz_json_null(j);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) {
            break;
        }
    }
    put_number(j, text);
}

void bz_json_number(bz_json *j, bz_str digits)
{
    if (digits.len == 0) {
        j->failed = true;
    } else if (begin_value(j)) {
        put(j, digits.data, digits.len);
    }
}

void bz_json_bool(bz_json *j, bool value)
{
    put_word(j, value ? "true" : "false");
}

void bz_json_null(bz_json *j)
{
    put_word(j, "null");
}

/* ---- keys with their values ------------------------------------------------ */

void bz_json_put_text(bz_json *j, const char *key, const char *value)
{
    bz_json_key(j, key);
    bz_json_text(j, value);
}

void bz_json_put_str(bz_json *j, const char *key, bz_str value)
{
    bz_json_key(j, key);
    bz_json_str(j, value);
}

void bz_json_put_int(bz_json *j, const char *key, int64_t value)
{
    bz_json_key(j, key);
    bz_json_int(j, value);
}

void bz_json_put_uint(bz_json *j, const char *key, uint64_t value)
{
    bz_json_key(j, key);
    bz_json_uint(j, value);
}

void bz_json_put_float(bz_json *j, const char *key, double value)
{
    bz_json_key(j, key);
    bz_json_float(j, (float)value);
}

void bz_json_put_bool(bz_json *j, const char *key, bool value)
{
    bz_json_key(j, key);
    bz_json_bool(j, value);
}

/* ---- memory ----------------------------------------------------------------- */

bool bz_json_to_buffer(void *buffer, const char *bytes, size_t n)
{
    bz_json_buffer *b = buffer;
    if (n >= SIZE_MAX / 4 - b->n) {
        return false;
    }
    if (b->n + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 256;
        while (cap < b->n + n + 1) {
            cap *= 2;
        }
        char *more = realloc(b->text, cap);
        if (!more) {
            return false;
        }
        b->text = more;
        b->cap = cap;
    }
    memcpy(b->text + b->n, bytes, n);
    b->n += n;
    b->text[b->n] = 0;
    return true;
}
