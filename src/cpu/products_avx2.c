/* Integer products for AVX2. */
#if defined(__x86_64__)
#define TABLE bz_products_avx2
#include "cpu/products_256.h"
#else
typedef int bz_no_avx2_products; /* ISO C requires a declaration */
#endif
