/* bezel list: the models in Ollama's store, and which of them Bezel runs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "base/os_program.h"
#include "base/units.h"
#include "bezel_debug.h"
#include "store/ollama.h"
#include "cli/verbs/list.h"
#include "cli/output.h"

enum { MAX_NAME = 60, AGE_MAX = 48, TIME_MAX = 32 };

/* A row of the table. */
typedef struct row {
    const bz_store_entry *entry;
    bool runs;
    char architecture[64]; /* "": unknown */
    bz_error why;          /* if it does not run */
} row;

/* ---- does it run? ------------------------------------------------------------- */

/* The file's header decides, not what the store says about the model. */
static void judge(row *r)
{
    bz_debug_files *files = NULL;
    bz_debug_config config;
    bz_error why = {0};
    char shown[200];
    if (r->entry->problem.code) {
        r->why = r->entry->problem;
        return;
    }
    if (bz_debug_files_open(&files, r->entry->path, NULL, &why) != BZ_OK) {
        const size_t n = strlen(why.text);
        bz_fail(&r->why, why.code, "The model file cannot be read: %s%s", why.text,
                n && why.text[n - 1] == '.' ? "" : ".");
        return;
    }
    const bz_debug_set set = bz_debug_files_set(files);
    const bz_str architecture = {set.architecture.data, set.architecture.len};
    snprintf(r->architecture, sizeof r->architecture, "%s", bz_str_show(architecture, shown));
    if (!set.known) {
        bz_fail(&r->why, BZ_UNSUPPORTED_MODEL,
                "Its architecture is %s; Bezel runs gemma4 and diffusion-gemma.",
                architecture.len ? r->architecture : "not named in the file");
    } else {
        r->runs = bz_debug_files_config(files, &config, &r->why) == BZ_OK;
    }
    bz_debug_files_free(files);
}

bool list_runs(const bz_store_entry *entry)
{
    row r = {.entry = entry};
    judge(&r);
    return r.runs;
}

/* ---- table ---------------------------------------------------------------------- */

static const char *age_of(int64_t modified, char out[AGE_MAX])
{
    static const struct {
        int64_t seconds, until; /* length of the unit; used below this age */
        const char *name;
    } units[] = {
        {1, 60, "second"},
        {60, 3600, "minute"},
        {3600, 86400, "hour"},
        {86400, 1209600, "day"},
        {604800, 5259600, "week"},
        {2629800, 63115200, "month"},
        {31557600, INT64_MAX, "year"},
    };
    int64_t seconds = (int64_t)time(NULL) - modified;
    size_t i = 0;
    if (modified == 0) {
        return "-";
    }
    if (seconds < 1) { /* or in the future: clocks differ */
        return "just now";
    }
    while (seconds >= units[i].until) {
        i++;
    }
    long long n = seconds / units[i].seconds;
    snprintf(out, AGE_MAX, "%lld %s%s ago", n, units[i].name, n == 1 ? "" : "s");
    return out;
}

/* Another architecture needs no explanation. */
static bool needs_note(const row *r)
{
    return !r->runs && !(r->architecture[0] && r->why.code == BZ_UNSUPPORTED_MODEL);
}

/* Explains why models do not run. Messages of the store name the model themselves. */
static void print_notes(const row *rows, size_t n)
{
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        const bz_store_entry *e = rows[i].entry;
        if (needs_note(&rows[i])) {
            printf("%s%s%s%s\n", first ? "\n" : "", e->problem.code ? "" : e->name,
                   e->problem.code ? "" : ": ", rows[i].why.text);
            first = false;
        }
    }
}

static void print_table(const row *rows, size_t n)
{
    int width = 4;
    for (size_t i = 0; i < n; i++) {
        int len = (int)strlen(rows[i].entry->name);
        width = len > width && len <= MAX_NAME ? len : width;
    }
    printf("%-*s  %8s  %-14s  %s\n", width, "NAME", "SIZE", "MODIFIED", "RUNS");
    for (size_t i = 0; i < n; i++) {
        const bz_store_entry *e = rows[i].entry;
        char size[BZ_UNITS_MAX], age[AGE_MAX];
        printf("%-*s  %8s  %-14s  ", width, e->name, e->size ? bz_bytes_text(e->size, size) : "-",
               age_of(e->modified, age));
        if (rows[i].runs || needs_note(&rows[i])) {
            puts(rows[i].runs ? "yes" : "no (reason below)");
        } else {
            printf("no (%s)\n", rows[i].architecture);
        }
    }
    print_notes(rows, n);
}

/* Nothing to list: where the store was searched, and what to do. */
static void print_empty(const bz_store_list *list)
{
    size_t there = 0;
    for (size_t i = 0; i < list->n_roots; i++) {
        there += list->roots[i].state != BZ_STORE_MISSING;
    }
    puts(there ? "The Ollama store has no models:" : "No Ollama store was found. Searched:");
    for (size_t i = 0; i < list->n_roots; i++) {
        const bz_store_root *r = &list->roots[i];
        if (!there || r->state != BZ_STORE_MISSING) {
            printf("  %s%s\n", r->shown,
                   r->state == BZ_STORE_LOCKED ? "   (this user may not read it)" : "");
        }
    }
    puts("\nSet OLLAMA_MODELS if the store is elsewhere. A GGUF file runs without a store:\n"
         "  bezel run model.gguf \"Why is the sky blue?\"");
}

static void print_locked(const bz_store_list *list)
{
    for (size_t i = 0; i < list->n_roots; i++) {
        if (list->roots[i].state == BZ_STORE_LOCKED) {
            fprintf(stderr, "bezel: this user may not read the store %s.\n", list->roots[i].shown);
        }
    }
}

/* ---- JSON ------------------------------------------------------------------------ */

/* null for an empty text: unknown. */
static void key_text(bz_json *j, const char *key, const char *text)
{
    bz_json_put_text(j, key, text && text[0] ? text : NULL);
}

static const char *utc(int64_t seconds, char out[TIME_MAX])
{
    struct tm parts;
    out[0] = 0;
    if (seconds && bz_os_date(seconds, &parts)) {
        strftime(out, TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    return out;
}

/* Named as in Ollama's /api/tags where the meaning is the same. */
static void put_model(bz_json *j, const row *r)
{
    const bz_store_entry *e = r->entry;
    char when[TIME_MAX];
    bz_json_object(j);
    key_text(j, "name", e->name);
    bz_json_put_uint(j, "size", e->size);
    key_text(j, "modified_at", utc(e->modified, when));
    bz_json_key(j, "details");
    bz_json_object(j);
    key_text(j, "format", e->config.format);
    key_text(j, "family", e->config.family);
    key_text(j, "parameter_size", e->config.parameters);
    key_text(j, "quantization_level", e->config.quantization);
    bz_json_end(j);
    key_text(j, "path", e->path);
    key_text(j, "model_digest", e->digest);
    key_text(j, "architecture", r->architecture);
    bz_json_put_bool(j, "runs", r->runs);
    key_text(j, "reason", r->runs ? NULL : r->why.text);
    bz_json_end(j);
}

static int print_json(const bz_store_list *list, const row *rows)
{
    static const char *const states[] = {"missing", "not readable", "found"};
    bz_json j;
    cli_json_begin(&j);
    bz_json_object(&j);
    bz_json_key(&j, "models");
    bz_json_array(&j);
    for (size_t i = 0; i < list->n; i++) {
        put_model(&j, &rows[i]);
    }
    bz_json_end(&j);
    bz_json_key(&j, "stores");
    bz_json_array(&j);
    for (size_t i = 0; i < list->n_roots; i++) {
        bz_json_object(&j);
        key_text(&j, "path", list->roots[i].path);
        key_text(&j, "state", states[list->roots[i].state]);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    bz_json_end(&j);
    return cli_json_end(&j);
}

/* ---- the verb --------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    cli_options o = {.model = ""}; /* no positional model */
    int code = cli_parse(&cli_list_verb, argc, argv, "j", 0, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    bz_store_list list;
    bz_error err = {0};
    if (bz_store_list_all(&list, &err) != BZ_OK) {
        return cli_error(&err);
    }
    row *rows = calloc(list.n + 1, sizeof *rows);
    if (!rows) {
        fprintf(stderr, "bezel: no memory for the list.\n");
        bz_store_list_free(&list);
        return EXIT_CANNOT;
    }
    for (size_t i = 0; i < list.n; i++) {
        rows[i].entry = &list.entries[i];
        judge(&rows[i]);
    }
    if (o.json) {
        code = print_json(&list, rows);
    } else {
        if (list.n) {
            print_table(rows, list.n);
            print_locked(&list);
        } else {
            print_empty(&list);
        }
        code = cli_flush();
    }
    free(rows);
    bz_store_list_free(&list);
    return code;
}

const cli_verb cli_list_verb = {
    "list", run, "list the models in Ollama's store and whether Bezel runs them",
    "Usage: bezel list [--json]      (also: bezel ls)\n\n"
    "  bezel list\n"
    "  bezel list --json | jq -r '.models[] | select(.runs) | .name'\n\n"
    "Reads the folder OLLAMA_MODELS if it is set, else ~/.ollama/models and the folders of a "
    "system\n"
    "service, and changes nothing there. Every name it prints can be used as MODEL.\n\n"
    "      --json   print one JSON object with more details\n"};
