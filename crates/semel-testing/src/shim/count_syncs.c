/* Counts syncs, to be preloaded into a process (LD_PRELOAD).
 *
 * For every fsync and fdatasync the process asks for, one byte is appended to the file that SHIM_SYNCS names: the length of that
 * file is how many there were, and whoever is told that something is durable can look there for the sync that made it so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void fail(const char *what) {
    /* A shim that does not count would make the test pass for nothing. */
    perror(what);
    abort();
}

static void count(void) {
    const char *path = getenv("SHIM_SYNCS");
    if (!path) fail("count_syncs: SHIM_SYNCS is not set");
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log < 0 || write(log, "s", 1) != 1) fail("count_syncs");
    close(log);
}

static int passed_on(const char *name, int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (!real) fail(name);
    int result = real(descriptor);
    /* After the sync: what is counted has been done. */
    count();
    return result;
}

int fsync(int descriptor) { return passed_on("fsync", descriptor); }

int fdatasync(int descriptor) { return passed_on("fdatasync", descriptor); }
