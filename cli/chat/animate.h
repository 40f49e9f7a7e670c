/* A canvas of a diffusion model while it condenses, drawn on the terminal below what is there and
 * taken away again. */
#ifndef BZ_CLI_ANIMATE_H
#define BZ_CLI_ANIMATE_H

#include "bezel_diffusion.h"

typedef struct animation {
    int lines;  /* drawn below the line that the cursor stood on; 0: nothing is */
    int column; /* where it stood: told by animate_said */
} animation;

bool animate_can(void); /* somebody is watching on a terminal that can move its cursor */

/* What goes to the screen as text, so that the cursor can be put back behind it. */
void animate_said(animation *a, const char *text, size_t len);

void animate_draw(animation *a, const bz_model *model, const bz_canvas *canvas, uint64_t done,
                  uint64_t total);
void animate_clear(animation *a);

#endif
