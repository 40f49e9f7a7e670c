/* The facts for people: a summary that fits a screen, then the long tables. */
#include "cli/show/show.h"

#include <stdarg.h>
#include <string.h>

#include "base/units.h"
#include "plan/print.h"

enum { LABEL = 15 };

static void row(const char *label, const char *format, ...) BZ_PRINTF(2, 3);

static void row(const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("  %-*s", LABEL, label);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

/* A sentence in lines of the page's width, each beginning with `indent` spaces but the first. */
static void wrapped(const char *sentence, int indent)
{
    int column = indent;
    for (const char *p = sentence; *p;) {
        size_t n = strcspn(p, " ");
        if (column > indent && column + 1 + (int)n > SHOW_COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)n, p);
        column += (int)n;
        p += n;
        p += *p == ' ';
    }
    putchar('\n');
}

/* ---- the file -------------------------------------------------------------------- */

static void print_file(const show_facts *f)
{
    char safe[SHOW_SAFE_MAX], size[BZ_UNITS_MAX], header[BZ_UNITS_MAX];
    size_t keys = 0, tensors = 0;
    for (size_t i = 0; i < f->n_files; i++) {
        const bz_gguf *g = &f->headers[i];
        row(i                ? ""
            : f->n_files > 1 ? "files"
                             : "file",
            "%s", show_path(f->names[i], SHOW_COLUMNS - LABEL - 2, safe));
        if (f->n_files > 1) {
            row("", "  %s, %zu keys, %zu tensors", bz_bytes_text(f->files[i].size, size), g->n_kv,
                g->n_tensors);
        }
        keys += g->n_kv;
        tensors += g->n_tensors;
    }
    row("size", "%s (%llu bytes)", bz_bytes_text(f->total_size, size),
        (unsigned long long)f->total_size);
    row("format", "GGUF %u, %zu keys, %zu tensors, header %s%s%s%s", show_main(f)->version, keys,
        tensors, bz_bytes_text(show_main(f)->header_size, header), f->flavour ? ", " : "",
        !f->flavour                         ? ""
        : strcmp(f->flavour, "ollama") == 0 ? "Ollama"
                                            : f->flavour,
        f->flavour ? " flavour" : "");
    row("architecture", "%s",
        f->architecture.len ? show_safe(f->architecture, 60, safe) : "not said");
    if (f->title.len) {
        row("name", "%s", show_safe(f->title, 80, safe));
    }
}

static void print_parameters(const show_facts *f)
{
    static const char *const names[SHOW_GROUPS] = {"text", "vision", "audio", "projector"};
    char count[BZ_UNITS_MAX];
    uint64_t total = 0;
    int groups = 0;
    for (int i = 0; i < SHOW_GROUPS; i++) {
        total += f->groups[i].values;
        groups += f->groups[i].tensors > 0;
    }
    printf("  %-*s%s", LABEL, "parameters", bz_count_text(total, count));
    for (int i = 0, n = 0; i < SHOW_GROUPS && groups > 1; i++) {
        if (f->groups[i].tensors) {
            printf("%s%s %s", n++ ? ", " : " (", names[i],
                   bz_count_text(f->groups[i].values, count));
        }
    }
    puts(groups > 1 ? ")" : "");
}

/* ---- the model --------------------------------------------------------------------- */

static const bz_layer_config *first_of(const bz_config *c, bool sliding)
{
    for (uint32_t i = 0; i < c->layers; i++) {
        if (c->layer[i].sliding == sliding) {
            return &c->layer[i];
        }
    }
    return NULL;
}

/* The shortest stretch of layers that the model repeats. */
static uint32_t period_of(const bz_config *c)
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

static void print_pattern(const bz_config *c)
{
    uint32_t sliding = 0, period = period_of(c), runs = 1;
    for (uint32_t i = 0; i < c->layers; i++) {
        sliding += c->layer[i].sliding;
    }
    printf("  %-*s%u of width %u: %u sliding, %u full", LABEL, "layers", c->layers, c->width,
           sliding, c->layers - sliding);
    for (uint32_t i = 1; i < period; i++) {
        runs += c->layer[i].sliding != c->layer[i - 1].sliding;
    }
    if (runs > 8 || period == 1 ||
        (period == c->layers && runs <= 2)) { /* too much to say, or all said */
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

static void print_heads(const bz_config *c)
{
    const bz_layer_config *kinds[2] = {first_of(c, true), first_of(c, false)};
    const bool uniform = !kinds[0] || !kinds[1] || kinds[0]->heads == kinds[1]->heads;
    printf("  %-*s", LABEL, "heads");
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

static void print_sharing(const bz_config *c)
{
    uint32_t first = 0;
    while (first < c->layers && c->layer[first].owns_kv) {
        first++;
    }
    if (first == c->layers) {
        row("shared KV", "none");
        return;
    }
    printf("  %-*s%u layers (%u-%u) read the caches of ", LABEL, "shared KV", c->layers - first,
           first, c->layers - 1);
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

static void print_ffn(const bz_config *c)
{
    uint32_t runs = 1, least = c->layer[0].ffn, most = least;
    for (uint32_t i = 1; i < c->layers; i++) {
        uint32_t ffn = c->layer[i].ffn;
        runs += ffn != c->layer[i - 1].ffn;
        least = ffn < least ? ffn : least;
        most = ffn > most ? ffn : most;
    }
    if (runs == 1) {
        row("FFN width", "%u", most);
        return;
    }
    if (runs > 4) {
        row("FFN width", "%u to %u", least, most);
        return;
    }
    printf("  %-*s", LABEL, "FFN width");
    for (uint32_t i = 0, from = 0; i < c->layers; i++) {
        if (i + 1 == c->layers || c->layer[i + 1].ffn != c->layer[i].ffn) {
            printf("%s%u (layers %u-%u)", from ? ", " : "", c->layer[i].ffn, from, i);
            from = i + 1;
        }
    }
    putchar('\n');
}

static void print_model(const show_facts *f)
{
    const bz_config *c = f->config;
    puts("\nModel");
    if (f->published) {
        row("matches", "Gemma 4 %s", f->published);
    } else {
        row("matches", "no published size");
    }
    print_pattern(c);
    print_heads(c);
    row("window", "%u", c->window);
    print_sharing(c);
    print_ffn(c);
    if (c->experts) {
        row("experts", "%u, %u used per token, of width %u", c->experts, c->experts_used,
            c->expert_ffn);
    } else {
        row("experts", "none");
    }
    if (c->ple_width) {
        row("PLE", "%u values per layer", c->ple_width);
    } else {
        row("PLE", "none");
    }
    if (c->vocab) {
        row("vocabulary", "%u", c->vocab);
    }
    row("context", "%u", c->context);
    if (c->canvas) {
        row("canvas", "%u tokens at once, in up to %u steps", c->canvas, c->denoising.steps);
    }
    if (c->softcap > 0) {
        row("softcap", "%g", (double)c->softcap);
    } else {
        row("softcap", "none");
    }
    row("rope bases", "%.9g (sliding), %.9g (full)", c->rope_base_sliding, c->rope_base);
}

/* Of a model that is not ours: what nearly every architecture's keys tell. */
static void print_foreign(const show_facts *f)
{
    static const char *const keys[][2] = {{"block_count", "layers"},
                                          {"embedding_length", "width"},
                                          {"attention.head_count", "heads"},
                                          {"attention.head_count_kv", "KV heads"},
                                          {"feed_forward_length", "FFN width"},
                                          {"expert_count", "experts"},
                                          {"context_length", "context"}};
    int n = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint64_t v = show_arch_number(f, keys[i][0]);
        if (v) {
            if (n++ == 0) {
                puts("\nModel");
            }
            row(keys[i][1], "%llu", (unsigned long long)v);
        }
    }
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_tower(const char *label, const show_tower *t, const show_sum *sum)
{
    char safe[SHOW_SAFE_MAX], size[BZ_UNITS_MAX];
    const char *comma = "";
    if (!t->there) {
        return;
    }
    printf("  %-*s", LABEL, label);
    if (t->layers) {
        printf("%llu layers of width %llu", (unsigned long long)t->layers,
               (unsigned long long)t->width);
        comma = ", ";
    }
    if (sum->tensors) {
        printf("%s%llu tensor%s, %s", comma, (unsigned long long)sum->tensors, plural(sum->tensors),
               bz_bytes_text(sum->bytes, size));
        comma = ", ";
    }
    if (t->projector.len) {
        printf("%sprojector %s", comma, show_safe(t->projector, 30, safe));
    }
    putchar('\n');
}

static void print_towers(const show_facts *f)
{
    const show_sum *projector = &f->groups[SHOW_PROJECTOR];
    if (!f->vision.there && !f->audio.there && !projector->tensors) {
        return;
    }
    puts("\nVision and audio");
    print_tower("vision", &f->vision, &f->groups[SHOW_VISION]);
    print_tower("audio", &f->audio, &f->groups[SHOW_AUDIO]);
    if (projector->tensors) {
        char size[BZ_UNITS_MAX];
        row("projectors", "%llu tensor%s, %s", (unsigned long long)projector->tensors,
            plural(projector->tensors), bz_bytes_text(projector->bytes, size));
    }
}

/* ---- the tokenizer ------------------------------------------------------------------ */

static void print_end_tokens(const bz_tokenizer *t)
{
    char safe[SHOW_SAFE_MAX];
    printf("  %-*s", LABEL, "end tokens");
    for (int32_t id = 0, n = 0; id < bz_tokenizer_size(t); id++) {
        if (bz_tokenizer_is_end(t, id)) {
            printf("%s%d %s", n++ ? ", " : "", id, show_safe(bz_tokenizer_piece(t, id), 24, safe));
        }
    }
    putchar('\n');
}

static void print_tokenizer(const show_facts *f)
{
    const bz_gguf *g = show_main(f);
    const bz_gguf_kv *tokens = bz_gguf_find(g, "tokenizer.ggml.tokens");
    const bz_gguf_kv *merges = bz_gguf_find(g, "tokenizer.ggml.merges");
    bz_str kind = {"", 0}, template = {"", 0};
    char safe[SHOW_SAFE_MAX];
    if (!tokens) {
        return;
    }
    puts("\nTokenizer");
    if (bz_gguf_get_str(bz_gguf_find(g, "tokenizer.ggml.model"), &kind)) {
        row("kind", "%s", show_safe(kind, 30, safe));
    }
    printf("  %-*s%llu", LABEL, "tokens", (unsigned long long)tokens->count);
    if (f->model) {
        const bz_tokenizer *t = f->model->tokenizer;
        int32_t control = 0;
        for (int32_t id = 0; id < bz_tokenizer_size(t); id++) {
            control += bz_tokenizer_is_control(t, id);
        }
        printf(", %d of them control tokens", control);
    }
    if (merges) {
        printf("; %llu merges", (unsigned long long)merges->count);
    }
    putchar('\n');
    if (f->model) {
        const bz_tokenizer *t = f->model->tokenizer;
        int32_t bos = bz_tokenizer_special(t)->bos;
        row("first token", "%d %s", bos, show_safe(bz_tokenizer_piece(t, bos), 24, safe));
        print_end_tokens(t);
    }
    if (bz_gguf_get_str(bz_gguf_find(g, "tokenizer.chat_template"), &template)) {
        row("chat template", "in the file, %zu bytes", template.len);
    } else {
        row("chat template", "not in the file");
    }
}

/* ---- weights and memory -------------------------------------------------------------- */

static void print_types(const show_facts *f)
{
    const bool ours = bz_config_knows(f->architecture); /* else nobody asks what runs */
    uint64_t total = 0;
    for (size_t i = 0; i < f->n_types; i++) {
        total += f->types[i].sum.bytes;
    }
    if (!total) {
        return;
    }
    printf("\nWeights by type\n  %-8s %8s %10s %7s %11s\n", "type", "tensors", "bytes", "share",
           "bits/value");
    for (size_t i = 0; i < f->n_types; i++) {
        const show_sum *s = &f->types[i].sum;
        const bz_type_info *info = bz_type_of(f->types[i].id);
        char size[BZ_UNITS_MAX];
        printf("  %-8s %8llu %10s %6.1f%% %11.2f%s\n", info->name, (unsigned long long)s->tensors,
               bz_bytes_text(s->bytes, size), 100.0 * (double)s->bytes / (double)total,
               8.0 * (double)s->bytes / (double)s->values,
               info->runs || !ours ? "" : "   Bezel does not run this type");
    }
}

static void print_memory(const show_facts *f)
{
    const bz_memory *m = &f->memory;
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX], c[BZ_UNITS_MAX];
    puts("\nMemory by context size");
    printf("  %9s %10s %12s %10s %10s\n", "context", "cache", "activations", "weights", "total");
    for (size_t i = 0; i < f->n_contexts; i++) {
        uint64_t cache = bz_memory_cache(&f->model->text, f->contexts[i], m->chunk);
        printf("  %9u %10s", f->contexts[i], bz_bytes_text(cache, a));
        printf(" %12s %10s", bz_bytes_text(m->arena_bytes, a), bz_bytes_text(m->weight_bytes, b));
        printf(" %10s\n", bz_bytes_text(cache + m->arena_bytes + m->weight_bytes, c));
    }
    printf("  %s reads %s of the weights", f->config->canvas ? "A step over a canvas" : "A token",
           bz_bytes_text(m->token_bytes, a));
    if (m->table_bytes) {
        printf("; %s are tables it needs one row of", bz_bytes_text(m->table_bytes, b));
    }
    printf(".\n  Cache in f16, passes of up to %u tokens; each way back in a chat keeps %s more.\n",
           m->chunk, bz_bytes_text(m->snapshot_bytes, c));
}

static void print_gpu(const show_facts *f)
{
    const bz_fit *g = &f->gpu;
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX], c[BZ_UNITS_MAX];
    const uint64_t total = g->weights + g->towers + g->caches + g->work;
    puts("\nOn a GPU");
    printf("  %s with context %u: weights %s,", bz_bytes_text(total, a), f->gpu_context,
           bz_bytes_text(g->weights, b));
    if (g->towers) {
        printf(" towers %s,", bz_bytes_text(g->towers, c));
    }
    printf(" cache %s, activations ~%s", bz_bytes_text(g->caches, a), bz_bytes_text(g->work, b));
    if (g->ple > total / 100) {
        printf(";\n  %s less with the per-layer embeddings in the file (--ple file)",
               bz_bytes_text(g->ple, c));
    }
    puts(".");
    if (f->gpu_refusal.code != BZ_OK) {
        printf("  %s\n", f->gpu_refusal.text);
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

void show_as_text(const show_facts *f)
{
    printf("  %-*s", LABEL, "verdict");
    wrapped(f->verdict, LABEL + 2);
    print_file(f);
    print_parameters(f);
    if (f->config) {
        print_model(f);
    } else {
        print_foreign(f);
    }
    print_towers(f);
    print_tokenizer(f);
    print_types(f);
    if (f->model) {
        print_memory(f);
        print_gpu(f);
    }
    show_metadata_table(f);
    show_tensor_table(f);
    putchar('\n');
    wrapped(f->verdict, 0); /* again: by now the first lines have left the screen */
}

static void print_line(void *user, const char *line)
{
    (void)user;
    puts(line);
}

void show_plan_as_text(const bz_plan *plan)
{
    bz_plan_print(plan, print_line, NULL);
    puts("Passes are recorded for 1, 8, 64 and 512 rows; '--rows N' shows another than this.");
}
