/* Sample rate conversion by a Kaiser-windowed sinc, interpolated between tabulated phases. */
#include "media/resample.h"

#include "bezel_media.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PHASES = 512, CROSSINGS = 24 /* zero crossings of the sinc on either side */ };

static const double PI = 3.14159265358979323846, KAISER = 9.0, PASS = 0.94;

static double bessel0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 40; k++) {
        term *= (x / (2 * k)) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

/* [PHASES + 1][2 * side]: weight of source sample whole + i - side + 1 for an output at position
 * whole + phase / PHASES. Each phase sums to 1, so that constant signals stay the same. */
static float *make_table(double cutoff, uint32_t side)
{
    const uint32_t width = 2 * side;
    float *table = malloc((size_t)(PHASES + 1) * width * sizeof *table);
    double *row = malloc(width * sizeof *row);
    for (uint32_t p = 0; table && row && p <= PHASES; p++) {
        double sum = 0;
        for (uint32_t i = 0; i < width; i++) {
            const double x = ((double)i - (side - 1.0)) - (double)p / (double)PHASES, u = x / side,
                         angle = PI * cutoff * x;
            const double sinc = fabs(angle) < 1e-9 ? 1.0 : sin(angle) / angle;
            row[i] = u > -1 && u < 1 ? sinc * bessel0(KAISER * sqrt(1 - u * u)) : 0;
            sum += row[i];
        }
        for (uint32_t i = 0; i < width; i++) {
            table[(size_t)p * width + i] = (float)(row[i] / sum);
        }
    }
    free(row);
    return table;
}

struct bz_resampler {
    uint32_t rate, to, side;
    float *table; /* NULL: equal rates */
};

bz_status bz_resampler_new(bz_resampler **out, uint32_t rate, uint32_t to, bz_error *err)
{
    if (rate < BZ_AUDIO_MIN_RATE || rate > BZ_AUDIO_MAX_RATE || to < BZ_AUDIO_MIN_RATE ||
        to > BZ_AUDIO_MAX_RATE) {
        return bz_fail(
            err, BZ_BAD_REQUEST,
            "The sound has %u samples per second; rates between %d and %d are supported.", rate,
            BZ_AUDIO_MIN_RATE, BZ_AUDIO_MAX_RATE);
    }
    bz_resampler *r = calloc(1, sizeof *r);
    if (r) {
        const double cutoff = rate > to ? PASS * to / rate : PASS;
        *r = (bz_resampler){rate, to, (uint32_t)ceil((double)CROSSINGS / cutoff), NULL};
        r->table = rate != to ? make_table(cutoff, r->side) : NULL;
    }
    if (!r || (rate != to && !r->table)) {
        free(r);
        return bz_fail(err, BZ_OUT_OF_MEMORY, "There is not enough memory to convert the sound.");
    }
    *out = r;
    return BZ_OK;
}

void bz_resampler_free(bz_resampler *r)
{
    if (r) {
        free(r->table);
        free(r);
    }
}

uint64_t bz_resampler_count(const bz_resampler *r, uint64_t n)
{
    return (n * r->to + r->rate - 1) / r->rate;
}

void bz_resampler_run(const bz_resampler *r, const float *pcm, size_t n, uint64_t first,
                      size_t count, float *out)
{
    const uint32_t width = 2 * r->side;
    if (!r->table) {
        memcpy(out, pcm + first, count * sizeof *out);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t scaled =
            (first + i) * r->rate; /* position in units of 1/to source samples: exact */
        const int64_t whole = (int64_t)(scaled / r->to), begin = whole - (r->side - 1);
        const double phase = (double)(scaled % r->to) / r->to * (double)PHASES;
        const uint32_t p = (uint32_t)phase;
        const float fraction = (float)(phase - p);
        const float *a = r->table + (size_t)p * width, *b = a + width;
        double sum = 0;
        for (uint32_t j = 0; j < width; j++) {
            const int64_t s = begin + j;
            if (s >= 0 && (uint64_t)s < n) {
                sum += (double)(pcm[s] * (a[j] + fraction * (b[j] - a[j])));
            }
        }
        out[i] = (float)sum;
    }
}

bz_status bz_resample(const float *pcm, size_t n, uint32_t rate, uint32_t to, float **out,
                      size_t *n_out, bz_error *err)
{
    bz_resampler *r = NULL;
    bz_status status = bz_resampler_new(&r, rate, to, err);
    if (status != BZ_OK) {
        return status;
    }
    const uint64_t count = bz_resampler_count(r, n);
    float *y =
        count < SIZE_MAX / sizeof *y ? malloc((size_t)(count ? count : 1) * sizeof *y) : NULL;
    if (y) {
        bz_resampler_run(r, pcm, n, 0, (size_t)count, y);
        *out = y;
        *n_out = (size_t)count;
    }
    bz_resampler_free(r);
    return y ? BZ_OK
             : bz_fail(err, BZ_OUT_OF_MEMORY,
                       "There is not enough memory to convert %zu samples of sound.", n);
}

void bz_mix_to_mono(float *pcm, size_t frames, uint32_t channels)
{
    for (size_t i = 0; channels > 1 && i < frames; i++) {
        double sum = 0;
        for (uint32_t c = 0; c < channels; c++) {
            sum += (double)pcm[i * channels + c];
        }
        pcm[i] = (float)(sum / channels);
    }
}
