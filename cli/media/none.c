/* A build without the libraries. */
#include "cli/media/decode.h"

static bz_status missing(const char *what, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE,
                   "This build of bezel was made without a library for %s; convert it to %s first.",
                   what, what[0] == 's' ? "WAV" : "PPM");
}

bz_status decode_jpeg(picture *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    (void)p, (void)bytes, (void)n;
    return missing("JPEG", err);
}

bz_status decode_png(picture *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    (void)p, (void)bytes, (void)n;
    return missing("PNG", err);
}

bz_status decode_webp(picture *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    (void)p, (void)bytes, (void)n;
    return missing("WebP", err);
}

bz_status decode_gif(picture *p, const uint8_t *bytes, size_t n, bz_error *err)
{
    (void)p, (void)bytes, (void)n;
    return missing("GIF", err);
}

bz_status decode_packaged_sound(bz_sound *s, const uint8_t *bytes, size_t n, bz_error *err)
{
    (void)s, (void)bytes, (void)n;
    return missing("sound other than WAV", err);
}
