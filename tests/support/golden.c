#include "golden.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *in_folder(const char *variable, const char *usual, const char *name)
{
    static char buffers[8][512];
    static int next;
    const char *folder = getenv(variable);
    char *out = buffers[next++ % 8];
    snprintf(out, sizeof buffers[0], "%s/%s", folder ? folder : usual, name);
    return out;
}

const char *golden_path(const char *name)
{
    return in_folder("BEZEL_GOLDEN", "build/golden", name);
}

const char *model_path(const char *name)
{
    return in_folder("BEZEL_MODELS", "build/models", name);
}

static void give_up(const char *path, const char *why)
{
    printf("FAIL fixture %s: %s\n", path, why);
    exit(1);
}

void golden_open(golden *g, const char *path)
{
    bz_error err = {0};
    uint64_t more;
    if (bz_os_map_file(path, &g->map, &err) != BZ_OK ||
        bz_gguf_parse(&g->gguf, g->map.data, g->map.size, g->map.size, &more, &err) !=
            BZ_GGUF_DONE) {
        give_up(path, err.text);
    }
}

void golden_close(golden *g)
{
    bz_gguf_free(&g->gguf);
    bz_os_unmap(&g->map);
}

static const void *find(const golden *g, size_t *n, const char *format, va_list args)
{
    char name[128];
    vsnprintf(name, sizeof name, format, args);
    const bz_gguf_tensor *t = bz_gguf_find_tensor(&g->gguf, name);
    *n = t ? (size_t)(t->size / 4) : 0;
    return t ? g->map.data + t->offset : NULL;
}

const float *golden_f32(const golden *g, size_t *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const void *p = find(g, n, format, args);
    va_end(args);
    return p;
}

const int32_t *golden_i32(const golden *g, size_t *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const void *p = find(g, n, format, args);
    va_end(args);
    return p;
}

bool quick_run(void)
{
    const char *quick = getenv("BEZEL_QUICK");
    return quick && quick[0];
}

float *read_f32(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        give_up(path, "cannot be read");
    }
    long bytes = ftell(f);
    rewind(f);
    float *x = malloc((size_t)bytes + 4);
    if (!x || fread(x, 1, (size_t)bytes, f) != (size_t)bytes) {
        give_up(path, "cannot be read");
    }
    fclose(f);
    *n = (size_t)bytes / 4;
    return x;
}
