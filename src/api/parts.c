/* bezel.h: names of a split model's files. */
#include "bezel.h"
#include "file/files.h"

uint32_t bz_model_part_count(const char *path)
{
    uint32_t count = 1;
    return bz_split_name(path, NULL, &count) ? count : 1;
}

bool bz_model_part_path(const char *path, uint32_t number, char *out, size_t size)
{
    return bz_split_sibling(path, number, out, size);
}
