/* The instructions of AMX-TILE and AMX-INT8 in plain C, for processors without them.
 *
 * Tile registers belong to a thread, as in a processor. What a processor answers with a fault, and
 * what it leaves undefined, ends the program with a message, or goes to tile_catch. Included before
 * a source with intrinsics, this takes their place. */
#ifndef BZ_TEST_AMX_TILES_H
#define BZ_TEST_AMX_TILES_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TILES = 8, TILE_ROWS = 16, TILE_ROW_BYTES = 64 };

void tile_loadconfig(const void *config);
void tile_release(void);
void tile_zero(int tile);
void tile_load(int tile, const void *memory, ptrdiff_t stride);
void tile_store(int tile, void *memory, ptrdiff_t stride);
void tile_multiply(int sums, int a, int b); /* tdpbssd: sums += a * b, signed bytes */

/* Whether this thread has configured tiles, and how many products it has computed. */
bool tiles_configured(void);
uint64_t tiles_multiplied(void);

/* If not NULL: this thread's next fault jumps there, once, and sets tile_fault_reason. */
extern _Thread_local jmp_buf *tile_catch;
extern _Thread_local const char *tile_fault_reason;

#if defined(BZ_EMULATE_TILES)
#include <immintrin.h>

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#define _tile_loadconfig                   tile_loadconfig
#define _tile_release                      tile_release
#define _tile_zero(tile)                   tile_zero(tile)
#define _tile_loadd(tile, memory, stride)  tile_load(tile, memory, stride)
#define _tile_stored(tile, memory, stride) tile_store(tile, memory, stride)
#define _tile_dpbssd(sums, a, b)           tile_multiply(sums, a, b)
#endif

#endif
