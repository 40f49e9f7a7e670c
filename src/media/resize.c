/* Bicubic resize with antialiasing, bit-equal to Pillow's: weights with 22 fractional bits, first
 * horizontally, then vertically, rounded and clamped to 8 bits after each. */
#include <math.h>
#include <stdlib.h>

#include "media/image.h"

enum { FRACTION_BITS = 22, STEP_WORK = 4 << 20 /* multiplications per step */ };

/* Source pixels and weights of every output pixel in one direction. */
typedef struct taps {
    uint32_t *first; /* [out] */
    uint32_t *count; /* [out] */
    int32_t *weight; /* [out][max] */
    uint32_t out, max;
} taps;

struct bz_resize {
    const uint8_t *rgb;
    bz_size from, to;
    taps horizontal, vertical;
    uint8_t *resized_rows; /* [from.height][to.width][3]: after the horizontal pass */
    uint8_t *pixels;       /* [to.height][to.width][3] */
    const uint8_t *result;
    uint32_t row; /* rows done in the current direction */
    bool vertical_pass;
};

/* Keys' cubic with a = -1/2, as in Pillow. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    }
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static void taps_free(taps *t)
{
    free(t->first);
    free(t->count);
    free(t->weight);
    *t = (taps){0};
}

static bool taps_make(taps *t, uint32_t in, uint32_t out)
{
    const double scale = (double)in / out, filter_scale = scale > 1.0 ? scale : 1.0,
                 support = 2.0 * filter_scale;
    t->out = out;
    t->max = (uint32_t)ceil(support) * 2 + 1;
    t->first = malloc(out * sizeof *t->first);
    t->count = malloc(out * sizeof *t->count);
    t->weight = calloc((size_t)out * t->max, sizeof *t->weight);
    double *exact = malloc(t->max * sizeof *exact);
    bool ok = t->first && t->count && t->weight && exact;
    for (uint32_t i = 0; ok && i < out; i++) {
        const double center = (i + 0.5) * scale, low = center - support + 0.5,
                     high = center + support + 0.5;
        const uint32_t first = low > 0 ? (uint32_t)low : 0, end = high < in ? (uint32_t)high : in;
        double sum = 0;
        for (uint32_t j = first; j < end; j++) {
            exact[j - first] = cubic((j - center + 0.5) * (1.0 / filter_scale));
            sum += exact[j - first];
        }
        for (uint32_t j = 0; j < end - first; j++) {
            const double w = (sum != 0 ? exact[j] / sum : exact[j]) * (1 << FRACTION_BITS);
            t->weight[(size_t)i * t->max + j] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
        }
        t->first[i] = first;
        t->count[i] = end - first;
    }
    free(exact);
    return ok;
}

void bz_resize_free(bz_resize *r)
{
    if (r) {
        taps_free(&r->horizontal);
        taps_free(&r->vertical);
        free(r->resized_rows);
        free(r->pixels);
        free(r);
    }
}

bz_status bz_resize_new(bz_resize **out, const uint8_t *rgb, bz_size from, bz_size to,
                        bz_error *err)
{
    bz_resize *r = calloc(1, sizeof *r);
    bool ok = r != NULL;
    if (ok) {
        r->rgb = r->result = rgb;
        r->from = from;
        r->to = to;
    }
    if (ok && from.width != to.width) {
        r->resized_rows = malloc((size_t)from.height * to.width * 3);
        ok = r->resized_rows && taps_make(&r->horizontal, from.width, to.width);
    }
    if (ok && from.height != to.height) {
        r->pixels = malloc((size_t)to.height * to.width * 3);
        ok = r->pixels && taps_make(&r->vertical, from.height, to.height);
    }
    if (!ok) {
        bz_resize_free(r);
        return bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to resize an image of %u x %u pixels.",
                       from.width, from.height);
    }
    *out = r;
    return BZ_OK;
}

static uint8_t to_byte(int32_t sum)
{
    sum >>= FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_row(const bz_resize *r, uint32_t row)
{
    const uint8_t *in = r->rgb + (size_t)row * r->from.width * 3;
    uint8_t *out = r->resized_rows + (size_t)row * r->to.width * 3;
    for (uint32_t x = 0; x < r->to.width; x++) {
        const int32_t *w = r->horizontal.weight + (size_t)x * r->horizontal.max;
        const uint8_t *p = in + (size_t)r->horizontal.first[x] * 3;
        int32_t a = 1 << (FRACTION_BITS - 1), b = a, c = a;
        for (uint32_t j = 0; j < r->horizontal.count[x]; j++, p += 3) {
            a += p[0] * w[j];
            b += p[1] * w[j];
            c += p[2] * w[j];
        }
        *out++ = to_byte(a);
        *out++ = to_byte(b);
        *out++ = to_byte(c);
    }
}

static void blend_rows(const bz_resize *r, uint32_t row)
{
    const size_t stride = (size_t)r->to.width * 3;
    const uint8_t *in =
        (r->resized_rows ? r->resized_rows : r->rgb) + r->vertical.first[row] * stride;
    uint8_t *out = r->pixels + row * stride;
    const int32_t *w = r->vertical.weight + (size_t)row * r->vertical.max;
    const uint32_t n = r->vertical.count[row];
    enum { RUN = 64 }; /* columns computed together */
    for (size_t x = 0; x < stride; x += RUN) {
        const size_t run = stride - x < RUN ? stride - x : RUN;
        int32_t sum[RUN];
        for (size_t i = 0; i < RUN; i++) {
            sum[i] = 1 << (FRACTION_BITS - 1);
        }
        for (uint32_t j = 0; j < n; j++) {
            const uint8_t *p = in + j * stride + x;
            for (size_t i = 0; i < run; i++) {
                sum[i] += p[i] * w[j];
            }
        }
        for (size_t i = 0; i < run; i++) {
            out[x + i] = to_byte(sum[i]);
        }
    }
}

bool bz_resize_step(bz_resize *r)
{
    for (size_t work = 0; work < STEP_WORK;) {
        if (!r->vertical_pass) {
            if (!r->resized_rows || r->row == r->from.height) {
                r->result = r->resized_rows ? r->resized_rows : r->rgb;
                r->vertical_pass = true;
                r->row = 0;
                continue;
            }
            resize_row(r, r->row++);
            work += (size_t)r->to.width * r->horizontal.max * 3;
        } else {
            if (!r->pixels || r->row == r->to.height) {
                r->result = r->pixels ? r->pixels : r->result;
                return true;
            }
            blend_rows(r, r->row);
            work += (size_t)r->to.width * r->vertical.count[r->row++] * 3;
        }
    }
    return false;
}

const uint8_t *bz_resize_pixels(const bz_resize *r)
{
    return r->result;
}
