/* Checks of integer products (src/cpu/products.h). */
#ifndef BZ_TEST_PRODUCTS_H
#define BZ_TEST_PRODUCTS_H

#include "cpu/kernels.h"

/* The products of a table: against sums in double, and bit by bit one activation row against
 * several, and against the better tables of this machine with as many lanes. Buffers have the exact
 * size. */
void test_products(const bz_kernels *kernels);

#endif
