#include "gpu/fuse.h"

/* Is `t` read by step `reader` and by none after it? */
static bool only_read_by(const bz_plan *p, bz_tensor t, size_t reader)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    return i->root == t.id && i->last == (int32_t)reader;
}

/* The plan gave out's memory away knowing that `in` was dead by then; together they are alive at once. The same
 * place is fine (a thread reads its values before it writes them), overlapping otherwise is not. */
static bool may_meet(const bz_plan *p, bz_tensor in, bz_tensor out)
{
    const bz_tensor_info *a = bz_plan_tensor(p, in), *b = bz_plan_tensor(p, out);
    bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
    return apart || (a->offset == b->offset && a->stride == b->stride && a->column == b->column);
}

gpu_fusion gpu_fuse(const bz_plan *p, size_t first, size_t *count)
{
    const bz_step *s = &p->steps[first];
    *count = 1;
    if (s[0].op != BZ_OP_RMS_NORM || first + 1 >= p->n_steps || !only_read_by(p, s[0].out[0], first + 1)) {
        return GPU_FUSE_NONE;
    }
    if (s[1].op == BZ_OP_ROPE && s[1].in[0].id == s[0].out[0].id && s[1].width == s[0].width &&
        may_meet(p, s[0].in[0], s[1].out[0])) {
        *count = 2;
        return GPU_FUSE_NORM_ROPE;
    }
    bool adds = s[1].op == BZ_OP_ADD && s[1].in[1].id == s[0].out[0].id && s[1].scale == 1.0f &&
                s[0].width == bz_plan_tensor(p, s[0].in[0])->cols;
    if (!adds) {
        return GPU_FUSE_NONE;
    }
    if (first + 2 < p->n_steps && s[2].op == BZ_OP_SCALE && s[2].in[0].id == s[1].out[0].id &&
        only_read_by(p, s[1].out[0], first + 2) && may_meet(p, s[0].in[0], s[2].out[0]) &&
        may_meet(p, s[1].in[0], s[2].out[0])) {
        *count = 3;
        return GPU_FUSE_NORM_ADD_SCALE;
    }
    if (!may_meet(p, s[0].in[0], s[1].out[0])) {
        return GPU_FUSE_NONE;
    }
    *count = 2;
    return GPU_FUSE_NORM_ADD;
}
