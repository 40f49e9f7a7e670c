/* bezel run: one answer, a chat on a terminal, or a file of prompts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os.h"
#include "bezel_diffusion.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pebble.h"
#include "cli/verbs/run.h"
#include "cli/term.h"

bz_status run_answer(run_state *r, ask_answer *a, bz_error *err)
{
    settings s;
    bz_json_buffer request = {0};
    *a = (ask_answer){0};
    bz_status status = run_settings(r, &s, err);
    if (status != BZ_OK) {
        return status;
    }
    run_printer printer = {.r = r};
    ask_options ask_o = {.generate = settings_to_generate(&s),
                         .show_progress = !r->o->quiet,
                         .tells_thinking = r->show_thinking || r->o->json,
                         .told = r->o->json ? run_json_told : run_print_told,
                         .user = &printer};
    if (!r->encoder && (bz_model_takes(r->m.model, BZ_MEDIA_IMAGE) ||
                        bz_model_takes(r->m.model, BZ_MEDIA_AUDIO))) {
        status = run_encoder(r, err); /* a loaded chat may hold pictures */
    }
    ask_o.encoder = r->encoder;
    ask_o.seen = &r->seen;
    ask_o.generate.ignore_end = r->o->ignore_end;
    if (status != BZ_OK) {
        settings_free(&s);
        return status;
    }
    if (!r->o->json && !r->o->no_animation && !r->o->quiet && animate_can()) {
        ask_o.canvas = run_print_canvas;
    }
    if (!talk_request(&r->talk, r->think, &s, &request)) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the conversation.");
    } else {
        status = ask(r->session, r->m.model, request.text, request.n, &ask_o, a, err);
    }
    if (!r->o->json) {
        run_print_end(&printer);
    } else if (status == BZ_OK) {
        run_json_end(r, a);
    } else {
        run_json_error(err);
    }
    free(request.text);
    settings_free(&s);
    return status;
}

static int one_answer(run_state *r, const char *prompt, size_t len)
{
    ask_answer a = {0};
    bz_error err = {0};
    run_hint_files(r, prompt, len, (const char *[2]){"--image", "--audio"});
    bz_status status = run_add_user(r, prompt, len)
                           ? run_answer(r, &a, &err)
                           : bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    run_detach(r);
    const bool interrupted = status == BZ_OK && a.finish == ASK_INTERRUPTED;
    if (status == BZ_OK) {
        run_print_silence(r, &a, "--no-think");
    }
    if (status == BZ_OK && r->verbose && !r->o->json) {
        run_print_timings(r, &a);
    }
    if (status == BZ_OK && a.finish == ASK_CONTEXT && !r->o->json) {
        fprintf(stderr, "bezel: the context is full%s; -c gives more room.\n",
                a.generated ? "" : " before anything is said");
    }
    const bool empty = a.finish == ASK_CONTEXT && a.generated == 0;
    ask_answer_free(&a);
    if (status != BZ_OK) {
        return cli_error(&err);
    }
    const int written = cli_flush();
    return interrupted ? EXIT_INTERRUPTED : empty ? EXIT_FAILED : written;
}

/* ---- options --------------------------------------------------------------------- */

static int take_settings(run_state *r)
{
    const cli_options *o = r->o;
    bz_error err = {0};
    bz_status status = BZ_OK;
    for (int i = 0; i < SETTINGS && status == BZ_OK; i++) {
        if (o->set[i]) {
            status = settings_put_text(&r->given, (setting)i, o->set[i], &err);
        }
    }
    for (int i = 0; o->stop[i] && status == BZ_OK; i++) {
        status = settings_add_stop(&r->given, o->stop[i], strlen(o->stop[i]), &err);
    }
    if (status == BZ_OK && o->max_tokens) {
        status = settings_put_number(&r->given, SET_NUM_PREDICT, o->max_tokens, &err);
    }
    return status == BZ_OK ? EXIT_OK : cli_usage_error("run", "%s", err.text);
}

static int check_options(const cli_options *o)
{
    if (o->think && o->no_think) {
        return cli_usage_error("run", "'--think' and '--no-think' exclude each other.");
    }
    if (o->show_thinking && o->hide_thinking) {
        return cli_usage_error("run",
                               "'--show-thinking' and '--hide-thinking' exclude each other.");
    }
    if (o->prompts && o->prompt) {
        return cli_usage_error("run", "with '--prompts' there is no prompt beside it.");
    }
    if (o->prompts && (o->images[0] || o->sounds[0])) {
        return cli_usage_error("run", "with '--prompts' pictures and sounds stand in the lines, as "
                                      "image_url and input_audio parts.");
    }
    if (!o->prompts && (o->out || o->shard || o->parallel)) {
        return cli_usage_error("run", "'--out', '--shard' and '--parallel' go with '--prompts'.");
    }
    if (o->prompts && o->device && strcmp(o->device, "cpu") != 0) {
        return cli_usage_error("run",
                               "a file of prompts runs on the CPU so far; leave '--device' away.");
    }
    return EXIT_OK;
}

bool run_heeds(const run_state *r, setting id)
{
    const bool heeds = !settings_draws(id) || !bz_model_canvas(r->m.model);
    if (!heeds && !r->o->quiet) {
        fprintf(stderr, "%s(%s changes nothing: a diffusion model has a schedule of its own)%s\n",
                term_dim(), settings_name(id), term_plain());
    }
    return heeds;
}

/* The model's own wishes: sampling, system prompt, whether it can think at all. */
static bz_status take_wishes(run_state *r, bz_error *err)
{
    const bz_store_model *store = &r->m.store;
    const char *slash = strrchr(r->o->model, '/');
    r->name = store->name ? store->name : slash && slash[1] ? slash + 1 : r->o->model;
    /* a diffusion model would fill whole canvases with thoughts: only when asked to */
    const bool thinks =
        !strstr(store->config.parser, "no-thinking") && !bz_model_canvas(r->m.model);
    r->think = r->o->think || (!r->o->no_think && thinks);
    r->show_thinking = r->o->show_thinking || (!r->o->hide_thinking && term_talks());
    r->verbose = r->o->verbose;
    const char *system = r->o->system ? r->o->system : store->system;
    for (int id = 0; id < SETTINGS; id++) {
        if (r->given.set[id] && !run_heeds(r, (setting)id)) {
            settings_unset(&r->given, (setting)id);
        }
    }
    if (system && system[0] && !talk_set_system(&r->talk, system)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the system prompt.");
    }
    return settings_from_store(&r->made, &store->params, err);
}

/* ---- the verb -------------------------------------------------------------------- */

/* Before there is an answer. */
static int fail(const run_state *r, const bz_error *err)
{
    if (r->o->json) {
        run_json_error(err);
    }
    return cli_error(err);
}

static int run_model(run_state *r, const char *prompt, size_t len)
{
    int code;
    bz_error err = {0};
    const double start = cli_seconds();
    if (!cli_open_model(r->o, &r->m, &code)) {
        if (r->o->json && r->m.err.code != BZ_OK) {
            run_json_error(&r->m.err);
        }
        return code;
    }
    if (take_wishes(r, &err) != BZ_OK) {
        return fail(r, &err);
    }
    if (r->o->prompts) {
        return run_prompts(r);
    }
    if (run_session(r, &err) != BZ_OK) {
        return fail(r, &err);
    }
    r->load_s = cli_seconds() - start;
    for (int sound = 0; sound < 2; sound++) {
        const char *const *list = sound ? r->o->sounds : r->o->images;
        for (int i = 0; list[i]; i++) {
            uint32_t tokens;
            if (run_attach(r, sound ? BZ_MEDIA_AUDIO : BZ_MEDIA_IMAGE, list[i], &tokens, &err) !=
                BZ_OK) {
                return fail(r, &err);
            }
        }
    }
    return prompt ? one_answer(r, prompt, len) : run_chat(r);
}

/* A lone argument that no model can be called is a prompt. */
static bool is_prompt(const char *argument)
{
    return strpbrk(argument, " \n") && !bz_os_file_exists(argument);
}

static int run(int argc, char **argv)
{
    static const char none[] = "";
    char pebble[PATH_MAX];
    cli_options o = {.model = none};
    int code = cli_parse(&cli_run_verb, argc, argv, "nckdETCmevqxNOSjLiobFXAGg", 2, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.prompt && o.model != none && is_prompt(o.model)) {
        o.prompt = o.model;
        o.model = none;
    }
    const bool unnamed = o.model == none;
    if (unnamed) {
        o.model = pebble_find(pebble) ? pebble : NULL;
    }
    if (!o.model) {
        return cli_usage_error(
            "run", "which model? Give the path of a GGUF file or a name from 'bezel list'.");
    }
    run_state r = {.o = &o};
    code = check_options(&o);
    if (code == EXIT_OK) {
        code = take_settings(&r);
    }
    if (code != EXIT_OK) {
        settings_free(&r.given);
        return code;
    }
    term_setup(o.no_color, o.quiet);
    if (unnamed && !o.quiet) {
        pebble_introduce();
    }
    char *input = NULL;
    size_t len = o.prompt ? strlen(o.prompt) : 0;
    const bool dash = o.prompt && strcmp(o.prompt, "-") == 0;
    if (!o.prompts && (dash || (!o.prompt && (!isatty(STDIN_FILENO) || o.json)))) {
        input = cli_read_stream(stdin, &len);
        o.prompt = input;
        if (!input) {
            return EXIT_FAILED;
        }
    }
    interrupt_catch(!o.prompts);
    code = run_model(&r, o.prompt, len);
    bz_session_free(r.session);
    bz_encoder_free(r.encoder);
    run_detach(&r);
    seen_clear(&r.seen);
    cli_close_model(&r.m);
    settings_free(&r.given);
    settings_free(&r.made);
    talk_free(&r.talk);
    free(input);
    return interrupt_finish(code);
}

const cli_verb cli_run_verb = {
    "run", run, "answer a prompt, or chat on a terminal",
    "Usage: bezel run [MODEL] [PROMPT|-] [options]\n\n"
    "  bezel run \"Tell me a story about a fox.\"\n"
    "  bezel run pebble-diffusion \"Tell me a story about a fox.\"\n"
    "  bezel run gemma4:e2b\n"
    "  bezel run model.gguf \"Why is the sky blue?\" --no-think\n"
    "  bezel run gemma4:e2b - < letter.txt > answer.txt\n"
    "  bezel run gemma4:e2b --image cat.jpg \"What is this?\"\n"
    "  bezel run gemma4:e2b --prompts in.jsonl --out out.jsonl\n\n"
    "MODEL is a GGUF file, a name from 'bezel list', or one of the tiny demo models that come with "
    "Bezel:\n"
    "pebble, and pebble-diffusion, whose text condenses out of noise. Without one, or with a "
    "prompt of\n"
    "several words alone, it is Pebble. Without a prompt: a chat on a terminal, else the prompt "
    "comes\n"
    "from standard input.\n"
    "The answer goes to stdout, everything else to stderr.\n\n"
    "  -n, --max-tokens N         longest answer, thinking included\n"
    "  -c, --ctx N                tokens a conversation can have (default: what fits, up to "
    "32768)\n"
    "      --image FILE           a picture that goes with the prompt; may be repeated\n"
    "      --audio FILE           a sound\n"
    "      --image-tokens N       most tokens of a picture, 70 to 1120 (280)\n"
    "      --system TEXT          system prompt\n"
    "      --temp X               temperature; 0: always the likeliest token\n"
    "      --top-k N, --top-p X, --min-p X\n"
    "      --repeat-penalty X, --presence-penalty X, --frequency-penalty X, --repeat-last-n N\n"
    "      --seed N               same seed, same answer\n"
    "      --stop TEXT            ends the answer and is not shown; may be repeated\n"
    "      --no-think             answer at once (--think: first think, default but for "
    "diffusion)\n"
    "      --hide-thinking        think in silence, the default unless the answer goes to a "
    "terminal\n"
    "      --show-thinking        show it, on stderr\n"
    "      --json                 one JSON object per line: thinking, text, tool_call, done\n"
    "  -v, --verbose              timings after the answer\n"
    "  -q, --quiet                no progress, no greeting\n"
    "      --no-color             as with the variable NO_COLOR\n"
    "      --no-animation         diffusion models: show text when it is settled, not while it "
    "condenses\n"
    "      --threads N, --device cpu|gpu, --kernels avx2|neon|plain, --chunk N, --no-fuse\n"
    "      --exact                activations stay floats: slower, closer to the model's own "
    "arithmetic\n"
    "      --ple auto|resident|file   gpu: where the per-layer embeddings of small models are\n"
    "      --gpu-memory SIZE      gpu: weights take at most 8GB, say; layers that do not fit are "
    "streamed\n"
    "      --mmproj FILE          vision and audio file of a two-file model\n"
    "      --ignore-end           go on past end tokens\n\n"
    "Many prompts:\n"
    "      --prompts FILE         one JSON object per line: {\"prompt\": TEXT} or {\"messages\": "
    "[...]}, "
    "and\n"
    "                             id, system, tools, think, options if wanted; -: standard input\n"
    "  -o, --out FILE             one line per prompt, in order. Run again after a kill, it goes "
    "on where\n"
    "                             it was; without it the lines go to stdout\n"
    "      --shard I/N            only lines I, I+N, I+2N ... (from 1)\n"
    "      --parallel N           sequences decoded together, 1 to 8 (4); never changes an "
    "answer\n\n"
    "Diffusion models take no sampling options but the seed: they have a schedule of their own.\n"
    "Sampling options left out come from the model's entry in Ollama's store, then from its file, "
    "then\n"
    "are 1.0, 64 and 0.95. 'man bezel' tells more.\n"};
