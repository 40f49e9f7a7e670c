/* Drafters with clusters of tokens: a file's, with random clusters added, in memory. */
#ifndef BZ_TEST_CLUSTERS_H
#define BZ_TEST_CLUSTERS_H

#include "base/os.h"
#include "bezel.h"
#include "support/gguf_build.h"

typedef struct cluster_options {
    uint32_t clusters;    /* divides the vocabulary */
    bz_type ids;          /* I32 or I64 */
    bool equal_head;      /* every token has the same logit */
    bool equal_centroids; /* so has every cluster */
    bool by_reads;        /* the files are not in memory: what is needed is read */
} cluster_options;

typedef struct clustered {
    gguf_build drafter;
    bz_os_map model; /* the file; both outlive m */
    bz_model *m;
} clustered;

/* b->bytes is the file. */
void build_clustered(gguf_build *b, const char *drafter, const cluster_options *o);

/* Opens a model with such a drafter, or ends the program with a FAIL line. */
void open_clustered(clustered *c, const char *model, const char *drafter, const cluster_options *o,
                    const char *device);
void close_clustered(clustered *c);

/* Drafts of the golden case `assistant` with such a drafter: clusters, tokens and logits against
 * float64. s: options of an exact session. */
void check_clusters(const char *device, const bz_session_options *s, const cluster_options *o,
                    double bound);

#endif
