#include "cli/sandbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/os_program.h"
#include "base/text.h"
#include "cli/os_sandbox.h"

/* ---- rules ------------------------------------------------------------------------------------
 */

void sandbox_allow(sandbox_rules *r, const char *path, sandbox_right right)
{
    sandbox_path *more = realloc(r->paths, (r->n_paths + 1) * sizeof *more);
    char *copy = strdup(path);
    r->paths = more ? more : r->paths;
    if (!more || !copy) {
        free(copy);
        r->no_memory = true;
        return;
    }
    r->paths[r->n_paths++] = (sandbox_path){copy, right};
}

void sandbox_allow_system(sandbox_rules *r)
{
    static const char *const places[] = {
        /* libraries, certificates, names of machines */
        "/usr", "/lib", "/lib64", "/nix/store", "/gnu/store", "/etc", "/run/systemd/resolve",
        "/run/NetworkManager", "/run/resolvconf", "/run/connman", "/var/lib/ca-certificates",
        /* the machine, and this process */
        "/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/sys",
        "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm", "/dev/zero", "/dev/random",
        "/dev/urandom"};
    static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        sandbox_allow(r, places[i], SANDBOX_READ);
    }
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *path = bz_os_env(variables[i]);
        if (path && path[0]) {
            sandbox_allow(r, path, SANDBOX_READ);
        }
    }
    sandbox_allow(r, "/dev/null", SANDBOX_OPEN); /* where a sound library prints */
}

static void free_paths(sandbox_rules *r)
{
    for (size_t i = 0; i < r->n_paths; i++) {
        free(r->paths[i].path);
    }
    free(r->paths);
    r->paths = NULL;
    r->n_paths = 0;
}

/* A file that the command names may be made in its folder. */
static void allow_output(sandbox_rules *r, const char *file, sandbox_right right)
{
    const char *slash = file ? bz_os_last_slash(file) : NULL;
    if (!file || strcmp(file, "-") == 0) {
        return;
    }
    char *folder = slash ? bz_text_copy(file, (size_t)(slash - file) + 1) : strdup(".");
    if (folder) {
        sandbox_allow(r, folder, right);
    }
    r->no_memory |= !folder;
    free(folder);
}

/* ---- entering ---------------------------------------------------------------------------------
 */

static bool enter(const char *mode, const char *device, sandbox_rules *r, int *exit_code)
{
    static bool entered;
    const bool on = mode && strcmp(mode, "on") == 0;
    if (!on && mode && strcmp(mode, "auto") != 0 && strcmp(mode, "off") != 0) {
        fprintf(stderr, "bezel: unknown sandbox '%s'; use auto, on or off.\n", mode);
        *exit_code = EXIT_USAGE;
        return false;
    }
    if (entered || (mode && strcmp(mode, "off") == 0)) {
        return true;
    }
    if (r->no_memory) {
        fprintf(stderr, "bezel: no memory for the rules of the sandbox.\n");
        *exit_code = EXIT_CANNOT;
        return false;
    }
    entered = true;
    const bool works = sandbox_driver_works(device, r);
    if ((!works || !sandbox_confine(r)) && on) {
        fprintf(stderr, "bezel: '--sandbox on' is not possible: %s.\n",
                works ? sandbox_needs
                      : "no GPU can be opened inside; 'bezel doctor' says whether there is one");
        *exit_code = EXIT_CANNOT;
        return false;
    }
    return true;
}

bool sandbox_enter_rules(const char *mode, const char *device, sandbox_rules *r, int *exit_code)
{
    const bool ok = enter(mode, device, r, exit_code);
    free_paths(r);
    return ok;
}

bool sandbox_enter(const cli_options *o, bool saves_anywhere, int *exit_code)
{
    sandbox_rules r = {.writes_anything = saves_anywhere};
    sandbox_allow(&r, "/dev/null", SANDBOX_OPEN);
    allow_output(&r, o->out, SANDBOX_MAKE);
    allow_output(&r, o->features, SANDBOX_MAKE);
    allow_output(&r, o->trace, SANDBOX_MAKE);
    allow_output(&r, o->session, SANDBOX_REPLACE);
    allow_output(&r, o->index, SANDBOX_REPLACE);
    return sandbox_enter_rules(o->sandbox, o->device, &r, exit_code);
}
