/* Devices that outlive the model they were opened for, and what they count as. */
#ifndef BZ_TEST_DEVICES_H
#define BZ_TEST_DEVICES_H

/* From now on a closed model's device and its compiled kernels serve the next model that is opened
 * with the same options: a software adapter takes longer to compile a kernel than to run a small
 * model. A device that was lost, failed, or was changed by a hook of test_hooks.h is closed.
 * Devices count as parallel ones (below). */
void devices_keep(void);

/* Which kernels models get (gpu_limits.sequential), where their options do not say it: */
typedef enum devices_kind {
    DEVICES_PARALLEL,   /* those of a GPU, whatever the adapter */
    DEVICES_SEQUENTIAL, /* those of a software adapter */
    DEVICES_AS_THEY_ARE /* what users of this adapter get */
} devices_kind;
void devices_count_as(devices_kind kind);

#endif
