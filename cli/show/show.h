/* What `bezel show` knows about its files: gathered once (show_load.c), then printed as text or as
 * JSON. */
#ifndef BZ_CLI_SHOW_H
#define BZ_CLI_SHOW_H

#include "base/error.h"
#include "bezel_debug.h"
#include "cli/cli.h"

/* Tensors are grouped by their names: SHOW_VISION and SHOW_AUDIO are the towers, SHOW_PROJECTOR is
 * between a tower and the text model. */
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
    const char *name;
    bool runs;
    show_sum sum;
} show_type;

/* A vision or audio tower as its keys describe it; 0 and len 0 for a missing key. The unified
 * models have only a projector, whose tensors carry the projector's name. */
typedef struct show_tower {
    uint64_t layers, width;
    bz_str projector;
    bool present;
} show_tower;

/* What the keys and tensors of a LoRA adapter say; whether it fits a model only the model can say.
 */
typedef struct show_adapter {
    bool present;
    double alpha; /* 0: no key */
    uint64_t pairs, least_rank, most_rank;
} show_adapter;

enum { SHOW_CONTEXTS = 5, SHOW_TYPES = 64 };

typedef struct show_info {
    bz_debug_files *files;
    bz_debug_set set;
    bz_str architecture; /* len 0: the file has none */
    bz_str title;        /* general.name; len 0: the file has none */

    show_sum groups[SHOW_GROUPS];
    show_type types[SHOW_TYPES]; /* most bytes first */
    size_t n_types;
    show_tower vision, audio;
    show_adapter adapter;

    bz_model *model;               /* NULL: Bezel does not run it, see refusal */
    bz_error refusal;              /* why opening failed */
    const bz_debug_config *config; /* NULL: not readable. May be readable despite a refusal */
    bz_debug_config own_config;
    const char *published; /* "E2B", ...; NULL: no published size */

    bz_debug_memory memory; /* these are filled only if there is a model */
    const char *kv;         /* how keys and values would be kept */
    bz_fit gpu;             /* on a GPU with the lowest limits */
    uint32_t gpu_context;
    bz_error gpu_refusal;
    uint32_t contexts[SHOW_CONTEXTS];
    size_t n_contexts;
    char verdict[480]; /* one sentence */
} show_info;

/* Prints a message and returns false, with the exit code, when a file cannot be read. */
bool show_load(show_info *info, const cli_options *o, int *exit_code);
void show_free(show_info *info);

void show_as_text(const show_info *info);
int show_as_json(const show_info *info); /* exit code */

/* ---- used by both forms ------------------------------------------------------- */

static inline bz_str show_str(bz_debug_text text)
{
    return (bz_str){text.data, text.len};
}

/* The text of a string key in the main file; len 0: the file has none. */
bz_str show_text_key(const show_info *info, const char *key);
/* A number from a key of the model's own architecture ("block_count"); 0: not there. */
uint64_t show_arch_number(const show_info *info, const char *key);
/* Elements of an array in the main file; 0: no such key. */
uint64_t show_count_key(const show_info *info, const char *key);
int32_t show_control_tokens(const bz_model *model); /* how many there are */
int32_t show_first_token(const bz_model *model);    /* the one every prompt begins with */

/* ---- parts of the text form --------------------------------------------------- */

enum { SHOW_LABEL = 15 }; /* width of the first column */

void show_row(const char *label, const char *format, ...) BZ_PRINTF(2, 3);
void show_layers(const bz_debug_config *config); /* show_layers.c */
void show_metadata_table(const show_info *info); /* show_tables.c */
void show_tensor_table(const show_info *info);

/* ---- text that is safe to show (show_safe.c) ------------------------------------ */

enum { SHOW_COLUMNS = 100, SHOW_SAFE_MAX = 1024 };

/* Writes s so that it cannot garble a terminal: at most `columns` (up to 250) wide, "..." where it
 * was cut, control and invisible characters as escapes. Both return out. */
const char *show_safe(bz_str s, unsigned columns, char out[SHOW_SAFE_MAX]);
const char *show_path(const char *path, unsigned columns, char out[SHOW_SAFE_MAX]);
/* Characters of such a text; a wide one counts once, which only misaligns its line. */
int show_width(const char *text);

#endif
