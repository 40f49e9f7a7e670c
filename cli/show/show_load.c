/* Gathers what `bezel show` prints. Headers are read through bezel_debug.h, so that a file which is
 * not a Gemma 4 model can be shown too. The verdict quotes the error of opening the model. */
#include "cli/show/show.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_CONTEXT = 32768 }; /* a session's default, where the model allows it */

void show_free(show_info *info)
{
    bz_model_free(info->model);
    bz_debug_files_free(info->files);
    *info = (show_info){0};
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

static void add_to(show_sum *sum, const bz_debug_tensor *t)
{
    sum->tensors++;
    sum->bytes += t->bytes;
    sum->values += t->values;
}

static int by_bytes(const void *a, const void *b)
{
    const show_type *x = a, *y = b;
    return x->sum.bytes < y->sum.bytes   ? 1
           : x->sum.bytes > y->sum.bytes ? -1
                                         : (int)x->id - (int)y->id;
}

static void count_tensors(show_info *info)
{
    for (size_t i = 0; i < info->set.n_files; i++) {
        const size_t n_tensors = bz_debug_files_file(info->files, i).n_tensors;
        for (size_t k = 0; k < n_tensors; k++) {
            const bz_debug_tensor t = bz_debug_files_tensor(info->files, i, k);
            size_t n = 0;
            while (n < info->n_types && info->types[n].id != t.type) {
                n++;
            }
            if (n == info->n_types) {
                if (n == SHOW_TYPES) {
                    continue; /* cannot happen: the file format has fewer types */
                }
                info->types[info->n_types++] =
                    (show_type){.id = t.type, .name = t.type_name, .runs = t.runs};
            }
            add_to(&info->types[n].sum, &t);
            add_to(&info->groups[group_of(show_str(t.name))], &t);
        }
    }
    qsort(info->types, info->n_types, sizeof *info->types, by_bytes);
}

static bz_str text_key(const show_info *info, size_t file, const char *name)
{
    size_t key;
    if (bz_debug_files_find(info->files, file, name, &key) &&
        !bz_debug_files_key(info->files, file, key).is_array) {
        const bz_debug_value v = bz_debug_files_value(info->files, file, key, 0);
        return v.kind == BZ_DEBUG_TEXT ? show_str(v.text) : (bz_str){"", 0};
    }
    return (bz_str){"", 0};
}

static uint64_t number_key(const show_info *info, size_t file, const char *name)
{
    size_t key;
    if (!bz_debug_files_find(info->files, file, name, &key) ||
        bz_debug_files_key(info->files, file, key).is_array) {
        return 0;
    }
    const bz_debug_value v = bz_debug_files_value(info->files, file, key, 0);
    const bool whole = (v.kind == BZ_DEBUG_F32 || v.kind == BZ_DEBUG_F64) && v.f >= 0 &&
                       v.f < 1e15 && v.f == (double)(uint64_t)v.f;
    return whole ? (uint64_t)v.f : v.kind == BZ_DEBUG_UINT || v.kind == BZ_DEBUG_BOOL ? v.u : 0;
}

bz_str show_text_key(const show_info *info, const char *key)
{
    return text_key(info, info->set.main, key);
}

uint64_t show_count_key(const show_info *info, const char *name)
{
    size_t key;
    return bz_debug_files_find(info->files, info->set.main, name, &key)
               ? bz_debug_files_key(info->files, info->set.main, key).count
               : 0;
}

uint64_t show_arch_number(const show_info *info, const char *key)
{
    char full[200];
    int len = info->architecture.len < 100 ? (int)info->architecture.len : 100;
    snprintf(full, sizeof full, "%.*s.%s", len, len ? info->architecture.data : "", key);
    return number_key(info, info->set.main, full);
}

/* Towers are described under gemma4.vision. in Ollama's files, clip.vision. in mmproj files. */
static void read_tower(show_tower *t, const show_info *info, size_t file, const char *kind)
{
    static const char *const prefixes[] = {"gemma4", "clip"};
    for (int i = 0; i < 2; i++) {
        char key[80];
        snprintf(key, sizeof key, "%s.%s.block_count", prefixes[i], kind);
        uint64_t layers = number_key(info, file, key);
        snprintf(key, sizeof key, "%s.%s.embedding_length", prefixes[i], kind);
        uint64_t width = number_key(info, file, key);
        snprintf(key, sizeof key, "%s.%s.projector_type", prefixes[i], kind);
        bz_str projector = text_key(info, file, key);
        t->layers = layers ? layers : t->layers;
        t->width = width ? width : t->width;
        t->projector = projector.len ? projector : t->projector;
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

static void read_headers(show_info *info)
{
    info->set = bz_debug_files_set(info->files);
    info->architecture = show_str(info->set.architecture);
    info->title = show_text_key(info, "general.name");
    for (size_t i = 0; i < info->set.n_files; i++) {
        read_tower(&info->vision, info, i, "vision");
        read_tower(&info->audio, info, i, "audio");
    }
    count_tensors(info);
    info->vision.present =
        info->vision.layers || info->vision.projector.len || info->groups[SHOW_VISION].tensors;
    info->audio.present =
        info->audio.layers || info->audio.projector.len || info->groups[SHOW_AUDIO].tensors;
}

static bool ends_with(bz_str s, const char *suffix)
{
    const size_t n = strlen(suffix);
    return s.len >= n && memcmp(s.data + s.len - n, suffix, n) == 0;
}

static void read_adapter(show_info *info)
{
    show_adapter *a = &info->adapter;
    size_t key;
    a->present = bz_str_is(show_text_key(info, "general.type"), "adapter") &&
                 bz_str_is(show_text_key(info, "adapter.type"), "lora");
    if (!a->present) {
        return;
    }
    if (bz_debug_files_find(info->files, info->set.main, "adapter.lora.alpha", &key) &&
        !bz_debug_files_key(info->files, info->set.main, key).is_array) {
        const bz_debug_value v = bz_debug_files_value(info->files, info->set.main, key, 0);
        a->alpha = v.kind == BZ_DEBUG_F32 || v.kind == BZ_DEBUG_F64 ? v.f : 0;
    }
    const size_t n = bz_debug_files_file(info->files, info->set.main).n_tensors;
    for (size_t i = 0; i < n; i++) {
        const bz_debug_tensor t = bz_debug_files_tensor(info->files, info->set.main, i);
        if (ends_with(show_str(t.name), ".lora_b")) {
            const uint64_t rank = t.shape[0];
            a->least_rank = a->pairs && a->least_rank < rank ? a->least_rank : rank;
            a->most_rank = a->most_rank > rank ? a->most_rank : rank;
            a->pairs++;
        }
    }
}

/* ---- does it run? --------------------------------------------------------------- */

static void write_verdict(show_info *info)
{
    const bool vision = info->model && bz_model_takes(info->model, BZ_MEDIA_IMAGE),
               audio = info->model && bz_model_takes(info->model, BZ_MEDIA_AUDIO);
    if (info->adapter.present) {
        snprintf(info->verdict, sizeof info->verdict,
                 "This is a LoRA adapter: 'bezel run MODEL --lora FILE' applies it to the model "
                 "that it was made for.");
    } else if (!info->model) {
        const char *why = info->refusal.text; /* a sentence; here it follows a colon */
        size_t n = strlen(why);
        const bool lower = strncmp(why, "The ", 4) == 0 || strncmp(why, "This ", 5) == 0;
        snprintf(info->verdict, sizeof info->verdict, "Bezel does not run this: %s%s%s",
                 lower ? "t" : "", why + lower, n && why[n - 1] == '.' ? "" : ".");
    } else {
        snprintf(info->verdict, sizeof info->verdict, "Bezel runs this model%s.",
                 vision && audio ? ": text, images and audio"
                 : vision        ? ": text and images"
                 : audio         ? ": text and audio"
                                 : "");
    }
}

static void open_model(show_info *info)
{
    const size_t n = info->set.n_files;
    bz_job *job = NULL;
    bz_input *inputs = calloc(n, sizeof *inputs);
    bz_status status =
        inputs ? BZ_OK
               : bz_fail(&info->refusal, BZ_OUT_OF_MEMORY, "No memory for the list of files.");
    if (status == BZ_OK) {
        for (size_t i = 0; i < n; i++) {
            const bz_debug_file file = bz_debug_files_file(info->files, i);
            inputs[i] = (bz_input){file.path, file.size, file.data};
        }
        status = bz_model_open(&job, inputs, n, NULL, &info->refusal);
    }
    if (status == BZ_OK && bz_job_run(job, NULL, &info->refusal) == BZ_OK) {
        info->model = bz_job_model(job);
    }
    bz_job_free(job);
    free(inputs);
    if (bz_debug_files_config(info->files, &info->own_config, NULL) == BZ_OK) {
        info->config = &info->own_config;
        info->published = published_size(info->config->layers, info->config->width);
        if (info->model) {
            info->own_config.vocabulary = bz_model_vocab(info->model);
        }
    }
}

static bool add_context(show_info *info, uint32_t context)
{
    size_t at = 0;
    while (at < info->n_contexts && info->contexts[at] < context) {
        at++;
    }
    if (context > info->config->context || info->n_contexts == SHOW_CONTEXTS) {
        return false;
    }
    if (at == info->n_contexts || info->contexts[at] != context) {
        memmove(info->contexts + at + 1, info->contexts + at,
                (info->n_contexts - at) * sizeof *info->contexts);
        info->contexts[at] = context;
        info->n_contexts++;
    }
    return true;
}

bool show_load(show_info *info, const cli_options *o, int *exit_code)
{
    bz_error err = {0};
    if (bz_debug_files_open(&info->files, o->model, o->mmproj, &err) != BZ_OK) {
        *exit_code = cli_error(&err);
        return false;
    }
    read_headers(info);
    read_adapter(info);
    open_model(info);
    write_verdict(info);
    if (!info->model) {
        return true;
    }
    const uint32_t limit = info->config->context;
    info->kv = o->kv ? o->kv : "f16";
    add_context(info, 2048);
    add_context(info, 8192);
    add_context(info, USUAL_CONTEXT);
    add_context(info, limit);
    if (o->context && !add_context(info, o->context)) {
        *exit_code = cli_usage_error(
            "show", "a context of %u is more than this model's %u; give a smaller '--ctx'.",
            o->context, limit);
        return false;
    }
    if (bz_debug_model_memory(info->model, o->kv, 0, &info->memory, &err) != BZ_OK) {
        *exit_code = cli_error(&err);
        return false;
    }
    info->gpu_context = o->context ? o->context : limit < USUAL_CONTEXT ? limit : USUAL_CONTEXT;
    info->gpu = (bz_fit){.size = sizeof info->gpu};
    bz_model_fit(info->model,
                 &(bz_fit_options){
                     .size = sizeof(bz_fit_options), .context = info->gpu_context, .kv = o->kv},
                 &info->gpu, &info->gpu_refusal);
    return true;
}

/* ---- tokens ---------------------------------------------------------------------- */

int32_t show_control_tokens(const bz_model *model)
{
    const int32_t size = (int32_t)bz_model_vocab(model);
    int32_t n = 0;
    for (int32_t id = 0; id < size; id++) {
        n += bz_debug_token_is_control(model, id);
    }
    return n;
}

int32_t show_first_token(const bz_model *model)
{
    int32_t id = -1;
    bz_tokenize(model, "", 0, false, true, &id, 1, NULL);
    return id;
}
