/* Strings of a schema. */
#include <stdlib.h>
#include <string.h>

#include "grammar/regex.h"
#include "grammar/schema_internal.h"

enum { MAX_LENGTH_WITH_PATTERN = 4096 };

/* ---- formats
 * -------------------------------------------------------------------------------------- */

#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define LEAP "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([13579][26]|[2468][048]|0[48])00)"
#define DATE                                                                                       \
    "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-"   \
    "(0[1-9]|1[0-9]|2[0-8]))|" LEAP "-02-29)"
#define TIME                                                                                       \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4  OCTET "(\\." OCTET "){3}"
#define H16   "[0-9a-fA-F]{1,4}"
/* :: stands for one group of zeros or more. */
#define IPV6                                                                                       \
    "((" H16 ":){7}" H16 "|(" H16 ":){1,7}:|(" H16 ":){1,6}:" H16 "|(" H16 ":){1,5}(:" H16         \
    "){1,2}|(" H16 ":){1,4}(:" H16 "){1,3}|(" H16 ":){1,3}(:" H16 "){1,4}|(" H16 ":){1,2}(:" H16   \
    "){1,5}|" H16 ":(:" H16 "){1,6}|:(:" H16 "){1,7}|::)"
/* At most 63 characters, counted without looking ahead: hyphens only between others. */
#define LABEL     "[a-zA-Z0-9](-?[a-zA-Z0-9]){0,31}"
#define HOSTNAME  LABEL "(\\." LABEL "){0,7}"
#define EMAIL     "[a-zA-Z0-9_%+~-]+(\\.[a-zA-Z0-9_%+~-]+)*@" LABEL "(\\." LABEL "){1,4}"
#define URI_CHAR  "([a-zA-Z0-9._~:/?#\\[\\]@!$&'()*+,;=-]|%[0-9a-fA-F]{2})"
#define UUID      "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
#define TIME_PART "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
#define DAY_PART  "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)"
#define DURATION  "P(" DAY_PART "(" TIME_PART ")?|" TIME_PART "|[0-9]+W)"

/* References and their forms with other scripts (I): characters of a segment, with and without a
 * colon; paths. */
#define OTHERS    "\\u00a0-\\ud7ff\\uf900-\\ufdcf\\ufdf0-\\uffef"
#define CHARS     "a-zA-Z0-9._~!$&'()*+,;=@"
#define ESCAPED   "|%[0-9a-fA-F]{2})"
#define P(more)   "([" CHARS ":" more "-]" ESCAPED
#define PN(more)  "([" CHARS more "-]" ESCAPED
#define REST(m)   "(\\?(" P(m) "|[/?])*)?(#(" P(m) "|[/?])*)?$"
#define PATHS(m)  "(/" P(m) "*)*"
#define SCHEME    "[a-zA-Z][a-zA-Z0-9+.-]*:"
#define HOST(m)   "([a-zA-Z0-9._~" m "-]*|\\[[0-9a-fA-F:.]{2,45}\\])(:[0-9]{0,5})?"
#define USER(m)   "(([a-zA-Z0-9._~!$&'()*+,;=:" m "-]" ESCAPED "*@)?"
#define ROOTED(m) "(//" USER(m) HOST(m) PATHS(m) "|/(" P(m) "+" PATHS(m) ")?)"
#define REFERENCE(m)                                                                               \
    "^((" SCHEME ")?" ROOTED(m) "|" SCHEME                                                         \
                                "(" P(m) "+" PATHS(m) ")?|(" PN(m) "+" PATHS(m) ")?)" REST(m)
#define IRI       "^" SCHEME "(" ROOTED(OTHERS) "|(" P(OTHERS) "+" PATHS(OTHERS) ")?)" REST(OTHERS)
#define IDN_LABEL "[a-zA-Z0-9" OTHERS "](-?[a-zA-Z0-9" OTHERS "]){0,31}"
#define IDN_PART  "[a-zA-Z0-9_%+~" OTHERS "-]+"
#define IDN_EMAIL "^" IDN_PART "(\\." IDN_PART ")*@" IDN_LABEL "(\\." IDN_LABEL "){1,4}$"

static const struct {
    const char *name, *regex;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration", "^" DURATION "$"},
    {"uuid", "^" UUID "$"},
    {"ipv4", "^" IPV4 "$"},
    {"ipv6", "^" IPV6 "$"},
    {"hostname", "^" HOSTNAME "$"},
    {"email", "^" EMAIL "$"},
    {"uri", "^[a-zA-Z][a-zA-Z0-9+.-]*:" URI_CHAR "+$"},
    {"uri-reference", REFERENCE("")},
    {"iri", IRI},
    {"iri-reference", REFERENCE(OTHERS)},
    {"idn-email", IDN_EMAIL},
    {"json-pointer", "^(/([^~/]|~[01])*)*$"},
    {"relative-json-pointer", "^(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)$"},
    /* OpenAPI's names for any text, and for numbers written as text */
    {"binary", ""},
    {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    {"password", ""},
};

_Static_assert(sizeof formats / sizeof *formats <= BZ_FORMATS, "a rule for each format");

bool bz_schema_format(schema_reader *r, const bz_json_node *at, bz_str name, bz_str *pattern)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (bz_str_is(name, formats[i].name)) {
            *pattern = (bz_str){formats[i].regex, strlen(formats[i].regex)};
            return true;
        }
    }
    char shown[200];
    return bz_schema_fail(r, at, "the format %s is not supported", bz_str_show(name, shown));
}

/* ---- strings
 * ----------------------------------------------------------------------------------------- */

static bool dfa_of_tree(schema_reader *r, const bz_json_node *at, const bz_tree *t, bool written,
                        bz_dfa *out)
{
    bz_build b = {0};
    bz_error error;
    const bz_tree_out to = {
        .build = &b, .arena = r->arena, .escape = written && !r->rules->native, .regular = true};
    const uint32_t rule = bz_build_rule(&b);
    uint32_t first;
    if (!b.failed) {
        bz_tree_emit(&to, t, b.rules[rule].start, b.rules[rule].end);
    }
    const bz_status status =
        b.failed ? bz_build_status(&b, &error)
                 : bz_dfa_append(out, &b, b.rules[rule].start, b.rules[rule].end, &first, &error);
    bz_build_free(&b);
    return status == BZ_OK || bz_schema_failed(r, at, status, &error);
}

bool bz_schema_pattern_dfa(schema_reader *r, const bz_json_node *at, bz_str pattern, bool written,
                           bz_dfa *out)
{
    const bz_tree *t;
    bz_error error;
    const bz_status status = bz_regex_read(&t, pattern.data, pattern.len, true, r->arena, &error);
    return status == BZ_OK ? dfa_of_tree(r, at, t, written, out)
                           : bz_schema_failed(r, at, status, &error);
}

static bool has_length(const merged *m)
{
    return m->min_length || m->max_length != BZ_NO_LIMIT;
}

static bool length_dfa(schema_reader *r, const merged *m, bz_dfa *out)
{
    const uint32_t most = m->max_length == BZ_NO_LIMIT ? m->min_length : m->max_length;
    if (most > MAX_LENGTH_WITH_PATTERN) {
        return bz_schema_fail(r, m->at,
                              "a pattern or format together with a length above %d is not "
                              "supported",
                              (int)MAX_LENGTH_WITH_PATTERN);
    }
    return dfa_of_tree(r, m->at,
                       bz_tree_repeat(r->arena, bz_tree_chars(r->arena, NULL, 0, true),
                                      m->min_length, m->max_length),
                       true, out);
}

/* Replaces *x by what it has in common with *y, or without `keep` by what *y does not have. */
static bool meet(schema_reader *r, const merged *m, bz_dfa *x, bz_dfa *y, bool keep)
{
    bz_dfa both = {0};
    bz_error error;
    const bz_status status = bz_dfa_meet(&both, x, y, !keep, &error);
    bz_dfa_free(x);
    bz_dfa_free(y);
    *x = both;
    return status == BZ_OK || bz_schema_failed(r, m->at, status, &error);
}

bool bz_schema_string_dfa(schema_reader *r, const merged *m, bz_dfa *out)
{
    bool begun = false;
    for (uint32_t i = 0; i <= m->n_patterns; i++) {
        bz_dfa next = {0};
        if (i == m->n_patterns && !has_length(m) && begun) {
            break;
        }
        const bool good = i < m->n_patterns
                              ? bz_schema_pattern_dfa(r, m->at, m->patterns[i], true, &next)
                              : length_dfa(r, m, &next);
        if (!good) {
            bz_dfa_free(&next);
            return false;
        }
        if (!begun) {
            *out = next;
            begun = true;
        } else if (!meet(r, m, out, &next, true)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < m->n_not_patterns; i++) {
        bz_dfa next = {0};
        if (!bz_schema_pattern_dfa(r, m->at, m->not_patterns[i], true, &next)) {
            bz_dfa_free(&next);
            return false;
        }
        if (!meet(r, m, out, &next, false)) {
            return false;
        }
    }
    return true;
}

/* Characters counted by a loop; its rule is the same in all schemas. */
static void add_counted(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const bz_tree_out out = {.build = b, .arena = r->arena, .regular = true};
    const uint32_t body = bz_build_rule(b);
    if (b->failed) {
        return;
    }
    b->rules[body].shared = true;
    bz_tree_emit(&out, bz_json_character(r->rules), b->rules[body].start, b->rules[body].end);
    bz_build_call(b, from, to, bz_build_loop(b, body, m->min_length, m->max_length));
}

/* One pattern without lengths: counts in it are counted while it runs. */
static bool add_pattern(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    const bz_tree *t;
    bz_error error;
    const bz_tree_out out = {.build = r->build, .arena = r->arena, .escape = !r->rules->native};
    const bz_status status =
        bz_regex_read(&t, m->patterns[0].data, m->patterns[0].len, true, r->arena, &error);
    if (status != BZ_OK) {
        return bz_schema_failed(r, m->at, status, &error);
    }
    bz_tree_emit(&out, t, from, to);
    return true;
}

/* A string of a format has a rule that is the same in all schemas: counts in it are written out.
 * False: the pattern is not that of a format. */
static bool add_format(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    size_t i = 0;
    bz_build *b = r->build;
    while (i < sizeof formats / sizeof *formats && formats[i].regex != m->patterns[0].data) {
        i++;
    }
    if (i == sizeof formats / sizeof *formats) {
        return false;
    }
    if (!r->format_rule[i]) {
        const uint32_t rule = bz_build_rule(b), begin = bz_build_state(b), end = bz_build_state(b);
        const bz_tree *t;
        const bz_tree_out out = {
            .build = b, .arena = r->arena, .escape = !r->rules->native, .regular = true};
        if (b->failed || bz_regex_read(&t, m->patterns[0].data, m->patterns[0].len, true, r->arena,
                                       NULL) != BZ_OK) {
            return bz_schema_no_memory(r);
        }
        b->rules[rule].shared = true;
        bz_json_add_quote(r->rules, b->rules[rule].start, begin);
        bz_tree_emit(&out, t, begin, end);
        bz_json_add_quote(r->rules, end, b->failed ? end : b->rules[rule].end);
        r->format_rule[i] = rule + 1;
    }
    bz_build_call(b, from, to, r->format_rule[i] - 1);
    return true;
}

void bz_schema_add_string(schema_reader *r, const merged *m, uint32_t from, uint32_t to)
{
    bz_build *b = r->build;
    const bool plain = m->n_not_patterns == 0;
    if (m->min_length > m->max_length) {
        return; /* no text */
    }
    if (!m->n_patterns && !has_length(m) && plain) {
        bz_build_call(b, from, to, bz_json_any_string(r->rules));
        return;
    }
    if (m->n_patterns == 1 && !has_length(m) && plain && add_format(r, m, from, to)) {
        return;
    }
    const uint32_t begin = bz_build_state(b), end = bz_build_state(b);
    bz_json_add_quote(r->rules, from, begin);
    bz_json_add_quote(r->rules, end, to);
    if (!m->n_patterns && plain) {
        if (m->max_length == 0) {
            bz_build_empty(b, begin, end);
        } else {
            add_counted(r, m, begin, end);
        }
    } else if (m->n_patterns == 1 && !has_length(m) && plain) {
        add_pattern(r, m, begin, end);
    } else {
        bz_dfa d = {0};
        if (bz_schema_string_dfa(r, m, &d)) {
            bz_dfa_emit(&d, b, begin, end);
        }
        bz_dfa_free(&d);
    }
}
