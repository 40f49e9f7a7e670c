/* The products for AMX (src/cpu/products_amx.c) by emulated tiles: the emulation itself, the bits
 * of the other tables, threads, whole sessions, and when the table is chosen. The linker replaces
 * what the system says of AMX. */
#include <stdlib.h>
#include <string.h>

#include "amx/tiles.h"
#include "base/os.h"
#include "cpu/kernels.h"
#include "cpu/products.h"
#include "support/check.h"
#include "support/forward.h"
#include "support/golden.h"
#include "support/products.h"
#include "support/random.h"

/* ---- what the system says ---- */

static struct {
    bool has_amx, allows;
    int asked;
} machine;

bool __real_bz_os_cpu_has(const char *feature);
bool __wrap_bz_os_cpu_has(const char *feature);
bool __wrap_bz_os_allow_tiles(void);

bool __wrap_bz_os_cpu_has(const char *feature)
{
    if (strcmp(feature, "amxint8") == 0)
        return machine.has_amx;
    return __real_bz_os_cpu_has(feature) &&
           (machine.has_amx || strcmp(feature, "avx512bf16") != 0); /* came before AMX */
}

bool __wrap_bz_os_allow_tiles(void)
{
    machine.asked++;
    return machine.allows;
}

/* ---- the emulation ---- */

typedef struct shapes {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes;

/* Tiles 0, 1, 2: sums [m][n], factors [m][k] and [k / 4][n][4]. */
static shapes product_of(size_t m, size_t n, size_t k)
{
    return (shapes){.palette = 1,
                    .row_bytes = {(uint16_t)(4 * n), (uint16_t)k, (uint16_t)(4 * n)},
                    .rows = {(uint8_t)m, (uint8_t)m, (uint8_t)(k / 4)}};
}

static void test_products_of_tiles(void)
{
    begin("tiles: products of every shape");
    for (int round = 0; round < 300; round++) {
        const size_t m = 1 + random_below(16), n = 1 + random_below(16),
                     k = 4 * (1 + random_below(16)), stride = 64 + random_below(9);
        int8_t x[16 * 72], w[16 * 72];
        int32_t sums[16][20], want[16][20];
        for (size_t i = 0; i < sizeof x; i++) {
            x[i] = (int8_t)random_bits();
            w[i] = (int8_t)random_bits();
        }
        for (size_t r = 0; r < 16; r++)
            for (size_t c = 0; c < 20; c++)
                sums[r][c] = want[r][c] = (int32_t)random_bits();
        for (size_t r = 0; r < m; r++)
            for (size_t c = 0; c < n; c++) {
                int32_t sum = 0; /* added twice: first to zeros, then to what was stored */
                for (size_t i = 0; i < k; i++)
                    sum += x[r * stride + i] * w[i / 4 * stride + 4 * c + i % 4];
                want[r][c] = 2 * sum;
            }
        const shapes s = product_of(m, n, k);
        tile_loadconfig(&s);
        tile_zero(0);
        for (int twice = 0; twice < 2; twice++) {
            tile_load(1, x, (ptrdiff_t)stride);
            tile_load(2, w, (ptrdiff_t)stride);
            tile_multiply(0, 1, 2);
            tile_store(0, sums, sizeof sums[0]);
            tile_load(0, sums, sizeof sums[0]);
        }
        CHECKF(memcmp(sums, want, sizeof sums) == 0, "%zu by %zu, K %zu", m, n, k);
        tile_loadconfig(&s);
        tile_store(0, sums, sizeof sums[0]);
        CHECKF(sums[0][0] == 0 && sums[m - 1][n - 1] == 0, "a configuration clears the tiles");
        tile_release();
        CHECK(!tiles_configured());
    }
}

/* One mistake for each number; false: there are no more. */
static bool make_mistake(int number)
{
    uint8_t memory[TILE_ROWS * TILE_ROW_BYTES] = {0};
    shapes s = product_of(16, 16, 32);
    if (number > 12)
        return false;
    switch (number) {
    case 0: s.palette = 2; break;
    case 1: s.reserved[13] = 1; break;
    case 2: s.row_bytes[1] = 65; break;
    case 3: s.rows[1] = 17; break;
    case 4: s.rows[1] = 0; break;
    case 5: s.row_bytes[2] = 0; break;
    case 6: s.row_bytes[8] = 64; break; /* a ninth tile */
    case 7: s.row_bytes[1] = 28; break; /* K */
    case 8: s.rows[0] = 15; break;      /* M */
    case 9: s.row_bytes[0] = 60; break; /* N */
    default: break;
    }
    tile_loadconfig(&s);
    switch (number) {
    case 10: tile_zero(3); break;
    case 11: tile_multiply(0, 1, 1); break;
    case 12:
        tile_release();
        tile_load(1, memory, 32);
        break;
    default: tile_multiply(0, 1, 2);
    }
    return true;
}

static bool mistake_is_seen(int number)
{
    jmp_buf back;
    if (setjmp(back) == 0) {
        tile_catch = &back;
        make_mistake(number);
        tile_catch = NULL;
        return false;
    }
    return true;
}

static void test_mistakes(void)
{
    begin("tiles: a mistake is seen");
    for (int i = 0; i <= 12; i++) {
        tile_fault_reason = "";
        CHECKF(mistake_is_seen(i), "mistake %d", i);
    }
    tile_release();
}

#if defined(BZ_OS_TILES)

/* ---- choice ---- */

static void slow_multiply(bz_type type, const void *panels, size_t count, const void *block,
                          size_t rows, size_t k, float *out, size_t stride)
{
    bz_os_sleep(1000000);
    bz_products_avx512.multiply(type, panels, count, block, rows, k, out, stride);
}

static void wrong_multiply(bz_type type, const void *panels, size_t count, const void *block,
                           size_t rows, size_t k, float *out, size_t stride)
{
    bz_products_avx512.multiply(type, panels, count, block, rows, k, out, stride);
    if (type == BZ_Q6_K)
        out[stride] += 1;
}

static void test_choice(void)
{
    begin("amx is there if the processor has it and the system allows it");
    machine.has_amx = false;
    machine.asked = 0;
    CHECK(bz_kernels_best("amx") == NULL && bz_kernels_at(0) == &bz_kernels_avx512);
    CHECK(bz_kernels_best(NULL) == &bz_kernels_avx512);
    CHECK(machine.asked == 0);
    machine.has_amx = true;
    machine.allows = false;
    CHECK(bz_kernels_best("amx") == NULL && bz_kernels_at(0) == &bz_kernels_avx512bf16);
    machine.allows = true;
    CHECK(bz_kernels_best("amx") == &bz_kernels_amx && bz_kernels_at(0) == &bz_kernels_amx);
    CHECK(bz_kernels_best("avx512") == &bz_kernels_avx512);

    begin("amx is not taken unasked if it is slower");
    const uint64_t before = tiles_multiplied();
    CHECK(bz_kernels_best(NULL) == &bz_kernels_avx512bf16);
    CHECK(tiles_multiplied() > before && !tiles_configured());

    begin("products pay if they have the same bits and are faster");
    bz_products slow = bz_products_avx512, wrong = bz_products_avx512;
    slow.multiply = slow_multiply;
    wrong.multiply = wrong_multiply;
    CHECK(bz_products_pay(&bz_products_avx512, &slow));
    CHECK(bz_products_pay(&bz_products_amx, &slow)); /* even emulated */
    CHECK(!bz_products_pay(&slow, &bz_products_avx512));
    CHECK(!bz_products_pay(&wrong, &slow));
    CHECK(!bz_products_pay(&bz_products_avx2, &slow)); /* other bits */
}

/* ---- threads ---- */

enum { K = 768, OUTPUTS = 45, ROWS = 37, THREADS = 4 };

typedef struct work {
    bz_type type;
    const uint8_t *blocks;
    const float *x; /* [ROWS][K] */
    float *out;     /* [ROWS][OUTPUTS] */
    bool released;
    uint64_t tiles;
} work;

static void *room(size_t bytes)
{
    void *p = bz_os_aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p)
        abort();
    return p;
}

static void multiply_by(const bz_products *by, const work *w)
{
    const bz_w8 unpacked = {room(16 * K), room(K * sizeof(float)), room(K * sizeof(float))};
    const bz_q8 q = {room(K), room(K / 32 * sizeof(float)), room(K / 16 * sizeof(float))};
    uint8_t *block = room((ROWS + by->block_rows - 1) / by->block_rows * by->block_bytes(K));
    void *panels = room(by->panel_bytes(K));
    for (size_t r = 0; r < ROWS; r++) {
        bz_kernels_avx512.quantize(w->x + r * K, q, K);
        by->arrange_in_block(&q, K, r % by->block_rows,
                             block + r / by->block_rows * by->block_bytes(K));
    }
    for (size_t o = 0; o < OUTPUTS; o += BZ_PRODUCT_TILE) {
        const size_t count = OUTPUTS - o < BZ_PRODUCT_TILE ? OUTPUTS - o : BZ_PRODUCT_TILE;
        by->pack(w->type, w->blocks + o * bz_row_bytes(w->type, K), count, K, unpacked, panels);
        bz_product_multiply(by, w->type, panels, count, block, ROWS, K, w->out + o, OUTPUTS);
    }
    bz_os_aligned_free(panels);
    bz_os_aligned_free(block);
    bz_os_aligned_free(q.sum);
    bz_os_aligned_free(q.d);
    bz_os_aligned_free(q.q);
    bz_os_aligned_free(unpacked.m);
    bz_os_aligned_free(unpacked.s);
    bz_os_aligned_free(unpacked.q);
}

static void by_tiles(void *context)
{
    work *w = context;
    w->released = !tiles_configured();
    multiply_by(&bz_products_amx, w);
    w->released &= !tiles_configured();
    w->tiles = tiles_multiplied();
}

static void test_threads(void)
{
    begin("amx: every thread configures its tiles and releases them");
    const bz_type type = BZ_Q4_K;
    uint8_t *blocks = room(OUTPUTS * bz_row_bytes(type, K));
    float *x = room(ROWS * K * sizeof *x);
    random_blocks(type, blocks, OUTPUTS * K, SCALES_TAME);
    for (size_t i = 0; i < ROWS * K; i++)
        x[i] = random_float();
    work works[THREADS + 1];
    bz_os_thread *threads[THREADS];
    for (size_t i = 0; i <= THREADS; i++)
        works[i] = (work){
            .type = type, .blocks = blocks, .x = x, .out = room(ROWS * OUTPUTS * sizeof(float))};
    multiply_by(&bz_products_avx512, &works[THREADS]);
    for (size_t i = 0; i < THREADS; i++)
        threads[i] = bz_os_thread_start(by_tiles, &works[i]);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(threads[i] != NULL);
        if (threads[i])
            bz_os_thread_join(threads[i]);
        /* 3 blocks by 3 panels by 24 groups */
        CHECKF(works[i].released && works[i].tiles == 3 * 3 * 24, "thread %zu", i);
        CHECKF(memcmp(works[i].out, works[THREADS].out, ROWS * OUTPUTS * sizeof(float)) == 0,
               "thread %zu: other bits than avx512", i);
    }
    for (size_t i = 0; i <= THREADS; i++)
        bz_os_aligned_free(works[i].out);
    bz_os_aligned_free(x);
    bz_os_aligned_free(blocks);
}

/* ---- sessions ---- */

static float *all_logits(const bz_model *m, const char *kernels, uint32_t chunk, unsigned threads,
                         const int32_t *ids, size_t n)
{
    float *out = malloc(n * bz_model_vocab(m) * sizeof *out);
    const bz_session_options o = {
        .size = sizeof o, .kernels = kernels, .chunk = chunk, .threads = threads};
    bz_session *s = session_or_fail(m, &o);
    bz_error err = {0};
    CHECKF(prefill(s, ids, n, 0, out, &err) == BZ_OK, "%s", err.text);
    bz_session_free(s);
    return out;
}

static void test_session(const char *name)
{
    enum { N = 60 };
    static const struct {
        uint32_t chunk;
        unsigned threads;
    } ways[] = {{512, 1}, {512, 3}, {13, 2}, {5, 1}};
    bz_model *m = open_or_fail(model_path(name));
    const size_t values = N * (size_t)bz_model_vocab(m);
    int32_t ids[N] = {2};
    for (int i = 1; i < N; i++)
        ids[i] = (int32_t)(10 + random_below(bz_model_vocab(m) - 20));
    float *want = all_logits(m, "avx512bf16", 512, 1, ids, N);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        begin("%s: amx in chunks of %u, %u threads, the bits of avx512bf16", name, ways[i].chunk,
              ways[i].threads);
        const uint64_t before = tiles_multiplied();
        float *got = all_logits(m, "amx", ways[i].chunk, ways[i].threads, ids, N);
        CHECK(memcmp(got, want, values * sizeof *got) == 0);
        if (ways[i].threads == 1) /* this one: up to 8 rows are multiplied without tiles */
            CHECK((tiles_multiplied() > before) == (ways[i].chunk > BZ_FEW_ROWS));
        CHECK(!tiles_configured());
        free(got);
    }
    free(want);
    bz_model_free(m);
}

#endif

int main(void)
{
    random_seed_or(19);
    test_products_of_tiles();
    test_mistakes();
#if defined(BZ_OS_TILES)
    if (!bz_kernels_best("avx512") || !__real_bz_os_cpu_has("avx512bf16")) {
        begin("this processor has no AVX-512 BF16: the table for AMX cannot run here");
        return finish();
    }
    test_choice();
    for (size_t i = 0; i < bz_kernels_count(); i++) {
        const bz_kernels *k = bz_kernels_at(i); /* the second is compared with the first */
        if (k->products && k->products->lanes == bz_products_amx.lanes)
            test_products(k);
    }
    test_threads();
    test_session("tiny-e-q4_k_m.gguf");
    test_session("tiny-moe-q4_k_m.gguf");
    test_session("tiny-dense-q3_k_m.gguf");
#endif
    return finish();
}
