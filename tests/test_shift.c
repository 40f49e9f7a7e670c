/* Conversations that are longer than the context: what is left out of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/forward.h"
#include "support/random.h"
#include "text/shift.h"

enum { MAX = 200 };

/* A conversation by letters: s(ystem), u(ser), a(ssistant), c(all), r(esult); a capital is pinned.
 */
typedef struct script {
    bz_message messages[MAX];
    bz_tool_call call;
    uint32_t tokens[MAX];
    bool out[MAX];
    size_t n;
} script;

static void read_script(script *s, const char *letters, uint32_t tokens)
{
    *s = (script){.n = strlen(letters)};
    for (size_t i = 0; i < s->n; i++) {
        const char c = (char)(letters[i] | 32);
        s->messages[i] = (bz_message){.role = c == 's'   ? BZ_ROLE_SYSTEM
                                              : c == 'u' ? BZ_ROLE_USER
                                              : c == 'r' ? BZ_ROLE_TOOL
                                                         : BZ_ROLE_ASSISTANT,
                                      .calls = &s->call,
                                      .n_calls = c == 'c',
                                      .pinned = letters[i] != c};
        s->tokens[i] = tokens;
    }
}

/* With 10 tokens per message and 10 besides; `want`: the letters with '.' for what is left out. */
static void leaves(const char *letters, uint32_t limit, const char *want)
{
    char got[MAX + 1];
    script s;
    size_t out = 0;
    read_script(&s, letters, 10);
    const size_t n = bz_shift_choose(s.messages, s.n, s.tokens, 10, limit, s.out);
    for (size_t i = 0; i < s.n; i++) {
        out += s.out[i];
        got[i] = s.out[i] ? '.' : letters[i];
    }
    got[s.n] = 0;
    CHECKF(strcmp(got, want) == 0 && n == out, "%s, at most %u: %s instead of %s", letters, limit,
           got, want);
}

static void test_turns(void)
{
    begin("whole turns go, and a quarter more than needed");
    leaves("suauau", 70, "suauau");
    leaves("suauau", 69, "s..uau"); /* 50 is at most three quarters of 69 */
    leaves("suauau", 60, "s....u");
    leaves("uauauau", 79, "..uauau");
    leaves("suuuuau", 79, "s..uuau");
    begin("the system prompt, the last question and its answer stay");
    leaves("suau", 10, "s..u");
    leaves("suaua", 10, "s..ua");
    leaves("su", 10, "su");
    leaves("sausua", 40, "s..sua");
    begin("a turn with a pinned message stays");
    leaves("sUauau", 60, "sUa..u");
    leaves("suAuau", 10, "suA..u");
    leaves("suauAu", 60, "s..uAu");
    begin("a turn has its calls and their results");
    leaves("sucrracrauau", 90, "s........uau");
    begin("of a long last turn the oldest rounds go");
    leaves("sucrcrcrcr", 99, "su....crcr");
    leaves("sucrcrcrcr", 109, "su....crcr");
    leaves("sucrcrcrcr", 60, "su......cr");
    leaves("suaucrrcrcr", 10, "s..u.....cr");
    leaves("sucRcrcrcr", 60, "sucR....cr");
    leaves("sucracrcr", 90, "su..a..cr");
    leaves("sucrc", 10, "su..c");
}

/* A conversation as clients write them: calls have one result or several. */
static void grow(char letters[MAX + 1], size_t n)
{
    strcpy(letters, "su");
    for (size_t i = 2; i < n; i++) {
        static const char next[] = "uuaaccc";
        const char last = letters[i - 1];
        letters[i] = last == 'c' || (last == 'r' && random_below(3) == 0)
                         ? 'r'
                         : next[random_below(sizeof next - 1)];
    }
    letters[n] = 0;
}

/* What one request leaves out, the next one leaves out too: nothing is computed again unless more
 * must go. */
static void test_growing(void)
{
    enum { LENGTH = 120, LIMIT = 600, BESIDES = 7 };
    uint64_t changes = 0, requests = 0;
    begin("what is left out stays out while the conversation grows");
    random_seed_or(20);
    for (uint32_t round = 0; round < 100; round++) {
        char letters[MAX + 1];
        bool before[MAX] = {0};
        script s;
        grow(letters, LENGTH);
        read_script(&s, letters, 0);
        for (size_t i = 0; i < LENGTH; i++) {
            s.tokens[i] = 1 + (uint32_t)random_below(40);
        }
        for (size_t n = 2; n < LENGTH; n++) {
            if (letters[n - 1] != 'u' && (letters[n - 1] != 'r' || letters[n] == 'r')) {
                continue; /* no request is made here */
            }
            uint64_t sum = BESIDES;
            bool out[MAX] = {0}, more = false;
            for (size_t i = 0; i < n; i++) {
                sum += s.tokens[i];
            }
            const size_t left_out = bz_shift_choose(s.messages, n, s.tokens, BESIDES, LIMIT, out);
            CHECKF((sum > LIMIT) == (left_out > 0), "%.*s: %zu", (int)n, letters, left_out);
            for (size_t i = 0; i < n; i++) {
                CHECKF(out[i] || !before[i], "%.*s: message %zu is back", (int)n, letters, i);
                more |= out[i] != before[i];
                sum -= out[i] ? s.tokens[i] : 0;
            }
            /* Calls of a long last turn go too, so that everything fits. */
            CHECKF(sum <= LIMIT && !out[0] && !out[n - 1], "%.*s: %llu", (int)n, letters,
                   (unsigned long long)sum);
            memcpy(before, out, sizeof before);
            requests++;
            changes += more;
        }
    }
    CHECKF(changes * 5 < requests, "%llu changes in %llu requests", (unsigned long long)changes,
           (unsigned long long)requests);
}

/* ---- turns ------------------------------------------------------------------------------ */

enum { CONTEXT = 256 };

/* A request with `n` turns of about 20 tokens. */
static char *long_request(unsigned n, const char *more)
{
    char *text = malloc(n * 200 + 400);
    char *at =
        text +
        sprintf(text, "{%s\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"}", more);
    for (unsigned i = 0; i < n; i++) {
        at += sprintf(at,
                      ",{\"role\":\"user\",\"content\":\"Question %u: what is it?\"},"
                      "{\"role\":\"assistant\",\"content\":\"It is a small red house.\"}",
                      i);
    }
    sprintf(at, ",{\"role\":\"user\",\"content\":\"Question %u: what is it?\"}]}", n);
    return text;
}

static void test_fit(const bz_model *m)
{
    bz_error err = {0};
    bz_turn *t = NULL;
    size_t n;
    uint32_t snapshot;
    begin("a turn that fits, one that is shortened, one that must not be");
    char *request = long_request(2, "");
    CHECK(bz_turn_new(&t, m, request, strlen(request), &err) == BZ_OK);
    CHECK(bz_turn_fit(t, CONTEXT, true, &err) == BZ_OK && bz_turn_left_out(t) == 0 &&
          !bz_turn_leaves_out(t, 1));
    bz_turn_free(t);
    free(request);
    request = long_request(20, "");
    CHECK(bz_turn_new(&t, m, request, strlen(request), &err) == BZ_OK);
    bz_turn_prompt(t, &n, &snapshot);
    CHECK(n > CONTEXT && bz_turn_fit(t, CONTEXT, false, &err) == BZ_OK && bz_turn_left_out(t) == 0);
    CHECK(bz_turn_fit(t, CONTEXT, true, &err) == BZ_OK);
    const size_t out = bz_turn_left_out(t);
    bz_turn_prompt(t, &n, &snapshot);
    CHECKF(out && out % 2 == 0 && n <= CONTEXT - CONTEXT / 4 && n > CONTEXT / 4 && snapshot < n &&
               snapshot,
           "%zu left out, %zu tokens", out, n);
    for (size_t i = 0; i < 45; i++) {
        CHECKF(bz_turn_leaves_out(t, i) == (i >= 1 && i <= out), "message %zu", i);
    }
    CHECK(bz_turn_fit(t, CONTEXT, true, &err) == BZ_BAD_REQUEST && strstr(err.text, "already"));
    bz_turn_free(t);
    free(request);
    begin("the request decides: context_shift, max_tokens");
    request = long_request(20, "\"context_shift\":false,");
    CHECK(bz_turn_new(&t, m, request, strlen(request), &err) == BZ_OK &&
          bz_turn_fit(t, CONTEXT, true, &err) == BZ_OK && bz_turn_left_out(t) == 0);
    bz_turn_free(t);
    free(request);
    request = long_request(20, "\"context_shift\":true,\"max_tokens\":10,");
    CHECK(bz_turn_new(&t, m, request, strlen(request), &err) == BZ_OK &&
          bz_turn_fit(t, CONTEXT, false, &err) == BZ_OK && bz_turn_left_out(t) < out);
    bz_turn_free(t);
    free(request);
    request = long_request(1, "\"context_shift\":\"yes\",");
    CHECK(bz_turn_new(&t, m, request, strlen(request), &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "context_shift is true or false"));
    free(request);
    static const char pinned[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"pinned\":1}]}";
    CHECK(bz_turn_new(&t, m, pinned, sizeof pinned - 1, &err) == BZ_BAD_REQUEST &&
          strstr(err.text, "pinned"));
}

static void test_chat(const bz_model *m)
{
    const bz_session_options so = {.size = sizeof so, .context = CONTEXT};
    bz_chat_options o = {.size = sizeof o, .session_options = &so};
    bz_error err = {0};
    char *answer = NULL;
    begin("bz_chat answers and says what it left out");
    char *request = long_request(20, "\"max_tokens\":5,");
    CHECKF(bz_chat(m, request, strlen(request), &o, &answer, &err) == BZ_OK &&
               strstr(answer, "\"context_shift\":{\"left_out\":"),
           "%s%s", err.text, answer ? answer : "");
    bz_free(answer);
    free(request);
    request = long_request(2, "\"max_tokens\":5,");
    CHECK(bz_chat(m, request, strlen(request), &o, &answer, &err) == BZ_OK &&
          !strstr(answer, "context_shift"));
    bz_free(answer);
    free(request);
    begin("context_shift false refuses");
    request = long_request(20, "\"context_shift\":false,");
    CHECKF(bz_chat(m, request, strlen(request), &o, &answer, &err) == BZ_CONTEXT_FULL, "%s",
           err.text);
    free(request);
    begin("the next question computes little again");
    bz_session *s = session_or_fail(m, &so);
    o.session = s;
    unsigned cheap = 0, row = 0, shortest = 24;
    for (unsigned i = 0; i < 24; i++) {
        const uint64_t before = bz_session_get_stats(s).prefilled;
        request = long_request(i, "\"max_tokens\":1,");
        CHECK(bz_chat(m, request, strlen(request), &o, &answer, &err) == BZ_OK);
        bz_free(answer);
        free(request);
        const bool again = bz_session_get_stats(s).prefilled - before > 60;
        cheap += !again;
        shortest = again && row < shortest ? row : shortest;
        row = again ? 0 : row + 1;
    }
    CHECKF(cheap >= 18 && shortest >= 2, "%u of 24 computed little; %u in a row", cheap, shortest);
    bz_session_free(s);
}

/* Images of turns that are left out go with them. */
static void test_media(const bz_model *m)
{
    enum { IMAGES = 6, SIDE = 48 };
    static uint8_t rgb[SIDE * SIDE * 3];
    char request[2000] = "{\"messages\":[";
    bz_encoder *e = NULL;
    bz_turn *t = NULL;
    bz_error err = {0};
    bz_media *media[IMAGES];
    begin("images of turns that are left out");
    CHECK(bz_encoder_new(&e, m, NULL, &err) == BZ_OK);
    for (unsigned i = 0; i < IMAGES; i++) {
        char *end = request + strlen(request);
        bz_job *job = NULL;
        memset(rgb, (int)(40 * i), sizeof rgb);
        CHECK(bz_encode_image(e, rgb, SIDE, SIDE, &job, &err) == BZ_OK &&
              bz_job_run(job, NULL, &err) == BZ_OK);
        media[i] = bz_job_media(job);
        bz_job_free(job);
        sprintf(end,
                "%s{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":\"%u\"},{"
                "\"type\":\"text\",\"text\":\"What?\"}]}",
                i ? ",{\"role\":\"assistant\",\"content\":\"It.\"}," : "", i);
    }
    strcat(request, "]}");
    CHECKF(bz_turn_new_media(&t, m, request, strlen(request), &err) == BZ_OK, "%s", err.text);
    CHECK(bz_turn_fit(t, CONTEXT, true, &err) == BZ_BAD_REQUEST && strstr(err.text, "attached"));
    uint32_t rows, width, snapshot;
    bz_media_rows(media[0], &rows, &width);
    for (unsigned i = 0; i < IMAGES; i++) {
        CHECK(bz_turn_attach(t, i, media[i], &err) == BZ_OK);
    }
    size_t n;
    bz_turn_prompt(t, &n, &snapshot);
    const uint32_t context = (uint32_t)n; /* without room for an answer */
    CHECKF(bz_turn_fit(t, context, true, &err) == BZ_OK && bz_turn_left_out(t) >= 2, "%s",
           err.text);
    bz_turn_prompt(t, &n, &snapshot);
    const size_t left = bz_turn_media(t);
    const char *source;
    size_t len;
    CHECKF(left == IMAGES - bz_turn_left_out(t) / 2 && n > left * rows &&
               n <= context - context / 4,
           "%zu images, %zu tokens", left, n);
    bz_turn_media_source(t, 0, &source, &len);
    CHECK(len == 1 && source[0] == (char)('0' + IMAGES - left));
    const bz_session_options so = {.size = sizeof so, .context = context};
    bz_session *s = session_or_fail(m, &so);
    bz_job *job = NULL;
    CHECKF(bz_turn_prefill(s, t, &job, &err) == BZ_OK && bz_job_run(job, NULL, &err) == BZ_OK, "%s",
           err.text);
    bz_job_free(job);
    bz_session_free(s);
    bz_turn_free(t);
    for (unsigned i = 0; i < IMAGES; i++) {
        bz_media_free(media[i]);
    }
    bz_encoder_free(e);
}

int main(void)
{
    test_turns();
    test_growing();
    bz_model *m = open_or_fail("models/pebble.gguf");
    test_fit(m);
    test_chat(m);
    test_media(m);
    bz_model_free(m);
    return finish();
}
