/* Selects the kernels for this processor. */
#include "cpu/kernels.h"

#include <string.h>

#include "base/os.h"
#include "cpu/products.h"

bool bz_type_has_min(bz_type type)
{
    return type == BZ_Q4_1 || type == BZ_Q5_1 || type == BZ_Q2_K || type == BZ_Q4_K ||
           type == BZ_Q5_K;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return bz_os_cpu_has("avx2") && bz_os_cpu_has("fma") && bz_os_cpu_has("f16c");
}

static bool has_avx512(void)
{
    return has_avx2() && bz_os_cpu_has("avx512f") && bz_os_cpu_has("avx512bw") &&
           bz_os_cpu_has("avx512vl") && bz_os_cpu_has("avx512dq") && bz_os_cpu_has("avx512vnni");
}

static bool has_avx512bf16(void)
{
    return has_avx512() && bz_os_cpu_has("avx512bf16");
}

#if defined(BZ_OS_TILES)
/* Every processor with AMX for int8 has BF16 as well. */
static bool has_amx(void)
{
    return has_avx512bf16() && bz_os_cpu_has("amxint8") && bz_os_allow_tiles();
}
#endif
#endif

/* Fills tables[] with those that this processor supports, best first. */
static size_t supported(const bz_kernels *tables[BZ_KERNEL_TABLES])
{
    size_t count = 0;
#if defined(__x86_64__)
#if defined(BZ_OS_TILES)
    if (has_amx())
        tables[count++] = &bz_kernels_amx;
#endif
    if (has_avx512bf16())
        tables[count++] = &bz_kernels_avx512bf16;
    if (has_avx512())
        tables[count++] = &bz_kernels_avx512;
    if (has_avx2() && bz_os_cpu_has("avxvnni"))
        tables[count++] = &bz_kernels_avxvnni;
    if (has_avx2())
        tables[count++] = &bz_kernels_avx2;
#elif defined(__aarch64__)
    if (bz_os_cpu_has("dotprod") && bz_os_cpu_has("i8mm"))
        tables[count++] = &bz_kernels_i8mm;
    if (bz_os_cpu_has("dotprod"))
        tables[count++] = &bz_kernels_dotprod;
    tables[count++] = &bz_kernels_neon;
#elif defined(__wasm_simd128__)
    tables[count++] = &bz_kernels_wasm;
#endif
    tables[count++] = &bz_kernels_plain;
    return count;
}

size_t bz_kernels_count(void)
{
    const bz_kernels *tables[BZ_KERNEL_TABLES];
    return supported(tables);
}

const bz_kernels *bz_kernels_at(size_t i)
{
    const bz_kernels *tables[BZ_KERNEL_TABLES];
    return i < supported(tables) ? tables[i] : NULL;
}

/* Whether a table may be taken without being asked for. That of AMX was never timed, so it has to
 * prove itself on this processor; it differs from the next one in its products only. */
static bool pays(const bz_kernels *table)
{
#if defined(BZ_OS_TILES)
    if (table == &bz_kernels_amx)
        return bz_products_pay(&bz_products_amx, &bz_products_avx512);
#endif
    (void)table;
    return true;
}

const bz_kernels *bz_kernels_best(const char *name)
{
    const bz_kernels *tables[BZ_KERNEL_TABLES];
    const size_t count = supported(tables);
    if (!name)
        return pays(tables[0]) ? tables[0] : tables[1];
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, tables[i]->name) == 0)
            return tables[i];
    return NULL;
}
