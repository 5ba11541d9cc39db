"""test_patience.py - a request has 30 seconds to arrive; single bytes do not buy more. One file, since it takes that long."""
import threading
import time

import harness


class Dribble(harness.Case):
    def dribble(self, start, results):
        with harness.Raw(self.server, timeout=60) as s:
            s.send(start)
            begun = time.monotonic()
            s.socket.settimeout(1)
            while time.monotonic() - begun < 50 * harness.SLOW:
                try:
                    if not s._more() or b"\r\n\r\n" in s.pending:
                        break
                except TimeoutError:
                    s.send("x")
                except ConnectionError:
                    break
            results.append((s.pending[:12], time.monotonic() - begun))

    def test_slow_heads_and_bodies(self):
        starts = ("GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
                  "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
                  "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n{")
        results = []
        threads = [threading.Thread(target=self.dribble, args=(start, results)) for start in starts]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for head, seconds in results:
            self.assertEqual(head, b"HTTP/1.1 408")
            self.assertGreater(seconds, 25)
            self.assertLess(seconds, 35 * harness.SLOW)
        self.assertEqual(len(results), 3)
        self.alive()


if __name__ == "__main__":
    harness.main()
