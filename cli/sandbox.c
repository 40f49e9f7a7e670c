#include "cli/sandbox.h"

#include "cli/sandbox_gpu.h"

#include <string.h>

#if defined(__linux__)

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- system calls (seccomp) ---------------------------------------------------------------- */

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* Refused whatever their arguments are: starting programs, reaching into others, changing the
 * system, and interfaces of the kernel that had many holes. */
static const unsigned refused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* they look for leaks with it */
    SYS_ptrace,
#endif
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
#if defined(SYS_io_uring_setup)
    SYS_io_uring_setup,
#endif
#if defined(SYS_pidfd_open)
    SYS_pidfd_open,
#endif
#if defined(SYS_pidfd_send_signal)
    SYS_pidfd_send_signal,
#endif
};

enum { N_REFUSED = sizeof refused / sizeof *refused, MAX_FILTER = N_REFUSED * 2 + 60 };

typedef struct filter {
    struct sock_filter code[MAX_FILTER];
    unsigned short n;
} filter;

static void put(filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (f->n < MAX_FILTER) { /* the kernel refuses a filter that is cut off */
        f->code[f->n++] = (struct sock_filter){code, yes, no, k};
    }
}

static void load(filter *f, size_t offset)
{
    put(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(filter *f, uint32_t action)
{
    put(f, BPF_RET | BPF_K, action, 0, 0);
}

#define ARGUMENT(i)   (offsetof(struct seccomp_data, args) + 8 * (i)) /* its lower half */
#define REFUSE(error) (SECCOMP_RET_ERRNO | (error))

/* If the system call is `number` and its argument i fails the test (code, value), it is refused. */
static void check_argument(filter *f, uint32_t number, unsigned i, uint16_t code, uint32_t value,
                           bool refuse_if)
{
    load(f, offsetof(struct seccomp_data, nr));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3);
    load(f, ARGUMENT(i));
    put(f, (uint16_t)(BPF_JMP | code | BPF_K), value, refuse_if ? 0 : 1, refuse_if ? 1 : 0);
    answer(f, REFUSE(EPERM));
}

/* Signals only to this program and its group: a line editor suspends itself with kill(0, ...). */
static void check_kill(filter *f)
{
    load(f, offsetof(struct seccomp_data, nr));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 0, 4);
    load(f, ARGUMENT(0));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0);
    put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)getpid(), 1, 0);
    answer(f, REFUSE(EPERM));
}

static bool filter_calls(void)
{
#if defined(THIS_ARCH)
    static const uint32_t new_namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    filter f = {.n = 0};
    load(&f, offsetof(struct seccomp_data, arch));
    put(&f, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    answer(&f, SECCOMP_RET_KILL_PROCESS);
    load(&f, offsetof(struct seccomp_data, nr));
#if defined(__x86_64__)
    put(&f, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* the x32 numbers of the same calls */
    answer(&f, REFUSE(ENOSYS));
#endif
    for (size_t i = 0; i < N_REFUSED; i++) {
        put(&f, BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        answer(&f, REFUSE(EPERM));
    }
#if defined(SYS_clone3) /* its flags are in memory; the C library then uses clone */
    put(&f, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    answer(&f, REFUSE(ENOSYS));
#endif
    check_argument(&f, SYS_socket, 0, BPF_JEQ, AF_UNIX, false); /* no network */
    check_argument(&f, SYS_clone, 0, BPF_JSET, new_namespaces, true);
    check_argument(&f, SYS_kcmp, 0, BPF_JEQ, (uint32_t)getpid(), false); /* drivers: same file? */
    check_argument(&f, SYS_kcmp, 1, BPF_JEQ, (uint32_t)getpid(), false);
    check_argument(&f, SYS_tgkill, 0, BPF_JEQ, (uint32_t)getpid(), false);
    check_kill(&f);
    check_argument(&f, SYS_ioctl, 1, BPF_JEQ, TIOCSTI, true); /* types into the terminal */
    check_argument(&f, SYS_ioctl, 1, BPF_JEQ, TIOCLINUX, true);
    answer(&f, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {f.n, f.code};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
#else
    return false;
#endif
}

static bool on_gpu(const cli_options *o)
{
    return o->device && strcmp(o->device, "gpu") == 0;
}

/* ---- files (Landlock) ------------------------------------------------------------------------ */

/* As in linux/landlock.h, which older systems lack. */
enum {
    LL_EXECUTE = 1 << 0,
    LL_WRITE_FILE = 1 << 1,
    LL_CHANGE_FOLDER = 0x1FF0, /* remove and make all kinds of entries */
    LL_REMOVE_FILE = 1 << 5,
    LL_MAKE_REG = 1 << 8,
    LL_TRUNCATE = 1 << 14,
    LL_NET = 3,   /* bind and connect TCP */
    LL_SCOPE = 3, /* abstract sockets and signals of other programs */
    LL_RULE_PATH = 1,
    LL_VERSION = 1, /* flag: returns the version */
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

#if defined(SYS_landlock_create_ruleset)

static void allow_path(int rules, const char *path, uint64_t access)
{
    struct ll_path rule = {access, open(path, O_PATH | O_CLOEXEC)};
    if (rule.parent >= 0) { /* else writing there fails, as it would without a sandbox */
        syscall(SYS_landlock_add_rule, rules, LL_RULE_PATH, &rule, 0);
        close(rule.parent);
    }
}

/* A file that the command names may be made in its folder. */
static void allow_output(int rules, const char *file, uint64_t access)
{
    char folder[PATH_MAX];
    const char *slash = file ? strrchr(file, '/') : NULL;
    const size_t n = slash ? (size_t)(slash - file) : 0;
    if (!file || strcmp(file, "-") == 0 || n >= sizeof folder) {
        return;
    }
    memcpy(folder, file, n);
    folder[n] = 0;
    allow_path(rules, !slash ? "." : n ? folder : "/", access);
}

typedef struct gpu_rules {
    int rules;
    uint64_t write;
} gpu_rules;

static void allow_driver(void *user, const char *path, bool folder)
{
    const gpu_rules *g = user;
    const uint64_t file = g->write & (LL_WRITE_FILE | LL_TRUNCATE);
    allow_path(g->rules, path, folder ? g->write : file);
}

static bool confine_files(const cli_options *o, bool saves_anywhere)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);
    if (version < 1) {
        return false;
    }
    const uint64_t write =
        LL_WRITE_FILE | LL_CHANGE_FOLDER | (version >= LL_HAS_TRUNCATE ? LL_TRUNCATE : 0);
    const struct ll_ruleset handled = {
        .fs = LL_EXECUTE | (saves_anywhere ? 0 : write), .net = LL_NET, .scoped = LL_SCOPE};
    const size_t size = version >= LL_HAS_SCOPE ? 24 : version >= LL_HAS_NET ? 16 : 8;
    const int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, size, 0);
    if (rules < 0) {
        return false;
    }
    if (!saves_anywhere) {
        const uint64_t output = write & (LL_WRITE_FILE | LL_MAKE_REG | LL_TRUNCATE);
        allow_path(rules, "/dev/null", LL_WRITE_FILE); /* where a sound library prints */
        allow_output(rules, o->out, output);
        allow_output(rules, o->features, output);
        allow_output(rules, o->trace, output);
        allow_output(rules, o->session, output | LL_REMOVE_FILE); /* and replaced */
        if (on_gpu(o)) {
            sandbox_gpu_paths(allow_driver, &(gpu_rules){rules, write});
        }
    }
    const bool ok = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    return ok;
}

#else

static bool confine_files(const cli_options *o, bool saves_anywhere)
{
    (void)o, (void)saves_anywhere;
    return false;
}

#endif

typedef struct confinement {
    const cli_options *options;
    bool saves_anywhere;
} confinement;

/* Both, as far as the kernel has them; false: not all of it. */
static bool confine(void *user)
{
    const confinement *c = user;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return false;
    }
    const bool files = confine_files(c->options, c->saves_anywhere);
    return filter_calls() && files;
}

/* Drivers differ; one that does not work inside must not be lost by being confined. */
static bool driver_works(confinement *c)
{
    return !on_gpu(c->options) || sandbox_gpu_works(confine, c);
}

#else

typedef struct confinement {
    const cli_options *options;
    bool saves_anywhere;
} confinement;

static bool confine(void *user)
{
    (void)user;
    return false;
}

static bool driver_works(confinement *c)
{
    (void)c;
    return true;
}

#endif

bool sandbox_enter(const cli_options *o, bool saves_anywhere, int *exit_code)
{
    static bool entered;
    const char *mode = o->sandbox ? o->sandbox : "auto";
    const bool on = strcmp(mode, "on") == 0;
    if (!on && strcmp(mode, "auto") != 0 && strcmp(mode, "off") != 0) {
        fprintf(stderr, "bezel: unknown sandbox '%s'; use auto, on or off.\n", mode);
        *exit_code = EXIT_USAGE;
        return false;
    }
    if (entered || strcmp(mode, "off") == 0) {
        return true;
    }
    entered = true;
    confinement c = {o, saves_anywhere};
    const bool works = driver_works(&c);
    if ((!works || !confine(&c)) && on) {
        fprintf(stderr, "bezel: '--sandbox on' is not possible: %s.\n",
                works ? "it needs Linux 5.13 or later with Landlock and seccomp"
                      : "no GPU can be opened inside; 'bezel doctor' says whether there is one");
        *exit_code = EXIT_CANNOT;
        return false;
    }
    return true;
}
