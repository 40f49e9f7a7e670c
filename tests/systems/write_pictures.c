/* Writes JPEG and WebP files of the kinds that decoders distinguish into a folder, for comparisons
 * between systems.
 *
 *     write_pictures FOLDER */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <webp/encode.h>

enum { W = 61, H = 43 }; /* no multiples of a block */

static uint8_t rgba[W * H * 4];

static void paint(void)
{
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            uint8_t *to = rgba + (y * W + x) * 4;
            to[0] = (uint8_t)(128 + 100 * sin(x * 0.11));
            to[1] = (uint8_t)(y * 5);
            to[2] = (uint8_t)(128 + 90 * cos((x + 2 * y) * 0.07));
            to[3] = (uint8_t)(x * 4);
        }
    }
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f) {
        fprintf(stderr, "%s cannot be written\n", path);
        exit(1);
    }
    return f;
}

typedef struct jpeg_kind {
    const char *name;
    J_COLOR_SPACE from, to;
    int channels, orientation;
    bool halved, progressive, restarts, profile;
} jpeg_kind;

static void write_jpeg(const char *folder, const jpeg_kind *k)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    FILE *f = create(folder, k->name);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = W;
    c.image_height = H;
    c.input_components = k->channels;
    c.in_color_space = k->from;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, k->to);
    jpeg_set_quality(&c, 92, TRUE);
    for (int i = 0; i < c.num_components; i++) {
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = i == 0 && k->halved ? 2 : 1;
    }
    if (k->progressive) {
        jpeg_simple_progression(&c);
    }
    c.restart_interval = k->restarts ? 3 : 0;
    jpeg_start_compress(&c, TRUE);
    if (k->orientation) {
        uint8_t exif[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        exif[24] = (uint8_t)k->orientation;
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof exif - 1);
    }
    if (k->profile) {
        const uint8_t profile[] = "ICC_PROFILE\0\1\1not a profile";
        jpeg_write_marker(&c, JPEG_APP0 + 2, profile, sizeof profile - 1);
    }
    for (int y = 0; y < H; y++) {
        uint8_t line[W * 4];
        for (int x = 0; x < W; x++) {
            memcpy(line + x * k->channels, rgba + (y * W + x) * 4, (size_t)k->channels);
        }
        JSAMPROW row = line;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    fclose(f);
}

static void write_webp(const char *folder, const char *name, size_t n, uint8_t *bytes)
{
    FILE *f = create(folder, name);
    if (n == 0 || fwrite(bytes, 1, n, f) != n) {
        fprintf(stderr, "%s cannot be written\n", name);
        exit(1);
    }
    fclose(f);
    WebPFree(bytes);
}

int main(int argc, char **argv)
{
    const jpeg_kind kinds[] = {
        {"color.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4},
        {"halved.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4, .halved = true},
        {"progressive.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4, .progressive = true},
        {"rgb.jpg", JCS_EXT_RGBA, JCS_RGB, .channels = 4},
        {"gray.jpg", JCS_GRAYSCALE, JCS_GRAYSCALE, .channels = 1},
        {"gray-progressive.jpg", JCS_GRAYSCALE, JCS_GRAYSCALE, .channels = 1, .progressive = true},
        {"turned.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4, .orientation = 6, .profile = true},
        {"mirrored.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4, .orientation = 5},
        {"restarts.jpg", JCS_EXT_RGBA, JCS_YCbCr, .channels = 4, .restarts = true},
        {"cmyk.jpg", JCS_CMYK, JCS_CMYK, .channels = 4},
        {"ycck.jpg", JCS_CMYK, JCS_YCCK, .channels = 4},
    };
    if (argc != 2) {
        fprintf(stderr, "write_pictures FOLDER\n");
        return 2;
    }
    paint();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        write_jpeg(argv[1], &kinds[i]);
    }
    uint8_t *bytes = NULL, rgb[W * H * 3];
    for (int i = 0; i < W * H; i++) {
        memcpy(rgb + 3 * i, rgba + 4 * i, 3);
    }
    size_t n = WebPEncodeRGB(rgb, W, H, W * 3, 80, &bytes);
    write_webp(argv[1], "lossy.webp", n, bytes);
    n = WebPEncodeRGBA(rgba, W, H, W * 4, 80, &bytes);
    write_webp(argv[1], "lossy-alpha.webp", n, bytes);
    n = WebPEncodeLosslessRGBA(rgba, W, H, W * 4, &bytes);
    write_webp(argv[1], "lossless-alpha.webp", n, bytes);
    return 0;
}
