/* EmbeddingGemma against Hugging Face's vectors: both layouts of the first model and the second;
 * tokens; texts of a batch; and what is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bezel_batch.h"
#include "session/embed.h"
#include "support/check.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/vectors.h"

static const struct {
    const char *what, *model, *golden;
    bool bf16; /* has weights for which some processors round activations, unless exact */
} files[] = {
    {"llama.cpp's layout", "embedding/text.gguf", "embedding/golden.gguf", false},
    {"Ollama's layout", "embedding/model.gguf", "embedding/golden.gguf", true},
    {"EmbeddingGemma 2", "embedding2/text.gguf", "embedding2/golden.gguf", false},
};
enum { N_FILES = sizeof files / sizeof *files };

/* ---- vectors and what is inside --------------------------------------------------------- */

typedef struct watch {
    const golden *g;
    const char *layer_output; /* the step that is a layer's result, */
    const char *last;         /* and what the data calls the last norm's */
    unsigned seen;
} watch;

static void on_trace(void *user, const bz_step *step, int output, const void *values, uint32_t rows,
                     uint32_t cols, uint32_t stride)
{
    watch *w = user;
    char name[64];
    size_t n;
    (void)output;
    if (strcmp(step->name, w->layer_output) == 0) {
        snprintf(name, sizeof name, "emb.5.hidden.%d", step->layer);
    } else {
        snprintf(name, sizeof name, "emb.5.%s",
                 strcmp(step->name, "final_norm") == 0 ? w->last : step->name);
    }
    const float *want = golden_f32(w->g, &n, "%s", name);
    if (!want || n != (size_t)rows * cols) {
        return;
    }
    for (uint32_t r = 0; r < rows; r++) {
        const double d = max_difference((const float *)values + (size_t)r * stride,
                                        want + (size_t)r * cols, cols);
        CHECKF(d <= 1e-3, "%s row %u: off by %g", name, r, d);
    }
    w->seen++;
}

static void check_inside(const golden *g, const bz_model *m, unsigned wanted)
{
    const bz_embedder_options o = {.size = sizeof o, .exact = true, .threads = 1};
    bz_embedder *e = embedder_or_fail(m, &o);
    bz_embed_input in = {0};
    const bool second = m->text.config.ple_width != 0; /* its `last` includes the projection */
    watch w = {g, second ? "hidden" : "ffn_residual", second ? "" : "last", 0};
    bz_error err = {0};
    uint32_t d;
    in.ids = golden_i32(g, &in.n_ids, "emb.5.tokens");
    e->backend->set_trace(e->backend, on_trace, &w);
    free(vectors_of(e, &in, 1, NULL, &d, &err));
    CHECKF(w.seen >= wanted, "%u inner tensors compared", w.seen);
    bz_embedder_free(e);
}

static const struct {
    const char *what;
    bool exact;
    const char *kernels;
} ways[] = {{"", false, NULL}, {", exact", true, NULL}, {", exact, plain kernels", true, "plain"}};

static void test_vectors(void)
{
    for (int f = 0; f < N_FILES; f++) {
        golden g;
        golden_open(&g, golden_path(files[f].golden));
        bz_model *m = open_or_fail(golden_path(files[f].model));
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            const bz_embedder_options o = {
                .size = sizeof o, .exact = ways[i].exact, .threads = 2, .kernels = ways[i].kernels};
            begin("%s%s", files[f].what, ways[i].what);
            check_vectors(&g, m, &o, !ways[i].exact && files[f].bf16 ? 5e-3 : 1e-5);
        }
        begin("%s: inner tensors", files[f].what);
        check_inside(&g, m, 1 + m->text.config.layers + (m->text.config.ple_width == 0));
        bz_model_free(m);
        golden_close(&g);
    }
}

/* ---- tokens ------------------------------------------------------------------------------- */

/* The texts whose tokens the data has, by sentencepiece. */
static const char *const texts[] = {
    "",
    "a",
    "the water",
    " the water",
    "The  cat   sat\n\nthere\t\tnow.",
    "task: search result | query: what is the time?",
    "title: none | text: people find water near the house",
    "na\u00efve caf\u00e9 \u2014 \u201cquoted\u201d \u20ac5",
    "\u65e5\u672c\u8a9e with \u4e2d\u6587 and \u05e2\u05d1\u05e8\u05d9\u05ea \U0001F600",
    "<eos and bos> typed wrong",
    "line one\r\nline two\n\n\nline five",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "under_score CamelCase 12345 3.14",
    "<h1>tags</h1> more      words",
    "every second question   remember\n the    ground \n",
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static void test_tokens(void)
{
    golden g;
    golden_open(&g, golden_path("embedding/golden.gguf"));
    for (int f = 0; f < 2; f++) {
        bz_model *m = open_or_fail(golden_path(files[f].model));
        bz_embedder *e = embedder_or_fail(m, NULL);
        begin("tokens in %s", files[f].what);
        for (int i = 0; i < N_TEXTS; i++) {
            size_t n;
            const int32_t *want = golden_i32(&g, &n, "tok.%d.ids", i);
            int32_t got[128];
            bz_error err = {0};
            const int64_t made =
                bz_tokenize(m, texts[i], strlen(texts[i]), false, false, got, 128, &err);
            if (!CHECKF(want && made + 2 == (int64_t)n, "text %d: %lld tokens", i,
                        (long long)made)) {
                continue;
            }
            CHECKF(memcmp(got, want + 1, (size_t)made * sizeof *got) == 0, "text %d", i);
            /* the vector of the text is that of its tokens, bos and eos included */
            const bz_embed_input both[2] = {{.text = texts[i], .len = strlen(texts[i])},
                                            {.ids = want, .n_ids = n}};
            uint32_t d;
            float *v = vectors_of(e, both, 2, NULL, &d, &err);
            CHECKF(v && memcmp(v, v + d, d * sizeof *v) == 0, "text %d: %s", i, err.text);
            free(v);
        }
        bz_embedder_free(e);
        bz_model_free(m);
    }
    golden_close(&g);
}

/* Runs of spaces in both spellings, longer than any token; user-defined texts; bytes. */
static void test_long_texts(void)
{
    begin("long runs tokenize as their parts do");
    bz_model *m = open_or_fail(golden_path("embedding/text.gguf"));
    char text[4096];
    int32_t ids[4096], want[4096];
    bz_error err = {0};
    memset(text, ' ', 100);
    const int64_t spaces = bz_tokenize(m, text, 100, false, false, ids, 4096, &err);
    size_t len = 0, covered = 0;
    for (int64_t i = 0; i < spaces; i++) {
        bz_token_piece(m, ids[i], &len);
        covered += len; /* spelled as spaces in this layout; a single one as U+2581 */
    }
    CHECKF(spaces == 4 && covered == 31 * 3 + 7, "%lld tokens for %zu bytes", (long long)spaces,
           covered);
    /* a run without a border is merged by a heap, and a short one by a scan: the same result */
    size_t n = 0;
    for (int i = 0; i < 60; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "water near the house\n");
    }
    const int64_t one = bz_tokenize(m, text, 21, false, false, want, 4096, &err);
    const int64_t all = bz_tokenize(m, text, n, false, false, ids, 4096, &err);
    CHECK(all == 60 * one);
    for (int i = 0; i < 60 && all == 60 * one; i++) {
        CHECK(memcmp(ids + i * one, want, (size_t)one * sizeof *ids) == 0);
    }
    bz_model_free(m);
}

/* ---- batches ------------------------------------------------------------------------------ */

static void test_batch(void)
{
    enum { N = 150 };
    for (int f = 1; f < N_FILES; f++) {
        bz_model *m = open_or_fail(golden_path(files[f].model));
        const bz_embedder_options o = {.size = sizeof o, .threads = 2};
        bz_embedder *e = embedder_or_fail(m, &o);
        bz_embed_input in[N];
        char text[N][700];
        bz_error err = {0};
        uint32_t d;
        begin("%s: a vector does not depend on what is computed with it", files[f].what);
        for (int i = 0; i < N; i++) { /* some passes are full of rows, some of texts, one is long */
            size_t n = 0;
            const int words = i < 70 ? i % 3 : i == 100 ? 110 : i * 7 % 40;
            text[i][0] = 0;
            for (int k = 0; k < words; k++) {
                n += (size_t)snprintf(text[i] + n, sizeof text[i] - n, "%s ",
                                      k % 3 == i % 3 ? "water" : "near");
            }
            in[i] = (bz_embed_input){.text = text[i], .len = n};
        }
        float *all = vectors_of(e, in, N, NULL, &d, &err);
        if (CHECKF(all != NULL, "%s", err.text)) {
            for (int i = 0; i < N; i += quick_run() ? 25 : 5) {
                float *one = vectors_of(e, &in[i], 1, NULL, &d, &err);
                CHECKF(one && memcmp(one, all + (size_t)i * d, d * sizeof *one) == 0, "text %d", i);
                free(one);
            }
        }
        free(all);
        bz_embedder_free(e);
        bz_model_free(m);
    }
}

static void test_tasks(void)
{
    begin("a task is its words before the text");
    bz_model *m = open_or_fail(golden_path("embedding/model.gguf"));
    bz_embedder *e = embedder_or_fail(m, NULL);
    static const struct {
        const char *task, *title, *whole;
    } cases[] = {
        {"query", NULL, "task: search result | query: the water"},
        {"document", NULL, "title: none | text: the water"},
        {"document", "Rivers", "title: Rivers | text: the water"},
        {"similarity", NULL, "task: sentence similarity | query: the water"},
    };
    bz_error err = {0};
    uint32_t d, n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bz_embed_options o = {
            .size = sizeof o, .task = cases[i].task, .title = cases[i].title};
        const bz_embed_input plain = {.text = "the water", .len = 9},
                             whole = {.text = cases[i].whole, .len = strlen(cases[i].whole)};
        float *a = vectors_of(e, &plain, 1, &o, &d, &err),
              *b = vectors_of(e, &whole, 1, NULL, &d, &err);
        CHECKF(a && b && memcmp(a, b, d * sizeof *a) == 0, "%s", cases[i].whole);
        free(a);
        free(b);
    }
    while (bz_embed_task(n)) {
        const bz_embed_options o = {.size = sizeof o, .task = bz_embed_task(n++)};
        free(vectors_of(e, &(bz_embed_input){.text = "x", .len = 1}, 1, &o, &d, &err));
        CHECKF(err.code == BZ_OK, "%s", err.text);
    }
    CHECK(n == 9);
    bz_embedder_free(e);
    bz_model_free(m);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void refuses(bz_embedder *e, const bz_embed_input *in, const bz_embed_options *o,
                    bz_status code, const char *why)
{
    bz_error err = {0};
    uint32_t d;
    float *v = vectors_of(e, in, in ? 1 : 0, o, &d, &err);
    CHECKF(!v && err.code == code && strcmp(err.text, why) == 0, "'%s'", err.text);
    free(v);
}

static void test_refusals(void)
{
    begin("what cannot be computed is refused");
    bz_model *m = open_or_fail(golden_path("embedding/text.gguf"));
    bz_embedder *e = embedder_or_fail(m, NULL);
    static char longer[6000];
    for (int i = 0; i < 3000; i++) {
        memcpy(longer + 2 * i, "1 ", 2);
    }
    const bz_embed_input water = {.text = "the water", .len = 9},
                         too_long = {.text = longer, .len = 6000};
    const int32_t wrong[] = {2, 832, 1};
    refuses(e, NULL, NULL, BZ_BAD_REQUEST, "No text was given.");
    refuses(e, &water, &(bz_embed_options){.size = sizeof(bz_embed_options), .dimensions = 65},
            BZ_BAD_REQUEST, "Vectors of 65 numbers were requested; this model's have 64.");
    refuses(e, &water, &(bz_embed_options){.size = sizeof(bz_embed_options), .task = "poetry"},
            BZ_BAD_REQUEST,
            "There is no task 'poetry'; tasks are query, document, question-answering, "
            "fact-checking, classification, clustering, similarity, code-retrieval and "
            "summarization.");
    refuses(e, &water, &(bz_embed_options){.size = sizeof(bz_embed_options), .title = "T"},
            BZ_BAD_REQUEST, "Only documents have a title; set the task to document.");
    refuses(e, &(bz_embed_input){.ids = wrong, .n_ids = 3}, NULL, BZ_BAD_REQUEST,
            "Text 1 has a token 832; the vocabulary has 832.");
    refuses(e, &(bz_embed_input){.ids = wrong}, NULL, BZ_BAD_REQUEST, "Text 1 has no tokens.");
    bz_error err = {0};
    uint32_t d;
    float *v = vectors_of(e, &too_long, 1, NULL, &d, &err);
    CHECKF(!v && err.code == BZ_CONTEXT_FULL &&
               strstr(err.text, "the model reads at most 2048. Shorten it, or set truncate to use "
                                "its beginning."),
           "'%s'", err.text);

    begin("a text that is too long is cut when asked");
    int32_t ids[6002];
    const int64_t n = bz_tokenize(m, longer, 6000, false, true, ids, 6001, &err);
    ids[2047] = 1;
    const bz_embed_options cut = {.size = sizeof cut, .truncate = true};
    const bz_embed_input first = {.ids = ids, .n_ids = 2048};
    float *a = vectors_of(e, &too_long, 1, &cut, &d, &err);
    float *b = vectors_of(e, &first, 1, NULL, &d, &err);
    CHECKF(n > 2048 && a && b && memcmp(a, b, d * sizeof *a) == 0, "%s", err.text);
    free(a);
    free(b);

    begin("an embedder has one job, and its results come at the end");
    bz_job *job = NULL, *other = NULL;
    size_t count;
    CHECK(bz_embed_texts(e, &water, 1, NULL, &job, &err) == BZ_OK);
    CHECK(bz_embed_texts(e, &water, 1, NULL, &other, &err) == BZ_BAD_REQUEST);
    CHECK(!bz_job_vectors(job, &count, &d) && count == 0 && !bz_job_vector_tokens(job, &count));
    CHECK(bz_job_run(job, NULL, &err) == BZ_OK);
    const uint32_t *tokens = bz_job_vector_tokens(job, &count);
    CHECK(tokens && count == 1 &&
          tokens[0] == bz_tokenize(m, "the water", 9, false, true, NULL, 0, &err) + 1);
    bz_job_free(job);
    bz_embedder_free(e);

    begin("a model of embeddings writes no text");
    static const char why[] = "This model computes vectors of texts and writes none; use it with "
                              "'embed', or open a chat model.";
    bz_session *s = NULL;
    bz_batch *batch = NULL;
    bz_turn *turn = NULL;
    static const char request[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}";
    CHECK(bz_session_new(&s, m, NULL, &err) == BZ_UNSUPPORTED_MODEL && strcmp(err.text, why) == 0);
    CHECK(bz_batch_new(&batch, m, NULL, &err) == BZ_UNSUPPORTED_MODEL &&
          strcmp(err.text, why) == 0);
    CHECK(bz_turn_new(&turn, m, request, strlen(request), &err) == BZ_UNSUPPORTED_MODEL &&
          strcmp(err.text, why) == 0);
    bz_model_info info = {.size = sizeof info};
    CHECK(bz_model_get_info(m, &info, &err) == BZ_OK && info.embedding == 64);
    CHECK(bz_model_embedding(m) == 64);
    bz_model_free(m);

    begin("a chat model computes no vectors");
    m = open_or_fail(model_path("nano-e-f32.gguf"));
    CHECK(bz_model_embedding(m) == 0);
    CHECK(bz_embedder_new(&e, m, NULL, &err) == BZ_UNSUPPORTED_MODEL &&
          strcmp(err.text, "This model writes text and computes no vectors; open an EmbeddingGemma "
                           "model for that.") == 0);
    bz_model_free(m);
}

/* ---- files --------------------------------------------------------------------------------- */

#define L   "gemma-embedding."
#define G   "gemma3."
#define BAD BZ_BAD_FILE

static const edit llama_edits[] = {
    {"unchanged", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"no base for sliding layers", DROP_KEY, L "rope.freq_base_swa", 0, NULL, BZ_OK, NULL},
    {"no pooling type", DROP_KEY, L "pooling_type", 0, NULL, BZ_OK, NULL},
    {"pooling the last token", SET_U32, L "pooling_type", 3, NULL, BAD,
     "The key gemma-embedding.pooling_type is not 1, the mean of all tokens."},
    {"no window", DROP_KEY, L "attention.sliding_window", 0, NULL, BAD,
     "The key gemma-embedding.attention.sliding_window is missing, so this is not a complete "
     "EmbeddingGemma file."},
    {"a pattern as a period", ADD_U32, L "attention.sliding_window_pattern", 6, NULL, BZ_OK, NULL},
    {"a period of nothing", ADD_U32, L "attention.sliding_window_pattern", 0, NULL, BAD,
     "The key gemma-embedding.attention.sliding_window_pattern is 0; it must be between 1 and "
     "1024."},
    {"no value projection", DROP_TENSOR, "blk.3.attn_v.weight", 0, NULL, BAD,
     "The tensor blk.3.attn_v.weight is missing."},
    {"a key for a dense layer that is missing", DROP_TENSOR, "dense_3.weight", 0, NULL, BAD,
     "The tensor dense_3.weight is missing."},
    {"a dense layer of another size than its key", SET_U32, L "dense_2_feat_out", 95, NULL, BAD,
     "The tensor dense_2.weight has shape [64, 96, 1]; the configuration needs [64, 95, 1]."},
    {"a dense layer that reads another size", SET_U32, L "dense_3_feat_in", 95, NULL, BAD,
     "The tensor dense_3.weight has another input than its key says."},
    {"the last norm's other name", RENAME_TENSOR, "output_norm.weight", 0, "norm.weight", BZ_OK,
     NULL},
    {"no scores", DROP_KEY, "tokenizer.ggml.scores", 0, NULL, BZ_UNSUPPORTED_MODEL,
     "The file has no list of texts tokenizer.ggml.merges, which Gemma 4's tokenizer needs."},
    {"too few scores", SET_ARRAY, "tokenizer.ggml.scores", 60, NULL, BAD,
     "tokenizer.ggml.scores does not have one number for each token."},
};

static const edit ollama_edits[] = {
    {"a chat model", SET_STR, "general.architecture", 0, "gemma2", BZ_UNSUPPORTED_MODEL,
     "This file's architecture is 'gemma2'; Bezel runs Gemma 4 (architectures 'gemma4' and "
     "'diffusion-gemma') and EmbeddingGemma ('gemma-embedding')."},
    {"known by its dense layers", DROP_KEY, G "attention.causal", 0, NULL, BZ_OK, NULL},
    {"known by its keys", DROP_TENSOR, "dense.0.weight", 0, NULL, BAD,
     "The tensor dense.1.weight has shape [96, 64, 1]; the configuration needs [64, 64, 1]."},
    {"a pattern for too few layers", SET_ARRAY, G "attention.sliding_window_pattern", 6, NULL, BAD,
     "The key gemma3.attention.sliding_window_pattern must have one element per layer."},
};

static const edit second_edits[] = {
    {"no pattern", DROP_KEY, "gemma-embedding2.attention.sliding_window_pattern", 0, NULL, BAD,
     "The key gemma-embedding2.attention.sliding_window_pattern is missing, so this is not a "
     "complete EmbeddingGemma 2 file."},
    {"no per-layer width", DROP_KEY, "gemma-embedding2.embedding_length_per_layer_input", 0, NULL,
     BAD,
     "The key gemma-embedding2.embedding_length_per_layer_input is missing, so this is not a "
     "complete EmbeddingGemma 2 file."},
    {"no projection of per-layer inputs", DROP_TENSOR, "per_layer_model_proj.weight", 0, NULL, BAD,
     "The tensor per_layer_model_proj.weight is missing."},
    {"without the dense layer, whose keys say it is there", DROP_TENSOR, "dense_2.weight", 0, NULL,
     BAD, "The tensor dense_2.weight is missing."},
};

static void run_edits(const char *path, const edit *edits, size_t n)
{
    golden from;
    golden_open(&from, golden_path(path));
    for (size_t i = 0; i < n; i++) {
        const edit *x = &edits[i];
        gguf_build b;
        bz_model *m = NULL;
        bz_error err = {0};
        begin("%s: %s", path, x->title);
        build_edited(&b, &from, x);
        const bz_status status = open_bytes(b.bytes, b.size, &m, &err);
        CHECKF(status == x->code && (!x->expected || strcmp(err.text, x->expected) == 0), "%d '%s'",
               (int)status, err.text);
        bz_model_free(m);
        gb_free(&b);
    }
    golden_close(&from);
}

/* What a converter left out or wrote otherwise. */
static void test_converters(void)
{
    golden from, g;
    golden_open(&from, golden_path("embedding/text.gguf"));
    golden_open(&g, golden_path("embedding/golden.gguf"));
    bz_embed_input in = {0};
    in.ids = golden_i32(&g, &in.n_ids, "emb.5.tokens");
    gguf_build b;
    bz_model *m = NULL;
    bz_error err = {0};

    begin("a file without the dense layers is used, with a notice");
    static const char *const dropped[] = {L "dense_2_feat_in", L "dense_2_feat_out",
                                          L "dense_3_feat_in", L "dense_3_feat_out",
                                          "dense_2.weight",    "dense_3.weight"};
    gguf_build steps[6];
    golden at = from;
    for (int i = 0; i < 6; i++) {
        const edit e = {"", i < 4 ? DROP_KEY : DROP_TENSOR, dropped[i], 0, NULL, BZ_OK, NULL};
        uint64_t more;
        build_edited(&steps[i], &at, &e);
        if (i) {
            bz_gguf_free(&at.gguf);
        }
        at.map.data = steps[i].bytes;
        CHECK(bz_gguf_parse(&at.gguf, steps[i].bytes, steps[i].size, steps[i].size, &more, &err) ==
              BZ_GGUF_DONE);
    }
    CHECKF(open_bytes(steps[5].bytes, steps[5].size, &m, &err) == BZ_OK, "%s", err.text);
    bz_embedder *e = embedder_or_fail(m, NULL);
    size_t n;
    uint32_t d;
    const float *want = golden_f32(&g, &n, "emb.5.embedding_no_dense");
    float *v = vectors_of(e, &in, 1, NULL, &d, &err);
    CHECK(v && want && n == d && max_difference(v, want, d) <= 1e-5);
    CHECK(bz_embedder_notice(e) && strstr(bz_embedder_notice(e), "lacks the model's dense layers"));
    free(v);
    bz_embedder_free(e);
    bz_model_free(m);
    bz_gguf_free(&at.gguf);
    for (int i = 0; i < 6; i++) {
        gb_free(&steps[i]);
    }

    static const struct {
        double width;
        const char *name;
        uint32_t window;
    } windows[] = {{257, "golden", 129}, {27, "golden", 14}, {512, "golden", 257}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        begin("a window of %.0f is half of it on either side", windows[i].width);
        const edit x = {"",    SET_U32, L "attention.sliding_window", windows[i].width, NULL,
                        BZ_OK, NULL};
        build_edited(&b, &from, &x);
        CHECKF(open_bytes(b.bytes, b.size, &m, &err) == BZ_OK, "%s", err.text);
        CHECK(m->text.config.window == windows[i].window);
        bz_model_free(m);
        gb_free(&b);
    }
    begin("in a file named EmbeddingGemma 257 means 512");
    const edit name = {"", SET_STR, "general.name", 0, "Embedding Gemma-300M", BZ_OK, NULL},
               width = {"", SET_U32, L "attention.sliding_window", 257, NULL, BZ_OK, NULL};
    gguf_build named;
    uint64_t more;
    build_edited(&named, &from, &name);
    at = from;
    at.map.data = named.bytes;
    CHECK(bz_gguf_parse(&at.gguf, named.bytes, named.size, named.size, &more, &err) ==
          BZ_GGUF_DONE);
    build_edited(&b, &at, &width);
    CHECKF(open_bytes(b.bytes, b.size, &m, &err) == BZ_OK, "%s", err.text);
    CHECK(m->text.config.window == 257);
    bz_model_free(m);
    bz_gguf_free(&at.gguf);
    gb_free(&named);
    gb_free(&b);
    golden_close(&from);
    golden_close(&g);
}

int main(void)
{
    test_vectors();
    test_tokens();
    test_long_texts();
    test_batch();
    test_tasks();
    test_refusals();
    run_edits("embedding/text.gguf", llama_edits, sizeof llama_edits / sizeof *llama_edits);
    run_edits("embedding/model.gguf", ollama_edits, sizeof ollama_edits / sizeof *ollama_edits);
    run_edits("embedding2/text.gguf", second_edits, sizeof second_edits / sizeof *second_edits);
    test_converters();
    return finish();
}
