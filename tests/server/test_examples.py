"""test_examples.py - the clients of examples/ against a server, as a user would run them."""
import os
import shutil
import subprocess
import sys
import unittest

import clients
import harness

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(clients.HERE)), "examples")


class Examples(harness.Case):
    OPTIONS = ("--api-key", "sk-test")

    def run_example(self, *command):
        env = {**os.environ, "INGOT_URL": f"http://127.0.0.1:{self.server.port}", "INGOT_API_KEY": "sk-test"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE, check=False, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    @unittest.skipUnless(shutil.which("curl"), "no curl")
    def test_a_stream_with_curl(self):
        out = self.run_example(os.path.join(EXAMPLES, "stream.sh"), "What is 2 + 2?")
        lines = [line for line in out.split("\n") if line.startswith("data: ")]
        self.assertGreater(len(lines), 3, out)
        self.assertEqual(lines[-1], "data: [DONE]")

    def test_a_tool_call_in_python(self):
        out = self.run_example(sys.executable, os.path.join(EXAMPLES, "tools.py"))
        self.assertRegex(out, r'^call: get_weather \{.*"city"')

    def test_a_conversation_in_javascript(self):
        script = shutil.copy(os.path.join(EXAMPLES, "chat.mjs"), clients.node_folder())
        out = self.run_example("node", script)
        self.assertEqual(out.count("> "), 2, out)
        cached = [int(line.split("(")[1].split()[0]) for line in out.split("\n") if "were cached" in line]
        self.assertEqual(len(cached), 2, out)
        self.assertGreater(cached[1], 0, "the second turn found nothing in the prompt cache")


if __name__ == "__main__":
    clients.use_python()
    harness.main()
