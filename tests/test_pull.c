/* Parts of a pull that need no registry: ranges, journals, tokens, addresses. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "store/pull.h"
#include "store/pull_auth.h"
#include "store/pull_journal.h"
#include "support/check.h"
#include "support/random.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define HEX64       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static const char DIGEST[BZ_DIGEST_TEXT] = "sha256:" HEX64;

/* ---- ranges ----------------------------------------------------------------------------- */

/* Against a map of bytes. */
static void test_ranges(void)
{
    enum { SIZE = 200, ROUNDS = 2000 };
    begin("ranges: random additions");
    bool map[SIZE] = {0};
    bz_ranges r = {0};
    uint64_t seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 40 == 0) {
            memset(map, 0, sizeof map);
            r.n = 0;
        }
        const uint64_t from = (seed = seed * 6364136223846793005u + 1) >> 33;
        const uint64_t n = (seed = seed * 6364136223846793005u + 1) >> 33;
        const size_t a = from % SIZE, b = a + n % 12 < SIZE ? a + n % 12 : SIZE;
        CHECK(bz_ranges_add(&r, a, b));
        memset(map + a, true, b - a);
        uint64_t bytes = 0;
        for (size_t i = 0; i < SIZE; i++) {
            bytes += map[i];
        }
        CHECK(bz_ranges_bytes(&r) == bytes);
        for (size_t i = 1; i < r.n; i++) {
            CHECK(r.list[i - 1].to < r.list[i].from);
        }
        bz_range gap;
        uint64_t missing = 0;
        for (uint64_t at = 0; bz_ranges_gap(&r, at, SIZE, &gap); at = gap.to) {
            for (uint64_t i = gap.from; i < gap.to; i++) {
                CHECK(!map[i]);
            }
            missing += gap.to - gap.from;
        }
        CHECK(missing == SIZE - bytes);
    }
    free(r.list);
}

/* ---- journal ------------------------------------------------------------------------------ */

static size_t write_journal(char *text)
{
    size_t n = bz_journal_head(text, DIGEST, 1000);
    n += bz_journal_range(text + n, (bz_range){0, 100});
    n += bz_journal_range(text + n, (bz_range){300, 400});
    n += bz_journal_range(text + n, (bz_range){100, 150});
    return n;
}

static void test_journal(void)
{
    static const uint64_t bytes[] = {0, 100, 200, 250}; /* [lines] finished after them */
    char text[4 * BZ_JOURNAL_LINE], line[BZ_JOURNAL_LINE];
    const size_t n = write_journal(text);
    bz_ranges done = {0};

    begin("journal: cut at every byte");
    for (size_t cut = 0; cut <= n; cut++) {
        size_t lines = 0, whole = 0;
        for (size_t i = 0; i < cut; i++) {
            lines += text[i] == '\n';
            whole = text[i] == '\n' ? i + 1 : whole;
        }
        done.n = 0;
        const size_t used = bz_journal_parse(text, cut, DIGEST, 1000, &done);
        CHECKF(used == whole, "%zu of %zu bytes", used, cut);
        CHECK(bz_ranges_bytes(&done) == (lines ? bytes[lines - 1] : 0));
    }

    begin("journal: every changed byte is noticed");
    for (size_t i = 0; i < n; i++) {
        char copy[sizeof text];
        memcpy(copy, text, n);
        copy[i] ^= 1;
        done.n = 0;
        CHECKF(bz_journal_parse(copy, n, DIGEST, 1000, &done) <= i, "byte %zu", i);
    }

    begin("journal: of another blob");
    CHECK(bz_journal_parse(text, n, "sha256:" HEX64, 1001, &done) == 0);
    char other[BZ_DIGEST_TEXT];
    memcpy(other, DIGEST, sizeof other);
    other[20] = '0';
    CHECK(bz_journal_parse(text, n, other, 1000, &done) == 0);

    begin("journal: ranges that cannot be");
    static const bz_range bad[] = {{0, 1001}, {5, 5}, {6, 5}, {0, UINT64_MAX}};
    for (size_t i = 0; i < COUNT(bad); i++) {
        size_t used = bz_journal_head(text, DIGEST, 1000);
        const size_t head = used, more = bz_journal_range(line, bad[i]);
        memcpy(text + used, line, more);
        used += more;
        done.n = 0;
        CHECK(bz_journal_parse(text, used, DIGEST, 1000, &done) == head && done.n == 0);
    }
    free(done.list);
}

/* ---- part files ------------------------------------------------------------------------------ */

static void test_partial(const char *folder)
{
    char blob[200], part[220], journal[220], back[4] = "";
    bz_partial p, q;
    bz_error err = {0};
    snprintf(blob, sizeof blob, "%s/sha256-" HEX64, folder);
    snprintf(part, sizeof part, "%s.bezel-part", blob);
    snprintf(journal, sizeof journal, "%s.bezel-journal", blob);

    begin("part file: what is in the journal stays, one process at a time");
    CHECKF(bz_partial_open(&p, blob, DIGEST, 1000, &err) == BZ_OK, "%s", err.text);
    CHECK(!p.resumed && p.done.n == 0);
    CHECK(bz_partial_write(&p, 10, "abc", 3, &err) == BZ_OK);
    CHECK(bz_partial_flush(&p, &err) == BZ_OK);
    CHECK(bz_partial_log(&p, (bz_range){10, 13}, &err) == BZ_OK);
    err.code = BZ_OK;
    CHECK(bz_partial_open(&q, blob, DIGEST, 1000, &err) == BZ_ABORTED && err.code == BZ_OK);
    bz_partial_close(&q);
    CHECK(bz_partial_allocated(blob) >= 3);
    bz_partial_close(&p);
    CHECKF(bz_partial_open(&p, blob, DIGEST, 1000, &err) == BZ_OK, "%s", err.text);
    CHECK(p.resumed && bz_ranges_bytes(&p.done) == 3);
    CHECK(pread(p.part, back, 3, 10) == 3 && strcmp(back, "abc") == 0);

    begin("part file: becomes the blob");
    CHECKF(bz_partial_finish(&p, &err) == BZ_OK, "%s", err.text);
    bz_partial_close(&p);
    CHECK(bz_os_file_exists(blob) && !bz_os_file_exists(part) && !bz_os_file_exists(journal));

    begin("part file: of another size");
    CHECK(bz_partial_open(&p, blob, DIGEST, 50, &err) == BZ_OK);
    CHECK(bz_partial_log(&p, (bz_range){0, 50}, &err) == BZ_OK);
    CHECK(truncate(part, 20) == 0);
    bz_partial_close(&p);
    CHECK(bz_partial_open(&p, blob, DIGEST, 50, &err) == BZ_OK && p.done.n == 0 && !p.resumed);
    bz_partial_discard(&p);
    bz_partial_close(&p);
    CHECK(!bz_os_file_exists(part) && !bz_os_file_exists(journal));
}

/* ---- tokens -----------------------------------------------------------------------------------
 */

static void test_challenges(void)
{
    static const struct {
        const char *challenge, *url; /* NULL: refused */
    } cases[] = {
        {"Bearer "
         "realm=\"https://ollama.com/token\",service=\"ollama.com\",scope=\"repository:library/"
         "gemma4:pull\"",
         "https://ollama.com/token?service=ollama.com&scope=repository%3Alibrary%2Fgemma4%3Apull"},
        {"bearer Realm=https://h/t , scope=\"a b\"", "https://h/t?scope=a&scope=b"},
        {"Bearer realm=\"https://h/t?x=1\",service=\"a&b\"", "https://h/t?x=1&service=a%26b"},
        {"Bearer realm=\"https://h/t\"", "https://h/t"},
        {"Bearer error=\"x\",realm=\"https://h/t\"", "https://h/t"},
        {"Basic realm=\"https://h/t\"", NULL},
        {"Bearer", NULL},
        {"Bearer realm", NULL},
        {"Bearer realm=\"https://h/t", NULL},
        {"Bearer realm=\"\"", NULL},
        {"Bearer realm=\"https://h/ t\"", NULL},
        {"Bearer realm=\"https://h/#t\"", NULL},
        {"", NULL},
    };
    char url[BZ_AUTH_URL];
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin("challenge: %s", cases[i].challenge);
        const bz_str text = {cases[i].challenge, strlen(cases[i].challenge)};
        const bool good = bz_auth_token_url(text, url);
        CHECK(good == (cases[i].url != NULL));
        CHECKF(!good || strcmp(url, cases[i].url) == 0, "%s", url);
    }
    begin("challenge: too long");
    char *text = malloc(2 * BZ_AUTH_URL);
    const int n =
        snprintf(text, 2 * BZ_AUTH_URL, "Bearer realm=\"https://h/%0*d\"", BZ_AUTH_URL, 1);
    CHECK(!bz_auth_token_url((bz_str){text, (size_t)n}, url));
    free(text);
}

static void test_tokens(void)
{
    static const struct {
        const char *json, *token; /* NULL: refused */
    } cases[] = {
        {"{\"token\":\"abc\"}", "abc"},
        {"{\"access_token\":\"abc\",\"expires_in\":3}", "abc"},
        {"{\"token\":\"\",\"access_token\":\"x\"}", "x"},
        {"{\"token\":\"a\\r\\nb\"}", NULL},
        {"{\"token\":\"a b\"}", NULL},
        {"{\"token\":3}", NULL},
        {"{}", NULL},
        {"[]", NULL},
        {"", NULL},
    };
    char token[BZ_AUTH_TOKEN];
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin("token: %s", cases[i].json);
        const bool good = bz_auth_token((bz_str){cases[i].json, strlen(cases[i].json)}, token);
        CHECK(good == (cases[i].token != NULL) && (!good || strcmp(token, cases[i].token) == 0));
    }
}

/* ---- a server that says nothing
 * ------------------------------------------------------------------ */

typedef struct calls {
    unsigned progress, cancels, cancel_after; /* 0: never */
} calls;

static void on_progress(void *user, const bz_pull_progress *p)
{
    calls *c = user;
    CHECK(p->status[0] != 0);
    c->progress++;
}

static bool is_cancelled(void *user)
{
    calls *c = user;
    c->cancels++;
    return c->cancel_after && c->cancels >= c->cancel_after;
}

/* A listening socket whose connections nobody accepts: requests are sent and never answered. */
static void test_silence(const char *folder)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    bz_error err = {0};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    begin("a server that never answers");
    CHECK(s >= 0 && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 8) == 0 &&
          getsockname(s, (struct sockaddr *)&at, &n) == 0);
    char name[64];
    snprintf(name, sizeof name, "127.0.0.1:%d/ns/m", ntohs(at.sin_port));
    CHECK(setenv("OLLAMA_MODELS", folder, 1) == 0);
    calls c = {0};
    bz_pull_options o = {.name = name,
                         .retries = 1,
                         .stall_s = 1,
                         .on_progress = on_progress,
                         .is_cancelled = is_cancelled,
                         .user = &c};
    bz_status status = bz_store_pull(&o, &err);
    if (status == BZ_UNSUPPORTED_MODEL) { /* a build without libcurl */
        CHECKF(strstr(err.text, "install libcurl4-openssl-dev"), "%s", err.text);
    } else {
        CHECKF(status == BZ_NETWORK, "%s", err.text);
        CHECKF(strstr(err.text, "Cannot fetch the manifest"), "%s", err.text);
        CHECK(c.progress == 1 && c.cancels > 0);

        begin("cancelled while it waits");
        c = (calls){.cancel_after = 3};
        o.stall_s = 600;
        CHECKF(bz_store_pull(&o, &err) == BZ_ABORTED, "%s", err.text);
    }
    close(s);
}

int main(void)
{
    char folder[] = "/tmp/bezel-pull-XXXXXX", command[64];
    if (!mkdtemp(folder)) {
        return 1;
    }
    test_ranges();
    test_journal();
    test_partial(folder);
    test_challenges();
    test_tokens();
    test_silence(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) {
        return 1;
    }
    return finish();
}
