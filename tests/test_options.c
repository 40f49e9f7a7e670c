/* Structs with a size: those of older and newer programs, and those whose size was never set. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bezel_diffusion.h"
#include "bezel_media.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"

/* ---- the reader itself ------------------------------------------------------------- */

/* One struct in three versions. */
typedef struct options_1 {
    size_t size;
    uint32_t a;
    uint32_t b;
} options_1;
typedef struct options_2 {
    size_t size;
    uint32_t a;
    uint32_t b;
    uint64_t c;
} options_2;
typedef struct options_3 {
    size_t size;
    uint32_t a;
    uint32_t b;
    uint64_t c, d;
} options_3;

/* As version 2 of a library reads it. */
static bz_status read_2(options_2 *o, const void *from, bz_error *err)
{
    memset(o, 0xFF, sizeof *o);
    return bz_read_options(o, sizeof *o, BZ_LAYOUT_END(options_1, b), from, "options", err);
}

static void test_reader(void)
{
    bz_error err = {0};
    options_2 o;
    begin("no options: all zero");
    CHECK(read_2(&o, NULL, &err) == BZ_OK && o.size == sizeof o && !o.a && !o.b && !o.c);

    begin("a program of an older version: new members are zero");
    struct {
        options_1 o;
        unsigned char beyond[16];
    } old = {.o = {.size = sizeof old.o, .a = 1, .b = 2}};
    memset(old.beyond, 0xEE, sizeof old.beyond);
    CHECK(read_2(&o, &old, &err) == BZ_OK && o.a == 1 && o.b == 2 && o.c == 0);
    CHECK(o.size == sizeof o);

    begin("a program of the same version");
    const options_2 same = {.size = sizeof same, .a = 1, .b = 2, .c = 3};
    CHECK(read_2(&o, &same, &err) == BZ_OK && memcmp(&o, &same, sizeof o) == 0);

    begin("a program of a newer version that uses nothing new");
    options_3 new = {.size = sizeof new, .a = 1, .b = 2, .c = 3};
    CHECK(read_2(&o, &new, &err) == BZ_OK && o.a == 1 && o.b == 2 && o.c == 3);
    CHECK(o.size == sizeof o);

    begin("a program of a newer version that uses a new setting");
    new.d = 1;
    CHECK(read_2(&o, &new, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "options has a setting that version 0.1.0 does not know") &&
               strstr(err.text, "newer version of the library"),
           "%s", err.text);

    begin("sizes that no version has");
    const size_t sizes[] = {0, 1, sizeof(size_t), sizeof(options_1) - 1, 1 << 20, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        options_1 wrong = {.size = sizes[i], .a = 1};
        CHECKF(read_2(&o, &wrong, &err) == BZ_BAD_REQUEST, "%zu", sizes[i]);
        CHECKF(strstr(err.text, "set its first member to sizeof(options)"), "%s", err.text);
    }
}

static void test_writer(void)
{
    const options_2 full = {.size = sizeof full, .a = 1, .b = 2, .c = 3};
    const size_t first = BZ_LAYOUT_END(options_1, b);
    bz_error err = {0};
    begin("a result for an older program: nothing beyond its struct is written");
    struct {
        options_1 o;
        unsigned char beyond[8];
    } old = {.o = {.size = sizeof old.o}, .beyond = "1234567"};
    CHECK(bz_write_sized(&old, &full, sizeof full, first, "options", &err) == BZ_OK);
    CHECK(old.o.size == sizeof old.o && old.o.a == 1 && old.o.b == 2);
    CHECK(memcmp(old.beyond, "1234567", 8) == 0);

    begin("a result for a newer program: what is not known is zero");
    options_3 new = {.size = sizeof new, .d = 9};
    CHECK(bz_write_sized(&new, &full, sizeof full, first, "options", &err) == BZ_OK);
    CHECK(new.size == sizeof new &&new.c == 3 && new.d == 0);

    begin("a result whose size was not set");
    options_2 unset = {0};
    CHECK(bz_write_sized(&unset, &full, sizeof full, first, "options", &err) == BZ_BAD_REQUEST);
    CHECK(unset.a == 0);
}

/* ---- every function that takes such a struct ------------------------------------------ */

/* Room for the struct of a newer version. */
typedef union room {
    size_t size;
    bz_open_options open;
    bz_session_options session;
    bz_prefill_options prefill;
    bz_generate_options generate;
    bz_encoder_options encoder;
    bz_fit_options fit;
    bz_denoise_options denoise;
    bz_host host;
    unsigned char bytes[1024];
} room;

typedef struct bench {
    const bz_model *model, *vision, *diffusion;
    bz_session *session, *canvas; /* prefilled */
} bench;

static bz_status call_open(const bench *b, const room *r, bz_error *err)
{
    bz_job *job = NULL;
    const bz_input input = {.name = "x", .size = 100};
    (void)b;
    const bz_status status = bz_model_open(&job, &input, 1, &r->open, err);
    bz_job_free(job);
    return status;
}

static bz_status call_open_file(const bench *b, const room *r, bz_error *err)
{
    bz_model *m = NULL;
    (void)b;
    const bz_status status =
        bz_model_open_file(&m, model_path("nano-e-f32.gguf"), NULL, &r->open, err);
    bz_model_free(m);
    return status;
}

static bz_status call_session(const bench *b, const room *r, bz_error *err)
{
    bz_session *s = NULL;
    const bz_status status = bz_session_new(&s, b->model, &r->session, err);
    bz_session_free(s);
    return status;
}

static bz_status call_prefill(const bench *b, const room *r, bz_error *err)
{
    bz_job *job = NULL;
    const bz_status status =
        bz_session_prefill(b->session, &(int32_t){2}, 1, &r->prefill, &job, err);
    bz_job_free(job);
    return status;
}

static bz_status call_generate(const bench *b, const room *r, bz_error *err)
{
    bz_job *job = NULL;
    const bz_status status = bz_session_generate(b->session, &r->generate, &job, err);
    bz_job_free(job);
    return status;
}

static bz_status call_diffuse(const bench *b, const room *r, bz_error *err)
{
    bz_job *job = NULL;
    const bz_status status = bz_session_diffuse(b->canvas, NULL, &r->denoise, &job, err);
    bz_job_free(job);
    return status;
}

static bz_status call_encoder(const bench *b, const room *r, bz_error *err)
{
    bz_encoder *e = NULL;
    const bz_status status = bz_encoder_new(&e, b->vision, &r->encoder, err);
    bz_encoder_free(e);
    return status;
}

static bz_status call_fit(const bench *b, const room *r, bz_error *err)
{
    return bz_model_fit(b->model, &r->fit, &(bz_fit){.size = sizeof(bz_fit)}, err);
}

static bz_status call_run(const bench *b, const room *r, bz_error *err)
{
    bz_job *job = NULL;
    bz_status status = bz_session_prefill(b->session, &(int32_t){2}, 1, NULL, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, &r->host, err);
    }
    bz_job_free(job);
    return status;
}

static void test_functions(void)
{
    static const struct {
        const char *name;
        size_t size;
        bz_status (*call)(const bench *b, const room *r, bz_error *err);
    } calls[] = {{"bz_model_open", sizeof(bz_open_options), call_open},
                 {"bz_model_open_file", sizeof(bz_open_options), call_open_file},
                 {"bz_session_new", sizeof(bz_session_options), call_session},
                 {"bz_session_prefill", sizeof(bz_prefill_options), call_prefill},
                 {"bz_session_generate", sizeof(bz_generate_options), call_generate},
                 {"bz_session_diffuse", sizeof(bz_denoise_options), call_diffuse},
                 {"bz_encoder_new", sizeof(bz_encoder_options), call_encoder},
                 {"bz_model_fit", sizeof(bz_fit_options), call_fit},
                 {"bz_job_run", sizeof(bz_host), call_run}};
    bz_model *model = open_or_fail(model_path("nano-e-f32.gguf")),
             *pebble = open_or_fail("models/pebble.gguf"),
             *diffusion = open_or_fail("models/pebble-diffusion.gguf");
    bench b = {.model = model,
               .vision = pebble,
               .diffusion = diffusion,
               .session = session_or_fail(model, NULL),
               .canvas = session_or_fail(diffusion, NULL)};
    bz_error err = {0};
    CHECK(prefill(b.session, &(int32_t){2}, 1, 0, NULL, &err) == BZ_OK);
    CHECK(prefill(b.canvas, &(int32_t){2}, 1, 0, NULL, &err) == BZ_OK);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        begin("%s takes structs of this version and longer ones, and no others", calls[i].name);
        room r = {0};
        CHECK(calls[i].call(&b, &r, &err) == BZ_BAD_REQUEST);
        CHECKF(strstr(err.text, "sizeof(bz_"), "%s", err.text);
        r.size = calls[i].size;
        CHECKF(calls[i].call(&b, &r, &err) == BZ_OK, "%s", err.text);
        r.size = calls[i].size + 64;
        CHECKF(calls[i].call(&b, &r, &err) == BZ_OK, "%s", err.text);
        r.bytes[calls[i].size + 63] = 1;
        CHECK(calls[i].call(&b, &r, &err) == BZ_BAD_REQUEST);
        CHECKF(strstr(err.text, "newer version"), "%s", err.text);
    }
    begin("a bz_fit whose size was not set");
    CHECK(bz_model_fit(b.model, NULL, &(bz_fit){0}, &err) == BZ_BAD_REQUEST);
    bz_session_free(b.session);
    bz_session_free(b.canvas);
    bz_model_free(model);
    bz_model_free(pebble);
    bz_model_free(diffusion);
}

/* ---- what a file says ------------------------------------------------------------------- */

static void test_info(void)
{
    bz_error err = {0};
    bz_model_info f = {.size = sizeof f};
    begin("bz_model_get_info");
    bz_model *m = open_or_fail("models/pebble.gguf");
    CHECKF(bz_model_get_info(m, &f, &err) == BZ_OK, "%s", err.text);
    CHECK(f.size == sizeof f && f.vocab == bz_model_vocab(m) && f.context == bz_model_context(m));
    CHECKF(strcmp(f.architecture, "gemma4") == 0 && strcmp(f.name, "Pebble") == 0, "%s, %s", f.name,
           f.architecture);
    CHECK(f.layers > 0 && f.width > 0 && f.window > 0 && f.canvas == 0 && f.parameters > 0);
    CHECKF(f.bytes > 1000000 && f.file_type[0], "%s, %llu bytes", f.file_type,
           (unsigned long long)f.bytes);
    begin("bz_model_get_info of a model opened for its header, without a name");
    bz_model_free(m);
    CHECK(bz_model_open_file(
              &m, model_path("nano-moe-f32.gguf"), NULL,
              &(bz_open_options){.size = sizeof(bz_open_options), .headers_only = true},
              &err) == BZ_OK);
    CHECK(bz_model_get_info(m, &f, &err) == BZ_OK && f.experts > 0 && f.experts_used > 0);
    CHECKF(strcmp(f.file_type, "F32") == 0, "%s", f.file_type);
    begin("bz_model_get_info into a struct whose size was not set");
    CHECK(bz_model_get_info(m, &(bz_model_info){0}, &err) == BZ_BAD_REQUEST);
    bz_model_free(m);
}

int main(void)
{
    test_reader();
    test_writer();
    test_functions();
    test_info();
    return finish();
}
