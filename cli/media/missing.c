/* Stands in for the decoders whose library was not there when this program was built. The build
 * defines MISSING_X as the Debian package of such a library (tools/libraries.sh). */
#include "cli/media/decode.h"

/* The way out: on Linux a package, elsewhere a format that needs no library. */
#ifdef __linux__
#define WAY_OUT(package, format) ": install " package " and run make again."
#else
#define WAY_OUT(package, format) ", for lack of a library here; convert the file to " format "."
#endif

#define STUB(function, output, format, package, instead)                                           \
    bz_status function(output *o, const uint8_t *bytes, size_t n, bz_error *err)                   \
    {                                                                                              \
        (void)o, (void)bytes, (void)n;                                                             \
        return bz_fail(err, BZ_BAD_FILE,                                                           \
                       "This build cannot read " format WAY_OUT(package, instead));                \
    }

#ifdef MISSING_JPEG
STUB(decode_jpeg, rgb_image, "JPEG", MISSING_JPEG, "PPM")
#endif
#ifdef MISSING_PNG
STUB(decode_png, rgb_image, "PNG", MISSING_PNG, "PPM")
#endif
#ifdef MISSING_WEBP
STUB(decode_webp, rgb_image, "WebP", MISSING_WEBP, "PPM")
#endif
#ifdef MISSING_GIF
STUB(decode_gif, rgb_image, "GIF", MISSING_GIF, "PPM")
#endif
#ifdef MISSING_VIDEO
bz_status video_open(video_reader **v, const uint8_t *bytes, size_t n, video_info *info,
                     bz_error *err)
{
    (void)v, (void)bytes, (void)n, (void)info;
    return bz_fail(err, BZ_BAD_FILE,
                   "This build cannot read video" WAY_OUT(MISSING_VIDEO, "pictures, PPM"));
}

bz_status video_frame(video_reader *v, uint64_t index, rgb_image *p, bz_error *err)
{
    (void)v, (void)index, (void)p;
    return bz_fail(err, BZ_BAD_FILE, "There is no video.");
}

void video_close(video_reader *v)
{
    (void)v;
}
#endif
#ifdef MISSING_SOUND
STUB(decode_other_sound, bz_sound, "sound other than WAV", MISSING_SOUND, "WAV")
#endif
