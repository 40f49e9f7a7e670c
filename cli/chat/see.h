/* Pictures and sound for the verbs: from a file to what stands among the tokens. */
#ifndef BZ_CLI_SEE_H
#define BZ_CLI_SEE_H

#include <stdbool.h>

#include "bezel_media.h"

/* What a user should be told: how long a cut file is, in how many pieces a sound was taken. */
typedef void (*see_note)(void *user, const char *text);

/* Reads, decodes and encodes one file, or what stands for one (source.h); progress shows where
 * `progress` says so. features and their size may be NULL; else what the tower was given, to be
 * freed. Ctrl-C: BZ_ABORTED. Errors name the file. */
typedef struct see_features {
    float *values;
    uint32_t rows, cols;
} see_features;
bz_status see_file(bz_encoder *encoder, bz_media_kind kind, const char *path, bool progress,
                   see_note note, void *user, see_features *features, bz_media **media,
                   bz_error *err);

/* The library knows of files, not of options: where it asks for an mmproj file, says which option
 * that is. */
void see_name_option(bz_error *err);

/* For the verbs: notes on stderr, in parentheses. */
void see_tell(void *user, const char *text);

#endif
