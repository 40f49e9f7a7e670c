/* What `bezel show` knows about its files: gathered once, printed as text or as JSON. */
#ifndef BZ_CLI_SHOW_H
#define BZ_CLI_SHOW_H

#include "base/os.h"
#include "cli/cli.h"
#include "gpu/run/backend.h"
#include "session/model.h"
#include "model/memory.h"
#include "plan/plan.h"

/* Tensors are told apart by their names: what an image or a sound passes through before it
 * meets the text model. */
typedef enum show_group {
    SHOW_TEXT,
    SHOW_VISION,
    SHOW_AUDIO,
    SHOW_PROJECTOR,
    SHOW_GROUPS
} show_group;

typedef struct show_sum {
    uint64_t tensors, bytes, values;
} show_sum;

typedef struct show_type {
    uint32_t id;
    show_sum sum;
} show_type;

/* A vision or audio tower as its keys describe it; 0 and len 0 where they do not. The
 * unified models have none but a projector, and its tensors carry the projector's name. */
typedef struct show_tower {
    uint64_t layers, width;
    bz_str projector;
    bool there;
} show_tower;

enum { SHOW_CONTEXTS = 5 };

typedef struct show_facts {
    size_t n_files;
    char **names; /* [n_files] owned, like all arrays here */
    bz_os_map *maps;
    bz_gguf *headers;
    bz_file *files;

    size_t main;         /* the file whose metadata describes the model */
    uint64_t total_size; /* bytes of all files */
    bz_str architecture; /* len 0: not said */
    bz_str title;        /* general.name; len 0: not said */
    const char *flavour; /* "llama.cpp" or "ollama"; NULL where the question makes no sense */

    show_sum groups[SHOW_GROUPS];
    show_type types[BZ_TYPE_END]; /* most bytes first */
    size_t n_types;
    show_tower vision, audio;

    /* What opening the model said. With a refusal the configuration may still be readable. */
    bz_model *model; /* NULL: refused */
    bz_error refusal;
    const bz_config *config; /* NULL: none */
    bz_config own_config;
    const char *published; /* "E2B", ...; NULL: no published size */

    bz_memory memory; /* with a model only */
    bz_fit gpu;       /* on the least of GPUs */
    uint32_t gpu_context;
    bz_error gpu_refusal;
    uint32_t contexts[SHOW_CONTEXTS];
    size_t n_contexts;
    char verdict[480]; /* one sentence */
} show_facts;

/* A plan on the GPU. */
typedef struct show_gpu {
    char adapter[128];
    bz_gpu_dispatch *dispatches; /* [n] */
    size_t n;
} show_gpu;

/* Prints a message and returns false, with the exit code, when a file cannot be read. */
bool show_load(show_facts *f, const cli_options *o, int *exit_code);
void show_free(show_facts *f);

bz_plan *show_plan(const show_facts *f, const cli_options *o,
                   int *exit_code); /* NULL after a message */

void show_as_text(const show_facts *f);
int show_as_json(const show_facts *f); /* exit code */
void show_plan_as_text(const bz_plan *plan);
int show_plan_as_json(const bz_plan *plan, const show_gpu *g); /* g: NULL unless asked for */

/* show_gpu.c; the model is loaded onto the GPU for it. False after a message. */
bool show_gpu_load(show_gpu *g, const cli_options *o, const bz_plan *plan, int *exit_code);
void show_gpu_as_text(const show_gpu *g, const bz_plan *plan);
void show_gpu_free(show_gpu *g);

/* ---- facts both forms want ---------------------------------------------------- */

static inline const bz_gguf *show_main(const show_facts *f)
{
    return &f->headers[f->main];
}

const char *show_value_type(bz_gguf_type type); /* "u32", "str" */
/* A number from a key of the model's own architecture ("block_count"); 0: not there. */
uint64_t show_arch_number(const show_facts *f, const char *key);

void show_metadata_table(const show_facts *f);
void show_tensor_table(const show_facts *f);

/* ---- text that is safe to show (show_safe.c) ------------------------------------ */

enum { SHOW_COLUMNS = 100, SHOW_SAFE_MAX = 1024 };

/* Writes s so that no terminal can be garbled: at most `columns` (up to 250) wide, dots where
 * it was cut, controls and invisible characters as escapes. Both return out. */
const char *show_safe(bz_str s, unsigned columns, char out[SHOW_SAFE_MAX]);
const char *show_path(const char *path, unsigned columns, char out[SHOW_SAFE_MAX]);
/* Characters of such a text; wide ones count once, which only bends a line. */
int show_width(const char *text);

#endif
