/* bezel setup-gpu: fetches a WebGPU library into the user's folder. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "base/sha256.h"
#include "cli/device.h"
#include "cli/interrupt.h"
#include "cli/os.h"
#include "cli/output.h"
#include "cli/term.h"
#include "store/pull.h"

/* Dawn as npm has it, for this system. Another archive than the one with this digest is refused. */
#if defined(__linux__) && defined(__x86_64__)
#define PACKAGE "bun-webgpu-linux-x64"
#define VERSION "0.1.7"
#define LIBRARY "libwebgpu_wrapper.so"
static const char digest[] = "8badfecdad4e726ac12be4f29771f4cbd7ce7683b4418316a547c5bda94fb798";
#elif defined(__APPLE__) && defined(__aarch64__)
#define PACKAGE "bun-webgpu-darwin-arm64"
#define VERSION "0.1.5"
#define LIBRARY "libwebgpu_wrapper.dylib"
static const char digest[] = "9df19c84e89cb739d3e75c10116ae14c21435555e6cb32dbcb654d4d1e95975d";
#elif defined(__APPLE__) && defined(__x86_64__)
#define PACKAGE "bun-webgpu-darwin-x64"
#define VERSION "0.1.5"
#define LIBRARY "libwebgpu_wrapper.dylib"
static const char digest[] = "e2bedd5ab803f2c8b0615ddbf57e65173c52bfa8f88f35493d8cded3ba033b60";
#elif defined(_WIN32) && defined(__x86_64__)
#define PACKAGE "bun-webgpu-win32-x64"
#define VERSION "0.1.5"
#define LIBRARY "webgpu_wrapper.dll"
static const char digest[] = "a5837dcd2ad4c4f96d561e945408894617d23f476cc10ba8142a0c26d2d59d76";
#else
#define PACKAGE ""
#define VERSION ""
#define LIBRARY ""
static const char digest[] = "";
#endif

enum { MAX_ARCHIVE = 64 << 20, MAX_SETTINGS = 1 << 20 };

/* ---- where from -------------------------------------------------------------------------------
 */

/* The value of "registry" in npm's settings; the caller frees it. NULL: none. */
static char *registry_in(const char *path)
{
    char *text = NULL, *found = NULL, *rest = NULL;
    size_t n;
    if (bz_os_read_small(path, MAX_SETTINGS, &text, &n, NULL) != BZ_OK) {
        return NULL;
    }
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        static const char key[] = "registry";
        line += strspn(line, " \t");
        if (strncmp(line, key, sizeof key - 1) == 0) {
            const char *value = line + sizeof key - 1;
            value += strspn(value, " \t");
            if (*value == '=') {
                value += 1 + strspn(value + 1, " \t\"");
                const size_t len = strcspn(value, " \t\"");
                free(found);
                found = malloc(len + 1);
                if (found) {
                    memcpy(found, value, len);
                    found[len] = 0;
                }
            }
        }
    }
    free(text);
    return found;
}

/* The registry that the command names, else npm's own; the caller frees it. NULL: none. */
static char *find_registry(const cli_options *o)
{
    static const char *const variables[] = {"npm_config_registry", "NPM_CONFIG_REGISTRY"};
    const char *given = o->registry, *home = bz_os_home(), *file = NULL;
    char path[PATH_MAX];
    for (size_t i = 0; !given && i < sizeof variables / sizeof *variables; i++) {
        const char *value = bz_os_env(variables[i]);
        given = value && value[0] ? value : NULL;
    }
    if (given) {
        return strdup(given);
    }
    file = bz_os_env("NPM_CONFIG_USERCONFIG");
    if (!file || !file[0]) {
        const int n = home ? snprintf(path, sizeof path, "%s/.npmrc", home) : -1;
        file = n > 0 && n < (int)sizeof path ? path : NULL;
    }
    return file ? registry_in(file) : NULL;
}

static bool is_cancelled(void *user)
{
    (void)user;
    return interrupt_stop();
}

static bz_status download(const cli_options *o, char **bytes, size_t *n, bz_error *err)
{
    char url[2048];
    char *registry = find_registry(o);
    if (!registry) {
        return bz_fail(err, BZ_BAD_REQUEST,
                       "No registry of npm packages is known; give its address with --registry "
                       "('npm config get registry' prints npm's).");
    }
    size_t len = strlen(registry);
    len -= len && registry[len - 1] == '/';
    const int k = snprintf(url, sizeof url, "%.*s/%s/-/%s-%s.tgz", (int)len, registry, PACKAGE,
                           PACKAGE, VERSION);
    free(registry);
    if (k < 0 || k >= (int)sizeof url) {
        return bz_fail(err, BZ_BAD_REQUEST, "The address of the registry is too long.");
    }
    if (!o->quiet) {
        fprintf(stderr, "bezel: fetching %s\n", url);
    }
    term_busy("fetching the WebGPU library");
    const bz_status status = bz_store_get(
        &(bz_get_options){.url = url, .max = MAX_ARCHIVE, .is_cancelled = is_cancelled}, bytes, n,
        err);
    term_idle();
    return status;
}

static bz_status read_archive(const cli_options *o, char **bytes, size_t *n, bz_error *err)
{
    bz_error why = {0};
    if (o->model[0]) {
        const bz_status status = bz_os_read_small(o->model, MAX_ARCHIVE, bytes, n, &why);
        return status == BZ_OK ? BZ_OK : bz_fail(err, status, "%.300s: %s.", o->model, why.text);
    }
    if (!bz_store_can_pull()) {
        return bz_fail(err, BZ_UNSUPPORTED_MODEL,
                       "This program was built without libcurl and cannot download. Fetch the "
                       "package with 'npm pack " PACKAGE "@" VERSION
                       "', then give its file: 'bezel setup-gpu FILE'.");
    }
    return download(o, bytes, n, err);
}

static bz_status check(const cli_options *o, const char *bytes, size_t n, bz_error *err)
{
    uint8_t hash[BZ_SHA256_BYTES];
    char text[BZ_SHA256_TEXT];
    bz_sha256 sha;
    bz_sha256_begin(&sha);
    bz_sha256_add(&sha, bytes, n);
    bz_sha256_end(&sha, hash);
    bz_sha256_text(hash, text);
    return strcmp(text, digest) == 0
               ? BZ_OK
               : bz_fail(err, BZ_CHECKSUM,
                         "%.300s is not version " VERSION " of " PACKAGE
                         ": its SHA-256 digest is %.12s..., not %.12s.... Nothing was installed.",
                         o->model[0] ? o->model : "What the registry sent", text, digest);
}

/* ---- where to ---------------------------------------------------------------------------------
 */

static void make_folders(char *path)
{
    for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = 0;
        bz_os_make_folder(path, true); /* it may exist */
        *p = '/';
    }
}

/* Unpacks beside the library's place and renames: what is there is whole, or as before. */
static bz_status install(const char *bytes, size_t n, char path[PATH_MAX], bz_error *err)
{
    char folder[PATH_MAX - 64], beside[PATH_MAX], archive[PATH_MAX], unpacked[PATH_MAX];
    bz_os_writer *w = NULL;
    if (!bz_os_user_folder(BZ_OS_DATA, folder, sizeof folder)) {
        return bz_fail(err, BZ_BAD_FILE,
                       "The user's folder is not known, or its path is too long.");
    }
    snprintf(path, PATH_MAX, "%s/webgpu/%s", folder, LIBRARY);
    snprintf(beside, sizeof beside, "%s/webgpu/new", folder);
    snprintf(archive, sizeof archive, "%s/webgpu/new/a.tgz", folder);
    snprintf(unpacked, sizeof unpacked, "%s/webgpu/new/%s", folder, LIBRARY);
    make_folders(archive);
    bz_status status = bz_os_writer_open(&w, archive, err);
    if (status == BZ_OK) {
        status = bz_os_writer_close(w, bz_os_writer_put(w, bytes, n), err);
    }
    if (status == BZ_OK && !cli_os_unpack(archive, beside, "package/" LIBRARY)) {
        status = bz_fail(err, BZ_BAD_FILE,
                         "The archive cannot be unpacked: the program tar is missing, or the disk "
                         "is full.");
    }
    if (status == BZ_OK && !bz_os_replace(unpacked, path)) {
        status = bz_fail(err, BZ_BAD_FILE, "Cannot write %.300s: %s.", path, strerror(errno));
    }
    bz_os_remove(archive);
    bz_os_remove(unpacked);
    bz_os_remove_folder(beside);
    return status;
}

/* ---- the verb ---------------------------------------------------------------------------------
 */

static int run(int argc, char **argv)
{
    cli_options o = {.model = ""};
    bz_error err = {0};
    char *bytes = NULL, path[PATH_MAX], text[DEVICE_REASON];
    size_t n = 0;
    const int code = cli_parse(&cli_setup_gpu_verb, argc, argv, "5q", 1, &o);
    if (code != EXIT_OK || o.help) {
        return code;
    }
    if (!PACKAGE[0]) {
        fprintf(stderr, "bezel: there is no package with a WebGPU library for this system; build "
                        "Dawn and set BEZEL_WEBGPU_LIB to its path.\n");
        return EXIT_CANNOT;
    }
    if (o.model[0] && o.registry) {
        return cli_usage_error("setup-gpu", "give a file or '--registry', not both.");
    }
    interrupt_catch(true);
    bz_status status = read_archive(&o, &bytes, &n, &err);
    status = status == BZ_OK ? check(&o, bytes, n, &err) : status;
    status = status == BZ_OK ? install(bytes, n, path, &err) : status;
    free(bytes);
    if (status != BZ_OK) {
        return cli_error(&err);
    }
    printf("Installed %s\n", path);
    if (cli_flush() != EXIT_OK) {
        return EXIT_FAILED;
    }
    const bool gpu = device_find_gpu(text);
    fprintf(stderr, gpu ? "bezel: the GPU is %s.\n" : "bezel: models still run on the CPU: %s.\n",
            text);
    return EXIT_OK;
}

const cli_verb cli_setup_gpu_verb = {
    "setup-gpu", run, "fetch the library that a GPU needs",
    "Usage: bezel setup-gpu [FILE] [options]\n\n"
    "  bezel setup-gpu\n"
    "  bezel setup-gpu --registry https://registry.example\n\n"
    "Bezel uses a GPU through a WebGPU library, Dawn. This fetches it from npm's registry, as the\n"
    "package " PACKAGE " " VERSION ", checks its SHA-256 digest, and installs it in the\n"
    "user's folder (~/.local/share/bezel/webgpu; on Windows %LOCALAPPDATA%\\bezel\\webgpu). Where\n"
    "the registry is comes from --registry, npm_config_registry, or ~/.npmrc. FILE is the "
    "package's\n"
    "archive, as 'npm pack' fetches it; then nothing is downloaded.\n\n"
    "The library is searched here: the path in BEZEL_WEBGPU_LIB; the folder of the program;\n"
    "../lib/bezel from there; the user's folder; the system's libraries. 'bezel doctor' says "
    "which\n"
    "one is used.\n\n"
    "      --registry URL  the registry of npm packages\n"
    "  -q, --quiet         print no progress\n"};
