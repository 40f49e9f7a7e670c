/* bezel logits: raw logits of given tokens, for checking against other implementations. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Most memory for one pass's rows unless --chunk says otherwise; on a GPU they lie in one binding, which may be of
 * 128 MB. */
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

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_logits_verb, argc, argv, "tomkdETCfF", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!o.tokens || !o.out) {
        return cli_usage_error("logits", "%s", !o.tokens ? "which tokens? Give -t 2,10,11." : "where to? Give -o OUT.f32.");
    }
    size_t n;
    int32_t *ids = cli_token_list("logits", o.tokens, &n);
    if (!ids) {
        return EXIT_USAGE;
    }
    bz_model *model = NULL;
    bz_session *session = NULL;
    bz_job *job = NULL;
    bz_error err = {0};
    writer w = {0};
    if (!cli_open(&o, &model, &code)) {
        free(ids);
        return code;
    }
    w.vocab = bz_model_vocab(model);
    bool gpu = o.device && strcmp(o.device, "cpu") != 0;
    uint32_t fits = (gpu ? (uint32_t)LOGITS_BYTES_GPU : (uint32_t)LOGITS_BYTES) / 4 / w.vocab;
    bz_session_options so = {.context = (uint32_t)(n < bz_model_context(model) ? n : bz_model_context(model)),
                             .chunk = o.chunk ? o.chunk : fits ? fits : 1,
                             .threads = o.threads,
                             .kernels = o.kernels,
                             .no_fuse = o.no_fuse,
                             .exact = !o.fast};
    bz_prefill_options po = {.logits = BZ_LOGITS_ALL};
    w.f = fopen(o.out, "wb");
    if (!w.f) {
        fprintf(stderr, "bezel: cannot write %s.\n", o.out);
        code = EXIT_FAILED;
    } else if (bz_session_new(&session, model, &so, &err) != BZ_OK ||
               bz_session_prefill(session, ids, n, &po, &job, &err) != BZ_OK ||
               bz_job_run(job, &(bz_host){.event = on_event, .user = &w}, &err) != BZ_OK) {
        code = err.code == BZ_ABORTED ? (fprintf(stderr, "bezel: cannot write %s.\n", o.out), EXIT_FAILED) : cli_error(&err);
    }
    if (w.f && fclose(w.f) != 0 && code == EXIT_OK) {
        fprintf(stderr, "bezel: cannot write %s.\n", o.out);
        code = EXIT_FAILED;
    }
    bz_job_free(job);
    bz_session_free(session);
    bz_model_free(model);
    free(ids);
    return code;
}

const cli_verb cli_logits_verb = {
    "logits", run, "write raw logits of given tokens, one row per position",
    "Usage: bezel logits MODEL -t IDS -o OUT.f32 [options]\n\n"
    "Writes float32 [tokens][vocabulary], little-endian. Exact by default: float activations\n"
    "and an f32 cache.\n\n"
    "  -t, --tokens IDS     comma-separated token ids, or @FILE\n"
    "  -o, --out FILE       where the rows go\n"
    "      --fast           compute as generation does: 8-bit activations, f16 cache\n"
    "      --chunk N        tokens per pass (does not change the result)\n"
    "      --threads N      threads (does not change the result)\n"
    "      --kernels NAME   avx2, neon or plain\n"
    "      --device NAME    cpu or gpu\n"
    "      --ple PLACE      gpu: per-layer embeddings resident, in the file, or auto\n"
    "      --no-fuse        gpu: every step a kernel of its own, for checking\n"
    "      --mmproj FILE    vision and audio file of a two-file model\n"};
