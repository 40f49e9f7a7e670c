/* The layers of a model in a few lines: their pattern, attention heads, shared caches, FFN widths.
 */
#include "cli/show/show.h"

static const bz_debug_layer *first_of(const bz_debug_config *c, bool sliding)
{
    for (uint32_t i = 0; i < c->layers; i++) {
        if (c->layer[i].sliding == sliding) {
            return &c->layer[i];
        }
    }
    return NULL;
}

/* Length of the shortest sequence of layer kinds that the model repeats. */
static uint32_t period_of(const bz_debug_config *c)
{
    for (uint32_t p = 1; p < c->layers; p++) {
        uint32_t i = p;
        while (i < c->layers && c->layer[i].sliding == c->layer[i - p].sliding) {
            i++;
        }
        if (i == c->layers) {
            return p;
        }
    }
    return c->layers;
}

static void print_pattern(const bz_debug_config *c)
{
    uint32_t sliding = 0, period = period_of(c), runs = 1;
    for (uint32_t i = 0; i < c->layers; i++) {
        sliding += c->layer[i].sliding;
    }
    printf("  %-*s%u of width %u: %u sliding, %u full", SHOW_LABEL, "layers", c->layers, c->width,
           sliding, c->layers - sliding);
    for (uint32_t i = 1; i < period; i++) {
        runs += c->layer[i].sliding != c->layer[i - 1].sliding;
    }
    if (runs > 8 || period == 1 ||
        (period == c->layers && runs <= 2)) { /* too irregular, or nothing to add */
        puts(runs > 8 ? ", in no regular pattern" : "");
        return;
    }
    for (uint32_t i = 0, from = 0; i < period; i++) {
        if (i + 1 == period || c->layer[i + 1].sliding != c->layer[i].sliding) {
            printf("%s%u %s", from ? ", " : " (", i + 1 - from,
                   c->layer[i].sliding ? "sliding" : "full");
            from = i + 1;
        }
    }
    puts(period < c->layers ? ", repeated)" : ")");
}

static void print_heads(const bz_debug_config *c)
{
    const bz_debug_layer *kinds[2] = {first_of(c, true), first_of(c, false)};
    const bool uniform = !kinds[0] || !kinds[1] || kinds[0]->heads == kinds[1]->heads;
    printf("  %-*s", SHOW_LABEL, "heads");
    if (uniform) {
        printf("%u query; ", (kinds[0] ? kinds[0] : kinds[1])->heads);
    }
    for (int i = 0, n = 0; i < 2; i++) {
        if (kinds[i]) {
            printf(n++ ? ", " : "");
            if (!uniform) {
                printf("%u query, ", kinds[i]->heads);
            }
            printf("%u key/value of %u (%s)", kinds[i]->kv_heads, kinds[i]->head_dim,
                   i ? "full" : "sliding");
        }
    }
    putchar('\n');
}

static void print_sharing(const bz_debug_config *c)
{
    uint32_t first = 0;
    while (first < c->layers && c->layer[first].owns_kv) {
        first++;
    }
    if (first == c->layers) {
        show_row("shared KV", "none");
        return;
    }
    printf("  %-*s%u layers (%u-%u) read the caches of ", SHOW_LABEL, "shared KV",
           c->layers - first, first, c->layers - 1);
    for (int kind = 0, n = 0; kind < 2; kind++) {
        for (uint32_t i = first; i < c->layers; i++) {
            if (c->layer[i].sliding == (kind == 0)) {
                printf("%slayer %u (%s)", n++ ? " and " : "", c->layer[i].kv_layer,
                       kind ? "full" : "sliding");
                break;
            }
        }
    }
    putchar('\n');
}

static void print_ffn(const bz_debug_config *c)
{
    uint32_t runs = 1, lowest = c->layer[0].ffn, highest = lowest;
    for (uint32_t i = 1; i < c->layers; i++) {
        uint32_t ffn = c->layer[i].ffn;
        runs += ffn != c->layer[i - 1].ffn;
        lowest = ffn < lowest ? ffn : lowest;
        highest = ffn > highest ? ffn : highest;
    }
    if (runs == 1) {
        show_row("FFN width", "%u", highest);
        return;
    }
    if (runs > 4) {
        show_row("FFN width", "%u to %u", lowest, highest);
        return;
    }
    printf("  %-*s", SHOW_LABEL, "FFN width");
    for (uint32_t i = 0, from = 0; i < c->layers; i++) {
        if (i + 1 == c->layers || c->layer[i + 1].ffn != c->layer[i].ffn) {
            printf("%s%u (layers %u-%u)", from ? ", " : "", c->layer[i].ffn, from, i);
            from = i + 1;
        }
    }
    putchar('\n');
}

void show_layers(const bz_debug_config *c)
{
    print_pattern(c);
    print_heads(c);
    show_row("window", "%u", c->window);
    print_sharing(c);
    print_ffn(c);
}
