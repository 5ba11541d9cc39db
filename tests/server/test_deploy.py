"""test_deploy.py - the files of deploy/: two replicas behind nginx, the messages to a service manager, the manifests."""
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
from harness import CHAT, Joined

NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")  # not on the path of every user
DEPLOY = os.path.join(harness.ROOT, "deploy")
LONG = {"messages": [{"role": "user", "content": "Tell a long story."}], "temperature": 1, "seed": 3, "max_tokens": 900,
        "logit_bias": {"4066": -100, "4064": -100}}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    """nginx with deploy/nginx/ingot.conf in front of replicas; speaks like a server of the harness."""

    def __init__(self, replicas):
        self.folder = tempfile.mkdtemp()
        with open(os.path.join(DEPLOY, "nginx", "ingot.conf"), encoding="utf-8") as f:
            text = f.read()
        self.port = free_port()
        for i, replica in enumerate(replicas):
            text, n = re.subn(rf"10\.0\.0\.1{i + 1}:8080", f"127.0.0.1:{replica.port}", text)
            assert n == 1
        text, n = re.subn("listen 8000;", f"listen 127.0.0.1:{self.port};", text)
        assert n == 1
        temporary = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(f"{self.folder}/nginx.conf", "w", encoding="utf-8") as f:
            f.write(f"daemon off;\nworker_processes 1;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\n"
                    f"events {{ worker_connections 128; }}\nhttp {{\naccess_log off;\n{temporary}{text}\n}}\n")
        self.process = subprocess.Popen([NGINX, "-p", self.folder, "-c", f"{self.folder}/nginx.conf"], stderr=subprocess.DEVNULL)
        self.front = harness.Server.__new__(harness.Server)
        self.front.host, self.front.port = "127.0.0.1", self.port
        end = time.monotonic() + 20
        while True:
            try:
                self.front.get("/live")
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def __enter__(self):
        return self.front

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@unittest.skipUnless(NGINX, "no nginx")
class Replicas(unittest.TestCase):
    def test_streams_affinity_and_drain(self):
        with harness.Server("--parallel", "2") as one, harness.Server("--parallel", "2") as two, Nginx([one, two]) as front:
            replicas = (one, two)

            def served():
                return [r.metric('ingot_requests_total{route="chat",outcome="ok"}') for r in replicas]

            # events pass one by one, and the stream is the one of a replica
            direct = Joined(one.stream(CHAT, LONG))
            times = []
            through = Joined(e for e in front.stream(CHAT, LONG) if times.append(e.at) is None)
            self.assertEqual((through.reasoning, through.content, through.done), (direct.reasoning, direct.content, True))
            self.assertGreater(times[-1] - times[0], 0.05, "all at once")

            # a conversation returns to its replica and finds its prefix there; others are spread
            history, homes = [{"role": "user", "content": "What is 5 plus 6? " + "Think about it. " * 30}], set()
            for session in range(12):
                before = served()
                cached = []
                for turn in range(2):
                    r = front.post(CHAT, {"messages": [*history, *([{"role": "assistant", "content": "ok"}, {"role": "user", "content": "And?"}] if turn else []),
                                          ], "max_tokens": 4, "temperature": 0, "seed": session}, {"X-Session-Id": f"s{session}"})
                    self.assertEqual(r.status, 200, r.body)
                    cached.append(r.json["usage"]["prompt_tokens_details"]["cached_tokens"])
                grown = [b - a for a, b in zip(before, served())]
                self.assertEqual(sorted(grown), [0, 2], "both turns at one replica")
                self.assertGreater(cached[1], 0)
                homes.add(grown.index(2))
            self.assertEqual(homes, {0, 1})

            # a replica that drains finishes its stream; what comes meanwhile goes to the other one
            sessions = {}
            while set(sessions) != {0, 1}:
                name = f"d{len(sessions)}{time.monotonic()}"
                before = served()
                front.post(CHAT, {**LONG, "max_tokens": 1}, {"X-Session-Id": name})
                sessions[[b - a for a, b in zip(before, served())].index(1)] = name
            got = []
            thread = threading.Thread(target=lambda: got.append(Joined(front.stream(CHAT, LONG, {"X-Session-Id": sessions[0]}))))
            thread.start()
            self.assertTrue(one.until(lambda: one.metric("ingot_requests_running") == 1))
            one.process.send_signal(signal.SIGTERM)
            self.assertTrue(one.until(lambda: one.process.poll() is not None or one.get("/health").status == 503))
            for _ in range(4):
                self.assertEqual(front.post(CHAT, {**LONG, "max_tokens": 1}, {"X-Session-Id": sessions[0]}).status, 200)
            thread.join()
            self.assertEqual((got[0].content, got[0].reasoning, got[0].done), (direct.content, direct.reasoning, True))
            self.assertEqual(one.process.wait(30), 0)
            self.assertEqual(front.post(CHAT, {**LONG, "max_tokens": 1}, {"X-Session-Id": sessions[0]}).status, 200)


class Service(unittest.TestCase):
    def test_messages_to_the_service_manager(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"{folder}/notify")
            manager.settimeout(harness.PATIENCE)
            with harness.Server(env={"NOTIFY_SOCKET": f"{folder}/notify"}) as s:
                self.assertEqual(manager.recv(100), b"READY=1")
                s.process.send_signal(signal.SIGTERM)
                self.assertEqual(manager.recv(100), b"STOPPING=1")
                self.assertEqual(s.process.wait(30), 0)

    def test_the_unit_asks_for_options_that_exist(self):
        usage = subprocess.run([harness.PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        for name in ("systemd/ingot.service", "Containerfile", "kubernetes/ingot.yaml"):
            with open(os.path.join(DEPLOY, name), encoding="utf-8") as f:
                lines = [line for line in f.read().splitlines() if "serve" in line and not line.startswith("#")]
            options = set(re.findall(r"--[a-z-]+", " ".join(lines)))
            self.assertTrue(options)
            for option in options:
                self.assertIn(option + " ", usage + " ", name)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "no systemd-analyze")
    def test_the_unit_is_well_formed(self):
        with open(os.path.join(DEPLOY, "systemd", "ingot.service"), encoding="utf-8") as f:
            text = f.read().replace("/usr/local/bin/ingot", harness.PROGRAM)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ingot.service")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False)
            complaints = [line for line in done.stderr.splitlines() if "ingot.service" in line]
            self.assertEqual(complaints, [])

    def test_the_manifests_parse(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        with open(os.path.join(DEPLOY, "kubernetes", "ingot.yaml"), encoding="utf-8") as f:
            kinds = {d["kind"]: d for d in yaml.safe_load_all(f)}
        pod = kinds["Deployment"]["spec"]["template"]["spec"]
        drain = pod["containers"][0]["args"][pod["containers"][0]["args"].index("--drain") + 1]
        self.assertGreater(pod["terminationGracePeriodSeconds"], int(drain) + 5)
        self.assertEqual(kinds["Service"]["spec"]["selector"], kinds["Deployment"]["spec"]["template"]["metadata"]["labels"])


if __name__ == "__main__":
    harness.main()
