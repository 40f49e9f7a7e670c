/* Records clipped products: clamp, linear, clamp. Products that read the same input have different
 * bounds, so each clamps a copy of it. */
#ifndef BZ_MODEL_CLIPPED_H
#define BZ_MODEL_CLIPPED_H

#include "model/towers.h"

enum { BZ_MAX_CLIPPED = 3 };

static inline bz_tensor bz_clip_in(bz_plan *p, bz_tensor x, const bz_clipped *c)
{
    return bz_clamp(p, x, c->in_low, c->in_high, "clamp_in");
}

static inline bz_tensor bz_clip_out(bz_plan *p, bz_tensor y, const bz_clipped *c)
{
    return bz_clamp(p, y, c->out_low, c->out_high, "clamp_out");
}

static inline bz_tensor bz_record_clipped(bz_plan *p, bz_tensor x, const bz_clipped *c,
                                          const char *name)
{
    return bz_clip_out(p, bz_linear(p, bz_clip_in(p, x, c), c->w, name), c);
}

/* n products of one input: first all clamps of the input, then all products, so that a back end
 * can fuse them. The caller records the output clamps (bz_clip_out). */
static inline void bz_record_products(bz_plan *p, bz_tensor x, uint32_t n,
                                      const bz_clipped *const *c, const char *const *names,
                                      bz_tensor *out)
{
    bz_tensor in[BZ_MAX_CLIPPED];
    for (uint32_t i = 0; i < n; i++) {
        in[i] = bz_clip_in(p, x, c[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        out[i] = bz_linear(p, in[i], c[i]->w, names[i]);
    }
}

#endif
