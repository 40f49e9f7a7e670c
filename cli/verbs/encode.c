/* bezel encode: writes the rows of an encoded image or audio file, to compare with other
 * implementations. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/chat/media_file.h"
#include "cli/term.h"

static int write_floats(const char *path, const float *x, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(x, sizeof *x, n, f) == n;
    ok = f && fclose(f) == 0 && ok;
    if (!ok) {
        fprintf(stderr, "bezel: cannot write %s.\n", path);
    }
    return ok ? EXIT_OK : EXIT_FAILED;
}

static int encode_one(const cli_options *o, bz_model *model)
{
    const bz_encoder_options eo = {.size = sizeof eo,
                                   .budget = o->image_tokens,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .exact = !o->fast};
    const bool image = o->images[0] != NULL;
    bz_encoder *encoder = NULL;
    bz_media *media = NULL;
    bz_error err = {0};
    media_file_features features = {0};
    int code = EXIT_OK;
    const double start = cli_seconds();
    if (bz_encoder_new(&encoder, model, &eo, &err) != BZ_OK ||
        media_file_encode(encoder, image ? BZ_MEDIA_IMAGE : BZ_MEDIA_AUDIO,
                          image ? o->images[0] : o->sounds[0], !o->quiet, media_file_note, NULL,
                          o->features ? &features : NULL, &media, &err) != BZ_OK) {
        code = cli_error(&err);
    } else {
        uint32_t rows, width;
        const float *values = bz_media_rows(media, &rows, &width);
        const double seconds = cli_seconds() - start;
        code = write_floats(o->out, values, (size_t)rows * width);
        if (code == EXIT_OK && o->features) {
            code =
                write_floats(o->features, features.values, (size_t)features.rows * features.cols);
        }
        if (code == EXIT_OK && !o->quiet) {
            fprintf(stderr, "%u tokens of %u values", rows, width);
            if (o->features) {
                fprintf(stderr, "; features %u x %u", features.rows, features.cols);
            }
            fprintf(stderr, "; %.2f s\n", seconds);
        }
    }
    free(features.values);
    bz_media_free(media);
    bz_encoder_free(encoder);
    return code;
}

static int run(int argc, char **argv)
{
    cli_options o = {0};
    int code = cli_parse(&cli_encode_verb, argc, argv, "omkTqgVdfZ", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    const bool two = (o.images[0] && (o.images[1] || o.sounds[0])) || (o.sounds[0] && o.sounds[1]);
    if (two || (!o.images[0] && !o.sounds[0]) || !o.out) {
        return cli_usage_error("encode", "%s",
                               two     ? "give only one file."
                               : o.out ? "no input given; use '--image FILE' or '--audio FILE'."
                                       : "no output file given; use '-o OUT.f32'.");
    }
    bz_model *model = NULL;
    term_setup(false, o.quiet);
    interrupt_catch(true);
    if (cli_open(&o, &model, &code)) {
        code = encode_one(&o, model);
    }
    bz_model_free(model);
    return interrupt_finish(code);
}

const cli_verb cli_encode_verb = {
    "encode", run, "write the encoded rows of an image or audio file",
    "Usage: bezel encode MODEL --image FILE|--audio FILE -o OUT.f32 [options]\n\n"
    "Writes float32 [tokens][width], little-endian: the rows that represent the image "
    "(JPEG,\n"
    "PNG, WebP, GIF, PPM) or the audio (WAV, FLAC, OGG, MP3) in a prompt.\n\n"
    "      --image FILE       image file\n"
    "      --audio FILE       audio file\n"
    "  -o, --out FILE         output file\n"
    "      --features FILE    also write the input of the tower: one row per patch or "
    "mel frame\n"
    "      --image-tokens N   maximum tokens per image, 70 to 1120 (280)\n"
    "      --threads N        threads (does not change the result)\n"
    "      --kernels NAME     avx512, avx2, neon or plain\n"
    "      --device NAME      cpu or gpu\n"
    "      --fast             as in generation: a GPU may round to f16\n"
    "  -q, --quiet            no progress, no summary\n"
    "      --sandbox MODE     auto, on or off: confine the program to its files\n"
    "      --mmproj FILE      vision and audio file of a two-file model\n"};
