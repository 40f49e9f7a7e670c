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
STUB(decode_jpeg, picture, "JPEG", MISSING_JPEG)
#endif
#ifdef MISSING_PNG
STUB(decode_png, picture, "PNG", MISSING_PNG)
#endif
#ifdef MISSING_WEBP
STUB(decode_webp, picture, "WebP", MISSING_WEBP)
#endif
#ifdef MISSING_GIF
STUB(decode_gif, picture, "GIF", MISSING_GIF)
#endif
#ifdef MISSING_SOUND
STUB(decode_packaged_sound, bz_sound, "sound other than WAV", MISSING_SOUND)
#endif
