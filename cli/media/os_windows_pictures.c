/* os_decode_picture by the Windows Imaging Component. */
#include "cli/media/system.h"

#include <stdlib.h>

#define INITGUID
#define COBJMACROS
#include "cli/media/os_windows.h"
#include <wincodec.h>

/* Windows 10 has a decoder of WebP since 2018. */
DEFINE_GUID(FORMAT_WEBP, 0xE094B0E2, 0x67F2, 0x45B3, 0xB0, 0xEA, 0x11, 0x53, 0x37, 0xCA, 0x7C,
            0xF3);

typedef struct wic {
    com_library com;
    IWICImagingFactory *factory;
    IWICStream *stream;
    IWICBitmapDecoder *decoder;
    IWICBitmapFrameDecode *frame;
    IWICFormatConverter *converter;
} wic;

#define RELEASE(type, object)                                                                      \
    if (object) {                                                                                  \
        type##_Release(object);                                                                    \
    }

static void close_wic(wic *w)
{
    RELEASE(IWICFormatConverter, w->converter)
    RELEASE(IWICBitmapFrameDecode, w->frame)
    RELEASE(IWICBitmapDecoder, w->decoder)
    RELEASE(IWICStream, w->stream)
    RELEASE(IWICImagingFactory, w->factory)
    com_close(&w->com);
}

static const GUID *container(picture_format format)
{
    return format == PICTURE_JPEG   ? &GUID_ContainerFormatJpeg
           : format == PICTURE_PNG  ? &GUID_ContainerFormatPng
           : format == PICTURE_WEBP ? &FORMAT_WEBP
                                    : &GUID_ContainerFormatGif;
}

static bz_status no_decoder(picture_format format, bz_error *err)
{
    return bz_fail(err, BZ_BAD_FILE, "This Windows has no decoder of %s%s; convert the file to %s.",
                   picture_names[format],
                   format == PICTURE_WEBP ? " (WebP Image Extensions in the Microsoft Store)" : "",
                   format == PICTURE_PNG ? "PPM" : "PNG");
}

/* The decoder of the format, and no other: which ones are installed is not for the file to use. */
static bz_status open_wic(wic *w, picture_format format, const uint8_t *bytes, size_t n,
                          bz_error *err)
{
    const bz_status status = com_open(&w->com, err);
    if (status != BZ_OK) {
        return status;
    }
    if (FAILED(w->com.create(&CLSID_WICImagingFactory, NULL, CLSCTX_INPROC_SERVER,
                             &IID_IWICImagingFactory, (void **)&w->factory))) {
        return no_decoder(format, err);
    }
    if (n > UINT32_MAX || FAILED(IWICImagingFactory_CreateStream(w->factory, &w->stream)) ||
        FAILED(IWICStream_InitializeFromMemory(w->stream, (BYTE *)(uintptr_t)bytes, (DWORD)n))) {
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to read a %s.", picture_names[format]);
    }
    if (FAILED(IWICImagingFactory_CreateDecoder(w->factory, container(format),
                                                &GUID_VendorMicrosoft, &w->decoder))) {
        return no_decoder(format, err);
    }
    const bool ok = SUCCEEDED(IWICBitmapDecoder_Initialize(w->decoder, (IStream *)w->stream,
                                                           WICDecodeMetadataCacheOnDemand)) &&
                    SUCCEEDED(IWICBitmapDecoder_GetFrame(w->decoder, 0, &w->frame));
    return ok ? BZ_OK : system_picture_damaged(format, err);
}

/* ---- kinds of pixels ---------------------------------------------------------------- */

typedef enum pixel_kind { BGRA, CMYK, GRAY_16, RGB_16, RGBA_16 } pixel_kind;

static const uint8_t pixel_bytes[] = {4, 4, 2, 6, 8};

/* Kinds that Windows would convert in another way than libraries on other systems: 16 bits by
 * rounding, inks with a color profile. All others become BGRA. */
static pixel_kind kind_of(const GUID *format)
{
    const struct {
        const GUID *format;
        pixel_kind kind;
    } kinds[] = {{&GUID_WICPixelFormat32bppCMYK, CMYK},
                 {&GUID_WICPixelFormat16bppGray, GRAY_16},
                 {&GUID_WICPixelFormat48bppRGB, RGB_16},
                 {&GUID_WICPixelFormat64bppRGBA, RGBA_16}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (IsEqualGUID(format, kinds[i].format)) {
            return kinds[i].kind;
        }
    }
    return BGRA;
}

/* One row to RGBA; of 16 bits, which are little-endian, the upper 8. */
static void unpack_row(uint8_t *rgba, const uint8_t *from, size_t width, pixel_kind kind)
{
    for (size_t i = 0; i < width; i++, rgba += 4, from += pixel_bytes[kind]) {
        rgba[3] = kind == BGRA ? from[3] : kind == RGBA_16 ? from[7] : 255;
        for (int c = 0; c < 3; c++) {
            rgba[c] = kind == BGRA ? from[2 - c] : kind == GRAY_16 ? from[1] : from[2 * c + 1];
        }
    }
}

static bz_status copy_pixels(rgb_image *p, IWICBitmapSource *source, pixel_kind kind,
                             picture_format format, bz_error *err)
{
    const size_t stride = (size_t)p->width * pixel_bytes[kind], bytes = stride * p->height;
    uint8_t *pixels = malloc(bytes), *row = malloc((size_t)p->width * 4);
    bz_status status = BZ_OK;
    if (!pixels || !row || bytes > UINT32_MAX) {
        status = bz_fail(err, BZ_OUT_OF_MEMORY, "No memory for an image of %u x %u pixels.",
                         p->width, p->height);
    } else if (FAILED(
                   IWICBitmapSource_CopyPixels(source, NULL, (UINT)stride, (UINT)bytes, pixels))) {
        status = system_picture_damaged(format, err);
    }
    for (uint32_t y = 0; status == BZ_OK && y < p->height; y++) {
        const uint8_t *from = pixels + y * stride;
        uint8_t *to = p->rgb + (size_t)y * p->width * 3;
        if (kind == CMYK) {
            image_from_cmyk(to, from, p->width, false);
        } else {
            unpack_row(row, from, p->width, kind);
            image_on_white(to, row, p->width);
        }
    }
    free(row);
    free(pixels);
    return status;
}

static bz_status read_frame(wic *w, rgb_image *p, picture_format format, bz_error *err)
{
    UINT width, height;
    WICPixelFormatGUID stored;
    if (FAILED(IWICBitmapFrameDecode_GetSize(w->frame, &width, &height)) || width != p->width ||
        height != p->height || FAILED(IWICBitmapFrameDecode_GetPixelFormat(w->frame, &stored))) {
        return system_picture_damaged(format, err);
    }
    const pixel_kind kind = kind_of(&stored);
    IWICBitmapSource *source = (IWICBitmapSource *)w->frame;
    if (kind == BGRA) {
        if (FAILED(IWICImagingFactory_CreateFormatConverter(w->factory, &w->converter)) ||
            FAILED(IWICFormatConverter_Initialize(
                w->converter, source, &GUID_WICPixelFormat32bppBGRA, WICBitmapDitherTypeNone, NULL,
                0, WICBitmapPaletteTypeCustom))) {
            return system_picture_damaged(format, err);
        }
        source = (IWICBitmapSource *)w->converter;
    }
    return copy_pixels(p, source, kind, format, err);
}

bz_status os_decode_picture(rgb_image *p, picture_format format, const uint8_t *bytes, size_t n,
                            bz_error *err)
{
    wic w = {0};
    bz_status status = open_wic(&w, format, bytes, n, err);
    if (status == BZ_OK) {
        status = read_frame(&w, p, format, err);
    }
    close_wic(&w);
    return status;
}
