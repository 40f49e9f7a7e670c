/* Apart, because it looks inside a session and forward.c uses the public API only. */
#include "session/session.h"

uint32_t session_vocab(const bz_session *s);

uint32_t session_vocab(const bz_session *s)
{
    return s->model->text.config.vocab;
}
