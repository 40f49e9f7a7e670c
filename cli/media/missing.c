/* Stands in for the decoders whose library was not there when this program was built: with those of
 * the system, or a sentence. The build defines MISSING_X as the Debian package of such a library
 * (tools/libraries.sh). */
#include "cli/media/system.h"

#if defined(_WIN32) || defined(__APPLE__)
#define WAY_OUT(package, format) ", for lack of a library here; convert the file to " format "."
#define STAND_IN(function, output, format, package, call)                                          \
    bz_status function(output *o, const uint8_t *bytes, size_t n, bz_error *err)                   \
    {                                                                                              \
        return call;                                                                               \
    }
#else
#define WAY_OUT(package, format) ": install " package " and run make again."
#define STAND_IN(function, output, format, package, call)                                          \
    bz_status function(output *o, const uint8_t *bytes, size_t n, bz_error *err)                   \
    {                                                                                              \
        (void)o, (void)bytes, (void)n;                                                             \
        return bz_fail(err, BZ_BAD_FILE, "This build cannot read " format WAY_OUT(package, ""));   \
    }
#endif

#ifdef MISSING_JPEG
STAND_IN(decode_jpeg, rgb_image, "JPEG", MISSING_JPEG,
         system_picture(o, PICTURE_JPEG, bytes, n, err))
#endif
#ifdef MISSING_PNG
STAND_IN(decode_png, rgb_image, "PNG", MISSING_PNG, system_picture(o, PICTURE_PNG, bytes, n, err))
#endif
#ifdef MISSING_WEBP
STAND_IN(decode_webp, rgb_image, "WebP", MISSING_WEBP,
         system_picture(o, PICTURE_WEBP, bytes, n, err))
#endif
#ifdef MISSING_GIF
STAND_IN(decode_gif, rgb_image, "GIF", MISSING_GIF, system_picture(o, PICTURE_GIF, bytes, n, err))
#endif
#ifdef MISSING_SOUND
STAND_IN(decode_other_sound, bz_sound, "sound other than WAV", MISSING_SOUND,
         system_sound(o, bytes, n, err))
#endif
#ifdef MISSING_VIDEO
bz_status video_open(video_reader **v, const uint8_t *bytes, size_t n, video_info *info,
                     bz_error *err)
{
    (void)v, (void)bytes, (void)n, (void)info;
    return bz_fail(err, BZ_BAD_FILE,
                   "This build cannot read video" WAY_OUT(MISSING_VIDEO, "pictures"));
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
