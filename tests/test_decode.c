/* Image and sound files: written here with the same libraries, read back, damaged, and refused with
 * one sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "cli/media/decode.h"
#include "support/check.h"

typedef struct bytes {
    uint8_t *p;
    size_t n, at;
} bytes;

static void put(bytes *b, const void *p, size_t n)
{
    if (b->at + n > b->n) {
        b->p = realloc(b->p, b->at + n);
        b->n = b->at + n;
    }
    memcpy(b->p + b->at, p, n);
    b->at += n;
}

static void must_fail(const uint8_t *p, size_t n, const char *why)
{
    rgb_image got;
    bz_error err = {0};
    const bz_status status = decode_image(&got, p, n, &err);
    CHECKF(status != BZ_OK && !got.rgb && strstr(err.text, why) && !strchr(err.text, '\n'), "%d %s",
           status, err.text);
    free(got.rgb);
}

/* A test image whose colors encode the position: red grows with x, green with y. */
enum { W = 40, H = 24 };
static void paint(uint8_t *rgb)
{
    for (int y = 0; y < H; y++) {
        for (int x = 0; x < W; x++) {
            const uint8_t c[3] = {(uint8_t)(x * 6), (uint8_t)(y * 10), 77};
            memcpy(rgb + (y * W + x) * 3, c, 3);
        }
    }
}

#if !defined(MISSING_PNG) || !defined(MISSING_WEBP)
/* What compositing on white must yield, in exact arithmetic. */
static void on_white(uint8_t *rgb, const uint8_t *rgba)
{
    for (int i = 0; i < W * H * 3; i++) {
        const double alpha = rgba[i / 3 * 4 + 3] / 255.0;
        rgb[i] = (uint8_t)lround(rgba[i / 3 * 4 + i % 3] * alpha + 255 * (1 - alpha));
    }
}
#endif

static int off_by(const rgb_image *p, const uint8_t *want)
{
    int worst = 0;
    for (int i = 0; i < W * H * 3; i++) {
        worst = abs(p->rgb[i] - want[i]) > worst ? abs(p->rgb[i] - want[i]) : worst;
    }
    return worst;
}

static void test_ppm(void)
{
    begin("ppm");
    uint8_t rgb[W * H * 3];
    bytes b = {0};
    rgb_image p;
    bz_error err = {0};
    paint(rgb);
    put(&b, "P6\n# a comment\n40 24\n255\n", 25);
    put(&b, rgb, sizeof rgb);
    CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == W && p.height == H &&
               off_by(&p, rgb) == 0,
           "%s", err.text);
    image_free(&p);
    must_fail(b.p, b.n - 1, "cut off");
    must_fail(b.p, 10, "header");
    must_fail((const uint8_t *)"P6 10000 10000 255\n", 19, "megapixels");
    must_fail((const uint8_t *)"P6 0 24 255\n", 12, "it is empty");
    must_fail((const uint8_t *)"hello", 5, "not an image that Bezel reads");
    must_fail((const uint8_t *)"", 0, "not an image that Bezel reads");
    free(b.p);
}

static void test_orientations(void)
{
    begin("the eight Exif orientations");
    /* Where the source's first pixel and its right neighbor end up, from the Exif standard. */
    const struct {
        uint32_t w, h, x, y, next_x, next_y;
    } want[9] = {{0},
                 {3, 2, 0, 0, 1, 0},
                 {3, 2, 2, 0, 1, 0},
                 {3, 2, 2, 1, 1, 1},
                 {3, 2, 0, 1, 1, 1},
                 {2, 3, 0, 0, 0, 1},
                 {2, 3, 1, 0, 1, 1},
                 {2, 3, 1, 2, 1, 1},
                 {2, 3, 0, 2, 0, 1}};
    for (int o = 1; o <= 8; o++) {
        rgb_image p = {calloc(6, 3), 3, 2};
        p.rgb[0] = 1; /* (0, 0) */
        p.rgb[3] = 2; /* (1, 0) */
        CHECK(image_orient(&p, o, NULL) == BZ_OK && p.width == want[o].w && p.height == want[o].h);
        CHECKF(p.rgb[(want[o].y * p.width + want[o].x) * 3] == 1, "orientation %d: first pixel", o);
        CHECKF(p.rgb[(want[o].next_y * p.width + want[o].next_x) * 3] == 2,
               "orientation %d: second pixel", o);
        image_free(&p);
    }
    begin("exif data");
    const uint8_t little[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
    const uint8_t big[] = "MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0";
    CHECK(exif_orientation(little, sizeof little - 1) == 6 &&
          exif_orientation(big, sizeof big - 1) == 8);
    for (size_t n = 0; n < sizeof little - 1; n++) {
        const int o = exif_orientation(little, n);
        CHECK(o == 1 || n >= 26);
    }
    CHECK(exif_orientation((const uint8_t *)"II*\0\xff\xff\xff\xff", 8) == 1);
}

/* ---- what this build cannot read ---- */

#if defined(_WIN32) || defined(__APPLE__)
#define REFUSAL(format, package, system) system /* a decoder of the system stands in */
#else
#define REFUSAL(format, package, system)                                                           \
    "cannot read " format ": install " package " and run make again"
#endif

/* ---- JPEG ---- */

#ifdef MISSING_JPEG
static void test_jpeg(void)
{
    begin("jpeg: not in this build");
    must_fail((const uint8_t *)"\xFF\xD8\xFF\xE0", 4,
              REFUSAL("JPEG", MISSING_JPEG, "The JPEG file is cut off"));
}
#else
#include <jpeglib.h>

static bytes make_jpeg(const uint8_t *pixels, int channels, J_COLOR_SPACE space, int orientation)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long n = 0;
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, &n);
    c.image_width = W;
    c.image_height = H;
    c.input_components = channels;
    c.in_color_space = space;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 98, TRUE);
    for (int i = 0; i < c.num_components; i++) {
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    }
    jpeg_start_compress(&c, TRUE);
    if (orientation) {
        uint8_t exif[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        exif[24] = (uint8_t)orientation;
        jpeg_write_marker(&c, JPEG_APP0 + 1, exif, sizeof exif - 1);
    }
    while (c.next_scanline < c.image_height) {
        JSAMPROW row =
            (JSAMPROW)(uintptr_t)(pixels + (size_t)c.next_scanline * W * (size_t)channels);
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return (bytes){out, n, n};
}

static void test_jpeg(void)
{
    begin("jpeg: color, rotated, cut off");
    uint8_t rgb[W * H * 3], gray[W * H], cmyk[W * H * 4];
    rgb_image p;
    bz_error err = {0};
    paint(rgb);
    bytes b = make_jpeg(rgb, 3, JCS_RGB, 0);
    CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == W && p.height == H, "%s",
           err.text);
    CHECKF(off_by(&p, rgb) < 12, "off by %d", off_by(&p, rgb));
    image_free(&p);
    must_fail(b.p, b.n - b.n / 8, "cut off");
    must_fail(b.p, b.n / 2, "damaged");
    must_fail(b.p, 3, "damaged");
    for (size_t n = 0; n + 1 < b.n; n += 13) { /* every length decodes or fails, without a crash */
        bz_error why = {0};
        if (decode_image(&p, b.p, n, &why) == BZ_OK) {
            image_free(&p);
        } else {
            CHECK(why.text[0]);
        }
    }
    free(b.p);
    b = make_jpeg(rgb, 3, JCS_RGB, 6); /* rotated: the left side is the top */
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == H && p.height == W);
    CHECKF(p.rgb[3 * (H - 1)] < 12 && p.rgb[3 * (H - 1) + 1] < 12, "corner %d %d",
           p.rgb[3 * (H - 1)], p.rgb[3 * (H - 1) + 1]);
    image_free(&p);
    free(b.p);

    begin("jpeg: gray and CMYK");
    for (int i = 0; i < W * H; i++) {
        gray[i] = (uint8_t)(i % W * 6);
        memcpy(cmyk + 4 * i, (const uint8_t[4]){0, 255, 255, 0}, 4); /* pure red in CMYK */
    }
    b = make_jpeg(gray, 1, JCS_GRAYSCALE, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK);
    CHECK(p.rgb[3 * 20] == p.rgb[3 * 20 + 1] && abs(p.rgb[3 * 20] - 120) < 8);
    image_free(&p);
    free(b.p);
    b = make_jpeg(cmyk, 4, JCS_CMYK, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK);
    /* libjpeg marks such files as Adobe's, whose values are inverted: cyan 0 is full ink */
    CHECKF(p.rgb[0] < 10 && p.rgb[1] < 10 && p.rgb[2] < 10, "%d %d %d", p.rgb[0], p.rgb[1],
           p.rgb[2]);
    image_free(&p);
    free(b.p);
    memset(cmyk, 255, sizeof cmyk);
    b = make_jpeg(cmyk, 4, JCS_CMYK, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.rgb[0] > 250 && p.rgb[1] > 250);
    image_free(&p);
    free(b.p);
}
#endif

/* ---- PNG ---- */

#ifdef MISSING_PNG
static void test_png(void)
{
    begin("png: not in this build");
    must_fail((const uint8_t *)"\x89PNG\r\n\x1a\n", 8,
              REFUSAL("PNG", MISSING_PNG, "The PNG file is damaged or cut off"));
}
#else
#include <png.h>

static void png_out(png_structp png, png_bytep p, size_t n)
{
    put(png_get_io_ptr(png), p, n);
}

static bytes make_png(const uint8_t *pixels, uint32_t w, uint32_t h, int depth, int type,
                      size_t row_bytes, int interlace)
{
    bytes b = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &b, png_out, NULL);
    png_set_IHDR(png, info, w, h, depth, type, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_set_gAMA(png, info, 1.0); /* color management is off: this must have no effect */
    if (type == PNG_COLOR_TYPE_PALETTE) {
        png_color colors[4] = {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {255, 0, 0}};
        png_set_PLTE(png, info, colors, 4);
    }
    png_write_info(png, info);
    png_bytep *rows = malloc(h * sizeof *rows);
    for (uint32_t y = 0; y < h; y++) {
        rows[y] = (png_bytep)(uintptr_t)(pixels + y * row_bytes);
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    free(rows);
    return b;
}

static void test_png(void)
{
    begin("png: color, alpha, 16-bit gray, palette, interlaced");
    uint8_t rgb[W * H * 3], rgba[W * H * 4], wide[W * H * 6], gray[W * H * 2], index[W * H];
    uint8_t white[W * H * 3];
    rgb_image p;
    bz_error err = {0};
    paint(rgb);
    for (int i = 0; i < W * H; i++) {
        memcpy(rgba + 4 * i, rgb + 3 * i, 3);
        rgba[4 * i + 3] = (uint8_t)(i * 7);
        for (int c = 0; c < 3; c++) {
            wide[6 * i + 2 * c] = rgb[3 * i + c];
            wide[6 * i + 2 * c + 1] = 0xEE;
        }
        gray[2 * i] = (uint8_t)(i % 256);
        gray[2 * i + 1] = 0x12;
        index[i] = (uint8_t)(i % 4);
    }
    on_white(white, rgba);
    const struct {
        const uint8_t *pixels, *want;
        int depth, type;
        size_t row;
        int interlace;
    } kinds[] = {{rgb, rgb, 8, PNG_COLOR_TYPE_RGB, W * 3, 0},
                 {rgb, rgb, 8, PNG_COLOR_TYPE_RGB, W * 3, 1},
                 {rgba, white, 8, PNG_COLOR_TYPE_RGBA, W * 4, 0},
                 {wide, rgb, 16, PNG_COLOR_TYPE_RGB, W * 6, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bytes b = make_png(kinds[k].pixels, W, H, kinds[k].depth, kinds[k].type, kinds[k].row,
                           kinds[k].interlace);
        CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK && off_by(&p, kinds[k].want) == 0,
               "kind %zu: %s", k, err.text);
        image_free(&p);
        must_fail(b.p, b.n / 2, "cut off");
        b.p[b.n / 2] ^= 0x55;
        must_fail(b.p, b.n, "damaged");
        free(b.p);
    }
    bytes b = make_png(gray, W, H, 16, PNG_COLOR_TYPE_GRAY, W * 2, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.rgb[3 * 200] == 200 &&
          p.rgb[3 * 200 + 2] == 200);
    image_free(&p);
    free(b.p);
    b = make_png(index, W, H, 8, PNG_COLOR_TYPE_PALETTE, W, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.rgb[9] == 255 && p.rgb[10] == 0 &&
          p.rgb[3] == 40);
    image_free(&p);
    free(b.p);
    begin("png: 100 megapixels, and one row of 10,000");
    static uint8_t row[10000 * 3];
    b = make_png(row, 10000, 1, 8, PNG_COLOR_TYPE_RGB, sizeof row, 0);
    CHECK(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == 10000 && p.height == 1);
    image_free(&p);
    b.p[20] = b.p[21] = 0; /* the height becomes 10,000: refused because of its size or its
                              checksum, before anything is allocated */
    b.p[22] = 0x27;
    b.p[23] = 0x10;
    bz_error why = {0};
    CHECK(decode_image(&p, b.p, b.n, &why) != BZ_OK && why.text[0]);
    free(b.p);
}
#endif

/* ---- WebP ---- */

#ifdef MISSING_WEBP
static void test_webp(void)
{
    begin("webp: not in this build");
    must_fail((const uint8_t *)"RIFF\0\0\0\0WEBP", 12,
              REFUSAL("WebP", MISSING_WEBP, "The WebP file is damaged or cut off"));
}
#else
#include <webp/encode.h>

static void put_number(bytes *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        put(b, &(uint8_t){(uint8_t)(v >> 8 * i)}, 1);
    }
}

static void put_chunk(bytes *b, const char *name, uint32_t size)
{
    put(b, name, 4);
    put_number(b, size, 4);
}

enum { CANVAS_W = 100, CANVAS_H = 60, WEBP_CANVAS = 24 }; /* where a file has the canvas' sizes */

/* A file of one frame on a larger canvas. still: the frame as a file of its own; filler: bytes
 * before it. */
static void put_animation(bytes *b, const uint8_t *still, size_t n, uint32_t filler)
{
    enum { RIFF = 12, ANIMATED_WITH_ALPHA = 0x12, FRAME = 16 };
    put_chunk(b, "RIFF", 0);
    put(b, "WEBP", 4);
    put_chunk(b, "VP8X", 10);
    put_number(b, ANIMATED_WITH_ALPHA, 4);
    put_number(b, CANVAS_W - 1, 3);
    put_number(b, CANVAS_H - 1, 3);
    put_chunk(b, "ANIM", 6);
    put_number(b, 0, 6);
    put_chunk(b, "JUNK", filler);
    for (uint32_t i = 0; i < filler; i++) {
        put(b, "", 1);
    }
    put_chunk(b, "ANMF", FRAME + (uint32_t)n - RIFF);
    put_number(b, 0, 6); /* left, top */
    put_number(b, W - 1, 3);
    put_number(b, H - 1, 3);
    put_number(b, 0, 4);
    put(b, still + RIFF, n - RIFF);
    const uint32_t size = (uint32_t)b->n - 8;
    b->at = 4;
    put_number(b, size, 4);
}

#if !defined(_WIN32)
static struct {
    uint8_t *header, *rest; /* the rest begins at a page */
    size_t size;            /* of the rest */
} changing;

/* The canvas shrinks when something after the header is read. */
static void on_read(int number, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    (void)context;
    if (at < changing.rest || at >= changing.rest + changing.size ||
        mprotect(changing.rest, changing.size, PROT_READ) != 0) {
        signal(number, SIG_DFL);
        return;
    }
    changing.header[WEBP_CANVAS] = W - 1;
    changing.header[WEBP_CANVAS + 3] = H - 1;
}

static void test_changing_webp(const uint8_t *still, size_t n)
{
    begin("webp: a file that another program changes");
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction read = {.sa_sigaction = on_read, .sa_flags = SA_SIGINFO}, old[2];
    bytes b = {0};
    put_animation(&b, still, n, (uint32_t)page);
    const size_t room = (b.n / page + 1) * page;
    uint8_t *file = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(file != MAP_FAILED);
    memcpy(file, b.p, b.n);
    changing.header = file;
    changing.rest = file + page;
    changing.size = room - page;
    sigaction(SIGSEGV, &read, &old[0]);
    sigaction(SIGBUS, &read, &old[1]); /* on macOS */
    CHECK(mprotect(changing.rest, changing.size, PROT_NONE) == 0);
    must_fail(file, b.n, "damaged");
    CHECK(file[WEBP_CANVAS] == W - 1);
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGBUS, &old[1], NULL);
    munmap(file, room);
    free(b.p);
}
#endif

static void test_animation(const uint8_t *still, size_t n, const uint8_t *white)
{
    begin("webp: the first frame of an animation, on its canvas");
    bytes b = {0};
    rgb_image p;
    bz_error err = {0};
    put_animation(&b, still, n, 2);
    if (CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK, "%s", err.text)) {
        CHECK(p.width == CANVAS_W && p.height == CANVAS_H);
        for (int y = 0; y < CANVAS_H; y++) {
            for (int x = 0; x < CANVAS_W * 3; x++) {
                const bool inside = x < W * 3 && y < H;
                CHECK(p.rgb[y * CANVAS_W * 3 + x] == (inside ? white[y * W * 3 + x] : 255));
            }
        }
        image_free(&p);
    }
    must_fail(b.p, b.n - 60, "cut off");
    free(b.p);
}

static void test_webp(void)
{
    begin("webp");
    uint8_t rgb[W * H * 3], rgba[W * H * 4], white[W * H * 3], *out = NULL;
    rgb_image p;
    bz_error err = {0};
    paint(rgb);
    size_t n = WebPEncodeLosslessRGB(rgb, W, H, W * 3, &out);
    CHECKF(decode_image(&p, out, n, &err) == BZ_OK && off_by(&p, rgb) == 0, "%s", err.text);
    image_free(&p);
    must_fail(out, n / 2, "cut off");
    must_fail(out, 20, "cut off");
    WebPFree(out);
    for (int i = 0; i < W * H; i++) {
        memcpy(rgba + 4 * i, rgb + 3 * i, 3);
        rgba[4 * i + 3] = i % 3 ? 128 : 0;
    }
    on_white(white, rgba);
    n = WebPEncodeLosslessRGBA(rgba, W, H, W * 4, &out);
    CHECKF(decode_image(&p, out, n, &err) == BZ_OK && off_by(&p, white) == 0, "alpha: off by %d",
           p.rgb ? off_by(&p, white) : -1);
    image_free(&p);
    test_animation(out, n, white);
#if !defined(_WIN32)
    test_changing_webp(out, n);
#endif
    WebPFree(out);
}
#endif

/* ---- GIF ---- */

#ifdef MISSING_GIF
static void test_gif(void)
{
    begin("gif: not in this build");
    must_fail((const uint8_t *)"GIF89a", 6,
              REFUSAL("GIF", MISSING_GIF, "The GIF file is damaged or cut off"));
}
#else
#include <gif_lib.h>

static int gif_out(GifFileType *g, const GifByteType *p, int n)
{
    put(g->UserData, p, (size_t)n);
    return n;
}

static void test_transparent_gif(void)
{
    begin("gif: the transparent color becomes white");
    bytes b = {0};
    int error;
    GifColorType colors[2] = {{9, 8, 7}, {250, 0, 0}};
    ColorMapObject *map = GifMakeMapObject(2, colors);
    GifFileType *g = EGifOpen(&b, gif_out, &error);
    const GraphicsControlBlock control = {.TransparentColor = 0};
    GifByteType extension[4];
    EGifPutScreenDesc(g, 3, 1, 1, 1, map);
    EGifPutExtension(g, GRAPHICS_EXT_FUNC_CODE, (int)EGifGCBToExtension(&control, extension),
                     extension);
    EGifPutImageDesc(g, 0, 0, 2, 1, false, NULL); /* the canvas is one pixel wider */
    EGifPutLine(g, (GifPixelType[2]){0, 1}, 2);
    EGifCloseFile(g, &error);
    GifFreeMapObject(map);
    rgb_image p;
    bz_error err = {0};
    CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == 3 && p.height == 1, "%s",
           err.text);
    const uint8_t want[9] = {255, 255, 255, 250, 0, 0, 255, 255, 255};
    CHECK(p.rgb && memcmp(p.rgb, want, sizeof want) == 0);
    image_free(&p);
    free(b.p);
}

static void test_gif(void)
{
    test_transparent_gif();
    begin("gif: the first frame, on its canvas");
    bytes b = {0};
    int error;
    GifColorType colors[4] = {{0, 0, 0}, {250, 0, 0}, {0, 250, 0}, {0, 0, 250}};
    ColorMapObject *map = GifMakeMapObject(4, colors);
    GifFileType *g = EGifOpen(&b, gif_out, &error);
    GifPixelType line[10];
    EGifPutScreenDesc(g, 10, 8, 2, 3, map); /* the background is blue */
    for (int frame = 0; frame < 2; frame++) {
        EGifPutImageDesc(g, 2, 1, 6, 4, frame == 0, NULL); /* the first is interlaced */
        memset(line, frame + 1, sizeof line);
        for (int y = 0; y < 4; y++) {
            EGifPutLine(g, line, 6);
        }
    }
    EGifCloseFile(g, &error);
    GifFreeMapObject(map);
    rgb_image p;
    bz_error err = {0};
    CHECKF(decode_image(&p, b.p, b.n, &err) == BZ_OK && p.width == 10 && p.height == 8, "%s",
           err.text);
    if (p.rgb) {
        CHECK(p.rgb[2] == 250 && p.rgb[0] == 0); /* outside the frame */
        CHECK(p.rgb[(1 * 10 + 2) * 3] == 250 && p.rgb[(4 * 10 + 7) * 3] == 250); /* inside */
    }
    image_free(&p);
    must_fail(b.p, 20, "cut off");
    must_fail(b.p, 36, "cut off");
    free(b.p);
}
#endif

/* ---- sound ---- */

#ifdef MISSING_SOUND
static void test_sound(void)
{
    begin("sound other than WAV: not in this build");
    bz_sound s;
    bz_error err = {0};
    CHECKF(decode_sound(&s, (const uint8_t *)"fLaC", 4, &err) == BZ_BAD_FILE &&
               strstr(err.text, REFUSAL("sound other than WAV", MISSING_SOUND, "the FLAC file")),
           "%s", err.text);
}
#else
#include <sndfile.h>

static sf_count_t memory_length(void *user)
{
    return (sf_count_t)((bytes *)user)->n;
}
static sf_count_t memory_seek(sf_count_t to, int whence, void *user)
{
    bytes *b = user;
    b->at = (size_t)(whence == SEEK_CUR   ? (sf_count_t)b->at + to
                     : whence == SEEK_END ? (sf_count_t)b->n + to
                                          : to);
    return (sf_count_t)b->at;
}
static sf_count_t memory_read(void *to, sf_count_t n, void *user)
{
    bytes *b = user;
    n = n < (sf_count_t)(b->n - b->at) ? n : (sf_count_t)(b->n - b->at);
    memcpy(to, b->p + b->at, (size_t)n);
    b->at += (size_t)n;
    return n;
}
static sf_count_t memory_write(const void *from, sf_count_t n, void *user)
{
    put(user, from, (size_t)n);
    return n;
}
static sf_count_t memory_tell(void *user)
{
    return (sf_count_t)((bytes *)user)->at;
}

/* Its header has no length, so only the pages show where it ends. Noise fills many of them. */
static void test_cut_ogg(void)
{
    begin("sound: an ogg that is cut off");
    enum { FRAMES = 3 * 22050 };
    static float noise[FRAMES];
    uint32_t random = 1;
    for (int i = 0; i < FRAMES; i++) {
        random = random * 1664525u + 1013904223u;
        noise[i] = (float)(random >> 8) / (float)(1 << 24) - 0.5f;
    }
    SF_VIRTUAL_IO io = {memory_length, memory_seek, memory_read, memory_write, memory_tell};
    SF_INFO info = {.samplerate = 22050, .channels = 1, .format = SF_FORMAT_OGG | SF_FORMAT_VORBIS};
    bytes b = {0};
    SNDFILE *f = sf_open_virtual(&io, SFM_WRITE, &info, &b);
    if (!CHECKF(f, "%s", sf_strerror(NULL))) {
        return;
    }
    CHECK(sf_writef_float(f, noise, FRAMES) == FRAMES);
    sf_close(f);
    for (size_t less = 0; less < b.n / 2; less = 2 * less + 5) {
        bz_sound s;
        bz_error err = {0};
        CHECKF(decode_sound(&s, b.p, b.n - less, &err) == BZ_OK && s.cut == (less > 0),
               "%zu of %zu: %s", less, b.n, err.text);
        free(s.pcm);
    }
    free(b.p);
}

static void test_sound(void)
{
    const struct {
        const char *name;
        int format;
        double bound;
    } kinds[] = {{"wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1e-4},
                 {"flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1e-4},
                 {"ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 0.1},
                 {"mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 0.1}};
    enum { FRAMES = 22050 };
    static float stereo[FRAMES * 2];
    for (int i = 0; i < FRAMES; i++) {
        stereo[2 * i] = (float)(0.5 * sin(i * 0.06));
        stereo[2 * i + 1] = 0.0f; /* the mean is half of the left */
    }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        begin("sound: %s", kinds[k].name);
        SF_VIRTUAL_IO io = {memory_length, memory_seek, memory_read, memory_write, memory_tell};
        SF_INFO info = {.samplerate = 22050, .channels = 2, .format = kinds[k].format};
        bytes b = {0};
        SNDFILE *f = sf_open_virtual(&io, SFM_WRITE, &info, &b);
        if (!CHECKF(f, "%s", sf_strerror(NULL))) {
            continue;
        }
        CHECK(sf_writef_float(f, stereo, FRAMES) == FRAMES);
        sf_close(f);
        bz_sound s;
        bz_error err = {0};
        CHECKF(decode_sound(&s, b.p, b.n, &err) == BZ_OK && s.rate == 22050 && s.frames >= FRAMES &&
                   s.frames < FRAMES + 4000 && !s.cut,
               "%zu frames of %u: %s", s.frames, s.rate, err.text);
        double sum = 0;
        for (size_t i = 0; s.pcm && i < s.frames; i++) {
            sum += (double)s.pcm[i] * (double)s.pcm[i];
        }
        const double level = sqrt(sum / FRAMES); /* of a sine of 0.25 */
        CHECKF(fabs(level - 0.25 / sqrt(2.0)) < (kinds[k].bound < 0.01 ? 1e-3 : 0.02), "level %g",
               level);
        free(s.pcm);
        if (decode_sound(&s, b.p, b.n / 2, &err) ==
            BZ_OK) { /* half a clip decodes to half, or fails */
            CHECK(s.frames < FRAMES && s.cut);
            free(s.pcm);
        } else {
            CHECK(err.text[0] && !s.pcm);
        }
        CHECK(decode_sound(&s, b.p, 30 < b.n ? 30 : b.n, &err) != BZ_OK && !s.pcm && err.text[0]);
        free(b.p);
    }
    test_cut_ogg();
    begin("sound: not a sound file");
    bz_sound s;
    bz_error err = {0};
    CHECK(decode_sound(&s, (const uint8_t *)"hello", 5, &err) == BZ_BAD_FILE &&
          strstr(err.text, "FLAC"));
    CHECK(decode_sound(&s, (const uint8_t *)"", 0, &err) == BZ_BAD_FILE);
}

#endif

int main(void)
{
    test_ppm();
    test_orientations();
    test_jpeg();
    test_png();
    test_webp();
    test_gif();
    test_sound();
    return finish();
}
