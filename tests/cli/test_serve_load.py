#!/usr/bin/env python3
"""serve under load: many streaming clients at once, slow and leaving ones, a full queue, half-open connections.

    test_serve_load.py PROGRAM MODELS [SECONDS]

SECONDS: how long the streaming clients run; a few requests each without it.
"""
import http.client
import json
import os
import select
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402
from progress import PATIENCE, wait_until  # noqa: E402
from serving import Serving  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 0
PEBBLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "pebble.gguf")
CLIENTS = 64
SYSTEM = {"role": "system", "content": "You tell short stories for children. " * 4}
NEVER_ENDS = {"logit_bias": {"1": -100, "106": -100}}  # the end tokens


def body(i, tokens, **more):
    return {"model": "pebble", "messages": [SYSTEM, {"role": "user", "content": f"Tell me story number {i}."}], "max_tokens": tokens, "seed": i, "stream": True, **more}


def resident(s):
    with open(f"/proc/{s.p.pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def figures(s):
    text = s.ask("GET", "/metrics")[2].decode()
    return {line.split(" ")[0].split(":")[1]: float(line.split(" ")[1]) for line in text.splitlines() if not line.startswith("#")}


def wait_for_rest(s):
    wait_until(lambda: figures(s)["requests_processing"] == 0 and figures(s)["requests_deferred"] == 0, "end of all answers")


def stream_lines(r):
    """pairs (when, object) as they arrive"""
    while True:
        line = r.readline()
        if not line or line == b"data: [DONE]\n":
            return
        if line.startswith(b"data: "):
            yield time.time(), json.loads(line[6:])


# ---- streaming clients -------------------------------------------------------------------------


def streams(s):
    """every client gets whole answers, and all of them progress"""
    tokens = 120 if SECONDS else 6
    end = time.time() + SECONDS
    gaps, errors, answers, memory = [], [], [0] * CLIENTS, []

    def client(i):
        try:
            k = 0
            while k == 0 or time.time() < end:
                r = s.open("POST", "/v1/chat/completions", body(i * 1000 + k, tokens, **NEVER_ENDS))
                same(r.status, 200, "the status")
                last, n, finish_reason = None, 0, None
                for when, chunk in stream_lines(r):
                    n += 1
                    finish_reason = chunk["choices"][0]["finish_reason"] or finish_reason
                    if last and n > 2:
                        gaps.append(when - last)
                    last = when
                same(finish_reason, "length", "the end")
                r.connection.close()
                answers[i] += 1
                k += 1
        except Exception as e:  # noqa: B902
            errors.append(f"{i}: {type(e).__name__} {e}")

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        threads[0].join(1)
        memory.append(resident(s))
        for t in threads:
            t.join(0.05)
    need(not errors, f"{len(errors)} clients failed: {errors[:3]}")
    need(min(answers) > 0, "a client without an answer")
    gaps.sort()
    if SECONDS:
        need(memory[-1] < 1.2 * memory[len(memory) // 3], f"resident memory grows: {memory[::max(1, len(memory) // 10)]} kB")
        print(f"  {sum(answers)} answers, {min(answers)} to {max(answers)} per client, {sum(answers) * tokens / SECONDS:.0f} tokens/s, "
              f"time between tokens: median {gaps[len(gaps) // 2] * 1000:.0f} ms, 99 % {gaps[len(gaps) * 99 // 100] * 1000:.0f} ms; {memory[-1] // 1024} MB", flush=True)
    f = figures(s)
    need(f["requests_failed_total"] == 0, str(f))
    need(f["prompt_tokens_cached_total"] > 0.5 * f["prompt_tokens_total"], f"the shared system prompt was computed for every client: {f}")


# ---- clients that are not polite ----------------------------------------------------------------


def leaving(s):
    """a client that disconnects ends its answer"""
    clients = []
    for i in range(8):
        r = s.open("POST", "/v1/chat/completions", body(i, 1500, **NEVER_ENDS))
        r.readline()
        clients.append(r)
    need(figures(s)["requests_processing"] > 0, "nothing runs")
    for r in clients:
        r.close()
        r.connection.close()
    wait_for_rest(s)
    before = figures(s)["tokens_predicted_total"]
    half = s.open("POST", "/api/chat", {"model": "pebble", "messages": [{"role": "user", "content": "Hi"}], "options": {"num_predict": -1}, **NEVER_ENDS})
    half.readline()
    half.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, as of a killed process
    half.close()
    half.connection.close()
    wait_for_rest(s)
    need(figures(s)["tokens_predicted_total"] < before + 3000, "the answer went on")


def slow_readers(s):
    """clients that read nothing hold up nobody"""
    slow = []
    for i in range(4):
        c = socket.create_connection((s.host, s.port), timeout=PATIENCE)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        data = json.dumps(body(i, 150, **NEVER_ENDS)).encode()
        c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        slow.append(c)
    a = s.post("/v1/chat/completions", {**body(9, 10), "stream": False})
    same(a["usage"]["completion_tokens"] <= 10, True, "another client's answer")
    wait_for_rest(s)  # their answers are written although they are not read
    for c in slow:
        need(c.recv(12) == b"HTTP/1.1 200", "no answer")
        c.close()


def half_open(s):
    """connections with an unfinished head or body do not lock others out: the oldest are closed for new ones"""
    def unfinished(start):
        c = socket.create_connection((s.host, s.port), timeout=PATIENCE)
        c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\n" + start)
        return c

    heads = [unfinished(b"Host: local") for _ in range(600)]
    since = time.monotonic()
    same(s.get("/health"), {"status": "ok"}, "with 600 unfinished heads")
    need(heads[0].recv(100)[:12] in (b"", b"HTTP/1.1 408"), "the first of them is still open")
    # Answered before the last of them was given up, which takes 10 seconds.
    is_open = not select.select([heads[-1]], [], [], 0)[0]
    need(is_open or time.monotonic() - since > 10, "the last of them is closed, too")
    bodies_ = [unfinished(b"Host: localhost\r\nContent-Length: 1000\r\n\r\n{") for _ in range(600)]
    # A body that did not grow for 2 seconds makes room: refused requests, half a tenth of a second apart, cannot be many.
    refused = 0
    while s.ask("GET", "/health")[0] != 200:
        refused += 1
        need(refused <= 60, "still refused after 3 seconds")
        time.sleep(0.05)
    for c in heads + bodies_:
        c.close()


def idle(s):
    """1,000 connections that ask nothing hold up nobody, and those that are kept can be used"""
    before = resident(s)
    waiting = [socket.create_connection((s.host, s.port), timeout=PATIENCE) for _ in range(1000)]
    answer = s.post("/v1/chat/completions", {**body(1, 4), "stream": False})
    need(answer["usage"]["completion_tokens"] <= 4, str(answer))
    r = s.open("POST", "/v1/chat/completions", body(2, 4, **NEVER_ENDS))
    same(len([c for _, c in stream_lines(r) if c["choices"][0]["delta"].get("content")]) > 0, True, "a stream")
    r.connection.close()
    waiting[-1].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    need(waiting[-1].recv(100).startswith(b"HTTP/1.1 200 "), "the last of them")
    closed = sum(bool(select.select([c], [], [], 0)[0]) for c in waiting[:-1])
    need(400 <= closed < 1000, f"{closed} of 1,000 were closed; 512 may stay")
    # The sanitizers keep freed memory.
    need(resident(s) < 2 * before + 100000, f"{before} kB before, {resident(s)} kB")
    for c in waiting:
        c.close()
    same(s.get("/health"), {"status": "ok"}, "afterwards")


def addresses(s):
    """wrong methods and paths that lead elsewhere"""
    for method, path, allowed in (("GET", "/v1/chat/completions", "POST"), ("PUT", "/api/generate", "POST"), ("POST", "/api/tags", "GET"), ("POST", "/api/delete", "DELETE"),
                                  ("DELETE", "/v1/models", "GET"), ("PATCH", "/health", "GET"), ("POST", "/metrics", "GET"), ("PUT", "/tokenize", "POST")):
        status, headers, text = s.ask(method, path, b"{}")
        need(status == 405 and allowed in headers["Allow"].split(", ") and text, f"{method} {path}: {status} {headers['Allow']}")
    with open(PEBBLE, "rb") as f:
        model = f.read(64)
    for path in ("/api/../../../etc/passwd", "/v1/models/../../etc/passwd", "/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/%2fetc%2fpasswd", "/v1/models/" + PEBBLE.replace("/", "%2f"),
                 "//etc/passwd", "/api//tags", "/api/tags/", "/api/tags%00", "/api/%74ags/..", "/v1/models/%ff", "/api/blobs/../../x", "/./api/version", "\\api\\tags"):
        status, _, text = s.ask("GET", path)
        need(400 <= status < 502 and b"root:" not in text and model not in text, f"{path}: {status} {text[:80]}")
    for name in ("../../models/pebble.gguf", PEBBLE, os.path.abspath(PEBBLE), "file://" + os.path.abspath(PEBBLE), "pebble.gguf", "\0", "pebble\0", 3, "a" * 5000):
        for path, more in (("/api/chat", {"messages": []}), ("/api/show", {}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})):
            status, _, text = s.ask("POST", path, {"model": name, **more})
            need(status in (400, 404) and json.loads(text)["error"], f"{path} with {str(name)[:40]}: {status}")


def has_answer(c):
    return select.select([c.sock], [], [], 0)[0] != []


def full_queue(_):
    with Serving(BEZEL, PEBBLE, "--parallel", "2", "--queue", "3") as s:
        waiting = []
        while not (len(waiting) > 2 and has_answer(waiting[-1])):  # those that wait get none
            need(len(waiting) < 6, f"{len(waiting)} requests were taken: {figures(s)}")
            c = http.client.HTTPConnection(s.host, s.port, timeout=PATIENCE)
            c.request("POST", "/v1/chat/completions", json.dumps(body(len(waiting), 2000, **NEVER_ENDS)))
            waiting.append(c)
            now = ("requests_processing",) if len(waiting) <= 2 else ("requests_processing", "requests_deferred")
            wait_until(lambda: has_answer(c) and len(waiting) > 2 or sum(figures(s)[key] for key in now) == len(waiting), "a request is taken")
        r = waiting[-1].getresponse()
        same((len(waiting), r.status, r.getheader("Retry-After")), (6, 503, "1"), "the sixth")
        need("waiting" in json.loads(r.read())["error"]["message"], "the reason")
        status, headers, text = s.ask("POST", "/api/chat", {"model": "none", "messages": [{"role": "user", "content": "x"}]})
        need((status, headers["Retry-After"]) == (503, "1") and "waiting" in json.loads(text)["error"], f"{status} {text[:300]}")
        for c in waiting:
            c.close()
        wait_for_rest(s)
        same(s.post("/v1/chat/completions", {**body(1, 3), "stream": False})["usage"]["completion_tokens"], 3, "afterwards")


def bodies(s):
    same(s.ask("POST", "/api/show", b"x" * ((1 << 20) + 1))[0], 413, "a body that is too large")
    c = socket.create_connection((s.host, s.port), timeout=PATIENCE)
    c.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
    need(c.recv(100).startswith(b"HTTP/1.1 413 "), "an announced one")
    c.close()
    long = s.expect(400, "POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 200000}]})
    same(long["error"]["code"], "context_length_exceeded", "a megabyte of text")
    for data in (b"[" * 100000, b'{"messages": ' + b"[" * 63 + b"]" * 63 + b"}", b'"\\ud800"', b"\xff\xfe", b'{"a": 1} x', b'{"model": "\\u0000"}',
                 b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}', b'{"messages": [{"role": "user", "content": "\xc3"}]}', b'{"messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
                 b'{"messages": "x"}', b'{"messages": [3]}', b'{"messages": []', b"nul", b"3", b'""', b"[]"):
        status, _, text = s.ask("POST", "/v1/chat/completions", data)
        need(400 <= status < 500 and json.loads(text)["error"]["message"], f"{data[:20]}: {status}")


def stopping(_):
    """SIGTERM ends streams properly and at once"""
    s = Serving(BEZEL, PEBBLE)
    r = s.open("POST", "/v1/chat/completions", body(1, 2000, **NEVER_ENDS))
    r.readline()
    s.p.send_signal(signal.SIGTERM)
    rest = r.read()  # raises if the stream is cut
    error = json.loads(rest.decode().split("\n\n")[-2][len("data: "):])["error"]
    same(error["message"], "The server was stopped.", "the end of the stream")
    r.connection.close()
    code, err = s.end()
    need(code == 0 and err == "", f"{code} {err}")


def main():
    with Serving(BEZEL, PEBBLE, "--parallel", "64") as s:
        for name, run in (("64 streaming clients", streams), ("clients that leave", leaving), ("clients that do not read", slow_readers), ("half-open connections", half_open), ("idle connections", idle),
                          ("bodies", bodies), ("methods and paths", addresses), ("a full queue", full_queue), ("stopping", stopping)):
            case("load: " + name, run, s)
        code, err = s.end()
        case("load: the end", lambda: same((code, err), (0, ""), "exit code and messages"))
    return finish()


sys.exit(main())
