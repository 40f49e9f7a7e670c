/* Opening what MODEL names. */
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "interrupt.h"
#include "term.h"

static bool check_device(const cli_options *o, int *exit_code)
{
    if (!o->device || strcmp(o->device, "cpu") == 0 || strcmp(o->device, "gpu") == 0) {
        return true;
    }
    fprintf(stderr, "bezel: there is no device '%s'; use cpu or gpu.\n", o->device);
    *exit_code = EXIT_USAGE;
    return false;
}

static int on_event(void *user, const bz_event *e)
{
    (void)user;
    term_progress(e->done >> 20, e->total >> 20, "MB");
    return interrupt_stop();
}

bool cli_open_model(const cli_options *o, cli_model *m, int *exit_code)
{
    bz_error err = {0};
    *m = (cli_model){0};
    if (!check_device(o, exit_code)) {
        return false;
    }
    bz_status status = bz_store_resolve(o->model, &m->store, &err);
    if (status != BZ_OK) {
        *exit_code = cli_error(&err);
        return false;
    }
    const bz_store_model *found = &m->store;
    const char *mmproj = o->mmproj ? o->mmproj : found->n_projectors ? found->projectors[0] : NULL;
    term_busy("opening the model");
    const bz_host host = {.event = on_event};
    const bz_open_options options = {.device = o->device, .ple = o->ple, .host = &host};
    status = bz_model_open_file(&m->model, found->path, mmproj, &options, &err);
    term_idle();
    if (status != BZ_OK) {
        if (found->name) { /* the path of a blob would tell nobody which model it is */
            bz_error why = err;
            bz_fail(&err, status, "%s: %s", found->name, why.text);
        }
        *exit_code = cli_error(&err);
        cli_close_model(m);
    }
    return status == BZ_OK;
}

void cli_close_model(cli_model *m)
{
    bz_model_free(m->model);
    bz_store_model_free(&m->store);
    *m = (cli_model){0};
}

bool cli_open(const cli_options *o, bz_model **model, int *exit_code)
{
    cli_model m;
    if (!cli_open_model(o, &m, exit_code)) {
        return false;
    }
    *model = m.model;
    bz_store_model_free(&m.store);
    return true;
}
