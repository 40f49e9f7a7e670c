/* bz_chat: requests in, answers out, with Pebble. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "bezel_media.h"
#include "support/check.h"
#include "support/forward.h"

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define WEATHER                                                                                    \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":"    \
    "\"Looks up the weather\",\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":"       \
    "{\"type\":\"string\"}},\"required\":[\"city\"]}}}]"

/* What the callback was given, and when it cancels. */
typedef struct parts {
    char text[4096], thinking[4096], calls[1024];
    unsigned n, cancel_at, after;
} parts;

static int on_part(void *user, bz_turn_part part, const char *text, size_t len)
{
    parts *p = user;
    char *to = part == BZ_TURN_THINKING ? p->thinking
               : part == BZ_TURN_CALL   ? p->calls
               : part == BZ_TURN_ANSWER ? p->text
                                        : NULL;
    CHECK(part != BZ_TURN_NOTHING && part != BZ_TURN_END && len > 0);
    p->after += p->cancel_at && p->n >= p->cancel_at;
    p->n++;
    if (to && strlen(to) + len < 1000) {
        strncat(to, text, len);
    }
    return p->cancel_at && p->n >= p->cancel_at;
}

typedef struct reply {
    bz_status status;
    bz_error err;
    char *text;
    bz_arena arena;
    const bz_json_node *root, *message;
} reply;

static reply ask_with(const bz_model *m, const char *request, const bz_chat_options *o)
{
    reply r = {0};
    r.status = bz_chat(m, request, strlen(request), o, &r.text, &r.err);
    CHECK((r.status == BZ_OK) == (r.text != NULL) && r.err.code == r.status);
    if (r.text && CHECK(bz_json_read(&r.root, r.text, strlen(r.text), &r.arena, NULL) == BZ_OK)) {
        r.message = bz_json_get(bz_json_first(bz_json_get(r.root, "choices")), "message");
    }
    return r;
}

static void drop(reply *r)
{
    bz_free(r->text);
    bz_arena_free(&r->arena);
    *r = (reply){0};
}

static bool has(const bz_json_node *object, const char *key, const char *part)
{
    const bz_str text = bz_json_string(bz_json_get(object, key));
    const size_t n = strlen(part);
    for (size_t at = 0; text.len && at + n <= text.len; at++) {
        if (memcmp(text.data + at, part, n) == 0) {
            return true;
        }
    }
    return false;
}

static const bz_json_node *choice(const reply *r)
{
    return bz_json_first(bz_json_get(r->root, "choices"));
}

static uint64_t usage(const reply *r, const char *key)
{
    int64_t n = -1;
    bz_json_to_int(bz_json_get(bz_json_get(r->root, "usage"), key), &n);
    return (uint64_t)n;
}

static void test_answers(const bz_model *m)
{
    begin("a request and its answer");
    parts p = {0};
    bz_chat_options o = {.size = sizeof o, .part = on_part, .user = &p};
    reply r = ask_with(
        m, "{\"messages\":[" USER("What is the opposite of hot?") "],\"temperature\":0}", &o);
    CHECKF(r.status == BZ_OK && has(r.message, "content", "cold"), "%s", r.err.text);
    CHECK(has(r.root, "object", "chat.completion") && has(r.root, "model", "Pebble"));
    CHECK(has(r.message, "role", "assistant") && has(choice(&r), "finish_reason", "stop"));
    CHECK(!bz_json_get(r.message, "tool_calls") && !bz_json_get(r.message, "reasoning_content"));
    CHECK(usage(&r, "total_tokens") == usage(&r, "prompt_tokens") + usage(&r, "completion_tokens"));
    CHECK(usage(&r, "prompt_tokens") > 5 && usage(&r, "completion_tokens") > 1);
    const bz_str content = bz_json_string(bz_json_get(r.message, "content"));
    CHECKF(p.n > 1 && strlen(p.text) == content.len && !memcmp(p.text, content.data, content.len),
           "%u parts: %s", p.n, p.text);
    drop(&r);

    begin("the shortest call");
    r = ask_with(m, "{\"messages\":[" USER("Hello!") "],\"max_tokens\":3}", NULL);
    CHECKF(r.status == BZ_OK && has(choice(&r), "finish_reason", "length") &&
               usage(&r, "completion_tokens") == 3,
           "%s", r.err.text);
    drop(&r);

    begin("thinking is a part of its own");
    p = (parts){0};
    r = ask_with(m,
                 "{\"messages\":[" USER(
                     "What is the opposite of hot?") "],\"think\":true,\"temperature\":0}",
                 &o);
    CHECK(r.status == BZ_OK && has(r.message, "reasoning_content", " ") && p.thinking[0]);
    CHECK(has(r.message, "content", "cold"));
    drop(&r);

    begin("a tool is called");
    p = (parts){0};
    r = ask_with(m,
                 "{\"messages\":[" USER("What is the weather in Oslo?") "]," WEATHER
                                                                        ",\"temperature\":0}",
                 &o);
    const bz_json_node *call = bz_json_first(bz_json_get(r.message, "tool_calls"));
    CHECK(has(choice(&r), "finish_reason", "tool_calls") && call && !call->next);
    CHECK(has(call, "id", "call_0") && has(call, "type", "function"));
    CHECK(has(bz_json_get(call, "function"), "name", "get_weather"));
    CHECK(has(bz_json_get(call, "function"), "arguments", "{\"city\":\"Oslo\"}"));
    CHECKF(!strcmp(p.calls, "{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Oslo\"}}"), "%s",
           p.calls);

    begin("the answer's message continues the conversation");
    char request[4096];
    bz_json_buffer message = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &message);
    bz_json_node_write(&j, r.message);
    CHECK(bz_json_finish(&j));
    snprintf(request, sizeof request,
             "{\"messages\":[" USER(
                 "What is the weather in Oslo?") ",%s,{\"role\":\"tool\","
                                                 "\"tool_call_id\":\"call_0\",\"content\":\"snowy, "
                                                 "-3 degrees\"}]," WEATHER ",\"temperature\":0}",
             message.text);
    free(message.text);
    drop(&r);
    r = ask_with(m, request, NULL);
    CHECKF(has(r.message, "content", "snowy"), "%s", r.text ? r.text : r.err.text);
    drop(&r);
}

static void test_settings(const bz_model *m)
{
    static const char story[] =
        "{\"messages\":[" USER("Tell me a story about a fox in the forest.") "],\"seed\":%d%s}";
    char request[512];
    begin("seeds decide the answer, the option's where the request has none");
    char first[2][2000] = {"", ""};
    for (int i = 0; i < 3; i++) { /* seeds 1, 1, 2 */
        snprintf(request, sizeof request, story, i < 2 ? 1 : 2, ",\"max_tokens\":30");
        reply r = ask_with(m, request, NULL);
        CHECK(r.status == BZ_OK);
        const bz_str text = bz_json_string(bz_json_get(r.message, "content"));
        snprintf(first[i > 0], sizeof *first, "%.*s", (int)text.len, text.data);
        CHECKF((strcmp(first[0], first[1]) == 0) == (i == 1), "%s\n%s", first[0], first[1]);
        drop(&r);
    }
    bz_chat_options o = {.size = sizeof o, .seed = 2};
    reply r = ask_with(
        m,
        "{\"messages\":[" USER("Tell me a story about a fox in the forest.") "],"
                                                                             "\"max_tokens\":30}",
        &o);
    CHECK(has(r.message, "content", first[1]));
    drop(&r);

    begin("a stop string ends the answer and is not part of it");
    snprintf(request, sizeof request, story, 1, ",\"temperature\":0,\"stop\":[\"fox\"]");
    r = ask_with(m, request, NULL);
    CHECKF(r.status == BZ_OK && has(choice(&r), "finish_reason", "stop") &&
               !has(r.message, "content", "fox"),
           "%s", r.text);
    CHECK(usage(&r, "completion_tokens") < 30);
    drop(&r);
}

static void test_session(const bz_model *m)
{
    begin("a session reuses the conversation");
    bz_session *s = session_or_fail(m, NULL);
    bz_chat_options o = {.size = sizeof o, .session = s};
    reply r = ask_with(m, "{\"messages\":[" USER("My name is Tom.") "],\"temperature\":0}", &o);
    CHECK(r.status == BZ_OK &&
          !bz_json_get(bz_json_get(r.root, "usage"), "prompt_tokens_details")->next);
    drop(&r);
    r = ask_with(
        m,
        "{\"messages\":[" USER("My name is Tom.") ",{\"role\":\"assistant\",\"content\":"
                                                  "\"Nice to meet you, Tom!\"}," USER(
                                                      "What is my name?") "],\"temperature\":0}",
        &o);
    int64_t cached = 0;
    bz_json_to_int(bz_json_get(bz_json_get(bz_json_get(r.root, "usage"), "prompt_tokens_details"),
                               "cached_tokens"),
                   &cached);
    CHECKF(has(r.message, "content", "Tom") && cached > 5, "%s", r.text);
    drop(&r);
    bz_session_free(s);
}

static int cancel_at_step(void *user, const bz_event *e)
{
    unsigned *left = user;
    return e->kind == BZ_EVENT_STEP && --*left == 0;
}

static void test_cancel(const bz_model *m)
{
    begin("the callback cancels at once");
    parts p = {.cancel_at = 2};
    bz_chat_options o = {.size = sizeof o, .part = on_part, .user = &p};
    reply r = ask_with(m, "{\"messages\":[" USER("Tell me a story.") "]}", &o);
    CHECKF(r.status == BZ_ABORTED && !r.text && p.n == 2 && p.after == 0, "%u parts", p.n);
    drop(&r);
    begin("the host's callback cancels between steps");
    unsigned steps = 1;
    const bz_host host = {.size = sizeof host, .event = cancel_at_step, .user = &steps};
    o = (bz_chat_options){.size = sizeof o, .host = &host};
    r = ask_with(m, "{\"messages\":[" USER("Tell me a story.") "]}", &o);
    CHECK(r.status == BZ_ABORTED && !r.text && steps == 0);
    drop(&r);
}

static void test_refusals(const bz_model *m)
{
    static const struct {
        const char *request;
        bz_status code;
        const char *says;
    } wrong[] = {
        {"", BZ_BAD_FILE, ""},
        {"[]", BZ_BAD_REQUEST, "object"},
        {"{}", BZ_BAD_REQUEST, "messages"},
        {"{\"messages\":[" USER("x") "],\"temperature\":\"hot\"}", BZ_BAD_REQUEST, "temperature"},
        {"{\"messages\":[" USER("x") "],\"n\":2}", BZ_BAD_REQUEST, "n is 1"},
        {"{\"messages\":[" USER("x") "],\"logprobs\":true}", BZ_BAD_REQUEST, "logprobs"},
        {"{\"messages\":[" USER("x") "],\"response_format\":{\"type\":\"yaml\"}}", BZ_BAD_SCHEMA,
         "response_format"},
        {"{\"messages\":[" USER("x") "],\"stop\":[\"\"]}", BZ_BAD_REQUEST, "Stop string 1"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
         "{\"url\":\"cat.jpg\"}}]}]}",
         BZ_BAD_REQUEST, "image_url"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_audio\","
         "\"input_audio\":{\"data\":\"AAAA\"}}]}]}",
         BZ_BAD_REQUEST, "input_audio"},
    };
    begin("unsupported requests are refused with a reason");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reply r = ask_with(m, wrong[i].request, NULL);
        CHECKF(r.status != BZ_OK && (wrong[i].code == BZ_BAD_FILE || r.status == wrong[i].code) &&
                   r.err.code == r.status && strstr(r.err.text, wrong[i].says),
               "%s: %s", wrong[i].request, r.err.text);
        drop(&r);
        bz_turn *turn = NULL;
        bz_error err = {0};
        if (!strstr(wrong[i].says, "logprobs")) { /* a turn's caller gets those from its job */
            CHECKF(bz_turn_new(&turn, m, wrong[i].request, strlen(wrong[i].request), &err) !=
                           BZ_OK &&
                       !turn,
                   "bz_turn_new took %s", wrong[i].request);
        }
    }
    begin("unsupported options are refused with a reason");
    bz_model *other = open_or_fail("models/pebble-diffusion.gguf");
    bz_session *s = session_or_fail(other, NULL);
    bz_chat_options o = {.size = sizeof o, .session = s};
    reply r = ask_with(m, "{\"messages\":[" USER("x") "]}", &o);
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, "another model"), "%s", r.err.text);
    drop(&r);
    r = ask_with(m, "{\"messages\":[" USER("x") "]}", &(bz_chat_options){0});
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, "sizeof(bz_chat_options)"), "%s",
           r.err.text);
    drop(&r);
    bz_session_free(s);
    bz_model_free(other);
}

static void test_image(const bz_model *m)
{
    enum { SIDE = 96 };
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
        "{\"url\":\"x\"}},{\"type\":\"text\",\"text\":\"What is this?\"}]}],\"temperature\":0}";
    begin("an image");
    static uint8_t rgb[SIDE * SIDE * 3];
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int x = i % SIDE - SIDE / 2, y = i / SIDE - SIDE / 2;
        const uint8_t red[3] = {0xDC, 0x1E, 0x1E}, white[3] = {0xFF, 0xFF, 0xFF};
        memcpy(rgb + 3 * i, x * x + y * y < 1000 ? red : white, 3);
    }
    bz_encoder *e = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    CHECK(bz_encoder_new(&e, m, NULL, &err) == BZ_OK &&
          bz_encode_image(e, rgb, SIDE, SIDE, &job, &err) == BZ_OK &&
          bz_job_run(job, NULL, &err) == BZ_OK);
    bz_media *media[2] = {bz_job_media(job), NULL};
    bz_chat_options o = {.size = sizeof o, .media = media, .n_media = 1};
    reply r = ask_with(m, request, &o);
    CHECKF(has(r.message, "content", "red circle"), "%s", r.text ? r.text : r.err.text);
    drop(&r);
    begin("media that do not match the request");
    o.n_media = 0;
    r = ask_with(m, request, &o);
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, "image_url"), "%s", r.err.text);
    drop(&r);
    o.n_media = 1;
    r = ask_with(m, "{\"messages\":[" USER("x") "]}", &o);
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, "0 images"), "%s", r.err.text);
    drop(&r);
    bz_media_free(media[0]);
    bz_job_free(job);
    bz_encoder_free(e);
}

static void test_diffusion(void)
{
    begin("a diffusion model");
    bz_model *m = open_or_fail("models/pebble-diffusion.gguf");
    parts p = {0};
    bz_chat_options o = {.size = sizeof o, .part = on_part, .user = &p};
    reply r = ask_with(m, "{\"messages\":[" USER("Hello!") "],\"seed\":1,\"max_tokens\":40}", &o);
    CHECKF(r.status == BZ_OK && p.text[0] && bz_json_string(bz_json_get(r.message, "content")).len,
           "%s", r.err.text);
    drop(&r);
    r = ask_with(m, "{\"messages\":[" USER("Hello!") "],\"temperature\":0.5}", &o);
    CHECKF(r.status == BZ_BAD_REQUEST && strstr(r.err.text, "diffusion model"), "%s", r.err.text);
    drop(&r);
    bz_model_free(m);
}

int main(void)
{
    bz_model *m = open_or_fail("models/pebble.gguf");
    test_answers(m);
    test_settings(m);
    test_session(m);
    test_cancel(m);
    test_refusals(m);
    test_image(m);
    bz_model_free(m);
    test_diffusion();
    return finish();
}
