/* Opens the MODEL of the command line. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "bezel_diffusion.h"
#include "cli/adapters.h"
#include "cli/cli.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/pebble.h"
#include "cli/sandbox.h"
#include "cli/term.h"

static bool check_device(const cli_options *o, int *exit_code)
{
    if (!o->device || strcmp(o->device, "cpu") == 0 || strcmp(o->device, "gpu") == 0 ||
        strcmp(o->device, "auto") == 0) {
        return true;
    }
    fprintf(stderr, "bezel: unknown device '%s'; use auto, cpu or gpu.\n", o->device);
    *exit_code = EXIT_USAGE;
    return false;
}

static int on_event(void *user, const bz_event *e)
{
    (void)user;
    if (e->kind == BZ_EVENT_PROGRESS) {
        term_progress(e->done >> 20, e->total >> 20, "MB");
    }
    return interrupt_stop();
}

bool cli_read_memory(const char *option, const char *text, uint64_t *bytes, int *exit_code)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},     {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6},
                 {"GB", 1e9}, {"M", 1e6},  {"G", 1e9}};
    char *end;
    *bytes = 0;
    if (!text) {
        return true;
    }
    const double n = strtod(text, &end);
    for (size_t i = 0; end != text && n > 0 && i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].name) == 0 && n * units[i].bytes < 1e18) {
            *bytes = (uint64_t)(n * units[i].bytes);
        }
    }
    if (!*bytes) {
        fprintf(stderr, "bezel: '%s' needs a size such as 8GB or 800MB, not '%s'.\n", option, text);
        *exit_code = EXIT_USAGE;
    }
    return *bytes != 0;
}

bz_draft_kind cli_draft(const cli_options *o)
{
    return !o->draft                         ? BZ_DRAFT_DEFAULT
           : strcmp(o->draft, "lookup") == 0 ? BZ_DRAFT_LOOKUP
           : strcmp(o->draft, "off") == 0    ? BZ_DRAFT_OFF
                                             : BZ_DRAFT_MODEL;
}

/* The file of the drafter: the one that --draft names, or the store's. NULL: none. */
static const char *drafter_of(const cli_options *o, const bz_store_model *found)
{
    switch (cli_draft(o)) {
    case BZ_DRAFT_DEFAULT: return o->drafts ? found->draft : NULL;
    case BZ_DRAFT_MODEL: return o->draft;
    case BZ_DRAFT_OFF:
    case BZ_DRAFT_LOOKUP: break;
    }
    return NULL;
}

/* Layers that do not fit make every pass slower. */
static void report_streaming(const bz_model *model)
{
    const bz_streaming s = bz_model_streaming(model);
    char size[BZ_UNITS_MAX], rest[BZ_UNITS_MAX];
    if (s.resident < s.layers) {
        fprintf(stderr,
                "bezel: %u of %u layers stay on the GPU (%s); the others, %s, are read from the "
                "file for every pass.\n",
                s.resident, s.layers, bz_bytes_text(s.gpu_bytes, size),
                bz_bytes_text(s.bytes, rest));
    }
}

/* A model of the store is used without its drafter if that fits another model only. */
static bz_status open_file(const cli_options *o, cli_model *m, const char *mmproj,
                           bz_open_options *options, bz_error *err)
{
    bz_status status = bz_model_open_file(&m->model, m->store.path, mmproj, options, err);
    if (status == BZ_BAD_FILE && options->draft && !o->draft) {
        const bz_error why = *err;
        options->draft = NULL;
        *err = (bz_error){0};
        status = bz_model_open_file(&m->model, m->store.path, mmproj, options, err);
        if (status == BZ_OK) {
            term_idle();
            fprintf(stderr, "bezel: the drafter of %s is not used: %s\n", m->store.name, why.text);
        }
    }
    return status;
}

/* Opens on the device that the options name, or mean: the GPU where there is one that takes the
 * model, else the CPU. One line says which, and why. */
static bz_status open_on_device(const cli_options *o, cli_model *m, const char *mmproj,
                                bz_open_options *options, bz_error *err)
{
    char text[DEVICE_REASON];
    if (!o->device || strcmp(o->device, "auto") != 0) {
        return open_file(o, m, mmproj, options, err);
    }
    bool gpu = false;
    if (o->kernels) {
        snprintf(text, sizeof text, "'--kernels' chooses among those of the CPU");
    } else {
        gpu = device_find_gpu(text);
    }
    options->device = gpu ? "gpu" : "cpu";
    bz_status status = open_file(o, m, mmproj, options, err);
    const bool no_fit = gpu && (status == BZ_OUT_OF_MEMORY || status == BZ_NO_ADAPTER ||
                                status == BZ_DEVICE_LOST || status == BZ_UNSUPPORTED_MODEL);
    if (no_fit) {
        bz_error why = *err;
        *err = (bz_error){0};
        options->device = "cpu";
        status = open_file(o, m, mmproj, options, err);
        snprintf(text, sizeof text, "%.*s", (int)strcspn(why.text, "."), why.text);
    }
    if (status == BZ_OK && !o->quiet) {
        term_idle();
        fprintf(stderr,
                gpu && !no_fit ? "bezel: running on the GPU (%s).\n"
                               : "bezel: running on the CPU: %s.\n",
                text);
    }
    return status;
}

static bool open_model(const cli_options *o, cli_model *m, bool adapted, int *exit_code)
{
    bz_error err = {0};
    uint64_t memory;
    *m = (cli_model){0};
    if (!check_device(o, exit_code) ||
        !cli_read_memory("--gpu-memory", o->gpu_memory, &memory, exit_code)) {
        return false;
    }
    if (!sandbox_enter(o, false, exit_code)) {
        return false;
    }
    bz_status status = pebble_resolve(o->model, &m->store, &err);
    if (status != BZ_OK) {
        *exit_code = cli_error(&err);
        m->err = err;
        return false;
    }
    const bz_store_model *found = &m->store;
    const char *mmproj = o->mmproj ? o->mmproj : found->n_projectors ? found->projectors[0] : NULL;
    term_busy("opening the model");
    const bz_host host = {.size = sizeof host, .event = on_event};
    bz_open_options options = {.size = sizeof options,
                               .device = o->device,
                               .ple = o->ple,
                               .gpu_memory = memory,
                               .host = &host,
                               .draft = drafter_of(o, found)};
    status = open_on_device(o, m, mmproj, &options, &err);
    if (status == BZ_OK && adapted) {
        status = adapters_open(o, m, &err);
    }
    term_idle();
    if (status != BZ_OK) {
        if (found->name) { /* the path of a blob does not name the model */
            bz_error why = err;
            bz_fail(&err, status, "%s: %s", found->name, why.text);
        }
        *exit_code = cli_error(&err);
        cli_close_model(m);
        m->err = err;
    } else if (!o->quiet) {
        report_streaming(m->model);
    }
    return status == BZ_OK;
}

bool cli_open_model(const cli_options *o, cli_model *m, int *exit_code)
{
    return open_model(o, m, true, exit_code);
}

void cli_close_model(cli_model *m)
{
    adapters_close(m);
    bz_model_free(m->model);
    bz_store_model_free(&m->store);
    *m = (cli_model){0};
}

uint64_t cli_model_bytes(const bz_model *model)
{
    bz_model_info info = {.size = sizeof info};
    return bz_model_get_info(model, &info, NULL) == BZ_OK ? info.bytes : 0;
}

bool cli_open(const cli_options *o, bz_model **model, int *exit_code)
{
    cli_model m;
    if (!open_model(o, &m, false, exit_code)) {
        return false;
    }
    *model = m.model;
    bz_store_model_free(&m.store);
    return true;
}
