/* The models that requests may name: loaded on demand, unloaded when unused. Engine thread only,
 * except that models are added before it starts. */
#ifndef BZ_SERVER_ENGINE_MODELS_H
#define BZ_SERVER_ENGINE_MODELS_H

#include "base/error.h"
#include "bezel_batch.h"
#include "bezel_embed.h"
#include "bezel_media.h"
#include "server/engine/engine.h"
#include "store/ollama.h"

enum { MODEL_MAX_SESSIONS = 8 };

/* A session for what a batch cannot do. */
typedef struct model_session {
    bz_session *session; /* NULL: not made yet */
    bool busy;
    int32_t *ids; /* [n_ids] the last prompt, to find the session that can reuse most */
    size_t n_ids;
    uint64_t used;
} model_session;

/* What /api/tags and the like report. Texts may be "". */
typedef struct model_details {
    char family[64], parameters[32], quantization[32];
    char digest[BZ_DIGEST_TEXT]; /* 64 hexadecimal digits */
    uint64_t size;
    int64_t modified; /* seconds since 1970 */
} model_details;

/* What a model takes besides text, and whether it makes vectors instead of answers. */
typedef struct model_abilities {
    bool vision, audio, embeds;
} model_abilities;

/* An adapter of the command line. */
typedef struct model_adapter {
    char *path;
    float scale;
} model_adapter;

struct engine_model {
    engine_model *next;
    char *name;
    char *path, *mmproj; /* NULL: of Ollama's store */
    model_details details;
    model_adapter *added; /* [n_added] */
    size_t n_added;

    /* loaded: model is not NULL */
    bz_store_model store; /* default settings; all zero without */
    bz_model *model;
    struct bz_adapter_use *adapters; /* [n_adapters] all that it has: adapters.h */
    size_t n_adapters;
    bz_batch *batch;
    bz_embedder *embedder; /* of a model of embeddings, which has no batch; else NULL */
    bool embedding;        /* it is in use */
    bz_encoder *encoder;
    model_session sessions[MODEL_MAX_SESSIONS];
    uint32_t context;
    bool on_gpu;
    uint32_t running;          /* sequences */
    uint32_t prepared;         /* sequences whose turn refers to the model, running or not */
    model_abilities abilities; /* of a model that was added, or loaded once */
    bool knows_abilities;
    bool encoding; /* the encoder is in use */
    struct sequence *in_slot[BZ_BATCH_MAX_SLOTS];
    bool unload;        /* when they have ended */
    uint64_t last_used; /* ns */
    int64_t keep_alive; /* ns; below 0: forever */
    uint64_t load_ns;
};

/* What was read from the header of a file of the store. */
typedef struct ability_note {
    struct ability_note *next;
    char name[BZ_NAME_TEXT], digest[BZ_DIGEST_TEXT];
    model_abilities abilities;
} ability_note;

typedef struct models {
    const engine_options *options;
    engine_model *first;
    bool refuse_larger; /* models that are larger than the limit on memory */
    /* Called between the steps of opening a model, so that others go on meanwhile; true ends it. */
    bool (*while_opening)(void *user);
    void *user;
    ability_note *notes;
    enum { GPU_UNKNOWN, GPU_THERE, GPU_MISSING } gpu; /* for the device "auto" */
} models;

bz_status models_add(models *all, const char *name, const char *path, const char *mmproj,
                     bz_error *err);
void models_free(models *all);

/* NULL or "": the model added first. Looks into the store for other names; a name is never used as
 * a path. */
bz_status models_find(models *all, const char *name, engine_model **out, bz_error *err);

typedef enum models_answer { MODELS_READY, MODELS_WAIT, MODELS_FAILED } models_answer;
/* Loads a model, after unloading the least recently used ones that are idle if memory is short.
 * WAIT: a model that is in use would have to go first. */
models_answer models_load(models *all, engine_model *m, bz_error *err);
void models_unload(engine_model *m);
bool models_in_use(const engine_model *m); /* by sequences: it must not be unloaded */
/* Unloads what has been unused for longer than its keep_alive; returns the time (bz_os_now) of the
 * next end, 0: none. */
uint64_t models_expire(models *all);
/* When an idle model will be unloaded, in ns of bz_os_now; 0: never. */
uint64_t models_end_of(const engine_model *m);
uint64_t models_memory(const engine_model *m); /* bytes */

/* The files of a model; resolves the store's. Free *store with bz_store_model_free. */
bz_status models_files(const engine_model *m, bz_store_model *store, const char **path,
                       const char **mmproj, bz_error *err);

/* What a token adds to the text: blanks as such, bytes as they are; may be part of a character.
 * Returns its length. */
size_t models_token_text(const bz_model *model, int32_t token, char out[BZ_TEXT_MAX]);

/* Calls `each` for the added models and those of the store, the added ones first, until it returns
 * false. */
bz_status models_each(models *all, bool (*each)(void *user, const engine_model *m), void *user,
                      bz_error *err);

/* Opens the header of a model of the store when it is asked for the first time. */
bz_status models_abilities(models *all, const engine_model *m, model_abilities *out, bz_error *err);

/* The session that can reuse most of a prompt, made if necessary; NULL with *err code 0: all are in
 * use. */
model_session *models_session(models *all, engine_model *m, const int32_t *ids, size_t n,
                              bz_error *err);

models *engine_models(engine *e); /* for functions of ENGINE_RUN */
const engine_options *engine_get_options(const engine *e);

#endif
