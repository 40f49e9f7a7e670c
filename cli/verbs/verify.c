/* bezel verify: compares the files of a model with their digests, and looks for values that no
 * model has. */
#include <stdlib.h>
#include <string.h>
#include <string.h>

#include "base/os.h"
#include "base/os_program.h"
#include "base/sha256.h"
#include "base/units.h"
#include "bezel_adapter.h"
#include "bezel_debug.h"
#include "cli/adapters.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pebble.h"
#include "cli/sandbox.h"
#include "cli/term.h"

enum { HASH_PIECE = 8 << 20, VALUE_PIECE = 1 << 22 }; /* between two looks at Ctrl-C */

typedef struct verification {
    const cli_options *o;
    bz_json json;
    uint64_t failures, blobs, tensors;
    bool interrupted;
} verification;

/* The files of a model. */
typedef struct parts {
    const char *model, *mmproj, *draft; /* NULL: none */
    char **adapters;                    /* [n_adapters] */
    size_t n_adapters;
} parts;

/* ---- results ---------------------------------------------------------------------------- */

/* A line per check; failures go to stderr with --quiet. `why` NULL: it passed. */
static void report(verification *v, const char *what, const char *name, const char *why)
{
    v->failures += why != NULL;
    if (v->o->json) {
        bz_json_object(&v->json);
        bz_json_put_text(&v->json, "check", what);
        bz_json_put_text(&v->json, "name", name);
        bz_json_put_bool(&v->json, "ok", why == NULL);
        bz_json_put_text(&v->json, "reason", why);
        bz_json_end(&v->json);
    } else if (why || !v->o->quiet) {
        fprintf(v->o->quiet ? stderr : stdout, "%-8s  %-6s  %s%s%s\n", why ? "DAMAGED" : "ok", what,
                name, why ? ": " : "", why ? why : "");
    }
}

static bool stop(verification *v)
{
    v->interrupted = v->interrupted || interrupt_stop();
    return v->interrupted;
}

/* ---- digests ------------------------------------------------------------------------------ */

/* digest: 64 hexadecimal digits. */
static void check_digest(verification *v, const char *path, const char *name, const char *digest)
{
    bz_os_map map;
    bz_error err = {0};
    if (bz_os_map_file(path, &map, &err) != BZ_OK) {
        report(v, "file", name, err.text);
        return;
    }
    bz_sha256 s;
    uint8_t bytes[BZ_SHA256_BYTES];
    char got[BZ_SHA256_TEXT], why[120];
    bz_sha256_begin(&s);
    for (uint64_t at = 0; at < map.size && !stop(v); at += HASH_PIECE) {
        const uint64_t n = map.size - at < HASH_PIECE ? map.size - at : HASH_PIECE;
        bz_sha256_add(&s, map.data + at, (size_t)n);
        term_progress((at + n) >> 20, map.size >> 20, "MB");
    }
    bz_sha256_end(&s, bytes);
    bz_sha256_text(bytes, got);
    const bool cut = bz_os_map_cut(&map);
    bz_os_unmap(&map);
    if (stop(v)) {
        return;
    }
    v->blobs++;
    snprintf(why, sizeof why, cut ? "it became shorter while it was read" : "its SHA-256 is %s",
             got);
    report(v, "file", name, strcmp(got, digest) == 0 ? NULL : why);
}

/* A file may be named after its digest. */
static void check_name(verification *v, const char *path)
{
    static const char prefix[] = "sha256-";
    const char *slash = bz_os_last_slash(path), *name = slash ? slash + 1 : path;
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0 && strlen(digits) == BZ_SHA256_TEXT - 1) {
        check_digest(v, path, path, digits);
    }
}

static void check_blobs(verification *v, const bz_store_blob *blobs, size_t n)
{
    for (size_t i = 0; i < n && !stop(v); i++) {
        char name[160], size[BZ_UNITS_MAX];
        snprintf(name, sizeof name, "%s, %s, %s", blobs[i].digest, blobs[i].what,
                 bz_bytes_text(blobs[i].size, size));
        check_digest(v, blobs[i].path, name, blobs[i].digest + strlen("sha256:"));
    }
}

/* ---- values ------------------------------------------------------------------------------- */

static void check_tensor(verification *v, const bz_debug_files *files, size_t file, size_t tensor)
{
    const bz_debug_tensor t = bz_debug_files_tensor(files, file, tensor);
    uint64_t bad = 0, first = 0;
    for (uint64_t at = 0; t.runs && at < t.values && !stop(v); at += VALUE_PIECE) {
        uint64_t here = 0;
        const uint64_t n = t.values - at < VALUE_PIECE ? t.values - at : VALUE_PIECE;
        const uint64_t more = bz_debug_files_not_finite(files, file, tensor, at, n, &here);
        first = bad == 0 ? here : first;
        bad += more;
    }
    v->tensors++;
    if (bad) {
        char why[160], name[100];
        snprintf(name, sizeof name, "%.*s", (int)(t.name.len < 90 ? t.name.len : 90), t.name.data);
        snprintf(why, sizeof why, "%llu of its %llu values are NaN or infinite, the first is %llu",
                 (unsigned long long)bad, (unsigned long long)t.values, (unsigned long long)first);
        report(v, "tensor", name, why);
    }
}

/* The option that takes a file of such a header beside a model; NULL: it is a model's own. */
static const char *option_for(const bz_debug_files *files)
{
    const bz_debug_set set = bz_debug_files_set(files);
    const bz_str architecture = {set.architecture.data, set.architecture.len};
    size_t key;
    return bz_debug_files_find(files, set.main, "adapter.type", &key) ? "--lora"
           : bz_str_is(architecture, "clip")                          ? "--mmproj"
           : bz_str_is(architecture, "gemma4-assistant")              ? "--draft"
                                                                      : NULL;
}

/* *option: of option_for. */
static bz_status check_tensors(verification *v, const char *path, const char *mmproj,
                               const char **option, bz_error *err)
{
    bz_debug_files *files = NULL;
    const bz_status status = bz_debug_files_open(&files, path, mmproj, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint64_t total = bz_debug_files_set(files).bytes;
    uint64_t done = 0;
    for (size_t i = 0; i < bz_debug_files_set(files).n_files; i++) {
        const bz_debug_file file = bz_debug_files_file(files, i);
        const uint64_t before = v->failures;
        for (size_t k = 0; k < file.n_tensors && !stop(v); k++) {
            check_tensor(v, files, i, k);
            done += bz_debug_files_tensor(files, i, k).bytes;
            term_progress(done >> 20, total >> 20, "MB");
        }
        if (before == v->failures && !stop(v)) {
            char name[400];
            snprintf(name, sizeof name, "%.300s, %zu tensors", file.path, file.n_tensors);
            report(v, "values", name, NULL);
        }
    }
    bz_error cut = {0};
    if (bz_debug_files_check(files, &cut) != BZ_OK) { /* zeros may have been checked instead */
        report(v, "values", path, cut.text);
    }
    *option = option_for(files);
    bz_debug_files_free(files);
    return BZ_OK;
}

/* ---- opening ------------------------------------------------------------------------------ */

static void check_drafter(verification *v, const char *path, const char *draft)
{
    bz_model *model = NULL;
    bz_error err = {0};
    const bz_open_options options = {.size = sizeof options, .draft = draft};
    const bz_status status = bz_model_open_file(&model, path, NULL, &options, &err);
    report(v, "drafter", draft, status == BZ_OK ? NULL : err.text);
    bz_model_free(model);
}

static void check_adapter(verification *v, const bz_model *model, const char *path)
{
    bz_adapter *adapter = NULL;
    bz_error err = {0};
    const bz_status status = bz_adapter_open_file(&adapter, model, path, &err);
    report(v, "adapter", path, status == BZ_OK ? NULL : err.text);
    bz_adapter_free(adapter);
}

static void check_opening(verification *v, const char *name, const parts *p)
{
    bz_model *model = NULL;
    bz_error err = {0};
    const bz_open_options options = {.size = sizeof options};
    const bz_status status = bz_model_open_file(&model, p->model, p->mmproj, &options, &err);
    report(v, "model", name, status == BZ_OK ? NULL : err.text);
    if (status == BZ_OK && p->draft) {
        check_drafter(v, p->model, p->draft);
    }
    for (size_t i = 0; status == BZ_OK && i < p->n_adapters; i++) {
        check_adapter(v, model, p->adapters[i]);
    }
    bz_model_free(model);
}

/* ---- the files of a model ---------------------------------------------------------------------
 */

static void free_parts(parts *p)
{
    for (size_t i = 0; i < p->n_adapters; i++) {
        free(p->adapters[i]);
    }
    free(p->adapters);
    *p = (parts){0};
}

/* Those of the store, or those that the options name; both for adapters, as `run` applies them. */
static bz_status find_parts(parts *p, const cli_options *o, const bz_store_model *m, bz_error *err)
{
    size_t n = m->n_adapters;
    while (o->lora[n - m->n_adapters]) {
        n++;
    }
    *p = (parts){.model = m->path,
                 .mmproj = o->mmproj         ? o->mmproj
                           : m->n_projectors ? m->projectors[0]
                                             : NULL,
                 .draft = o->draft ? o->draft : m->draft,
                 .adapters = calloc(n + 1, sizeof *p->adapters)};
    bz_status status = BZ_OK;
    for (size_t i = 0; i < n && p->adapters && status == BZ_OK; i++) {
        float scale;
        char **path = &p->adapters[p->n_adapters++];
        if (i >= m->n_adapters) {
            status = adapters_parse(o->lora[i - m->n_adapters], path, &scale, err);
        } else if (!(*path = strdup(m->adapters[i]))) {
            status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the name of a file.");
        }
    }
    return p->adapters ? status
                       : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the names of the files.");
}

/* true: the model can be opened to see whether its files fit together. */
static bool check_values(verification *v, const char *name, const parts *p)
{
    bz_error err = {0};
    const char *option;
    if (check_tensors(v, p->model, p->mmproj, &option, &err) != BZ_OK) {
        report(v, "model", name, err.text);
        return false;
    }
    if (option && !v->o->json && !v->o->quiet && !stop(v)) {
        printf("Whether it fits a model says 'bezel verify MODEL %s %s'.\n", option, p->model);
    }
    if (option) {
        return false;
    }
    if (p->draft && check_tensors(v, p->draft, NULL, &option, &err) != BZ_OK) {
        report(v, "drafter", p->draft, err.text);
    }
    for (size_t i = 0; i < p->n_adapters; i++) {
        err = (bz_error){0};
        if (check_tensors(v, p->adapters[i], NULL, &option, &err) != BZ_OK) {
            report(v, "adapter", p->adapters[i], err.text);
        }
    }
    return !stop(v);
}

/* ---- the verb ---------------------------------------------------------------------------------
 */

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_verify_verb, argc, argv, "mlHjqZ", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (o.draft && cli_draft(&o) != BZ_DRAFT_MODEL) {
        return cli_usage_error("verify", "'--draft' needs a file.");
    }
    if (!sandbox_enter(&o, false, &code)) {
        return code;
    }
    bz_store_model m;
    parts p = {0};
    bz_store_blob *blobs = NULL;
    size_t n_blobs = 0;
    bz_error err = {0};
    const bz_status found = pebble_resolve(o.model, &m, &err);
    /* A model with a damaged config is not found, but its files can be checked. */
    if (found != BZ_OK && bz_store_blobs(o.model, &blobs, &n_blobs, NULL) != BZ_OK) {
        return cli_error(&err);
    }
    if (found == BZ_OK && m.name && bz_store_blobs(m.name, &blobs, &n_blobs, &err) != BZ_OK) {
        bz_store_model_free(&m);
        return cli_error(&err);
    }
    if (found == BZ_OK && find_parts(&p, &o, &m, &err) != BZ_OK) {
        free_parts(&p);
        bz_store_blobs_free(blobs, n_blobs);
        bz_store_model_free(&m);
        return cli_error(&err);
    }
    const char *name = found != BZ_OK ? o.model : m.name ? m.name : m.path;
    verification v = {.o = &o};
    interrupt_catch(true);
    term_busy("verifying");
    if (o.json) {
        cli_json_begin(&v.json);
        bz_json_object(&v.json);
        bz_json_put_text(&v.json, "model", name);
        bz_json_key(&v.json, "checks");
        bz_json_array(&v.json);
    }
    check_blobs(&v, blobs, n_blobs);
    if (found == BZ_OK && !m.name) {
        check_name(&v, m.path);
    }
    if (found != BZ_OK) {
        report(&v, "model", name, err.text);
    } else if (!stop(&v) && check_values(&v, name, &p)) {
        check_opening(&v, name, &p);
    }
    term_idle();
    if (o.json) {
        bz_json_end(&v.json);
        bz_json_put_bool(&v.json, "ok", !v.failures && !v.interrupted);
        bz_json_end(&v.json);
        code = cli_json_end(&v.json);
    } else if (!o.quiet && !v.interrupted) {
        printf("%llu digests and %llu tensors were checked, %llu failures.\n",
               (unsigned long long)v.blobs, (unsigned long long)v.tensors,
               (unsigned long long)v.failures);
    }
    free_parts(&p);
    bz_store_blobs_free(blobs, n_blobs);
    bz_store_model_free(&m);
    return v.interrupted ? EXIT_INTERRUPTED : v.failures ? EXIT_FAILED : code;
}

const cli_verb cli_verify_verb = {
    "verify", run, "check a model's files for damage",
    "Usage: bezel verify MODEL [options]\n\n"
    "  bezel verify gemma4:e2b\n\n"
    "Hashes the files of Ollama's store and compares them with their digests, looks for NaN and\n"
    "infinity in every tensor, and opens the model with its drafter and adapters. Exits with 1 if\n"
    "a check fails.\n\n"
    "      --sandbox MODE  auto, on or off: confine the program to its files\n"
    "      --mmproj FILE   vision and audio file of a two-file model\n"
    "      --draft FILE    the model's drafter\n"
    "      --lora FILE     a LoRA adapter; may be repeated\n"
    "      --json          print one JSON object\n"
    "  -q, --quiet         print failures only\n"};
