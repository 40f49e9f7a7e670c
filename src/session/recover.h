/* A device can be lost at any time: a driver is reset, a laptop's lid closed, a phone's page
 * suspended.
 *
 * The session has its tokens, so the job that notices recovers: the model is loaded onto a new
 * device, the tokens are computed again, the pass in flight is started again. Snapshots are lost. A
 * second loss before anything new was computed is an error of the job; the next job tries again. */
#ifndef BZ_RECOVER_H
#define BZ_RECOVER_H

#include "session/job.h"
#include "session/session.h"

void bz_session_begin_job(bz_session *s);
void bz_session_end_job(bz_session *s);

/* A step of a job: `work`, or a step of recovery. After recovery `restart` is called: the session
 * holds s->n tokens as before, and passes that were in flight are lost. */
bz_progress bz_session_work(bz_session *s, bz_job *job,
                            bz_progress (*work)(bz_job *job, bz_need *need),
                            void (*restart)(bz_job *job), bz_need *need);

bool bz_session_is_there(const bz_session *s); /* on a working device, with all its tokens */

#endif
