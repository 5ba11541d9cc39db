"""browser.py - for tests: a headless Chromium, spoken to through its debugging pipe. Standard library only."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

import harness


def find():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Browser:
    """One page; `with Browser(url) as b`."""

    def __init__(self, url, width=900, height=700):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()

        def pass_pipes():  # the browser reads from 3 and writes to 4
            high = [os.dup2(fd, 100 + i) for i, fd in enumerate((read_commands, write_answers))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
        options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   f"--user-data-dir={self.folder.name}", f"--window-size={width},{height}"]
        self.process = subprocess.Popen([find(), *options], preexec_fn=pass_pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_answers)
        self.count, self.pending, self.session, self.requests, self.faults = 0, b"", None, [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Page.navigate", url=url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.folder.cleanup()

    def _message(self):
        while b"\0" not in self.pending:
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.pending += piece
        text, self.pending = self.pending.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, **params):
        """The result of one command; requests and faults seen on the way are kept."""
        self.count += 1
        command = {"id": self.count, "method": method, "params": params, **({"sessionId": self.session} if self.session else {})}
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            m = self._message()
            if m.get("id") == self.count:
                if "error" in m:
                    raise RuntimeError(m["error"]["message"])
                return m["result"]
            if m.get("method") == "Network.requestWillBeSent":
                self.requests.append(m["params"]["request"]["url"])
            elif m.get("method") == "Runtime.exceptionThrown":
                self.faults.append(m["params"]["exceptionDetails"]["exception"].get("description", "exception"))
            elif m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] == "error":
                self.faults.append(m["params"]["entry"]["text"])

    def value(self, script):
        r = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(str(r["exceptionDetails"]))
        return r["result"].get("value")

    def until(self, script, seconds=30):
        """The first true value of a script."""
        end = time.monotonic() + seconds * harness.SLOW
        while not (value := self.value(script)):
            if time.monotonic() > end:
                raise RuntimeError(f"never: {script}: {self.value('document.body.innerText')!r} {self.faults}")
            time.sleep(0.05)
        return value

    def reload(self):
        """Loads the page again, and waits for it: what is asked before may find the old one."""
        self.value("window.old = true")
        self.send("Page.reload")
        end = time.monotonic() + 30 * harness.SLOW
        while True:
            try:
                if self.value("!window.old && document.readyState === 'complete'"):
                    return
            except RuntimeError as e:  # the question came between the two
                if "navigated" not in str(e):
                    raise
            if time.monotonic() > end:
                raise RuntimeError("never loaded again")
            time.sleep(0.05)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def press_enter(self):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")

    def picture(self, name):
        """Keeps a screenshot in the folder INGOT_PICTURES, when that is set."""
        folder = os.environ.get("INGOT_PICTURES")
        if folder:
            with open(os.path.join(folder, name), "wb") as f:
                f.write(base64.b64decode(self.send("Page.captureScreenshot")["data"]))
