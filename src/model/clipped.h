/* A product between its bounds, as the steps it is. */
#ifndef BZ_MODEL_CLIPPED_H
#define BZ_MODEL_CLIPPED_H

#include "model/towers.h"

/* Each product clamps a copy of its own: those that read the same rows have different bounds. */
static inline bz_tensor bz_record_clipped(bz_plan *p, bz_tensor x, const bz_clipped *c, const char *name)
{
    x = bz_clamp(p, x, c->in_low, c->in_high, "clamp_in");
    x = bz_linear(p, x, c->w, name);
    return bz_clamp(p, x, c->out_low, c->out_high, "clamp_out");
}

#endif
