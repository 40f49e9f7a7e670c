/* The job that opens a model: headers, then tables, then the weights that must be in memory and are
 * not mapped, then a check of the small vectors, then loading onto the GPU. What takes time is done
 * in many short steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/little.h"
#include "base/memory.h"
#include "base/options.h"
#include "session/constraint.h"
#include "session/job.h"
#include "session/model.h"

enum {
    FIRST_HEADER_BYTES = 1 << 16,
    HEADER_SLICE_BYTES = 4 << 20,
    SLICE_BYTES = 4 << 20 /* of one read of weights: 16 of them are the 64 MB allowed in flight */
};

typedef enum open_state {
    HEADERS,
    MODEL,
    TOKENIZER,
    TABLES,
    WEIGHTS,
    CHECK,
    UPLOAD,
    OPENED
} open_state;

typedef struct open_job {
    bz_job job;
    bz_model *model;
    open_state state;
    int drafter;          /* the file that has to be one; -1: none has to */
    size_t file;          /* HEADERS: the one being parsed */
    uint64_t wanted;      /* HEADERS: bytes to have before parsing again */
    uint32_t weight;      /* WEIGHTS: the one being read */
    uint64_t read;        /* WEIGHTS: bytes of it asked for */
    uint64_t done, total; /* WEIGHTS: bytes, for progress */
    bool event_due;       /* WEIGHTS */
} open_job;

void bz_model_free(bz_model *m)
{
    if (!m) {
        return;
    }
    for (uint32_t i = 0; m->owned_bytes && i < m->text.weights.table.n; i++) {
        free(m->owned_bytes[i]);
    }
    if (m->gpu) {
        bz_gpu_model_drop(m->gpu->loaded);
        free(m->gpu);
    }
    free(m->owned_bytes);
    free((void *)m->weight_bytes);
    bz_model_free_vocabulary(m);
    bz_tokenizer_free(m->tokenizer);
    bz_text_model_free(&m->text);
    bz_towers_free(&m->towers);
    for (size_t i = 0; m->files && i < m->n_files; i++) {
        model_file *f = &m->files[i];
        if (f->parsed) {
            bz_gguf_free(&f->gguf);
        }
        bz_os_unmap(&f->map);
        free(f->header);
        free(f->name);
    }
    free(m->files);
    free(m->parsed);
    free(m->name);
    free(m->architecture);
    free(m);
}

/* ---- stages ----------------------------------------------------------------- */

static bz_progress failed(bz_need *need, bz_status code, const char *what)
{
    bz_fail(&need->error, code, "%s", what);
    return BZ_JOB_ERROR;
}

/* Names the file in an error: a model may have several. */
static void name_file(bz_error *err, const char *name)
{
    bz_error plain = *err;
    bz_fail(err, plain.code, "%.100s: %s", name, plain.text);
}

static bz_progress step_headers(open_job *j, bz_need *need)
{
    if (j->file == j->model->n_files) {
        j->state = MODEL;
        return BZ_JOB_AGAIN;
    }
    model_file *f = &j->model->files[j->file];
    if (!f->data && f->header_bytes < j->wanted) { /* request what is missing */
        uint8_t *more = bz_realloc(f->header, j->wanted);
        if (!more) {
            return failed(need, BZ_OUT_OF_MEMORY, "No memory for the file's header.");
        }
        f->header = more;
        need->n_reads = 1;
        need->reads[0] = (bz_read){.file = (uint32_t)j->file,
                                   .offset = f->header_bytes,
                                   .length = j->wanted - f->header_bytes,
                                   .to = more + f->header_bytes};
        f->header_bytes = j->wanted;
        return BZ_JOB_NEED_BYTES;
    }
    uint64_t at_least = 0;
    const uint8_t *bytes = f->data ? f->data : f->header;
    switch (bz_gguf_parse(&f->gguf, bytes, f->data ? f->size : f->header_bytes, f->size, &at_least,
                          &need->error)) {
    case BZ_GGUF_ERROR: name_file(&need->error, f->name); return BZ_JOB_ERROR;
    case BZ_GGUF_MORE: /* twice as much each time, since parsing starts over, but little more than
                          needed at the end */
        j->wanted = f->header_bytes +
                    (f->header_bytes < HEADER_SLICE_BYTES ? f->header_bytes : HEADER_SLICE_BYTES);
        j->wanted = at_least > j->wanted ? at_least : j->wanted;
        j->wanted = j->wanted < f->size ? j->wanted : f->size;
        return BZ_JOB_AGAIN;
    case BZ_GGUF_DONE: break;
    }
    f->parsed = true;
    j->model->parsed[j->file] = (bz_file){f->name, &f->gguf, f->size};
    j->file++;
    j->wanted = FIRST_HEADER_BYTES;
    if (j->file < j->model->n_files && j->wanted > j->model->files[j->file].size) {
        j->wanted = j->model->files[j->file].size;
    }
    return BZ_JOB_AGAIN;
}

/* Norms and scales: the host reads them, and computes frequencies from one of them. */
static bool is_vector(const bz_weight_info *w)
{
    return w->type == BZ_F32 && w->ne[1] == 1;
}

static bool is_needed_in_memory(const bz_model *m, const bz_weight_info *w)
{
    return !m->gpu || is_vector(w) || bz_type_is_ids(w->type);
}

/* A text of the header, terminated; "" where there is none. NULL: no memory. */
static char *copy_text(const bz_gguf *gguf, const char *key)
{
    bz_str text = {"", 0};
    bz_gguf_get_str(bz_gguf_find(gguf, key), &text);
    char *copy = malloc(text.len + 1);
    if (copy) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = 0;
    }
    return copy;
}

static bz_progress step_model(open_job *j, bz_need *need)
{
    bz_model *m = j->model;
    if (bz_files_init(&m->set, m->parsed, m->n_files, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    if (j->drafter >= 0 && m->set.assistant != j->drafter) {
        bz_fail(&need->error, BZ_BAD_REQUEST, "%s is not a drafter.", m->files[j->drafter].name);
        return BZ_JOB_ERROR;
    }
    if (bz_text_model_new(&m->text, &m->set, &need->error) != BZ_OK ||
        bz_towers_bind(&m->towers, &m->set, m->text.config.width, &need->error) != BZ_OK) {
        return BZ_JOB_ERROR;
    }
    j->state = TOKENIZER;
    return BZ_JOB_AGAIN;
}

static bz_progress step_tokenizer(open_job *j, bz_need *need)
{
    j->state = TABLES;
    return bz_tokenizer_new(&j->model->tokenizer, j->model->set.main, &need->error) == BZ_OK &&
                   bz_model_new_vocabulary(j->model, &need->error) == BZ_OK
               ? BZ_JOB_AGAIN
               : BZ_JOB_ERROR;
}

static bz_progress step_tables(open_job *j, bz_need *need)
{
    bz_model *m = j->model;
    if ((uint32_t)bz_tokenizer_size(m->tokenizer) != m->text.config.vocab) {
        bz_fail(&need->error, BZ_BAD_FILE,
                "The key tokenizer.ggml.tokens has %d entries, but token_embd.weight has %u rows.",
                bz_tokenizer_size(m->tokenizer), m->text.config.vocab);
        return BZ_JOB_ERROR;
    }
    bz_text_set_image_attention(&m->text,
                                m->towers.vision.kind == BZ_TOWER_DIRECT || m->text.config.canvas);
    m->name = copy_text(m->set.main, "general.name");
    m->architecture = copy_text(m->set.main, "general.architecture");
    if (!m->name || !m->architecture) {
        return failed(need, BZ_OUT_OF_MEMORY, "No memory for the model's name.");
    }
    uint32_t n = m->text.weights.table.n;
    m->weight_bytes = calloc(n, sizeof *m->weight_bytes);
    m->owned_bytes = calloc(n, sizeof *m->owned_bytes);
    if (!m->weight_bytes || !m->owned_bytes) {
        return failed(need, BZ_OUT_OF_MEMORY, "No memory for the table of weights.");
    }
    for (uint32_t i = 0; i < n; i++) {
        const bz_weight_info *w = &m->text.weights.table.info[i];
        const uint8_t *data = m->files[w->file].data;
        if (data) {
            m->weight_bytes[i] = data + w->offset;
        } else if (is_needed_in_memory(m, w)) {
            j->total += w->size;
        }
    }
    j->state = m->headers_only ? OPENED : WEIGHTS;
    return BZ_JOB_AGAIN;
}

/* Fills need->reads with the next slices of weights that are not in memory yet. */
static bz_progress step_weights(open_job *j, bz_need *need)
{
    bz_model *m = j->model;
    if (j->event_due) {
        j->event_due = false;
        need->event = (bz_event){.kind = BZ_EVENT_PROGRESS, .done = j->done, .total = j->total};
        return BZ_JOB_EVENT;
    }
    while (j->weight < m->text.weights.table.n && need->n_reads < BZ_MAX_READS) {
        const bz_weight_info *w = &m->text.weights.table.info[j->weight];
        bool ours = m->owned_bytes[j->weight] != NULL;
        if (ours ? j->read == w->size : m->weight_bytes[j->weight] || !is_needed_in_memory(m, w)) {
            j->weight++;
            j->read = 0;
            continue;
        }
        if (!ours) {
            m->owned_bytes[j->weight] = bz_alloc(w->size);
            m->weight_bytes[j->weight] = m->owned_bytes[j->weight];
            if (!m->owned_bytes[j->weight]) {
                bz_fail(&need->error, BZ_OUT_OF_MEMORY, "No memory for the tensor %s (%.1f MB).",
                        w->name, (double)w->size / 1e6);
                return BZ_JOB_ERROR;
            }
        }
        uint64_t n = w->size - j->read < SLICE_BYTES ? w->size - j->read : SLICE_BYTES;
        need->reads[need->n_reads++] = (bz_read){.file = w->file,
                                                 .offset = w->offset + j->read,
                                                 .length = n,
                                                 .to = m->owned_bytes[j->weight] + j->read};
        j->read += n;
        j->done += n;
    }
    if (need->n_reads) {
        j->event_due = !m->gpu; /* vectors alone are too little for a progress bar */
        return BZ_JOB_NEED_BYTES;
    }
    j->state = CHECK;
    return BZ_JOB_AGAIN;
}

/* Tables of ids hold tokens. */
static bool check_ids(const bz_weight_info *w, const uint8_t *bytes, uint64_t vocab, bz_error *err)
{
    const size_t each = bz_row_bytes(w->type, 1);
    for (uint64_t k = 0; k < w->ne[0] * w->ne[1]; k++) {
        const uint8_t *at = bytes + k * each;
        const uint64_t id = each == 8 ? bz_le64(at) : bz_le32(at);
        if (id >= vocab) {
            bz_fail(err, BZ_BAD_FILE,
                    "The tensor %s holds %lld, which is no token of the model (element %llu).",
                    w->name, each == 8 ? (long long)id : (long long)(int32_t)id,
                    (unsigned long long)k);
            return false;
        }
    }
    return true;
}

/* Norms and scales are small and affect everything: a NaN there is a damaged file, better reported
 * now than as a numeric error after the first token. */
static bz_progress step_check(open_job *j, bz_need *need)
{
    const bz_model *m = j->model;
    for (uint32_t i = 0; i < m->text.weights.table.n; i++) {
        const bz_weight_info *w = &m->text.weights.table.info[i];
        if (bz_type_is_ids(w->type) &&
            !check_ids(w, m->weight_bytes[i], m->text.config.vocab, &need->error)) {
            return BZ_JOB_ERROR;
        }
        if (!is_vector(w)) {
            continue;
        }
        for (uint64_t k = 0; k < w->ne[0]; k++) {
            float v;
            memcpy(&v, m->weight_bytes[i] + k * sizeof v, sizeof v);
            if (!isfinite(v)) {
                bz_fail(&need->error, BZ_BAD_FILE,
                        "The tensor %s holds a value that is not a finite number (element %llu).",
                        w->name, (unsigned long long)k);
                return BZ_JOB_ERROR;
            }
        }
    }
    j->state = j->model->gpu ? UPLOAD : OPENED;
    return BZ_JOB_AGAIN;
}

static bz_progress step_upload(open_job *j, bz_need *need)
{
    bz_progress p = bz_model_load(j->model, j, need);
    if (p == BZ_JOB_DONE) {
        j->state = OPENED;
    }
    return p;
}

static bz_progress step(bz_job *job, bz_need *need)
{
    open_job *j = (open_job *)(void *)job;
    need->n_reads = 0;
    switch (j->state) {
    case HEADERS: return step_headers(j, need);
    case MODEL: return step_model(j, need);
    case TOKENIZER: return step_tokenizer(j, need);
    case TABLES: return step_tables(j, need);
    case WEIGHTS: return step_weights(j, need);
    case CHECK: return step_check(j, need);
    case UPLOAD: return step_upload(j, need);
    case OPENED: break;
    }
    return BZ_JOB_DONE;
}

/* ---- interface ---------------------------------------------------------------- */

static void free_job(bz_job *job)
{
    open_job *j = (open_job *)(void *)job;
    bz_model_free(j->model); /* NULL once the caller has it */
    free(j);
}

static bz_model *take_model(bz_job *job)
{
    open_job *j = (open_job *)(void *)job;
    bz_model *m = j->state == OPENED ? j->model : NULL;
    if (m) {
        j->model = NULL;
    }
    return m;
}

static bz_status choose_device(bz_model *m, const bz_open_options *o, bz_error *err)
{
    const char *name = o->device;
    bz_table_place ple = BZ_TABLE_AUTO;
    if (bz_table_place_named(&ple, o->ple, err) != BZ_OK) {
        return BZ_BAD_REQUEST;
    }
    const bool baseline = name && strcmp(name, "gpu-baseline") == 0;
    if (!name || strcmp(name, "cpu") == 0) {
        return BZ_OK;
    }
    if (!baseline && strcmp(name, "gpu") != 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "Unknown device '%.40s'; use cpu or gpu.", name);
    }
    m->gpu = calloc(1, sizeof *m->gpu);
    if (!m->gpu) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to open a model.");
    }
    m->gpu->options.baseline = baseline;
    m->gpu->ple = ple;
    m->gpu->memory = o->gpu_memory;
    return BZ_OK;
}

/* The last file of that name: files in memory may share one. */
static bz_status find_drafter(const bz_model *m, const char *name, int *file, bz_error *err)
{
    for (size_t i = 0; i < m->n_files; i++) {
        *file = strcmp(m->files[i].name, name) == 0 ? (int)i : *file;
    }
    return *file >= 0 ? BZ_OK
                      : bz_fail(err, BZ_BAD_REQUEST,
                                "The drafter %s is not among the files to be opened.", name);
}

bz_status bz_model_open(bz_job **out, const bz_input *files, size_t n_files,
                        const bz_open_options *options, bz_error *err)
{
    bz_open_options o;
    bz_status status = BZ_READ_OPEN(&o, options, err);
    if (status != BZ_OK) {
        return status;
    }
    if (n_files == 0) {
        return bz_fail(err, BZ_BAD_REQUEST, "No file was given.");
    }
    open_job *j = calloc(1, sizeof *j);
    bz_model *m = calloc(1, sizeof *m);
    bool ok = j && m && (m->files = calloc(n_files, sizeof *m->files)) != NULL &&
              (m->parsed = calloc(n_files, sizeof *m->parsed)) != NULL;
    for (size_t i = 0; ok && i < n_files; i++) {
        m->n_files = i + 1;
        m->files[i] = (model_file){
            .name = strdup(files[i].name), .size = files[i].size, .data = files[i].data};
        ok = m->files[i].name != NULL;
    }
    int drafter = -1;
    status = ok ? choose_device(m, &o, err)
                : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to open a model.");
    status = status == BZ_OK && o.draft ? find_drafter(m, o.draft, &drafter, err) : status;
    if (status != BZ_OK) {
        bz_model_free(m);
        free(j);
        return status;
    }
    m->headers_only = o.headers_only;
    *j = (open_job){.job = {.step = step, .free = free_job, .model = take_model},
                    .model = m,
                    .drafter = drafter};
    j->wanted = files[0].size < FIRST_HEADER_BYTES ? files[0].size : FIRST_HEADER_BYTES;
    *out = &j->job;
    return BZ_OK;
}

/* ---- by path -------------------------------------------------------------------- */

/* The parts of the model at `path`, and the files beside it [n_beside], some of which are NULL. */
static bz_status map_all(const char *path, const char *const *beside, uint32_t n_beside,
                         bz_input *inputs, bz_os_map *maps, char **names, size_t *n, bz_error *err)
{
    uint32_t number, count = 1;
    bool split = bz_split_name(path, &number, &count);
    if (count + n_beside > BZ_FILES_MAX) {
        return bz_fail(err, BZ_BAD_REQUEST, "%s has %u parts; at most %d are supported.", path,
                       count, BZ_FILES_MAX - (int)n_beside);
    }
    const char *more[2] = {NULL};
    uint32_t n_more = 0;
    for (uint32_t i = 0; i < n_beside; i++) {
        if (beside[i]) {
            more[n_more++] = beside[i];
        }
    }
    for (uint32_t i = 0; i < count + n_more; i++) {
        const char *name = i < count ? path : more[i - count];
        size_t room = strlen(name) + 1;
        names[i] = malloc(room);
        if (!names[i]) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
        }
        memcpy(names[i], name, room);
        if (split && i < count) {
            bz_split_sibling(path, i + 1, names[i], room);
        }
        bz_status status = bz_os_map_file(names[i], &maps[i], err);
        if (status != BZ_OK) {
            return status;
        }
        *n = i + 1;
        inputs[i] = (bz_input){names[i], maps[i].size, maps[i].data};
    }
    return BZ_OK;
}

static bz_status shortened(const char *path, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "%s was shortened by another program while it was used; restore it and open it "
                   "again.",
                   path);
}

bz_status bz_model_check_files(const bz_model *m, bz_error *err)
{
    for (size_t i = 0; i < m->n_files; i++) {
        if (bz_os_map_cut(&m->files[i].map)) {
            return shortened(m->files[i].name, err);
        }
    }
    return BZ_OK;
}

bz_status bz_model_open_file(bz_model **out, const char *path, const char *mmproj,
                             const bz_open_options *options, bz_error *err)
{
    bz_input inputs[BZ_FILES_MAX] = {{0}};
    bz_os_map maps[BZ_FILES_MAX] = {{0}};
    char *names[BZ_FILES_MAX] = {0};
    size_t n = 0;
    bz_job *job = NULL;
    bz_model *m = NULL;
    bz_open_options o;
    bz_status status = BZ_READ_OPEN(&o, options, err);
    if (status == BZ_OK) {
        const char *const beside[] = {mmproj, o.draft};
        status = map_all(path, beside, 2, inputs, maps, names, &n, err);
    }
    if (status == BZ_OK) {
        status = bz_model_open(&job, inputs, n, &o, err);
    }
    if (status == BZ_OK) {
        status = bz_job_run(job, o.host, err);
        for (size_t i = 0; i < n; i++) {
            status = bz_os_map_cut(&maps[i]) ? shortened(names[i], err) : status;
        }
        m = status == BZ_OK ? bz_job_model(job) : NULL;
    }
    bz_job_free(job);
    for (size_t i = 0; i < n; i++) {
        if (m) {
            m->files[i].map = maps[i]; /* the model unmaps them */
        } else {
            bz_os_unmap(&maps[i]);
        }
    }
    for (size_t i = 0; i < BZ_FILES_MAX; i++) {
        free(names[i]);
    }
    *out = m;
    return status;
}

gpu *bz_open_device(bz_job *job)
{
    const open_job *j = (const open_job *)(const void *)job;
    return j->model ? bz_model_device(j->model) : NULL;
}

const bz_model *bz_open_header_only(bz_job *job)
{
    open_job *j = (open_job *)(void *)job;
    j->model->headers_only = true;
    return j->model;
}

uint32_t bz_model_vocab(const bz_model *m)
{
    return m->text.config.vocab;
}

uint32_t bz_model_context(const bz_model *m)
{
    return m->text.config.context;
}

uint32_t bz_model_default_context(const bz_model *m)
{
    const uint32_t limit = m->text.config.context;
    return limit < BZ_DEFAULT_CONTEXT ? limit : BZ_DEFAULT_CONTEXT;
}
