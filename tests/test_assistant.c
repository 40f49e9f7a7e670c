/* Drafters: the reference's drafts, and files that do not fit their model. */
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "session/session.h"
#include "support/check.h"
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
    test_files();
    test_requests();
    return finish();
}
