/* Encodes image, audio and video files for a prompt. */
#ifndef BZ_CLI_MEDIA_FILE_H
#define BZ_CLI_MEDIA_FILE_H

#include <stdbool.h>

#include "bezel_media.h"

/* Notes for the user: a truncated file, audio encoded in several pieces. */
typedef void (*media_file_callback)(void *user, const char *text);

/* The input of the tower, [rows][cols]; the caller frees the values. */
typedef struct media_file_features {
    float *values;
    uint32_t rows, cols;
} media_file_features;

typedef struct media_file_options {
    bool progress;            /* show a progress line */
    uint32_t video_frames;    /* at most this many of a video; 0: BZ_VIDEO_FRAMES */
    media_file_callback note; /* NULL: no notes */
    void *user;
    media_file_features *features; /* gets the input of the tower; may be NULL */
} media_file_options;

/* Reads, decodes and encodes one file or another source (source.h). Ctrl-C: BZ_ABORTED. Errors name
 * the file. */
bz_status media_file_encode(bz_encoder *encoder, bz_media_kind kind, const char *path,
                            const media_file_options *o, bz_media **media, bz_error *err);

/* Adds the option to a message of the library that requests an mmproj file. */
void name_mmproj_option(bz_error *err);

/* A media_file_callback that prints to stderr, in parentheses. */
void media_file_note(void *user, const char *text);

#endif
