/* bezel show: what is in a GGUF file, and whether this engine runs it. */
#include <string.h>

#include "cli/output.h"
#include "cli/pebble.h"
#include "cli/show/show.h"

static int plan_of(const show_facts *f, const cli_options *o)
{
    int code = EXIT_OK;
    bz_plan *plan = show_plan(f, o, &code);
    bool on_gpu = o->device && strcmp(o->device, "cpu") != 0;
    show_gpu g = {0};
    if (plan && (!on_gpu || show_gpu_load(&g, o, plan, &code))) {
        if (o->json) {
            code = show_plan_as_json(plan, on_gpu ? &g : NULL);
        } else {
            show_plan_as_text(plan);
            if (on_gpu) {
                show_gpu_as_text(&g, plan);
            }
            code = cli_flush();
        }
    }
    show_gpu_free(&g);
    bz_plan_free(plan);
    return code;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_show_verb, argc, argv, "jpmcRdF", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (o.rows && !o.plan) {
        return cli_usage_error("show", "'--rows' is about the plan; add '--plan'.");
    }
    if ((o.device || o.no_fuse) && !o.plan) {
        return cli_usage_error("show",
                               "'--device' and '--no-fuse' are about the plan; add '--plan'.");
    }
    bz_store_model found;
    bz_error err = {0};
    if (pebble_resolve(o.model, &found, &err) != BZ_OK) {
        return cli_error(&err);
    }
    o.model = found.path;
    o.mmproj = o.mmproj ? o.mmproj : found.n_projectors ? found.projectors[0] : NULL;
    show_facts f = {0};
    if (!show_load(&f, &o, &code)) {
        show_free(&f);
        bz_store_model_free(&found);
        return code;
    }
    if (o.plan) {
        code = plan_of(&f, &o);
    } else if (o.json) {
        code = show_as_json(&f);
    } else {
        show_as_text(&f);
        code = cli_flush();
    }
    show_free(&f);
    bz_store_model_free(&found);
    return code;
}

const cli_verb cli_show_verb = {
    "show", run, "what is in a model's file, and whether Bezel runs it",
    "Usage: bezel show MODEL [options]\n\n"
    "  bezel show model.gguf | less\n"
    "  bezel show gemma4:e2b --json | jq .memory\n\n"
    "MODEL is any GGUF file or a name from 'bezel list'; little more than its header is read. Of "
    "a\n"
    "file in parts, name any part.\n\n"
    "      --mmproj FILE   vision and audio file of a two-file model\n"
    "  -c, --ctx N         predict the memory of this context size too\n"
    "      --json          all of it as one JSON object; arrays of more than 1024 values are cut\n"
    "      --plan          only the steps of the forward pass, as recorded for one token\n"
    "      --rows N        ... for a pass of N tokens, up to 512\n"
    "      --device gpu    ... and the dispatches they become there; loads the model\n"
    "      --no-fuse       ... each step by itself\n"};
