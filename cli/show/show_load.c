/* Gathering the facts. The headers are parsed here, so that a file which is no model of
 * ours can be shown too; the verdict is what opening the model says, word for word. */
#include "cli/show/show.h"

#include <stdlib.h>
#include <string.h>

#include "model/diffusion.h"
#include "session/session.h"

/* ---- files ------------------------------------------------------------------- */

void show_free(show_facts *f)
{
    bz_model_free(f->model);
    bz_config_free(&f->own_config);
    for (size_t i = 0; i < f->n_files; i++) {
        bz_gguf_free(&f->headers[i]);
        bz_os_unmap(&f->maps[i]);
        free(f->names[i]);
    }
    free(f->names);
    free(f->maps);
    free(f->headers);
    free(f->files);
    *f = (show_facts){0};
}

/* Maps and parses one more file. */
static bz_status add_file(show_facts *f, const char *path, bz_error *err)
{
    size_t i = f->n_files, len = strlen(path) + 1;
    char *name = malloc(len);
    if (!name) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    }
    memcpy(name, path, len);
    f->names[i] = name;
    f->maps[i] = (bz_os_map){0};
    f->headers[i] = (bz_gguf){0};
    f->n_files++; /* from here on show_free takes care of it */
    bz_status status = bz_os_map_file(path, &f->maps[i], err);
    if (status != BZ_OK) {
        return status;
    }
    const bz_os_map *map = &f->maps[i];
    uint64_t at_least;
    bz_error why = {0};
    if (bz_gguf_parse(&f->headers[i], map->data, map->size, map->size, &at_least, &why) !=
        BZ_GGUF_DONE) {
        return bz_fail(err, why.code ? why.code : BZ_BAD_FILE, "%.100s: %s", path, why.text);
    }
    f->files[i] = (bz_file){name, &f->headers[i], map->size};
    f->total_size += map->size;
    return BZ_OK;
}

/* A part that is not there is no reason to show nothing: the verdict will name it. */
static bz_status add_parts(show_facts *f, const char *path, uint32_t count, bz_error *err)
{
    size_t room = strlen(path) + 1;
    char *sibling = malloc(room);
    bz_status status =
        sibling ? BZ_OK : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    for (uint32_t i = 1; status == BZ_OK && i <= count; i++) {
        if (bz_split_sibling(path, i, sibling, room) &&
            (strcmp(sibling, path) == 0 || bz_os_file_exists(sibling))) {
            status = add_file(f, sibling, err);
        }
    }
    free(sibling);
    return status;
}

static bz_status add_files(show_facts *f, const cli_options *o, bz_error *err)
{
    uint32_t count = 1;
    bool parts = bz_split_name(o->model, NULL, &count) && count < BZ_FILES_MAX;
    size_t room = (parts ? count : 1u) + 1u;
    f->names = calloc(room, sizeof *f->names);
    f->maps = calloc(room, sizeof *f->maps);
    f->headers = calloc(room, sizeof *f->headers);
    f->files = calloc(room, sizeof *f->files);
    if (!f->names || !f->maps || !f->headers || !f->files) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
    }
    bz_status status = parts ? add_parts(f, o->model, count, err) : add_file(f, o->model, err);
    if (status == BZ_OK && o->mmproj) {
        status = add_file(f, o->mmproj, err);
    }
    return status;
}

/* ---- what the headers say ------------------------------------------------------ */

static bool starts_with(bz_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.data, prefix, n) == 0;
}

static show_group group_of(bz_str name)
{
    return starts_with(name, "v.") || starts_with(name, "model.vision_tower.") ? SHOW_VISION
           : starts_with(name, "a.")                                           ? SHOW_AUDIO
           : starts_with(name, "mm.")                                          ? SHOW_PROJECTOR
                                                                               : SHOW_TEXT;
}

static void add_to(show_sum *sum, const bz_gguf_tensor *t)
{
    sum->tensors++;
    sum->bytes += t->size;
    sum->values += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

static int by_bytes(const void *a, const void *b)
{
    const show_type *x = a, *y = b;
    return x->sum.bytes < y->sum.bytes   ? 1
           : x->sum.bytes > y->sum.bytes ? -1
                                         : (int)x->id - (int)y->id;
}

static void count_tensors(show_facts *f)
{
    for (size_t i = 0; i < f->n_files; i++) {
        for (size_t k = 0; k < f->headers[i].n_tensors; k++) {
            const bz_gguf_tensor *t = &f->headers[i].tensors[k];
            size_t n = 0;
            while (n < f->n_types && f->types[n].id != t->type) {
                n++;
            }
            if (n == f->n_types) {
                if (n == BZ_TYPE_END) {
                    continue; /* the parser knows fewer types than that */
                }
                f->types[f->n_types++].id = t->type;
            }
            add_to(&f->types[n].sum, t);
            add_to(&f->groups[group_of(t->name)], t);
        }
    }
    qsort(f->types, f->n_types, sizeof *f->types, by_bytes);
}

static uint64_t number_of(const bz_gguf *g, const char *key)
{
    const bz_gguf_kv *kv = bz_gguf_find(g, key);
    uint64_t v = 0;
    return kv && !kv->is_array && bz_gguf_get_u64(kv, 0, &v) ? v : 0;
}

uint64_t show_arch_number(const show_facts *f, const char *key)
{
    char full[200]; /* an architecture with a name that does not fit is none of anyone's */
    int len = f->architecture.len < 100 ? (int)f->architecture.len : 100;
    snprintf(full, sizeof full, "%.*s.%s", len, len ? f->architecture.data : "", key);
    return number_of(show_main(f), full);
}

/* Towers are described under gemma4.vision. in Ollama's files, clip.vision. in mmproj. */
static void read_tower(show_tower *t, const bz_gguf *g, const char *kind)
{
    static const char *const prefixes[] = {"gemma4", "clip"};
    for (int i = 0; i < 2; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s.block_count", prefixes[i], kind);
        uint64_t layers = number_of(g, key);
        snprintf(key, sizeof key, "%s.%s.embedding_length", prefixes[i], kind);
        uint64_t width = number_of(g, key);
        t->layers = layers ? layers : t->layers;
        t->width = width ? width : t->width;
        snprintf(key, sizeof key, "%s.%s.projector_type", prefixes[i], kind);
        bz_gguf_get_str(bz_gguf_find(g, key), &t->projector);
    }
}

static const char *published_size(uint64_t layers, uint64_t width)
{
    static const struct {
        const char *name;
        uint32_t layers, width;
    } sizes[] = {{"E2B", 35, 1536},
                 {"E4B", 42, 2560},
                 {"12B", 48, 3840},
                 {"26B-A4B", 30, 2816},
                 {"31B", 60, 5376}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (layers == sizes[i].layers && width == sizes[i].width) {
            return sizes[i].name;
        }
    }
    return NULL;
}

static void read_headers(show_facts *f)
{
    bz_files set;
    bool whole = bz_files_init(&set, f->files, f->n_files, NULL) == BZ_OK;
    for (size_t i = 0; i < f->n_files; i++) {
        if (whole ? set.main == &f->headers[i]
                  : bz_gguf_find(&f->headers[i], "general.architecture") != NULL) {
            f->main = i;
            break;
        }
    }
    for (size_t i = 0; i < f->n_files; i++) {
        read_tower(&f->vision, &f->headers[i], "vision");
        read_tower(&f->audio, &f->headers[i], "audio");
    }
    bz_gguf_get_str(bz_gguf_find(show_main(f), "general.architecture"), &f->architecture);
    bz_gguf_get_str(bz_gguf_find(show_main(f), "general.name"), &f->title);
    if (whole && bz_config_knows(f->architecture)) {
        f->flavour = set.flavour == BZ_FLAVOUR_OLLAMA ? "ollama" : "llama.cpp";
    }
    count_tensors(f);
    f->vision.there = f->vision.layers || f->vision.projector.len || f->groups[SHOW_VISION].tensors;
    f->audio.there = f->audio.layers || f->audio.projector.len || f->groups[SHOW_AUDIO].tensors;
}

/* ---- does it run? --------------------------------------------------------------- */

static void write_verdict(show_facts *f)
{
    const bool sees = f->model && bz_model_takes(f->model, BZ_MEDIA_IMAGE),
               hears = f->model && bz_model_takes(f->model, BZ_MEDIA_AUDIO);
    if (!f->model) {
        const char *why = f->refusal.text; /* a sentence that becomes the second half of one */
        size_t n = strlen(why);
        const bool lower = strncmp(why, "The ", 4) == 0 || strncmp(why, "This ", 5) == 0;
        snprintf(f->verdict, sizeof f->verdict, "Bezel does not run this: %s%s%s", lower ? "t" : "",
                 why + lower, n && why[n - 1] == '.' ? "" : ".");
    } else {
        snprintf(f->verdict, sizeof f->verdict, "Bezel runs this model%s.",
                 sees && hears ? ": text, pictures and sound"
                 : sees        ? ": text and pictures"
                 : hears       ? ": text and sound"
                               : "");
    }
}

static void open_model(show_facts *f)
{
    bz_job *job = NULL;
    bz_input *inputs = calloc(f->n_files, sizeof *inputs);
    bz_status status =
        inputs ? BZ_OK : bz_fail(&f->refusal, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
    if (status == BZ_OK) {
        for (size_t i = 0; i < f->n_files; i++) {
            inputs[i] = (bz_input){f->names[i], f->maps[i].size, f->maps[i].data};
        }
        status = bz_model_open(&job, inputs, f->n_files, NULL, &f->refusal);
    }
    if (status == BZ_OK && bz_job_run(job, NULL, &f->refusal) == BZ_OK) {
        f->model = bz_job_model(job);
    }
    bz_job_free(job);
    free(inputs);
    if (f->model) {
        f->config = &f->model->text.config;
    } else if (bz_config_read(&f->own_config, show_main(f), NULL) == BZ_OK) {
        f->config = &f->own_config;
    }
    if (f->config) {
        f->published = published_size(f->config->layers, f->config->width);
    }
}

static bool add_context(show_facts *f, uint32_t context)
{
    size_t at = 0;
    while (at < f->n_contexts && f->contexts[at] < context) {
        at++;
    }
    if (context > f->config->context || f->n_contexts == SHOW_CONTEXTS) {
        return false;
    }
    if (at == f->n_contexts || f->contexts[at] != context) {
        memmove(f->contexts + at + 1, f->contexts + at, (f->n_contexts - at) * sizeof *f->contexts);
        f->contexts[at] = context;
        f->n_contexts++;
    }
    return true;
}

bool show_load(show_facts *f, const cli_options *o, int *exit_code)
{
    bz_error err = {0};
    if (add_files(f, o, &err) != BZ_OK) {
        *exit_code = cli_error(&err);
        return false;
    }
    read_headers(f);
    open_model(f);
    write_verdict(f);
    if (!f->model) {
        return true;
    }
    add_context(f, 2048);
    add_context(f, 8192);
    add_context(f, 32768);
    add_context(f, f->config->context);
    if (o->context && !add_context(f, o->context)) {
        *exit_code =
            cli_usage_error("show", "a context of %u was asked for; this model goes up to %u.",
                            o->context, f->config->context);
        return false;
    }
    if (bz_memory_predict(&f->memory, &f->model->text, BZ_MAX_CHUNK, &err) != BZ_OK) {
        *exit_code = cli_error(&err);
        return false;
    }
    f->gpu_context = o->context                   ? o->context
                     : f->config->context < 32768 ? f->config->context
                                                  : 32768;
    bz_model_fit(f->model, &(bz_fit_options){.context = f->gpu_context}, &f->gpu, &f->gpu_refusal);
    return true;
}

bz_plan *show_plan(const show_facts *f, const cli_options *o, int *exit_code)
{
    bz_plan *plan = NULL;
    bz_error err = {0};
    uint32_t rows = o->rows ? o->rows : 1;
    if (!f->model) {
        fprintf(stderr, "bezel: %s\n", f->verdict);
        *exit_code = EXIT_CANNOT;
    } else if (rows > BZ_MAX_CHUNK) {
        *exit_code = cli_usage_error("show", "a pass has at most %d rows.", BZ_MAX_CHUNK);
    } else if ((f->config->canvas && !o->rows
                    ? bz_diffusion_record_canvas(&f->model->text, &plan, &err)
                : f->config->canvas
                    ? bz_diffusion_record_encoder(&f->model->text, rows, &plan, &err)
                    : bz_text_record(&f->model->text, rows, 1, &plan, &err)) != BZ_OK) {
        *exit_code = cli_error(&err);
    }
    return plan;
}
