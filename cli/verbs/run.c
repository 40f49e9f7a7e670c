/* bezel run: one answer, a chat on a terminal, or a file of prompts. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/os_program.h"
#include "bezel_diffusion.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/pebble.h"
#include "cli/sandbox.h"
#include "cli/verbs/run.h"
#include "cli/term.h"

bz_status run_answer(run_state *r, ask_answer *a, bz_error *err)
{
    settings s;
    *a = (ask_answer){0};
    bz_status status = run_settings(r, &s, err);
    if (status != BZ_OK) {
        return status;
    }
    run_printer printer;
    run_printer_init(&printer, r);
    ask_options ask_o = {.generate = settings_to_generate(&s),
                         .show_progress = !r->o->quiet,
                         .reports_thinking = r->show_thinking || r->o->json,
                         .on_part = r->o->json ? run_json_part : run_print_part,
                         .user = &printer};
    if (!r->encoder && (bz_model_takes(r->m.model, BZ_MEDIA_IMAGE) ||
                        bz_model_takes(r->m.model, BZ_MEDIA_AUDIO))) {
        status = run_encoder(r, err); /* a loaded chat may contain images or audio */
    }
    ask_o.encoder = r->encoder;
    ask_o.cache = &r->cache;
    ask_o.video_frames = r->o->video_frames;
    ask_o.generate.ignore_end = r->o->ignore_end;
    ask_o.generate.draft = cli_draft(r->o);
    if (status != BZ_OK) {
        settings_free(&s);
        return status;
    }
    if (!r->o->json && !r->o->no_animation && !r->o->quiet && animate_can()) {
        ask_o.canvas = run_print_canvas;
    }
    status = run_ask(r, &s, &ask_o, a, err);
    if (!r->o->json) {
        run_print_end(&printer);
    } else if (status == BZ_OK) {
        run_json_end(r, a);
    } else {
        run_json_error(err);
    }
    settings_free(&s);
    return status;
}

/* Adds the answer to the conversation. A question without one is removed. */
static bz_status keep_answer(run_state *r, ask_answer *a, bz_error *err)
{
    const bz_str said = {a->text.text ? a->text.text : "", a->text.n},
                 thought = {a->thinking.text, a->thinking.n};
    if (a->finish == BZ_FINISH_NONE && a->text.n == 0 && a->calls.n == 0) {
        conversation_truncate(&r->conversation, r->conversation.n - 1);
        return BZ_OK;
    }
    return conversation_add_answer(&r->conversation, said, thought, ask_answer_calls(a))
               ? BZ_OK
               : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
}

static int one_answer(run_state *r, const char *prompt, size_t len)
{
    ask_answer a = {0};
    bz_error err = {0};
    run_hint_files(r, prompt, len, (const char *[3]){"--image", "--audio", "--video"});
    bz_status status = run_add_user(r, prompt, len)
                           ? run_answer(r, &a, &err)
                           : bz_fail(&err, BZ_OUT_OF_MEMORY, "No memory for the prompt.");
    run_detach(r);
    const bool interrupted = status == BZ_OK && a.finish == BZ_FINISH_NONE;
    if (status == BZ_OK && r->o->session) {
        status = keep_answer(r, &a, &err);
    }
    if (status == BZ_OK) {
        run_print_silence(r, &a, "--no-think");
    }
    if (status == BZ_OK && r->verbose && !r->o->json) {
        run_print_timings(r, &a);
    }
    if (status == BZ_OK && a.finish == BZ_FINISH_CONTEXT && !r->o->json) {
        fprintf(stderr, "bezel: the context is full%s; use a larger '-c'.\n",
                a.generated ? "" : " before the first token");
    }
    const bool empty = a.finish == BZ_FINISH_CONTEXT && a.generated == 0;
    ask_answer_free(&a);
    if (status != BZ_OK) {
        const int failed = cli_error(&err);
        return r->o->session ? EXIT_FAILED : failed; /* the file stays as it is */
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
    if (status == BZ_OK && (o->format || o->grammar)) {
        status = settings_put_form(&r->given, o->format, o->grammar, &err);
        if (status != BZ_OK) {
            return cli_error(&err);
        }
    }
    return status == BZ_OK ? EXIT_OK : cli_usage_error("run", "%s", err.text);
}

static int check_options(const cli_options *o)
{
    if (o->context_shift && strcmp(o->context_shift, "on") != 0 &&
        strcmp(o->context_shift, "off") != 0) {
        return cli_usage_error("run", "'--context-shift' must be on or off, not '%s'.",
                               o->context_shift);
    }
    if (o->think && o->no_think) {
        return cli_usage_error("run", "'--think' and '--no-think' cannot be used together.");
    }
    if (o->show_thinking && o->hide_thinking) {
        return cli_usage_error("run",
                               "'--show-thinking' and '--hide-thinking' cannot be used together.");
    }
    if (o->format && o->grammar) {
        return cli_usage_error("run", "'--format' and '--grammar' cannot be used together.");
    }
    if ((o->format || o->grammar) && o->ignore_end) {
        return cli_usage_error("run", "'--ignore-end' cannot be used with '--format' or "
                                      "'--grammar', which say where an answer ends.");
    }
    if (o->prompts && o->draft) {
        return cli_usage_error("run", "'--draft' does not work with '--prompts', whose passes hold "
                                      "several answers already.");
    }
    if (o->prompts && o->context_shift) {
        return cli_usage_error("run", "'--context-shift' does not work with '--prompts', which "
                                      "refuses lines that are too long.");
    }
    if (o->prompts && o->session) {
        return cli_usage_error("run", "'--session' does not work with '--prompts'.");
    }
    if (o->prompts && o->prompt) {
        return cli_usage_error("run", "give either '--prompts' or a prompt, not both.");
    }
    if (o->prompts && (o->images[0] || o->sounds[0] || o->videos[0])) {
        return cli_usage_error(
            "run",
            "'--image', '--audio' and '--video' do not work with '--prompts'; put image_url, "
            "input_audio and video_url parts into its lines.");
    }
    if (!o->prompts && (o->out || o->shard || o->parallel)) {
        return cli_usage_error("run", "'--out', '--shard' and '--parallel' need '--prompts'.");
    }
    return EXIT_OK;
}

bool setting_applies(const run_state *r, setting id)
{
    const bool applies = !settings_draws(id) || !bz_model_canvas(r->m.model);
    if (!applies && !r->o->quiet) {
        fprintf(stderr, "%s(%s is ignored: diffusion models use their own schedule)%s\n",
                term_dim(), settings_name(id), term_plain());
    }
    return applies;
}

/* Settings from the store: sampling, system prompt, first messages, whether the model can think. */
static bz_status take_store_settings(run_state *r, bz_error *err)
{
    const bz_store_model *store = &r->m.store;
    const char *slash = bz_os_last_slash(r->o->model);
    r->name = store->name ? store->name : slash && slash[1] ? slash + 1 : r->o->model;
    /* a diffusion model would fill whole canvases with thinking: only with --think */
    const bool thinks =
        !strstr(store->config.parser, "no-thinking") && !bz_model_canvas(r->m.model);
    r->think = r->o->think || (!r->o->no_think && thinks);
    r->show_thinking = r->o->show_thinking || (!r->o->hide_thinking && term_interactive());
    r->verbose = r->o->verbose;
    r->wrap = !r->o->no_wrap;
    r->shift = !r->o->context_shift || strcmp(r->o->context_shift, "on") == 0;
    const char *system = r->o->system ? r->o->system : store->system;
    for (int id = 0; id < SETTINGS; id++) {
        if (r->given.set[id] && !setting_applies(r, (setting)id)) {
            settings_unset(&r->given, (setting)id);
        }
    }
    if (system && system[0] && !conversation_set_system(&r->conversation, system)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the system prompt.");
    }
    for (size_t i = 0; i < store->messages.n; i++) {
        if (!conversation_pin(&r->conversation, store->messages.json[i])) {
            return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the model's messages.");
        }
    }
    return settings_from_store(&r->made, &store->params, err);
}

/* ---- the verb -------------------------------------------------------------------- */

/* An error before the answer. */
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
    if (take_store_settings(r, &err) != BZ_OK) {
        return fail(r, &err);
    }
    if (r->o->prompts) {
        return run_prompts(r);
    }
    if (run_session(r, &err) != BZ_OK) {
        return fail(r, &err);
    }
    r->load_s = cli_seconds() - start;
    const char *const *const lists[] = {r->o->images, r->o->sounds, r->o->videos};
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; lists[kind][i]; i++) {
            uint32_t tokens;
            if (run_attach(r, (bz_media_kind)kind, lists[kind][i], &tokens, &err) != BZ_OK) {
                return fail(r, &err);
            }
        }
    }
    if (r->o->session && bz_os_file_exists(r->o->session) &&
        run_load(r, r->o->session, &err) != BZ_OK) {
        return fail(r, &err);
    }
    code = prompt ? one_answer(r, prompt, len) : run_chat(r);
    if (r->o->session && code != EXIT_FAILED && run_save(r, r->o->session, &err) != BZ_OK) {
        return fail(r, &err);
    }
    return code;
}

/* A single argument that cannot be the name of a model is a prompt. */
static bool is_prompt(const char *argument)
{
    return strpbrk(argument, " \n") && !bz_os_file_exists(argument);
}

static int run(int argc, char **argv)
{
    static const char none[] = "";
    char pebble[PATH_MAX];
    cli_options o = {.model = none};
    int code = cli_parse(&cli_run_verb, argc, argv, "nckdETCmevqxJNOSjLiobFXAGgYZKHl13", 2, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    o.device = device_default(&o);
    o.drafts = !o.prompts;
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
            "run", "no model given. Give the path of a GGUF file or a name from 'bezel list'.");
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
    char *prompt;
    size_t len;
    if (!run_read_prompt(&o, &prompt, &len)) {
        settings_free(&r.given);
        return EXIT_FAILED;
    }
    interrupt_catch(!o.prompts);
    const bool chat = !prompt && !o.prompts; /* in which the user may save files */
    if (sandbox_enter(&o, chat, &code)) {
        code = run_model(&r, prompt, len);
    }
    bz_session_free(r.session);
    bz_encoder_free(r.encoder);
    run_detach(&r);
    media_cache_clear(&r.cache);
    cli_close_model(&r.m);
    settings_free(&r.given);
    settings_free(&r.made);
    conversation_free(&r.conversation);
    free(prompt);
    return interrupt_finish(code);
}

const cli_verb cli_run_verb = {
    "run", run, "answer a prompt, or chat on a terminal",
    "Usage: bezel run [MODEL] [PROMPT|-] [options]\n\n"
    "  bezel run \"Tell me a story about a fox.\"\n"
    "  bezel run pebble-diffusion \"Tell me a story about a fox.\"\n"
    "  bezel run gemma4:e2b\n"
    "  bezel run gemma4:e2b \"Summarize this letter:\" < letter.txt > answer.txt\n"
    "  bezel run gemma4:e2b --image cat.jpg \"What is this?\"\n"
    "  bezel run gemma4:e2b --prompts in.jsonl --out out.jsonl\n\n"
    "MODEL is a GGUF file, a name from 'bezel list', or a tiny demo model that comes with Bezel:\n"
    "pebble, or pebble-diffusion, which turns noise into text. The default is pebble, also if a "
    "prompt of\n"
    "several words is the only argument. Without PROMPT, 'run' starts a chat on a terminal; "
    "elsewhere it\n"
    "reads the prompt from standard input. Text piped in beside a PROMPT is appended to it. The "
    "answer\n"
    "goes to stdout, everything else to stderr. Ollama's --hidethinking, --nowordwrap and\n"
    "--think=false work too.\n\n"
    "  -n, --max-tokens N         maximum tokens of the answer, thinking included\n"
    "  -c, --ctx N                context size in tokens (default: what fits in memory, up to "
    "32768)\n"
    "      --context-shift off    refuse a conversation that is too long; on: its oldest turns go\n"
    "      --image FILE, --audio FILE, --video FILE\n"
    "                             send a file with the prompt\n"
    "      --image-tokens N, --video-tokens N   maximum tokens per image (280), per frame (70)\n"
    "      --video-frames N       maximum frames of a video (32)\n"
    "      --session FILE         continue the conversation in FILE, if it is there, and save it\n"
    "      --system TEXT          system prompt\n"
    "      --temp X               temperature; 0: always the most likely token\n"
    "      --top-k N, --top-p X, --min-p X\n"
    "      --repeat-penalty X, --presence-penalty X, --frequency-penalty X, --repeat-last-n N\n"
    "      --seed N               same seed, same answer\n"
    "      --stop TEXT            end the answer before this text; may be repeated\n"
    "      --format json|FILE     answer with JSON, or as the JSON schema in FILE says\n"
    "      --grammar FILE         answer as the GBNF grammar in FILE says\n"
    "      --lora FILE[:SCALE]    apply a LoRA adapter; may be repeated\n"
    "      --draft FILE|lookup|off  several tokens per pass: guessed by a drafter, or\n"
    "                             from the conversation\n"
    "      --no-think             answer without thinking\n"
    "      --think                think first (default, except for diffusion models)\n"
    "      --hide-thinking        do not print the thinking (default unless stdout is a terminal)\n"
    "      --show-thinking        print it to stderr\n"
    "      --json                 print events, one JSON object per line: thinking, text, "
    "tool_call, done\n"
    "  -v, --verbose              print timings after the answer\n"
    "  -q, --quiet                no progress, no greeting\n"
    "      --no-color             no colors, as with NO_COLOR set\n"
    "      --no-wrap              break lines at the edge, not between words\n"
    "      --no-animation         diffusion models: print finished text only\n"
    "      --threads N, --device auto|cpu|gpu, --kernels NAME, --chunk N, --no-fuse\n"
    "      --kv f16|q8|q4         KV cache in 16, 8 or 4 bits\n"
    "      --exact                float32 activations instead of int8: slower, more precise\n"
    "      --ple auto|resident|file   gpu: where per-layer embeddings are kept\n"
    "      --gpu-memory SIZE      gpu: limit for the weights, such as 8GB; layers beyond it are "
    "streamed\n"
    "      --sandbox MODE         auto, on or off: confine the program to its files\n"
    "      --mmproj FILE          vision and audio file of a two-file model\n"
    "      --ignore-end           continue past end tokens\n\n"
    "Many prompts:\n"
    "      --prompts FILE         one JSON object per line: {\"prompt\": TEXT} or {\"messages\": "
    "[...]}, "
    "and\n"
    "                             optionally id, system, tools, think, options; -: standard input\n"
    "  -o, --out FILE             one line per prompt, in order (default: stdout). After an "
    "interruption\n"
    "                             the same command continues where it stopped\n"
    "      --shard I/N            only lines I, I+N, I+2N ... (from 1); 0 is N\n"
    "      --parallel N           prompts answered together, 1 to 64 (4)\n\n"
    "Of the sampling options, diffusion models use --seed only.\n"
    "The other sampling defaults come from the model's entry in Ollama's store, then from its "
    "file,\n"
    "then are temperature 1.0, top-k 64 and top-p 0.95. See also 'man bezel'.\n"};
