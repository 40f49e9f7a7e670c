/* Grammars: what they accept, what they refuse, which tokens they allow, and random texts.
 *
 *   test_grammar                       the cases
 *   test_grammar walk N SEED < FILE    FILE: schemas, one per line. Prints N random texts of each,
 * a line each, as "LINE TEXT", or "LINE !ERROR" test_grammar accept < FILE         FILE: [SCHEMA,
 * [TEXT...]] per line. Prints "LINE y" or "LINE n" per text, or "LINE !ERROR" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "grammar/calls.h"
#include "support/check.h"
#include "support/walk.h"

static bz_vocabulary *vocabulary;
static char text[WALK_CAPACITY];

static bool accepts(bz_matcher *m, const char *s, size_t n)
{
    bz_matcher_restart(m);
    return bz_matcher_take(m, s, n) && bz_matcher_can_end(m);
}

/* ---- tables ------------------------------------------------------------------------------------
 */

typedef struct grammar_case {
    bz_grammar_kind kind;
    const char *grammar;
    const char *yes[10], *no[10];
} grammar_case;

static const grammar_case cases[] = {
#include "grammar_cases.h"
};

static void check_case(const grammar_case *c)
{
    bz_error err = {0};
    bz_grammar *g;
    bz_matcher *m;
    if (!CHECKF(bz_grammar_new(&g, c->kind, c->grammar, strlen(c->grammar), &err) == BZ_OK,
                "%s: %s", c->grammar, err.text)) {
        return;
    }
    CHECK(bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    for (int i = 0; i < 10 && c->yes[i]; i++) {
        CHECKF(accepts(m, c->yes[i], strlen(c->yes[i])), "%s refuses %s", c->grammar, c->yes[i]);
    }
    for (int i = 0; i < 10 && c->no[i]; i++) {
        CHECKF(!accepts(m, c->no[i], strlen(c->no[i])), "%s accepts %s", c->grammar, c->no[i]);
    }
    bz_matcher_free(m);
    bz_grammar_free(g);
}

static void tables(void)
{
    begin("grammars accept their texts and no others");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_case(&cases[i]);
    }
}

static const struct {
    bz_grammar_kind kind;
    const char *grammar, *says;
} refused[] = {
#include "grammar_refused.h"
};

static void refusals(void)
{
    begin("what cannot be obeyed is refused with the place");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        bz_error err = {0};
        bz_grammar *g = NULL;
        const bz_status status = bz_grammar_new(&g, refused[i].kind, refused[i].grammar,
                                                strlen(refused[i].grammar), &err);
        CHECKF(status == BZ_BAD_SCHEMA && strstr(err.text, refused[i].says), "%s: %s",
               refused[i].grammar, status == BZ_OK ? "accepted" : err.text);
        bz_grammar_free(g);
    }
    bz_error err = {0};
    bz_grammar *g = NULL;
    CHECK(bz_grammar_new(&g, (bz_grammar_kind)77, "", 0, &err) == BZ_BAD_REQUEST && !g);
}

/* ---- masks
 * ----------------------------------------------------------------------------------------- */

/* Every bit against taking the token. */
static void check_mask(bz_matcher *m, const char *name, size_t n)
{
    const bz_trie *t = bz_vocabulary_trie(vocabulary);
    bz_token_mask mask;
    bz_error err = {0};
    uint64_t bits[16];
    uint32_t count = 0;
    bz_matcher_restart(m);
    CHECK(bz_matcher_take(m, text, n));
    if (!CHECKF(bz_matcher_mask(m, &mask, &err) == BZ_OK, "%s: %s", name, err.text)) {
        return;
    }
    memcpy(bits, mask.bits, (t->n_tokens + 63) / 64 * sizeof *bits);
    const bz_token_mask copy = {bits, mask.n, mask.can_end};
    for (uint32_t id = 0; id < t->n_tokens; id++) {
        bz_matcher_restart(m);
        bz_matcher_take(m, text, n);
        const bool takes = bz_matcher_take_token(m, (int32_t)id);
        count += takes;
        if (!CHECKF(bz_mask_has(&copy, (int32_t)id) == takes,
                    "%s: after '%.*s' the token '%.*s' is %s", name, (int)n, text,
                    (int)t->text[id].len, t->text[id].data, takes ? "missing" : "allowed")) {
            return;
        }
    }
    CHECK(count == mask.n);
}

static void masks(void)
{
    const bool quick = getenv("BEZEL_QUICK") != NULL;
    begin("masks are the tokens that can be taken");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bz_error err = {0};
        bz_grammar *g;
        bz_matcher *m;
        uint64_t random = i + 1;
        if (bz_grammar_new(&g, cases[i].kind, cases[i].grammar, strlen(cases[i].grammar), &err) !=
                BZ_OK ||
            bz_matcher_new(&m, g, vocabulary, &err) != BZ_OK) {
            continue;
        }
        for (int round = 0; round < (quick ? 1 : 3); round++) {
            const int64_t n = walk(m, vocabulary, &random, 12, text, &err);
            CHECKF(n >= 0 || err.code == BZ_ABORTED, "%s: %s", cases[i].grammar, err.text);
            for (int64_t at = 0; at <= n && at < 40; at += 1 + (int64_t)(random >> 62)) {
                check_mask(m, cases[i].grammar, (size_t)at);
            }
        }
        bz_matcher_free(m);
        bz_grammar_free(g);
    }
}

/* ---- random walks
 * ------------------------------------------------------------------------------------- */

static void random_walks(void)
{
    const char *given = getenv("BEZEL_WALKS");
    const int walks = given ? atoi(given) : getenv("BEZEL_QUICK") ? 60 : 850;
    const size_t n_cases = sizeof cases / sizeof *cases;
    int done = 0, unfinished = 0;
    begin("random walks are accepted byte by byte");
    for (size_t i = 0; i < n_cases; i++) {
        bz_error err = {0};
        bz_grammar *g;
        bz_matcher *m, *fresh;
        uint64_t random = i * 77 + 1;
        if (bz_grammar_new(&g, cases[i].kind, cases[i].grammar, strlen(cases[i].grammar), &err) !=
                BZ_OK ||
            bz_matcher_new(&m, g, vocabulary, &err) != BZ_OK ||
            bz_matcher_new(&fresh, g, vocabulary, &err) != BZ_OK) {
            continue;
        }
        for (int k = 0; k < walks; k++, done++) {
            const int64_t n = walk(m, vocabulary, &random, 5 + (uint32_t)k % 40, text, &err);
            if (n < 0 && err.code == BZ_ABORTED) {
                unfinished++;
                continue;
            }
            if (!CHECKF(n >= 0 && accepts(fresh, text, (size_t)n), "%s: '%.*s' %s",
                        cases[i].grammar, (int)(n < 100 ? n : 100), text, err.text)) {
                break;
            }
            if (cases[i].kind == BZ_GRAMMAR_SCHEMA || cases[i].kind == BZ_GRAMMAR_JSON) {
                bz_arena arena = {0};
                const bz_json_node *root;
                CHECKF(bz_json_read(&root, text, (size_t)n, &arena, &err) == BZ_OK, "%.*s: %s",
                       (int)n, text, err.text);
                bz_arena_free(&arena);
            }
            if (k % 8 == 0) {
                bz_matcher_compact(m);
            }
        }
        bz_matcher_free(m);
        bz_matcher_free(fresh);
        bz_grammar_free(g);
    }
    CHECKF(unfinished * 20 < done, "%d of %d walks have no end", unfinished, done);
    printf("  %d walks\n", done);
}

static void forgetting(void)
{
    static const char grammar[] = "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}";
    bz_error err = {0};
    bz_grammar *g;
    bz_matcher *m;
    bz_token_mask mask;
    begin("a matcher that forgets goes on where it was");
    CHECK(bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, grammar, strlen(grammar), &err) == BZ_OK);
    CHECK(bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    for (int i = 0; i < 1000; i++) {
        CHECK(bz_matcher_take(m, "[", 1));
    }
    CHECK(bz_matcher_mask(m, &mask, &err) == BZ_OK);
    const uint32_t n = mask.n;
    CHECK(bz_matcher_compact(m));
    CHECK(bz_matcher_mask(m, &mask, &err) == BZ_OK && mask.n == n);
    for (int i = 0; i < 1000; i++) {
        CHECK(!bz_matcher_can_end(m) && bz_matcher_take(m, "]", 1));
    }
    CHECK(bz_matcher_can_end(m) && !bz_matcher_take(m, "]", 1));
    bz_matcher_free(m);
    bz_grammar_free(g);
}

/* What each kind of object needs: conditions whose alternatives must not multiply. */
static void conditions(void)
{
    enum { KINDS = 16, ROOM = 8000 };
    char schema[ROOM];
    size_t n = 0;
    bz_error err = {0};
    bz_grammar *g = NULL;
    bz_matcher *m;
    begin("many conditions that exclude each other");
    n += (size_t)snprintf(schema, ROOM, "{\"type\":\"object\",\"properties\":{\"kind\":{}");
    for (int i = 0; i < KINDS; i++) {
        n += (size_t)snprintf(schema + n, ROOM - n, ",\"p%d\":{\"type\":\"integer\"}", i);
    }
    n += (size_t)snprintf(schema + n, ROOM - n,
                          "},\"required\":[\"kind\"],\"additionalProperties\":false,\"allOf\":[");
    for (int i = 0; i < KINDS; i++) {
        n += (size_t)snprintf(schema + n, ROOM - n,
                              "%s{\"if\":{\"properties\":{\"kind\":{\"const\":\"k%d\"}}},"
                              "\"then\":{\"required\":[\"p%d\"]},"
                              "\"else\":{\"properties\":{\"p%d\":false}}}",
                              i ? "," : "", i, i, i);
    }
    n += (size_t)snprintf(schema + n, ROOM - n, "]}");
    CHECKF(bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, schema, n, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    static const char *const yes[] = {"{\"kind\":\"k3\", \"p3\":1}", "{\"kind\":\"x\"}"},
                             *const no[] = {"{\"kind\":\"k3\"}", "{\"kind\":\"k3\", \"p2\":1}",
                                            "{\"kind\":\"x\", \"p2\":1}"};
    for (size_t i = 0; i < 2; i++) {
        CHECKF(accepts(m, yes[i], strlen(yes[i])), "refused %s", yes[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        CHECKF(!accepts(m, no[i], strlen(no[i])), "accepted %s", no[i]);
    }
    bz_matcher_free(m);
    bz_grammar_free(g);
}

static void forced(void)
{
    static const char grammar[] = "root ::= \"abc\" (\"def\" | \"deg\") \"!\"";
    bz_error err = {0};
    bz_grammar *g;
    bz_matcher *m;
    char out[16];
    begin("prescribed bytes are known");
    CHECK(bz_grammar_new(&g, BZ_GRAMMAR_GBNF, grammar, strlen(grammar), &err) == BZ_OK);
    CHECK(bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    CHECK(bz_matcher_forced(m, out, sizeof out) == 5 && memcmp(out, "abcde", 5) == 0);
    CHECK(bz_matcher_forced(m, out, 2) == 2);
    CHECK(bz_matcher_take(m, "abcde", 5) && bz_matcher_forced(m, out, sizeof out) == 0);
    CHECK(bz_matcher_take(m, "g", 1) && bz_matcher_forced(m, out, sizeof out) == 1);
    CHECK(bz_matcher_take(m, "!", 1) && bz_matcher_forced(m, out, sizeof out) == 0);
    bz_matcher_free(m);
    bz_grammar_free(g);
}

/* ---- tool calls
 * ------------------------------------------------------------------------------------------ */

#define Q     "\xFF\x01"
#define OPEN  "\xFF\x02"
#define CLOSE "\xFF\x03"

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"strict\":true,\"parameters\":{"
    "\"type\":\"object\",\"properties\":{\"place\":{\"type\":\"string\"},\"days\":{\"type\":"
    "\"integer\",\"maximum\":9}},\"required\":[\"place\"]}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"clock\",\"parameters\":{\"not\":"
    "{\"format\":\"date\"}}}}]";

static void calls(void)
{
    static const char *const yes[] = {
        OPEN "call:weather{place:" Q "Rome, \"old\"" Q "}" CLOSE,
        OPEN "call:weather{days:3,place:" Q Q "}" CLOSE,
        OPEN "call:clock{zone:" Q "UTC" Q ",list:[1,true,{a:null}]}" CLOSE,
        OPEN "call:clock{}" CLOSE OPEN "call:clock{}" CLOSE,
    };
    static const char *const no[] = {
        "",
        OPEN "call:weather{}" CLOSE,
        OPEN "call:weather{place:Rome}" CLOSE,
        OPEN "call:weather{place:" Q "x" Q ",town:1}" CLOSE,
        OPEN "call:weather{days:10,place:" Q "x" Q "}" CLOSE,
        OPEN "call:rain{}" CLOSE,
        "{}",
    };
    bz_arena arena = {0};
    bz_error err = {0};
    const bz_json_node *list;
    bz_grammar *g = NULL;
    bz_matcher *m;
    begin("tool calls in the model's notation");
    CHECK(bz_json_read(&list, tools, strlen(tools), &arena, &err) == BZ_OK);
    bz_calls_options o = {.tools = list, .all_strict = true, .several = true};
    CHECKF(bz_calls_read(&g, &o, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        CHECKF(accepts(m, yes[i], strlen(yes[i])), "refused %s", yes[i]);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        CHECKF(!accepts(m, no[i], strlen(no[i])), "accepted %s", no[i]);
    }
    bz_matcher_free(m);
    bz_grammar_free(g);
    o.several = false;
    o.only = (bz_str){"clock", 5};
    o.or_json = true;
    CHECK(bz_calls_read(&g, &o, &err) == BZ_OK && bz_matcher_new(&m, g, vocabulary, &err) == BZ_OK);
    CHECK(accepts(m, yes[2], strlen(yes[2])) && !accepts(m, yes[3], strlen(yes[3])));
    CHECK(!accepts(m, yes[0], strlen(yes[0])) && accepts(m, "{}", 2));
    bz_matcher_free(m);
    bz_grammar_free(g);
    o.only = (bz_str){"rain", 4};
    CHECK(bz_calls_read(&g, &o, &err) == BZ_BAD_REQUEST && strstr(err.text, "rain"));
    bz_arena_free(&arena);
}

/* ---- for tests/cli/test_structured.py
 * ---------------------------------------------------------------------- */

static char *line;
static size_t line_cap;

/* Not getline, which Windows does not have; -> its length, 0 at the end. */
static size_t read_line(void)
{
    size_t n = 0;
    for (int c = 0; c != '\n' && (c = getc(stdin)) != EOF;) {
        if (n == line_cap) {
            line_cap = 2 * line_cap + 4096;
            line = realloc(line, line_cap);
            if (!line) {
                abort();
            }
        }
        line[n++] = (char)c;
    }
    return n;
}

static int print_walks(int walks, uint64_t seed)
{
    size_t n;
    for (int number = 0; (n = read_line()) > 0; number++) {
        bz_error err = {0};
        bz_grammar *g = NULL;
        bz_matcher *m = NULL;
        uint64_t random = seed + (uint64_t)number;
        if (bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, line, n, &err) != BZ_OK ||
            bz_matcher_new(&m, g, vocabulary, &err) != BZ_OK) {
            printf("%d !%s\n", number, err.text);
        }
        for (int k = 0; m && k < walks; k++) {
            int64_t len = walk(m, vocabulary, &random, 3 + (uint32_t)k * 7 % 60, text, &err);
            if (len < 0 && err.code == BZ_ABORTED) {
                continue;
            }
            if (len < 0) {
                printf("%d !%s\n", number, err.text);
                break;
            }
            for (int64_t i = 0; i < len; i++) {
                text[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i]; /* between values */
            }
            printf("%d %.*s\n", number, (int)len, text);
        }
        bz_matcher_free(m);
        bz_grammar_free(g);
    }
    return 0;
}

static int print_accepted(void)
{
    size_t n;
    for (int number = 0; (n = read_line()) > 0; number++) {
        bz_error err = {0};
        bz_grammar *g = NULL;
        bz_matcher *m = NULL;
        bz_arena arena = {0};
        const bz_json_node *pair;
        bz_json_buffer schema = {0};
        bz_json j;
        if (bz_json_read(&pair, line, n, &arena, &err) != BZ_OK) {
            return 1;
        }
        bz_json_init(&j, bz_json_to_buffer, &schema);
        bz_json_node_write(&j, pair->of.first);
        if (!bz_json_finish(&j) ||
            bz_grammar_new(&g, BZ_GRAMMAR_SCHEMA, schema.text, schema.n, &err) != BZ_OK ||
            bz_matcher_new(&m, g, vocabulary, &err) != BZ_OK) {
            printf("%d !%s\n", number, err.text);
        }
        const bz_json_node *x = m ? bz_json_first(pair->of.first->next) : NULL;
        for (; x; x = x->next) {
            printf("%d %c\n", number, accepts(m, x->of.text.data, x->of.text.len) ? 'y' : 'n');
        }
        bz_matcher_free(m);
        bz_grammar_free(g);
        bz_arena_free(&arena);
        free(schema.text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    vocabulary = walk_vocabulary();
    if (!vocabulary) {
        return 1;
    }
    int code;
    if (argc > 3 && strcmp(argv[1], "walk") == 0) {
        code = print_walks(atoi(argv[2]), strtoull(argv[3], NULL, 10));
    } else if (argc > 1 && strcmp(argv[1], "accept") == 0) {
        code = print_accepted();
    } else {
        tables();
        refusals();
        masks();
        random_walks();
        forgetting();
        conditions();
        forced();
        calls();
        code = finish();
    }
    free(line);
    bz_vocabulary_free(vocabulary);
    return code;
}
