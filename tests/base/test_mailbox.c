/* mailbox: order, bounds, closing, timeouts, and many threads losing or doubling nothing. */
#include "base/mailbox.h"

#include <pthread.h>

#include "base/clock.h"
#include "tests/check.h"

static int dropped;

static void count_drop(void *message)
{
    dropped += *(int *)message;
}

static void test_single_thread(void)
{
    int n[4] = {1, 2, 4, 8};
    void *got = NULL;
    mailbox *mb = mailbox_create(3);
    CHECK(!mailbox_try_pop(mb, &got));
    for (int round = 0; round < 5; round++) {
        CHECK(mailbox_push(mb, &n[0]) && mailbox_push(mb, &n[1]) && mailbox_push(mb, &n[2]));
        CHECK(!mailbox_push(mb, &n[3]));
        CHECK(mailbox_pop(mb, &got) && got == &n[0]);
        CHECK(mailbox_try_pop(mb, &got) && got == &n[1]);
        CHECK(mailbox_pop_wait(mb, &got, 1000) && got == &n[2]);
        CHECK(!mailbox_try_pop(mb, &got));
    }
    CHECK(mailbox_push(mb, &n[1]) && mailbox_push(mb, &n[2]));
    mailbox_close(mb);
    CHECK(!mailbox_push(mb, &n[0]));
    CHECK(mailbox_pop(mb, &got) && got == &n[1]);
    mailbox_destroy(mb, count_drop);
    CHECK_INT(dropped, 4);
    mailbox_destroy(NULL, NULL);

    for (size_t cap = 0; cap <= 1; cap++) { /* there is always room for one */
        mb = mailbox_create(cap);
        CHECK(mailbox_push(mb, &n[0]));
        CHECK(!mailbox_push(mb, &n[1]));
        mailbox_destroy(mb, NULL);
    }
}

static void test_wait(void)
{
    void *got = NULL;
    mailbox *mb = mailbox_create(1);
    int64_t before = clock_ns();
    CHECK(!mailbox_pop_wait(mb, &got, 30));
    int64_t waited = clock_ns() - before;
    CHECK(waited >= 29 * 1000000 && waited < 5000 * (int64_t)1000000);
    CHECK(!mailbox_pop_wait(mb, &got, 0));
    CHECK(!mailbox_pop_wait(mb, &got, -5));
    mailbox_close(mb);
    CHECK(!mailbox_pop_wait(mb, &got, 60000)); /* at once */
    CHECK(!mailbox_pop(mb, &got));
    mailbox_destroy(mb, NULL);
}

enum { N_SENDERS = 4, N_RECEIVERS = 3, N_MESSAGES = 5000 };

typedef struct shared {
    mailbox *mb;
    unsigned char seen[N_SENDERS * N_MESSAGES]; /* each element is written by one receiver */
    size_t received[N_RECEIVERS];
    size_t out_of_order[N_RECEIVERS];
} shared;

typedef struct worker {
    shared *s;
    size_t index;
} worker;

static void *send_all(void *context)
{
    worker *w = context;
    for (size_t i = 0; i < N_MESSAGES; i++) {
        while (!mailbox_push(w->s->mb, &w->s->seen[w->index * N_MESSAGES + i])) {
            sched_yield();
        }
    }
    return NULL;
}

static void *receive_all(void *context)
{
    worker *w = context;
    size_t last[N_SENDERS] = {0};
    void *message;
    while (w->index == 0 ? mailbox_pop_wait(w->s->mb, &message, 60000) : mailbox_pop(w->s->mb, &message)) {
        unsigned char *place = message;
        size_t at = (size_t)(place - w->s->seen);
        (*place)++;
        w->s->received[w->index]++;
        /* One receiver sees the messages of one sender in the order they were sent. */
        w->s->out_of_order[w->index] += at % N_MESSAGES + 1 <= last[at / N_MESSAGES];
        last[at / N_MESSAGES] = at % N_MESSAGES + 1;
    }
    return NULL;
}

static void test_threads(void)
{
    shared *s = calloc(1, sizeof *s);
    s->mb = mailbox_create(16);
    pthread_t senders[N_SENDERS], receivers[N_RECEIVERS];
    worker ws[N_SENDERS], wr[N_RECEIVERS];
    for (size_t i = 0; i < N_RECEIVERS; i++) {
        wr[i] = (worker){s, i};
        CHECK_INT(pthread_create(&receivers[i], NULL, receive_all, &wr[i]), 0);
    }
    for (size_t i = 0; i < N_SENDERS; i++) {
        ws[i] = (worker){s, i};
        CHECK_INT(pthread_create(&senders[i], NULL, send_all, &ws[i]), 0);
    }
    for (size_t i = 0; i < N_SENDERS; i++) {
        pthread_join(senders[i], NULL);
    }
    mailbox_close(s->mb);
    size_t received = 0, out_of_order = 0, wrong = 0;
    for (size_t i = 0; i < N_RECEIVERS; i++) {
        pthread_join(receivers[i], NULL);
        received += s->received[i];
        out_of_order += s->out_of_order[i];
    }
    for (size_t i = 0; i < sizeof s->seen; i++) {
        wrong += s->seen[i] != 1;
    }
    CHECK_INT(received, N_SENDERS * N_MESSAGES);
    CHECK_INT(out_of_order, 0);
    CHECK_INT(wrong, 0);
    mailbox_destroy(s->mb, NULL);
    free(s);
}

int main(void)
{
    test_single_thread();
    test_wait();
    test_threads();
    CHECK_DONE();
}
