/* The native device: finds a WebGPU library and the functions in it: the one that BEZEL_WEBGPU_LIB
 * names, else beside the program, in ../lib/bezel from there, in the user's folder of Bezel, and
 * where the system looks for libraries. */
#include "gpu/device/native.h"

#if !defined(__wasm__)

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const usual_names[] = {
#if defined(__APPLE__)
    "libwebgpu_wrapper.dylib",
    "libwebgpu_dawn.dylib",
    "libwebgpu.dylib",
    "libwgpu_native.dylib",
#elif defined(_WIN32)
    "webgpu_wrapper.dll",
    "webgpu_dawn.dll",
    "webgpu.dll",
    "wgpu_native.dll",
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

static bool try_library(gpu *g, const char *path, bz_error *reason)
{
    g->library.file = bz_os_library_open(path, reason);
    if (g->library.file) {
        snprintf(g->library.name, sizeof g->library.name, "%.511s", path);
    }
    return g->library.file != NULL;
}

/* The usual names in a folder. A library that is there but cannot be loaded gives the reason. */
static bool try_folder(gpu *g, const char *folder, bz_error *reason)
{
    for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
        char path[PATH_MAX];
        const int n = snprintf(path, sizeof path, "%s/%s", folder, usual_names[i]);
        if (n > 0 && n < (int)sizeof path && bz_os_file_exists(path)) {
            return try_library(g, path, reason);
        }
    }
    return false;
}

/* Beside the program, where installations put it, and where 'bezel setup-gpu' does. */
static bool try_places(gpu *g, bz_error *reason)
{
    char folder[PATH_MAX], place[PATH_MAX + 16];
    char *slash = bz_os_program_path(folder, sizeof folder) ? strrchr(folder, '/') : NULL;
    if (slash) {
        *slash = 0;
        snprintf(place, sizeof place, "%s/../lib/bezel", folder);
        if (try_folder(g, folder, reason) || try_folder(g, place, reason)) {
            return true;
        }
    }
    if (!bz_os_user_folder(BZ_OS_DATA, folder, sizeof folder)) {
        return false;
    }
    snprintf(place, sizeof place, "%s/webgpu", folder);
    return try_folder(g, place, reason);
}

/* Never in the current folder, where someone else's file may be: macOS looks there too for a name
 * without a path. */
static bool try_system(gpu *g, bz_error *reason)
{
#if defined(__APPLE__)
    bz_fail(reason, BZ_NOT_FOUND, "none is in /usr/local/lib or /opt/homebrew/lib");
    return try_folder(g, "/usr/local/lib", reason) || try_folder(g, "/opt/homebrew/lib", reason);
#else
    for (size_t i = 0; i < sizeof usual_names / sizeof *usual_names; i++) {
        if (try_library(g, usual_names[i], reason)) {
            return true;
        }
    }
    return false;
#endif
}

static bz_status open_library(gpu *g, bz_error *err)
{
    bz_error reason = {0}, of_system = {0};
    const char *path = bz_os_env("BEZEL_WEBGPU_LIB");
    if (path && *path) {
        return try_library(g, path, &reason)
                   ? BZ_OK
                   : bz_fail(err, BZ_NO_WEBGPU,
                             "The WebGPU library named by BEZEL_WEBGPU_LIB cannot be loaded: "
                             "%.220s.",
                             reason.text);
    }
    if (try_places(g, &reason) || try_system(g, &of_system)) {
        return BZ_OK;
    }
    return bz_fail(
        err, BZ_NO_WEBGPU,
        "No WebGPU library was found (%.120s). Set BEZEL_WEBGPU_LIB to a Dawn library such as %s.",
        reason.text[0] ? reason.text : of_system.text, usual_names[0]);
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
