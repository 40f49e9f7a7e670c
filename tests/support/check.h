/* A test program: CHECK lines grouped into named cases.
 *
 *   int main(void) {
 *       begin("half precision round trip");
 *       CHECK(bz_f16_to_f32(0x3C00) == 1.0f);
 *       CHECKF(x < 3, "x is %d", x);
 *       return finish();
 *   }
 *
 * Prints one line per case, "ok NAME" or "FAIL NAME", and reasons before it. The
 * runner counts those lines; finish() returns non-zero if any case failed.
 */
#ifndef BZ_TEST_CHECK_H
#define BZ_TEST_CHECK_H

#include <stdbool.h>

#include "base/error.h"

void begin(const char *format, ...) BZ_PRINTF(1, 2);
int finish(void);
bool check_that(bool holds, const char *file, int line, const char *format, ...) BZ_PRINTF(4, 5);

#define CHECK(condition)       check_that((condition), __FILE__, __LINE__, "%s", #condition)
#define CHECKF(condition, ...) check_that((condition), __FILE__, __LINE__, __VA_ARGS__)

#endif
