/* The engine's thread: requests from another thread, several at a time, cancelled, refused, with
 * errors; models loaded and unloaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "server/engine/engine.h"
#include "server/engine/models.h"
#include "server/engine/stop.h"
#include "support/check.h"
#include "support/golden.h"

static atomic_uint woken;

static void wake(void *user)
{
    (void)user;
    atomic_fetch_add(&woken, 1);
    bz_os_wake_all(&woken);
}

static engine *begin_engine(const engine_options *o)
{
    bz_error err = {0};
    engine *e = engine_new(o, &err);
    CHECK(e && engine_add_model(e, "pebble", "models/pebble.gguf", NULL, &err) == BZ_OK);
    CHECK(e && engine_start(e, wake, NULL, &err) == BZ_OK);
    return e;
}

static engine_request chat(const char *json)
{
    return (engine_request){.task = ENGINE_CHAT,
                            .model = strdup("pebble"),
                            .json = strdup(json),
                            .n_json = strlen(json)};
}

static engine_work *submit(engine *e, engine_request r)
{
    bz_error err = {0};
    engine_work *w = engine_submit(e, &r, &err);
    CHECKF(w != NULL, "%s", err.text);
    return w;
}

/* Collects the text of choice 0; returns when the work is done or has failed. */
static engine_state await(engine_work *w, char *text, size_t size, int *ends)
{
    size_t n = 0;
    *ends = 0;
    for (;;) {
        const unsigned seen = atomic_load(&woken);
        engine_event *events;
        const engine_state state = engine_poll(w, &events);
        for (const engine_event *e = events; e; e = e->next) {
            if (e->kind == ENGINE_ANSWER && e->choice == 0 && n + e->len < size) {
                memcpy(text + n, e->text, e->len);
                n += e->len;
            }
            *ends += e->kind == ENGINE_END;
        }
        engine_events_free(events);
        text[n] = 0;
        if (state == ENGINE_DONE || state == ENGINE_FAILED) {
            return state;
        }
        bz_os_wait(&woken, seen);
    }
}

static const char STORY[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"Tell me a story.\"}],"
                            "\"max_tokens\":8,\"seed\":7}";

enum { MANY = 12 };

static void test_answers(void)
{
    char text[2][2048];
    int ends;
    engine *e = begin_engine(&(engine_options){.parallel = 4, .no_store = true});
    begin("requests with the same seed get the same answer, alone and together");
    engine_work *alone = submit(e, chat(STORY)), *works[MANY];
    CHECK(await(alone, text[0], sizeof text[0], &ends) == ENGINE_DONE && ends == 1 && text[0][0]);
    CHECK(engine_usage_of(alone)->answer_tokens == 8 && engine_usage_of(alone)->prompt_tokens > 5);
    CHECK(strcmp(engine_model_name(alone), "pebble") == 0);
    engine_release(alone);
    for (size_t i = 0; i < MANY; i++) {
        works[i] = submit(e, chat(STORY));
    }
    for (size_t i = 0; i < MANY; i++) {
        CHECK(await(works[i], text[1], sizeof text[1], &ends) == ENGINE_DONE);
        CHECKF(strcmp(text[0], text[1]) == 0, "%s / %s", text[0], text[1]);
        engine_release(works[i]);
    }

    begin("several choices of one request");
    engine_request r = chat(STORY);
    r.choices = 6;
    r.report_ids = true;
    engine_work *w = submit(e, r);
    CHECK(await(w, text[1], sizeof text[1], &ends) == ENGINE_DONE && ends == 6);
    CHECK(strcmp(text[0], text[1]) == 0 && engine_usage_of(w)->answer_tokens == 48);
    CHECK(engine_usage_of(w)->n_ids == engine_usage_of(w)->prompt_tokens + 8);
    engine_release(w);

    begin("log-probabilities come from a session, with the same answer");
    w = submit(e, chat("{\"messages\":[{\"role\":\"user\",\"content\":\"Tell me a story.\"}],"
                       "\"max_tokens\":8,\"seed\":7,\"logprobs\":true}"));
    CHECK(await(w, text[1], sizeof text[1], &ends) == ENGINE_DONE && strcmp(text[0], text[1]) == 0);
    engine_release(w);

    begin("requests in flight when the engine is freed");
    for (size_t i = 0; i < MANY; i++) {
        works[i] = submit(e, chat(STORY));
        engine_release(works[i]);
    }
    const engine_figures f = engine_get_figures(e);
    CHECK(f.requests == 3 + 2 * MANY && f.failed == 0 && f.answer_tokens >= 8 * (MANY + 2));
    engine_free(e);
}

static void test_prompts(void)
{
    char text[2][2048];
    int ends;
    engine *e = begin_engine(&(engine_options){.parallel = 2, .no_store = true});
    begin("plain prompts, with a stop string");
    for (int stopped = 0; stopped < 2; stopped++) {
        engine_request r = {.task = ENGINE_PROMPT, .n_prompts = 1};
        const char *json = stopped
                               ? "{\"messages\":[],\"seed\":3,\"max_tokens\":40,\"stop\":[\".\"]}"
                               : "{\"messages\":[],\"seed\":3,\"max_tokens\":40}";
        r.json = strdup(json);
        r.n_json = strlen(json);
        r.prompts = calloc(1, sizeof *r.prompts);
        r.prompts[0] = (engine_prompt){.text = strdup("Once upon a time"), .len = 16};
        engine_work *w = submit(e, r);
        CHECK(await(w, text[stopped], sizeof text[0], &ends) == ENGINE_DONE);
        engine_release(w);
    }
    const char *dot = strchr(text[0], '.');
    CHECKF(dot && (size_t)(dot - text[0]) == strlen(text[1]) &&
               strncmp(text[0], text[1], strlen(text[1])) == 0,
           "%s / %s", text[0], text[1]);
    engine_free(e);
}

static void test_refusals(void)
{
    char text[2048];
    int ends;
    bz_error err = {0};
    engine *e = begin_engine(&(engine_options){.parallel = 1, .queue = 3, .no_store = true});
    begin("errors name the cause");
    engine_request r = chat(STORY);
    free(r.model);
    r.model = strdup("models/pebble.gguf"); /* a file that exists: names are never paths */
    engine_work *w = submit(e, r);
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_FAILED);
    CHECK(engine_error(w)->code == BZ_NOT_FOUND);
    engine_release(w);
    w = submit(e,
               chat("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"temperature\":-3}"));
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_FAILED);
    CHECKF(engine_error(w)->code == BZ_BAD_REQUEST && strstr(engine_error(w)->text, "temperature"),
           "%s", engine_error(w)->text);
    engine_release(w);
    w = submit(e, chat("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\","
                       "\"image_url\":{\"url\":\"http://localhost/x.png\"}}]}]}"));
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_FAILED);
    CHECK(engine_error(w)->code == BZ_BAD_REQUEST);
    engine_release(w);
    r = chat(STORY);
    r.min_context = 1 << 29;
    w = submit(e, r);
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_FAILED &&
          strstr(engine_error(w)->text, "--ctx"));
    engine_release(w);

    begin("a full queue refuses, and cancelled requests leave it");
    static const char endless[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Tell me a story.\"}],\"options\":{"
        "\"num_predict\":-1},\"logit_bias\":{\"1\":-100,\"106\":-100},\"seed\":1}";
    engine_work *works[16];
    size_t n = 0;
    while (n < 16) {
        r = chat(endless);
        works[n] = engine_submit(e, &r, &err);
        if (!works[n]) {
            break;
        }
        n++;
    }
    CHECKF(n >= 3 && n < 16 && err.code == BZ_QUOTA, "%zu accepted: %s", n, err.text);
    CHECK(engine_get_figures(e).refused == 1);
    for (size_t i = 0; i < n; i++) {
        engine_release(works[i]);
    }
    w = NULL;
    while (!w) { /* until the engine has noticed */
        r = chat(STORY);
        w = engine_submit(e, &r, &err);
    }
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    engine_release(w);
    engine_free(e);
}

/* With one slot: a sequence that is cancelled while a pass over its prompt is in flight must free
 * the slot for the next one. */
static void test_cancel(void)
{
    char text[2048], request[4096];
    int ends;
    engine *e = begin_engine(&(engine_options){.parallel = 1, .no_store = true});
    begin("a cancelled request frees its slot, whenever it is cancelled");
    for (int i = 0; i < 12; i += quick_run() ? 4 : 1) {
        size_t n = (size_t)snprintf(request, sizeof request,
                                    "{\"messages\":[{\"role\":\"user\",\"content\":\"%d", i);
        for (int k = 0; k < (quick_run() ? 100 : 300); k++) {
            n += (size_t)snprintf(request + n, sizeof request - n, " a river");
        }
        snprintf(request + n, sizeof request - n, "\"}]}");
        engine_work *w = submit(e, chat(request));
        engine_event *events = NULL;
        for (;;) {
            const unsigned seen = atomic_load(&woken);
            if (engine_poll(w, &events) != ENGINE_WAITING) {
                break;
            }
            bz_os_wait(&woken, seen);
        }
        engine_events_free(events);
        bz_os_sleep((uint64_t)i * 2000000);
        engine_release(w);
        w = submit(e, chat(STORY));
        CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
        engine_release(w);
    }
    engine_free(e);
}

typedef struct counts {
    int loaded, listed;
} counts;

static bool count_model(void *user, const engine_model *m)
{
    counts *c = user;
    c->listed++;
    c->loaded += m->model != NULL;
    return true;
}

static bz_status count_models(void *user, engine *e, engine_model *m, bz_json *j, bz_error *err)
{
    (void)m;
    *(counts *)user = (counts){0};
    bz_json_null(j);
    return models_each(engine_models(e), count_model, user, err);
}

static counts models_now(engine *e)
{
    counts c = {0};
    char text[64];
    int ends;
    engine_work *w =
        submit(e, (engine_request){
                      .task = ENGINE_RUN, .without_model = true, .run = count_models, .user = &c});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    engine_release(w);
    return c;
}

static void test_models(void)
{
    char text[2048];
    int ends;
    bz_error err = {0};
    const engine_options o = {.parallel = 1, .no_store = true, .max_memory = 20 << 20};
    engine *e = engine_new(&o, &err);
    begin("models are loaded on demand, within a budget, and unloaded");
    CHECK(engine_add_model(e, "one", "models/pebble.gguf", NULL, &err) == BZ_OK &&
          engine_add_model(e, "two", "models/pebble.gguf", NULL, &err) == BZ_OK);
    CHECK(engine_start(e, wake, NULL, &err) == BZ_OK);
    CHECK(models_now(e).listed == 2 && models_now(e).loaded == 0);
    for (int i = 0; i < 4; i++) {
        engine_request r = chat(STORY);
        free(r.model);
        r.model = strdup(i % 2 ? "two" : "ONE:latest");
        engine_work *w = submit(e, r);
        CHECKF(await(w, text, sizeof text, &ends) == ENGINE_DONE, "%s", engine_error(w)->text);
        engine_release(w);
        CHECK(models_now(e).loaded == 1);
    }
    engine_work *w = submit(e, (engine_request){.task = ENGINE_UNLOAD, .model = strdup("two")});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    engine_release(w);
    while (models_now(e).loaded) { /* it is unloaded after the request */
    }
    /* Unloading what is not loaded does nothing, also not to the next time that it is loaded. */
    w = submit(e, (engine_request){.task = ENGINE_UNLOAD, .model = strdup("two")});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    engine_release(w);
    w = submit(e, (engine_request){.task = ENGINE_LOAD, .model = strdup("two")});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    engine_release(w);
    CHECK(models_now(e).loaded == 1);
    w = submit(e, (engine_request){
                      .task = ENGINE_LOAD, .has_keep_alive = true, .keep_alive = 50 * 1000 * 1000});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    CHECK(strcmp(engine_model_name(w), "one") == 0); /* the default */
    engine_release(w);
    while (models_now(e).loaded) { /* its time is over */
        bz_os_sleep(5 * 1000 * 1000);
    }
    engine_free(e);
}

/* An answer in progress goes on while another model is opened, and what waits for a model keeps it.
 */
static void test_opening(void)
{
    char text[64];
    int ends;
    bz_error err = {0};
    const engine_options o = {.parallel = 2, .no_store = true};
    engine *e = engine_new(&o, &err);
    begin("answers go on while another model is opened");
    CHECK(engine_add_model(e, "one", "models/pebble.gguf", NULL, &err) == BZ_OK &&
          engine_add_model(e, "two", "models/pebble.gguf", NULL, &err) == BZ_OK);
    CHECK(engine_start(e, wake, NULL, &err) == BZ_OK);
    engine_request r = chat("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                            "\"max_tokens\":1500,\"logit_bias\":{\"1\":-100,\"106\":-100}}");
    free(r.model);
    r.model = strdup("one");
    engine_work *running = submit(e, r);
    while (engine_get_figures(e).decode_steps == 0) {
        bz_os_sleep(1000 * 1000);
    }
    engine_work *w = submit(e, (engine_request){.task = ENGINE_LOAD, .model = strdup("two")});
    CHECK(await(w, text, sizeof text, &ends) == ENGINE_DONE);
    const engine_figures f = engine_get_figures(e);
    CHECKF(f.steps_while_opening > 0, "%llu steps", (unsigned long long)f.steps_while_opening);
    engine_release(w);
    engine_event *events;
    CHECK(engine_poll(running, &events) == ENGINE_RUNNING);
    engine_events_free(events);
    engine_release(running);
    engine_free(e);
}

/* One client asks for much, in two programs; another machine and another program for little. */
static void test_fairness(void)
{
    enum { EAGER = 6 };
    char text[2048];
    int ends;
    begin("machines, and programs of a machine, take turns");
    for (uint32_t parallel = 1; parallel <= 2; parallel++) {
        engine *e = begin_engine(&(engine_options){.parallel = parallel, .no_store = true});
        engine_work *eager[EAGER], *few[2];
        for (size_t i = 0; i < EAGER; i++) {
            engine_request r = chat(STORY);
            r.client = 1;
            r.program = 1;
            eager[i] = submit(e, r);
        }
        for (size_t i = 0; i < 2; i++) {
            engine_request r = chat(STORY);
            r.client = 1 + i; /* another program of the first, then another machine */
            r.program = 2;
            few[i] = submit(e, r);
        }
        for (size_t i = 0; i < 2; i++) {
            CHECK(await(few[i], text, sizeof text, &ends) == ENGINE_DONE);
        }
        size_t waiting = 0;
        for (size_t i = 0; i < EAGER; i++) {
            engine_event *events;
            waiting += engine_poll(eager[i], &events) == ENGINE_WAITING;
            engine_events_free(events);
        }
        /* Without turns none would wait; a busy machine may look late. */
        CHECKF(waiting > 0, "%zu of %d wait, %u at a time", waiting, EAGER, parallel);
        for (size_t i = 0; i < 2; i++) {
            engine_release(few[i]);
        }
        for (size_t i = 0; i < EAGER; i++) {
            engine_release(eager[i]);
        }
        engine_free(e);
    }
}

static void test_stop_strings(void)
{
    static const char json[] = "[\"END\", \"\\n\\n\"]";
    static const struct {
        const char *pieces[4], *shown;
        bool found;
    } cases[] = {
        {{"one ", "EN", "D two"}, "one ", true}, {{"one ", "EN", "T"}, "one ENT", false},
        {{"a\n", "b\n", "\nc"}, "a\nb", true},   {{"E", "E", "N", "D"}, "E", true},
        {{"only EN"}, "only EN", false},         {{"", ""}, "", false},
    };
    begin("stop strings in text that comes in pieces");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bz_arena arena = {0};
        const bz_json_node *root;
        text_stop *s;
        char got[64] = "";
        bool found = false;
        CHECK(bz_json_read(&root, json, sizeof json - 1, &arena, NULL) == BZ_OK &&
              text_stop_new(&s, root, NULL) == BZ_OK);
        for (size_t k = 0; k <= 4 && !found; k++) {
            const char *piece = k < 4 && cases[i].pieces[k] ? cases[i].pieces[k] : "";
            size_t n;
            const char *shown = text_stop_push(s, piece, strlen(piece), k == 4, &n, &found);
            snprintf(got + strlen(got), sizeof got - strlen(got), "%.*s", (int)n, shown);
        }
        CHECKF(found == cases[i].found && strcmp(got, cases[i].shown) == 0, "case %zu: %s", i, got);
        text_stop_free(s);
        bz_arena_free(&arena);
    }
}

int main(void)
{
    test_stop_strings();
    test_answers();
    test_prompts();
    test_refusals();
    test_cancel();
    test_models();
    test_opening();
    test_fairness();
    return finish();
}
