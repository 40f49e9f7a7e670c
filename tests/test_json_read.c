/* The JSON reader: what is read, what is refused and at which byte, and round trips of random
 * trees. */
#include "base/json_read.h"
#include "support/check.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t random_state = 7;

static uint32_t below(uint32_t n)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 8) * n >> 24);
}

/* Reads n bytes and writes the tree again; NULL if it was refused, err says why. */
static char *reread(const char *text, size_t n, bz_error *err)
{
    bz_arena arena = {0};
    const bz_json_node *root;
    bz_json_buffer out = {0};
    char *copy = malloc(n ? n : 1); /* of exactly that size: sanitizers see a read past it */
    memcpy(copy, text, n);
    bz_status status = bz_json_read(&root, copy, n, &arena, err);
    memset(copy, 'x', n); /* the tree must not need it */
    free(copy);
    if (status == BZ_OK) {
        bz_json j;
        bz_json_init(&j, bz_json_to_buffer, &out);
        bz_json_node_write(&j, root);
        CHECK(bz_json_finish(&j));
    } else {
        CHECK(root == NULL);
    }
    bz_arena_free(&arena);
    return out.text;
}

static void reads(const char *text, const char *want)
{
    bz_error err = {0};
    char *got = reread(text, strlen(text), &err);
    CHECKF(got && strcmp(got, want) == 0, "%s became %s instead of %s", text, got ? got : err.text,
           want);
    free(got);
}

static void refuses_n(const char *text, size_t n, size_t at, const char *why)
{
    bz_error err = {0};
    char want[200], *got = reread(text, n, &err);
    snprintf(want, sizeof want, "The JSON is invalid at byte %zu: %s", at, why);
    CHECKF(!got && err.code == BZ_BAD_REQUEST && strncmp(err.text, want, strlen(want)) == 0,
           "%s became %s, not: %s", text, got ? got : err.text, want);
    free(got);
}

static void refuses(const char *text, size_t at, const char *why)
{
    refuses_n(text, strlen(text), at, why);
}

static void values(void)
{
    begin("values");
    reads("null", "null");
    reads(" \t\r\n true ", "true");
    reads("false", "false");
    reads("\"\"", "\"\"");
    reads("[]", "[]");
    reads(" [ ] ", "[]");
    reads("{}", "{}");
    reads("{ }", "{}");
    reads("[1, [2, {\"a\" : [ ]}], null]", "[1,[2,{\"a\":[]}],null]");
    reads("{\"b\":1,\"a\":{\"c\":[true,false]}}", "{\"b\":1,\"a\":{\"c\":[true,false]}}");

    begin("numbers keep their digits");
    static const char *const numbers[] = {
        "0",    "-0",    "1.0",    "10",       "-1.50",
        "1e5",  "1E+05", "1e-400", "0.1e+10",  "123456789012345678901234567890",
        "1.00", "-7",    "0e0",    "9.99E400", NULL};
    for (size_t i = 0; numbers[i]; i++) {
        reads(numbers[i], numbers[i]);
    }

    begin("strings");
    reads("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    reads("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "\"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    reads("\"\xF0\x9F\x98\x80 \xE6\x97\xA5\"", "\"\xF0\x9F\x98\x80 \xE6\x97\xA5\"");
    reads("\"\\u0000x\"", "\"\\u0000x\"");
    reads("\"\\ud83d\"", "\"\xEF\xBF\xBD\"");
    reads("\"\\ude00\\ud83d\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
    reads("\"\\ud83d\\u0041\"", "\"\xEF\xBF\xBD\x41\"");
    reads("\"\\ud83d\\n\"", "\"\xEF\xBF\xBD\\n\"");
    reads("{\"\\u0061\\n\":1}", "{\"a\\n\":1}");
}

static void refusals(void)
{
    begin("broken JSON is refused at its byte");
    refuses("", 0, "the text ends where a value");
    refuses("   ", 3, "the text ends where a value");
    refuses("nul", 0, "a value");
    refuses("nulll", 4, "there is more text");
    refuses("true false", 5, "there is more text");
    refuses("{} ,", 3, "there is more text");
    refuses("[1,]", 3, "a value");
    refuses("[1 2]", 3, "a comma or ]");
    refuses("[1", 2, "a comma or ]");
    refuses("[", 1, "the text ends");
    refuses("{\"a\" 1}", 5, "a colon");
    refuses("{\"a\":1,}", 7, "a key in quotes");
    refuses("{a:1}", 1, "a key in quotes");
    refuses("{\"a\":1]", 6, "a comma or }");
    refuses("{\"a\":}", 5, "a value");
    refuses("\"abc", 4, "a string is not closed");
    refuses("\"a\nb\"", 2, "a control character");
    refuses("\"\\x\"", 2, "this escape does not exist");
    refuses("\"\\", 2, "this escape does not exist");
    refuses("\"\\u12\"", 3, "\\u needs four");
    refuses("\"\\u12g4\"", 3, "\\u needs four");
    refuses("'a'", 0, "a value");
    refuses("\xEF\xBB\xBF{}", 0, "a value"); /* a byte order mark */

    begin("numbers that are not JSON");
    static const char *const numbers[] = {"01", "-",   "+1", ".5",   "1.",  "1.e5",
                                          "1e", "1e+", "-a", "0x10", "--1", NULL};
    for (size_t i = 0; numbers[i]; i++) {
        bz_error err = {0};
        char *got = reread(numbers[i], strlen(numbers[i]), &err);
        CHECKF(!got && err.code == BZ_BAD_REQUEST, "%s was read", numbers[i]);
        free(got);
    }

    begin("text that is not UTF-8 is refused");
    refuses("\"a\xFF\"", 2, "the text is not UTF-8");
    refuses("\"\xC0\x80\"", 1, "the text is not UTF-8");
    refuses("\"\xED\xA0\x80\"", 1, "the text is not UTF-8");
    refuses("\"\xE2\x82\"", 1, "the text is not UTF-8");
    refuses("\"\xF4\x90\x80\x80\"", 1, "the text is not UTF-8");
    refuses("[\xC3\xA9]", 1, "a value");
    refuses_n("1\0", 2, 1, "there is more text");
}

static void depth(void)
{
    begin("64 levels and no more");
    for (int object = 0; object < 2; object++) {
        for (size_t n = 63; n <= 66; n++) {
            char text[1000] = "", *at = text;
            for (size_t i = 0; i < n; i++) {
                at += sprintf(at, "%s", object ? "{\"k\":" : "[");
            }
            at += sprintf(at, "0");
            for (size_t i = 0; i < n; i++) {
                at += sprintf(at, "%s", object ? "}" : "]");
            }
            if (n <= 64) {
                reads(text, text);
            } else {
                refuses(text, object ? 65 * 5 - 4 : 65, "values are nested too deep");
            }
        }
    }
    char *many = malloc(200000);
    memset(many, '[', 200000);
    refuses_n(many, 200000, 65, "values are nested too deep");
    free(many);
}

static const bz_json_node *tree(bz_arena *arena, const char *text)
{
    const bz_json_node *root;
    bz_error err = {0};
    CHECKF(bz_json_read(&root, text, strlen(text), arena, &err) == BZ_OK, "%s", err.text);
    return root;
}

static void lookups(void)
{
    bz_arena arena = {0};
    int64_t whole;
    double real;
    begin("access to the nodes of a tree");
    const bz_json_node *t = tree(
        &arena, "{\"s\":\"x\",\"n\":-12,\"d\":1.5,\"l\":[1,2,3],\"s\":\"y\",\"o\":{\"p\":null}}");
    CHECK(bz_json_is(t, BZ_JSON_OBJECT) && t->n == 6);
    CHECK(bz_str_is(bz_json_string(bz_json_get(t, "s")), "y"));
    CHECK(bz_json_get(t, "none") == NULL && bz_json_get(NULL, "s") == NULL);
    CHECK(bz_json_get(bz_json_get(t, "s"), "s") == NULL);
    CHECK(bz_json_is(bz_json_get(bz_json_get(t, "o"), "p"), BZ_JSON_NULL));
    CHECK(bz_json_string(bz_json_get(t, "n")).len == 0 && bz_json_string(NULL).len == 0);
    CHECK(bz_json_get(t, "l")->n == 3 &&
          bz_json_first(bz_json_get(t, "l"))->next->next->next == NULL);
    CHECK(bz_json_first(bz_json_get(t, "n")) == NULL && bz_json_first(NULL) == NULL);
    CHECK(bz_json_to_int(bz_json_get(t, "n"), &whole) && whole == -12);
    CHECK(!bz_json_to_int(bz_json_get(t, "d"), &whole) &&
          !bz_json_to_int(bz_json_get(t, "s"), &whole));
    CHECK(bz_json_to_double(bz_json_get(t, "d"), &real) && real == 1.5);
    CHECK(!bz_json_to_double(NULL, &real));

    begin("integers up to the limits");
    CHECK(bz_json_to_int(tree(&arena, "9223372036854775807"), &whole) && whole == INT64_MAX);
    CHECK(bz_json_to_int(tree(&arena, "-9223372036854775808"), &whole) && whole == INT64_MIN);
    CHECK(!bz_json_to_int(tree(&arena, "9223372036854775808"), &whole));
    CHECK(!bz_json_to_int(tree(&arena, "-9223372036854775809"), &whole));
    CHECK(!bz_json_to_int(tree(&arena, "99999999999999999999"), &whole));
    CHECK(!bz_json_to_int(tree(&arena, "1e2"), &whole));
    CHECK(bz_json_to_int(tree(&arena, "-0"), &whole) && whole == 0);

    begin("numbers in any locale");
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (setlocale(LC_NUMERIC, locales[i])) {
            CHECK(bz_json_to_double(tree(&arena, "-12.25e1"), &real) && real == -122.5);
        }
    }
    setlocale(LC_NUMERIC, "C");
    CHECK(!bz_json_to_double(tree(&arena, "1e999"), &real));
    CHECK(bz_json_to_double(tree(&arena, "1e-999"), &real) && real == 0.0);

    begin("members in order of their keys");
    size_t n;
    const bz_json_node **sorted = bz_json_sorted(
        tree(&arena, "{\"b\":1,\"a\":2,\"B\":3,\"\":4,\"ab\":5,\"a\":6,\"\xC3\xA9\":7}"), &arena,
        &n);
    static const char *const keys[] = {"", "B", "a", "ab", "b", "\xC3\xA9"};
    CHECK(n == 6);
    for (size_t i = 0; i < n && i < 6; i++) {
        CHECKF(bz_str_is(sorted[i]->key, keys[i]), "%zu is %.*s", i, (int)sorted[i]->key.len,
               sorted[i]->key.data);
    }
    CHECK(bz_json_to_int(sorted[2], &whole) && whole == 6);
    CHECK(bz_json_sorted(NULL, &arena, &n) && n == 0);
    bz_arena_free(&arena);

    begin("one string without its quotes");
    char out[32];
    CHECK(bz_json_unquote((bz_str){"\"a\\n\\u00e9\"", 11}, out, &n) && n == 4 &&
          memcmp(out, "a\n\xC3\xA9", 4) == 0);
    CHECK(bz_json_unquote((bz_str){"\"\"", 2}, out, &n) && n == 0);
    CHECK(!bz_json_unquote((bz_str){"\"a\" ", 4}, out, &n) &&
          !bz_json_unquote((bz_str){"\"a", 2}, out, &n));
    CHECK(!bz_json_unquote((bz_str){"a\"", 2}, out, &n) &&
          !bz_json_unquote((bz_str){"\"", 1}, out, &n));
}

/* ---- random trees ------------------------------------------------------------ */

static void random_string(char **at)
{
    static const char *const bits[] = {"a",    "Z",    " ",        "\\n",
                                       "\\\"", "\\\\", "\xC3\xA9", "\xF0\x9F\x98\x80",
                                       "{",    "]",    ":",        "\\u0001"};
    *(*at)++ = '"';
    for (uint32_t n = below(6); n > 0; n--) {
        *at += sprintf(*at, "%s", bits[below(sizeof bits / sizeof *bits)]);
    }
    *(*at)++ = '"';
}

static void random_value(char **at, int level)
{
    static const char *const plain[] = {
        "null", "true", "false", "0", "-1.5e3", "12345678901234567890", "1.0"};
    uint32_t kind = below(level < 5 ? 4 : 2);
    if (kind == 0) {
        *at += sprintf(*at, "%s", plain[below(sizeof plain / sizeof *plain)]);
    } else if (kind == 1) {
        random_string(at);
    } else {
        *(*at)++ = kind == 2 ? '[' : '{';
        for (uint32_t n = below(5), i = 0; i < n; i++) {
            if (i) {
                *(*at)++ = ',';
            }
            if (kind == 3) {
                random_string(at);
                *(*at)++ = ':';
            }
            random_value(at, level + 1);
        }
        *(*at)++ = kind == 2 ? ']' : '}';
    }
}

static void random_trees(void)
{
    static char text[1 << 20];
    begin("20,000 random trees survive a round trip, and no prefix of one is accepted");
    for (int i = 0; i < 20000; i++) {
        char *at = text;
        bz_error err = {0};
        random_value(&at, 0);
        size_t n = (size_t)(at - text);
        text[n] = 0;
        char *got = reread(text, n, &err);
        if (!CHECKF(got && strcmp(got, text) == 0, "%s became %s", text, got ? got : err.text)) {
            free(got);
            return;
        }
        free(got);
        if (text[0] == '[' || text[0] == '{' || text[0] == '"') {
            got = reread(text, below((uint32_t)n), &err);
            CHECKF(!got, "a cut text was read as %s", got);
            free(got);
        }
    }
}

int main(void)
{
    values();
    refusals();
    depth();
    lookups();
    random_trees();
    return finish();
}
