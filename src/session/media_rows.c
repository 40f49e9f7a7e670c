/* Images, audio and frames of videos among a session's tokens.
 *
 * Each of their rows has a number below zero in place of a token, derived from its content. So
 * prefixes are compared as usual, and another image at the same position is another prefix. */
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "session/session.h"

void bz_spans_free(session_span *spans, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        bz_media_free(spans[i].media);
    }
    free(spans);
}

void bz_session_take_spans(bz_session *s, session_span *spans, uint32_t n)
{
    bz_spans_free(s->spans, s->n_spans);
    s->spans = spans;
    s->n_spans = n;
}

bool bz_session_has_blocks(const bz_session *s)
{
    const bz_text_model *t = &s->model->text;
    return s->model->towers.vision.kind != BZ_TOWER_NONE &&
           (t->sliding_image != BZ_IMAGE_CAUSAL || t->full_image != BZ_IMAGE_CAUSAL);
}

/* The block that contains `pos`, its first position included; NULL: none. */
static const session_span *block_at(const bz_session *s, uint32_t pos)
{
    for (uint32_t i = 0; bz_session_has_blocks(s) && i < s->n_spans; i++) {
        const session_span *p = &s->spans[i];
        if (p->media->kind == BZ_MEDIA_IMAGE && p->first <= pos &&
            pos - p->first < p->media->rows) {
            return p;
        }
    }
    return NULL;
}

uint32_t bz_session_before_block(const bz_session *s, uint32_t pos)
{
    const session_span *p = block_at(s, pos);
    return p ? p->first : pos;
}

uint32_t bz_session_fit_pass(const bz_session *s, uint32_t first, uint32_t count)
{
    const session_span *cut = block_at(s, first + count);
    if (!cut || cut->first == first + count) {
        return count;
    }
    return cut->first > first ? cut->first - first : cut->media->rows;
}

bz_status bz_session_reserve_blocks(bz_session *s, const session_span *spans, uint32_t n,
                                    bz_error *err)
{
    const uint32_t usual = s->chunk > BZ_MAX_CHUNK ? s->chunk : BZ_MAX_CHUNK;
    uint32_t most = 0; /* rows of the longest block, if longer than a usual pass */
    for (uint32_t i = 0; bz_session_has_blocks(s) && i < n; i++) {
        const bz_media *m = spans[i].media;
        most = m->kind == BZ_MEDIA_IMAGE && m->rows > usual ? BZ_MAX_ROWS : most;
    }
    if (!s->backend) { /* attached later, for this prompt */
        s->image_rows = most;
        return BZ_OK;
    }
    if (most <= s->image_rows) {
        return BZ_OK;
    }
    const uint32_t before = s->image_rows;
    s->image_rows = most;
    bz_session_detach(s);
    s->n = 0;
    s->has_logits = s->logits_on_device = false;
    bz_status status =
        s->model->gpu ? BZ_OK : bz_session_attach(s, err); /* on a GPU the job attaches it */
    if (status != BZ_OK) {
        s->image_rows = before;
        bz_session_attach(s, NULL);
    }
    return status;
}

void bz_session_release_blocks(bz_session *s)
{
    if (s->image_rows && s->model->gpu) { /* the next job attaches it again */
        bz_session_detach(s);
        s->n = 0;
        s->has_logits = s->logits_on_device = false;
    }
}

void bz_session_fill_soft(bz_session *s, bz_rows *rows, uint32_t first)
{
    bool any = false;
    for (uint32_t i = 0; i < s->n_spans; i++) {
        const session_span *p = &s->spans[i];
        const uint32_t end = p->first + p->media->rows;
        if (end <= first || p->first >= first + rows->n) {
            continue;
        }
        if (!any) {
            any = true;
            memcpy(s->id, rows->id, rows->n * sizeof *s->id);
            memset(s->soft, 0, rows->n * sizeof *s->soft);
            memcpy(s->block_first, rows->pos, rows->n * sizeof *s->block_first);
            memcpy(s->block_last, rows->pos, rows->n * sizeof *s->block_last);
        }
        for (uint32_t pos = p->first > first ? p->first : first; pos < end && pos < first + rows->n;
             pos++) {
            const uint32_t r = pos - first;
            s->id[r] = 0; /* per-layer embeddings take the padding token's row */
            s->soft[r] = p->media->values + (size_t)(pos - p->first) * p->media->width;
            if (p->media->kind == BZ_MEDIA_IMAGE) {
                s->block_first[r] = (int32_t)p->first;
                s->block_last[r] = (int32_t)end - 1;
            }
        }
    }
    if (any) {
        rows->id = s->id;
        rows->soft = s->soft;
        rows->image_first = s->block_first;
        rows->image_last = s->block_last;
    }
}

/* ---- prefill ---------------------------------------------------------------------- */

static const char *const what[] = {"an image", "audio", "a video"};

static bz_status check_media(const bz_session *s, const bz_media *m, size_t number, bz_error *err)
{
    if (m->width != s->model->text.config.width) {
        return bz_fail(err, BZ_BAD_REQUEST, "Number %zu of the media was encoded by another model.",
                       number);
    }
    const bz_media *image = m->frames ? m->frames[0].media : m; /* all frames are of one size */
    if (image->kind == BZ_MEDIA_IMAGE && bz_session_has_blocks(s) && image->rows > BZ_MAX_ROWS) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "Image %zu has %u tokens; this model reads an image in one pass of at most "
                       "%d, so use a smaller budget.",
                       number, image->rows, BZ_MAX_ROWS);
    }
    return BZ_OK;
}

/* Replaces the tokens at ids[*i], all of them `mark`, by the numbers of an image, audio or frame.
 */
static bz_status put_rows(int32_t *ids, size_t n, size_t *i, int32_t mark, const bz_media *m,
                          size_t number, session_span *span, bz_error *err)
{
    for (uint32_t row = 0; row < m->rows; row++) {
        if (*i + row >= n || ids[*i + row] != mark) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "The prompt has %u tokens for number %zu of the media, which needs %u.",
                           row, number, m->rows);
        }
    }
    for (uint32_t row = 0; row < m->rows; row++) {
        ids[*i + row] = bz_media_token(m, row);
    }
    *span = (session_span){(uint32_t)*i, bz_media_hold(m)};
    *i += m->rows;
    return BZ_OK;
}

/* The kind of medium that a token is a placeholder of; false: it is an ordinary token. */
static bool placeholder_kind(const bz_special_ids *special, int32_t id, bz_media_kind *kind)
{
    *kind = id == special->image   ? BZ_MEDIA_IMAGE
            : id == special->audio ? BZ_MEDIA_AUDIO
                                   : BZ_MEDIA_VIDEO;
    return id >= 0 && (id == special->image || id == special->audio || id == special->video);
}

/* Replaces the placeholder tokens by the numbers of media. A video has a span for each frame. */
static bz_status put_numbers(const bz_session *s, int32_t *ids, size_t n, bz_media *const *media,
                             size_t n_media, session_span *spans, bz_error *err)
{
    const bz_special_ids *special = bz_tokenizer_special(s->model->tokenizer);
    size_t next = 0, span = 0;
    uint32_t frame = 0; /* of a video */
    for (size_t i = 0; i < n;) {
        bz_media_kind kind;
        if (!placeholder_kind(special, ids[i], &kind)) {
            if (ids[i] < 0 || (uint32_t)ids[i] >= s->model->text.config.vocab) {
                return bz_fail(
                    err, BZ_BAD_REQUEST,
                    "Token %d (number %zu of the prompt) is not in the vocabulary of %u.", ids[i],
                    i, s->model->text.config.vocab);
            }
            i++;
            continue;
        }
        if (next == n_media) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "The prompt has tokens for another %s, but only %zu media were passed.",
                           kind == BZ_MEDIA_IMAGE   ? "image"
                           : kind == BZ_MEDIA_AUDIO ? "audio clip"
                                                    : "frame",
                           n_media);
        }
        const bz_media *m = media[next];
        if (m->kind != kind) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "The prompt has tokens for %s where %s was passed (number %zu).",
                           what[kind], what[m->kind], next + 1);
        }
        const bz_media *one = m->frames ? m->frames[frame].media : m;
        const bz_status status = put_rows(ids, n, &i, ids[i], one, next + 1, &spans[span++], err);
        if (status != BZ_OK) {
            return status;
        }
        frame = m->frames && frame + 1 < m->pieces ? frame + 1 : 0;
        next += frame == 0;
    }
    return next == n_media ? BZ_OK
                           : bz_fail(err, BZ_BAD_REQUEST,
                                     "%zu media were passed, but the prompt has tokens for %zu.",
                                     n_media, next);
}

bz_status bz_session_prefill_media(bz_session *s, const int32_t *ids, size_t n,
                                   bz_media *const *media, size_t n_media,
                                   const bz_prefill_options *options, bz_job **job, bz_error *err)
{
    if (n_media == 0) {
        return bz_session_prefill(s, ids, n, options, job, err);
    }
    bz_prefill_options o;
    bz_status status = BZ_READ_PREFILL(&o, options, err);
    if (status == BZ_OK && n > s->context) {
        status = bz_fail(err, BZ_CONTEXT_FULL, "The prompt has %zu tokens; the context holds %u.",
                         n, s->context);
    }
    size_t n_spans = 0;
    for (size_t i = 0; i < n_media && status == BZ_OK; i++) {
        status = check_media(s, media[i], i + 1, err);
        n_spans += media[i]->frames ? media[i]->pieces : 1;
    }
    if (status != BZ_OK) {
        return status;
    }
    int32_t *copy = malloc((n + 1) * sizeof *copy);
    session_span *spans = calloc(n_spans, sizeof *spans);
    if (!copy || !spans) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for a prompt of %zu tokens.", n);
    } else {
        memcpy(copy, ids, n * sizeof *copy);
        status = put_numbers(s, copy, n, media, n_media, spans, err);
    }
    if (status == BZ_OK) {
        status = bz_session_prefill_spans(s, copy, n, spans, (uint32_t)n_spans, &o, job, err);
    } else if (spans) {
        bz_spans_free(spans, (uint32_t)n_spans);
    }
    free(copy);
    return status;
}
