/* How fast this machine reads memory: the roof over the speed of generating. */
#ifndef BZ_CLI_BANDWIDTH_H
#define BZ_CLI_BANDWIDTH_H

/* Bytes per second of `threads` threads together, the best of a few rounds over a buffer that no
 * cache holds; takes about half a second. 0: there is no memory for it. */
double bandwidth_measure(unsigned threads);

#endif
