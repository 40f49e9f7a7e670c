/* Integer products (src/cpu/products.h) of every table that this machine runs, and which table is
 * taken if nothing is known of it. */
#include "cpu/products.h"

#include "support/check.h"
#include "support/products.h"

int main(void)
{
    begin("the best table is the first");
    const bz_kernels *best = bz_kernels_best(NULL);
    CHECK(best && bz_kernels_best(best->name) == best);
    for (size_t i = 0; i < bz_kernels_count(); i++) {
        const bz_kernels *kernels = bz_kernels_at(i);
        CHECK(bz_kernels_best(kernels->name) == kernels);
        if (kernels->products)
            test_products(kernels);
    }
    return finish();
}
