/* How often tests poll a device, and after how long without a result they fail: on a busy machine a
 * software adapter compiles for minutes. */
#ifndef BZ_TEST_GPU_WAIT_H
#define BZ_TEST_GPU_WAIT_H

#define GPU_POLL_NS     100000u
#define GPU_PATIENCE_NS 600000000000u

#endif
