/* Integer products for AMX (products.h): 16 lanes, with the bits of products_avx512.c, which also
 * multiplies few rows and packs the weights.
 *
 * A tile is a register of up to 16 rows of 64 bytes. tdpbssd multiplies 16 activation rows by 16
 * weight rows, up to 64 values of each, and adds to 256 sums. Groups have scales of their own, so
 * one instruction takes one group: 16 rows of G activations, and G / 4 rows of four values of each
 * weight row, as panels hold them. With two groups in a tile of 64 values the other one would have
 * to be multiplied by zeros. The sums are stored and read again as vectors of 16 weight rows.
 *
 * Tiles have names, not variables: results are tiles 0 and 3, activations 1 and 4, weights 2 and 5.
 * Groups take both sets in turn, so that one does not wait for the other. */
#include "base/os.h"

#if defined(BZ_OS_TILES) /* GCC's intrinsics do not assemble for Windows either */

#include <immintrin.h>
#include <stdatomic.h>

#include "cpu/products_avx512.h"

enum { L = 16, ROWS = BZ_MOST_BLOCK_ROWS };

/* What ldtilecfg reads: the bytes of a row and the number of rows of each tile. */
typedef struct tile_shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_shapes;

_Static_assert(sizeof(tile_shapes) == 64, "as the processor reads it");

/* By the size of groups. Not on the stack: GCC knows of eight bytes only that ldtilecfg reads. */
static const tile_shapes shapes16 = {.palette = 1,
                                     .row_bytes = {64, 16, 64, 64, 16, 64},
                                     .rows = {ROWS, ROWS, 4, ROWS, ROWS, 4}},
                         shapes32 = {.palette = 1,
                                     .row_bytes = {64, 32, 64, 64, 32, 64},
                                     .rows = {ROWS, ROWS, 8, ROWS, ROWS, 8}};

static void begin(bz_type type)
{
    _tile_loadconfig(bz_product_group(type) == 16 ? &shapes16 : &shapes32);
}

/* The registers are empty again: the system need not save them, and the core may sleep. */
static void end(void)
{
    _tile_release();
}

/* ---- blocks of activations ---- */

/* 16 rows: a group of 32 of each row, one after another; then by group and row scales, scale * sum
 * of 32 and of 16. Rows that are missing are multiplied as they are and not stored. */
typedef struct tile_block {
    int8_t *q;                /* [K/32][ROWS][32] */
    float *d, *sum32, *sum16; /* [K/32][ROWS], [K/32][ROWS], [K/16][ROWS] */
} tile_block;

INLINE tile_block tile_block_at(const void *memory, size_t k)
{
    tile_block b = {.q = (int8_t *)(uintptr_t)memory};
    b.d = (float *)(void *)(b.q + k * ROWS);
    b.sum32 = b.d + k / 32 * ROWS;
    b.sum16 = b.sum32 + k / 32 * ROWS;
    return b;
}

static size_t block_bytes(size_t k)
{
    return ROWS * (k + (2 * (k / 32) + k / 16) * sizeof(float));
}

static int32_t sum_of_32(__m256i v)
{
    const __m256i fours = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), v);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

static void arrange_in_block(const bz_q8 *x, size_t k, size_t slot, void *block)
{
    const tile_block b = tile_block_at(block, k);
    for (size_t g = 0; g < k / 32; g++) {
        const size_t at = g * ROWS + slot;
        const __m256i v = _mm256_loadu_si256((const __m256i *)(x->q + 32 * g));
        _mm256_storeu_si256((__m256i *)(b.q + 32 * at), v);
        b.d[at] = x->d[g];
        b.sum32[at] = x->d[g] * (float)sum_of_32(v);
        b.sum16[2 * g * ROWS + slot] = x->sum[2 * g];
        b.sum16[(2 * g + 1) * ROWS + slot] = x->sum[2 * g + 1];
    }
}

/* ---- products ---- */

/* The exact products of a group by a set of tiles: results, activations, weights. */
#define MULTIPLY_TILES(results, activations, weights, x, w, out)                                   \
    do {                                                                                           \
        _tile_zero(results);                                                                       \
        _tile_loadd(activations, x, 32);                                                           \
        _tile_loadd(weights, w, 64);                                                               \
        _tile_dpbssd(results, activations, weights);                                               \
        _tile_stored(results, out, 64);                                                            \
    } while (0)

/* a[r] += products * scales, then -= minima * sums, as multiply_rows of products_avx512.c. */
INLINE void add_group(const size_t R, const bool has_min, const __m512i *group, const __m512i *p,
                      const float *d, const float *sums, __m512 a[ROWS])
{
    const __m512 s = _mm512_castsi512_ps(group[PANEL_SCALE]),
                 m = _mm512_castsi512_ps(group[PANEL_MINIMUM]);
    for (size_t r = 0; r < R; r++) {
        const __m512 scale = _mm512_mul_ps(s, _mm512_set1_ps(d[r]));
        a[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(p[r]), scale, a[r]);
        if (has_min)
            a[r] = _mm512_fnmadd_ps(m, _mm512_set1_ps(sums[r]), a[r]);
    }
}

/* A panel by R rows, of which `rows` are stored. */
INLINE void multiply_panel(const size_t R, const size_t G, const bool has_min, const __m512i *panel,
                           const tile_block *x, size_t rows, size_t k, __mmask16 columns,
                           float *out, size_t stride)
{
    const size_t groups = k / G, step = 2 * group_vectors(G);
    const float *sums = G == 16 ? x->sum16 : x->sum32;
    __m512i products[2][ROWS];
    __m512 total[ROWS];
    for (size_t r = 0; r < R; r++)
        total[r] = _mm512_setzero_ps();
    for (size_t j = 0; j < L && j < groups; j++) {
        __m512 a[ROWS];
        for (size_t r = 0; r < R; r++)
            a[r] = _mm512_setzero_ps();
        for (size_t g = j; g < groups; g += 2 * L) {
            const size_t h = g + L; /* the next group of the same sum */
            const __m512i *next = panel + step;
            MULTIPLY_TILES(0, 1, 2, x->q + g * G / 32 * 32 * ROWS + g * G % 32,
                           panel + PANEL_VALUES, products[0]);
            if (h < groups)
                MULTIPLY_TILES(3, 4, 5, x->q + h * G / 32 * 32 * ROWS + h * G % 32,
                               next + PANEL_VALUES, products[1]);
            add_group(R, has_min, panel, products[0], x->d + g * G / 32 * ROWS, sums + g * ROWS, a);
            panel = next;
            if (h < groups) {
                add_group(R, has_min, panel, products[1], x->d + h * G / 32 * ROWS, sums + h * ROWS,
                          a);
                panel += step;
            }
        }
        for (size_t r = 0; r < R; r++)
            total[r] = _mm512_add_ps(total[r], a[r]);
    }
    for (size_t r = 0; r < rows; r++)
        _mm512_mask_storeu_ps(out + r * stride, columns, total[r]);
}

#define MULTIPLY(name, G, has_min)                                                                 \
    static void multiply_##name(const __m512i *panels, size_t count, const void *block,            \
                                size_t rows, size_t k, float *out, size_t stride)                  \
    {                                                                                              \
        const tile_block x = tile_block_at(block, k);                                              \
        for (size_t c = 0; c < count; c += 16, panels += group_vectors(G)) {                       \
            const __mmask16 columns =                                                              \
                (__mmask16)(count - c < 16 ? (1u << (count - c)) - 1 : 0xFFFF);                    \
            if (rows > ROWS / 2)                                                                   \
                multiply_panel(ROWS, G, has_min, panels, &x, rows, k, columns, out + c, stride);   \
            else                                                                                   \
                multiply_panel(ROWS / 2, G, has_min, panels, &x, rows, k, columns, out + c,        \
                               stride);                                                            \
        }                                                                                          \
    }
MULTIPLY(32, 32, false)
MULTIPLY(32_min, 32, true)
MULTIPLY(16, 16, false)
MULTIPLY(16_min, 16, true)

static void multiply(bz_type type, const void *panels, size_t count, const void *block, size_t rows,
                     size_t k, float *out, size_t stride)
{
    const bool has_min = bz_type_has_min(type);
    /* GCC's loads of tiles do not say that they read memory: what was written before is there. */
    atomic_signal_fence(memory_order_seq_cst);
    if (bz_product_group(type) == 16)
        (has_min ? multiply_16_min : multiply_16)(panels, count, block, rows, k, out, stride);
    else
        (has_min ? multiply_32_min : multiply_32)(panels, count, block, rows, k, out, stride);
}

const bz_products bz_products_amx = {.lanes = L,
                                     .arrange_row = bz_arrange_row_avx512,
                                     .rows = bz_rows_avx512,
                                     .row_bytes = bz_row_bytes_avx512,
                                     .pack = bz_pack_avx512,
                                     .panel_bytes = bz_panel_bytes_avx512,
                                     .block_rows = ROWS,
                                     .block_bytes = block_bytes,
                                     .arrange_in_block = arrange_in_block,
                                     .multiply = multiply,
                                     .begin = begin,
                                     .end = end};

#else
typedef int bz_no_amx; /* ISO C requires a declaration */
#endif
