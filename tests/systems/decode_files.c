/* Decodes files as the program does, for comparisons between systems.
 *
 *     decode_files LIST OUT [plain]
 *
 * LIST has a path on each line. OUT gets for each: "image WIDTH HEIGHT" and the pixels, "sound
 * FRAMES RATE CUT" and the samples, or "failed SENTENCE". plain, where the decoders are libraries:
 * the files are rewritten for a decoder of a system first, and then read by the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/media/system.h"

#ifndef _WIN32
bz_status os_decode_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                            bz_error *err)
{
    rgb_image got;
    (void)format;
    const bz_status status = decode_image(&got, bytes, n, err);
    if (status != BZ_OK) {
        return status;
    }
    const bool same = got.width == p->width && got.height == p->height;
    if (same) {
        memcpy(p->rgb, got.rgb, (size_t)got.width * got.height * 3);
    }
    image_free(&got);
    return same ? BZ_OK : system_picture_damaged(format, err);
}

bz_status os_decode_sound(bz_sound *s, sound_format format, const uint8_t *bytes, size_t n,
                          bz_error *err)
{
    (void)format;
    return decode_other_sound(s, bytes, n, err);
}
#endif

static bz_status decode_plain(rgb_image *p, const uint8_t *b, size_t n, bz_error *err)
{
    const picture_format format = n && b[0] == 0xFF  ? PICTURE_JPEG
                                  : n && b[0] == 'G' ? PICTURE_GIF
                                  : n && b[0] == 'R' ? PICTURE_WEBP
                                                     : PICTURE_PNG;
    return system_picture(p, format, b, n, err);
}

static uint8_t *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (!f) {
        fprintf(stderr, "%s cannot be opened\n", path);
        exit(1);
    }
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(*n + 1);
    if (!bytes || fread(bytes, 1, *n, f) != *n) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    fclose(f);
    return bytes;
}

static bool is_sound(const char *path)
{
    static const char *const kinds[] = {".wav", ".mp3", ".flac", ".ogg", ".aac", ".m4a"};
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(end, kinds[i], strlen(kinds[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void one(const char *path, bool plain, FILE *out)
{
    size_t n;
    uint8_t *bytes = read_whole(path, &n);
    bz_error err = {0};
    rgb_image p = {0};
    bz_sound s = {0};
    if (is_sound(path)) {
        const bz_status status =
            plain ? system_sound(&s, bytes, n, &err) : decode_sound(&s, bytes, n, &err);
        if (status == BZ_OK) {
            fprintf(out, "sound %zu %u %d\n", s.frames, s.rate, s.cut);
            fwrite(s.pcm, sizeof *s.pcm, s.frames, out);
        } else {
            fprintf(out, "failed %s\n", err.text);
        }
    } else {
        const bz_status status =
            plain ? decode_plain(&p, bytes, n, &err) : decode_image(&p, bytes, n, &err);
        if (status == BZ_OK) {
            fprintf(out, "image %u %u\n", p.width, p.height);
            fwrite(p.rgb, 3, (size_t)p.width * p.height, out);
        } else {
            fprintf(out, "failed %s\n", err.text);
        }
    }
    image_free(&p);
    free(s.pcm);
    free(bytes);
}

int main(int argc, char **argv)
{
    FILE *list = argc > 2 ? fopen(argv[1], "rb") : NULL,
         *out = argc > 2 ? fopen(argv[2], "wb") : NULL;
    char path[4096];
    if (!list || !out) {
        fprintf(stderr, "decode_files LIST OUT [plain]\n");
        return 2;
    }
    while (fgets(path, sizeof path, list)) {
        path[strcspn(path, "\r\n")] = 0;
        one(path, argc > 3 && strcmp(argv[3], "plain") == 0, out);
    }
    fclose(list);
    return fclose(out) != 0;
}
