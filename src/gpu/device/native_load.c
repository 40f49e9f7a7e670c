/* The native device: finds a WebGPU library and the functions in it.
 *
 * Environment: BEZEL_WEBGPU_LIB, the library to load */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <stdio.h>
#include <string.h>

static const char *const usual_names[] = {
#if defined(__APPLE__)
    "libwebgpu_dawn.dylib",
    "libwebgpu.dylib",
    "libwgpu_native.dylib",
#else
    "libwebgpu_wrapper.so",
    "libwebgpu_dawn.so",
    "libwebgpu.so",
    "libwgpu_native.so",
#endif
};

static bool has(const gpu *g, const char *name)
{
    return bz_os_library_symbol(g->library.file, name) != NULL;
}

static bz_status open_library(gpu *g, bz_error *err)
{
    bz_error reason = {0};
    const char *path = bz_os_env("BEZEL_WEBGPU_LIB");
    if (path && *path) {
        snprintf(g->library.name, sizeof g->library.name, "%s", path);
        g->library.file = bz_os_library_open(path, &reason);
        if (!g->library.file) {
            return bz_fail(err, BZ_NO_WEBGPU,
                           "The WebGPU library named by BEZEL_WEBGPU_LIB cannot be loaded: %.220s.",
                           reason.text);
        }
        return BZ_OK;
    }
    for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
        g->library.file = bz_os_library_open(usual_names[i], &reason);
        if (g->library.file) {
            snprintf(g->library.name, sizeof g->library.name, "%s", usual_names[i]);
            return BZ_OK;
        }
    }
    return bz_fail(
        err, BZ_NO_WEBGPU,
        "No WebGPU library was found (%.120s). Set BEZEL_WEBGPU_LIB to a Dawn library such as %s.",
        reason.text, usual_names[0]);
}

bz_status gpu_native_load(gpu *g, bz_error *err)
{
    bz_status status = open_library(g, err);
    if (status != BZ_OK) {
        return status;
    }
    const char *name = g->library.name;
    /* wgpu-native lacks asynchronous pipeline creation and compilation info: it aborts there. */
    if (has(g, "wgpuGetVersion")) {
        return bz_fail(err, BZ_NO_WEBGPU,
                       "%.150s is wgpu-native, which cannot compile in the background. Set "
                       "BEZEL_WEBGPU_LIB to a "
                       "Dawn library instead.",
                       name);
    }
    /* Libraries with this function have the struct layouts of webgpu_abi.h; older ones do not. */
    const char *missing = has(g, "wgpuBufferReadMappedRange") ? NULL : "BufferReadMappedRange";
#define LOOK_UP(result, function, arguments)                                                       \
    if (!missing) {                                                                                \
        g->fn.function =                                                                           \
            (result(*) arguments)bz_os_library_symbol(g->library.file, "wgpu" #function);          \
        missing = g->fn.function ? NULL : #function;                                               \
    }
    WGPU_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (missing) {
        return bz_fail(err, BZ_NO_WEBGPU,
                       "%.150s is not a WebGPU library of 2025 or later: it lacks wgpu%s. Set "
                       "BEZEL_WEBGPU_LIB to "
                       "another one.",
                       name, missing);
    }
    g->library.dawn = has(g, "wgpuDeviceTick");
    g->library.new_numbers = has(g, "wgpuGetInstanceFeatures");
    return BZ_OK;
}

#endif
