/* A separate file, because it uses session internals and forward.c the public API only. */
#include "session/session.h"

uint32_t session_vocab(const bz_session *s);

uint32_t session_vocab(const bz_session *s)
{
    return s->model->text.config.vocab;
}
