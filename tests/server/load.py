"""load.py [SECONDS] [STREAMS] - not a test of every run: many streams with slow and vanishing clients for a while.

Every answer that was read to its end must be the one that the same request got alone; at the end memory and descriptors must be
where they were after the first fifth. Prints a line every ten seconds and ends 0 or 1.
"""
import random
import sys
import threading
import time

import harness
from harness import CHAT, Joined

WORDS = ["What is 5 plus 6?", "Tell a story.", "Name the capital of France.", "Count from 1 to 9.", "Write a function that adds two numbers.",
         "Is 7 larger than 5?", "word " * 300]


def request(i):
    """The i-th of the requests: greedy and sampled, thinking and not."""
    return {"messages": [{"role": "user", "content": WORDS[i % len(WORDS)]}], "max_tokens": 40 + i % 3 * 40, "seed": i, "temperature": i % 2,
            "reasoning_effort": "none" if i % 4 == 0 else None}


class Load:
    def __init__(self, server, streams):
        self.server, self.lock, self.stop = server, threading.Lock(), threading.Event()
        self.alone = [self.text(Joined(server.stream(CHAT, request(i)))) for i in range(42)]
        self.done = self.left = self.busy = 0
        self.slowest_first, self.faults = 0.0, []
        self.threads = [threading.Thread(target=self.client, args=(n,), daemon=True) for n in range(streams)]

    @staticmethod
    def text(j):
        return j.reasoning, j.content, j.finish, j.done

    def client(self, number):
        chance = random.Random(number)
        while not self.stop.is_set():
            i = chance.randrange(len(self.alone))
            try:
                self.once(i, chance)
            except RuntimeError as e:
                if not str(e).startswith("429"):
                    self.faults.append(f"{i}: {e}")
                self.busy += 1
                time.sleep(0.5)
            except OSError as e:
                self.faults.append(f"{i}: {e!r}")

    def once(self, i, chance):
        kind = chance.choice(["plain", "plain", "slow", "vanishing"])
        leave_at = chance.randrange(12) if kind == "vanishing" else None
        begun = time.monotonic()

        def watched():
            for n, e in enumerate(self.server.stream(CHAT, request(i))):
                if n == 0:
                    self.slowest_first = max(self.slowest_first, time.monotonic() - begun)
                if n == leave_at:
                    return
                if kind == "slow":
                    time.sleep(0.05)
                yield e
        got = self.text(Joined(watched()))
        with self.lock:
            if kind == "vanishing" and not got[3]:
                self.left += 1
                return
            self.done += 1
            if got != self.alone[i]:
                self.faults.append(f"{i} {kind}: found {got}, alone {self.alone[i]}")

    def run(self, seconds):
        for t in self.threads:
            t.start()
        begun, marks = time.monotonic(), []
        while time.monotonic() - begun < seconds and not self.faults:
            time.sleep(min(10, seconds / 5))
            marks.append((self.server.resident(), self.server.descriptors()))
            print(f"{time.monotonic() - begun:5.0f} s: {self.done} whole, {self.left} left, {self.busy} refused, "
                  f"{marks[-1][0] / 1e6:.1f} MB, {marks[-1][1]} descriptors, slowest first event {self.slowest_first:.2f} s", flush=True)
        self.stop.set()
        for t in self.threads:
            t.join(harness.PATIENCE)
        return marks


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 180
    streams = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    with harness.Server("--parallel", "8", "--queue", "96", "--cache-mem", "32M") as server:
        idle = server.descriptors()
        load = Load(server, streams)
        marks = load.run(seconds)
        quiet = server.until(lambda: server.descriptors() <= idle + 1)
        first, last = marks[len(marks) // 5][0], marks[-1][0]
        print(f"memory {first / 1e6:.1f} -> {last / 1e6:.1f} MB, descriptors back: {bool(quiet)}, faults: {load.faults[:3]}")
        status = server.stop()
    good = not load.faults and quiet and last - first < 16 << 20 and status == 0 and load.done > streams
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
