/* Adapters: the reference's logits, merged weights, what is refused, and that caches computed with
 * other adapters are never used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bezel_batch.h"
#include "session/media.h"
#include "session/model.h"
#include "support/check.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/lora.h"
#include "support/random.h"

enum { TOKENS = 40, ANSWER = 12 };

static int32_t ids[TOKENS];

static bz_session *new_session(const bz_model *m, bool exact, uint32_t chunk, unsigned threads)
{
    const bz_session_options o = {
        .size = sizeof o, .exact = exact, .chunk = chunk, .threads = threads, .context = 256};
    return session_or_fail(m, &o);
}

static void set(bz_session *s, bz_adapter *a, float scale)
{
    bz_error err = {0};
    CHECKF(bz_session_set_adapters(s, &(bz_adapter_use){a, scale}, a ? 1 : 0, &err) == BZ_OK, "%s",
           err.text);
}

/* [TOKENS][vocab], to be freed. */
static float *logits_of(bz_session *s, const bz_model *m)
{
    bz_error err = {0};
    float *out = calloc((size_t)TOKENS * bz_model_vocab(m), sizeof *out);
    CHECKF(prefill(s, ids, TOKENS, 0, out, &err) == BZ_OK, "%s", err.text);
    return out;
}

/* ---- merged weights ------------------------------------------------------------------- */

/* Rows of an image are not rows of the table: what adapts that leaves them as they are. */
static void check_soft(bz_session *s, bz_session *t, const bz_model *m)
{
    enum { IMAGE_ROWS = 3, N = IMAGE_ROWS + 4 };
    const int32_t image = bz_tokenizer_special(m->tokenizer)->image;
    const int32_t mixed[N] = {2, 510, image, image, image, 511, 512};
    bz_media *media = bz_media_new(BZ_MEDIA_IMAGE, IMAGE_ROWS, m->text.config.width);
    const size_t n = (size_t)N * bz_model_vocab(m);
    float *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    bz_error err = {0};
    for (uint32_t i = 0; i < IMAGE_ROWS * m->text.config.width; i++) {
        media->values[i] = random_float();
    }
    CHECKF(prefill_with(s, mixed, N, &media, 1, x, &err) == BZ_OK, "%s", err.text);
    CHECKF(prefill_with(t, mixed, N, &media, 1, y, &err) == BZ_OK, "%s", err.text);
    const double d = max_difference(x, y, n);
    CHECKF(d <= 1e-3, "with an image off by %g", d);
    free(x);
    free(y);
    bz_media_free(media);
}

static void test_merged(const char *model)
{
    golden base;
    gguf_build file, merged;
    bz_model *other = NULL;
    bz_error err = {0};
    begin("%s: every matrix adapted, as merged weights", model);
    golden_open(&base, golden_path(model));
    bz_model *m = open_or_fail(golden_path(model));
    lora_begin(&file, "gemma4", 3);
    lora_all(&file, &base.gguf);
    gb_finish(&file);
    build_merged(&merged, &base, &file, 0.5f);
    if (CHECKF(open_bytes(merged.bytes, merged.size, &other, &err) == BZ_OK, "%s", err.text)) {
        bz_adapter *a = built_adapter_or_fail(m, &file);
        bz_session *s = new_session(m, true, 16, 2), *t = new_session(other, true, 16, 2);
        const size_t n = (size_t)TOKENS * bz_model_vocab(m);
        float *plain = logits_of(s, m);
        set(s, a, 0.5f);
        float *x = logits_of(s, m), *y = logits_of(t, other);
        check_soft(s, t, m);
        const double d = max_difference(x, y, n), effect = max_difference(x, plain, n);
        CHECKF(d <= 1e-3, "off by %g", d);
        CHECKF(effect > 0.5, "the adapter changes logits by %g only", effect);
        free(plain);
        free(x);
        free(y);
        bz_session_free(s);
        bz_session_free(t);
        bz_adapter_free(a);
    }
    bz_model_free(m);
    bz_model_free(other);
    gb_free(&file);
    gb_free(&merged);
    golden_close(&base);
}

/* ---- several ------------------------------------------------------------------------------ */

static bool ends_with(bz_str name, const char *end)
{
    const size_t n = strlen(end);
    return name.len >= n && memcmp(name.data + name.len - n, end, n) == 0;
}

/* Two adapters of other ranks, and of other matrices: both at once are the second one on weights
 * that the first is merged into. */
static void test_several(const char *model)
{
    golden base;
    gguf_build first, second, merged;
    bz_model *other = NULL;
    bz_error err = {0};
    begin("%s: two adapters at once, one of them as merged weights", model);
    golden_open(&base, golden_path(model));
    bz_model *m = open_or_fail(golden_path(model));
    lora_begin(&first, "gemma4", 3);
    lora_all(&first, &base.gguf);
    gb_finish(&first);
    lora_begin(&second, "gemma4", 0);
    for (size_t i = 0; i < base.gguf.n_tensors; i++) { /* of some that share their input, only */
        const bz_gguf_tensor *t = &base.gguf.tensors[i];
        if (ends_with(t->name, "attn_v.weight") || ends_with(t->name, "ffn_up.weight") ||
            ends_with(t->name, "_exps.weight") || bz_str_is(t->name, "token_embd.weight")) {
            lora_pair(&second, t, 9, BZ_F32);
        }
    }
    gb_finish(&second);
    build_merged(&merged, &base, &first, 0.5f);
    if (CHECKF(open_bytes(merged.bytes, merged.size, &other, &err) == BZ_OK, "%s", err.text)) {
        bz_adapter *a = built_adapter_or_fail(m, &first), *b = built_adapter_or_fail(m, &second),
                   *c = built_adapter_or_fail(other, &second);
        const bz_adapter_use uses[3] = {{a, 0.5f}, {a, 0}, {b, -0.25f}};
        bz_session *s = new_session(m, true, 16, 2), *t = new_session(other, true, 16, 2);
        CHECKF(bz_session_set_adapters(s, uses, 3, &err) == BZ_OK, "%s", err.text);
        set(t, c, -0.25f);
        float *x = logits_of(s, m), *y = logits_of(t, other);
        const double d = max_difference(x, y, (size_t)TOKENS * bz_model_vocab(m));
        CHECKF(d <= 1e-3, "off by %g", d);
        CHECK(bz_session_set_adapters(s, uses, 3, &err) == BZ_OK);
        CHECKF(bz_session_get_stats(s).position == TOKENS, "the same set forgets the tokens");
        CHECK(bz_session_set_adapters(s, uses, 2, &err) == BZ_OK);
        CHECK(bz_session_get_stats(s).position == 0);
        free(x);
        free(y);
        bz_session_free(s);
        bz_session_free(t);
        bz_adapter_free(a);
        bz_adapter_free(b);
        bz_adapter_free(c);
    }
    bz_model_free(m);
    bz_model_free(other);
    gb_free(&first);
    gb_free(&second);
    gb_free(&merged);
    golden_close(&base);
}

/* ---- bits -------------------------------------------------------------------------------- */

static void test_bits(const char *model, const char *adapter)
{
    bz_model *m = open_or_fail(golden_path(model));
    bz_adapter *a = adapter_or_fail(m, golden_path(adapter));
    const size_t bytes = (size_t)TOKENS * bz_model_vocab(m) * sizeof(float);
    bz_session *s = new_session(m, false, 512, 1);
    set(s, a, 1);
    float *want = logits_of(s, m);
    static const uint32_t chunks[] = {1, 5, 64};
    for (unsigned i = 0; i < 3; i++) {
        begin("%s: the same bits in chunks of %u on %u threads", adapter, chunks[i], 1 + i);
        bz_session *t = new_session(m, false, chunks[i], 1 + i);
        set(t, a, 1);
        float *got = logits_of(t, m);
        CHECK(memcmp(got, want, bytes) == 0);
        free(got);
        bz_session_free(t);
    }
    begin("%s: removed, the model's own bits", adapter);
    bz_session *plain = new_session(m, false, 512, 1);
    float *own = logits_of(plain, m);
    set(s, NULL, 0);
    float *after = logits_of(s, m);
    CHECK(memcmp(after, own, bytes) == 0 && memcmp(want, own, bytes) != 0);
    free(after);
    set(s, a, 1);
    set(s, a, 0); /* as if it were not in the list */
    after = logits_of(s, m);
    CHECK(memcmp(after, own, bytes) == 0);
    free(after);
    free(own);
    free(want);
    bz_session_free(plain);
    bz_session_free(s);
    bz_adapter_free(a);
    bz_model_free(m);
}

/* ---- reuse ------------------------------------------------------------------------------- */

static uint64_t computed(bz_session *s)
{
    const uint64_t before = bz_session_get_stats(s).prefilled;
    bz_error err = {0};
    CHECKF(prefill(s, ids, TOKENS, 0, NULL, &err) == BZ_OK, "%s", err.text);
    return bz_session_get_stats(s).prefilled - before;
}

static void test_reuse(const bz_model *m, bz_adapter *a, bz_adapter *b)
{
    bz_session *s = new_session(m, false, 16, 1);
    begin("a change of adapters or scales forgets the tokens, the same set does not");
    CHECK(computed(s) == TOKENS && computed(s) == 1);
    set(s, a, 1);
    CHECK(bz_session_get_stats(s).position == 0);
    CHECK(computed(s) == TOKENS && computed(s) == 1);
    set(s, a, 1);
    CHECK(computed(s) == 1);
    set(s, a, 0.5f);
    CHECK(computed(s) == TOKENS);
    set(s, b, 0.5f);
    CHECK(computed(s) == TOKENS);
    set(s, NULL, 0);
    CHECK(computed(s) == TOKENS);

    begin("a session with a job keeps its adapters");
    bz_job *job = NULL;
    bz_error err = {0};
    CHECK(bz_session_prefill(s, ids, TOKENS, NULL, &job, &err) == BZ_OK);
    CHECK(bz_session_set_adapters(s, &(bz_adapter_use){a, 1}, 1, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "busy"), "%s", err.text);
    bz_job_free(job);

    begin("a fork has the adapters");
    bz_session *f = NULL;
    int32_t x[ANSWER], y[ANSWER];
    set(s, a, 1);
    computed(s);
    CHECKF(bz_session_fork(&f, s, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_get_stats(f).position == TOKENS && bz_session_get_stats(f).prefilled == 0);
    CHECK(generate(s, x, ANSWER) == ANSWER && generate(f, y, ANSWER) == ANSWER);
    CHECK(memcmp(x, y, sizeof x) == 0);
    CHECK(memcmp(bz_session_logits(s), bz_session_logits(f), bz_model_vocab(m) * sizeof(float)) ==
          0);
    bz_session_free(f);
    bz_session_free(s);
}

static void test_saved(const bz_model *m, bz_adapter *a)
{
    char path[] = "/tmp/bezel-adapter-XXXXXX";
    bz_error err = {0};
    bz_session *s = new_session(m, false, 16, 1), *t = new_session(m, false, 16, 1);
    close(mkstemp(path));
    begin("a saved session is loaded with the same adapters only");
    set(s, a, 1);
    computed(s);
    CHECKF(bz_session_save(s, path, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_load(t, path, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "other adapters"), "%s", err.text);
    set(t, a, 0.5f);
    CHECK(bz_session_load(t, path, &err) == BZ_BAD_REQUEST);
    set(t, a, 1);
    CHECKF(bz_session_load(t, path, &err) == BZ_OK, "%s", err.text);
    CHECK(bz_session_get_stats(t).position == TOKENS && computed(t) == 1);
    set(s, NULL, 0);
    CHECK(bz_session_load(s, path, &err) == BZ_BAD_REQUEST);
    unlink(path);
    bz_session_free(s);
    bz_session_free(t);
}

/* ---- batches -------------------------------------------------------------------------------- */

typedef struct answer {
    int32_t ids[ANSWER];
    size_t n;
} answer;

static void on_event(void *user, const bz_batch_event *e)
{
    answer *a = (answer *)user + e->slot;
    if (e->token >= 0 && a->n < ANSWER) {
        a->ids[a->n++] = e->token;
    }
}

/* Two sequences of a batch, by slot; the second has half of the tokens. */
static void run_batch(bz_batch *b, bz_adapter *a, answer out[2], uint32_t slot_of[2])
{
    const bz_generate_options o = {
        .size = sizeof o, .max_tokens = ANSWER, .ignore_end = true, .sampling.greedy = true};
    bz_error err = {0};
    memset(out, 0, 2 * sizeof *out);
    for (size_t i = 0; i < 2; i++) {
        CHECKF(bz_batch_start(b, ids, TOKENS / (i + 1), &o, &slot_of[i], &err) == BZ_OK, "%s",
               err.text);
    }
    CHECK(bz_batch_set_adapters(b, &(bz_adapter_use){a, 0.25f}, 1, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "none of its sequences is running"), "%s", err.text);
    while ((out[0].n < ANSWER || out[1].n < ANSWER) &&
           CHECKF(bz_batch_step(b, on_event, out, &err) == BZ_OK, "%s", err.text)) {
    }
}

static void test_batch(const bz_model *m, bz_adapter *a)
{
    const bz_batch_options bo = {.size = sizeof bo, .slots = 2, .context = 256, .threads = 1};
    bz_batch *b = NULL;
    bz_error err = {0};
    CHECKF(bz_batch_new(&b, m, &bo, &err) == BZ_OK, "%s", err.text);
    for (int adapted = 0; adapted < 3; adapted++) {
        answer got[2], want;
        uint32_t slot_of[2];
        begin("a batch, %s", adapted == 1 ? "adapted" : adapted ? "as before" : "plain");
        CHECKF(bz_batch_set_adapters(b, &(bz_adapter_use){a, 1}, adapted == 1, &err) == BZ_OK, "%s",
               err.text);
        run_batch(b, a, got, slot_of);
        for (size_t i = 0; i < 2; i++) {
            bz_session *s = new_session(m, false, 512, 1);
            set(s, adapted == 1 ? a : NULL, 1);
            CHECK(prefill(s, ids, TOKENS / (i + 1), 0, NULL, NULL) == BZ_OK);
            generate(s, want.ids, ANSWER);
            CHECK(memcmp(got[slot_of[i]].ids, want.ids, sizeof want.ids) == 0);
            bz_session_free(s);
        }
    }
    bz_batch_free(b);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

static const uint64_t fits_a[] = {256, 4}, fits_b[] = {4, 256};

typedef struct broken {
    const char *title;
    const char *type, *architecture, *kind; /* NULL: right */
    const char *tensor;                     /* the base tensor; NULL: no pair */
    uint64_t a[3], b[3];                    /* shapes; 0: those of attn_q */
    bz_type stored;
    float poison; /* in the second half; 0: none */
    bz_status code;
    const char *expected;
} broken;

static void build(gguf_build *g, const broken *c)
{
    char name[160];
    gb_init(g);
    gb_str(g, "general.type", c->type ? c->type : "adapter");
    gb_str(g, "general.architecture", c->architecture ? c->architecture : "gemma4");
    gb_str(g, "adapter.type", c->kind ? c->kind : "lora");
    gb_f32(g, "adapter.lora.alpha", 8);
    if (c->tensor) {
        float *values = c->poison != 0 ? calloc(4096, sizeof *values) : NULL;
        const uint32_t dims = c->a[2] ? 3 : 2;
        snprintf(name, sizeof name, "%s.lora_a", c->tensor);
        gb_tensor(g, name, c->stored, dims, c->a[0] ? c->a : fits_a, NULL);
        name[strlen(name) - 1] = 'b';
        if (values) {
            values[5] = c->poison;
        }
        gb_tensor(g, name, c->stored, dims, c->b[0] ? c->b : fits_b, values);
        free(values);
    }
    gb_finish(g);
}

static void test_refused(const bz_model *m)
{
    static const char q[] = "blk.0.attn_q.weight";
    const float nan = 0.0f / 0.0f * -1.0f;
    const broken cases[] = {
        {"a model", .type = "model", .tensor = q, .code = BZ_BAD_FILE, .expected = "general.type"},
        {"another architecture", .architecture = "llama", .tensor = q, .code = BZ_BAD_FILE,
         .expected = "general.architecture is 'llama', not 'gemma4'"},
        {"another kind", .kind = "ia3", .tensor = q, .code = BZ_BAD_FILE,
         .expected = "no LoRA adapter"},
        {"no pair", .code = BZ_BAD_FILE, .expected = "changes nothing"},
        {"another input", .tensor = q, .a = {255, 4}, .code = BZ_BAD_FILE,
         .expected = "do not fit the model's 256 x"},
        {"another output", .tensor = q, .b = {4, 33}, .code = BZ_BAD_FILE,
         .expected = "do not fit"},
        {"two ranks", .tensor = q, .a = {256, 5}, .code = BZ_BAD_FILE, .expected = "do not fit"},
        {"experts where there are none", .tensor = q, .a = {256, 4, 2}, .b = {4, 256, 2},
         .code = BZ_BAD_FILE, .expected = "do not fit"},
        {"a huge rank", .tensor = q, .a = {256, 5000}, .b = {5000, 256},
         .code = BZ_UNSUPPORTED_MODEL, .expected = "rank 5000"},
        {"an odd type", .tensor = q, .a = {256, 256}, .b = {256, 256}, .stored = BZ_Q4_K,
         .code = BZ_UNSUPPORTED_MODEL, .expected = "type Q4_K"},
        {"a tensor that is not there", .tensor = "blk.99.attn_q.weight", .code = BZ_BAD_FILE,
         .expected = "which this model does not have"},
        {"the vision tower", .tensor = "v.blk.0.attn_q.weight", .code = BZ_UNSUPPORTED_MODEL,
         .expected = "vision or audio encoder"},
        {"the output matrix of a tied model", .tensor = "output.weight",
         .code = BZ_UNSUPPORTED_MODEL, .expected = "its embeddings are its output matrix"},
        {"a norm", .tensor = "blk.0.attn_norm.weight", .code = BZ_UNSUPPORTED_MODEL,
         .expected = "cannot change by an adapter"},
        {"a NaN", .tensor = q, .poison = nan, .code = BZ_BAD_FILE,
         .expected = "not a finite number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_build g;
        bz_adapter *a = NULL;
        bz_error err = {0};
        begin("refused: %s", cases[i].title);
        build(&g, &cases[i]);
        const bz_status status = bz_adapter_open(&a, m, g.bytes, g.size, "x.gguf", &err);
        CHECKF(status == cases[i].code && strstr(err.text, cases[i].expected) &&
                   strncmp(err.text, "x.gguf: ", 8) == 0,
               "%d %s", (int)status, err.text);
        gb_free(&g);
    }
}

/* Keys and halves that the table above cannot express. */
static void test_odd_files(const bz_model *m, const bz_gguf *base)
{
    gguf_build g;
    bz_adapter *a = NULL;
    bz_error err = {0};
    const bz_gguf_tensor *q = bz_gguf_find_tensor(base, "blk.0.attn_q.weight");
    begin("refused: half a pair, a plain tensor, tokens that switch it on");
    for (int i = 0; i < 3; i++) {
        lora_begin(&g, "gemma4", 0);
        if (i == 2) {
            gb_array(&g, "adapter.alora.invocation_tokens", BZ_GGUF_U32, (uint32_t[]){5}, 1);
        } else {
            gb_tensor(&g, i ? "blk.0.attn_q.bias" : "blk.0.attn_q.weight.lora_b", BZ_F32, 2, fits_b,
                      NULL);
        }
        lora_pair(&g, bz_gguf_find_tensor(base, "blk.0.attn_k.weight"), 3, BZ_F32);
        gb_finish(&g);
        const bz_status status = bz_adapter_open(&a, m, g.bytes, g.size, "x", &err);
        static const char *const expected[] = {"not the other half", "neither half of a pair",
                                               "alora"};
        CHECKF(status != BZ_OK && strstr(err.text, expected[i]), "%s", err.text);
        gb_free(&g);
    }
    begin("norms are skipped, alpha may be missing");
    lora_begin(&g, "gemma4", 0);
    lora_pair(&g, q, 70, BZ_F16);
    gb_tensor(&g, "blk.0.attn_norm.weight", BZ_F32, 1, (uint64_t[]){256}, NULL);
    gb_finish(&g);
    a = built_adapter_or_fail(m, &g);
    bz_adapter_info info = {.size = sizeof info};
    CHECK(bz_adapter_get_info(a, &info, &err) == BZ_OK && info.pairs == 1 && info.norms == 1 &&
          info.alpha == 0 && info.min_rank == 70 && info.max_rank == 70 &&
          strcmp(info.name, "made by a test") == 0);
    bz_adapter_free(a);

    begin("every cut of a file is refused");
    for (size_t n = 0; n < g.size; n += n < g.header_size ? 1 : 9973) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, g.bytes, n);
        CHECKF(bz_adapter_open(&a, m, cut, n, "x", &err) == BZ_BAD_FILE, "%zu bytes", n);
        free(cut);
    }
    gb_free(&g);
}

static void test_uses(const bz_model *m, bz_adapter *a)
{
    bz_error err = {0};
    bz_session *s = new_session(m, false, 16, 1);
    begin("an adapter of another model, a NaN as scale");
    bz_model *other = open_or_fail(golden_path("dense-like/text.gguf"));
    bz_session *t = new_session(other, false, 16, 1);
    CHECK(bz_session_set_adapters(t, &(bz_adapter_use){a, 1}, 1, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "another model"), "%s", err.text);
    CHECK(bz_session_set_adapters(s, &(bz_adapter_use){a, 1.0f / 0.0f}, 1, &err) == BZ_BAD_REQUEST);
    CHECKF(strstr(err.text, "scale"), "%s", err.text);
    bz_session_free(t);
    bz_model_free(other);

    begin("a model of embeddings takes none");
    gguf_build g;
    bz_adapter *none = NULL;
    bz_model *e = open_or_fail(golden_path("embedding/text.gguf"));
    lora_begin(&g, "gemma-embedding", 1);
    gb_finish(&g);
    CHECK(bz_adapter_open(&none, e, g.bytes, g.size, "x", &err) == BZ_UNSUPPORTED_MODEL);
    CHECKF(strstr(err.text, "vectors of texts"), "%s", err.text);
    gb_free(&g);
    bz_model_free(e);
    bz_session_free(s);
}

int main(void)
{
    static const uint32_t chunks[] = {1, 7, 512};
    random_seed(9);
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = (int32_t)(500 + random_below(200));
    }
    for (size_t i = quick_run() ? 1 : 0; i < 3; i++) {
        const bz_session_options o = {
            .size = sizeof o, .exact = true, .chunk = chunks[i], .threads = 2};
        check_lora("dense", NULL, &o, 1e-3);
        check_lora("moe", NULL, &o, 1e-3);
    }
    const bz_session_options plain = {
        .size = sizeof plain, .exact = true, .threads = 2, .kernels = "plain"};
    check_lora("moe", NULL, &plain, 1e-3);
    test_merged("e-like/text.gguf");
    test_merged("moe-like/text.gguf");
    test_several("e-like/text.gguf");
    test_several("moe-like/text.gguf");
    test_bits("dense-like/text.gguf", "lora/dense_a.gguf");
    test_bits("moe-like/text.gguf", "lora/moe.gguf");

    golden base;
    golden_open(&base, golden_path("dense-like/text.gguf"));
    bz_model *m = open_or_fail(golden_path("dense-like/text.gguf"));
    bz_adapter *a = adapter_or_fail(m, golden_path("lora/dense_a.gguf")),
               *b = adapter_or_fail(m, golden_path("lora/dense_b.gguf"));
    test_reuse(m, a, b);
    test_saved(m, a);
    test_batch(m, a);
    test_refused(m);
    test_odd_files(m, &base.gguf);
    test_uses(m, a);
    bz_adapter_free(a);
    bz_adapter_free(b);
    bz_model_free(m);
    golden_close(&base);
    return finish();
}
