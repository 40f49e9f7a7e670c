/* The header of a file of E2B's published shape in Q4_K_M, with a small vocabulary and no weights:
 * enough to record and lower its plans. */
#ifndef BZ_TEST_E2B_SHAPE_H
#define BZ_TEST_E2B_SHAPE_H

#include "session/model.h"
#include "support/gguf_build.h"

/* A model of which only headers and the text model are filled; ends the program when it is refused.
 */
typedef struct e2b_shape {
    gguf_build header;
    bz_gguf gguf;
    bz_file file;
    bz_model model;
} e2b_shape;

void e2b_shape_open(e2b_shape *e);
void e2b_shape_close(e2b_shape *e);

#endif
