/*
 * Between a process and the kernel: counts the calls by which it changes files below one folder, and at the n-th of
 * them kills the process, or lets the call fail as a full or broken disk would. Loaded with LD_PRELOAD, so that nothing
 * of the program knows; SQLite's calls are counted like our own.
 *
 * `cut_arm` sets what happens and where; `cut_calls` says how many calls there were since.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL, TORN, FAIL, STOP };

static char prefix[4096];
static int armed, mode, number, sticky;
static long at, calls;

void cut_arm(const char *below, int how, long when, int error, int for_good)
{
    snprintf(prefix, sizeof prefix, "%s", below);
    mode = how;
    at = when;
    number = error;
    sticky = for_good;
    __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
    armed = 1;
}

void cut_disarm(void) { armed = 0; }

long cut_calls(void) { return calls; }

/* CUT="how when errno sticky prefix", for a command that is started from a shell. */
__attribute__((constructor)) static void from_environment(void)
{
    const char *told = getenv("CUT");
    int how, error, for_good, used;
    long when;
    if (told && sscanf(told, "%d %ld %d %d %n", &how, &when, &error, &for_good, &used) == 4)
        cut_arm(told + used, how, when, error, for_good);
}

static int below(int dirfd, const char *path)
{
    char link[64], base[4096];
    if (path && path[0] == '/')
        return strncmp(path, prefix, strlen(prefix)) == 0;
    if (dirfd == AT_FDCWD)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd);
    ssize_t length = readlink(link, base, sizeof base - 1);
    if (length <= 0)
        return 0;
    base[length] = 0;
    return strncmp(base, prefix, strlen(prefix)) == 0;
}

/* 1: this call is the one, and fails with errno set; 2: it shall be torn, then the process dies. */
static int cut(int dirfd, const char *path)
{
    if (!armed || !below(dirfd, path))
        return 0;
    long now = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (mode == COUNT || now < at || (now > at && !(mode == FAIL && sticky)))
        return 0;
    if (mode == KILL)
        kill(getpid(), SIGKILL);
    if (mode == TORN)
        return 2;
    if (mode == STOP) {
        kill(getpid(), SIGSTOP);
        return 0;
    }
    errno = number;
    return 1;
}

#define REAL(result, name, ...)                                                                                        \
    static result (*real)(__VA_ARGS__);                                                                                \
    if (!real)                                                                                                         \
        real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define DIES(dirfd, path)                                                                                              \
    do {                                                                                                               \
        int why = cut(dirfd, path);                                                                                    \
        if (why == 1)                                                                                                  \
            return -1;                                                                                                 \
        if (why == 2)                                                                                                  \
            kill(getpid(), SIGKILL);                                                                                   \
    } while (0)

#define WRITES(flags) (((flags)&O_ACCMODE) != O_RDONLY)

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        REAL(int, name, const char *, int, ...);                                                                       \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t bits = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(more, mode_t) : 0;                                    \
        va_end(more);                                                                                                  \
        if (WRITES(flags))                                                                                             \
            DIES(AT_FDCWD, path);                                                                                      \
        return real(path, flags, bits);                                                                                \
    }
#define OPENAT(name)                                                                                                   \
    int name(int dirfd, const char *path, int flags, ...)                                                              \
    {                                                                                                                  \
        REAL(int, name, int, const char *, int, ...);                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode_t bits = (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(more, mode_t) : 0;                                    \
        va_end(more);                                                                                                  \
        if (WRITES(flags))                                                                                             \
            DIES(dirfd, path);                                                                                         \
        return real(dirfd, path, flags, bits);                                                                         \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(ssize_t, write, int, const void *, size_t);
    int why = cut(fd, NULL);
    if (why == 1)
        return -1;
    if (why == 2) {
        real(fd, data, size / 2);
        kill(getpid(), SIGKILL);
    }
    return real(fd, data, size);
}

#define PWRITE(name, offset_t)                                                                                         \
    ssize_t name(int fd, const void *data, size_t size, offset_t offset)                                               \
    {                                                                                                                  \
        REAL(ssize_t, name, int, const void *, size_t, offset_t);                                                      \
        int why = cut(fd, NULL);                                                                                       \
        if (why == 1)                                                                                                  \
            return -1;                                                                                                 \
        if (why == 2) {                                                                                                \
            real(fd, data, size / 2, offset);                                                                          \
            kill(getpid(), SIGKILL);                                                                                   \
        }                                                                                                              \
        return real(fd, data, size, offset);                                                                           \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define ONE_FD(name)                                                                                                   \
    int name(int fd)                                                                                                   \
    {                                                                                                                  \
        REAL(int, name, int);                                                                                          \
        DIES(fd, NULL);                                                                                                \
        return real(fd);                                                                                               \
    }
ONE_FD(fsync)
ONE_FD(fdatasync)

int ftruncate(int fd, off_t size)
{
    REAL(int, ftruncate, int, off_t);
    DIES(fd, NULL);
    return real(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    REAL(int, ftruncate64, int, off64_t);
    DIES(fd, NULL);
    return real(fd, size);
}

int fchmod(int fd, mode_t bits)
{
    REAL(int, fchmod, int, mode_t);
    DIES(fd, NULL);
    return real(fd, bits);
}

int rename(const char *from, const char *to)
{
    REAL(int, rename, const char *, const char *);
    DIES(AT_FDCWD, to);
    return real(from, to);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    REAL(int, renameat, int, const char *, int, const char *);
    DIES(to_fd, to);
    return real(from_fd, from, to_fd, to);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
    DIES(to_fd, to);
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int mkdir(const char *path, mode_t bits)
{
    REAL(int, mkdir, const char *, mode_t);
    DIES(AT_FDCWD, path);
    return real(path, bits);
}

int mkdirat(int dirfd, const char *path, mode_t bits)
{
    REAL(int, mkdirat, int, const char *, mode_t);
    DIES(dirfd, path);
    return real(dirfd, path, bits);
}

int unlink(const char *path)
{
    REAL(int, unlink, const char *);
    DIES(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int dirfd, const char *path, int flags)
{
    REAL(int, unlinkat, int, const char *, int);
    DIES(dirfd, path);
    return real(dirfd, path, flags);
}

int rmdir(const char *path)
{
    REAL(int, rmdir, const char *);
    DIES(AT_FDCWD, path);
    return real(path);
}

int symlinkat(const char *target, int dirfd, const char *path)
{
    REAL(int, symlinkat, const char *, int, const char *);
    DIES(dirfd, path);
    return real(target, dirfd, path);
}
