/* An answer in a session of its own, for what a batch cannot do: images and audio,
 * log-probabilities. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/text.h"
#include "server/engine/internal.h"

static void free_decoded(sequence *s)
{
    free(s->decoded.rgb);
    bz_free(s->decoded.pcm);
    s->decoded = (engine_decoded){0};
}

static void end_job(sequence *s)
{
    bz_job_free(s->job);
    s->job = NULL;
    free_decoded(s);
}

/* ---- media ------------------------------------------------------------------------------------
 */

static const char BASE64_MARK[] = ";base64,";

/* The base64 text of "data:image/png;base64,...", or of a source that is only base64 (Ollama's
 * images, OpenAI's input_audio). Nothing is fetched, and nothing is read from a file. */
static bz_status find_base64(bz_str source, bz_str *out, bz_error *err)
{
    if (source.len >= 5 && memcmp(source.data, "data:", 5) == 0) {
        const char *mark = bz_text_find(source.data, source.len, BASE64_MARK);
        if (!mark) {
            return bz_fail(err, BZ_BAD_REQUEST,
                           "A data: URL of an image or audio file must be in base64.");
        }
        const char *start = mark + sizeof BASE64_MARK - 1;
        *out = (bz_str){start, source.len - (size_t)(start - source.data)};
        return BZ_OK;
    }
    if (bz_text_find(source.data, source.len < 16 ? source.len : 16, "://")) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The server fetches no images or audio; send them as a data: URL in "
                       "base64.");
    }
    *out = source;
    return BZ_OK;
}

static bz_status decode_media(engine *e, sequence *s, bz_media_kind kind, bz_str source,
                              bz_error *err)
{
    bz_str text = {0};
    size_t n;
    bz_status status = find_base64(source, &text, err);
    if (status != BZ_OK) {
        return status;
    }
    uint8_t *bytes = malloc(text.len / 4 * 3 + 3);
    if (!bytes) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image or audio file.");
    }
    status = bz_base64_read(text.data, text.len, bytes, &n) && n
                 ? e->o.decode(kind, bytes, n, &s->decoded, err)
                 : bz_fail(err, BZ_BAD_REQUEST,
                           "An image or audio file of the request is not valid base64.");
    free(bytes);
    return status;
}

static bz_status encode_next(engine *e, sequence *s, bz_error *err)
{
    engine_model *m = s->w->m;
    bz_str source;
    const bz_media_kind kind =
        bz_turn_media_source(s->turn, s->next_media, &source.data, &source.len);
    bz_status status = BZ_OK;
    if (kind == BZ_MEDIA_VIDEO) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "The server takes no video; send some of its frames as images.");
    }
    if (!m->encoder) {
        const bz_encoder_options o = {.size = sizeof o, .threads = e->o.threads};
        status = bz_encoder_new(&m->encoder, m->model, &o, err);
    }
    status = status == BZ_OK ? decode_media(e, s, kind, source, err) : status;
    if (status != BZ_OK) {
        return status;
    }
    const engine_decoded *d = &s->decoded;
    status = kind == BZ_MEDIA_IMAGE
                 ? bz_encode_image(m->encoder, d->rgb, d->width, d->height, &s->job, err)
                 : bz_encode_audio(m->encoder, d->pcm, d->samples, d->rate, &s->job, err);
    if (status == BZ_OK) {
        s->phase = SEQUENCE_ENCODING;
        m->encoding = true;
    } else {
        free_decoded(s);
    }
    return status;
}

/* ---- the session ------------------------------------------------------------------------------
 */

static bz_status begin_prefill(engine *e, sequence *s, bz_error *err)
{
    engine_model *m = s->w->m;
    s->session = models_session(&e->models, m, s->ids, s->n_ids, err);
    if (!s->session) {
        return err->code;
    }
    s->reused_before = bz_session_get_stats(s->session->session).reused;
    bz_status status;
    if (s->w->r.task == ENGINE_CHAT && !s->w->r.n_before) {
        status = bz_turn_prefill(s->session->session, s->turn, &s->job, err);
    } else {
        status = bz_session_prefill(s->session->session, s->ids, s->n_ids, NULL, &s->job, err);
    }
    if (status == BZ_OK) {
        s->phase = SEQUENCE_PREFILL;
    } else {
        s->session->busy = false;
        s->session = NULL;
    }
    return status;
}

bz_status session_job_start(engine *e, sequence *s, bz_error *err)
{
    *err = (bz_error){0};
    if (s->next_media < bz_turn_media(s->turn)) {
        return s->w->m->encoding ? BZ_OK : encode_next(e, s, err);
    }
    return begin_prefill(e, s, err);
}

void session_job_stop(sequence *s)
{
    if (s->phase == SEQUENCE_ENCODING) {
        s->w->m->encoding = false;
    }
    end_job(s);
    if (s->session) {
        s->reused = (uint32_t)(bz_session_get_stats(s->session->session).reused - s->reused_before);
        s->session->busy = false;
        s->session = NULL;
    }
}

/* ---- steps ------------------------------------------------------------------------------------
 */

static void put_token(bz_json *j, const bz_model *model, int32_t token, float log_prob)
{
    char piece[BZ_TEXT_MAX];
    const size_t n = models_token_text(model, token, piece);
    bz_json_put_str(j, "token", (bz_str){piece, n});
    bz_json_key(j, "logprob");
    bz_json_float(j, log_prob);
    bz_json_key(j, "bytes");
    bz_json_array(j);
    for (size_t i = 0; i < n; i++) {
        bz_json_uint(j, (unsigned char)piece[i]);
    }
    bz_json_end(j);
}

static bool emit_log_prob(sequence *s, const bz_event *event)
{
    const bz_model *model = s->w->m->model;
    bz_json_buffer text = {0};
    bz_json j;
    bz_json_init(&j, bz_json_to_buffer, &text);
    bz_json_object(&j);
    put_token(&j, model, event->token, event->log_prob);
    bz_json_key(&j, "top_logprobs");
    bz_json_array(&j);
    for (uint32_t i = 0; i < event->n_top; i++) {
        bz_json_object(&j);
        put_token(&j, model, event->top[i].token, event->top[i].log_prob);
        bz_json_end(&j);
    }
    bz_json_end(&j);
    bz_json_end(&j);
    const bool ok = bz_json_finish(&j) &&
                    work_event(s->w, ENGINE_LOG_PROB, s->choice, BZ_FINISH_NONE, text.text, text.n);
    free(text.text);
    return ok;
}

static bz_status on_token(sequence *s, const bz_event *event, bool *ended, bz_error *err)
{
    if (s->options.log_probs && !bz_token_ends(s->w->m->model, event->token) &&
        !emit_log_prob(s, event)) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for the answer.");
    }
    *ended = sequence_token(s, event->token, bz_job_finish(s->job), err);
    return err->code;
}

static bz_status on_encoded(sequence *s, bz_error *err)
{
    bz_media *media = bz_job_media(s->job);
    const bz_status status = bz_turn_attach(s->turn, s->next_media, media, err);
    bz_media_free(media);
    s->next_media++;
    sequence_stop(s); /* waits for the encoder or for a session */
    return status;
}

static bz_status on_done(sequence *s, bool *ended, bz_error *err)
{
    switch (s->phase) {
    case SEQUENCE_ENCODING: return on_encoded(s, err);
    case SEQUENCE_PREFILL:
        end_job(s);
        s->phase = SEQUENCE_GENERATING;
        return bz_session_generate(s->session->session, &s->options, &s->job, err);
    default: /* the context was full before the first token */
        *ended = true;
        sequence_token(s, -1, bz_job_finish(s->job), err);
        return err->code;
    }
}

bz_status session_job_step(engine *e, sequence *s, bool *ended, bool *idle, bz_error *err)
{
    bz_need need = {0};
    (void)e;
    switch (bz_job_step(s->job, &need)) {
    case BZ_JOB_AGAIN: return BZ_OK;
    case BZ_JOB_NEED_GPU: *idle = true; return BZ_OK;
    case BZ_JOB_NEED_BYTES: return bz_fail(err, BZ_BAD_FILE, "The model's file is not in memory.");
    case BZ_JOB_EVENT:
        return need.event.kind == BZ_EVENT_TOKEN ? on_token(s, &need.event, ended, err) : BZ_OK;
    case BZ_JOB_DONE: return on_done(s, ended, err);
    case BZ_JOB_ERROR: *err = need.error; return need.error.code;
    }
    return BZ_OK;
}
