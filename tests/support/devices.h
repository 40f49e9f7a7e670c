/* Devices that outlive the model they were opened for. */
#ifndef BZ_TEST_DEVICES_H
#define BZ_TEST_DEVICES_H

/* From now on a closed model's device and its compiled kernels serve the next model that is opened
 * with the same options: a software adapter takes longer to compile a kernel than to run a small
 * model. A device that was lost, failed, or was changed by a hook of test_hooks.h is closed. */
void devices_keep(void);

#endif
