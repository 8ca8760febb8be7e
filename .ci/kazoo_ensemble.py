"""A pytest plugin: kazoo's suite takes an ensemble that runs already, the one whose addresses are in KAZOO_HOSTS.

KAZOO_MEMBERS is a folder with, for the member of each number, a script that starts it and a file with its process id.
"""

import os
import signal
import subprocess
import time

import kazoo.testing.harness

FOLDER = os.environ["KAZOO_MEMBERS"]


class Server:
    """One member, as much of it as the suite's harness asks for."""

    def __init__(self, number, address):
        self.number = number
        self.address = address
        self.secure_address = address
        self.process = None

    def path(self, ending):
        return os.path.join(FOLDER, f"{self.number}.{ending}")

    @property
    def pid(self):
        with open(self.path("pid"), encoding="ascii") as file:
            return int(file.read())

    @property
    def running(self):
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def stop(self):
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while self.running and time.monotonic() < deadline:
            if self.process is not None:
                self.process.poll()
            time.sleep(0.05)
        assert not self.running, "a member does not stop"

    def run(self):
        before = self.pid
        self.process = subprocess.Popen([self.path("sh")], start_new_session=True)
        deadline = time.monotonic() + 30
        while self.pid == before and time.monotonic() < deadline:
            time.sleep(0.05)


class Ensemble(list):
    """What stops and starts all of it does nothing."""

    def start(self):
        pass

    def stop(self):
        pass

    def reset(self):
        pass

    def terminate(self):
        pass

    def get_logs(self):
        return []


ENSEMBLE = Ensemble(
    Server(number, address) for number, address in enumerate(os.environ["KAZOO_HOSTS"].split(","))
)
kazoo.testing.harness.get_global_cluster = lambda: ENSEMBLE
