/* bezel logits: writes raw logits of given tokens, to compare with other implementations. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os_program.h"
#include "bezel_debug.h"
#include "bezel_diffusion.h"
#include "cli/adapters.h"
#include "cli/cli.h"
#include "cli/chat/media_file.h"
#include "cli/term.h"

/* Memory limit for one pass's rows without --chunk; on a GPU they are in one binding, which may be
 * limited to 128 MB. */
enum { LOGITS_BYTES = 256 << 20, LOGITS_BYTES_GPU = 64 << 20 };

typedef struct writer {
    FILE *f;
    uint32_t vocab;
} writer;

static int on_event(void *user, const bz_event *e)
{
    writer *w = user;
    if (e->kind == BZ_EVENT_LOGITS) {
        size_t n = (size_t)e->rows * w->vocab;
        return fwrite(e->logits, sizeof *e->logits, n, w->f) != n;
    }
    return 0;
}

/* Encodes the files and lists them in the order of their tokens among the ids. */
static bz_status encode_all(const cli_options *o, const bz_model *model, const int32_t *ids,
                            size_t n, bz_media **list, size_t *count, bz_error *err)
{
    const bz_encoder_options eo = {.size = sizeof eo,
                                   .budget = o->image_tokens,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .exact = !o->fast};
    bz_encoder *encoder = NULL;
    int32_t image = -1, sound = -1;
    size_t images = 0, sounds = 0;
    bz_status status = bz_encoder_new(&encoder, model, &eo, err);
    if (status == BZ_OK && (bz_tokenize(model, "<|image|>", 9, true, false, &image, 1, err) < 0 ||
                            bz_tokenize(model, "<|audio|>", 9, true, false, &sound, 1, err) < 0)) {
        status = err->code;
    }
    for (size_t i = 0; i < n && status == BZ_OK;) {
        const char *path = ids[i] == image   ? o->images[images]
                           : ids[i] == sound ? o->sounds[sounds]
                                             : NULL;
        if (!path) {
            i++;
            continue;
        }
        const bool is_image = ids[i] == image;
        status =
            media_file_encode(encoder, is_image ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO, path,
                              &(media_file_options){.note = media_file_note}, &list[*count], err);
        if (status == BZ_OK) {
            uint32_t rows, width;
            bz_media_rows(list[(*count)++], &rows, &width);
            images += is_image;
            sounds += !is_image;
            i += rows;
        }
    }
    bz_encoder_free(encoder);
    if (status == BZ_OK && (o->images[images] || o->sounds[sounds])) {
        status = bz_fail(err, BZ_BAD_REQUEST, "No <|image|> or <|audio|> tokens are left for %s.",
                         o->images[images] ? o->images[images] : o->sounds[sounds]);
    }
    return status;
}

/* ---- diffusion models -------------------------------------------------------------- */

/* A canvas, and the logits of an earlier step that it is conditioned on, if any. */
typedef struct canvas_request {
    int32_t *ids;    /* [n] */
    float *previous; /* [n][vocabulary]; NULL: none */
    float temperature;
    size_t n;
} canvas_request;

static int read_canvas(const cli_options *o, const bz_model *model, canvas_request *c)
{
    const uint32_t want = bz_model_canvas(model), vocab = bz_model_vocab(model);
    if (!want != !o->canvas) {
        return cli_usage_error(
            "logits", want ? "this is a diffusion model; give the canvas with '--canvas IDS'."
                           : "this is not a diffusion model; remove '--canvas'.");
    }
    if (!want) {
        return EXIT_OK;
    }
    c->ids = cli_token_list("logits", o->canvas, &c->n);
    if (!c->ids) {
        return EXIT_USAGE;
    }
    if (c->n != want) {
        return cli_usage_error("logits", "'--canvas' has %zu ids; this model needs %u.", c->n,
                               want);
    }
    char *end = NULL;
    c->temperature = o->self_cond_temp ? strtof(o->self_cond_temp, &end) : 0.8f;
    if (!(c->temperature > 0) || (end && *end)) {
        return cli_usage_error("logits", "'--self-cond-temp' must be a number above 0.");
    }
    if (!o->self_cond) {
        return EXIT_OK;
    }
    FILE *f = bz_os_stream(o->self_cond, "rb");
    const size_t values = (size_t)want * vocab;
    c->previous = malloc(values * sizeof *c->previous);
    const bool whole = f && c->previous &&
                       fread(c->previous, sizeof *c->previous, values, f) == values &&
                       fgetc(f) == EOF;
    if (f) {
        fclose(f);
    }
    if (!whole) {
        fprintf(stderr, "bezel: %s does not have %u rows of %u floats.\n", o->self_cond, want,
                vocab);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static bz_status write_canvas(bz_session *s, const canvas_request *c, writer *w, bz_error *err)
{
    bz_job *job = NULL;
    bz_status status = bz_session_canvas(s, c->ids, c->previous, c->temperature, &job, err);
    if (status == BZ_OK) {
        status =
            bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = w}, err);
        bz_job_free(job);
    }
    return status;
}

/* ---- the verb ------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_logits_verb, argc, argv, "tomkdETCfFyGgZl3", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.tokens || !o.out) {
        return cli_usage_error("logits", "%s",
                               !o.tokens ? "no tokens given; use for example '-t 2,10,11'."
                                         : "no output file given; use '-o OUT.f32'.");
    }
    size_t n;
    int32_t *ids = cli_token_list("logits", o.tokens, &n);
    if (!ids) {
        return EXIT_USAGE;
    }
    cli_model m;
    bz_session *session = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    writer w = {0};
    bz_media *media[2 * CLI_STOPS] = {0};
    size_t n_media = 0;
    if (!cli_open_model(&o, &m, &code)) {
        free(ids);
        return code;
    }
    bz_model *model = m.model;
    canvas_request canvas = {0};
    code = read_canvas(&o, model, &canvas);
    if (code != EXIT_OK) {
        free(canvas.ids);
        free(canvas.previous);
        cli_close_model(&m);
        free(ids);
        return code;
    }
    w.vocab = bz_model_vocab(model);
    bool gpu = bz_debug_model_gpu(model) != NULL;
    uint32_t fits = (gpu ? (uint32_t)LOGITS_BYTES_GPU : (uint32_t)LOGITS_BYTES) / 4 / w.vocab;
    const size_t positions = n + canvas.n;
    bz_session_options so = {
        .size = sizeof so,
        .context =
            (uint32_t)(positions < bz_model_context(model) ? positions : bz_model_context(model)),
        .chunk = o.chunk || canvas.n ? o.chunk
                 : fits              ? fits
                                     : 1,
        .threads = o.threads,
        .kernels = o.kernels,
        .no_fuse = o.no_fuse,
        .exact = !o.fast,
        .kv = o.kv};
    bz_prefill_options po = {.size = sizeof po,
                             .logits = canvas.n ? BZ_LOGITS_LAST : BZ_LOGITS_ALL};
    w.f = bz_os_stream(o.out, "wb");
    if (!w.f) {
        fprintf(stderr, "bezel: cannot write %s.\n", o.out);
        code = EXIT_FAILED;
    } else if (((o.images[0] || o.sounds[0]) &&
                encode_all(&o, model, ids, n, media, &n_media, &err) != BZ_OK) ||
               bz_session_new(&session, model, &so, &err) != BZ_OK ||
               adapters_use(&m, session, &err) != BZ_OK ||
               bz_session_prefill_media(session, ids, n, media, n_media, &po, &job, &err) !=
                   BZ_OK ||
               bz_job_run(job, &(bz_host){.size = sizeof(bz_host), .event = on_event, .user = &w},
                          &err) != BZ_OK ||
               (bz_job_free(job), job = NULL,
                canvas.n && write_canvas(session, &canvas, &w, &err) != BZ_OK)) {
        code = err.code == BZ_ABORTED
                   ? (fprintf(stderr, "bezel: cannot write %s.\n", o.out), EXIT_FAILED)
                   : cli_error(&err);
    }
    if (w.f && fclose(w.f) != 0 && code == EXIT_OK) {
        fprintf(stderr, "bezel: cannot write %s.\n", o.out);
        code = EXIT_FAILED;
    }
    bz_job_free(job);
    bz_session_free(session);
    for (size_t i = 0; i < n_media; i++) {
        bz_media_free(media[i]);
    }
    cli_close_model(&m);
    free(canvas.ids);
    free(canvas.previous);
    free(ids);
    return code;
}

const cli_verb cli_logits_verb = {
    "logits", run, "write raw logits of given tokens, one row per position",
    "Usage: bezel logits MODEL -t IDS -o OUT.f32 [options]\n\n"
    "Writes float32 [tokens][vocabulary], little-endian. Exact by default: float32 activations\n"
    "and an f32 cache.\n\n"
    "  -t, --tokens IDS     comma-separated token ids, or @FILE\n"
    "  -o, --out FILE       output file\n"
    "      --image FILE, --audio FILE   files for the <|image|> and <|audio|> tokens, in "
    "order\n"
    "      --image-tokens N maximum tokens per image (280)\n"
    "      --lora FILE[:SCALE]   apply a LoRA adapter; may be repeated\n"
    "      --fast           as in generation: int8 activations, f16 cache\n"
    "      --kv TYPE        KV cache in f16, q8 or q4\n"
    "      --chunk N        tokens per pass (does not change the result)\n"
    "      --threads N      threads (does not change the result)\n"
    "      --kernels NAME   amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or plain\n"
    "      --device NAME    cpu (default), gpu or auto\n"
    "      --ple PLACE      gpu: where per-layer embeddings are kept: resident, file or auto\n"
    "      --gpu-memory SIZE   gpu: limit for the weights, such as 8GB; layers beyond it are "
    "streamed\n"
    "      --no-fuse        gpu: one kernel per step\n"
    "      --sandbox MODE   auto, on or off: confine the program to its files\n"
    "      --mmproj FILE    vision and audio file of a two-file model\n\n"
    "Diffusion models: logits of a canvas after the tokens.\n"
    "      --canvas IDS     ids of the canvas, or @FILE\n"
    "      --self-cond FILE   condition on these logits of an earlier call\n"
    "      --self-cond-temp X   temperature of that step (0.8)\n"};
