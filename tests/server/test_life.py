"""test_life.py - the life of requests: clients that leave, wait, read slowly or come in numbers; limits; the end of the process."""
import concurrent.futures
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import CHAT, COMPLETIONS, Joined

STORY = {"messages": [{"role": "user", "content": "Tell a long story."}], "temperature": 1, "seed": 3, "top_k": 0, "top_p": 1,
         "logit_bias": {"4066": -100, "4064": -100}}  # it never ends by itself
PROMPTS = ["What is 5 plus 6?", "Reply ONLY: ONE", "Reply ONLY: TWO", "Name the capital of France.", "Count from 1 to 9.", "Say hi",
           "Is 7 larger than 5?", "Write a function that adds two numbers.", "What is 3 times 4?", "Spell the word cat.", "Q3 Roadmap", "Who are you?"]


# kernels so slow that a client can do something while a request runs
SLOW_KERNELS = () if harness.VERY_SLOW else ("--cpu", "ref")


def long_stream(server, **fields):
    """A connection on which a long stream has begun to speak."""
    s = harness.Raw(server)
    s.post(CHAT, {**STORY, "max_tokens": 3500, "stream": True, **fields})
    while s.pending.count(b"data: ") < 3:
        if not s._more():
            raise RuntimeError(f"closed: {s.pending[-300:]!r}")
    return s


class Leaving(harness.Case):
    OPTIONS = ("--parallel", "1", "--queue", "2", *SLOW_KERNELS, "--cache-mem", "0", "--keep-alive", "1")

    def idle(self):
        return self.server.metric("ingot_requests_running") + self.server.metric("ingot_requests_queued") == 0

    def tearDown(self):
        self.assertTrue(self.server.until(self.idle), "requests are left")

    def test_R021_work_stops_when_the_client_leaves(self):
        for streamed in (True, False):
            gone = self.server.metric("ingot_client_disconnects_total")
            if streamed:
                s = long_stream(self.server)
            else:
                s = harness.Raw(self.server)
                s.post(CHAT, {**STORY, "max_tokens": 3500})
                self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 1))
            s.close()
            self.assertTrue(self.server.until(self.idle, 5), "still running")
            self.assertEqual(self.server.metric("ingot_client_disconnects_total"), gone + 1)
            before = self.server.metric("ingot_generated_tokens_total")
            time.sleep(0.2)
            self.assertEqual(self.server.metric("ingot_generated_tokens_total"), before)

    def test_R021_leaving_costs_no_more_than_the_pass_under_way(self):
        def passes():
            return self.server.metric("ingot_steps_total")

        def one_pass():  # a prompt of one token, and the token after it
            s = harness.Raw(self.server, harness.PATIENCE)
            s.post(COMPLETIONS, {"prompt": [1], "temperature": 0, "max_tokens": 1})
            return s
        before = passes()
        with one_pass() as s:
            self.assertEqual(s.reply().status, 200)
        self.assertTrue(self.server.until(lambda: passes() > before))  # counted a moment after the answer
        self.assertEqual(passes() - before, 1)
        for leaves in ({"messages": [{"role": "user", "content": "word " * 3500}]}, STORY):  # in its prefill, and while it speaks
            before = passes()
            with harness.Raw(self.server) as first:
                first.post(CHAT, {**leaves, "stream": True})
                self.assertTrue(self.server.until(lambda: passes() >= before + 2))
                following = one_pass()
                self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_queued") == 1))
            seen = passes()  # the answer to this comes after the server has seen the other connection close
            self.assertEqual(following.reply().status, 200)
            self.assertTrue(self.server.until(self.idle))
            self.assertLessEqual(passes() - 1 - seen, 1)
            following.close()

    def test_R023_a_queued_request_whose_client_left_never_runs(self):
        first = long_stream(self.server)
        ran = self.server.metric("ingot_prompt_tokens_total")
        with harness.Raw(self.server) as second:
            second.post(CHAT, {**STORY, "max_tokens": 100, "stream": True})
            self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_queued") == 1))
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_queued") == 0, 5))
        self.assertEqual(self.server.metric("ingot_requests_running"), 1)
        first.close()
        self.assertTrue(self.server.until(self.idle))
        self.assertEqual(self.server.metric("ingot_prompt_tokens_total"), ran)

    def test_a_full_queue_is_429(self):
        first = long_stream(self.server)
        waiting = [harness.Raw(self.server) for _ in range(2)]
        for i, s in enumerate(waiting):
            s.post(CHAT, {**STORY, "stream": True})
            self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_queued") == i + 1))
        r = self.server.chat()
        self.error(r, 429, kind="rate_limit_error")
        self.assertGreaterEqual(int(r.headers["retry-after"]), 1)
        for s in (first, *waiting):
            s.close()

    def test_what_the_queue_can_never_take_is_400(self):
        self.error(self.server.chat(n=4), 400, param="n")
        self.error(self.server.post("/v1/completions", {"prompt": ["a", "b"], "n": 2, "max_tokens": 1}), 400, param="prompt")
        self.assertEqual(self.server.chat(n=3, max_tokens=1).status, 200)

    def test_silence_is_filled(self):
        first = long_stream(self.server)
        begun = time.monotonic()
        queue = list(itertools.islice(self.server.chat_stream(), 2))
        self.assertEqual(queue[0].json["choices"][0]["delta"]["role"], "assistant")
        self.assertLess(queue[0].at - begun, 1 * harness.SLOW)
        self.assertRegex(queue[1].comment, "^queued [0-9]+$")
        self.assertLess(queue[1].at - queue[0].at, 2 * harness.SLOW)
        first.close()
        self.assertTrue(self.server.until(self.idle))
        last = time.monotonic()
        for e in self.server.chat_stream("word " * 1000, max_tokens=1):
            self.assertLess(e.at - last, 2 * harness.SLOW)
            last = e.at
            if e.comment and not e.comment.startswith("queued "):
                self.assertRegex(e.comment, "^prefill [0-9]+/1[0-9]{3}$")
                break

    def test_silence_is_short_by_default(self):
        usage = subprocess.run([harness.PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        self.assertRegex(usage, r"--keep-alive S .*\(default 4\)")  # looked at twice a second: every 4.5 seconds at the latest

    def test_progress_is_told_when_asked_for(self):
        told = [e.json["prompt_progress"] for e in self.server.chat_stream("word " * 20, max_tokens=1, return_progress=True)
                if e.data != "[DONE]" and e.data and "prompt_progress" in e.json]
        self.assertTrue(told)
        self.assertEqual({p["total"] for p in told}, {self.server.chat("word " * 20, max_tokens=1).json["usage"]["prompt_tokens"]})


    def test_slots_show_what_runs_and_waits(self):
        key = {"x-api-key": "sk-look"}
        with harness.Server("--parallel", "1", *SLOW_KERNELS, "--api-key", "sk-look") as s:
            def slots():
                return {(slot["id"][:5], slot.get("choice")): slot for slot in s.get("/slots", key).json}
            body = {**STORY, "max_tokens": 2000, "stream": True}
            with harness.Raw(s) as first, harness.Raw(s) as second:
                first.post(CHAT, {**body, "n": 2}, "x-api-key: sk-look")
                self.assertTrue(s.until(lambda: slots().get(("chatc", 0), {}).get("block")))
                second.post(COMPLETIONS, {"prompt": "secret words", "stream": True}, "x-api-key: sk-look")
                self.assertTrue(s.until(lambda: ("cmpl-", 0) in slots()))
                self.assertEqual(set(slots()), {("chatc", 0), ("chatc", 1), ("cmpl-", 0)})
                runs, waits = slots()["chatc", 0], slots()["cmpl-", 0]
                self.assertEqual((runs["state"], runs["is_processing"]), ("decode", True))
                self.assertEqual((waits["state"], waits["is_processing"]), ("queued", False))
                self.assertGreater(runs["n_decoded"], 0)
                self.assertGreater(runs["block"], 0)
                self.assertEqual(runs["n_prompt_tokens"], runs["n_prompt_tokens_processed"])
                self.assertEqual((waits["n_decoded"], waits["n_prompt_tokens_processed"], waits["block"]), (0, 0, 0))
                self.assertNotIn(b"secret", s.get("/slots", key).body)
            self.assertTrue(s.until(lambda: not slots()))

    def test_slots_want_a_key(self):
        self.error(self.server.get("/slots"), 501, kind="not_supported_error")


class Reading(harness.Case):
    OPTIONS = ("--timeout", "2", "--parallel", "4")

    def test_a_slow_reader_loses_nothing(self):
        body = {**STORY, "max_tokens": 300 if harness.VERY_SLOW else 1200, "logprobs": True, "top_logprobs": 20, "stream": True}
        fast = Joined(self.server.stream(CHAT, body))
        c = self.server.connect()
        c.connect()
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        c.request("POST", CHAT, json.dumps(body), {"Content-Type": "application/json"})
        r = c.getresponse()

        class Slow:
            """Stops twice for less than the server's patience."""
            n = 0

            def read1(self, size):
                Slow.n += 1
                if Slow.n in (2, 20):
                    time.sleep(1.2)
                return r.read1(size)
        slow = Joined(harness.events(Slow()))
        c.close()
        self.assertEqual((slow.reasoning, slow.content, slow.logprobs), (fast.reasoning, fast.content, fast.logprobs))
        self.assertTrue(slow.done)

    @unittest.skipIf(harness.VERY_SLOW, "fills the system's buffers too slowly")
    def test_a_reader_that_takes_nothing_is_cancelled(self):
        # four answers of 3 MB: one alone may fit into the buffers of the system, and then nobody waits
        body = {**STORY, "max_tokens": 3500, "logprobs": True, "top_logprobs": 20, "stream": True, "n": 4}
        gone = self.server.metric("ingot_client_disconnects_total")
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect((self.server.host, self.server.port))
        data = json.dumps(body).encode()
        s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (CHAT.encode(), len(data), data))
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_client_disconnects_total") > gone, 40))
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 0, 5))
        s.close()

    def test_leaving_during_prefill(self):
        s = harness.Raw(self.server)
        s.post(CHAT, {"messages": [{"role": "user", "content": "word " * 3500}], "stream": True})
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 1))
        s.close()
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 0, 10), "still running")

    def test_half_closed_clients_are_gone(self):
        gone = self.server.metric("ingot_client_disconnects_total")
        s = long_stream(self.server)
        s.socket.shutdown(socket.SHUT_WR)
        self.assertTrue(s.closed())
        self.assertEqual(self.server.metric("ingot_client_disconnects_total"), gone + 1)
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 0, 5))
        s.close()


class Crowd(harness.Case):
    FULL = harness.SLOW == 1  # a sanitized server gets a smaller crowd
    OPTIONS = ("--parallel", "8", "--queue", "64")

    def solo(self, text):
        r = self.server.chat(text, max_tokens=24)
        return r.json["choices"][0]["message"], r.json["timings"]["tokens_sha256"]

    def test_R061_R063_R066_each_gets_its_own_answer(self):
        alone = {text: self.solo(text) for text in PROMPTS}
        self.assertGreater(len({sha for _, sha in alone.values()}), len(PROMPTS) // 2)
        for width in (1, 2, 4, 9, 16, 17, 25) if self.FULL else (1, 9):
            asked = [PROMPTS[i % len(PROMPTS)] for i in range(width)]
            with concurrent.futures.ThreadPoolExecutor(width) as pool:
                for text, got in zip(asked, pool.map(self.solo, asked)):
                    self.assertEqual(got, alone[text], (width, text))

    def test_64_streams_with_rude_neighbours(self):
        alone = {text: Joined(self.server.chat_stream(text, max_tokens=24)) for text in PROMPTS}
        stop = threading.Event()

        def rude():  # at most this many, so that a slow machine is not kept busy by it alone
            for _ in range(40):
                if stop.is_set():
                    return
                s = harness.Raw(self.server)
                s.post(CHAT, {**STORY, "max_tokens": 100, "stream": True})
                stop.wait(0.03)
                s.close()
        before = self.server.descriptors()
        neighbour = threading.Thread(target=rude)
        neighbour.start()
        try:
            with concurrent.futures.ThreadPoolExecutor(48) as pool:
                asked = [PROMPTS[i % len(PROMPTS)] for i in range(64 if self.FULL else 12)]

                def ask(text):
                    while True:
                        try:
                            return Joined(self.server.chat_stream(text, max_tokens=24))
                        except RuntimeError as e:  # 429: the neighbours fill the queue at times
                            if not str(e).startswith("429"):
                                raise
                            time.sleep(0.1)
                for text, got in zip(asked, pool.map(ask, asked)):
                    self.assertEqual((got.reasoning, got.content, got.finish), (alone[text].reasoning, alone[text].content, alone[text].finish))
        finally:
            stop.set()
            neighbour.join()
        self.assertTrue(self.server.until(lambda: self.server.metric("ingot_requests_running") == 0))
        self.assertTrue(self.server.until(lambda: self.server.descriptors() <= before + 2))

    def test_a_thousand_requests_leave_nothing(self):
        def few(n):
            c = self.server.connect()
            body = json.dumps({"messages": [{"role": "user", "content": "Say hi"}], "max_tokens": 1, "temperature": 0})
            for _ in range(n):
                c.request("POST", CHAT, body, {"Content-Type": "application/json"})
                self.assertEqual(c.getresponse().read()[:1], b"{")
            c.close()
        few(300 if self.FULL else 100)
        size, files = self.server.resident(), self.server.descriptors()
        few(700 if self.FULL else 100)
        self.assertLess(self.server.resident() - size, 4 << 20)
        self.assertTrue(self.server.until(lambda: self.server.descriptors() <= files))


class Ending(unittest.TestCase):
    def test_drain_finishes_what_runs(self):
        with harness.Server("--drain", str(round(60 * harness.SLOW)), "--parallel", "2") as s:
            body = {**STORY, "max_tokens": 200 if harness.VERY_SLOW else 800}
            want = Joined(s.stream(CHAT, body))
            got = []
            threads = [threading.Thread(target=lambda: got.append(Joined(s.stream(CHAT, body)))) for _ in range(3)]
            for t in threads:
                t.start()
            self.assertTrue(s.until(lambda: s.metric("ingot_requests_running") + s.metric("ingot_requests_queued") == 3))
            s.process.send_signal(signal.SIGTERM)
            self.assertTrue(s.until(lambda: s.get("/health").status == 503))
            self.assertEqual(s.get("/live").status, 200)
            r = s.chat()
            self.assertEqual((r.status, r.json["error"]["type"]), (503, "unavailable_error"))
            self.assertIn("retry-after", r.headers)
            for t in threads:
                t.join()
            self.assertEqual(s.process.wait(20 * harness.SLOW), 0)
            for j in got:
                self.assertTrue(j.done)
                self.assertIsNone(j.error)
                self.assertEqual((j.reasoning, j.content), (want.reasoning, want.content))

    def test_R015_an_error_after_the_headers_is_an_event(self):
        with harness.Server("--max-seconds", str(round(harness.SLOW))) as s:
            joined = Joined(s.stream(CHAT, {**STORY, "max_tokens": 3500, "n": 8}))
            self.assertIn("--max-seconds", joined.error["message"])
            self.assertTrue(joined.done)
            self.assertIsNone(joined.finish)
            with harness.Raw(s) as c:
                c.post(CHAT, {**STORY, "max_tokens": 3500, "n": 8, "stream": True})
                self.assertTrue(c.closed())
                self.assertTrue(c.pending.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), c.pending[-80:])
            self.assertEqual(s.chat(max_tokens=2).status, 200)

    def test_drain_ends_what_takes_too_long(self):
        with harness.Server("--drain", "1", *SLOW_KERNELS) as s:
            stream = long_stream(s)
            whole, named = harness.Raw(s), harness.Raw(s)
            whole.post(CHAT, {**STORY, "max_tokens": 3500})
            named.post("/v1/responses", {"input": "Tell a long story.", "logit_bias": STORY["logit_bias"], "max_output_tokens": 3500, "stream": True})
            self.assertTrue(s.until(lambda: s.metric("ingot_requests_running") == 3))
            self.assertEqual(s.stop(), 0)
            self.assertTrue(stream.closed())
            self.assertIn(b"the server is stopping", stream.pending)
            self.assertEqual(whole.reply().status, 503)
            last = harness.Event(named.reply().body.decode().rstrip("\r\n").rsplit("\n\n", 1)[-1].split("\r\n")[-1], 0)
            self.assertEqual((last.name, last.json["response"]["status"]), ("response.failed", "failed"))
            self.assertEqual(last.json["response"]["error"], {"code": "server_error", "message": "the server is stopping"})
            for s in (stream, whole, named):
                s.close()

    def test_a_second_signal_ends_at_once(self):
        with harness.Server() as s:
            stream = long_stream(s)
            s.process.send_signal(signal.SIGTERM)
            self.assertTrue(s.until(lambda: s.get("/health").status == 503))
            begun = time.monotonic()
            s.stop(signal.SIGINT)
            self.assertLess(time.monotonic() - begun, 3 * harness.SLOW)
            stream.close()

    def test_a_second_signal_ends_a_load_at_once(self):
        for pause in (0, 1):  # while the loop runs, and when it has ended
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(f"{harness.NUGGET}/king", folder, dirs_exist_ok=True)
                os.remove(f"{folder}/config.json")
                os.mkfifo(f"{folder}/config.json")  # nobody writes: it loads for ever
                s = harness.Server("--king", folder, "--no-drafter", drafter=False, wait=False)
                self.assertEqual(s.get("/health").status, 503)
                s.process.send_signal(signal.SIGTERM)
                self.assertTrue(s.until(lambda: b"draining" in s.get("/health").body) if pause == 0 else not time.sleep(pause))
                s.process.send_signal(signal.SIGTERM)
                try:
                    self.assertEqual(s.process.wait(5 * harness.SLOW), -signal.SIGTERM)
                finally:
                    s.process.kill()
                    s.stop()

    def test_a_model_that_is_not_there(self):
        with self.assertRaises(RuntimeError) as e:
            harness.Server("--king", "/nonexistent/king", wait=False)
        self.assertIn("/nonexistent/king", str(e.exception))

    def test_a_model_that_does_not_load(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(f"{harness.NUGGET}/king", folder, dirs_exist_ok=True)
            with open(f"{folder}/model.safetensors", "r+b") as f:
                f.truncate(1000)
            with harness.Server("--king", folder, "--no-drafter", drafter=False, wait=False) as s:
                self.assertNotEqual(s.process.wait(20 * harness.SLOW), 0)
                s.reader.join()
                self.assertIn("model.safetensors", "".join(s.log))

    def test_nothing_private_is_logged(self):
        with harness.Server() as s:
            s.chat("my secret words")
            s.chat("my secret words", temperature=9)
            s.post(CHAT, {"messages": "my secret words"})
        self.assertNotIn("secret", "".join(s.log))
        with harness.Server("--log-content") as s:
            answer = s.chat("my\nsecret words", reasoning_effort="none").json["choices"][0]["message"]["content"]
        log = "".join(s.log)
        self.assertIn("secret words", log)
        self.assertIn(json.dumps(answer, ensure_ascii=False)[1:-1], log)


class Restart(unittest.TestCase):
    def test_R052_a_restart_goes_on_with_conversations(self):
        messages = [{"role": "user", "content": "What is 5 plus 6? " + "Think about it. " * 30}]
        body = {"max_tokens": 12, "temperature": 0, "seed": 1}
        with tempfile.TemporaryDirectory() as folder, harness.Server() as cold:
            for turn in range(3):
                with harness.Server("--cache-dir", folder, "--cache-disk", "64M") as server:
                    got = server.post(CHAT, {**body, "messages": messages}).json
                    loads = server.metric("ingot_prefix_cache_disk_loads_total")
                want = cold.post(CHAT, {**body, "messages": messages}).json
                self.assertEqual(got["choices"], want["choices"])
                self.assertEqual(loads, 1 if turn else 0)
                self.assertEqual(got["usage"]["prompt_tokens_details"]["cached_tokens"] > 100, turn > 0)
                messages += [got["choices"][0]["message"], {"role": "user", "content": "And 7 more?"}]


if __name__ == "__main__":
    harness.main()
