/* os_decode_picture by ImageIO and Core Graphics. */
#include "cli/media/system.h"

#include <stdlib.h>
#include <string.h>

#include "cli/media/os_macos.h"

/* ---- declarations of CoreFoundation, CoreGraphics and ImageIO ------------------------------- */

typedef const void *cf_object;
typedef struct cg_space *cg_space;
typedef struct cg_image *cg_image;
typedef struct cg_context *cg_context;
typedef struct cg_rect {
    double x, y, width, height;
} cg_rect;

enum {
    STATUS_COMPLETE = 0,
    MODEL_GRAY = 0,
    MODEL_RGB = 1,
    MODEL_INDEXED = 5,
    NO_ALPHA = 0,          /* kCGImageAlphaNone */
    NO_ALPHA_BUT_ROOM = 5, /* kCGImageAlphaNoneSkipLast */
    NO_INTERPOLATION = 1,
};

cf_object CFDataCreate(cf_object allocator, const uint8_t *bytes, long n);
void CFRelease(cf_object);
cf_object CGImageSourceCreateWithData(cf_object data, cf_object options);
int32_t CGImageSourceGetStatusAtIndex(cf_object source, size_t index);
cg_image CGImageSourceCreateImageAtIndex(cf_object source, size_t index, cf_object options);
size_t CGImageGetWidth(cg_image);
size_t CGImageGetHeight(cg_image);
cg_space CGImageGetColorSpace(cg_image);
void CGImageRelease(cg_image);
int32_t CGColorSpaceGetModel(cg_space);
cg_space CGColorSpaceGetBaseColorSpace(cg_space);
cg_space CGColorSpaceCreateDeviceRGB(void);
void CGColorSpaceRelease(cg_space);
cg_context CGBitmapContextCreate(void *data, size_t width, size_t height, size_t bits,
                                 size_t row_bytes, cg_space, uint32_t kind);
void CGContextSetGrayFillColor(cg_context, double gray, double alpha);
void CGContextSetInterpolationQuality(cg_context, int32_t);
void CGContextFillRect(cg_context, cg_rect);
void CGContextDrawImage(cg_context, cg_rect, cg_image);
void CGContextRelease(cg_context);

#define OF_FOUNDATION(X)                                                                           \
    X(CFDataCreate)                                                                                \
    X(CFRelease)
#define OF_IMAGES(X)                                                                               \
    X(CGImageSourceCreateWithData)                                                                 \
    X(CGImageSourceGetStatusAtIndex)                                                               \
    X(CGImageSourceCreateImageAtIndex)
#define OF_GRAPHICS(X)                                                                             \
    X(CGImageGetWidth)                                                                             \
    X(CGImageGetHeight)                                                                            \
    X(CGImageGetColorSpace)                                                                        \
    X(CGImageRelease)                                                                              \
    X(CGColorSpaceGetModel)                                                                        \
    X(CGColorSpaceGetBaseColorSpace)                                                               \
    X(CGColorSpaceCreateDeviceRGB)                                                                 \
    X(CGColorSpaceRelease)                                                                         \
    X(CGBitmapContextCreate)                                                                       \
    X(CGContextSetGrayFillColor)                                                                   \
    X(CGContextSetInterpolationQuality)                                                            \
    X(CGContextFillRect)                                                                           \
    X(CGContextDrawImage)                                                                          \
    X(CGContextRelease)

typedef struct frameworks {
    OF_FOUNDATION(POINTER)
    OF_IMAGES(POINTER)
    OF_GRAPHICS(POINTER)
} frameworks;

static bz_status load(frameworks *f, bz_error *err)
{
    static const char *const paths[] = {FRAMEWORK("CoreFoundation"), FRAMEWORK("ImageIO"),
                                        FRAMEWORK("CoreGraphics")};
    bool complete = true;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        bz_os_library *library = framework_open(paths[i], err);
        if (!library) {
            return BZ_BAD_FILE;
        }
        switch (i) {
        case 0: OF_FOUNDATION(LOAD) break;
        case 1: OF_IMAGES(LOAD) break;
        case 2: OF_GRAPHICS(LOAD) break;
        }
        bz_os_library_close(library);
    }
    return framework_status(complete, err);
}

/* ---- pixels ------------------------------------------------------------------------------- */

/* A canvas in the color space of the image, so that drawing changes no color: of grays as one byte
 * for each pixel, of others as four. *each: how many. */
static cg_context new_canvas(const frameworks *f, const rgb_image *p, cg_image image,
                             uint8_t *pixels, size_t *each)
{
    cg_space own = f->CGImageGetColorSpace(image);
    int32_t model = own ? f->CGColorSpaceGetModel(own) : -1;
    if (model == MODEL_INDEXED) {
        own = f->CGColorSpaceGetBaseColorSpace(own);
        model = own ? f->CGColorSpaceGetModel(own) : -1;
    }
    cg_context to = NULL;
    *each = model == MODEL_GRAY ? 1 : 4;
    if (model == MODEL_GRAY || model == MODEL_RGB) {
        to = f->CGBitmapContextCreate(pixels, p->width, p->height, 8, p->width * *each, own,
                                      model == MODEL_GRAY ? NO_ALPHA : NO_ALPHA_BUT_ROOM);
    }
    if (!to) { /* inks, and spaces in which nothing can be drawn */
        cg_space device = f->CGColorSpaceCreateDeviceRGB();
        *each = 4;
        to = f->CGBitmapContextCreate(pixels, p->width, p->height, 8, p->width * *each, device,
                                      NO_ALPHA_BUT_ROOM);
        f->CGColorSpaceRelease(device);
    }
    return to;
}

/* Draws the image onto white. */
static bz_status draw(const frameworks *f, rgb_image *p, cg_image image, bz_error *err)
{
    const cg_rect all = {0, 0, p->width, p->height};
    const size_t n = (size_t)p->width * p->height;
    size_t each = 0;
    uint8_t *pixels = calloc(n, 4);
    cg_context to = pixels ? new_canvas(f, p, image, pixels, &each) : NULL;
    if (to) {
        f->CGContextSetGrayFillColor(to, 1, 1);
        f->CGContextFillRect(to, all);
        f->CGContextSetInterpolationQuality(to, NO_INTERPOLATION);
        f->CGContextDrawImage(to, all, image);
        f->CGContextRelease(to); /* what was drawn is in the pixels then */
        for (size_t i = 0; i < 3 * n; i++) {
            p->rgb[i] = pixels[each == 1 ? i / 3 : 4 * (i / 3) + i % 3];
        }
    }
    free(pixels);
    return to ? BZ_OK
              : bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image of %u x %u pixels.",
                        p->width, p->height);
}

bz_status os_decode_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                            bz_error *err)
{
    frameworks loaded, *f = &loaded;
    bz_status status = load(f, err);
    if (status != BZ_OK) {
        return status;
    }
    cf_object data = f->CFDataCreate(NULL, bytes, (long)n);
    cf_object source = data ? f->CGImageSourceCreateWithData(data, NULL) : NULL;
    cg_image image = source ? f->CGImageSourceCreateImageAtIndex(source, 0, NULL) : NULL;
    /* Of half a file there is half an image. */
    const bool whole = image && f->CGImageSourceGetStatusAtIndex(source, 0) == STATUS_COMPLETE &&
                       f->CGImageGetWidth(image) == p->width &&
                       f->CGImageGetHeight(image) == p->height;
    status = whole ? draw(f, p, image, err) : system_picture_damaged(format, err);
    f->CGImageRelease(image);
    if (source) {
        f->CFRelease(source);
    }
    if (data) {
        f->CFRelease(data);
    }
    return status;
}
