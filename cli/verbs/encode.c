/* bezel encode: writes the rows of an encoded image, audio or video file, to compare with other
 * implementations. */
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/chat/media_file.h"
#include "cli/term.h"

static int report(const char *path, bool written)
{
    if (!written) {
        fprintf(stderr, "bezel: cannot write %s.\n", path);
    }
    return written ? EXIT_OK : EXIT_FAILED;
}

static bool write_rows(FILE *f, const bz_media *m)
{
    uint32_t rows, width;
    const float *values = bz_media_rows(m, &rows, &width);
    const size_t n = (size_t)rows * width;
    return fwrite(values, sizeof *values, n, f) == n;
}

/* The rows of an image or audio, or of all frames of a video. */
static int write_media(const char *path, const bz_media *m)
{
    FILE *f = bz_os_stream(path, "wb");
    bool ok = f != NULL;
    if (bz_media_get_kind(m) != BZ_MEDIA_VIDEO) {
        ok = ok && write_rows(f, m);
    } else {
        for (uint32_t i = 0; i < bz_media_pieces(m) && ok; i++) {
            ok = write_rows(f, bz_video_frame(m, i, NULL));
        }
    }
    return report(path, f && fclose(f) == 0 && ok);
}

static int write_features(const char *path, const media_file_features *x)
{
    const size_t n = (size_t)x->rows * x->cols;
    FILE *f = bz_os_stream(path, "wb");
    const bool ok = f && fwrite(x->values, sizeof *x->values, n, f) == n;
    return report(path, f && fclose(f) == 0 && ok);
}

static int encode_one(const cli_options *o, bz_model *model)
{
    const bz_encoder_options eo = {.size = sizeof eo,
                                   .budget = o->image_tokens,
                                   .frame_budget = o->video_tokens,
                                   .threads = o->threads,
                                   .kernels = o->kernels,
                                   .exact = !o->fast};
    const bz_media_kind kind = o->images[0]   ? BZ_MEDIA_IMAGE
                               : o->sounds[0] ? BZ_MEDIA_AUDIO
                                              : BZ_MEDIA_VIDEO;
    const char *path = o->images[0] ? o->images[0] : o->sounds[0] ? o->sounds[0] : o->videos[0];
    bz_encoder *encoder = NULL;
    bz_media *media = NULL;
    bz_error err = {0};
    media_file_features features = {0};
    int code = EXIT_OK;
    const double start = cli_seconds();
    const media_file_options fo = {.progress = !o->quiet,
                                   .video_frames = o->video_frames,
                                   .note = media_file_note,
                                   .features = o->features ? &features : NULL};
    if (bz_encoder_new(&encoder, model, &eo, &err) != BZ_OK ||
        media_file_encode(encoder, kind, path, &fo, &media, &err) != BZ_OK) {
        code = cli_error(&err);
    } else {
        uint32_t rows, width;
        bz_media_rows(media, &rows, &width);
        const double seconds = cli_seconds() - start;
        code = write_media(o->out, media);
        if (code == EXIT_OK && o->features) {
            code = write_features(o->features, &features);
        }
        if (code == EXIT_OK && !o->quiet) {
            if (kind == BZ_MEDIA_VIDEO) {
                fprintf(stderr, "%u frames, ", bz_media_pieces(media));
            }
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
    int code = cli_parse(&cli_encode_verb, argc, argv, "omkTqgYVdfZ", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    const int files = !!o.images[0] + !!o.sounds[0] + !!o.videos[0];
    const bool more = files > 1 || (o.images[0] && o.images[1]) || (o.sounds[0] && o.sounds[1]) ||
                      (o.videos[0] && o.videos[1]);
    if (more || files == 0 || !o.out) {
        return cli_usage_error("encode", "%s",
                               more    ? "give only one file."
                               : o.out ? "no input given; use '--image FILE', '--audio FILE' or "
                                         "'--video FILE'."
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
    "encode", run, "write the encoded rows of an image, audio or video file",
    "Usage: bezel encode MODEL --image FILE|--audio FILE|--video FILE -o OUT.f32 [options]\n\n"
    "Writes float32 [tokens][width], little-endian: the rows that represent the image "
    "(JPEG,\n"
    "PNG, WebP, GIF, PPM), the audio (WAV, FLAC, OGG, MP3) or the frames of the video in a "
    "prompt.\n\n"
    "      --image FILE       image file\n"
    "      --audio FILE       audio file\n"
    "      --video FILE       video file\n"
    "  -o, --out FILE         output file\n"
    "      --features FILE    also write the input of the tower: one row per patch or "
    "mel frame\n"
    "      --image-tokens N   maximum tokens per image, 70 to 1120 (280)\n"
    "      --video-frames N   maximum frames of a video, evenly chosen (32)\n"
    "      --video-tokens N   maximum tokens per frame, 70 to 1120 (70)\n"
    "      --threads N        threads (does not change the result)\n"
    "      --kernels NAME     amx, avx512bf16, avx512, avxvnni, avx2, i8mm, dotprod, neon or "
    "plain\n"
    "      --device NAME      cpu (default), gpu or auto\n"
    "      --fast             as in generation: a GPU may round to f16\n"
    "  -q, --quiet            no progress, no summary\n"
    "      --sandbox MODE     auto, on or off: confine the program to its files\n"
    "      --mmproj FILE      vision and audio file of a two-file model\n"};
