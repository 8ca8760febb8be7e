/* One thread is in a vfork whose child waits for the input to be closed: until then that thread can't be stopped.
 * Two others ask for the time without pause. In the end: "ok" and how often they asked. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int over;
static atomic_long looks;

static void *look(void *unused) {
    struct timespec shown;
    while (!over) {
        clock_gettime(CLOCK_REALTIME, &shown);
        looks++;
    }
    return unused;
}

static void *wait_in_the_kernel(void *unused) {
    char byte;
    pid_t child = vfork();
    if (child == 0) {
        while (read(0, &byte, 1) > 0)
            ;
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    over = status == 0 ? 1 : 2;
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, wait_in_the_kernel, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    pthread_create(&threads[2], NULL, look, NULL);
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%s %ld\n", over == 1 ? "ok" : "bad", (long)looks);
    return 0;
}
