/* Drafters: the reference's drafts, clusters of tokens, and files that do not fit their model. */
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "session/session.h"
#include "support/check.h"
#include "support/clusters.h"
#include "support/drafter.h"
#include "support/edited.h"
#include "support/forward.h"
#include "support/golden.h"

#define K            "gemma4-assistant."
#define BAD          BZ_BAD_FILE
#define OF_ANOTHER   ", so this is the drafter of another model."
#define NOT_COMPLETE " is missing, so this is not a complete Gemma 4 drafter file."

static const edit edits[] = {
    {"as it is", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"no width of the model", DROP_KEY, K "embedding_length_out", 0, NULL, BZ_OK, NULL},
    {"no scale of a layer", DROP_TENSOR, "blk.1.layer_output_scale.weight", 0, NULL, BZ_OK, NULL},
    {"another model's width", SET_U32, K "embedding_length_out", 128, NULL, BAD,
     "The key gemma4-assistant.embedding_length_out differs from the model's width" OF_ANOTHER},
    {"another model's window", SET_U32, K "attention.sliding_window", 16, NULL, BAD,
     "The key gemma4-assistant.attention.sliding_window differs from the model's" OF_ANOTHER},
    {"another model's heads", SET_U32, K "attention.head_count_kv", 2, NULL, BAD,
     "The key gemma4-assistant.attention.head_count_kv does not fit the model's keys and "
     "values" OF_ANOTHER},
    {"no kinds of layers", DROP_KEY, K "attention.sliding_window_pattern", 0, NULL, BAD,
     "The key gemma4-assistant.attention.sliding_window_pattern" NOT_COMPLETE},
    {"fewer heads than layers", SET_U32, K "block_count", 4, NULL, BAD,
     "The key gemma4-assistant.attention.head_count_kv has 3 elements for 4 layers."},
    {"no layers", SET_U32, K "block_count", 0, NULL, BAD,
     "The key gemma4-assistant.block_count is 0; it must be between 1 and 1024."},
    {"per-layer embeddings", SET_U32, K "embedding_length_per_layer_input", 8, NULL, BAD,
     "The key gemma4-assistant.embedding_length_per_layer_input or its number of experts is not 0; "
     "drafters have neither."},
    {"experts", ADD_U32, K "expert_count", 4, NULL, BAD,
     "The key gemma4-assistant.embedding_length_per_layer_input or its number of experts is not 0; "
     "drafters have neither."},
    {"no projection", DROP_TENSOR, "nextn.pre_projection.weight", 0, NULL, BAD,
     "The tensor nextn.pre_projection.weight is missing."},
    {"a projection of another width", SET_COLS, "nextn.pre_projection.weight", 256, NULL, BAD,
     "The tensor nextn.pre_projection.weight has shape [256, 64, 1, 1]; [512, 64, 1] is expected."},
    {"queries of more heads", SET_ROWS, "blk.2.attn_q.weight", 640, NULL, BAD,
     "The tensor blk.2.attn_q.weight has shape [64, 640, 1, 1]; [64, 512, 1] is expected."},
    {"another vocabulary", SET_ROWS, "token_embd.weight", 700, NULL, BAD,
     "The tensor token_embd.weight has shape [64, 700, 1, 1]; [64, 768, 1] is expected."},
};

#define CENTROIDS "masked_embd_centroids.weight"
#define ORDERING  "masked_embd_ordering"

/* With 48 clusters of 16 tokens. */
static const edit cluster_edits[] = {
    {"as they are", NOTHING, "", 0, NULL, BZ_OK, NULL},
    {"no centroids", DROP_TENSOR, CENTROIDS, 0, NULL, BAD,
     "The tensor masked_embd_centroids.weight is missing."},
    {"no ordering", DROP_TENSOR, ORDERING, 0, NULL, BAD,
     "The tensor masked_embd_ordering is missing."},
    {"another width", SET_COLS, CENTROIDS, 32, NULL, BAD,
     "The tensor masked_embd_centroids.weight has shape [32, 48, 1, 1]; [64, 0, 1] is expected."},
    {"clusters of a part of a token", SET_ROWS, CENTROIDS, 50, NULL, BAD,
     "The tensor masked_embd_centroids.weight has 50 rows, but 768 tokens do not divide into as "
     "many clusters."},
    {"more clusters than tokens", SET_ROWS, CENTROIDS, 1536, NULL, BAD,
     "The tensor masked_embd_centroids.weight has 1536 rows, but 768 tokens do not divide into as "
     "many clusters."},
    {"one cluster", SET_ROWS, CENTROIDS, 1, NULL, BZ_OK, NULL},
    {"clusters of one token", SET_ROWS, CENTROIDS, 768, NULL, BZ_OK, NULL},
    {"fewer ids than tokens", SET_COLS, ORDERING, 767, NULL, BAD,
     "The tensor masked_embd_ordering has shape [767, 1, 1, 1]; [768, 1, 1] is expected."},
    {"ids as floats, which are left alone", SET_TYPE, ORDERING, BZ_F32, NULL, BZ_OK, NULL},
    {"ids that are no integers", SET_TYPE, ORDERING, BZ_F16, NULL, BZ_UNSUPPORTED_MODEL,
     "The tensor masked_embd_ordering has type F16; ids must be I32 or I64."},
    {"centroids that are integers", SET_TYPE, CENTROIDS, BZ_I32, NULL, BZ_UNSUPPORTED_MODEL,
     "The tensor masked_embd_centroids.weight has type I32, which Bezel does not run."},
};

/* Ids past the last token, in the bytes of the file. */
static const struct {
    const char *title;
    bz_type type;
    unsigned element;
    int64_t id;
    const char *expected;
} id_edits[] = {
    {"the last token", BZ_I32, 767, 767, NULL},
    {"the token after the last", BZ_I32, 767, 768,
     "The tensor masked_embd_ordering holds 768, which is no token of the model (element 767)."},
    {"a negative id", BZ_I32, 3, -1,
     "The tensor masked_embd_ordering holds -1, which is no token of the model (element 3)."},
    {"a negative id of 64 bits", BZ_I64, 3, -2,
     "The tensor masked_embd_ordering holds -2, which is no token of the model (element 3)."},
    {"an id that is one in its low word", BZ_I64, 0, (1ll << 32) + 5,
     "The tensor masked_embd_ordering holds 4294967301, which is no token of the model (element "
     "0)."},
};

/* Opens a model of a file with a drafter in memory. */
static bz_status open_with(const char *path, const void *drafter, size_t size, bz_error *err)
{
    bz_os_map map;
    bz_job *job = NULL;
    if (bz_os_map_file(path, &map, err) != BZ_OK) {
        return err->code;
    }
    const bz_input inputs[] = {{"drafter.gguf", size, drafter}, {"m.gguf", map.size, map.data}};
    bz_status status = bz_model_open(&job, inputs, 2, NULL, err);
    status = status == BZ_OK ? bz_job_run(job, NULL, err) : status;
    if (status == BZ_OK) {
        bz_model_free(bz_job_model(job));
    }
    bz_job_free(job);
    bz_os_unmap(&map);
    return status;
}

static void test_files(void)
{
    golden from;
    golden_open(&from, golden_path("assistant/assistant.gguf"));
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const edit *e = &edits[i];
        gguf_build b;
        bz_error err = {0};
        begin("a drafter: %s", e->title);
        build_edited(&b, &from, e);
        const bz_status status =
            open_with(golden_path("dense-like/text.gguf"), b.bytes, b.size, &err);
        char want[300] = "";
        if (e->expected) {
            snprintf(want, sizeof want, "drafter.gguf: %s", e->expected);
        }
        CHECKF(status == e->code, "status %s: %s", bz_status_name(status), err.text);
        CHECKF(strcmp(err.text, want) == 0, "says: %s", err.text);
        gb_free(&b);
    }
    begin("a drafter of a model that does not write token by token");
    static const char *const others[] = {"diffusion/text.gguf", "embedding/text.gguf"};
    for (size_t i = 0; i < 2; i++) {
        bz_error err = {0};
        CHECKF(open_with(golden_path(others[i]), from.map.data, from.map.size, &err) ==
                       BZ_BAD_REQUEST &&
                   strstr(err.text, "token by token have a drafter"),
               "%s: %s", others[i], err.text);
    }
    golden_close(&from);
}

static void must_say(bz_status code, const char *expected, const gguf_build *b)
{
    bz_error err = {0};
    const bz_status status =
        open_with(golden_path("dense-like/text.gguf"), b->bytes, b->size, &err);
    CHECKF(status == code, "status %s: %s", bz_status_name(status), err.text);
    CHECKF(expected ? strstr(err.text, expected) != NULL : !err.text[0], "says: %s", err.text);
}

static void test_cluster_files(void)
{
    char drafter[300];
    gguf_build whole, b;
    bz_error err = {0};
    uint64_t at_least;
    snprintf(drafter, sizeof drafter, "%s", golden_path("assistant/assistant.gguf"));
    build_clustered(&whole, drafter, &(cluster_options){.clusters = 48, .ids = BZ_I32});
    golden from = {.map.data = whole.bytes};
    CHECK(bz_gguf_parse(&from.gguf, whole.bytes, whole.size, whole.size, &at_least, &err) ==
          BZ_GGUF_DONE);
    for (size_t i = 0; i < sizeof cluster_edits / sizeof *cluster_edits; i++) {
        const edit *e = &cluster_edits[i];
        begin("clusters: %s", e->title);
        build_edited(&b, &from, e);
        must_say(e->code, e->expected, &b);
        gb_free(&b);
    }
    bz_gguf_free(&from.gguf);
    gb_free(&whole);
    for (size_t i = 0; i < sizeof id_edits / sizeof *id_edits; i++) {
        const unsigned each = id_edits[i].type == BZ_I64 ? 8 : 4;
        begin("clusters: %s", id_edits[i].title);
        build_clustered(&b, drafter, &(cluster_options){.clusters = 48, .ids = id_edits[i].type});
        CHECK(bz_gguf_parse(&from.gguf, b.bytes, b.size, b.size, &at_least, &err) == BZ_GGUF_DONE);
        const size_t at = bz_gguf_find_tensor(&from.gguf, ORDERING)->offset;
        gb_set(&b, at + id_edits[i].element * each, each, (uint64_t)id_edits[i].id);
        bz_gguf_free(&from.gguf);
        must_say(id_edits[i].expected ? BZ_BAD_FILE : BZ_OK, id_edits[i].expected, &b);
        gb_free(&b);
    }
}

static void test_clusters(void)
{
    static const struct {
        const char *title;
        cluster_options o;
    } cases[] = {
        {"48 clusters", {.clusters = 48, .ids = BZ_I32}},
        {"48 clusters, files that are read", {.clusters = 48, .ids = BZ_I64, .by_reads = true}},
        {"768 clusters of one token, ids of 64 bits", {.clusters = 768, .ids = BZ_I64}},
        {"no more clusters than are looked through", {.clusters = 24, .ids = BZ_I64}},
        {"tokens that are all equally good", {.clusters = 48, .ids = BZ_I32, .equal_head = true}},
        {"clusters that are all equally good",
         {.clusters = 48, .ids = BZ_I32, .equal_centroids = true}},
    };
    const bz_session_options exact = {.size = sizeof exact, .exact = true, .threads = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin("drafts: %s", cases[i].title);
        check_clusters(NULL, &exact, &cases[i].o, 1e-4);
    }
}

static void test_requests(void)
{
    char text[300];
    bz_model *m = NULL;
    bz_error err = {0};
    begin("a drafter is requested, but the file is none");
    snprintf(text, sizeof text, "%s", golden_path("e-like/mmproj.gguf"));
    const bz_open_options o = {.size = sizeof o, .draft = text};
    CHECKF(bz_model_open_file(&m, golden_path("e-like/text.gguf"), NULL, &o, &err) ==
                   BZ_BAD_REQUEST &&
               strstr(err.text, "mmproj.gguf is not a drafter."),
           "%s", err.text);

    begin("the file that is to be a drafter is not among those to be opened");
    bz_job *open = NULL;
    const bz_input only = {"m.gguf", 100, NULL};
    const bz_open_options other = {.size = sizeof other, .draft = "drafter.gguf"};
    CHECKF(bz_model_open(&open, &only, 1, &other, &err) == BZ_BAD_REQUEST && !open &&
               strstr(err.text, "drafter.gguf is not among the files"),
           "%s", err.text);

    begin("drafts of a drafter that was not opened");
    m = open_or_fail(golden_path("dense-like/text.gguf"));
    bz_session *s = session_or_fail(m, NULL);
    const int32_t ids[] = {2, 5, 7};
    CHECK(prefill(s, ids, 3, 0, NULL, &err) == BZ_OK);
    const bz_generate_options go = {
        .size = sizeof go, .draft = BZ_DRAFT_MODEL, .sampling = {.greedy = true}};
    bz_job *job = NULL;
    CHECKF(bz_session_generate(s, &go, &job, &err) == BZ_BAD_REQUEST &&
               strstr(err.text, "opened without a drafter"),
           "%s", err.text);
    bz_session_free(s);
    bz_model_free(m);

    begin("drafts of a model that writes many tokens at once");
    m = open_or_fail(golden_path("diffusion/text.gguf"));
    s = session_or_fail(m, NULL);
    const bz_generate_options look_up = {.size = sizeof look_up, .draft = BZ_DRAFT_LOOKUP};
    CHECK(prefill(s, ids, 3, 0, NULL, &err) == BZ_OK);
    CHECKF(bz_session_generate(s, &look_up, &job, &err) == BZ_BAD_REQUEST &&
               strstr(err.text, "nothing to draft"),
           "%s", err.text);
    bz_session_free(s);
    bz_model_free(m);
}

int main(void)
{
    begin("drafts of the reference");
    check_assistant(NULL, &(bz_session_options){.size = sizeof(bz_session_options), .exact = true},
                    1e-3);
    test_clusters();
    test_files();
    test_cluster_files();
    test_requests();
    return finish();
}
