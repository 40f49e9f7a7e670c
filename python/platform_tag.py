"""The platform tag of a wheel, from what its shared library needs: nothing is claimed that the file does not say."""
import re
import struct
import subprocess

# What every Linux system of that glibc has.
LINUX_LIBRARIES = re.compile(r"lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux[-\w]*\.so\.\d+")
ELF_MACHINES = {62: "x86_64", 183: "aarch64"}
PE_MACHINES = {0x8664: "win_amd64", 0xAA64: "win_arm64"}
MACH_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
LC_BUILD_VERSION, LC_VERSION_MIN_MACOSX = 0x32, 0x24


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}).stdout


def linux_tag(data, path):
    machine = ELF_MACHINES.get(struct.unpack_from("<H", data, 18)[0])
    if not machine:
        raise SystemExit(f"{path} is for a machine that has no wheels; build for x86_64 or aarch64.")
    strange = [name for name in re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path)) if not LINUX_LIBRARIES.fullmatch(name)]
    if strange:
        raise SystemExit(f"{path} needs {', '.join(strange)}, which not every Linux has: link it without.")
    versions = [tuple(map(int, v)) for v in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", readelf("-V", path))]
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{machine}"


def windows_tag(data, path):
    header = struct.unpack_from("<I", data, 0x3C)[0]
    tag = PE_MACHINES.get(struct.unpack_from("<H", data, header + 4)[0])
    if data[header:header + 4] != b"PE\0\0" or not tag:
        raise SystemExit(f"{path} is not a library for x64 or arm64 Windows.")
    return tag


def macos_tag(data, path):
    machine = MACH_MACHINES.get(struct.unpack_from("<I", data, 4)[0])
    at = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<II", data, at)
        if machine and command in (LC_BUILD_VERSION, LC_VERSION_MIN_MACOSX):
            least = struct.unpack_from("<I", data, at + (12 if command == LC_BUILD_VERSION else 8))[0]
            major, minor = least >> 16, least >> 8 & 255
            # From macOS 11 on a tag has no minor version.
            return f"macosx_{major}_{0 if major >= 11 else minor}_{machine}"
        at += size
    raise SystemExit(f"{path} does not say for which macOS it was built.")


def of(path):
    """-> the tag, and the name of the library inside the package"""
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] == b"\x7fELF":
        return linux_tag(data, path), "libbezel.so"
    if data[:2] == b"MZ":
        return windows_tag(data, path), "bezel.dll"
    if data[:4] == b"\xcf\xfa\xed\xfe":
        return macos_tag(data, path), "libbezel.dylib"
    raise SystemExit(f"{path} is not a shared library.")
