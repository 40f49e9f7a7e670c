/* bezel show: what is in a GGUF file, and whether this engine runs it. */
#include "file/ollama.h"
#include "output.h"
#include "show.h"

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_show_verb, argc, argv, "jpmcR", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (o.rows && !o.plan) {
        return cli_usage_error("show", "'--rows' is about the plan; add '--plan'.");
    }
    bz_store_model found;
    bz_error err = {0};
    if (bz_store_resolve(o.model, &found, &err) != BZ_OK) {
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
        bz_plan *plan = show_plan(&f, &o, &code);
        if (plan && o.json) {
            code = show_plan_as_json(plan);
        } else if (plan) {
            show_plan_as_text(plan);
            code = cli_flush();
        }
        bz_plan_free(plan);
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
    "MODEL is any GGUF file or a name from 'bezel list'; little more than its header is read. Of a\n"
    "file in parts, name any part.\n\n"
    "      --mmproj FILE   vision and audio file of a two-file model\n"
    "  -c, --ctx N         predict the memory of this context size too\n"
    "      --json          all of it as one JSON object; arrays of more than 1024 values are cut\n"
    "      --plan          only the steps of the forward pass, as recorded for one token\n"
    "      --rows N        ... for a pass of N tokens, up to 512\n"};
