/* Under heavy signals. Four threads ask for the time without pause and sleep now and then; a fifth queues numbered
 * real-time signals to them, each to be handled exactly once with its number; a timer interrupts everything a
 * thousand times a second, and every handler asks for the time too. Arguments: the permitted offsets, in seconds.
 * At the end of the input it tells "ok" and how many signals came, or what went wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4 };

static atomic_int over, wrong, alarms;
static atomic_long sent, sent_sum, came, came_sum;
static long offsets[8];
static int offset_count;

static void look(void) {
    struct timespec before, shown, after;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &before);
    clock_gettime(CLOCK_REALTIME, &shown);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &after);
    for (int i = 0; i < offset_count; i++) {
        struct timespec low = before, high = after;
        low.tv_sec += offsets[i], high.tv_sec += offsets[i];
        int above = shown.tv_sec > low.tv_sec || (shown.tv_sec == low.tv_sec && shown.tv_nsec >= low.tv_nsec);
        int below = shown.tv_sec < high.tv_sec || (shown.tv_sec == high.tv_sec && shown.tv_nsec <= high.tv_nsec);
        if (above && below)
            return;
    }
    wrong = 1;
}

static void numbered(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)context;
    int saved = errno;
    if (info->si_code != SI_QUEUE || info->si_pid != getpid())
        wrong = 2;
    came++;
    came_sum += info->si_value.sival_int;
    look();
    errno = saved;
}

static void alarmed(int signal) {
    (void)signal;
    int saved = errno;
    alarms++;
    look();
    errno = saved;
}

static void *work(void *unused) {
    for (unsigned long round = 0; !over; round++) {
        look();
        if (round % 1000 == 0) {
            struct timespec before, after, pause = {0, 300000};
            clock_gettime(CLOCK_MONOTONIC, &before);
            struct timespec rest = pause;
            while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
                ;
            clock_gettime(CLOCK_MONOTONIC, &after);
            if ((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec < pause.tv_nsec)
                wrong = 3;
        }
    }
    return unused;
}

static pthread_t threads[THREADS];

static void *send_them(void *unused) {
    for (int number = 1; !over; number++) {
        union sigval value = {.sival_int = number};
        int outcome = pthread_sigqueue(threads[number % THREADS], SIGRTMIN + number % 3, value);
        if (outcome == 0) {
            sent++;
            sent_sum += number;
        } else if (outcome != EAGAIN) {
            wrong = 4;
        }
        struct timespec pause = {0, 20000};
        nanosleep(&pause, NULL);
    }
    return unused;
}

int main(int count, char **words) {
    for (int i = 1; i < count && offset_count < 7; i++)
        offsets[offset_count++] = atol(words[i]);
    offsets[offset_count++] = 0;
    for (int i = 0; i < 3; i++) {
        struct sigaction action = {.sa_sigaction = numbered, .sa_flags = SA_SIGINFO | SA_RESTART};
        sigaction(SIGRTMIN + i, &action, NULL);
    }
    struct sigaction action = {.sa_handler = alarmed, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t sender;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    pthread_create(&sender, NULL, send_them, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, NULL);
    puts("ready");
    fflush(stdout);
    char byte;
    ssize_t got;
    while ((got = read(0, &byte, 1)) > 0 || (got < 0 && errno == EINTR))
        ;
    over = 1;
    pthread_join(sender, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    if (wrong)
        printf("bad: %d\n", wrong);
    else if (came != sent || came_sum != sent_sum)
        printf("bad: %ld of %ld signals came\n", (long)came, (long)sent);
    else
        printf("ok %ld\n", (long)came);
    fprintf(stderr, "%ld signals, %d alarms\n", (long)came, (int)alarms);
    return 0;
}
