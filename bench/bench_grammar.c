/* Times of schemas and token masks.
 *
 *   bench_grammar TOKENS PAIRS [OUT]
 *
 * TOKENS: the texts of a vocabulary, each with its length before it (two bytes, the low one first);
 * empty: a control token. PAIRS: [SCHEMA, [DOCUMENT, ...]] per line; tests/support/schemas.py has
 * more than 200. Every document is cut into the longest tokens; before each of them, and at the
 * end, the allowed tokens are computed, with a new matcher for every document. Prints CPU times in
 * microseconds. OUT: those of all masks, one per line. PAIRS "-": the lines come from standard
 * input, and each is answered by one with the time of the schema and of its masks; "!": not
 * accepted (bench_masks.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_read.h"
#include "grammar/matcher.h"
#include "grammar/schema.h"

typedef struct series {
    double *us;
    size_t n, cap;
} series;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void add(series *s, double us)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 1024;
        s->us = realloc(s->us, s->cap * sizeof *s->us);
        if (!s->us) {
            abort();
        }
    }
    s->us[s->n++] = us;
}

static int by_value(const void *x, const void *y)
{
    const double p = *(const double *)x, q = *(const double *)y;
    return p < q ? -1 : p > q;
}

static void print(const char *name, series *s)
{
    double sum = 0;
    qsort(s->us, s->n, sizeof *s->us, by_value);
    for (size_t i = 0; i < s->n; i++) {
        sum += s->us[i];
    }
    printf("%-10s %7zu  median %8.1f  90%% %8.1f  99%% %8.1f  most %8.1f  mean %8.1f us\n", name,
           s->n, s->us[s->n / 2], s->us[s->n * 9 / 10], s->us[s->n * 99 / 100], s->us[s->n - 1],
           sum / (double)s->n);
}

static char *read_file(const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    *len = 0;
    for (size_t n = 1; f && n;) {
        text = realloc(text, *len + (1 << 20));
        n = text ? fread(text + *len, 1, 1 << 20, f) : 0;
        *len += n;
    }
    if (f) {
        fclose(f);
    }
    return text;
}

static bz_vocabulary *read_tokens(const char *path)
{
    size_t len;
    char *data = read_file(path, &len);
    uint32_t n = 0;
    bz_str *text = calloc(len / 2 + 1, sizeof *text);
    bz_vocabulary *v = NULL;
    for (size_t at = 0; data && text && at + 2 <= len;) {
        const size_t size = (size_t)(uint8_t)data[at] | (size_t)(uint8_t)data[at + 1] << 8;
        text[n++] = (bz_str){data + at + 2, size};
        at += 2 + size;
    }
    const double start = now_us();
    if (data && text && bz_vocabulary_new(&v, text, n, NULL) == BZ_OK) {
        const double end = now_us();
        double nothing = 1e9; /* reading the clock is part of every time below */
        for (int i = 0; i < 2000; i++) {
            const double a = now_us(), b = now_us();
            nothing = b - a < nothing ? b - a : nothing;
        }
        printf("vocabulary of %u: %.0f us; measuring nothing: %.2f us\n", n, end - start, nothing);
    }
    free(text);
    free(data);
    return v;
}

/* The longest token that the text begins with, or -1. */
static int32_t longest(const bz_trie *t, bz_str s)
{
    int32_t found = -1;
    size_t depth = 0;
    for (uint32_t node = 1; node < t->n_nodes && depth < s.len;) {
        if (t->depth[node] != depth + 1) {
            break;
        }
        if (t->byte[node] != (uint8_t)s.data[depth]) {
            node = t->after[node];
            continue;
        }
        uint32_t from, to;
        bz_trie_tokens(t, node, &from, &to);
        found = from < to ? t->order[from] : found;
        depth++;
        node++;
    }
    return found;
}

static bool run_document(bz_grammar *g, bz_vocabulary *v, bz_str s, series *masks)
{
    const bz_trie *t = bz_vocabulary_trie(v);
    bz_matcher *m;
    bz_token_mask mask;
    bool good = bz_matcher_new(&m, g, v, NULL) == BZ_OK;
    while (good) {
        const double start = now_us();
        good = bz_matcher_mask(m, &mask, NULL) == BZ_OK;
        add(masks, now_us() - start);
        if (s.len == 0) {
            good = good && mask.can_end;
            break;
        }
        const int32_t id = longest(t, s);
        good = good && id >= 0 && bz_mask_has(&mask, id) && bz_matcher_take_token(m, id);
        s = good ? (bz_str){s.data + t->text[id].len, s.len - t->text[id].len} : s;
    }
    bz_matcher_free(m);
    return good;
}

static bool run_line(bz_vocabulary *v, const char *line, size_t len, series *compile, series *masks)
{
    bz_arena arena = {0};
    bz_error err = {0};
    const bz_json_node *pair;
    bz_grammar *g = NULL;
    bool good = bz_json_read(&pair, line, len, &arena, &err) == BZ_OK;
    if (good) {
        const double start = now_us();
        good = bz_schema_read(&g, pair->of.first, &err) == BZ_OK;
        add(compile, now_us() - start);
    }
    const bz_json_node *x = good ? bz_json_first(pair->of.first->next) : NULL;
    for (; x && good; x = x->next) {
        good = run_document(g, v, x->of.text, masks);
    }
    if (!good) {
        fprintf(stderr, "%.*s: %s\n", (int)(len < 200 ? len : 200), line, err.text);
    }
    bz_grammar_free(g);
    bz_arena_free(&arena);
    return good;
}

/* For bench_masks.py, which lets others compute the masks of the same line in between. */
static void answer(bool good, const series *compile, series *masks)
{
    printf("%s", good ? "" : "! ");
    printf("%.3f", compile->n ? compile->us[compile->n - 1] : 0.0);
    for (size_t i = 0; i < masks->n; i++) {
        printf(" %.3f", masks->us[i]);
    }
    putchar('\n');
    fflush(stdout);
    masks->n = 0;
}

int main(int argc, char **argv)
{
    series compile = {0}, masks = {0};
    bz_vocabulary *v = argc > 2 ? read_tokens(argv[1]) : NULL;
    const bool asked = argc > 2 && strcmp(argv[2], "-") == 0;
    FILE *pairs = !v ? NULL : asked ? stdin : fopen(argv[2], "r");
    FILE *out = argc > 3 ? fopen(argv[3], "w") : NULL;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool good = pairs != NULL;
    if (!pairs) {
        fprintf(stderr, "usage: bench_grammar TOKENS PAIRS [OUT]\n");
        return 2;
    }
    fflush(stdout);
    while ((n = getline(&line, &cap, pairs)) > 0) {
        const bool fits = run_line(v, line, (size_t)n, &compile, &masks);
        good = good && fits;
        if (asked) {
            answer(fits, &compile, &masks);
        }
    }
    for (size_t i = 0; out && i < masks.n; i++) {
        fprintf(out, "%.3f\n", masks.us[i]);
    }
    if (!asked) {
        print("compile", &compile);
        print("mask", &masks);
    }
    if (out) {
        fclose(out);
    }
    fclose(pairs);
    free(line);
    free(compile.us);
    free(masks.us);
    bz_vocabulary_free(v);
    return good ? 0 : 1;
}
