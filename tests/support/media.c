#include "support/media.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bz_model *open_two_or_fail(const char *path, const char *mmproj)
{
    bz_model *m = NULL;
    bz_error err = {0};
    if (bz_model_open_file(&m, path, mmproj, NULL, &err) != BZ_OK) {
        printf("FAIL opening %s: %s\n", path, err.text);
        exit(1);
    }
    return m;
}

bz_encoder *encoder_or_fail(const bz_model *m, const bz_encoder_options *o)
{
    bz_encoder *e = NULL;
    bz_error err = {0};
    if (bz_encoder_new(&e, m, o, &err) != BZ_OK) {
        printf("FAIL making an encoder: %s\n", err.text);
        exit(1);
    }
    return e;
}

bz_media *encode_golden(bz_encoder *e, const golden *g, const char *kind, int i)
{
    char name[40];
    bz_error err = {0};
    bz_job *job = NULL;
    bz_status status = BZ_NOT_FOUND;
    const bool image = strcmp(kind, "image") == 0;
    snprintf(name, sizeof name, image ? "image.%d.rgb" : "audio.%d.pcm", i);
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&g->gguf, name);
    if (t && image) {
        status = bz_encode_image(e, g->map.data + t->offset, (uint32_t)t->ne[1], (uint32_t)t->ne[2], &job, &err);
    } else if (t) {
        status = bz_encode_audio(e, (const float *)(const void *)(g->map.data + t->offset), (size_t)t->ne[0], 16000, &job, &err);
    }
    status = status == BZ_OK ? bz_job_run(job, NULL, &err) : status;
    bz_media *m = status == BZ_OK ? bz_job_media(job) : NULL;
    if (!m) {
        printf("FAIL encoding %s: %s\n", name, err.text);
        exit(1);
    }
    bz_job_free(job);
    return m;
}
