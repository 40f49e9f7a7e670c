/* A device can be taken away at any time: a driver is reset, a laptop's lid closed, a phone's page
 * put to sleep.
 *
 * The session knows its tokens, so the job that notices goes on: the model is loaded onto a new
 * device, the tokens are computed again, the pass that was under way is begun once more. Snapshots
 * are gone. A second loss before anything new was computed is reported; so is every other error.
 * The next job tries again.
 */
#ifndef BZ_RECOVER_H
#define BZ_RECOVER_H

#include "session/job.h"
#include "session/session.h"

void bz_session_begin_job(bz_session *s);
void bz_session_end_job(bz_session *s);

/* A step of a job: `work`, or one of getting the session back onto a device. After the latter
 * `restart` is told that the session is as it was when s->n tokens were computed, and that of a
 * pass under way nothing is left. */
bz_progress bz_session_work(bz_session *s, bz_job *job,
                            bz_progress (*work)(bz_job *job, bz_need *need),
                            void (*restart)(bz_job *job), bz_need *need);

bool bz_session_is_there(const bz_session *s); /* on a working device, with all its tokens */

#endif
