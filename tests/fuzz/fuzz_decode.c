/* Any bytes as an image or sound file: complete pixels and samples, or an error message. */
#include <stdlib.h>

#include "cli/media/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rgb_image p;
    bz_sound s;
    bz_error err = {0};
    unsigned sum = 0;
    if (decode_image(&p, data, size, &err) == BZ_OK) {
        for (size_t i = 0; i < (size_t)p.width * p.height * 3; i += 997) {
            sum += p.rgb[i];
        }
        sum += p.rgb[(size_t)p.width * p.height * 3 - 1];
        image_free(&p);
    } else if (!err.text[0] || p.rgb) {
        abort();
    }
    err = (bz_error){0};
    if (decode_sound(&s, data, size, &err) == BZ_OK) {
        sum += s.frames ? s.pcm[s.frames - 1] > 0 : 0;
        free(s.pcm);
    } else if (!err.text[0] || s.pcm) {
        abort();
    }
    (void)exif_orientation(data, size);
    return sum == 0xFFFFFFFFu;
}
