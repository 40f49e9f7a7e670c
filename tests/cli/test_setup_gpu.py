#!/usr/bin/env python3
"""Which device is used without --device, where the WebGPU library is found, and `bezel setup-gpu`.

    test_setup_gpu.py PROGRAM MODELS

Needs the package's archive, build/webgpu/bun-webgpu-linux-x64-0.1.7.tgz (tools/setup.sh gpu); no GPU and no driver.
Prints "ok NAME" or "FAIL NAME reason"; not zero if anything failed.
"""
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from cases import case, finish, need, same  # noqa: E402

BEZEL = os.path.abspath(sys.argv[1])
PACKAGE = "bun-webgpu-linux-x64"
ARCHIVE = os.path.abspath(f"build/webgpu/{PACKAGE}-0.1.7.tgz")
WORK = tempfile.mkdtemp(prefix="bezel-gpu-")
# No driver either, so that what is found here does not depend on the machine.
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("npm_config", "NPM_CONFIG", "BEZEL_", "XDG_", "VK_"))}
ENV |= {"HOME": WORK, "VK_ICD_FILENAMES": "/nowhere.json", "VK_DRIVER_FILES": "/nowhere.json"}
INSTALLED = os.path.join(WORK, ".local/share/bezel/webgpu/libwebgpu_wrapper.so")
ONE = ("run", "pebble", "What is fire?", "--no-think", "--max-tokens", "3", "--temperature", "0")


def bezel(*args, **env):
    return subprocess.run([BEZEL, *args], capture_output=True, text=True, timeout=300, env={**ENV, **env}, stdin=subprocess.DEVNULL)


class Registry(http.server.BaseHTTPRequestHandler):
    damaged = False

    def do_GET(self):
        if self.path != f"/npm/{PACKAGE}/-/{PACKAGE}-0.1.7.tgz":
            self.send_error(404)
            return
        with open(ARCHIVE, "rb") as f:
            data = bytearray(f.read())
        data[1000] ^= self.damaged
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def automatic():
    """without a library: the CPU, and one line that says so"""
    r = bezel(*ONE)
    same(r.returncode, 0, "the code")
    same(r.stderr, "bezel: running on the CPU: no WebGPU library was found; see 'bezel setup-gpu --help'.\n", "stderr")
    same(bezel(*ONE, "-q").stderr, "", "stderr with --quiet")
    same(bezel(*ONE, "--device", "cpu").stderr, "", "stderr with a named device")
    same(bezel(*ONE, BEZEL_DEVICE="cpu").stderr, "", "stderr with BEZEL_DEVICE")
    need("'--kernels'" in bezel(*ONE, "--kernels", "plain").stderr, "--kernels does not choose the CPU")


def refused():
    r = bezel(*ONE, "--device", "gpu")
    need(r.returncode == 4 and "No WebGPU library" in r.stderr and not r.stdout, f"{r.returncode} {r.stderr}")
    r = bezel(*ONE, BEZEL_DEVICE="tpu")
    need(r.returncode == 2 and "unknown device 'tpu'; use auto, cpu or gpu." in r.stderr, f"{r.returncode} {r.stderr}")
    need("WebGPU library named by BEZEL_WEBGPU_LIB" in bezel(*ONE, BEZEL_WEBGPU_LIB="/nowhere.so").stderr, "the named library is not named")


def without_registry():
    r = bezel("setup-gpu")
    need(r.returncode == 2 or r.returncode == 1, f"{r.returncode}")
    need("--registry" in r.stderr and not os.path.exists(INSTALLED), r.stderr)
    r = bezel("setup-gpu", "--registry", "http://registry.example/npm")
    need(r.returncode != 0 and "https" in r.stderr, f"fetched without encryption: {r.stderr}")


def from_registry(url):
    """the address comes from npm's settings; damaged bytes are not installed"""
    with open(os.path.join(WORK, ".npmrc"), "w", encoding="utf-8") as f:
        f.write(f"fund=false\n registry = {url}/npm/\n")
    missing = bezel("setup-gpu", "--registry", url + "/other")
    need(missing.returncode != 0 and "404" in missing.stderr, missing.stderr)
    Registry.damaged = True
    r = bezel("setup-gpu")
    Registry.damaged = False
    need(r.returncode != 0 and "Nothing was installed" in r.stderr and not os.path.exists(INSTALLED), r.stderr)
    r = bezel("setup-gpu")
    same((r.returncode, r.stdout), (0, f"Installed {INSTALLED}\n"), "code and stdout")
    same(os.listdir(os.path.dirname(INSTALLED)), ["libwebgpu_wrapper.so"], "the folder")


def found():
    """in the user's folder; without a driver the reason is another one"""
    r = bezel(*ONE)
    need(r.returncode == 0 and "running on the CPU: No GPU that WebGPU can use was found" in r.stderr, r.stderr)


def beside_the_program():
    folder = os.path.join(WORK, "bin")
    os.makedirs(folder)
    shutil.copy(BEZEL, folder)
    os.rename(INSTALLED, os.path.join(folder, "libwebgpu_wrapper.so"))
    r = subprocess.run([os.path.join(folder, "bezel"), "doctor"], capture_output=True, text=True, timeout=300, env=ENV)
    need("No GPU that WebGPU can use" in r.stdout, r.stdout)
    os.rename(os.path.join(folder, "libwebgpu_wrapper.so"), INSTALLED)


def from_file():
    os.remove(INSTALLED)
    wrong = os.path.join(WORK, "wrong.tgz")
    with open(wrong, "wb") as f:
        f.write(b"not a package")
    r = bezel("setup-gpu", wrong)
    need(r.returncode != 0 and "is not version" in r.stderr and not os.path.exists(INSTALLED), r.stderr)
    same(bezel("setup-gpu", ARCHIVE).returncode, 0, "the code")
    need(os.path.exists(INSTALLED), "nothing was installed")
    need(bezel("setup-gpu", ARCHIVE, "--registry", "https://registry.example").returncode == 2, "file and registry are accepted")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    case("the archive is there", lambda: need(os.path.exists(ARCHIVE), f"{ARCHIVE} is missing: sh tools/setup.sh gpu"))
    case("auto, without a library", automatic)
    case("devices that are not there", refused)
    case("setup-gpu without a registry", without_registry)
    case("setup-gpu from a registry", from_registry, f"http://127.0.0.1:{server.server_port}")
    case("the installed library is found", found)
    case("a library beside the program is found", beside_the_program)
    case("setup-gpu from a file", from_file)
finally:
    server.shutdown()
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(finish())
