#include "test.h"
#include <pthread.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/queue.h"

TEST(order_bound_and_close)
{
    error e = { 0 };
    queue *q;
    int items[5];
    EXPECT_OK(queue_new(&q, 3, &e), e);
    EXPECT(!queue_pop(q));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 3; i++) EXPECT(queue_push(q, &items[i]));
        EXPECT(!queue_push(q, &items[3]));
        for (int i = 0; i < 2; i++) EXPECT(queue_pop(q) == &items[i]);
        EXPECT(queue_wait(q, -1) == &items[2]);
    }
    EXPECT(queue_push(q, &items[4]));
    queue_close(q);
    EXPECT(!queue_push(q, &items[0]));
    EXPECT(queue_wait(q, -1) == &items[4]); /* what was in it is still delivered */
    EXPECT(!queue_wait(q, -1));
    queue_free(q);
    queue_free(NULL);
}

TEST(timeouts)
{
    error e = { 0 };
    queue *q;
    EXPECT_OK(queue_new(&q, 1, &e), e);
    EXPECT(!queue_wait(q, 0));
    const int64_t start = clock_ns();
    EXPECT(!queue_wait(q, 30));
    EXPECT(clock_ns() - start >= 29000000);
    queue_wake(q);
    EXPECT(!queue_wait(q, -1)); /* the wake is kept until someone waits */
    EXPECT(!queue_wait(q, 1));
    queue_free(q);
}

enum { WRITERS = 3, EACH = 5000 };
typedef struct writer {
    queue *q;
    int number[EACH];
} writer;

static void *write_all(void *arg)
{
    writer *w = arg;
    for (int i = 0; i < EACH; i++) {
        w->number[i] = i;
        while (!queue_push(w->q, &w->number[i])) clock_sleep_ms(1);
    }
    return NULL;
}

TEST(many_writers)
{
    error e = { 0 };
    queue *q;
    static writer w[WRITERS];
    pthread_t threads[WRITERS];
    int next[WRITERS] = { 0 };
    EXPECT_OK(queue_new(&q, 64, &e), e);
    for (int i = 0; i < WRITERS; i++) {
        w[i].q = q;
        EXPECT_INT(pthread_create(&threads[i], NULL, write_all, &w[i]), 0);
    }
    for (int n = 0; n < WRITERS * EACH; n++) {
        const int *item = queue_wait(q, 10000);
        EXPECT(item);
        for (int i = 0; i < WRITERS; i++) {
            if (item < w[i].number || item >= w[i].number + EACH) continue;
            EXPECT_INT(*item, next[i]); /* each writer's items come in its order */
            next[i]++;
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        EXPECT_INT(pthread_join(threads[i], NULL), 0);
        EXPECT_INT(next[i], EACH);
    }
    EXPECT(!queue_pop(q));
    queue_free(q);
}

static void *wake_later(void *arg)
{
    clock_sleep_ms(20);
    queue_wake(arg);
    clock_sleep_ms(20);
    queue_close(arg);
    return NULL;
}

TEST(wake_and_close_from_another_thread)
{
    error e = { 0 };
    queue *q;
    pthread_t t;
    EXPECT_OK(queue_new(&q, 4, &e), e);
    EXPECT_INT(pthread_create(&t, NULL, wake_later, q), 0);
    EXPECT(!queue_wait(q, -1));
    EXPECT(!queue_wait(q, -1));
    EXPECT_INT(pthread_join(t, NULL), 0);
    queue_free(q);
}

TEST(short_memory)
{
    error e = { 0 };
    const int64_t live = mem_live();
    for (int n = 1; n <= 2; n++) {
        queue *q;
        mem_fail_after(n);
        const status s = queue_new(&q, 4, &e);
        mem_fail_after(0);
        EXPECT_INT(s, E_NOMEM);
        EXPECT(!q);
        EXPECT_INT(mem_live(), live);
    }
}
