/* Saved sessions: loading and forking continue to the last bit as if nothing had happened, and a
 * file that is not the session's changes nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "session/saved.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/random.h"

enum { PROMPT = 90, KEEP = 80, ANSWER = 60, CONTEXT = 400 };

static char folder[] = "/tmp/bezel-saved-XXXXXX";
static char path[100];
static int32_t prompt[CONTEXT];

static const char *kv; /* the type of the caches; NULL: f16, or f32 if exact */

static bz_session *new_session(const bz_model *m, bool exact, uint32_t context, uint32_t chunk)
{
    const bz_session_options o = {.size = sizeof o,
                                  .exact = exact,
                                  .threads = 1,
                                  .context = context,
                                  .chunk = chunk,
                                  .kv = kv};
    return session_or_fail(m, &o);
}

static uint64_t go(bz_session *s, const int32_t *ids, size_t n, uint32_t snapshot)
{
    bz_error err = {0};
    const uint64_t before = bz_session_get_stats(s).prefilled;
    CHECKF(prefill(s, ids, n, snapshot, NULL, &err) == BZ_OK, "%s", err.text);
    return bz_session_get_stats(s).prefilled - before;
}

/* Both continue with the same tokens, now and after going back to the snapshot. */
static void expect_twins(bz_session *a, bz_session *b, const bz_model *m, uint64_t computed)
{
    int32_t x[ANSWER], y[ANSWER];
    const size_t bytes = bz_model_vocab(m) * sizeof(float);
    CHECK(bz_session_get_stats(a).position == bz_session_get_stats(b).position);
    CHECK(generate(a, x, ANSWER) == ANSWER && generate(b, y, ANSWER) == ANSWER);
    CHECK(memcmp(x, y, sizeof x) == 0);
    CHECK(memcmp(bz_session_logits(a), bz_session_logits(b), bytes) == 0);
    int32_t next[CONTEXT];
    memcpy(next, prompt, KEEP * sizeof *next);
    memcpy(next + KEEP, prompt + 200, 30 * sizeof *next);
    CHECK(go(a, next, KEEP + 30, 0) == 30);
    const uint64_t n = go(b, next, KEEP + 30, 0);
    CHECKF(n == computed, "%llu tokens computed", (unsigned long long)n);
    CHECK(memcmp(bz_session_logits(a), bz_session_logits(b), bytes) == 0);
}

static bz_session *talked(const bz_model *m, bool exact)
{
    int32_t made[ANSWER];
    bz_session *s = new_session(m, exact, CONTEXT, 16);
    go(s, prompt, PROMPT, KEEP);
    generate(s, made, ANSWER);
    return s;
}

static void test_same(const bz_model *m, const char *name, bool exact)
{
    struct stat st;
    bz_error err = {0};
    begin("%s %s: a loaded session continues without computing", name, exact ? "exact" : "8 bit");
    bz_session *s = talked(m, exact), *t = new_session(m, exact, CONTEXT, 16);
    CHECKF(bz_session_save(s, path, &err) == BZ_OK, "%s", err.text);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECKF(bz_session_load(t, path, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_get_stats(t).prefilled == 0);
    expect_twins(s, t, m, 30);
    bz_session_free(t);

    begin("%s %s: a fork continues on its own", name, exact ? "exact" : "8 bit");
    bz_session_free(s);
    s = talked(m, exact);
    CHECKF(bz_session_fork(&t, s, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_get_stats(t).prefilled == 0);
    expect_twins(s, t, m, 30);
    bz_session_free(t);
    bz_session_free(s);

    if (kv) {
        return;
    }
    begin("%s %s: other caches are computed again", name, exact ? "exact" : "8 bit");
    s = talked(m, exact);
    t = new_session(m, !exact, CONTEXT, 16);
    CHECKF(bz_session_load(t, path, &err) == BZ_OK, "%s", err.text);
    int32_t made[ANSWER];
    CHECK(bz_session_get_stats(t).position == PROMPT + ANSWER - 1 ||
          bz_session_get_stats(t).position == PROMPT + ANSWER);
    CHECK(generate(t, made, ANSWER) == ANSWER);
    bz_session_free(t);
    bz_session_free(s);
}

/* The type of keys and values is part of the file. */
static void test_types(const bz_model *m)
{
    static const char *const types[] = {NULL, "q8", "q4"};
    for (int i = 1; i < 3; i++) {
        kv = types[i];
        test_same(m, kv, false);
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            bz_error err = {0};
            begin("saved with %s, loaded with %s", i ? types[i] : "f16", j ? types[j] : "f16");
            kv = types[i];
            bz_session *s = talked(m, false);
            CHECK(bz_session_save(s, path, &err) == BZ_OK);
            kv = types[j];
            bz_session *t = new_session(m, false, CONTEXT, 16);
            go(t, prompt, 20, 0);
            const bz_status status = bz_session_load(t, path, &err);
            CHECKF(status == (i == j ? BZ_OK : BZ_BAD_REQUEST), "%s", err.text);
            CHECK(i == j ||
                  (strstr(err.text, i ? types[i] : "f16") && strstr(err.text, "same type")));
            CHECK(i == j || bz_session_get_stats(t).position == 20);
            bz_session_free(s);
            bz_session_free(t);
        }
    }
    kv = NULL;
}

static uint8_t *read_whole(size_t *n)
{
    char *text = NULL;
    CHECK(bz_os_read_small(path, 1 << 26, &text, n, NULL) == BZ_OK);
    return (uint8_t *)text;
}

/* With a digest that fits: what is refused then was checked itself. */
static void seal(uint8_t *bytes, size_t n)
{
    bz_sha256 hash;
    bz_sha256_begin(&hash);
    bz_sha256_add(&hash, bytes, n - BZ_SHA256_BYTES);
    bz_sha256_end(&hash, bytes + n - BZ_SHA256_BYTES);
}

static void test_refusals(const bz_model *m, const bz_model *other)
{
    bz_error err = {0};
    size_t n;
    begin("saved sessions: what is refused changes nothing");
    bz_session *s = talked(m, false), *t = new_session(m, false, CONTEXT, 16);
    CHECK(bz_session_save(s, path, &err) == BZ_OK);
    go(t, prompt, 20, 0);
    const size_t bytes = bz_model_vocab(m) * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, bz_session_logits(t), bytes);
    uint8_t *whole = read_whole(&n), *copy = malloc(n);
    for (int i = 0; i < 40; i++) {
        memcpy(copy, whole, n);
        copy[random_below(n)] ^= (uint8_t)(1u << random_below(8));
        CHECK(bz_saved_read(t, copy, n, "x", &err) == BZ_BAD_FILE);
        CHECK(bz_saved_read(t, whole, random_below(n), "x", &err) == BZ_BAD_FILE);
    }
    saved_head *head = (saved_head *)(void *)(copy + sizeof SAVED_MAGIC);
    memcpy(copy, whole, n);
    head->version++;
    seal(copy, n);
    CHECK(bz_saved_read(t, copy, n, "x", &err) == BZ_BAD_FILE &&
          strstr(err.text, "another version"));
    memcpy(copy, whole, n);
    head->weights[3] ^= 1;
    seal(copy, n);
    CHECK(bz_saved_read(t, copy, n, "x", &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "another model"));
    memcpy(copy, whole, n);
    copy[sizeof SAVED_MAGIC + sizeof *head + 3] = 0x7F; /* a token beyond the vocabulary */
    seal(copy, n);
    CHECK(bz_saved_read(t, copy, n, "x", &err) == BZ_BAD_FILE && strstr(err.text, "tokens"));
    bz_session *u = new_session(other, false, 0, 0), *tiny = new_session(m, false, 64, 0);
    CHECK(bz_session_load(u, path, &err) == BZ_BAD_REQUEST && strstr(err.text, "another model"));
    CHECK(bz_session_load(tiny, path, &err) == BZ_CONTEXT_FULL && strstr(err.text, "holds 64"));
    CHECK(bz_session_load(t, "/nowhere/at/all", &err) == BZ_NOT_FOUND);
    CHECK(bz_session_save(t, "/nowhere/at/all", &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "/nowhere/at/all"));
    CHECK(bz_session_get_stats(t).position == 20 &&
          memcmp(before, bz_session_logits(t), bytes) == 0);
    /* any change with a digest that fits: no crash, and the session can still be used */
    for (int i = 0; i < 60; i++) {
        memcpy(copy, whole, n);
        for (int k = 0; k < 3; k++) {
            copy[8 + random_below(k ? n - 40 : 300)] = (uint8_t)random_bits();
        }
        seal(copy, n);
        if (bz_saved_read(t, copy, n, "x", &err) != BZ_OK) {
            CHECK(err.text[0]);
        }
    }
    go(t, prompt + 1, 20, 0);
    free(before);
    free(whole);
    free(copy);
    bz_session_free(u);
    bz_session_free(tiny);
    bz_session_free(t);
    bz_session_free(s);
}

/* A file that another program changes, on pages that tell when they are read. The logits are read
 * for the digest, and once more after the tokens were checked: then a token changes. */
static struct changing {
    uint8_t *logits, *beyond; /* the pages of the first logits and of the file's end */
    uint8_t *token;
    size_t page;
    bool hashed, changed;
} changing;

static void protect(uint8_t *page, int how)
{
    if (mprotect(page, changing.page, how) != 0) {
        _exit(99);
    }
}

static void on_read(int number, siginfo_t *info, void *context)
{
    struct changing *c = &changing;
    const uint8_t *at = info->si_addr;
    (void)context;
    if (at >= c->logits && at < c->logits + c->page) {
        protect(c->logits, PROT_READ | PROT_WRITE);
        if (c->hashed) {
            c->token[3] = 0x7F; /* beyond the vocabulary */
            c->changed = true;
        }
    } else if (at >= c->beyond && at < c->beyond + c->page) {
        protect(c->beyond, PROT_READ | PROT_WRITE);
        protect(c->logits, PROT_NONE);
        c->hashed = true;
    } else {
        signal(number, SIG_DFL);
    }
}

static void test_changing(const bz_model *m)
{
    bz_error err = {0};
    struct changing *c = &changing;
    struct sigaction read = {.sa_sigaction = on_read, .sa_flags = SA_SIGINFO}, old[2];
    size_t n;
    begin("saved sessions: a file that changes after it was checked");
    bz_session *s = talked(m, false), *t = new_session(m, false, CONTEXT, 16);
    CHECK(bz_session_save(s, path, &err) == BZ_OK);
    uint8_t *whole = read_whole(&n);
    saved_head head;
    memcpy(&head, whole + sizeof SAVED_MAGIC, sizeof head);
    const size_t tokens = sizeof SAVED_MAGIC + sizeof head, logits = tokens + 6 * (size_t)head.n;
    CHECK(head.flags & SAVED_LOGITS && head.n_spans == 0);
    /* The logits begin at a page, so that the tokens lie in others. */
    c->page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = (c->page - logits % c->page) % c->page;
    const size_t room = (n / c->page + 3) * c->page;
    uint8_t *pages = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && n > logits + c->page);
    memcpy(pages + before, whole, n);
    c->token = pages + before + tokens + 4;
    c->logits = pages + before + logits;
    c->beyond = pages + (before + n - 1) / c->page * c->page;
    sigaction(SIGSEGV, &read, &old[0]);
    sigaction(SIGBUS, &read, &old[1]); /* on macOS */
    protect(c->logits, PROT_NONE);
    protect(c->beyond, PROT_NONE);
    const bz_status status = bz_saved_read(t, pages + before, n, "x", &err);
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGBUS, &old[1], NULL);
    CHECK(c->changed);
    CHECKF(status == BZ_OK, "%s", err.text);
    for (uint32_t i = 0; i < t->n; i++) {
        CHECK(t->tokens[i] == s->tokens[i]);
    }
    munmap(pages, room);
    free(whole);
    bz_session_free(t);
    bz_session_free(s);
}

static void test_empty(const bz_model *m)
{
    bz_error err = {0};
    begin("saved sessions: an empty one");
    bz_session *s = new_session(m, false, CONTEXT, 16), *t = talked(m, false);
    CHECK(bz_session_save(s, path, &err) == BZ_OK && bz_session_load(t, path, &err) == BZ_OK);
    CHECK(bz_session_get_stats(t).position == 0 && !bz_session_logits(t));
    CHECK(go(t, prompt, 20, 0) == 20);
    bz_session_free(s);
    bz_session_free(t);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/session", folder);
    bz_model *a = open_or_fail(model_path("nano-e-q4_0.gguf")),
             *b = open_or_fail(model_path("nano-moe-q8_0.gguf"));
    for (int i = 0; i < CONTEXT; i++) {
        prompt[i] = i ? 494 + (int32_t)random_below(bz_model_vocab(a) - 501) : 2;
    }
    for (int exact = 0; exact < 2; exact++) {
        test_same(a, "E", exact != 0);
    }
    test_same(b, "MoE", false);
    test_types(a);
    test_refusals(a, b);
    test_changing(a);
    test_empty(a);
    bz_model_free(a);
    bz_model_free(b);
    unlink(path);
    rmdir(folder);
    return finish();
}
