/* Reads lines of bounded length. Unlike getline it distinguishes the end of a file from a lack of
 * memory. */
#ifndef BZ_CLI_LINES_H
#define BZ_CLI_LINES_H

#include <stdio.h>

#include "base/error.h"

enum { LINE_MAX_BYTES = 64 << 20 }; /* of a prompt or a result, with its line end */

typedef struct line_buffer {
    char *text; /* [len], not terminated; valid until the next read */
    size_t len, cap;
} line_buffer;

/* Reads a line with its '\n', which only the last may lack; len 0: the end of the file, or a signal
 * ended the wait. path and number are for messages. max: LINE_MAX_BYTES, or less in tests. */
bz_status line_read(line_buffer *b, FILE *f, size_t max, const char *path, uint64_t number,
                    bz_error *err);
void line_free(line_buffer *b);

#endif
