#include "support/lora.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/random.h"

bz_adapter *adapter_or_fail(const bz_model *m, const char *path)
{
    bz_adapter *a = NULL;
    bz_error err = {0};
    if (bz_adapter_open_file(&a, m, path, &err) != BZ_OK) {
        printf("FAIL opening %s: %s\n", path, err.text);
        exit(1);
    }
    return a;
}

/* ---- made in memory ------------------------------------------------------------------ */

void lora_begin(gguf_build *b, const char *architecture, float alpha)
{
    gb_init(b);
    gb_str(b, "general.type", "adapter");
    gb_str(b, "general.architecture", architecture);
    gb_str(b, "general.name", "made by a test");
    gb_str(b, "adapter.type", "lora");
    gb_f32(b, "adapter.lora.alpha", alpha);
}

static void *random_rows(bz_type type, size_t n, float size)
{
    uint8_t *out = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        const float v = size * random_float();
        const uint16_t half = bz_f32_to_f16(v);
        if (type == BZ_F16) {
            memcpy(out + 2 * i, &half, sizeof half);
        } else {
            memcpy(out + 4 * i, &v, sizeof v);
        }
    }
    return out;
}

static bool is_table(const bz_gguf_tensor *t)
{
    return bz_str_is(t->name, "token_embd.weight") ||
           bz_str_is(t->name, "per_layer_token_embd.weight");
}

void lora_pair(gguf_build *b, const bz_gguf_tensor *t, uint32_t rank, bz_type type)
{
    char name[160];
    uint64_t a[3] = {t->ne[0], rank, t->ne[2]}, c[3] = {rank, t->ne[1], t->ne[2]};
    if (is_table(t)) {
        a[0] = rank;
        a[1] = t->ne[1];
        c[1] = t->ne[0];
    }
    const uint32_t dims = t->ne[2] > 1 ? 3 : 2;
    void *low = random_rows(type, (size_t)(a[0] * a[1] * a[2]), 0.2f),
         *high = random_rows(type, (size_t)(c[0] * c[1] * c[2]), 0.1f);
    snprintf(name, sizeof name, "%.*s.lora_a", (int)t->name.len, t->name.data);
    gb_tensor(b, name, type, dims, a, low);
    name[strlen(name) - 1] = 'b';
    gb_tensor(b, name, type, dims, c, high);
    free(low);
    free(high);
}

static bool is_matrix(const bz_gguf_tensor *t)
{
    char name[160];
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
    const bool tower =
        strncmp(name, "v.", 2) == 0 || strncmp(name, "a.", 2) == 0 || strncmp(name, "mm.", 3) == 0;
    return t->ne[1] > 1 && !tower && strstr(name, ".weight");
}

void lora_all(gguf_build *b, const bz_gguf *model)
{
    for (size_t i = 0; i < model->n_tensors; i++) {
        if (is_matrix(&model->tensors[i])) {
            lora_pair(b, &model->tensors[i], 1 + (uint32_t)i % 7, i % 2 ? BZ_F32 : BZ_F16);
        }
    }
}

bz_adapter *built_adapter_or_fail(const bz_model *m, const gguf_build *b)
{
    bz_adapter *a = NULL;
    bz_error err = {0};
    if (bz_adapter_open(&a, m, b->bytes, b->size, "built", &err) != BZ_OK) {
        printf("FAIL opening an adapter: %s\n", err.text);
        exit(1);
    }
    return a;
}

static float *values_of(const bz_gguf_tensor *t, const uint8_t *file)
{
    const size_t n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2]);
    float *out = malloc(n * sizeof *out);
    bz_dequantize((bz_type)t->type, file + t->offset, out, n);
    return out;
}

/* x += f * b a, in double; x [out][in] of each expert, or [rows][out] of a table. */
static void merge(float *x, const bz_gguf_tensor *t, const bz_gguf_tensor *ta,
                  const bz_gguf_tensor *tb, const uint8_t *adapter, float f)
{
    float *a = values_of(ta, adapter), *b = values_of(tb, adapter);
    const size_t in = (size_t)t->ne[0], out = (size_t)t->ne[1], rank = (size_t)tb->ne[0];
    for (size_t i = 0; i < in * out * t->ne[2]; i++) {
        const size_t e = i / (in * out), row = i / in % out, col = i % in;
        double sum = 0;
        for (size_t j = 0; j < rank; j++) {
            sum += is_table(t) ? (double)a[row * rank + j] * (double)b[col * rank + j]
                               : (double)a[(e * rank + j) * in + col] *
                                     (double)b[(e * out + row) * rank + j];
        }
        x[i] += (float)((double)f * sum);
    }
    free(a);
    free(b);
}

void build_merged(gguf_build *out, const golden *model, const gguf_build *adapter, float scale)
{
    bz_gguf pairs;
    uint64_t at_least;
    double alpha = 0;
    CHECK(bz_gguf_parse(&pairs, adapter->bytes, adapter->size, adapter->size, &at_least, NULL) ==
          BZ_GGUF_DONE);
    bz_gguf_get_f64(bz_gguf_find(&pairs, "adapter.lora.alpha"), 0, &alpha);
    gb_init(out);
    for (size_t i = 0; i < model->gguf.n_kv; i++) {
        copy_key(out, &model->gguf.kv[i]);
    }
    for (size_t i = 0; i < model->gguf.n_tensors; i++) {
        const bz_gguf_tensor *t = &model->gguf.tensors[i];
        char name[160], half[180];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
        snprintf(half, sizeof half, "%s.lora_a", name);
        const bz_gguf_tensor *a = bz_gguf_find_tensor(&pairs, half);
        snprintf(half, sizeof half, "%s.lora_b", name);
        const bz_gguf_tensor *b = bz_gguf_find_tensor(&pairs, half);
        if (bz_str_is(t->name, "token_embd.weight")) {
            gb_tensor(out, "output.weight", t->type, 2, t->ne, model->map.data + t->offset);
        }
        if (!a) {
            gb_tensor(out, name, t->type, t->n_dims, t->ne, model->map.data + t->offset);
            continue;
        }
        float *x = values_of(t, model->map.data);
        const float f = alpha != 0 ? scale * (float)alpha / (float)b->ne[0] : scale;
        merge(x, t, a, b, adapter->bytes, f);
        gb_tensor(out, name, BZ_F32, t->n_dims, t->ne, x);
        free(x);
    }
    gb_finish(out);
    bz_gguf_free(&pairs);
}

/* ---- the golden data --------------------------------------------------------------------- */

typedef struct combination {
    const char *model, *name;
    float scale[2]; /* of the adapters of that model's files */
} combination;

static const char *const files[2][2] = {{"lora/dense_a.gguf", "lora/dense_b.gguf"},
                                        {"lora/moe.gguf", NULL}};

static const combination combinations[] = {
    {"dense", "base", {0, 0}}, {"dense", "a", {1, 0}},          {"dense", "a_half", {0.5f, 0}},
    {"dense", "b", {0, 1}},    {"dense", "ab", {0.7f, -0.4f}},  {"dense", "base", {0, 0}},
    {"moe", "a", {1, 0}},      {"moe", "a_scaled", {0.25f, 0}}, {"moe", "base", {0, 0}},
};

static void check_logits(const golden *g, bz_session *s, const combination *c, uint32_t vocab,
                         double bound)
{
    size_t n, n_at, n_want;
    const int32_t *ids = golden_i32(g, &n, "%s.tokens", c->model),
                  *at = golden_i32(g, &n_at, "%s.positions", c->model);
    const float *want = golden_f32(g, &n_want, "%s.logits.%s", c->model, c->name);
    if (!CHECK(ids && at && want && n_want == n_at * vocab)) {
        return;
    }
    float *logits = calloc(n * vocab, sizeof *logits);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, logits, &err) == BZ_OK, "%s", err.text);
    for (size_t i = 0; i < n_at; i++) {
        const double d = max_difference(logits + (size_t)at[i] * vocab, want + i * vocab, vocab);
        CHECKF(d <= bound, "position %d: off by %g", at[i], d);
    }
    free(logits);
}

void check_lora(const char *model, const char *device, const bz_session_options *o, double bound)
{
    golden g;
    const int which = strcmp(model, "moe") == 0;
    golden_open(&g, golden_path("lora/golden.gguf"));
    bz_model *m =
        open_on_or_fail(golden_path(which ? "moe-like/text.gguf" : "dense-like/text.gguf"), device);
    bz_adapter *a[2] = {NULL};
    for (int i = 0; i < 2 && files[which][i]; i++) {
        a[i] = adapter_or_fail(m, golden_path(files[which][i]));
    }
    bz_session *s = session_or_fail(m, o);
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; i++) {
        const combination *c = &combinations[i];
        if (strcmp(c->model, model) != 0) {
            continue;
        }
        begin("%s.%s%s%s chunk %u%s%s", model, c->name, device ? " on " : "", device ? device : "",
              o->chunk, o->kernels ? " kernels " : "", o->kernels ? o->kernels : "");
        const bz_adapter_use uses[2] = {{a[0], c->scale[0]}, {a[1], c->scale[1]}};
        bz_error err = {0};
        CHECKF(bz_session_set_adapters(s, uses, a[1] ? 2 : 1, &err) == BZ_OK, "%s", err.text);
        check_logits(&g, s, c, bz_model_vocab(m), bound);
    }
    bz_error err = {0};
    bz_session_set_adapters(s, &(bz_adapter_use){a[0], 1}, 1, &err);
    CHECKF(prefill(s, (const int32_t[]){2, 500}, 2, 0, NULL, &err) == BZ_OK, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        bz_adapter_free(a[i]); /* the session keeps what it uses */
    }
    CHECK(bz_session_set_adapters(s, NULL, 0, &err) == BZ_OK); /* the last reference */
    bz_session_free(s);
    bz_model_free(m);
    golden_close(&g);
}
