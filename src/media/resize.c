/* Bicubic resampling with antialiasing, the same bytes as Pillow's: weights in 22 fractional bits,
 * horizontally first, rounded and clamped to 8 bits after each direction. */
#include <math.h>
#include <stdlib.h>

#include "media/image.h"

enum { FRACTION_BITS = 22, STEP_WORK = 4 << 20 /* products in one step */ };

/* Of each output pixel of one direction: which source pixels, with which weights. */
typedef struct taps {
    uint32_t *first; /* [out] */
    uint32_t *count; /* [out] */
    int32_t *weight; /* [out][most] */
    uint32_t out, most;
} taps;

struct bz_resize {
    const uint8_t *rgb;
    bz_size from, to;
    taps across, down;
    uint8_t *narrow; /* [from.height][to.width][3]: after the horizontal pass */
    uint8_t *pixels; /* [to.height][to.width][3] */
    const uint8_t *result;
    uint32_t row; /* horizontal rows done, then vertical ones */
    bool vertical;
};

/* Keys' cubic with a = -1/2, the one that Pillow calls bicubic. */
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
    const double scale = (double)in / out, stretch = scale > 1.0 ? scale : 1.0,
                 support = 2.0 * stretch;
    t->out = out;
    t->most = (uint32_t)ceil(support) * 2 + 1;
    t->first = malloc(out * sizeof *t->first);
    t->count = malloc(out * sizeof *t->count);
    t->weight = calloc((size_t)out * t->most, sizeof *t->weight);
    double *exact = malloc(t->most * sizeof *exact);
    bool ok = t->first && t->count && t->weight && exact;
    for (uint32_t i = 0; ok && i < out; i++) {
        const double center = (i + 0.5) * scale, low = center - support + 0.5,
                     high = center + support + 0.5;
        const uint32_t first = low > 0 ? (uint32_t)low : 0, end = high < in ? (uint32_t)high : in;
        double sum = 0;
        for (uint32_t j = first; j < end; j++) {
            exact[j - first] = cubic((j - center + 0.5) * (1.0 / stretch));
            sum += exact[j - first];
        }
        for (uint32_t j = 0; j < end - first; j++) {
            const double w = (sum != 0 ? exact[j] / sum : exact[j]) * (1 << FRACTION_BITS);
            t->weight[(size_t)i * t->most + j] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
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
        taps_free(&r->across);
        taps_free(&r->down);
        free(r->narrow);
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
        r->narrow = malloc((size_t)from.height * to.width * 3);
        ok = r->narrow && taps_make(&r->across, from.width, to.width);
    }
    if (ok && from.height != to.height) {
        r->pixels = malloc((size_t)to.height * to.width * 3);
        ok = r->pixels && taps_make(&r->down, from.height, to.height);
    }
    if (!ok) {
        bz_resize_free(r);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "No memory to resize a picture of %u x %u pixels.",
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

static void row_across(const bz_resize *r, uint32_t row)
{
    const uint8_t *in = r->rgb + (size_t)row * r->from.width * 3;
    uint8_t *out = r->narrow + (size_t)row * r->to.width * 3;
    for (uint32_t x = 0; x < r->to.width; x++) {
        const int32_t *w = r->across.weight + (size_t)x * r->across.most;
        const uint8_t *p = in + (size_t)r->across.first[x] * 3;
        int32_t a = 1 << (FRACTION_BITS - 1), b = a, c = a;
        for (uint32_t j = 0; j < r->across.count[x]; j++, p += 3) {
            a += p[0] * w[j];
            b += p[1] * w[j];
            c += p[2] * w[j];
        }
        *out++ = to_byte(a);
        *out++ = to_byte(b);
        *out++ = to_byte(c);
    }
}

static void row_down(const bz_resize *r, uint32_t row)
{
    const size_t stride = (size_t)r->to.width * 3;
    const uint8_t *in = (r->narrow ? r->narrow : r->rgb) + r->down.first[row] * stride;
    uint8_t *out = r->pixels + row * stride;
    const int32_t *w = r->down.weight + (size_t)row * r->down.most;
    const uint32_t n = r->down.count[row];
    enum { RUN = 64 }; /* columns whose sums stand side by side */
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
        if (!r->vertical) {
            if (!r->narrow || r->row == r->from.height) {
                r->result = r->narrow ? r->narrow : r->rgb;
                r->vertical = true;
                r->row = 0;
                continue;
            }
            row_across(r, r->row++);
            work += (size_t)r->to.width * r->across.most * 3;
        } else {
            if (!r->pixels || r->row == r->to.height) {
                r->result = r->pixels ? r->pixels : r->result;
                return true;
            }
            row_down(r, r->row);
            work += (size_t)r->to.width * r->down.count[r->row++] * 3;
        }
    }
    return false;
}

const uint8_t *bz_resize_pixels(const bz_resize *r)
{
    return r->result;
}
