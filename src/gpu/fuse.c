#include "gpu/fuse.h"

/* Is `t` read by step `reader` and by none after it? */
static bool only_read_by(const bz_plan *p, bz_tensor t, size_t reader)
{
    const bz_tensor_info *i = bz_plan_tensor(p, t);
    return i->root == t.id && i->last == (int32_t)reader;
}

/* Step `at`, where there is one of that kind that alone reads what step at - 1 wrote. */
static const bz_step *follows(const bz_plan *p, size_t at, bz_op op, int input)
{
    const bz_step *s = at < p->n_steps ? &p->steps[at] : NULL;
    return s && s->op == op && s->in[input].id == s[-1].out[0].id && only_read_by(p, s[-1].out[0], at) ? s : NULL;
}

gpu_group gpu_fuse(const bz_plan *p, size_t first)
{
    const bz_step *s = &p->steps[first];
    if (s->op != BZ_OP_RMS_NORM) {
        return (gpu_group){GPU_FUSE_NONE, 1};
    }
    const bz_step *rope = follows(p, first + 1, BZ_OP_ROPE, 0);
    if (rope && rope->width == s->width) {
        return (gpu_group){GPU_FUSE_NORM_ROPE, 2};
    }
    const bz_step *add = follows(p, first + 1, BZ_OP_ADD, 1);
    if (add && add->scale == 1.0f && s->width == bz_plan_tensor(p, s->in[0])->cols) {
        return follows(p, first + 2, BZ_OP_SCALE, 0) ? (gpu_group){GPU_FUSE_NORM_ADD_SCALE, 3}
                                                     : (gpu_group){GPU_FUSE_NORM_ADD, 2};
    }
    return (gpu_group){GPU_FUSE_NONE, 1};
}
