/* bezel show: what is in a GGUF file, and whether Bezel runs it. */
#include <string.h>

#include "cli/adapters.h"
#include "cli/output.h"
#include "cli/pebble.h"
#include "cli/sandbox.h"
#include "cli/show/show.h"

/* The plan of the model, on the GPU if that is the device. */
static int show_plan(const show_info *info, const cli_options *o)
{
    bz_debug_plan_options po = {.rows = o->rows, .no_fuse = o->no_fuse, .json = o->json};
    const bool on_gpu = o->device && strcmp(o->device, "cpu") != 0;
    bz_model *model = NULL;
    bz_error err = {0};
    int code = EXIT_OK;
    if (!info->model) {
        fprintf(stderr, "bezel: %s\n", info->verdict);
        return EXIT_CANNOT;
    }
    if (on_gpu && !cli_open(o, &model, &code)) {
        return code;
    }
    cli_model adapted = {.model = info->model};
    bz_status status = adapters_open(o, &adapted, &err);
    po.adapters = adapted.adapters;
    po.n_adapters = adapted.n_adapters;
    if (status == BZ_OK) {
        status = bz_debug_plan(on_gpu ? model : info->model, &po, cli_write, NULL, &err);
    }
    adapters_close(&adapted);
    if (status == BZ_OK) {
        puts(o->json
                 ? ""
                 : "Passes are recorded for 1, 8, 64 and 512 rows; '--rows N' shows a pass of N "
                   "rows.");
        code = cli_flush();
    } else {
        code = err.code == BZ_ABORTED ? cli_flush() : cli_error(&err);
    }
    bz_model_free(model);
    return code;
}

/* --wgsl: the text of a GPU kernel, or the list of all; with --json all texts. */
static int show_wgsl(const char *kernel, const char *type, bool json)
{
    bz_error err = {0};
    if (json && kernel) {
        return cli_usage_error("show", "'--wgsl --json' prints all kernels; omit '%s'.", kernel);
    }
    const bz_status status = json ? bz_debug_wgsl_all(cli_write, NULL, &err)
                                  : bz_debug_wgsl(kernel, type, cli_write, NULL, &err);
    if (status != BZ_OK && status != BZ_ABORTED) {
        return cli_error(&err);
    }
    return cli_flush();
}

static bool has_argument(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    const bool wgsl = has_argument(argc, argv, "--wgsl"); /* takes other arguments */
    int code = cli_parse(&cli_show_verb, argc, argv, wgsl ? "Wj" : "jpmcRdFZl3", wgsl ? 2 : 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (o.wgsl) {
        return show_wgsl(o.model, o.prompt, o.json);
    }
    if (o.rows && !o.plan) {
        return cli_usage_error("show", "'--rows' needs '--plan'.");
    }
    if ((o.device || o.no_fuse) && !o.plan) {
        return cli_usage_error("show", "'--device' and '--no-fuse' need '--plan'.");
    }
    if (o.lora[0] && (!o.plan || (o.device && strcmp(o.device, "cpu") != 0))) {
        return cli_usage_error("show", "'--lora' needs '--plan', and shows the plan only, not the "
                                       "dispatches on a GPU.");
    }
    if (!sandbox_enter(&o, false, &code)) {
        return code;
    }
    bz_store_model found;
    bz_error err = {0};
    if (pebble_resolve(o.model, &found, &err) != BZ_OK) {
        return cli_error(&err);
    }
    o.model = found.path;
    o.mmproj = o.mmproj ? o.mmproj : found.n_projectors ? found.projectors[0] : NULL;
    show_info info = {0};
    if (!show_load(&info, &o, &code)) {
        show_free(&info);
        bz_store_model_free(&found);
        return code;
    }
    if (o.plan) {
        code = show_plan(&info, &o);
    } else if (o.json) {
        code = show_as_json(&info);
    } else {
        show_as_text(&info);
        code = cli_flush();
    }
    if (code == EXIT_OK && bz_debug_files_check(info.files, &err) != BZ_OK) {
        code = cli_error(&err); /* what was printed may be wrong */
    } else if (code == EXIT_OK && !info.model && !info.adapter.present) {
        code = EXIT_CANNOT;
    }
    show_free(&info);
    bz_store_model_free(&found);
    return code;
}

const cli_verb cli_show_verb = {
    "show", run, "describe a model file and say whether Bezel runs it",
    "Usage: bezel show MODEL [options]\n"
    "       bezel show --wgsl [KERNEL [TYPE]]\n\n"
    "  bezel show model.gguf | less\n"
    "  bezel show gemma4:e2b --json | jq .memory\n\n"
    "MODEL is any GGUF file or a name from 'bezel list'. Little more than the header is read. For "
    "a\n"
    "model split into several files, name any of them. The exit code is 4 if Bezel does not run\n"
    "the model.\n\n"
    "      --sandbox MODE  auto, on or off: confine the program to its files\n"
    "      --mmproj FILE   vision and audio file of a two-file model\n"
    "  -c, --ctx N         also predict the memory for this context size\n"
    "      --kv TYPE       ... with a KV cache in f16, q8 or q4\n"
    "      --json          one JSON object; arrays of more than 1024 values are cut\n"
    "      --plan          print only the steps of the forward pass for one token\n"
    "      --lora FILE[:SCALE]   ... with a LoRA adapter\n"
    "      --rows N        ... for a pass of N tokens, up to 512\n"
    "      --device gpu    ... and the GPU dispatches they become; loads the model\n"
    "      --no-fuse       ... one dispatch for every step\n"
    "      --wgsl          the text of a GPU kernel for weights of block type TYPE, or the names "
    "of\n"
    "                      all kernels with their block types; needs no model and no GPU; with\n"
    "                      --json all texts\n"};
