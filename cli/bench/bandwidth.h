/* How fast this machine reads memory: the upper bound on the speed of generating. */
#ifndef BZ_CLI_BANDWIDTH_H
#define BZ_CLI_BANDWIDTH_H

/* Bytes per second with `threads` threads, best of a few rounds over a buffer larger than any
 * cache. Takes about half a second. 0: not enough memory. */
double bandwidth_measure(unsigned threads);

#endif
