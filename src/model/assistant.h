/* The drafter of a model (architecture gemma4-assistant): a few layers without keys and values of
 * their own. From the token chosen last and the model's state before it, they predict the tokens
 * after it, reading the model's caches. */
#ifndef BZ_MODEL_ASSISTANT_H
#define BZ_MODEL_ASSISTANT_H

#include "model/text.h"

/* b: width of the model, d: of the drafter. */
typedef struct bz_assistant {
    bz_text_model net;         /* its layers; its weights are in the table of the model, and its
                                  caches are the model's */
    bz_weight pre_projection;  /* [2 b, d] */
    bz_weight post_projection; /* [d, b] */
    bz_weight centroids;       /* [d, clusters]; none: drafts are chosen from all tokens */
    bz_weight ordering;        /* [tokens of a cluster, clusters], their ids */
} bz_assistant;

bool bz_assistant_knows(bz_str architecture);

/* Reads and binds the drafter among the files, and checks it against the model, whose weights are
 * bound and whose caches are numbered. *out NULL: there is none. */
bz_status bz_assistant_new(bz_assistant **out, bz_text_model *m, const bz_files *files,
                           bz_error *err);
void bz_assistant_free(bz_assistant *a);

/* A pass of one row that drafts `count` tokens after the token id[0]: output [1][count], their ids
 * as whole numbers in f32. The model's state at the position before the token is row out[0] of the
 * shared tensor, where the model's last pass left it (bz_record_logits). The row's position is that
 * one, which is the last in the caches; angle[0] is the token's own, one more. */
bz_status bz_assistant_record(const bz_text_model *m, uint32_t count, bz_plan **out, bz_error *err);

#endif
