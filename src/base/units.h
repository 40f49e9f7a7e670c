/* Large numbers for people: three significant digits and a unit. */
#ifndef BZ_BASE_UNITS_H
#define BZ_BASE_UNITS_H

#include <stdint.h>

enum { BZ_UNITS_MAX = 16 };

/* "96 B", "1.23 kB", "45.6 MB", "3.41 GB": steps of 1000. Both return buf. */
const char *bz_bytes_text(uint64_t bytes, char buf[BZ_UNITS_MAX]);
/* "768", "12.3 k", "270 M", "4.65 B" (billions) */
const char *bz_count_text(uint64_t count, char buf[BZ_UNITS_MAX]);

#endif
