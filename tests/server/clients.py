"""clients.py - for tests: the published clients, installed beside the build when the registries can be reached.

Versions are pinned in requirements.txt and package.json. INGOT_CLIENTS names another folder to keep them in.
"""
import fcntl
import os
import shutil
import subprocess
import sys

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.environ.get("INGOT_CLIENTS", os.path.join(harness.ROOT, "build", "clients"))
SECONDS = 120


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, folder=None):
    """True when the command succeeds in time."""
    try:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def same(path, text):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read() == text
    except OSError:
        return False


def install(name, list_file, make):
    """Runs make(folder) unless this folder was made from the same list before; the folder. One process at a time."""
    folder = os.path.join(FOLDER, name)
    os.makedirs(FOLDER, exist_ok=True)
    with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        make_once(name, folder, list_file, make)
    return folder


def make_once(name, folder, list_file, make):
    with open(os.path.join(HERE, list_file), encoding="utf-8") as f:
        wanted = f.read()
    if not same(os.path.join(folder, "made-from"), wanted):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        if not make(folder):
            skip(f"{name} clients: the registry is out of reach or a tool is missing")
        with open(os.path.join(folder, "made-from"), "w", encoding="utf-8") as f:
            f.write(wanted)


def use_python():
    """Goes on in an interpreter that has the packages of requirements.txt."""
    if os.environ.get("INGOT_IN_CLIENTS"):
        return
    def make(folder):
        return (run(sys.executable, "-m", "venv", folder) and
                run(f"{folder}/bin/pip", "install", "-q", "--disable-pip-version-check", "--retries", "1", "--timeout", "20", "-r", os.path.join(HERE, "requirements.txt")))
    python = os.path.join(install("python", "requirements.txt", make), "bin", "python")
    os.environ["INGOT_IN_CLIENTS"] = "1"
    os.execv(python, [python, "-B", *sys.argv])


def node_folder():
    """A folder in which node finds the packages of package.json."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("no node and npm")

    def make(folder):
        shutil.copy(os.path.join(HERE, "package.json"), folder)
        return run("npm", "install", "--silent", "--no-audit", "--no-fund", folder=folder)
    return install("node", "package.json", make)
