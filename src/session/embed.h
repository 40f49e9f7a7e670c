/* An embedder: the plans of its passes, and the job that computes vectors (embed_job.c).
 *
 * The texts of a pass lie one after another in one sequence of the caches, which is written anew in
 * every pass. A row sees the rows of its own text only, and angles begin at 0 in every text. */
#ifndef BZ_SESSION_EMBED_H
#define BZ_SESSION_EMBED_H

#include "bezel_embed.h"
#include "plan/backend.h"
#include "session/model.h"
#include "session/session.h"
#include "text/tokenizer.h"

enum {
    BZ_EMBED_ROWS = 512,         /* of a pass over several texts */
    BZ_EMBED_TEXTS = 64,         /* of a pass */
    BZ_EMBED_LONGEST_GPU = 2048, /* rows of a text */
    BZ_EMBED_LONGEST_CPU = 8192,
    BZ_EMBED_BUCKETS = 5 /* sizes of a pass for which plans are recorded */
};

struct bz_embedder {
    const bz_model *model;
    bz_embedder_options options;
    bz_backend *backend;        /* NULL: the device was lost; the next job looks for another */
    const bz_gpu_model *device; /* on a GPU: where back end and caches are */
    bz_kv *kv;
    void *kv_list[1];
    session_plan plans[BZ_EMBED_BUCKETS];
    uint32_t longest; /* tokens of a text */
    uint32_t align;   /* positions at which texts begin are multiples of it. On the CPU of 64, so
                         that sums are cut alike wherever a text lies (cpu/attend.c) */
    bool busy;
};

bz_status bz_embedder_attach(bz_embedder *e, bz_error *err);
void bz_embedder_detach(bz_embedder *e);
/* The plan of a pass over `rows` rows. */
bz_status bz_embedder_plan(bz_embedder *e, uint32_t rows, session_plan **out, bz_error *err);

/* The text before every input, in pieces; returns their number, at most 3. */
bz_status bz_embed_prefix(const bz_embed_options *o, bz_piece pieces[3], size_t *n, bz_error *err);

#endif
