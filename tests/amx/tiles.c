#include "amx/tiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/little.h"

_Thread_local jmp_buf *tile_catch;
_Thread_local const char *tile_fault_reason;

typedef struct tile {
    size_t rows, row_bytes; /* 0: not configured */
    uint8_t data[TILE_ROWS][TILE_ROW_BYTES];
} tile;

static _Thread_local struct {
    bool configured;
    tile tiles[TILES];
    uint64_t multiplied;
} registers;

static void fault(const char *why)
{
    if (tile_catch) {
        jmp_buf *to = tile_catch;
        tile_catch = NULL;
        tile_fault_reason = why;
        longjmp(*to, 1);
    }
    fprintf(stderr, "tiles: %s\n", why);
    abort();
}

static void require(bool holds, const char *why)
{
    if (!holds)
        fault(why);
}

bool tiles_configured(void)
{
    return registers.configured;
}

uint64_t tiles_multiplied(void)
{
    return registers.multiplied;
}

/* ---- configuration ---- */

static bool zeros(const uint8_t *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i])
            return false;
    return true;
}

/* 64 bytes: palette, start row, 14 reserved; bytes per row of 16 tiles in 16 bits each; rows of 16
 * tiles in 8 bits each. Palette 1 has 8 tiles. Palette 0 is as tilerelease. All data become zero.
 */
void tile_loadconfig(const void *config)
{
    const uint8_t *c = config;
    require(c[0] <= 1, "a palette that does not exist");
    tile_release();
    if (c[0] == 0)
        return;
    require(c[1] == 0, "a start row that no interrupted instruction has left");
    require(zeros(c, 2, 16) && zeros(c, 16 + 2 * TILES, 48) && zeros(c, 48 + TILES, 64),
            "reserved bytes of the configuration");
    for (size_t t = 0; t < TILES; t++) {
        tile *to = &registers.tiles[t];
        to->row_bytes = bz_le16(c + 16 + 2 * t);
        to->rows = c[48 + t];
        require(to->row_bytes <= TILE_ROW_BYTES && to->rows <= TILE_ROWS, "a tile too large");
        require((to->rows == 0) == (to->row_bytes == 0), "rows without bytes, or bytes without");
    }
    registers.configured = true;
}

void tile_release(void)
{
    registers.configured = false;
    memset(registers.tiles, 0, sizeof registers.tiles);
}

/* A tile that an instruction may name. */
static tile *named(int t)
{
    require(registers.configured, "no configuration in this thread");
    require(t >= 0 && t < TILES && registers.tiles[t].rows > 0, "a tile that is not configured");
    return &registers.tiles[t];
}

/* ---- instructions ---- */

void tile_zero(int t)
{
    tile *to = named(t);
    memset(to->data, 0, sizeof to->data);
}

/* What is outside of the shape becomes zero. */
void tile_load(int t, const void *memory, ptrdiff_t stride)
{
    tile *to = named(t);
    const uint8_t *from = memory;
    memset(to->data, 0, sizeof to->data);
    for (size_t r = 0; r < to->rows; r++)
        memcpy(to->data[r], from + (ptrdiff_t)r * stride, to->row_bytes);
}

void tile_store(int t, void *memory, ptrdiff_t stride)
{
    const tile *from = named(t);
    uint8_t *to = memory;
    for (size_t r = 0; r < from->rows; r++)
        memcpy(to + (ptrdiff_t)r * stride, from->data[r], from->row_bytes);
}

/* sums [M][N] of 32 bits, a [M][K][4] and b [K][N][4] of bytes: sums[m][n] += the products of
 * a[m][k][i] and b[k][n][i] over k and i. */
void tile_multiply(int sums, int a, int b)
{
    tile *c = named(sums);
    const tile *x = named(a), *w = named(b);
    require(c != x && c != w && x != w, "a tile twice in a product");
    require(c->row_bytes % 4 == 0 && x->row_bytes % 4 == 0 && w->row_bytes % 4 == 0,
            "rows of a product that are not of 32 bits");
    require(c->rows == x->rows, "other rows of sums than of the first factor");
    require(c->row_bytes == w->row_bytes, "other columns of sums than of the second factor");
    require(x->row_bytes / 4 == w->rows, "factors of different K");
    for (size_t m = 0; m < c->rows; m++) {
        for (size_t n = 0; n < c->row_bytes / 4; n++) {
            uint32_t sum; /* wraps around */
            memcpy(&sum, &c->data[m][4 * n], sizeof sum);
            for (size_t k = 0; k < w->rows; k++)
                for (size_t i = 0; i < 4; i++)
                    sum +=
                        (uint32_t)((int8_t)x->data[m][4 * k + i] * (int8_t)w->data[k][4 * n + i]);
            memcpy(&c->data[m][4 * n], &sum, sizeof sum);
        }
        memset(&c->data[m][c->row_bytes], 0, TILE_ROW_BYTES - c->row_bytes);
    }
    registers.multiplied++;
}
