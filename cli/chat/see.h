/* Encodes image and audio files for a prompt. */
#ifndef BZ_CLI_SEE_H
#define BZ_CLI_SEE_H

#include <stdbool.h>

#include "bezel_media.h"

/* Notes for the user: a truncated file, audio encoded in several pieces. */
typedef void (*see_callback)(void *user, const char *text);

/* Reads, decodes and encodes one file or another source (source.h). `features`, if not NULL, gets
 * the input of the tower; the caller frees its values. Ctrl-C: BZ_ABORTED. Errors name the file. */
typedef struct see_features {
    float *values;
    uint32_t rows, cols;
} see_features;
bz_status see_file(bz_encoder *encoder, bz_media_kind kind, const char *path, bool progress,
                   see_callback note, void *user, see_features *features, bz_media **media,
                   bz_error *err);

/* Adds the option to a message of the library that requests an mmproj file. */
void see_name_option(bz_error *err);

/* A see_callback that prints to stderr, in parentheses. */
void see_note(void *user, const char *text);

#endif
