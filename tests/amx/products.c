/* The products for AMX by emulated tiles, in place of the library's. */
#include "base/os.h"

#if defined(BZ_OS_TILES)
#define BZ_EMULATE_TILES
#include "amx/tiles.h"
#endif

#include "cpu/products_amx.c"
