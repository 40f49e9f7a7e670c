/* Linked into static programs only. The name service of glibc loads a library for each source of
 * names that /etc/nsswitch.conf lists; in a static program that is a second libc in the same
 * process, often of another version. The two sources that are part of the static libc do not need
 * it: the files in /etc, and DNS. */
#include <nss.h>

void static_names(void);
__attribute__((constructor)) void static_names(void)
{
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("services", "files");
    __nss_configure_lookup("passwd", "files");
}
