/* Files that may be read and written inside the sandbox, by Landlock. */
#include "cli/os_linux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/sandbox_gpu.h"

#if defined(SYS_landlock_create_ruleset)

/* As in linux/landlock.h, which older systems lack. */
enum {
    LL_EXECUTE = 1 << 0,
    LL_WRITE_FILE = 1 << 1,
    LL_READ_FILE = 1 << 2,
    LL_READ_DIR = 1 << 3,
    LL_CHANGE_FOLDER = 0x1FF0, /* remove and make all kinds of entries */
    LL_REMOVE_DIR = 1 << 4,
    LL_REMOVE_FILE = 1 << 5,
    LL_MAKE_DIR = 1 << 7,
    LL_MAKE_REG = 1 << 8,
    LL_REFER = 1 << 13, /* rename from folder to folder */
    LL_TRUNCATE = 1 << 14,
    LL_BIND = 1,
    LL_CONNECT = 2,
    LL_SCOPE = 3, /* abstract sockets and signals of other programs */
    LL_RULE_PATH = 1,
    LL_VERSION = 1, /* flag: returns the version */
    LL_HAS_REFER = 2,
    LL_HAS_TRUNCATE = 3,
    LL_HAS_NET = 4,
    LL_HAS_SCOPE = 6
};

struct ll_ruleset {
    uint64_t fs, net, scoped;
};
struct ll_path {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

typedef struct ruleset {
    int fd;
    uint64_t handled; /* what is refused unless a rule allows it */
} ruleset;

static const uint64_t of_right[] = {
    [SANDBOX_READ] = LL_READ_FILE | LL_READ_DIR,
    [SANDBOX_OPEN] = LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE,
    [SANDBOX_MAKE] = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_MAKE_REG | LL_TRUNCATE,
    [SANDBOX_REPLACE] =
        LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_MAKE_REG | LL_TRUNCATE | LL_REMOVE_FILE,
    [SANDBOX_CHANGE] = LL_READ_FILE | LL_READ_DIR | LL_WRITE_FILE | LL_MAKE_REG | LL_TRUNCATE |
                       LL_REMOVE_FILE | LL_MAKE_DIR | LL_REMOVE_DIR | LL_REFER};

/* What cannot be opened fails when it is used, as it would without a sandbox. */
static void allow(const ruleset *rules, const char *path, sandbox_right right)
{
    struct stat s;
    struct ll_path rule = {of_right[right] & rules->handled, open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent < 0) {
        return;
    }
    if (fstat(rule.parent, &s) == 0 && !S_ISDIR(s.st_mode)) {
        rule.allowed &= LL_READ_FILE | LL_WRITE_FILE | LL_TRUNCATE;
    }
    if (rule.allowed) {
        syscall(SYS_landlock_add_rule, rules->fd, LL_RULE_PATH, &rule, 0);
    }
    close(rule.parent);
}

static void allow_driver(void *user, const char *path, bool folder)
{
    allow(user, path, folder ? SANDBOX_CHANGE : SANDBOX_OPEN);
}

bool sandbox_confine_files(const sandbox_rules *r)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);
    if (version < 1) {
        return false;
    }
    const uint64_t write = LL_WRITE_FILE | LL_CHANGE_FOLDER |
                           (version >= LL_HAS_REFER ? LL_REFER : 0) |
                           (version >= LL_HAS_TRUNCATE ? LL_TRUNCATE : 0);
    const struct ll_ruleset attributes = {.fs = LL_EXECUTE | (r->writes_anything ? 0 : write) |
                                                (r->reads_listed ? LL_READ_FILE | LL_READ_DIR : 0),
                                          .net = LL_BIND | (r->connects ? 0 : LL_CONNECT),
                                          .scoped = LL_SCOPE};
    const size_t size = version >= LL_HAS_SCOPE ? 24 : version >= LL_HAS_NET ? 16 : 8;
    ruleset rules = {(int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0),
                     attributes.fs};
    if (rules.fd < 0) {
        return false;
    }
    for (size_t i = 0; i < r->n_paths; i++) {
        allow(&rules, r->paths[i].path, r->paths[i].right);
    }
    if (r->gpu) {
        sandbox_gpu_paths(allow_driver, &rules);
    }
    const bool ok = syscall(SYS_landlock_restrict_self, rules.fd, 0) == 0;
    close(rules.fd);
    return ok;
}

#else

bool sandbox_confine_files(const sandbox_rules *r)
{
    (void)r;
    return false;
}

#endif
