"""Waits bounded by progress instead of seconds: on a busy machine a program is slow, not wrong."""
import os
import time

IDLE = 20   # seconds in which a process neither prints nor uses the CPU
BUSY = 300  # seconds of CPU time for one wait
PATIENCE = 600  # seconds, for waits where neither can be seen


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
    except OSError:  # it has exited
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Progress:
    def __init__(self, pid):
        self.pid = pid
        self.first = self.used = cpu_seconds(pid)
        self.since = time.monotonic()

    def problem(self, printed=False):
        """"" while the process makes progress, else a reason to give up"""
        used, now = cpu_seconds(self.pid), time.monotonic()
        if printed or used > self.used:
            self.used, self.since = used, now
        if now - self.since > IDLE:
            return f"nothing happened for {IDLE} s"
        return f"it used {BUSY} s of CPU time" if used - self.first > BUSY else ""


def sleeps_in(pid, place):
    """whether its first thread does; a kernel that hides the place ("0", as for a thread that runs) says at least that it sleeps"""
    with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
        where = f.read()
    if where not in ("", "0"):
        return place in where
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


def writes_to_full_pipe(pid):
    """how many bytes fit depends on how they were written and read, so the kernel is asked where it sleeps"""
    return sleeps_in(pid, "pipe_write")


def waits_for_writer(pid):
    """whether it opens a pipe for reading that nobody has open for writing"""
    return sleeps_in(pid, "wait_for_partner")


def wait_until(ready, what):
    """for what another process does"""
    end = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > end:
            raise AssertionError(f"no {what} after {PATIENCE} s")
        time.sleep(0.005)
