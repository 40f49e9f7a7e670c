/* `bezel show` for people: a summary that fits a screen, then the long tables. */
#include "cli/show/show.h"

#include <stdarg.h>
#include <string.h>

#include "base/units.h"

void show_row(const char *label, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("  %-*s", SHOW_LABEL, label);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

/* Wraps a sentence at SHOW_COLUMNS; lines after the first are indented. */
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

static void print_file(const show_info *info)
{
    char safe[SHOW_SAFE_MAX], size[BZ_UNITS_MAX], header[BZ_UNITS_MAX];
    const bz_debug_set *set = &info->set;
    const bz_debug_file main = bz_debug_files_file(info->files, set->main);
    size_t keys = 0, tensors = 0;
    for (size_t i = 0; i < set->n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(info->files, i);
        show_row(i                  ? ""
                 : set->n_files > 1 ? "files"
                                    : "file",
                 "%s", show_path(file.path, SHOW_COLUMNS - SHOW_LABEL - 2, safe));
        if (set->n_files > 1) {
            show_row("", "  %s, %zu keys, %zu tensors", bz_bytes_text(file.size, size), file.n_keys,
                     file.n_tensors);
        }
        keys += file.n_keys;
        tensors += file.n_tensors;
    }
    show_row("size", "%s (%llu bytes)", bz_bytes_text(set->bytes, size),
             (unsigned long long)set->bytes);
    show_row("format", "GGUF %u, %zu keys, %zu tensors, header %s%s%s%s", main.version, keys,
             tensors, bz_bytes_text(main.header_bytes, header), set->flavor ? ", " : "",
             !set->flavor                         ? ""
             : strcmp(set->flavor, "ollama") == 0 ? "Ollama"
                                                  : set->flavor,
             set->flavor ? " flavor" : "");
    show_row("architecture", "%s",
             info->architecture.len ? show_safe(info->architecture, 60, safe) : "not in the file");
    if (info->title.len) {
        show_row("name", "%s", show_safe(info->title, 80, safe));
    }
}

static void print_parameters(const show_info *info)
{
    static const char *const names[SHOW_GROUPS] = {"text", "vision", "audio", "projector"};
    char count[BZ_UNITS_MAX];
    uint64_t total = 0;
    int groups = 0;
    for (int i = 0; i < SHOW_GROUPS; i++) {
        total += info->groups[i].values;
        groups += info->groups[i].tensors > 0;
    }
    printf("  %-*s%s", SHOW_LABEL, "parameters", bz_count_text(total, count));
    for (int i = 0, n = 0; i < SHOW_GROUPS && groups > 1; i++) {
        if (info->groups[i].tensors) {
            printf("%s%s %s", n++ ? ", " : " (", names[i],
                   bz_count_text(info->groups[i].values, count));
        }
    }
    puts(groups > 1 ? ")" : "");
}

/* ---- the model --------------------------------------------------------------------- */

static void print_model(const show_info *info)
{
    const bz_debug_config *c = info->config;
    puts("\nModel");
    if (info->published) {
        show_row("matches", "Gemma 4 %s", info->published);
    } else {
        show_row("matches", "no published size");
    }
    show_layers(c);
    if (c->experts) {
        show_row("experts", "%u, %u used per token, of width %u", c->experts, c->experts_used,
                 c->expert_ffn);
    } else {
        show_row("experts", "none");
    }
    if (c->ple_width) {
        show_row("PLE", "%u values per layer", c->ple_width);
    } else {
        show_row("PLE", "none");
    }
    if (c->vocabulary) {
        show_row("vocabulary", "%u", c->vocabulary);
    }
    show_row("context", "%u", c->context);
    if (c->canvas) {
        show_row("canvas", "%u tokens at once, in up to %u steps", c->canvas, c->canvas_steps);
    }
    if (c->softcap > 0) {
        show_row("softcap", "%g", (double)c->softcap);
    } else {
        show_row("softcap", "none");
    }
    show_row("rope bases", "%.9g (sliding), %.9g (full)", c->rope_base_sliding, c->rope_base);
}

/* Of another architecture: keys that nearly every one has. */
static void print_foreign(const show_info *info)
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
        uint64_t v = show_arch_number(info, keys[i][0]);
        if (v) {
            if (n++ == 0) {
                puts("\nModel");
            }
            show_row(keys[i][1], "%llu", (unsigned long long)v);
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
    if (!t->present) {
        return;
    }
    printf("  %-*s", SHOW_LABEL, label);
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

static void print_towers(const show_info *info)
{
    const show_sum *projector = &info->groups[SHOW_PROJECTOR];
    if (!info->vision.present && !info->audio.present && !projector->tensors) {
        return;
    }
    puts("\nVision and audio");
    print_tower("vision", &info->vision, &info->groups[SHOW_VISION]);
    print_tower("audio", &info->audio, &info->groups[SHOW_AUDIO]);
    if (projector->tensors) {
        char size[BZ_UNITS_MAX];
        show_row("projectors", "%llu tensor%s, %s", (unsigned long long)projector->tensors,
                 plural(projector->tensors), bz_bytes_text(projector->bytes, size));
    }
}

/* ---- the tokenizer ------------------------------------------------------------------ */

static const char *safe_piece(const bz_model *model, int32_t id, char out[SHOW_SAFE_MAX])
{
    bz_str piece;
    piece.data = bz_token_piece(model, id, &piece.len);
    return show_safe(piece, 24, out);
}

static void print_end_tokens(const bz_model *model)
{
    char safe[SHOW_SAFE_MAX];
    const int32_t size = (int32_t)bz_model_vocab(model);
    printf("  %-*s", SHOW_LABEL, "end tokens");
    for (int32_t id = 0, n = 0; id < size; id++) {
        if (bz_token_ends(model, id)) {
            printf("%s%d %s", n++ ? ", " : "", id, safe_piece(model, id, safe));
        }
    }
    putchar('\n');
}

static void print_tokenizer(const show_info *info)
{
    const uint64_t tokens = show_count_key(info, "tokenizer.ggml.tokens");
    const uint64_t merges = show_count_key(info, "tokenizer.ggml.merges");
    const bz_str kind = show_text_key(info, "tokenizer.ggml.model");
    const bz_str template = show_text_key(info, "tokenizer.chat_template");
    char safe[SHOW_SAFE_MAX];
    if (!tokens) {
        return;
    }
    puts("\nTokenizer");
    if (kind.len) {
        show_row("kind", "%s", show_safe(kind, 30, safe));
    }
    printf("  %-*s%llu", SHOW_LABEL, "tokens", (unsigned long long)tokens);
    if (info->model) {
        printf(", %d of them control tokens", show_control_tokens(info->model));
    }
    if (merges) {
        printf("; %llu merges", (unsigned long long)merges);
    }
    putchar('\n');
    if (info->model) {
        const int32_t first = show_first_token(info->model);
        show_row("first token", "%d %s", first, safe_piece(info->model, first, safe));
        print_end_tokens(info->model);
    }
    if (template.len) {
        show_row("chat template", "in the file, %zu bytes", template.len);
    } else {
        show_row("chat template", "not in the file");
    }
}

/* ---- weights and memory -------------------------------------------------------------- */

static void print_types(const show_info *info)
{
    uint64_t total = 0;
    for (size_t i = 0; i < info->n_types; i++) {
        total += info->types[i].sum.bytes;
    }
    if (!total) {
        return;
    }
    printf("\nWeights by type\n  %-8s %8s %10s %7s %11s\n", "type", "tensors", "bytes", "share",
           "bits/value");
    for (size_t i = 0; i < info->n_types; i++) {
        const show_sum *s = &info->types[i].sum;
        const show_type *type = &info->types[i];
        char size[BZ_UNITS_MAX];
        printf("  %-8s %8llu %10s %6.1f%% %11.2f%s\n", type->name, (unsigned long long)s->tensors,
               bz_bytes_text(s->bytes, size), 100.0 * (double)s->bytes / (double)total,
               8.0 * (double)s->bytes / (double)s->values,
               type->runs || !info->set.known ? "" : "   Bezel does not run this type");
    }
}

static void print_memory(const show_info *info)
{
    const bz_debug_memory *m = &info->memory;
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX], c[BZ_UNITS_MAX];
    puts("\nMemory by context size");
    printf("  %9s %10s %12s %10s %10s\n", "context", "cache", "activations", "weights", "total");
    for (size_t i = 0; i < info->n_contexts; i++) {
        uint64_t cache = bz_debug_cache_bytes(info->model, info->kv, info->contexts[i], m->chunk);
        printf("  %9u %10s", info->contexts[i], bz_bytes_text(cache, a));
        printf(" %12s %10s", bz_bytes_text(m->activation_bytes, a),
               bz_bytes_text(m->weight_bytes, b));
        printf(" %10s\n", bz_bytes_text(cache + m->activation_bytes + m->weight_bytes, c));
    }
    printf("  %s reads %s of the weights",
           info->config->canvas ? "A step over a canvas" : "A token",
           bz_bytes_text(m->token_bytes, a));
    if (m->table_bytes) {
        printf("; %s are tables it needs one row of", bz_bytes_text(m->table_bytes, b));
    }
    printf(".\n  Cache in %s, passes of up to %u tokens; each saved position of a chat takes %s "
           "more.\n",
           info->kv, m->chunk, bz_bytes_text(m->snapshot_bytes, c));
}

static void print_gpu(const show_info *info)
{
    const bz_fit *g = &info->gpu;
    char a[BZ_UNITS_MAX], b[BZ_UNITS_MAX], c[BZ_UNITS_MAX];
    const uint64_t total = g->weights + g->towers + g->caches + g->work;
    puts("\nOn a GPU");
    printf("  %s with context %u: weights %s,", bz_bytes_text(total, a), info->gpu_context,
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
    if (info->gpu_refusal.code != BZ_OK) {
        printf("  %s\n", info->gpu_refusal.text);
    }
}

static void print_adapter(const show_info *info)
{
    const show_adapter *a = &info->adapter;
    char rank[64], alpha[40] = "none";
    snprintf(rank, sizeof rank, a->least_rank < a->most_rank ? "ranks %llu to %llu" : "rank %llu",
             (unsigned long long)a->least_rank, (unsigned long long)a->most_rank);
    if (a->alpha != 0) {
        snprintf(alpha, sizeof alpha, "%g", a->alpha);
    }
    show_row("adapter", "%llu weights, %s, alpha %s", (unsigned long long)a->pairs, rank, alpha);
}

/* ---- all of it ------------------------------------------------------------------------------ */

void show_as_text(const show_info *info)
{
    printf("  %-*s", SHOW_LABEL, "verdict");
    wrapped(info->verdict, SHOW_LABEL + 2);
    print_file(info);
    print_parameters(info);
    if (info->adapter.present) {
        print_adapter(info);
    } else if (info->config) {
        print_model(info);
    } else {
        print_foreign(info);
    }
    print_towers(info);
    print_tokenizer(info);
    print_types(info);
    if (info->model) {
        print_memory(info);
        print_gpu(info);
    }
    show_metadata_table(info);
    show_tensor_table(info);
    putchar('\n');
    wrapped(info->verdict, 0); /* again: the first lines have scrolled away */
}
