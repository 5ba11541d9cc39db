#include <pthread.h>
#include "base/clock.h"
#include "base/mem.h"
#include "engine/request.h"
#include "test.h"

static request *make(int n)
{
    static const int32_t prompt[] = { 5, 6, 7 };
    static const str words[] = { { "end", 3 } };
    const request_params p = { .prompt = prompt,
                               .n_prompt = 3,
                               .n = n,
                               .max_tokens = 4,
                               .stop = words,
                               .n_stop = 1,
                               .top_logprobs = -1,
                               .sampling = { .top_p = 1, .repetition = 1 } };
    request *r;
    error e;
    EXPECT_OK(request_new(&r, &p, NULL, &e), e);
    return r;
}

static void drop(request *r, int n)
{
    for (int i = 0; i < n; i++) request_drop(r);
    request_release(r);
}

TEST(parameters_are_copied)
{
    request *r = make(2);
    const request_params *p = request_get_params(r);
    EXPECT_INT(p->prompt[2], 7);
    EXPECT_INT(p->stop[0].len, 3);
    for (int i = 0; i < 2; i++) EXPECT_INT(request_get_slot(r, i)->tokens[1], 6);
    drop(r, 2);
}

static void *publish_later(void *arg)
{
    request *r = arg;
    request_slot *slot = request_get_slot(r, 0);
    request_progress p = slot->progress;
    for (int i = 0; i < 4; i++) {
        clock_sleep_ms(2);
        slot->tokens[3 + i] = 100 + i;
        p.n_ids = i + 1;
        p.finish = i == 3 ? REQUEST_LENGTH : REQUEST_RUNNING;
        request_publish(r, 0, &p);
    }
    request_drop(r);
    return NULL;
}

TEST(a_reader_sees_every_published_token)
{
    request *r = make(1);
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, publish_later, r) == 0);
    uint64_t seen = 0;
    request_progress now = { 0 };
    while (now.finish == REQUEST_RUNNING) {
        EXPECT_INT(request_wait(r, &seen, 5000), OK);
        request_read(r, 0, &now);
        for (int i = 0; i < now.n_ids; i++) EXPECT_INT(request_peek(r, 0).ids[i], 100 + i);
    }
    EXPECT_INT(now.n_ids, 4);
    pthread_join(thread, NULL);
    EXPECT_INT(request_wait(r, &seen, 1), E_AGAIN);
    request_release(r);
}

TEST(waiting_ends_with_its_time)
{
    request *r = make(1);
    uint64_t seen = 0;
    const int64_t start = clock_ns();
    EXPECT_INT(request_wait(r, &seen, 20), E_AGAIN);
    EXPECT(clock_ns() - start >= 20 * 1000000);
    EXPECT_INT(request_wait(r, &seen, 0), E_AGAIN);
    drop(r, 1);
}

static void count_wake(void *arg, void *owner)
{
    (void)owner;
    ++*(int *)arg;
}

TEST(nobody_is_woken_after_the_client_has_left)
{
    request *r = make(1);
    int woken = 0;
    request_set_wake(r, count_wake, &woken);
    request_progress p = request_get_slot(r, 0)->progress;
    request_publish(r, 0, &p);
    EXPECT_INT(woken, 1);
    request_release(r);
    EXPECT(request_is_cancelled(r));
    request_publish(r, 0, &p);
    EXPECT_INT(woken, 1);
    request_drop(r);
}

TEST(every_failure_of_memory_is_reported)
{
    const int64_t before = mem_live();
    static const int32_t prompt[] = { 1 };
    static const int32_t ids[] = { 2 };
    static const str words[] = { { "end", 3 } };
    const request_params p = { .prompt = prompt,
                               .n_prompt = 1,
                               .n = 2,
                               .max_tokens = 4,
                               .stop = words,
                               .n_stop = 1,
                               .stop_ids = ids,
                               .n_stop_ids = 1,
                               .top_logprobs = 3,
                               .sampling = { .top_p = 1, .repetition = 1 } };
    bool done = false;
    for (int n = 1; n < 100 && !done; n++) {
        request *r = NULL;
        error e;
        mem_fail_after(n);
        const status s = request_new(&r, &p, NULL, &e);
        mem_fail_after(0);
        if (s == OK) {
            drop(r, 2);
            done = true;
        } else {
            EXPECT_INT(s, E_NOMEM);
        }
        EXPECT_INT(mem_live(), before);
    }
    EXPECT(done);
}
