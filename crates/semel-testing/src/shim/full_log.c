/* A disk that is full for SQLite's log, to be preloaded into a process (LD_PRELOAD).
 *
 * As long as the file is there that SHIM_FULL names, writes to any file whose name ends in "-wal" find no room.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t (*writing)(int, const void *, size_t, off_t);

static void fail(const char *what) {
    /* A shim that does nothing would make the test pass for nothing. */
    perror(what);
    abort();
}

static int is_log(int descriptor) {
    char link[64], name[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, name, sizeof name);
    return length >= 4 && memcmp(name + length - 4, "-wal", 4) == 0;
}

static ssize_t written(const char *call, int descriptor, const void *bytes, size_t count, off_t offset) {
    const char *full = getenv("SHIM_FULL");
    if (!full) fail("full_log: SHIM_FULL is not set");
    if (access(full, F_OK) == 0 && is_log(descriptor)) {
        errno = ENOSPC;
        return -1;
    }
    writing real = (writing)dlsym(RTLD_NEXT, call);
    if (!real) fail(call);
    return real(descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    return written("pwrite", descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
    return written("pwrite64", descriptor, bytes, count, offset);
}
