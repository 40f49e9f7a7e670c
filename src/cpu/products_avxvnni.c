/* Integer products for AVX-VNNI: processors with AVX2 and this one instruction of AVX-512. */
#if defined(__x86_64__)
#define VNNI  1
#define TABLE bz_products_avxvnni
#include "cpu/products_256.h"
#else
typedef int bz_no_avxvnni_products; /* ISO C requires a declaration */
#endif
