/* Where a batch runs: its back end and caches, on the CPU or on the model's GPU. Used by batch*.c.
 */
#ifndef BZ_BATCH_DEVICE_H
#define BZ_BATCH_DEVICE_H

#include "session/batch_internal.h"

/* Creates the back end; caches are made slot by slot. */
bz_status bz_batch_attach(bz_batch *b, bz_error *err);
/* Frees back end and caches. Slots keep their tokens; plans stay recorded. */
void bz_batch_detach(bz_batch *b);

/* Is the device still there? Always on the CPU. */
bool bz_batch_is_attached(const bz_batch *b);
/* A short step of looking for another device after one was lost. When it is found, sequences are
 * prefilled again, and continue as before. */
bz_status bz_batch_recover(bz_batch *b, bz_error *err);

#endif
