#!/usr/bin/env python3
"""The container image, built with buildah and started as a container runtime starts it: its user, its environment, its command, on
a root that is read-only.

  test_container.py FOLDER CERTIFICATES PROGRAM     the folder with the archives, and the program of the build tree
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import answers  # noqa: E402
import clean_root  # noqa: E402
from answers import need, same  # noqa: E402
from cases import case, finish  # noqa: E402

FOLDER, CERTIFICATES, PROGRAM = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3])


def build(box):
    [archive] = glob.glob(f"{FOLDER}/bezel-*-linux-x86_64-static.tar.gz")
    subprocess.run(["sh", "packaging/container.sh", archive, CERTIFICATES, box], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})


def buildah(box, *args):
    return subprocess.run(["buildah", "--root", box + "/storage", "--runroot", box + "/run", "--storage-driver", "vfs", *args],
                          check=True, capture_output=True, text=True).stdout


def described(box):
    """the image's configuration, as Docker writes it"""
    image = json.loads(buildah(box, "images", "--json"))[0]
    config = json.loads(buildah(box, "inspect", "--type", "image", image["id"]))["Docker"]["config"]
    same(config["User"], "65532:65532", "the user")
    same(config["Entrypoint"], ["bezel"], "the program")
    same(config["Cmd"][0], "serve", "the command")
    same(config["Healthcheck"]["Test"], ["CMD", "bezel", "ps", "--health"], "the health check")
    need("11435/tcp" in config["ExposedPorts"], "the port")
    return image["id"], config


def contents(root):
    files = clean_root.tree(root)
    need(any(f.endswith("/bin/bezel") for f in files), "no program")
    strange = [f for f in files if not f.startswith(("opt/bezel-", "etc/ssl/certs/ca-certificates.crt"))]
    same(strange, [], "other files")
    programs = [f for f in files if os.access(os.path.join(root, f), os.X_OK)]
    need(len(programs) == 1, f"programs: {programs}")


def main(box):
    state = {}
    case("buildah builds the image", build, box + "/image")
    case("what it starts, as which user, and how its health is checked", lambda: state.update(zip(("id", "config"), described(box + "/image"))))
    if "config" not in state:
        return
    root = os.path.join(box, "root")
    layer = buildah(box + "/image", "mount", buildah(box + "/image", "from", state["id"]).strip()).strip()
    subprocess.run(["cp", "-a", layer, root], check=True)
    case("it has the program, its files and certificates, and nothing else", contents, root)
    clean_root.empty(root)  # what a runtime mounts
    environment = dict(e.split("=", 1) for e in state["config"]["Env"])
    program = os.path.join(environment["PATH"], state["config"]["Entrypoint"][0])
    user = state["config"]["User"]
    case("an answer", lambda: answers.answers(root, program, PROGRAM, user=user))
    command = ["0" if word == "11435" else word for word in state["config"]["Cmd"]]  # the port may be in use here
    case("it serves, and its health check answers, on a root that is read-only", lambda: answers.serves(
        root, program, *command, check=state["config"]["Healthcheck"]["Test"][2:], read_only=True, user=user))


with tempfile.TemporaryDirectory(prefix="bezel-container-") as folder:
    os.chmod(folder, 0o755)
    main(folder)
sys.exit(finish())
