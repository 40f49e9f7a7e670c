/* System calls that the sandbox refuses, by seccomp. */
#include "cli/os_linux.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

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
    SYS_bind, /* a server listens already */
    SYS_listen,
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

/* Sockets: to other machines for downloads, to a display server or a daemon for a driver. A local
 * one could otherwise tell such a daemon to start programs. */
static void check_socket(filter *f, const sandbox_rules *r)
{
    const uint32_t families[] = {AF_INET, AF_INET6, AF_UNIX};
    const unsigned first = r->connects ? 0 : 2, end = r->gpu ? 3 : 2;
    load(f, offsetof(struct seccomp_data, nr));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0,
        (uint8_t)(2 + (end > first ? end - first : 0)));
    load(f, ARGUMENT(0));
    for (unsigned i = first; i < end; i++) {
        put(f, BPF_JMP | BPF_JEQ | BPF_K, families[i], (uint8_t)(end - i), 0);
    }
    answer(f, REFUSE(EPERM));
}

bool sandbox_filter_calls(const sandbox_rules *r)
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
    check_socket(&f, r);
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
    (void)r;
    return false;
#endif
}
