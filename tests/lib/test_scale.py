"""What deploy/ and examples/scale have for more than one machine.

  test_scale.py BUILD MODELS

The Slurm script and the command of the Kubernetes Job run as those systems start them, one of them ended in the middle; the manifest
is checked against Kubernetes' schemas; nginx runs with three servers. With BEZEL_QUICK without Ray (build/ray).
"""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "tests", "cli")]
from cases import case, finish, need, same  # noqa: E402
from progress import PATIENCE, wait_until  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL, MODELS = os.path.join(ROOT, sys.argv[1], "bezel"), os.path.join(ROOT, sys.argv[2])
QUICK = bool(os.environ.get("BEZEL_QUICK"))
TINY, PEBBLE = os.path.join(MODELS, "nano-long.gguf"), os.path.join(ROOT, "models", "pebble.gguf")
NGINX = os.path.join(ROOT, "build", "nginx", "usr", "sbin", "nginx")
SHARDS, N = 3, 40
MERGE = os.path.join(ROOT, "deploy", "merge_shards.py")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def prompts(folder):
    """a blank line, and an answer that takes a while among short ones"""
    lines = [json.dumps({"prompt": f"Number {i}", "max_tokens": 3, "options": {"temperature": 0}}) for i in range(N)]
    lines[3] = ""
    lines[10] = json.dumps({"prompt": "long", "regex": "(a|b){1500}"}) # of shard 2
    path = f"{folder}/prompts.jsonl"
    write(path, "\n".join(lines) + "\n")
    return path


def whole(folder):
    """the same without shards, as the scripts ask for it"""
    path = f"{folder}/whole.jsonl"
    subprocess.run([BEZEL, "run", TINY, "--prompts", f"{folder}/prompts.jsonl", "--out", path, "--parallel", "16", "--no-think", "-q"], check=True)
    return read(path)


def merge(*parts, prompts_file=None):
    p = subprocess.run([sys.executable, MERGE, *parts, *(["--prompts", prompts_file] if prompts_file else [])], capture_output=True)
    return p.returncode, p.stdout, p.stderr.decode()


# ---- shards ---------------------------------------------------------------------------


def slurm(box):
    script = os.path.join(ROOT, "deploy", "slurm", "bezel.sbatch")
    text = read(script).decode()
    same(re.search(r"#SBATCH --array=1-(\d+)", text).group(1), re.search(r"SHARDS:=(\d+)", text).group(1), "the array's size")
    os.makedirs(f"{box}/bin", exist_ok=True)
    write(f"{box}/bin/scontrol", f"#!/bin/sh\necho \"$@\" >> {box}/scontrol.log\n")
    os.chmod(f"{box}/bin/scontrol", 0o755)
    out = f"{box}/slurm"

    def start(task, **more):
        env = {**os.environ, "PATH": f"{box}/bin:{os.environ['PATH']}", "MODEL": TINY, "PROMPTS": f"{box}/prompts.jsonl", "OUT": out, "SHARDS": str(SHARDS),
               "BEZEL": BEZEL, "SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_ID": f"77{task}", "SLURM_CPUS_PER_TASK": "1", **more}
        return subprocess.Popen(["bash", script], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(task, **more):
        p = start(task, **more)
        _, err = p.communicate(timeout=PATIENCE)
        return p.returncode, err
    same([run(1)[0], run(3)[0]], [0, 0], "the status")
    part = f"{out}/part-00002.jsonl"
    p = start(2, PARALLEL="1")
    wait_until(lambda: os.path.exists(part) and read(part).count(b"\n") >= 1, "first result")
    p.send_signal(signal.SIGTERM)
    _, err = p.communicate(timeout=PATIENCE)
    need(p.returncode != 0 and 1 <= read(part).count(b"\n") < 13, f"{p.returncode} {err}")
    same(read(f"{box}/scontrol.log"), b"requeue 772\n", "what Slurm was asked for")
    code, _, problem = merge(*[f"{out}/part-{i:05}.jsonl" for i in (1, 2, 3)], prompts_file=f"{box}/prompts.jsonl")
    need(code == 1 and "missing" in problem, problem)
    same(run(2)[0], 0, "the status after it was queued again")
    code, merged, problem = merge(*[f"{out}/part-{i:05}.jsonl" for i in (3, 1, 2)], prompts_file=f"{box}/prompts.jsonl")
    need(code == 0 and merged == whole(box), problem or "the shards together are not the whole")
    code, err = run(4)
    need(code == 2 and "not one of 3 shards" in err, err)


def merging(box):
    parts = [f"{box}/slurm/part-{i:05}.jsonl" for i in (1, 2, 3)]
    lines = read(parts[1]).splitlines(True)
    bad = f"{box}/bad.jsonl"
    for name, data, words in (("missing in the middle", b"".join(lines[:2] + lines[3:]), "missing"), ("missing at the end", b"".join(lines[:-1]), "missing"),
                              ("incomplete", b"".join(lines)[:-5], "line 13"), ("double", b"".join(lines[:1] + lines), "not in order"),
                              ("of another shard", read(parts[0]), "twice")):
        with open(bad, "wb") as f:
            f.write(data)
        code, out, err = merge(parts[0], bad, parts[2], prompts_file=f"{box}/prompts.jsonl")
        need(code == 1 and out == b"" and words in err, f"{name}: {code} {err}")


def kubernetes(box):
    def check(manifest):
        return subprocess.run([os.path.join(ROOT, "build", "python", "bin", "python"), "tests/python/check_manifest.py", "1.33"], input=manifest,
                              capture_output=True, cwd=ROOT)
    manifest = read(os.path.join(ROOT, "deploy", "kubernetes", "batch-job.yaml"))
    checked = check(manifest)
    same(checked.returncode, 0, checked.stderr.decode()[-500:])
    broken = check(manifest.replace(b"completionMode:", b"completionsMode:"))
    need(broken.returncode == 1 and b"completionsMode" in broken.stderr, broken.stderr.decode()[-500:])
    job = json.loads(checked.stdout)
    spec = job["spec"]
    container = spec["template"]["spec"]["containers"][0]
    env = {e["name"]: e.get("value") for e in container["env"]}
    same((env["SHARDS"], spec["completionMode"]), (str(spec["completions"]), "Indexed"), "the number of shards")
    os.makedirs(f"{box}/data", exist_ok=True)
    os.symlink(TINY, f"{box}/data/model.gguf")
    os.symlink(f"{box}/prompts.jsonl", f"{box}/data/prompts.jsonl")
    os.symlink(BEZEL, f"{box}/bin/bezel")
    entry = re.search(r'^ENTRYPOINT \["(\w+)"\]', read(os.path.join(ROOT, "packaging", "Containerfile")).decode(), re.M).group(1)
    for index in range(SHARDS):
        values = {"DATA": f"{box}/data", "SHARDS": str(SHARDS), "THREADS": "1", "JOB_COMPLETION_INDEX": str(index)}
        need(set(env) <= set(values), f"variables of the manifest: {sorted(env)}")
        arguments = [re.sub(r"\$\((\w+)\)", lambda m: values[m.group(1)], a) for a in container["args"]]
        subprocess.run([entry, *arguments], check=True, env={**os.environ, "PATH": f"{box}/bin:{os.environ['PATH']}"})
    code, merged, problem = merge(*[f"{box}/data/part-{i}.jsonl" for i in range(SHARDS)], prompts_file=f"{box}/prompts.jsonl")
    need(code == 0 and merged == read(f"{box}/whole.jsonl"), problem or "the shards together are not the whole")


# ---- nginx ------------------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    def __init__(self, folder, servers, without=None):
        """without: what the line begins with that is left out"""
        self.port = free_port()
        text = read(os.path.join(ROOT, "deploy", "nginx", "bezel.conf")).decode()
        for number, port in enumerate([self.port, *(s.port for s in servers)]):
            need(f"127.0.0.1:1150{number}" in text, f"no address {number} in the file")
            text = text.replace(f"127.0.0.1:1150{number}", f"127.0.0.1:{port}")
        paths = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        if without:
            without = without.replace("127.0.0.1:11503", f"127.0.0.1:{servers[2].port}")
            need(without in text, f"no {without} in the file")
            text = "".join(line for line in text.splitlines(True) if not line.strip().startswith(without))
        write(f"{folder}/bezel.conf", text)
        write(f"{folder}/nginx.conf", f"daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log warn;\nevents {{}}\n"
                                      f"http {{ access_log off; {paths} include {folder}/bezel.conf; }}\n")
        self.p = subprocess.Popen([NGINX, "-p", folder, "-e", f"{folder}/nginx.log", "-c", f"{folder}/nginx.conf"], stderr=subprocess.PIPE)
        wait_until(self.answers, "nginx")

    def answers(self):
        need(self.p.poll() is None, "nginx ended")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        return False

    def open(self, body, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", "Host": "localhost",
                                                                              **{k.replace("_", "-"): v for k, v in headers.items()}})
        response = connection.getresponse()
        response.connection = connection
        return response

    def ask(self, messages, tokens=1, **headers):
        """the server that answered (the last of those that were tried), and the answer"""
        response = self.open({"messages": messages, "max_tokens": tokens, "temperature": 0}, **headers)
        data = response.read()
        response.connection.close()
        need(response.status == 200, f"{response.status} {data[:300]}")
        return response.headers["X-Bezel-Server"], json.loads(data)

    def end(self):
        self.p.terminate()
        self.p.communicate(timeout=PATIENCE)


def user(text):
    return {"role": "user", "content": text}


def opening(i):
    """all have the same first 100 tokens"""
    return [{"role": "system", "content": "You are kind. " * 20}, user(f"My name is {i} {{of}} \"many\".")]


def conversations(nginx, homes):
    """40 of them: each stays where it began, and all servers have some; fills in their servers"""
    for i in range(40):
        messages = opening(i)
        homes[i], first = nginx.ask(messages)
        if i < 8:
            server, second = nginx.ask([*messages, {"role": "assistant", "content": first["choices"][0]["message"]["content"] or "Hello"}, user("What is my name?")])
            same(server, homes[i], f"the server of conversation {i}")
            known = first["usage"]["prompt_tokens"] - 8
            need(second["usage"]["prompt_tokens_details"]["cached_tokens"] >= known, f"{second['usage']} after {first['usage']}")
    same(len(set(homes.values())), 3, "servers that were used")
    by_header = {nginx.ask([user(f"Question {i}")], X_Session_Id="one")[0] for i in range(6)}
    same(len(by_header), 1, "servers of one X-Session-Id")


def streaming(nginx, servers):
    """the first words come while the server writes; a server with a full queue sends requests on"""
    long = {"messages": [user("x")], "regex": "(a|b){1900}", "stream": True}
    running = nginx.open(long, X_Session_Id="busy")
    home = running.headers["X-Bezel-Server"]
    pieces = [running.read1() for _ in range(12)]
    need(pieces[0].startswith(b"data: {"), str(pieces[0]))
    # nginx would gather 4 kB.
    need(min(map(len, pieces)) < 1000, f"pieces of {[len(p) for p in pieces]} bytes")
    waiting = threading.Thread(target=lambda: nginx.open(long, X_Session_Id="busy").connection.close())
    server = next(s for s in servers if home.endswith(f":{s.port}"))

    def figure(name):
        text = server.ask("GET", "/metrics")[2].decode()
        return int(re.search(rf"^llamacpp:requests_{name} (\d+)$", text, re.M).group(1))
    same(figure("processing"), 1, "answers being written")
    waiting.start()
    wait_until(lambda: figure("deferred") == 1, "request in the queue")
    tried, _ = nginx.ask([user("short")], X_Session_Id="busy")
    need(tried.startswith(home + ", "), f"{tried} after {home}")
    running.connection.close()
    waiting.join()
    wait_until(lambda: figure("processing") == 0, "end of answers whose clients are gone")


def fewer(folder, servers, homes):
    """without the third server only its conversations move"""
    os.makedirs(folder)
    nginx = Nginx(folder, servers, without="server 127.0.0.1:11503")
    try:
        for i, home in list(homes.items())[:20]:
            server, _ = nginx.ask(opening(i))
            need(server == home or home.endswith(f":{servers[2].port}"), f"conversation {i} moved from {home} to {server}")
    finally:
        nginx.end()


def failover(nginx, servers, homes):
    lost = servers[0]
    address = f"127.0.0.1:{lost.port}"
    lost.end()
    for i in range(0, 40, 3):
        server, _ = nginx.ask(opening(i))
        if homes[i] == address:
            need(server.split(", ")[-1] != address, f"{i} is still at {server}")
        else:
            same(server, homes[i], f"the server of conversation {i}")


def behind_nginx(box):
    folder = f"{box}/nginx"
    os.makedirs(folder)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Serving(BEZEL, "--model", PEBBLE, "--threads", "1", "--parallel", "1", "--queue", "1")) for _ in range(3)]
        nginx = Nginx(folder, servers)
        stack.callback(nginx.end)
        homes = {}
        case("nginx: a conversation stays with its server", conversations, nginx, homes)
        case("nginx: streams, and a full queue", streaming, nginx, servers)
        case("nginx: one server fewer", fewer, f"{box}/fewer", servers, homes)
        case("nginx: a server that fails", failover, nginx, servers, homes)


# ---- Ray ----------------------------------------------------------------------------------


def ray(box):
    made = subprocess.run(["make", "-s", f"B={sys.argv[1]}", "wheel"], check=True, capture_output=True, text=True, env={**os.environ, "MAKEFLAGS": ""})
    with zipfile.ZipFile(made.stdout.split()[-1]) as z:
        z.extractall(f"{box}/package")
    p = subprocess.run(["build/ray/bin/python", "tests/python/check_ray.py", os.path.join(MODELS, "nano-e-q8_0.gguf"), "10000"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": f"{box}/package"})
    sys.stdout.write("".join(line for line in p.stdout.splitlines(True) if line.startswith(("ok ", "FAIL "))))
    sys.stdout.flush()
    case("Ray ends well", lambda: need(p.returncode == 0 and "ok " in p.stdout, f"status {p.returncode}: {p.stderr[-1500:]}"))


def main():
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="bezel-scale-") as box:
        prompts(box)
        case("Slurm: an array with a task that is ended and queued again", slurm, box)
        case("shards that do not fit are not merged", merging, box)
        case("Kubernetes: an Indexed Job", kubernetes, box)
        behind_nginx(box)
        if not QUICK:
            ray(box)
    return finish()


sys.exit(main())
