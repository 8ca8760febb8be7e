/* Runs every line of the patch. Reads lines "<offset in nanoseconds> <0 or 1: shifted>"; after each it compares the
 * vDSO's functions, called directly, with raw system calls before and after, and answers "same" or what differs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef __int128 wide;

static int (*gettime)(int, struct timespec *);
static int (*timeofday)(struct timeval *, struct timezone *);
static time_t (*seconds)(time_t *);

static wide ns(struct timespec t) { return (wide)t.tv_sec * 1000000000 + t.tv_nsec; }

static wide floor_to(wide value, wide unit) {
    wide rest = value % unit;
    return (value - (rest < 0 ? rest + unit : rest)) / unit;
}

static int raw(int clock, struct timespec *t) { return syscall(SYS_clock_gettime, clock, t) == 0 ? 0 : -errno; }

static const char *clocks(wide offset) {
    static const int ids[] = {0, 5, 8, 11, 1, 2, 3, 4, 6, 7, 9, 10, 12, 16, 31, 32, 37, 99, -1, -6};
    static char said[200];
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        int id = ids[i], wall = id == 0 || id == 5 || id == 8 || id == 11;
        struct timespec before, middle = {-1, -1}, after;
        int first = raw(id, &before), second = gettime(id, &middle), third = raw(id, &after);
        if (first != second || second != third) {
            snprintf(said, sizeof said, "clock %d answers %d, the kernel %d", id, second, first);
            return said;
        }
        if (first != 0)
            continue;
        wide add = wall ? offset : 0;
        if (middle.tv_nsec < 0 || middle.tv_nsec > 999999999)
            return "nanoseconds out of range";
        if (ns(middle) < ns(before) + add || ns(middle) > ns(after) + add) {
            snprintf(said, sizeof said, "clock %d: %lld.%09ld", id, (long long)middle.tv_sec, middle.tv_nsec);
            return said;
        }
    }
    return NULL;
}

static const char *others(wide offset, int shifted) {
    struct timespec before, after, coarse_before, coarse_after;
    struct timeval tv = {-1, -1};
    struct timezone tz = {-1, -1}, raw_tz = {-2, -2};
    syscall(SYS_gettimeofday, NULL, &raw_tz);
    for (int with_zone = 0; with_zone < 2; with_zone++) {
        raw(CLOCK_REALTIME, &before);
        if (timeofday(&tv, with_zone ? &tz : NULL) != 0)
            return "gettimeofday fails";
        raw(CLOCK_REALTIME, &after);
        wide us = (wide)tv.tv_sec * 1000000 + tv.tv_usec;
        if (us < floor_to(ns(before) + offset, 1000) || us > floor_to(ns(after) + offset, 1000))
            return "gettimeofday is off";
        if (tv.tv_usec < 0 || tv.tv_usec > 999999)
            return "microseconds out of range";
    }
    if (tz.tz_minuteswest != raw_tz.tz_minuteswest || tz.tz_dsttime != raw_tz.tz_dsttime)
        return "the time zone is off";
    tz.tz_dsttime = -1;
    if (timeofday(NULL, &tz) != 0 || tz.tz_dsttime != raw_tz.tz_dsttime || timeofday(NULL, NULL) != 0)
        return "gettimeofday without a timeval";
    time_t stored = -1;
    raw(CLOCK_REALTIME_COARSE, &coarse_before);
    time_t returned = seconds(&stored), alone = seconds(NULL);
    raw(CLOCK_REALTIME_COARSE, &coarse_after);
    wide least = floor_to(ns(coarse_before) + offset, 1000000000), most = floor_to(ns(coarse_after) + offset, 1000000000);
    if (returned != stored || returned < least || alone < returned || alone > most)
        return "time is off";
    if (shifted && gettime(CLOCK_REALTIME, NULL) != -EFAULT)
        return "clock_gettime without a timespec";
    return NULL;
}

int main(void) {
    void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (vdso == NULL)
        return 2;
    gettime = (int (*)(int, struct timespec *))dlsym(vdso, "__vdso_clock_gettime");
    timeofday = (int (*)(struct timeval *, struct timezone *))dlsym(vdso, "__vdso_gettimeofday");
    seconds = (time_t(*)(time_t *))dlsym(vdso, "__vdso_time");
    if (gettime == NULL || timeofday == NULL || seconds == NULL)
        return 3;
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    long long offset;
    int shifted;
    while (scanf("%lld %d", &offset, &shifted) == 2) {
        const char *wrong = NULL;
        for (int i = 0; i < 20000 && wrong == NULL; i++) {
            wrong = clocks(offset);
            if (wrong == NULL)
                wrong = others(offset, shifted);
        }
        puts(wrong == NULL ? "same" : wrong);
    }
    return 0;
}
