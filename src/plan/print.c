/* Prints a plan as a table: one line per step with its shapes and the bytes it moves. */
#include "plan/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

enum { SHAPES_MAX = 96, LINE_MAX_BYTES = 320 };

/* ---- sums -------------------------------------------------------------------- */

uint64_t bz_step_weight_bytes(const bz_plan *p, const bz_step *s)
{
    if (!s->w[0].id) {
        return 0;
    }
    const bz_weight_info *w = bz_weight_of(p->weights, s->w[0]);
    const uint64_t slots = (uint64_t)p->rows * s->experts_used;
    if (s->op == BZ_OP_ADD_LOW_RANK && s->in[2].id) {
        const uint32_t part = bz_plan_tensor(p, s->out[0])->cols / s->experts_used;
        const uint64_t panels = (part + BZ_LOW_RANK_PANEL - 1) / BZ_LOW_RANK_PANEL,
                       experts = w->ne[2] / panels;
        return w->size / experts * (slots < experts ? slots : experts);
    }
    switch (s->op) {
    case BZ_OP_EMBED: return p->rows * (w->size / w->ne[1]);
    case BZ_OP_LIST_ROWS:
        return (uint64_t)p->rows * bz_plan_tensor(p, s->in[0])->cols * (w->size / w->ne[1]);
    case BZ_OP_LINEAR_LISTED:
        return (uint64_t)p->rows * bz_plan_tensor(p, s->out[0])->cols * (w->size / w->ne[1]);
    case BZ_OP_EXPERT_LINEAR: return w->size / w->ne[2] * (slots < w->ne[2] ? slots : w->ne[2]);
    case BZ_OP_EXPERT_SUM: return w->size / w->ne[0] * (slots < w->ne[0] ? slots : w->ne[0]);
    default: return w->size;
    }
}

uint64_t bz_step_output_bytes(const bz_plan *p, const bz_step *s)
{
    uint64_t total = 0;
    for (int i = 0; i < 2; i++) {
        total += s->out[i].id ? bz_plan_tensor(p, s->out[i])->bytes : 0;
    }
    return total;
}

bz_plan_totals bz_plan_count(const bz_plan *p)
{
    bz_plan_totals t = {.arena_bytes = p->arena_bytes};
    bool after_cut = true;
    for (size_t i = 0; i < p->n_steps; i++) {
        const bz_step *s = &p->steps[i];
        if (s->op == BZ_OP_CUT) {
            after_cut = true;
            continue;
        }
        uint64_t bytes = bz_step_weight_bytes(p, s);
        t.steps++;
        t.segments += after_cut;
        t.weight_bytes += bytes;
        t.row_bytes += s->op == BZ_OP_EMBED ? bytes : 0;
        t.output_bytes += bz_step_output_bytes(p, s);
        after_cut = false;
    }
    return t;
}

/* ---- one step as text --------------------------------------------------------- */

typedef struct text {
    char *out;
    size_t n, capacity;
} text;

static void append(text *t, const char *format, ...) BZ_PRINTF(2, 3);

static void append(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t left = t->capacity - t->n;
    const int n = vsnprintf(t->out + t->n, left, format, args);
    va_end(args);
    if (n > 0) {
        t->n += (size_t)n < left ? (size_t)n : left - 1;
    }
}

static void append_tensors(text *t, const bz_plan *p, const bz_tensor *tensors, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].id) {
            append(t, "%s%ux%u", t->n && t->out[t->n - 1] != ' ' ? " " : "",
                   bz_plan_rows_of(p, tensors[i]), bz_plan_tensor(p, tensors[i])->cols);
        }
    }
}

/* What a step reads and writes, "1x1536 kv13 -> 1x2048": rows of the bucket x columns, and
 * caches by the layer that owns them. Truncated at `capacity`. Returns out. */
static const char *shapes_of(const bz_plan *p, const bz_step *s, char *out, size_t capacity)
{
    text t = {out, 0, capacity};
    char cache[16] = "";
    out[0] = 0;
    if (s->cache.id) {
        snprintf(cache, sizeof cache, "kv%d", (int)p->caches[s->cache.id - 1].layer);
    }
    append_tensors(&t, p, s->in, 3);
    if (s->op == BZ_OP_EMBED || s->op == BZ_OP_ROPE_TABLE) { /* the pass's own parameters */
        append(&t, "%s", s->op == BZ_OP_EMBED ? "ids" : "pos");
    } else if (s->op == BZ_OP_ATTEND) {
        append(&t, " %s", cache);
    }
    append(&t, " -> ");
    if (s->op == BZ_OP_KV_WRITE) {
        append(&t, "%s", cache);
    }
    append_tensors(&t, p, s->out, 2);
    return out;
}

/* The last column: the weight, or the heads and visible positions of attention. */
static void detail(const bz_plan *p, const bz_step *s, char *out, size_t capacity)
{
    out[0] = 0;
    if (s->w[0].id) {
        snprintf(out, capacity, "%s", bz_weight_of(p->weights, s->w[0])->name);
    } else if (s->op == BZ_OP_ATTEND && s->bidirectional) {
        snprintf(out, capacity, "%u heads, bidirectional, %s before", s->heads,
                 s->window ? "a window" : "all positions");
    } else if (s->op == BZ_OP_ATTEND && s->image_attention == BZ_TEXT_BOTH_WAYS) {
        snprintf(out, capacity,
                 s->window ? "%u heads, window of %u on both sides" : "%u heads, the whole text",
                 s->heads, s->window);
    } else if (s->op == BZ_OP_ATTEND && s->window) {
        snprintf(out, capacity, "%u heads, window of %u", s->heads, s->window);
    } else if (s->op == BZ_OP_ATTEND) {
        snprintf(out, capacity, "%u heads, all positions", s->heads);
    }
}

/* ---- the list ------------------------------------------------------------------ */

/* Columns are as wide as their longest entry, so that a small plan fits a small terminal. */
typedef struct columns {
    int name, op, shapes;
} columns;

static void widen(int *width, const char *entry)
{
    int n = (int)strlen(entry);
    *width = n > *width ? n : *width;
}

static columns measure(const bz_plan *p)
{
    columns c = {4, 2, 6}; /* the headings */
    char shapes[SHAPES_MAX];
    for (size_t i = 0; i < p->n_steps; i++) {
        const bz_step *s = &p->steps[i];
        if (s->op != BZ_OP_CUT) {
            widen(&c.name, s->name);
            widen(&c.op, bz_op_name(s->op));
            widen(&c.shapes, shapes_of(p, s, shapes, sizeof shapes));
        }
    }
    return c;
}

static void print_segment(size_t number, const bz_step *cut, bz_line_sink sink, void *user)
{
    char line[LINE_MAX_BYTES];
    if (cut && cut->layer >= 0) {
        snprintf(line, sizeof line, "-- segment %zu: %s %d", number, cut->name, (int)cut->layer);
    } else {
        snprintf(line, sizeof line, "-- segment %zu: %s", number, cut ? cut->name : "start");
    }
    sink(user, line);
}

static void print_step(const bz_plan *p, size_t number, const bz_step *s, const columns *c,
                       bz_line_sink sink, void *user)
{
    char line[LINE_MAX_BYTES], shapes[SHAPES_MAX], layer[12] = "-", read[BZ_UNITS_MAX] = "",
                                                   made[BZ_UNITS_MAX] = "";
    char last[160];
    uint64_t weight_bytes = bz_step_weight_bytes(p, s), output_bytes = bz_step_output_bytes(p, s);
    if (s->layer >= 0) {
        snprintf(layer, sizeof layer, "%d", (int)s->layer);
    }
    if (output_bytes) {
        bz_bytes_text(output_bytes, made);
    }
    if (weight_bytes) {
        bz_bytes_text(weight_bytes, read);
    }
    detail(p, s, last, sizeof last);
    snprintf(line, sizeof line, "%4zu %5s  %-*s  %-*s  %-*s  %7s  %7s  %-6s %s", number, layer,
             c->name, s->name, c->op, bz_op_name(s->op), c->shapes,
             shapes_of(p, s, shapes, sizeof shapes), made, read,
             s->w[0].id ? bz_type_of((uint32_t)bz_weight_of(p->weights, s->w[0])->type)->name : "",
             last);
    for (size_t n = strlen(line); n > 0 && line[n - 1] == ' ';) {
        line[--n] = 0;
    }
    sink(user, line);
}

/* Whether the output is vectors of texts. */
static bool has_means(const bz_plan *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].op == BZ_OP_MEAN_ROWS) {
            return true;
        }
    }
    return false;
}

static void print_totals(const bz_plan *p, bz_line_sink sink, void *user)
{
    const bz_plan_totals t = bz_plan_count(p);
    char line[LINE_MAX_BYTES], a[BZ_UNITS_MAX], b[BZ_UNITS_MAX];
    snprintf(line, sizeof line, "%zu steps in %zu segments for %u row%s, %s for %u.", t.steps,
             t.segments, p->rows, p->rows == 1 ? "" : "s", has_means(p) ? "vectors" : "logits",
             p->out_rows);
    sink(user, line);
    snprintf(line, sizeof line, "A pass reads %s of weights, %s of it rows of embedding tables.",
             bz_bytes_text(t.weight_bytes, a), bz_bytes_text(t.row_bytes, b));
    sink(user, line);
    snprintf(line, sizeof line,
             "Activations share an arena of %s; without sharing they would need %s.",
             bz_bytes_text(t.arena_bytes, a), bz_bytes_text(t.output_bytes, b));
    sink(user, line);
}

void bz_plan_print(const bz_plan *p, bz_line_sink sink, void *user)
{
    const columns c = measure(p);
    char line[LINE_MAX_BYTES];
    size_t segment = 0, number = 0;
    const bz_step *cut = NULL;
    bool after_cut = true;
    snprintf(line, sizeof line, "%4s %5s  %-*s  %-*s  %-*s  %7s  %7s  %-6s %s", "step", "layer",
             c.name, "name", c.op, "op", c.shapes, "shapes", "writes", "reads", "type", "weight");
    sink(user, line);
    for (size_t i = 0; i < p->n_steps; i++) {
        const bz_step *s = &p->steps[i];
        if (s->op == BZ_OP_CUT) {
            cut = s;
            after_cut = true;
            continue;
        }
        if (after_cut) {
            print_segment(++segment, cut, sink, user);
            after_cut = false;
        }
        print_step(p, ++number, s, &c, sink, user);
    }
    sink(user, "");
    print_totals(p, sink, user);
}
