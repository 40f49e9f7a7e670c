/* Draws the current canvas of a diffusion model below the text on the terminal, and removes it
 * again. */
#ifndef BZ_CLI_ANIMATE_H
#define BZ_CLI_ANIMATE_H

#include "bezel_diffusion.h"

typedef struct animation {
    int lines;  /* lines drawn below the cursor; 0: nothing is drawn */
    int column; /* of the cursor, kept by animate_text */
} animation;

bool animate_can(void); /* stdout and stderr are a terminal with cursor movement */

/* Must get all text printed to the terminal, so that the cursor can be put back after it. */
void animate_text(animation *a, const char *text, size_t len);

void animate_draw(animation *a, const bz_model *model, const bz_canvas *canvas, uint64_t done,
                  uint64_t total);
void animate_clear(animation *a);

#endif
