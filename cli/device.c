#include "cli/device.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "bezel_debug.h"

const char *device_default(const cli_options *o)
{
    const char *usual = bz_os_env("BEZEL_DEVICE");
    return o->device ? o->device : usual && usual[0] ? usual : "auto";
}

bool device_find_gpu(char text[DEVICE_REASON])
{
    bz_debug_gpu *gpu = NULL;
    bz_error err = {0};
    bool real = false;
    const char *named = bz_os_env("BEZEL_WEBGPU_LIB");
    if (bz_debug_gpu_open(&gpu, &err) == BZ_OK) {
        const bz_debug_gpu_info info = bz_debug_gpu_get_info(gpu);
        real = strcmp(info.kind, "cpu") != 0;
        snprintf(text, DEVICE_REASON,
                 real ? "%s" : "%s is emulated on the CPU and slower; '--device gpu' uses it",
                 info.adapter);
        bz_debug_gpu_close(gpu);
    } else if (err.code == BZ_NO_WEBGPU && !(named && named[0]) &&
               strncmp(err.text, "No WebGPU library", strlen("No WebGPU library")) == 0) {
        snprintf(text, DEVICE_REASON, "no WebGPU library was found; see 'bezel setup-gpu --help'");
    } else {
        snprintf(text, DEVICE_REASON, "%s", err.text);
        const size_t n = strlen(text);
        if (n && text[n - 1] == '.') {
            text[n - 1] = 0;
        }
    }
    return real;
}
