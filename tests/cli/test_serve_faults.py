#!/usr/bin/env python3
"""serve under mixed load while things break: every complete answer is that of an undisturbed server, everything else
ends with a sentence, and nothing grows.

    test_serve_faults.py PROGRAM MODELS [SECONDS [DISK [LOSES_DEVICE]]]

SECONDS: how long; without it three clients ask a few times, and every fault happens once. DISK: a folder on a small file system
of its own, such as a tmpfs of 20 MB, that is filled during downloads; without it the size of files is limited instead.
LOSES_DEVICE: build/tests/gpu/lose_device.so, for a second server whose GPU device is lost again and again.
"""
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
from cases import case, finish, need, same  # noqa: E402
from progress import PATIENCE, wait_until  # noqa: E402
from registry import Registry, digest_of  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL, MODELS = (os.path.abspath(a) for a in sys.argv[1:3])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 0
DISK = sys.argv[4] if len(sys.argv) > 4 else None
LOSES_DEVICE = os.path.abspath(sys.argv[5]) if len(sys.argv) > 5 else None
PEBBLE = os.path.join(HERE, "..", "..", "models", "pebble.gguf")
with open(PEBBLE, "rb") as f:
    MODEL = f.read()
CLIENTS = 8 if SECONDS else 3
ROUNDS = 3          # of each client, without SECONDS; each fault happens once
SUBMITS = 60        # of a device until it is lost
GROWTH = 0.03       # of resident memory in the second half of the time
NEVER_ENDS = {"logit_bias": {"1": -100, "106": -100}}  # the end tokens


# ---- requests and their answers ----------------------------------------------------------------


class Refused(Exception):
    """an answer that is an error with a sentence"""


def refusal(text):
    error = json.loads(text)["error"]
    sentence = error["message"] if isinstance(error, dict) else error
    need(len(sentence) > 20, f"no sentence: {sentence!r}")
    return Refused(sentence)


def from_events(text):
    """the content of a stream of OpenAI's"""
    parts = text.split("\n\n")
    if '"error"' in parts[-2]:
        raise refusal(parts[-2][len("data: "):])
    same(parts[-2:], ["data: [DONE]", ""], "the end of the events")
    return "".join(json.loads(p[6:])["choices"][0]["delta"].get("content") or "" for p in parts[:-2])


def from_lines(text):
    """the content of a stream of Ollama's"""
    lines = [json.loads(line) for line in text.splitlines()]
    if "error" in lines[-1]:
        raise refusal(text.splitlines()[-1])
    same(lines[-1]["done"], True, "the last line")
    return "".join(x.get("response") or x.get("message", {}).get("content", "") for x in lines)


def from_choices(text):
    choice = json.loads(text)["choices"][0]
    return choice["message"]["content"] if "message" in choice else choice["text"]


def requests_for(model):
    """(path, body, the function that reads the answer)"""
    for i, words in enumerate(("a dog", "a red boat and the sea", "two friends", "snow")):
        messages = [{"role": "system", "content": "You tell short stories for children. " * (1 + i)}, {"role": "user", "content": f"Tell me about {words}."}]
        sampling = {"temperature": 0} if i % 2 else {"seed": i, "temperature": 0.8}
        openai = {"model": model, "max_tokens": 20 + 30 * i, **sampling}
        ollama = {"model": model, "options": {"num_predict": 20 + 10 * i, **sampling}, **({"keep_alive": 0} if i == 2 else {})}
        yield "/v1/chat/completions", {**openai, "messages": messages, "stream": True}, from_events
        yield "/v1/chat/completions", {**openai, "messages": messages}, from_choices
        yield "/v1/completions", {**openai, "prompt": f"Once there was {words}"}, from_choices
        yield "/api/chat", {**ollama, "messages": messages}, from_lines
        yield "/api/generate", {**ollama, "prompt": f"Tell me about {words}."}, from_lines
    yield "/api/show", {"model": model}, lambda text: str(sorted(json.loads(text)["model_info"].items()))


def answer(s, path, body, read):
    """the text of the answer; Refused: a sentence instead"""
    status, _, text = s.ask("POST", path, body)
    if status != 200:
        need(status in (404, 500, 503), f"{path}: {status} {text[:300]!r}")
        raise refusal(text)
    return read(text.decode())


# ---- what breaks ------------------------------------------------------------------------------

LEAVER = """import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
c.request("POST", "/v1/chat/completions", sys.argv[3], {"Content-Type": "application/json"})
r = c.getresponse()
while True:
    print(len(r.readline()), flush=True)
"""


class Faults:
    """on one server and its store; each waits a moment, so that clients meet it"""

    def __init__(self, server, store, registry, name, data):
        self.server, self.store, self.registry, self.name, self.data = server, store, registry, name, data
        self.blob = os.path.join(store, "blobs", digest_of(data).replace(":", "-"))
        self.n = 0

    def pull(self, name):
        return self.server.lines("/api/pull", {"model": name})[-1]

    def put_back(self):
        """as a download does: under another name first"""
        with open(self.blob + ".new", "wb") as f:
            f.write(self.data)
        os.rename(self.blob + ".new", self.blob)

    def killed_client(self):
        """a process that reads a stream is killed"""
        body = {"model": "pebble", "messages": [{"role": "user", "content": "Go on and on."}], "max_tokens": 1500, "stream": True, **NEVER_ENDS}
        with subprocess.Popen([sys.executable, "-c", LEAVER, self.server.host, str(self.server.port), json.dumps(body)], stdout=subprocess.PIPE) as p:
            for _ in range(random.randrange(1, 30)):
                p.stdout.readline()
            p.kill()

    def deleted_file(self):
        os.remove(self.blob)
        time.sleep(random.random())
        self.put_back()

    def deleted_model(self):
        """through the API, and pulled again"""
        same(self.server.ask("DELETE", "/api/delete", {"model": self.name})[0], 200, "the deletion")
        need(not os.path.exists(self.blob), "the file is still there")
        same(self.pull(self.name), {"status": "success"}, "the download after it")

    def replaced_file(self):
        """by one that is no model, and by the first half of it"""
        for other in (random.randbytes(len(self.data)), self.data[:random.randrange(len(self.data))]):
            with open(self.blob + ".new", "wb") as f:
                f.write(other)
            os.rename(self.blob + ".new", self.blob)
            time.sleep(random.random() / 2)
        self.put_back()

    def shortened_file(self):
        """while it is mapped"""
        os.truncate(self.blob, random.randrange(len(self.data)))
        time.sleep(random.random() / 2)
        self.put_back()

    def full_disk(self):
        """a download does not fit; what is served does not notice, and later it continues"""
        self.n += 1
        name, data = f"{self.registry.host}/ns/other{self.n}:t", MODEL + self.n.to_bytes(8, "little") * 4
        self.registry.add(f"ns/other{self.n}:t", [("model", data)])
        if DISK:
            filler = os.path.join(DISK, "filler")
            with open(filler, "wb") as f:
                f.write(bytes(max(0, shutil.disk_usage(DISK).free - len(data) - 200000)))  # enough is free when it begins,
            self.registry.hook = self.fill_the_rest(filler, digest_of(data))  # but not later
        else:
            resource.prlimit(self.server.downloader(), resource.RLIMIT_FSIZE, (len(data) // 3, resource.RLIM_INFINITY))
        last = self.pull(name)
        self.registry.hook = None
        if DISK:
            os.remove(filler)
        resource.prlimit(self.server.downloader(), resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        need(len(last.get("error", "")) > 20, f"a download on a full disk: {last}")
        same(self.pull(name), {"status": "success"}, "the download when there is room again")
        same(self.server.ask("DELETE", "/api/delete", {"model": name})[0], 200, "its deletion")

    @staticmethod
    def fill_the_rest(filler, digest):
        def hook(_, path):
            if path.endswith(digest):
                with open(filler, "ab", buffering=0) as f:
                    try:
                        while f.write(bytes(4096)):
                            pass
                    except OSError:
                        pass
            return False
        return hook

    def unfinished(self):
        """connections that send half of a request, for a while"""
        ends = [socket.create_connection((self.server.host, self.server.port), timeout=PATIENCE) for _ in range(40)]
        for i, c in enumerate(ends):
            c.sendall(b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{"[:10 + 2 * i])
        time.sleep(random.random())
        for c in ends:
            c.close()

    def all(self):
        return [self.killed_client, self.deleted_file, self.deleted_model, self.replaced_file, self.shortened_file, self.full_disk, self.unfinished]


# ---- the load ---------------------------------------------------------------------------------


class Load:
    """clients that compare their answers"""

    def __init__(self, server, expected, may_fail):
        self.server, self.expected, self.may_fail = server, expected, may_fail
        self.right = self.refused = 0
        self.sentences, self.wrong, self.lock = {}, [], threading.Lock()
        self.end = threading.Event()
        self.clients = []

    def start(self, n):
        self.clients = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(n)]
        for t in self.clients:
            t.start()

    def client(self, seed):
        choose = random.Random(seed)
        rounds = 0
        while not self.end.is_set() and not (SECONDS == 0 and rounds == ROUNDS):
            key = choose.choice(list(self.expected))
            rounds += 1
            try:
                self.one(key)
            except Exception as e:  # noqa: B902
                self.wrong.append(f"{key}: {type(e).__name__}: {e}")
                return

    def one(self, key):
        (path, body, read), want = self.expected[key]
        try:
            got = answer(self.server, path, body, read)
        except Refused as e:
            need(body["model"] in self.may_fail, f"refused: {e}")
            with self.lock:
                self.refused += 1
                self.sentences[str(e)] = self.sentences.get(str(e), 0) + 1
            return
        need(got == want, f"{got!r} instead of {want!r}")
        with self.lock:
            self.right += 1

    def stop(self):
        self.end.set()
        for t in self.clients:
            t.join()


def expected_of(server, models):
    """every request once, alone; the models are the same under several names"""
    step = 1 if SECONDS else 5
    answers = [answer(server, *r) for r in list(requests_for(models[0]))[::step]]
    return {(model, i): (r, answers[i]) for model in models for i, r in enumerate(list(requests_for(model))[::step])}


def status_of(server):
    """kB in memory, and how many files are open"""
    pid = server.p.pid
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        resident = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return resident, len(os.listdir(f"/proc/{pid}/fd"))


def growth_of(samples):
    """by how much of itself a figure grows over the second half of the samples: the slope of a line through them"""
    half = samples[len(samples) // 2:]
    n, mean = len(half), sum(half) / len(half)
    slope = sum((i - (n - 1) / 2) * (y - mean) for i, y in enumerate(half)) / sum((i - (n - 1) / 2) ** 2 for i in range(n))
    return slope * n / mean


def rest(server):
    def idle():
        text = server.ask("GET", "/metrics")[2].decode()
        figures = {line.split()[0].split(":")[-1]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
        return figures["requests_processing"] == 0 and figures["requests_deferred"] == 0
    wait_until(idle, "end of all answers")


def mixed(server, faults, models, may_fail):
    load = Load(server, expected_of(server, models), may_fail)
    rest(server)
    files_before = status_of(server)[1]
    memory, counts = [], {}
    load.start(CLIENTS)
    end = time.monotonic() + SECONDS
    sampled, reported = 0.0, time.monotonic()
    todo = faults.all()
    while not load.wrong and (time.monotonic() < end if SECONDS else todo):
        fault = random.choice(todo) if SECONDS else todo.pop()
        fault()
        counts[fault.__name__] = counts.get(fault.__name__, 0) + 1
        time.sleep(random.random() / 5)
        if time.monotonic() - sampled > 1:
            sampled = time.monotonic()
            memory.append(status_of(server)[0])
        if time.monotonic() - reported > 60:
            reported = time.monotonic()
            print(f"  {load.right} right, {load.refused} refused, {sum(counts.values())} faults, {memory[-1] // 1024} MB, {status_of(server)[1]} files", flush=True)
    load.stop()
    need(server.p.poll() is None, f"the server ended with {server.p.poll()}")
    need(not load.wrong, f"{len(load.wrong)} clients failed: {load.wrong[:3]}")
    rest(server)
    for key in load.expected:  # everything is as before
        load.one(key)
    need(load.right > 0 and not any("crash" in x for x in load.sentences), str(load.sentences))
    files_after = status_of(server)[1]
    need(files_after <= files_before + 8, f"{files_after} open files after {files_before}")
    print(f"  {load.right} right answers, {load.refused} refusals, faults {counts}", flush=True)
    for sentence, n in sorted(load.sentences.items(), key=lambda x: -x[1])[:12]:
        print(f"    {n} x {sentence}", flush=True)
    if len(memory) >= 60:
        print(f"  resident memory: {memory[0] // 1024} MB at first, {memory[len(memory) // 2] // 1024} in the middle, {memory[-1] // 1024} at the end, "
              f"at most {max(memory) // 1024}; growth over the second half {100 * growth_of(memory):.2f} %", flush=True)
        need(growth_of(memory) < GROWTH, f"resident memory grows: {memory[::max(1, len(memory) // 20)]} kB")


def with_faults():
    registry = Registry().__enter__()
    data = MODEL + b"\0" * 64  # another digest, the same answers
    registry.add("ns/breaks:t", [("model", data)])
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(DISK or folder, "store")
        name = f"{registry.host}/ns/breaks:t"
        with Serving(BEZEL, PEBBLE, "--parallel", "8", env={"OLLAMA_MODELS": store}) as server:
            faults = Faults(server, store, registry, name, data)
            same(faults.pull(name), {"status": "success"}, "the first download")
            mixed(server, faults, ["pebble", name], [name])
            code, err = server.end()
            same((code, err), (0, ""), "exit code and messages")
        if DISK:
            shutil.rmtree(store)
    registry.__exit__()


# ---- a GPU that is lost -----------------------------------------------------------------------


def lost_device():
    """the device is taken away after some work, again and again; answers continue on another one"""
    model = os.path.join(MODELS, "nano-e-f32.gguf")
    name = "nano-e-f32"
    options = [model, "--device", "gpu", "--parallel", "2"]
    requests = [("/v1/chat/completions", {"model": name, "messages": [{"role": "user", "content": f"hello {i}"}], "max_tokens": 6 + i, "temperature": 0, **NEVER_ENDS, "stream": i % 2 == 0},
                 from_choices if i % 2 else from_events) for i in range(4)]
    with Serving(BEZEL, *options) as calm:
        expected = {(name, i): (r, answer(calm, *r)) for i, r in enumerate(requests)}
    lost = tempfile.NamedTemporaryFile(dir="/dev/shm")  # a driver may write there, inside the sandbox
    env = {"LD_PRELOAD": LOSES_DEVICE, "LOSE_DEVICE_AFTER": str(SUBMITS), "LOSE_DEVICE_LOG": lost.name}
    with Serving(BEZEL, *options, env=env) as server:
        load = Load(server, expected, [name])
        load.start(2)
        end = time.monotonic() + SECONDS
        while not load.wrong and any(t.is_alive() for t in load.clients) and time.monotonic() < end:
            time.sleep(0.5)
        load.stop()
        need(not load.wrong, f"{len(load.wrong)} clients failed: {load.wrong[:3]}")
        times = os.path.getsize(lost.name)
        need(times > 0 and load.right > 0, f"lost {times} times, {load.right} right answers")
        print(f"  {load.right} right answers, {load.refused} refusals {load.sentences}, the device was lost {times} times, {status_of(server)[0] // 1024} MB", flush=True)
        same(server.end(signal.SIGTERM), (0, ""), "exit code and messages")


def main():
    gpu = threading.Thread(target=case, args=("faults: a GPU device that is lost", lost_device)) if LOSES_DEVICE else None
    if gpu:
        gpu.start()
    case("faults: mixed load", with_faults)
    if gpu:
        gpu.join()
    return finish()


sys.exit(main())
