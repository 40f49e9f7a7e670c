/* The source of an image or audio part: a file, a data: URL, or plain base64. */
#ifndef BZ_CLI_SOURCE_H
#define BZ_CLI_SOURCE_H

#include "base/os.h"

typedef struct source {
    const uint8_t *data;
    size_t size;
    char name[128]; /* for messages */
    uint8_t *owned;
    bz_os_map map;
} source;

/* Errors name the source. The network is never used. */
bz_status source_open(source *s, const char *text, bz_error *err);
void source_close(source *s);

/* Decodes a data: URL of len bytes. For source_open and for fuzzing. */
bz_status source_read_data(source *s, const char *text, size_t len, bz_error *err);

#endif
