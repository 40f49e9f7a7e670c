/* Binds the tensors of the vision and audio towers and reads the bounds of clipped products. */
#include "model/towers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LAYERS = 256, MAX_WIDTH = 1 << 16, MAX_HEADS = 256 };

/* ---- keys -------------------------------------------------------------------- */

/* Both containers use the same keys with different prefixes. */
typedef struct keys {
    const bz_gguf *gguf;
    const char *prefix;
    bz_binder *b;
} keys;

static uint32_t number(const keys *k, const char *name, uint32_t low, uint32_t high,
                       uint32_t fallback)
{
    char key[100];
    uint64_t v = fallback;
    snprintf(key, sizeof key, "%s.%s", k->prefix, name);
    const bz_gguf_kv *kv = bz_gguf_find(k->gguf, key);
    if ((!kv && fallback == 0) || (kv && (kv->is_array || !bz_gguf_get_u64(kv, 0, &v)))) {
        bz_bind_refuse(k->b, BZ_BAD_FILE, "The key %s is %s.", key,
                       kv ? "not a whole number" : "missing");
    } else if (v < low || v > high) {
        bz_bind_refuse(k->b, BZ_BAD_FILE, "The key %s is %llu; it must be between %u and %u.", key,
                       (unsigned long long)v, low, high);
        v = low;
    }
    return (uint32_t)v;
}

static bool has_key(const bz_gguf *g, const char *key)
{
    return bz_gguf_find(g, key) != NULL;
}

/* The projector type of an mmproj file under that key; empty: none. */
static bz_str projector(const bz_gguf *g, const char *key)
{
    bz_str s = {"", 0};
    const bz_gguf_kv *kv = bz_gguf_find(g, key);
    if (kv) {
        bz_gguf_get_str(kv, &s);
    }
    return s;
}

/* ---- weights -------------------------------------------------------------------- */

static bz_clipped clipped(bz_binder *b, uint64_t in, uint64_t out, const char *name)
{
    const int optional = BZ_BIND_OPTIONAL | BZ_BIND_VECTOR;
    bz_clipped c = {.w = bz_bind(b, 0, in, out, 1, "%s.weight", name)};
    c.low_in = bz_bind(b, optional, 1, 1, 1, "%s.input_min", name);
    c.high_in = bz_bind(b, optional, 1, 1, 1, "%s.input_max", name);
    c.low_out = bz_bind(b, optional, 1, 1, 1, "%s.output_min", name);
    c.high_out = bz_bind(b, optional, 1, 1, 1, "%s.output_max", name);
    return c;
}

static bz_clipped layer_clipped(bz_binder *b, const char *tower, uint32_t layer, const char *part,
                                uint64_t in, uint64_t out)
{
    char name[100];
    snprintf(name, sizeof name, "%s.blk.%u.%s", tower, layer, part);
    return clipped(b, in, out, name);
}

static bz_weight norm(bz_binder *b, const char *tower, uint32_t layer, const char *part, uint64_t n)
{
    return bz_bind(b, BZ_BIND_VECTOR, n, 1, 1, "%s.blk.%u.%s.weight", tower, layer, part);
}

static uint32_t size_of(const bz_binder *b, bz_weight w, int dimension)
{
    return b->failed ? 1 : (uint32_t)bz_weight_of(b->table, w)->ne[dimension];
}

static void bind_vision_layers(bz_binder *b, bz_towers *t, const keys *k)
{
    bz_vision *v = &t->vision;
    v->kind = BZ_TOWER_LAYERS;
    v->layers = number(k, "block_count", 1, MAX_LAYERS, 0);
    v->width = number(k, "embedding_length", 8, MAX_WIDTH, 0);
    v->ffn = number(k, "feed_forward_length", 8, MAX_WIDTH, 0);
    v->heads = number(k, "attention.head_count", 1, MAX_HEADS, 0);
    if (number(k, "projector.scale_factor", 1, 64, 3) != 3 ||
        number(k, "patch_size", 1, 1024, 16) != 16) {
        bz_bind_refuse(
            b, BZ_UNSUPPORTED_MODEL,
            "The vision tower does not have 3 x 3 patches of 16 x 16 pixels per token, which is "
            "the only layout supported.");
    }
    v->side = 16;
    v->layer = b->failed ? NULL : calloc(v->layers, sizeof *v->layer);
    if (!b->failed && !v->layer) {
        bz_bind_refuse(b, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the table of %u layers.", v->layers);
    }
    const uint64_t d = v->width, f = v->ffn;
    v->patch = bz_bind(b, 0, 3ull * 16 * 16, d, 1, "v.patch_embd.weight");
    v->position = bz_bind(b, 0, d, 0, 2, "v.position_embd.weight");
    v->positions = size_of(b, v->position, 1);
    v->std_bias = bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, d, 1, 1, "v.std_bias");
    v->std_scale = bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, d, 1, 1, "v.std_scale");
    t->clamps = bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, (v->layers * 7ull + 1) * 4, 1, 1,
                        "v.clamp_data");
    for (uint32_t i = 0; i < v->layers && !b->failed; i++) {
        bz_vision_layer *l = &v->layer[i];
        l->ln1 = norm(b, "v", i, "ln1", d);
        l->q_norm = norm(b, "v", i, "attn_q_norm", 0);
        const uint32_t head_dim = size_of(b, l->q_norm, 0);
        if (i > 0 && head_dim != v->head_dim) {
            bz_bind_refuse(b, BZ_BAD_FILE,
                           "The vision tower's heads have %u values in layer %u and %u in the "
                           "layers before it; all must have the same size.",
                           head_dim, i, v->head_dim);
        }
        v->head_dim = head_dim;
        if (v->head_dim % 4 || (uint64_t)v->head_dim * v->heads > MAX_WIDTH) {
            bz_bind_refuse(
                b, BZ_BAD_FILE,
                "The vision tower's heads have %u values; a multiple of 4 is needed (pairs in two "
                "directions).",
                v->head_dim);
        }
        const uint64_t h = (uint64_t)v->head_dim * v->heads;
        l->k_norm = norm(b, "v", i, "attn_k_norm", v->head_dim);
        l->q = layer_clipped(b, "v", i, "attn_q", d, h);
        l->k = layer_clipped(b, "v", i, "attn_k", d, h);
        l->v = layer_clipped(b, "v", i, "attn_v", d, h);
        l->out = layer_clipped(b, "v", i, "attn_out", h, d);
        l->attn_post_norm = norm(b, "v", i, "attn_post_norm", d);
        l->ln2 = norm(b, "v", i, "ln2", d);
        l->gate = layer_clipped(b, "v", i, "ffn_gate", d, f);
        l->up = layer_clipped(b, "v", i, "ffn_up", d, f);
        l->down = layer_clipped(b, "v", i, "ffn_down", f, d);
        l->ffn_post_norm = norm(b, "v", i, "ffn_post_norm", d);
        l->out_scale =
            bz_bind(b, BZ_BIND_OPTIONAL | BZ_BIND_VECTOR, 1, 1, 1, "v.blk.%u.out_scale.weight", i);
        bz_clipped *parts[7] = {&l->q, &l->k, &l->v, &l->out, &l->gate, &l->up, &l->down};
        for (uint32_t p = 0; t->clamps.id && p < 7; p++) {
            parts[p]->packed = 1 + i * 7 + p;
        }
    }
}

static void bind_vision_direct(bz_binder *b, bz_vision *v)
{
    const char *first =
        bz_bind_has(b, "v.patch_norm.0.weight") ? "0" : "1"; /* files count from 0 or 1 */
    const int from = first[0] - '0';
    v->kind = BZ_TOWER_DIRECT;
    v->side = 48;
    v->patch = bz_bind(b, 0, 3ull * 48 * 48, 0, 1, "v.patch_embd.weight");
    v->width = size_of(b, v->patch, 1);
    v->bias = bz_bind(b, BZ_BIND_VECTOR, v->width, 1, 1, "v.patch_embd.bias");
    v->position = bz_bind(b, 0, v->width, 0, 2, "v.position_embd.weight");
    v->positions = size_of(b, v->position, 1);
    bz_weight *norms[6] = {&v->norm1,      &v->norm1_bias, &v->norm2,
                           &v->norm2_bias, &v->norm3,      &v->norm3_bias};
    for (int i = 0; i < 6; i++) {
        *norms[i] = bz_bind(b, BZ_BIND_VECTOR, i < 2 ? 3ull * 48 * 48 : v->width, 1, 1,
                            "v.patch_norm.%d.%s", from + i / 2, i % 2 ? "bias" : "weight");
    }
}

/* ---- audio ------------------------------------------------------------------------- */

static void bind_audio_layers(bz_binder *b, bz_audio *a, const keys *k)
{
    /* The two converters use different names, some of them for each other's tensors. */
    const bool ollama = !bz_bind_has(b, "a.input_projection.weight");
    a->kind = BZ_TOWER_LAYERS;
    a->layers = number(k, "block_count", 1, MAX_LAYERS, 0);
    a->width = number(k, "embedding_length", 8, MAX_WIDTH, 0);
    a->ffn = number(k, "feed_forward_length", 8, MAX_WIDTH, 0);
    a->heads = number(k, "attention.head_count", 1, MAX_HEADS, 0);
    a->bins = number(k, "num_mel_bins", 128, 128, 128);
    a->layer = b->failed ? NULL : calloc(a->layers, sizeof *a->layer);
    if (!b->failed && !a->layer) {
        bz_bind_refuse(b, BZ_OUT_OF_MEMORY,
                       "There is not enough memory for the table of %u layers.", a->layers);
    }
    if (b->failed || a->width % a->heads) {
        bz_bind_refuse(b, BZ_BAD_FILE,
                       "The audio tower's width of %u does not divide into %u heads.", a->width,
                       a->heads);
        return;
    }
    const uint64_t d = a->width, f = a->ffn;
    a->head_dim = a->width / a->heads;
    a->conv0 = bz_bind(b, 0, 9, 0, 1, "a.conv1d.0.weight");
    const uint32_t first = size_of(b, a->conv0, 1);
    a->conv1 = bz_bind(b, 0, 9ull * first, 0, 1, "a.conv1d.1.weight");
    const uint32_t second = size_of(b, a->conv1, 1);
    a->conv0_norm = bz_bind(b, BZ_BIND_VECTOR, first, 1, 1, "a.conv1d.0.norm.weight");
    a->conv1_norm = bz_bind(b, BZ_BIND_VECTOR, second, 1, 1, "a.conv1d.1.norm.weight");
    a->in = bz_bind(b, 0, (uint64_t)a->bins / 4 * second, d, 1,
                    ollama ? "a.pre_encode.out.weight" : "a.input_projection.weight");
    a->out = bz_bind(b, 0, d, 0, 1, ollama ? "mm.a.fc.weight" : "a.pre_encode.out.weight");
    a->out_bias = bz_bind(b, BZ_BIND_VECTOR, size_of(b, a->out, 1), 1, 1,
                          ollama ? "mm.a.fc.bias" : "a.pre_encode.out.bias");
    for (uint32_t i = 0; i < a->layers && !b->failed; i++) {
        bz_audio_layer *l = &a->layer[i];
        l->ffn_norm = norm(b, "a", i, "ffn_norm", d);
        l->up = layer_clipped(b, "a", i, "ffn_up", d, f);
        l->down = layer_clipped(b, "a", i, "ffn_down", f, d);
        l->ffn_post_norm = norm(b, "a", i, "ffn_post_norm", d);
        l->attn_norm = norm(b, "a", i, ollama ? "ln1" : "attn_pre_norm", d);
        l->q = layer_clipped(b, "a", i, "attn_q", d, d);
        l->k = layer_clipped(b, "a", i, "attn_k", d, d);
        l->v = layer_clipped(b, "a", i, "attn_v", d, d);
        l->relative_k =
            bz_bind(b, 0, d, d, 1, "a.blk.%u.%s.weight", i, ollama ? "linear_pos" : "attn_k_rel");
        l->per_dim_scale = norm(b, "a", i, "per_dim_scale", a->head_dim);
        l->out = layer_clipped(b, "a", i, "attn_out", d, d);
        l->attn_post_norm = norm(b, "a", i, ollama ? "ln2" : "attn_post_norm", d);
        l->conv_norm = norm(b, "a", i, "conv_norm", d);
        l->pw1 = layer_clipped(b, "a", i, "conv_pw1", d, 2 * d);
        l->conv_dw = bz_bind(b, 0, 0, d, 1, "a.blk.%u.conv_dw.weight", i);
        l->norm_conv = norm(b, "a", i, "norm_conv", d);
        l->pw2 = layer_clipped(b, "a", i, "conv_pw2", d, d);
        l->ffn_norm_1 = norm(b, "a", i, "ffn_norm_1", d);
        l->up_1 = layer_clipped(b, "a", i, "ffn_up_1", d, f);
        l->down_1 = layer_clipped(b, "a", i, "ffn_down_1", f, d);
        l->ffn_post_norm_1 = norm(b, "a", i, "ffn_post_norm_1", d);
        l->norm_out = norm(b, "a", i, ollama ? "layer_pre_norm" : "ln2", d);
    }
}

/* ---- both ------------------------------------------------------------------------- */

/* Which towers the files have: vision, audio, both or none. */
static void find_kinds(bz_binder *b, const bz_gguf *g, bool clip, bz_tower_kind *vision,
                       bz_tower_kind *audio)
{
    *vision = *audio = BZ_TOWER_NONE;
    if (!clip) { /* some files have the keys but not the tensors: text only */
        *vision = has_key(g, "gemma4.vision.block_count") && bz_bind_has(b, "v.patch_embd.weight")
                      ? BZ_TOWER_LAYERS
                      : BZ_TOWER_NONE;
        *audio = has_key(g, "gemma4.audio.block_count") && bz_bind_has(b, "a.conv1d.1.weight")
                     ? BZ_TOWER_LAYERS
                     : BZ_TOWER_NONE;
        return;
    }
    bz_str image = projector(g, "clip.vision.projector_type"),
           sound = projector(g, "clip.audio.projector_type");
    image = image.len || sound.len ? image : projector(g, "clip.projector_type");
    *vision = bz_str_is(image, "gemma4v")    ? BZ_TOWER_LAYERS
              : bz_str_is(image, "gemma4uv") ? BZ_TOWER_DIRECT
                                             : BZ_TOWER_NONE;
    *audio = bz_str_is(sound, "gemma4a")    ? BZ_TOWER_LAYERS
             : bz_str_is(sound, "gemma4ua") ? BZ_TOWER_DIRECT
                                            : BZ_TOWER_NONE;
    if (*vision == BZ_TOWER_NONE && *audio == BZ_TOWER_NONE) {
        char shown[200];
        bz_bind_refuse(b, BZ_UNSUPPORTED_MODEL,
                       "The mmproj file is of kind '%s', which is not Gemma 4's; give the one that "
                       "belongs to the model.",
                       bz_str_show(image.len ? image : sound, shown));
    }
}

static void check_width(bz_binder *b, bz_weight project, uint32_t text_width, const char *what)
{
    if (!b->failed && size_of(b, project, 1) != text_width) {
        /* Two good files may not belong together; a single file that contradicts itself is damaged.
         */
        bz_bind_refuse(
            b, b->only ? BZ_BAD_REQUEST : BZ_BAD_FILE,
            "The %s tower's soft tokens have %u values, but the text model needs %u; %s.", what,
            size_of(b, project, 1), text_width,
            b->only ? "the mmproj file belongs to another model" : "the file is damaged");
    }
}

/* Recording a plan checks all of its shapes, so that a bad file fails when it is opened. */
static bz_status check_plans(const bz_towers *t, bz_error *err)
{
    bz_plan *vision = NULL, *audio = NULL;
    bz_status status =
        t->vision.kind == BZ_TOWER_NONE ? BZ_OK : bz_vision_record(t, 1, 1, &vision, err);
    if (status == BZ_OK && t->audio.kind != BZ_TOWER_NONE) {
        status = bz_audio_record(t, 1, &audio, err);
    }
    bz_plan_free(vision);
    bz_plan_free(audio);
    return status;
}

bz_status bz_towers_bind(bz_towers *t, const bz_files *files, uint32_t text_width, bz_error *err)
{
    *t = (bz_towers){0};
    const bool clip = files->mmproj >= 0;
    const bz_gguf *g = clip ? files->files[files->mmproj].gguf : files->main;
    bz_error local = {0};
    bz_binder b = {.table = &t->table, .files = files, .err = &local};
    if (clip) {
        b.only = g;
        b.only_file = (uint32_t)files->mmproj;
    }
    bz_tower_kind vision, audio;
    find_kinds(&b, g, clip, &vision, &audio);
    if (vision == BZ_TOWER_LAYERS) {
        const keys k = {g, clip ? "clip.vision" : "gemma4.vision", &b};
        bind_vision_layers(&b, t, &k);
        t->vision.budget =
            number(&k, "max_soft_tokens", 70, 1120, 280); /* a key of Pebble, our test model */
    } else if (vision == BZ_TOWER_DIRECT) {
        bind_vision_direct(&b, &t->vision);
        t->vision.budget = 280;
    }
    if (vision != BZ_TOWER_NONE) {
        t->vision.project = clipped(&b, t->vision.width, 0, "mm.input_projection");
        t->vision.project.packed = t->clamps.id ? 1 + t->vision.layers * 7 : 0;
        check_width(&b, t->vision.project.w, text_width, "vision");
    }
    if (audio == BZ_TOWER_LAYERS) {
        bind_audio_layers(&b, &t->audio, &(keys){g, clip ? "clip.audio" : "gemma4.audio", &b});
    }
    if (audio != BZ_TOWER_NONE) {
        t->audio.kind = audio;
        t->audio.project =
            bz_bind(&b, 0, audio == BZ_TOWER_DIRECT ? 640 : size_of(&b, t->audio.out, 1), 0, 1,
                    "mm.a.input_projection.weight");
        check_width(&b, t->audio.project, text_width, "audio");
    }
    if (!b.failed && check_plans(t, &local) != BZ_OK) {
        b.failed = true;
    }
    if (b.failed) {
        bz_towers_free(t);
        if (err) {
            *err = local;
        }
        return local.code;
    }
    return BZ_OK;
}

void bz_towers_free(bz_towers *t)
{
    free(t->vision.layer);
    free(t->audio.layer);
    bz_bind_free(&t->table);
    *t = (bz_towers){0};
}

/* ---- bounds -------------------------------------------------------------------------- */

bool bz_tower_is_vector(const bz_weight_info *w)
{
    return w->type == BZ_F32 && w->ne[1] == 1 && w->ne[2] == 1;
}

typedef struct bounds_reader {
    const bz_towers *t;
    const uint8_t *const *bytes;
    bool failed;
} bounds_reader;

static float value(const bounds_reader *r, bz_weight w, size_t index, float fallback)
{
    float v = fallback;
    if (w.id) {
        memcpy(&v, r->bytes[w.id - 1] + index * sizeof v, sizeof v);
    }
    return isnan(v) ? fallback : v;
}

/* An entry of the packed table that is all zeros means no bounds. */
static void read_bounds(bounds_reader *r, bz_clipped *c)
{
    c->in_low = value(r, c->low_in, 0, -INFINITY);
    c->in_high = value(r, c->high_in, 0, INFINITY);
    c->out_low = value(r, c->low_out, 0, -INFINITY);
    c->out_high = value(r, c->high_out, 0, INFINITY);
    if (c->packed) {
        const size_t at = (size_t)(c->packed - 1) * 4;
        const float a = value(r, r->t->clamps, at, 0), b = value(r, r->t->clamps, at + 1, 0);
        const float low = value(r, r->t->clamps, at + 2, 0),
                    high = value(r, r->t->clamps, at + 3, 0);
        if (a != 0 || b != 0 || low != 0 || high != 0) {
            c->in_low = a;
            c->in_high = b;
            c->out_low = low;
            c->out_high = high;
        }
    }
    r->failed = r->failed || c->in_low > c->in_high || c->out_low > c->out_high;
}

bz_status bz_towers_bounds(bz_towers *t, const uint8_t *const *bytes, bz_error *err)
{
    bounds_reader r = {t, bytes, false};
    for (uint32_t i = 0; i < t->vision.layers; i++) {
        bz_vision_layer *l = &t->vision.layer[i];
        bz_clipped *parts[7] = {&l->q, &l->k, &l->v, &l->out, &l->gate, &l->up, &l->down};
        for (int p = 0; p < 7; p++) {
            read_bounds(&r, parts[p]);
        }
    }
    for (uint32_t i = 0; i < t->audio.layers; i++) {
        bz_audio_layer *l = &t->audio.layer[i];
        bz_clipped *parts[10] = {&l->up,  &l->down, &l->q,   &l->k,    &l->v,
                                 &l->out, &l->pw1,  &l->pw2, &l->up_1, &l->down_1};
        for (int p = 0; p < 10; p++) {
            read_bounds(&r, parts[p]);
        }
    }
    read_bounds(&r, &t->vision.project);
    return r.failed
               ? bz_fail(
                     err, BZ_BAD_FILE,
                     "The bounds of a tower's products exclude every value; the file is damaged.")
               : BZ_OK;
}
