/* Images, audio files and videos attached to a message. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/chat/named_file.h"
#include "cli/verbs/run.h"
#include "cli/chat/media_file.h"
#include "cli/show/show.h"
#include "cli/term.h"

/* One for the whole chat: it caches what it has encoded. */
bz_status run_encoder(run_state *r, bz_error *err)
{
    const bz_encoder_options o = {.size = sizeof o,
                                  .budget = r->o->image_tokens,
                                  .frame_budget = r->o->video_tokens,
                                  .threads = r->o->threads,
                                  .kernels = r->o->kernels,
                                  .exact = r->o->exact};
    return r->encoder ? BZ_OK : bz_encoder_new(&r->encoder, r->m.model, &o, err);
}

bz_status run_attach(run_state *r, bz_media_kind kind, const char *path, uint32_t *tokens,
                     bz_error *err)
{
    bz_media *media = NULL;
    bz_status status = run_encoder(r, err);
    if (status == BZ_OK) {
        const media_file_options fo = {.progress = !r->o->quiet,
                                       .video_frames = r->o->video_frames,
                                       .note = r->o->quiet ? NULL : media_file_note};
        status = media_file_encode(r->encoder, kind, path, &fo, &media, err);
    }
    if (status != BZ_OK) {
        return status;
    }
    uint32_t width;
    bz_media_rows(media, tokens, &width);
    const bool kept = media_cache_add(&r->cache, kind, path, strlen(path), media);
    attached_file *more = realloc(r->files, (r->n_files + 1) * sizeof *more);
    char *copy = strdup(path);
    if (more) {
        r->files = more;
    }
    if (!kept || !more || !copy) {
        free(copy);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a file name.");
    }
    r->files[r->n_files++] = (attached_file){kind, copy};
    return BZ_OK;
}

void run_detach(run_state *r)
{
    for (size_t i = 0; i < r->n_files; i++) {
        free(r->files[i].path);
    }
    free(r->files);
    r->files = NULL;
    r->n_files = 0;
}

void run_set_aside(run_state *r)
{
    for (size_t i = 0; i < r->n_files; i++) {
        media_cache_remove(&r->cache, r->files[i].kind, r->files[i].path);
    }
    run_detach(r);
}

void run_hint_files(const run_state *r, const char *text, size_t len, const char *commands[3])
{
    bz_media_kind kind;
    char name[NAMED_FILE_MAX], shown[SHOW_SAFE_MAX];
    if (!r->n_files && !r->o->quiet && named_file(text, len, &kind, name) &&
        bz_model_takes(r->m.model, kind)) {
        fprintf(stderr, "%s(The model only sees the name of the file; %s %s attaches it.)%s\n",
                term_dim(), commands[kind], show_safe((bz_str){name, strlen(name)}, 200, shown),
                term_plain());
    }
}

bool run_add_user(run_state *r, const char *text, size_t len)
{
    return r->n_files
               ? conversation_add_user_files(&r->conversation, r->files, r->n_files, text, len)
               : conversation_add_user(&r->conversation, text, len);
}
