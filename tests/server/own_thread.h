/* own_thread: the thread that a module starts never runs; a test may call what it would have run. One program file, linked
 * with --wrap=pthread_create, and with --wrap=pthread_join where the module ends.
 *
 *     own_thread(ctx);          // what the last thread would have run
 *     own_thread_fails = true;  // the system refuses threads
 */
#ifndef PARLEY_TESTS_SERVER_OWN_THREAD_H
#define PARLEY_TESTS_SERVER_OWN_THREAD_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

static void *(*own_thread)(void *ctx);
static bool own_thread_fails;

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *ctx);
int __wrap_pthread_join(pthread_t t, void **out);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *ctx)
{
    (void)t, (void)attr, (void)ctx;
    own_thread = run;
    return own_thread_fails ? EAGAIN : 0;
}

int __wrap_pthread_join(pthread_t t, void **out)
{
    (void)t, (void)out;
    return 0;
}

#endif
