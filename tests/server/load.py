"""load.py [SECONDS] [STREAMS] - not a test of every run: many streams with slow and vanishing clients for a while.

Every answer that was read to its end must be the one that the same request got alone; nobody waits a second for the first event or
five for the next; at the end memory and descriptors must be where they were after the first fifth; SIGTERM comes in the middle of it
all and every stream that has begun is still whole. Prints a line every ten seconds and ends 0 or 1.
"""
import random
import signal
import sys
import threading
import time

import harness
from harness import CHAT, Joined

WORDS = ["What is 5 plus 6?", "Tell a story.", "Name the capital of France.", "Count from 1 to 9.", "Write a function that adds two numbers.",
         "Is 7 larger than 5?", "word " * 300]
FIRST, SILENCE = 1, 5  # seconds
KEEP_ALIVE = ("--keep-alive", "4")  # as shipped
harness.PATIENCE = 1800  # a machine that stood still has lost nobody


def request(i):
    """The i-th of the requests: greedy and sampled, thinking and not."""
    return {"messages": [{"role": "user", "content": WORDS[i % len(WORDS)]}], "max_tokens": 40 + i % 3 * 40, "seed": i, "temperature": i % 2,
            "reasoning_effort": "none" if i % 4 == 0 else None}


class Pauses:
    """Knows when this machine, or this process, stood still: that is nobody's silence."""

    def __init__(self):
        self.list = []
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        last = time.monotonic()
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            if now - last > 1:
                self.list.append((last, now))
            last = now

    def between(self, begin, end):
        """Seconds from begin to end, less the pauses."""
        if end - begin > 1:
            time.sleep(0.2)  # the pause may not have been noted yet
        return end - begin - sum(max(0, min(end, b) - max(begin, a)) for a, b in self.list)


PAUSES = Pauses()


class Load:
    def __init__(self, server, streams):
        self.server, self.lock = server, threading.Lock()
        self.stop, self.draining = threading.Event(), threading.Event()
        self.alone = [self.text(Joined(server.stream(CHAT, request(i)))) for i in range(42)]
        self.done = self.left = self.busy = self.whole_after_signal = 0
        self.slowest_first, self.longest_silence, self.faults = 0.0, 0.0, []
        self.threads = [threading.Thread(target=self.client, args=(n,), daemon=True) for n in range(streams)]

    @staticmethod
    def text(j):
        return j.reasoning, j.content, j.finish, j.done

    def client(self, number):
        chance = random.Random(number)
        while not self.stop.is_set():
            i = chance.randrange(len(self.alone))
            begun = []
            try:
                self.once(i, chance, begun)
            except (RuntimeError, OSError) as e:
                if self.draining.is_set() and not begun:
                    return  # refused: the server is ending
                if not str(e).startswith("429"):
                    self.faults.append(f"{i}: {e!r}")
                self.busy += 1
                time.sleep(0.5)

    def watched(self, i, kind, leave_at, begun):
        """The events of a stream, with the times between them."""
        last = time.monotonic()
        for n, e in enumerate(self.server.stream(CHAT, request(i))):
            begun.append(n)
            silence = PAUSES.between(last, e.at)
            with self.lock:
                if n == 0:
                    self.slowest_first = max(self.slowest_first, silence)
                else:
                    self.longest_silence = max(self.longest_silence, silence)
            if n == leave_at:
                return
            if kind == "slow":
                time.sleep(0.05)
            yield e
            last = time.monotonic()

    def once(self, i, chance, begun):
        kind = chance.choice(["plain", "plain", "slow", "vanishing"])
        leave_at = chance.randrange(12) if kind == "vanishing" else None
        got = self.text(Joined(self.watched(i, kind, leave_at, begun)))
        with self.lock:
            if kind == "vanishing" and not got[3]:
                self.left += 1
                return
            self.done += 1
            self.whole_after_signal += self.draining.is_set()
            if got != self.alone[i]:
                self.faults.append(f"{i} {kind}: found {got}, alone {self.alone[i]}")

    def run(self, seconds):
        for t in self.threads:
            t.start()
        begun, marks, passed = time.monotonic(), [], 0
        while passed < seconds and not self.faults:
            time.sleep(min(10, seconds / 5))
            marks.append((self.server.resident(), self.server.descriptors()))
            passed = PAUSES.between(begun, time.monotonic())
            print(f"{passed:5.0f} s: {self.done} whole, {self.left} left, {self.busy} refused, {marks[-1][0] / 1e6:.1f} MB, "
                  f"{marks[-1][1]} descriptors, first event {self.slowest_first:.2f} s, silence {self.longest_silence:.2f} s", flush=True)
        return marks

    def end(self):
        self.stop.set()
        for t in self.threads:
            t.join(harness.PATIENCE)


def long_prefill():
    """The longest time between two bytes of a stream while a slow machine reads a long prompt."""
    with harness.Server("--cpu", "ref", "--cache-mem", "0", *KEEP_ALIVE) as server:
        last, longest, comments, begun = time.monotonic(), 0.0, 0, time.monotonic()
        for e in server.chat_stream("word " * 700, max_tokens=1):
            longest, last = max(longest, PAUSES.between(last, e.at)), e.at
            comments += e.comment is not None and e.comment.startswith("prefill ")
        print(f"long prefill: {time.monotonic() - begun:.0f} s, {comments} comments, silence {longest:.2f} s", flush=True)
        return comments > 0 and longest < SILENCE


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 180
    streams = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    good = long_prefill()
    options = ("--parallel", "8", "--queue", "96", "--cache-mem", "32M", "--drain", "300", "--timeout", "300", *KEEP_ALIVE)
    with harness.Server(*options) as server:  # the crowd: who comes and goes leaves nothing
        idle = server.descriptors()
        load = Load(server, streams)
        marks = load.run(seconds)
        load.end()
        quiet = server.until(lambda: server.descriptors() <= idle + 1)
        first, last = marks[len(marks) // 5][0], marks[-1][0]
        print(f"memory {first / 1e6:.1f} -> {last / 1e6:.1f} MB, descriptors back: {bool(quiet)}, faults: {load.faults[:3]}")
        good &= not load.faults and bool(quiet) and last - first < 16 << 20 and load.done > streams
        good &= load.slowest_first < FIRST and load.longest_silence < SILENCE
    with harness.Server(*options) as server:  # the end in the middle of it
        load = Load(server, streams)
        load.run(min(10, seconds))
        load.draining.set()
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(harness.PATIENCE)
        load.end()
        print(f"SIGTERM: {load.whole_after_signal} streams ended whole after it, status {status}, faults: {load.faults[:3]}")
        good &= not load.faults and load.whole_after_signal > 0 and status == 0
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
