/* Log-mel features: Hann window, FFT of 512, magnitudes, triangular filters, log. */
#include "media/mel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 320, HOP = 160, FFT = 512, BINS = FFT / 2 + 1 };

static const double PI = 3.14159265358979323846, FLOOR = 1e-3, TOP_HZ = 8000.0;

struct bz_mel {
    float window[FRAME];           /* periodic Hann */
    double cosine[FFT], sine[FFT]; /* twiddle factors of the stage with halves of n: at n .. 2n */
    uint16_t reversed[FFT];
    float filter[BZ_MEL_BINS][BINS];
    uint16_t first[BZ_MEL_BINS], end[BZ_MEL_BINS]; /* range where a filter is not zero */
};

static double to_mel(double hz)
{
    return 2595.0 * log10(1.0 + hz / 700.0);
}

static double from_mel(double mel)
{
    return 700.0 * (pow(10.0, mel / 2595.0) - 1.0);
}

/* Triangular filters between points evenly spaced on the mel scale, without area normalization. */
static void make_filters(bz_mel *m)
{
    double point[BZ_MEL_BINS + 2];
    for (int i = 0; i < BZ_MEL_BINS + 2; i++) {
        point[i] = from_mel(to_mel(TOP_HZ) * i / (BZ_MEL_BINS + 1));
    }
    for (int f = 0; f < BZ_MEL_BINS; f++) {
        const double low = point[f], center = point[f + 1], high = point[f + 2];
        m->first[f] = BINS;
        for (int b = 0; b < BINS; b++) {
            const double hz = b * ((double)BZ_SAMPLE_RATE / (double)FFT);
            const double w = fmin((hz - low) / (center - low), (high - hz) / (high - center));
            m->filter[f][b] = (float)fmax(0.0, w);
            if (w > 0) {
                m->first[f] = m->first[f] < b ? m->first[f] : (uint16_t)b;
                m->end[f] = (uint16_t)(b + 1);
            }
        }
        m->first[f] = m->first[f] < m->end[f] ? m->first[f] : m->end[f];
    }
}

bz_mel *bz_mel_new(void)
{
    bz_mel *m = calloc(1, sizeof *m);
    if (!m) {
        return NULL;
    }
    for (int i = 0; i < FRAME; i++) {
        m->window[i] = (float)(0.5 - 0.5 * cos(2 * PI * i / (double)FRAME));
    }
    for (int half = 1; half < FFT; half *= 2) {
        for (int i = 0; i < half; i++) {
            m->cosine[half + i] = cos(PI * i / half);
            m->sine[half + i] = -sin(PI * i / half);
        }
    }
    for (unsigned i = 0; i < FFT; i++) {
        unsigned r = 0;
        for (unsigned bit = 1; bit < FFT; bit <<= 1) {
            r = r << 1 | ((i & bit) != 0);
        }
        m->reversed[i] = (uint16_t)r;
    }
    make_filters(m);
    return m;
}

void bz_mel_free(bz_mel *m)
{
    free(m);
}

uint32_t bz_mel_frames(size_t samples)
{
    return samples > HOP ? (uint32_t)((samples - 1) / HOP) : 0;
}

/* Radix-2 FFT in place; the input is in bit-reversed order. */
static void transform(const bz_mel *m, double *restrict re, double *restrict im)
{
    for (int half = 1; half < FFT; half *= 2) {
        const double *cosine = m->cosine + half, *sine = m->sine + half;
        for (int start = 0; start < FFT; start += 2 * half) {
            double *ra = re + start, *rb = ra + half, *ia = im + start, *ib = ia + half;
            for (int k = 0; k < half; k++) {
                const double x = rb[k] * cosine[k] - ib[k] * sine[k],
                             y = rb[k] * sine[k] + ib[k] * cosine[k];
                rb[k] = ra[k] - x;
                ib[k] = ia[k] - y;
                ra[k] += x;
                ia[k] += y;
            }
        }
    }
}

static void put_frame(const bz_mel *m, const float *pcm, size_t samples, uint32_t frame, double *to)
{
    const size_t first = (size_t)frame * HOP; /* sample i of the frame is pcm[first + i - HOP] */
    for (size_t i = 0; i < FRAME; i++) {
        const size_t at = first + i;
        const float x = at >= HOP && at - HOP < samples ? pcm[at - HOP] : 0.0f;
        to[m->reversed[i]] = (double)(x * m->window[i]);
    }
}

static void put_bins(const bz_mel *m, const float magnitude[BINS], float *out)
{
    for (int f = 0; f < BZ_MEL_BINS; f++) {
        double sum = 0;
        for (int b = m->first[f]; b < m->end[f]; b++) {
            sum += (double)m->filter[f][b] * (double)magnitude[b];
        }
        out[f] = (float)log(sum + FLOOR);
    }
}

/* Two frames share one transform, as its real and imaginary part; the conjugate-symmetric part of
 * the result is the spectrum of the first frame, the antisymmetric part that of the second. first,
 * second: [BZ_MEL_BINS]; second may be NULL. */
static void two_frames(const bz_mel *m, const float *pcm, size_t samples, uint32_t frame,
                       float *first, float *second)
{
    double re[FFT] = {0}, im[FFT] = {0};
    float magnitude[2][BINS];
    put_frame(m, pcm, samples, frame, re);
    if (second) {
        put_frame(m, pcm, samples, frame + 1, im);
    }
    transform(m, re, im);
    for (int b = 0; b < BINS; b++) {
        const int mirror = (FFT - b) % FFT;
        const double even_re = re[b] + re[mirror], even_im = im[b] - im[mirror];
        const double odd_re = im[b] + im[mirror], odd_im = re[mirror] - re[b];
        magnitude[0][b] = (float)(0.5 * sqrt(even_re * even_re + even_im * even_im));
        magnitude[1][b] = (float)(0.5 * sqrt(odd_re * odd_re + odd_im * odd_im));
    }
    put_bins(m, magnitude[0], first);
    if (second) {
        put_bins(m, magnitude[1], second);
    }
}

void bz_mel_run(const bz_mel *m, const float *pcm, size_t samples, uint32_t first, uint32_t count,
                float *out)
{
    for (uint32_t i = 0; i < count; i += 2) {
        float *to = out + (size_t)i * BZ_MEL_BINS;
        two_frames(m, pcm, samples, first + i, to, i + 1 < count ? to + BZ_MEL_BINS : NULL);
    }
}
