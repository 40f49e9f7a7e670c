/* Any file as a saved session: refused with a sentence, or usable.
 *
 * The input is the file without its magic, model hashes and digest, which the target fills in: else
 * nothing after them would ever be read. */
#include <stdlib.h>
#include <string.h>

#include "session/saved.h"
#include "support/forward.h"
#include "support/golden.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTEXT = 64 };

static bz_session *new_session(void)
{
    static bz_model *m; /* the same every time, never freed */
    const bz_session_options o = {.size = sizeof o, .threads = 1, .context = CONTEXT, .chunk = 8};
    m = m ? m : open_or_fail(model_path("nano-e-q4_0.gguf"));
    return session_or_fail(m, &o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t hashes = sizeof SAVED_MAGIC + 2 * sizeof(uint32_t);
    bz_session *s = new_session();
    const size_t n = sizeof SAVED_MAGIC + size + BZ_SHA256_BYTES;
    uint8_t *file = malloc(n);
    saved_head own;
    bz_sha256 hash;
    bz_error err = {0};
    if (!file) {
        abort();
    }
    memcpy(file, SAVED_MAGIC, sizeof SAVED_MAGIC);
    memcpy(file + sizeof SAVED_MAGIC, data, size);
    bz_saved_model_hash(s->model, s->adapters, &own);
    if (size >= sizeof own) {
        memcpy(file + hashes, own.model, sizeof own.model + sizeof own.weights);
    }
    bz_sha256_begin(&hash);
    bz_sha256_add(&hash, file, n - BZ_SHA256_BYTES);
    bz_sha256_end(&hash, file + n - BZ_SHA256_BYTES);
    const bz_status status = bz_saved_read(s, file, n, "x", &err);
    if (status != BZ_OK && (!err.text[0] || err.code != status)) {
        abort();
    }
    /* what was loaded continues, or its numbers are refused */
    bz_job *job;
    const bz_generate_options go = {.size = sizeof go, .max_tokens = 1, .sampling.greedy = true};
    if (status == BZ_OK && s->has_logits && bz_session_generate(s, &go, &job, &err) == BZ_OK) {
        bz_job_run(job, NULL, &err);
        bz_job_free(job);
    }
    if (s->n > s->context) {
        abort();
    }
    free(file);
    bz_session_free(s);
    return 0;
}
