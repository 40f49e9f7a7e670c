/* bezel search: the passages of a folder's texts that fit a question best. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "bezel_embed.h"
#include "cli/interrupt.h"
#include "cli/os.h"
#include "cli/output.h"
#include "cli/search/folder.h"
#include "cli/search/index.h"
#include "cli/search/passages.h"
#include "cli/term.h"

enum {
    RESULTS = 5,
    SAVE_EVERY = 2048,   /* new vectors; what a kill loses at most, besides the current file */
    PREFIX_TOKENS = 160, /* of a model's words and a title */
    TITLE_BYTES = 120,
    NAMED_SKIPPED = 5
};

static const char DEFAULT_MODEL[] = "embeddinggemma", INDEX_FOLDER[] = ".bezel-search";

/* A file that is searched. */
typedef struct text_file {
    folder_file *file;
    uint8_t key[SEARCH_KEY]; /* of its content */
    passages passages;
} text_file;

typedef struct searching {
    const cli_options *o;
    const bz_model *model;
    bz_embedder *embedder;
    size_t longest; /* bytes of a passage */
    folder folder;
    text_file *files; /* [n_files] */
    size_t n_files;
    search_index index;
    const char *index_path;
    uint64_t passages, computed, to_compute, unsaved;
    bool changed; /* the file of the index is not what it should be */
} searching;

/* ---- the model -------------------------------------------------------------------------- */

/* Recognizes a model's file by its size and samples of its content: reading all of it for every
 * question would take longer than the search. */
static bz_status recognize(const char *path, uint8_t out[SEARCH_KEY], bz_error *err)
{
    enum { SAMPLES = 64, SAMPLE = 4096 };
    char sample[SAMPLE];
    bz_os_info info;
    bz_error why = {0};
    bz_sha256 s;
    const int file = bz_os_open(path, BZ_OS_READ);
    if (file < 0 || bz_os_stat(path, &info, &why) != BZ_OK) {
        if (file >= 0) {
            bz_os_close(file);
        }
        return bz_fail(err, BZ_BAD_FILE, "Cannot read %.200s.", path);
    }
    const uint64_t last = info.size > SAMPLE ? info.size - SAMPLE : 0;
    bz_sha256_begin(&s);
    bz_sha256_add(&s, &info.size, sizeof info.size);
    for (uint64_t i = 0; i <= SAMPLES; i++) {
        const long n = bz_os_read_at(file, sample, SAMPLE,
                                     last / SAMPLES * i + (i == SAMPLES ? last % SAMPLES : 0));
        bz_sha256_add(&s, sample, n > 0 ? (size_t)n : 0);
    }
    bz_os_close(file);
    bz_sha256_end(&s, out);
    return BZ_OK;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Equal texts that are cut alike have equal keys. */
static void key_of(const searching *s, bool markdown, bz_str text, uint8_t key[SEARCH_KEY])
{
    const uint8_t how[] = {PASSAGES_VERSION, markdown, (uint8_t)s->longest,
                           (uint8_t)(s->longest >> 8)};
    bz_sha256 sum;
    bz_sha256_begin(&sum);
    bz_sha256_add(&sum, how, sizeof how);
    bz_sha256_add(&sum, text.data, text.len);
    bz_sha256_end(&sum, key);
}

static bz_status no_memory(bz_error *err)
{
    return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to search this folder.");
}

/* Reads all texts, cuts them, and finds the vectors that the index has. */
static bz_status read_files(searching *s, bz_error *err)
{
    s->files = calloc(s->folder.n + 1, sizeof *s->files);
    if (!s->files) {
        return no_memory(err);
    }
    for (size_t i = 0; i < s->folder.n; i++) {
        text_file *t = &s->files[s->n_files];
        char *memory;
        bz_str text;
        t->file = &s->folder.files[i];
        if (t->file->skipped) {
            continue;
        }
        bool ok = folder_read(t->file, &memory, &text);
        if (ok && !t->file->skipped) {
            key_of(s, t->file->markdown, text, t->key);
            ok = passages_cut(&t->passages, text.data, text.len, t->file->markdown, s->longest);
            s->n_files++;
        }
        free(memory);
        if (!ok) {
            return no_memory(err);
        }
        if (interrupt_stop()) {
            return bz_fail(err, BZ_ABORTED, "Interrupted.");
        }
    }
    return BZ_OK;
}

/* The first few names; with --verbose all. */
static void tell_skipped(const searching *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->folder.n; i++) {
        const folder_file *f = &s->folder.files[i];
        if (!f->skipped || s->o->quiet) {
            continue;
        }
        if (n++ < NAMED_SKIPPED || s->o->verbose) {
            fputs("skipped ", stderr);
            term_write_model_text(CLI_STDERR, f->path, strlen(f->path));
            fprintf(stderr, ": %s\n", f->skipped);
        }
    }
    if (n > NAMED_SKIPPED && !s->o->verbose) {
        fprintf(stderr, "skipped %zu more; --verbose names them\n", n - NAMED_SKIPPED);
    }
}

/* ---- vectors ---------------------------------------------------------------------------- */

static int on_event(void *user, const bz_event *e)
{
    const searching *s = user;
    if (e->kind == BZ_EVENT_PROGRESS && s->to_compute) {
        term_progress(s->computed + e->done, s->to_compute, "passages");
    }
    return interrupt_stop();
}

/* The vectors of texts, all in one job. */
static bz_status embed(searching *s, const bz_embed_input *texts, size_t n, const char *task,
                       const char *title, float *out, bz_error *err)
{
    const bz_embed_options vo = {.size = sizeof vo, .task = task, .title = title, .truncate = true};
    const bz_host host = {.size = sizeof host, .event = on_event, .user = s};
    bz_job *job = NULL;
    size_t count;
    uint32_t d;
    bz_status status = bz_embed_texts(s->embedder, texts, n, &vo, &job, err);
    if (status == BZ_OK) {
        status = bz_job_run(job, &host, err);
    }
    if (status == BZ_OK) {
        memcpy(out, bz_job_vectors(job, &count, &d), n * s->index.dimensions * sizeof *out);
    }
    bz_job_free(job);
    return status;
}

/* Its passages, with the first heading as the title, as the model was trained. */
static bz_status embed_file(searching *s, const text_file *t, bz_str text, bz_error *err)
{
    char title[TITLE_BYTES + 1] = "";
    const size_t n = t->passages.n;
    const bz_str heading =
        t->file->markdown ? passages_title(text.data, text.len) : (bz_str){"", 0};
    bz_embed_input *inputs = calloc(n + 1, sizeof *inputs);
    float *vectors = calloc(n * s->index.dimensions + 1, sizeof *vectors);
    bz_status status = inputs && vectors ? BZ_OK : no_memory(err);
    if (status == BZ_OK) {
        memcpy(title, heading.data, heading.len < TITLE_BYTES ? heading.len : 0);
        for (size_t i = 0; i < n; i++) {
            inputs[i] = (bz_embed_input){.text = text.data + t->passages.list[i].at,
                                         .len = t->passages.list[i].len};
        }
        status = n ? embed(s, inputs, n, "document", title[0] ? title : NULL, vectors, err) : BZ_OK;
    }
    search_entry *e = status == BZ_OK ? search_index_add(&s->index, t->key, (uint32_t)n) : NULL;
    if (e) {
        e->used = true;
        memcpy(e->vectors, vectors, n * s->index.dimensions * sizeof *vectors);
        s->computed += n;
        s->unsaved += n;
        s->changed = true;
    } else if (status == BZ_OK) {
        status = no_memory(err);
    }
    free(inputs);
    free(vectors);
    return status;
}

static bz_status save(searching *s, bz_error *err)
{
    const bz_status status = search_index_write(&s->index, s->index_path, err);
    s->changed = s->changed && status != BZ_OK;
    s->unsaved = 0;
    return status;
}

/* Computes what the index does not have. */
static bz_status embed_files(searching *s, bz_error *err)
{
    bz_status status = BZ_OK;
    for (size_t i = 0; i < s->n_files; i++) {
        search_entry *e = search_index_find(&s->index, s->files[i].key);
        s->passages += s->files[i].passages.n;
        s->to_compute += e ? 0 : s->files[i].passages.n;
        if (e) {
            e->used = true;
        }
    }
    for (size_t i = 0; i < s->index.n; i++) {
        s->changed |= !s->index.entries[i].used; /* of a file that is gone */
    }
    if (s->to_compute) {
        term_busy("reading");
    }
    for (size_t i = 0; i < s->n_files && status == BZ_OK; i++) {
        const text_file *t = &s->files[i];
        uint8_t key[SEARCH_KEY];
        char *memory;
        bz_str text;
        if (search_index_find(&s->index, t->key)) { /* also of a file with the same content */
            continue;
        }
        if (!folder_read(t->file, &memory, &text)) {
            status = no_memory(err);
        } else {
            key_of(s, t->file->markdown, text, key);
            if (t->file->skipped || memcmp(key, t->key, sizeof key) != 0) {
                t->file->skipped = "changed meanwhile";
            } else {
                status = embed_file(s, t, text, err);
            }
        }
        free(memory);
        if (status == BZ_OK && s->unsaved >= SAVE_EVERY) {
            status = save(s, err);
        }
    }
    term_idle();
    if (s->changed) { /* also what was computed before an interruption */
        bz_error own = {0};
        const bz_status saved = save(s, &own);
        if (status == BZ_OK && saved != BZ_OK) {
            *err = own;
            status = saved;
        }
    }
    return status;
}

/* ---- results ---------------------------------------------------------------------------- */

typedef struct result {
    const text_file *file;
    const passage *passage;
    float score;
} result;

/* Keeps the best k, best first; of equal ones the first found. */
static void consider(result *best, size_t *n, size_t k, result r)
{
    size_t at = *n;
    while (at && best[at - 1].score < r.score) {
        at--;
    }
    if (at == k) {
        return;
    }
    *n += *n < k;
    memmove(&best[at + 1], &best[at], (*n - at - 1) * sizeof *best);
    best[at] = r;
}

static void print_json(const char *path, const result *r, bz_str text, uint32_t end)
{
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_put_text(&j, "file", path);
    bz_json_put_uint(&j, "line", r->passage->line);
    bz_json_put_uint(&j, "end_line", end);
    bz_json_put_float(&j, "score", (double)r->score);
    bz_json_put_str(&j, "text", text);
    bz_json_end(&j);
    cli_json_end(&j);
}

static void print_text(const char *path, const result *r, bz_str text, bool first)
{
    term_put_model_text(CLI_STDOUT, first ? "" : "\n", !first);
    term_put_model_text(CLI_STDOUT, path, strlen(path));
    printf(":%u  %.3f\n", r->passage->line, (double)r->score);
    for (size_t at = 0; at < text.len;) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        const size_t stop = end ? (size_t)(end - text.data) : text.len;
        fputs(stop > at ? "    " : "", stdout);
        term_put_model_text(CLI_STDOUT, text.data + at, stop - at);
        putchar('\n');
        at = stop + 1;
    }
}

/* Its text is read again; memory holds the places only. */
static bool print_result(const searching *s, const result *r, bool first)
{
    char *memory;
    bz_str text;
    folder_file file = *r->file->file;
    const passage *p = r->passage;
    if (!folder_read(&file, &memory, &text)) {
        return false;
    }
    if (!file.skipped && p->at <= text.len && p->len <= text.len - p->at) {
        const bz_str own = {text.data + p->at, p->len};
        uint32_t end = p->line;
        for (size_t i = 0; i < own.len; i++) {
            end += own.data[i] == '\n';
        }
        if (s->o->json) {
            print_json(file.path, r, own, end);
        } else {
            print_text(file.path, r, own, first);
        }
    }
    free(memory);
    return true;
}

static bz_status answer(searching *s, bz_error *err)
{
    const size_t k = s->o->top ? s->o->top : RESULTS, d = s->index.dimensions;
    const bz_embed_input question = {.text = s->o->prompt, .len = strlen(s->o->prompt)};
    float *q = calloc(d, sizeof *q);
    result *best = calloc(k + 1, sizeof *best);
    size_t n = 0;
    s->to_compute = 0;
    bz_status status = q && best ? embed(s, &question, 1, "query", NULL, q, err) : no_memory(err);
    for (size_t i = 0; i < s->n_files && status == BZ_OK; i++) {
        const text_file *t = &s->files[i];
        const search_entry *e = search_index_find(&s->index, t->key);
        for (size_t j = 0; e && j < e->n && j < t->passages.n; j++) {
            const float *v = e->vectors + j * d;
            double sum = 0;
            for (size_t c = 0; c < d; c++) {
                sum += (double)q[c] * (double)v[c];
            }
            consider(best, &n, k, (result){t, &t->passages.list[j], (float)sum});
        }
    }
    for (size_t i = 0; i < n && status == BZ_OK; i++) {
        status = print_result(s, &best[i], i == 0) ? BZ_OK : no_memory(err);
    }
    free(q);
    free(best);
    return status;
}

/* ---- the verb --------------------------------------------------------------------------- */

/* The index that is there; one that is damaged is made again. */
static bz_status open_index(searching *s, bz_error *err)
{
    char *bytes = NULL;
    size_t n;
    bz_error why = {0};
    if (s->o->rebuild || !bz_os_file_exists(s->index_path)) {
        s->changed = true;
        return BZ_OK;
    }
    bz_status status = bz_os_read_small(s->index_path, SIZE_MAX / 2, &bytes, &n, &why);
    if (status != BZ_OK) {
        return bz_fail(err, status, "Cannot read the index %.200s: %s.", s->index_path, why.text);
    }
    status = search_index_read(&s->index, (const uint8_t *)bytes, n, &why);
    free(bytes);
    if (status == BZ_BAD_FILE) {
        if (!s->o->quiet) {
            fprintf(stderr, "bezel: the index %s %s; it is made again.\n", s->index_path, why.text);
        }
        s->changed = true;
        return BZ_OK;
    }
    return status == BZ_OK
               ? BZ_OK
               : bz_fail(err, status,
                         "The index %.180s %s; --rebuild makes it again, --index keeps another.",
                         s->index_path, why.text);
}

static bz_status search(searching *s, const char *model_path, bz_error *err)
{
    const bz_embedder_options eo = {.size = sizeof eo,
                                    .threads = s->o->threads,
                                    .kernels = s->o->kernels,
                                    .no_fuse = s->o->no_fuse,
                                    .exact = s->o->exact};
    bz_status status = bz_embedder_new(&s->embedder, s->model, &eo, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint32_t longest = bz_embedder_longest(s->embedder);
    s->longest = longest > PREFIX_TOKENS + PASSAGE_BYTES ? PASSAGE_BYTES
                 : longest > 2 * PREFIX_TOKENS           ? longest - PREFIX_TOKENS
                                                         : longest / 2;
    s->longest = s->longest < 8 ? 8 : s->longest;
    s->index.dimensions = bz_model_embedding(s->model);
    status = recognize(model_path, s->index.model, err);
    status = status == BZ_OK ? open_index(s, err) : status;
    status = status == BZ_OK ? folder_list(&s->folder, s->o->model, err) : status;
    status = status == BZ_OK ? read_files(s, err) : status;
    status = status == BZ_OK ? embed_files(s, err) : status;
    if (status == BZ_OK) {
        tell_skipped(s);
    }
    if (status == BZ_OK && s->passages == 0) {
        return bz_fail(err, BZ_NOT_FOUND, "There is no text in %.200s.", s->o->model);
    }
    if (status == BZ_OK && !s->o->quiet && s->computed) {
        fprintf(stderr, "%llu passages of %zu files; %llu vectors computed\n",
                (unsigned long long)s->passages, s->n_files, (unsigned long long)s->computed);
    }
    return status == BZ_OK ? answer(s, err) : status;
}

/* FOLDER/.bezel-search/index. The folder of its own is the only place that the sandbox lets the
 * search write to. */
static char *default_index(const char *below, int *code)
{
    bz_os_info info;
    bz_error why = {0};
    const size_t room = strlen(below) + sizeof INDEX_FOLDER + sizeof "//index";
    char *path = malloc(room);
    if (!path) {
        *code = EXIT_CANNOT;
        return NULL;
    }
    if (bz_os_stat(below, &info, &why) != BZ_OK || !info.folder) {
        *code = cli_usage_error("search", "there is no folder '%s'.", below);
        free(path);
        return NULL;
    }
    snprintf(path, room, "%s/%s", below, INDEX_FOLDER);
    if (!bz_os_make_folder(path, true) && errno != EEXIST) {
        fprintf(stderr,
                "bezel: cannot make the folder %s: %s; '--index FILE' keeps the index "
                "elsewhere.\n",
                path, strerror(errno));
        *code = EXIT_FAILED;
    } else if (bz_os_is_link(path) || bz_os_stat(path, &info, &why) != BZ_OK || !info.folder) {
        fprintf(stderr, "bezel: %s is not a folder; '--index FILE' keeps the index elsewhere.\n",
                path);
        *code = EXIT_FAILED;
    }
    snprintf(path, room, "%s/%s/index", below, INDEX_FOLDER);
    return path;
}

static void close_search(searching *s)
{
    for (size_t i = 0; i < s->n_files; i++) {
        free(s->files[i].passages.list);
    }
    free(s->files);
    search_index_free(&s->index);
    folder_free(&s->folder);
    bz_embedder_free(s->embedder);
}

static int run(int argc, char **argv)
{
    static const char none[] = "";
    cli_options o = {.model = none}; /* the folder */
    int code = cli_parse(&cli_search_verb, argc, argv, "2kTqdXFZjv", 2, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.prompt) {
        return cli_usage_error("search",
                               o.model == none ? "no folder given." : "no question given.");
    }
    char *own = o.index ? NULL : default_index(o.model, &code);
    if (code != EXIT_OK) {
        free(own);
        return code;
    }
    o.index = o.index ? o.index : own;
    cli_options opening = o;
    opening.model = o.embedder ? o.embedder : DEFAULT_MODEL;
    searching s = {.o = &o, .index_path = o.index};
    cli_model m;
    bz_error err = {0};
    term_setup(false, o.quiet);
    interrupt_catch(true);
    if (cli_open_model(&opening, &m, &code)) {
        s.model = m.model;
        if (search(&s, m.store.path, &err) != BZ_OK) {
            const bool stopped = err.code == BZ_ABORTED && interrupt_stop();
            code = stopped ? EXIT_INTERRUPTED : cli_error(&err);
            if (stopped && s.computed && !o.quiet) {
                fprintf(stderr,
                        "bezel: %llu of %llu passages are in the index; the next search "
                        "goes on from there.\n",
                        (unsigned long long)s.computed, (unsigned long long)s.to_compute);
            }
        } else {
            code = cli_flush();
        }
        close_search(&s);
        cli_close_model(&m);
    } else if (code == EXIT_NO_MODEL && !o.embedder) {
        fprintf(stderr, "'bezel pull %s' gets the model that searches; --model names another.\n",
                DEFAULT_MODEL);
    }
    free(own);
    return interrupt_finish(code);
}

const cli_verb cli_search_verb = {
    "search", run, "find the passages of a folder's texts that fit a question",
    "Usage: bezel search FOLDER QUESTION [options]\n\n"
    "  bezel search notes \"when does the heating start?\"\n"
    "  bezel search notes \"heating\" -k 1 --json\n\n"
    "Compares the meaning of the question with that of every passage of the text and Markdown\n"
    "files below FOLDER, with an EmbeddingGemma model, and prints the best with file, line and\n"
    "score (1: the same). Their vectors are kept in FOLDER/.bezel-search, and only those of files\n"
    "with new content are computed again. Names that begin with a dot are not looked at.\n\n"
    "      --model MODEL     a GGUF file or a name from 'bezel list' (embeddinggemma)\n"
    "  -k, --top N           how many passages (5)\n"
    "      --json            a line of JSON for each: file, line, end_line, score, text\n"
    "      --index FILE      keep the vectors in FILE\n"
    "      --rebuild         compute all vectors again\n"
    "      --exact           no rounding of activations\n"
    "      --threads N       threads (does not change the result)\n"
    "      --kernels NAME    amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or plain\n"
    "      --device NAME     cpu or gpu\n"
    "      --no-fuse         gpu: one kernel per step\n"
    "  -q, --quiet           no progress, no summary\n"
    "  -v, --verbose         name all files that are skipped\n"
    "      --sandbox MODE    auto, on or off: confine the program to its files\n"};
