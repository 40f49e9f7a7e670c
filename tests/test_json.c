/* The JSON writer: its output, and that misuse is detected. Sizes in readable units are tested here
 * too. */
#include "base/json.h"
#include "base/units.h"
#include "support/check.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct out {
    bz_json j;
    bz_json_buffer b;
} out;

static bz_json *start(out *o)
{
    o->b = (bz_json_buffer){0};
    bz_json_init(&o->j, bz_json_to_buffer, &o->b);
    return &o->j;
}

/* Finishes and compares; want NULL: it must have failed. */
static void is(out *o, const char *want)
{
    bool whole = bz_json_finish(&o->j);
    const char *got = o->b.text ? o->b.text : "";
    if (want) {
        CHECKF(whole && strcmp(got, want) == 0, "'%s' instead of '%s'%s", got, want,
               whole ? "" : " (failed)");
    } else {
        CHECKF(!whole, "'%s' was taken for a whole value", got);
    }
    free(o->b.text);
}

static void structure(void)
{
    out o;
    begin("objects and arrays");
    bz_json *j = start(&o);
    bz_json_object(j);
    is(&o, NULL);

    j = start(&o);
    bz_json_object(j);
    bz_json_end(j);
    is(&o, "{}");

    j = start(&o);
    bz_json_array(j);
    bz_json_end(j);
    is(&o, "[]");

    j = start(&o);
    bz_json_object(j);
    bz_json_key(j, "a");
    bz_json_array(j);
    bz_json_int(j, 1);
    bz_json_array(j);
    bz_json_end(j);
    bz_json_object(j);
    bz_json_key(j, "b");
    bz_json_null(j);
    bz_json_key(j, "c");
    bz_json_bool(j, true);
    bz_json_end(j);
    bz_json_end(j);
    bz_json_key(j, "d");
    bz_json_bool(j, false);
    bz_json_key_str(j, (bz_str){"e\"", 2});
    bz_json_text(j, NULL);
    bz_json_end(j);
    is(&o, "{\"a\":[1,[],{\"b\":null,\"c\":true}],\"d\":false,\"e\\\"\":null}");

    begin("nesting up to the limit");
    for (int extra = 0; extra < 2; extra++) {
        j = start(&o);
        for (int i = 0; i < BZ_JSON_DEPTH + extra; i++) {
            bz_json_array(j);
        }
        for (int i = 0; i < BZ_JSON_DEPTH + extra; i++) {
            bz_json_end(j);
        }
        CHECK(bz_json_finish(j) == (extra == 0));
        CHECK(extra || o.b.n == 2 * BZ_JSON_DEPTH);
        free(o.b.text);
    }
}

static void misuse(void)
{
    out o;
    begin("calls that would produce invalid JSON are detected");
    start(&o);
    is(&o, NULL); /* nothing at all */

    bz_json *j = start(&o);
    bz_json_int(j, 1);
    bz_json_int(j, 2);
    is(&o, NULL);

    j = start(&o);
    bz_json_end(j);
    is(&o, NULL);

    j = start(&o);
    bz_json_key(j, "a");
    is(&o, NULL);

    j = start(&o);
    bz_json_array(j);
    bz_json_key(j, "a");
    bz_json_end(j);
    is(&o, NULL);

    j = start(&o);
    bz_json_object(j);
    bz_json_int(j, 1); /* no key */
    bz_json_end(j);
    is(&o, NULL);

    j = start(&o);
    bz_json_object(j);
    bz_json_key(j, "a");
    bz_json_key(j, "b");
    bz_json_end(j);
    is(&o, NULL);

    j = start(&o);
    bz_json_object(j);
    bz_json_key(j, "a");
    bz_json_end(j); /* no value */
    is(&o, NULL);
}

static bool small_sink(void *user, const char *bytes, size_t n)
{
    size_t *room = user;
    (void)bytes;
    if (n > *room) {
        return false;
    }
    *room -= n;
    return true;
}

static void sinks(void)
{
    begin("a failing sink ends the output");
    for (size_t room = 0; room < 12; room++) {
        size_t left = room;
        bz_json j;
        bz_json_init(&j, small_sink, &left);
        bz_json_array(&j);
        bz_json_text(&j, "abc");
        bz_json_int(&j, 123);
        bz_json_end(&j);
        CHECKF(bz_json_finish(&j) == (room >= 11), "room for %zu bytes", room);
    }
}

static void strings(void)
{
    static const struct {
        const char *name, *in;
        size_t n;
        const char *want;
    } cases[] = {
        {"empty", "", 0, "\"\""},
        {"plain", "abc", 3, "\"abc\""},
        {"quote and backslash", "a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"short escapes", "\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"other controls", "\0\x01\x1F\x7F", 4, "\"\\u0000\\u0001\\u001f\\u007f\""},
        {"C1 controls", "\xC2\x85\xC2\x9B", 4, "\"\\u0085\\u009b\""},
        {"line separators", "\xE2\x80\xA8|\xE2\x80\xA9", 7, "\"\\u2028|\\u2029\""},
        {"UTF-8 as it is", "\xE2\x96\x81x\xF0\x9F\x92\x8E", 8, "\"\xE2\x96\x81x\xF0\x9F\x92\x8E\""},
        {"U+FFFD itself", "\xEF\xBF\xBD", 3, "\"\xEF\xBF\xBD\""},
        {"bad bytes", "a\xFF\xC0z", 4, "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\""},
        {"cut-off character", "a\xE2\x96", 3, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\""},
        {"surrogate", "\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin("string: %s", cases[i].name);
        out o;
        bz_json_str(start(&o), (bz_str){cases[i].in, cases[i].n});
        is(&o, cases[i].want);
    }
}

static void double_is(double value, const char *want)
{
    out o;
    bz_json_double(start(&o), value);
    is(&o, want);
}

static void float_is(float value, const char *want)
{
    out o;
    bz_json_float(start(&o), value);
    is(&o, want);
}

static void numbers(void)
{
    out o;
    begin("integers");
    bz_json_int(start(&o), INT64_MIN);
    is(&o, "-9223372036854775808");
    bz_json_int(start(&o), 0);
    is(&o, "0");
    bz_json_uint(start(&o), UINT64_MAX);
    is(&o, "18446744073709551615");

    begin("doubles and floats in the fewest digits");
    double_is(0.1, "0.1");
    double_is(1.0, "1");
    double_is(-0.0, "-0");
    double_is(1e300, "1e+300");
    double_is(1.0 / 3, "0.3333333333333333");
    double_is(123456789012345678.0, "1.2345678901234568e+17");
    double_is(5e-324, "4.94065645841247e-324");
    float_is(0.1f, "0.1");
    float_is(1e-6f, "1e-06");
    float_is(16777216.0f, "16777216");
    float_is(1.0f / 3, "0.33333334");
    double_is(INFINITY, "null");
    double_is(-INFINITY, "null");
    double_is(NAN, "null");
    float_is(NAN, "null");

    begin("every number reads back as itself");
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = seed ^ seed >> 29;
        uint32_t half = (uint32_t)(bits >> 32);
        double d;
        float f;
        memcpy(&d, &bits, sizeof d);
        memcpy(&f, &half, sizeof f);
        if (isfinite(d)) {
            bz_json_double(start(&o), d);
            CHECKF(strtod(o.b.text, NULL) == d, "%.17g as %s", d, o.b.text);
            free(o.b.text);
        }
        if (isfinite(f)) {
            bz_json_float(start(&o), f);
            CHECKF(strtof(o.b.text, NULL) == f, "%.9g as %s", (double)f, o.b.text);
            free(o.b.text);
        }
    }
}

static void locales(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE",       "fr_FR.UTF-8",
                                        "fr_FR",       "ps_AF.UTF-8", "ps_AF"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_NUMERIC, names[i])) { /* most machines have none of them */
            begin("decimal point in locale %s", names[i]);
            double_is(1.5, "1.5");
            double_is(-2.25e-10, "-2.25e-10");
        }
    }
    setlocale(LC_NUMERIC, "C");
}

static void units(void)
{
    static const struct {
        uint64_t value;
        const char *bytes, *count;
    } cases[] = {
        {0, "0 B", "0"},
        {999, "999 B", "999"},
        {1000, "1.00 kB", "1.00 k"},
        {9994, "9.99 kB", "9.99 k"},
        {9996, "10.0 kB", "10.0 k"},
        {99960, "100 kB", "100 k"},
        {999499, "999 kB", "999 k"},
        {999500, "1.00 MB", "1.00 M"},
        {3412228224u, "3.41 GB", "3.41 B"},
        {UINT64_MAX, "18.4 EB", "18446744 T"},
    };
    begin("numbers with units");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[BZ_UNITS_MAX];
        CHECKF(strcmp(bz_bytes_text(cases[i].value, text), cases[i].bytes) == 0,
               "'%s' instead of '%s'", text, cases[i].bytes);
        CHECKF(strcmp(bz_count_text(cases[i].value, text), cases[i].count) == 0,
               "'%s' instead of '%s'", text, cases[i].count);
    }
}

int main(void)
{
    structure();
    misuse();
    sinks();
    strings();
    numbers();
    locales();
    units();
    return finish();
}
