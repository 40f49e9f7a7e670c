/* Stands in for the decoders whose library was not there when this program was built. The build
 * defines MISSING_X as the Debian package of such a library (tools/libraries.sh). */
#include "cli/media/decode.h"

#define STUB(function, output, format, package)                                                    \
    bz_status function(output *o, const uint8_t *bytes, size_t n, bz_error *err)                   \
    {                                                                                              \
        (void)o, (void)bytes, (void)n;                                                             \
        return bz_fail(err, BZ_BAD_FILE,                                                           \
                       "This build cannot read " format ": install " package                       \
                       " and run make again.");                                                    \
    }

#ifdef MISSING_JPEG
STUB(decode_jpeg, rgb_image, "JPEG", MISSING_JPEG)
#endif
#ifdef MISSING_PNG
STUB(decode_png, rgb_image, "PNG", MISSING_PNG)
#endif
#ifdef MISSING_WEBP
STUB(decode_webp, rgb_image, "WebP", MISSING_WEBP)
#endif
#ifdef MISSING_GIF
STUB(decode_gif, rgb_image, "GIF", MISSING_GIF)
#endif
#ifdef MISSING_VIDEO
bz_status video_open(video_reader **v, const uint8_t *bytes, size_t n, video_info *info,
                     bz_error *err)
{
    (void)v, (void)bytes, (void)n, (void)info;
    return bz_fail(err, BZ_BAD_FILE,
                   "This build cannot read video: install " MISSING_VIDEO " and run make again.");
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
STUB(decode_other_sound, bz_sound, "sound other than WAV", MISSING_SOUND)
#endif
