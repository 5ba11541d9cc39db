"""test_openai_js.py - runs client.mjs, the official JavaScript client, against a server."""
import os
import shutil
import subprocess

import clients
import harness


class JavaScript(harness.Case):
    OPTIONS = ("--api-key", "sk-test")

    def test_every_check(self):
        folder = clients.node_folder()
        script = shutil.copy(os.path.join(clients.HERE, "client.mjs"), folder)
        done = subprocess.run(["node", script, str(self.server.port)], capture_output=True, text=True, timeout=harness.PATIENCE, check=False)
        print(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    clients.node_folder()
    harness.main()
