/* A disk whose syncs fail or take long, to be preloaded into a process (LD_PRELOAD).
 *
 * The file SHIM_SYNC says what happens to each fsync and fdatasync from now on, and may change at any time: "fail" is EIO without a sync,
 * a number is a delay in milliseconds before the sync, anything else (or no file) is a disk in order.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int troubled(void) {
    const char *path = getenv("SHIM_SYNC");
    if (!path) return 0;
    int control = open(path, O_RDONLY | O_CLOEXEC);
    if (control < 0) return 0;
    char said[32] = {0};
    ssize_t length = read(control, said, sizeof said - 1);
    close(control);
    if (length <= 0) return 0;
    if (!strncmp(said, "fail", 4)) return 1;
    long delay = strtol(said, NULL, 10);
    if (delay > 0) {
        struct timespec time = {delay / 1000, delay % 1000 * 1000000};
        nanosleep(&time, NULL);
    }
    return 0;
}

static int synced(const char *name, int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    /* A shim that loses its way would make the campaign pass for nothing. */
    if (!real) abort();
    if (troubled()) {
        errno = EIO;
        return -1;
    }
    return real(descriptor);
}

int fsync(int descriptor) {
    return synced("fsync", descriptor);
}

int fdatasync(int descriptor) {
    return synced("fdatasync", descriptor);
}
