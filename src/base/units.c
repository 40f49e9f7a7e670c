/* Numbers with units: three significant digits. */
#include "base/units.h"

#include <stdio.h>

static const char *scaled(uint64_t value, const char *const *units, int n_units,
                          char buf[BZ_UNITS_MAX])
{
    if (value < 1000) {
        snprintf(buf, BZ_UNITS_MAX, "%u%s", (unsigned)value, units[0]);
        return buf;
    }
    double v = (double)value;
    int unit = 0;
    while (v >= 999.5 && unit + 1 < n_units) { /* 999.7 would be printed as 1000 */
        v /= 1000;
        unit++;
    }
    snprintf(buf, BZ_UNITS_MAX, "%.*f%s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
    return buf;
}

const char *bz_bytes_text(uint64_t bytes, char buf[BZ_UNITS_MAX])
{
    static const char *const units[] = {" B", " kB", " MB", " GB", " TB", " PB", " EB"};
    return scaled(bytes, units, 7, buf);
}

const char *bz_count_text(uint64_t count, char buf[BZ_UNITS_MAX])
{
    static const char *const units[] = {"", " k", " M", " B", " T"};
    return scaled(count, units, 5, buf);
}
