"""Runs another test of this folder as root in a virtual machine whose kernel has what this machine's may lack: control
groups of version 2, Landlock. The guest has this machine's files, which it cannot change. TCG emulates it, so KVM is not
needed, and it takes minutes. usage: in_guest_test.py NAME

OUTBOARD_GUEST_KERNEL is a folder with an unpacked kernel of Debian (docs/testing.md); also needed: qemu-system-x86,
busybox-static, cpio, kmod."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MODULES = ["virtio_pci", "9pnet_virtio", "9p"]
MEMORY = 3000
SECONDS = 1500
INIT = """#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules); do insmod "$module" || echo "no $module"; done
mkdir -p /host
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /host
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t securityfs securityfs /host/sys/kernel/security
mount -t cgroup2 cgroup2 /host/sys/fs/cgroup
mount --bind /dev /host/dev
mkdir -p /dev/shm
for folder in /tmp /run /dev/shm; do mount -t tmpfs tmpfs /host$folder; done
ip link set lo up
cat /command >/host/tmp/command
chroot /host /bin/bash /tmp/command
echo "guest: status $?"
poweroff -f
"""


def leave_out(why):
    print(f"skipped: {why}")
    sys.exit(77)


def kernel_folder():
    folder = pathlib.Path(os.environ.get("OUTBOARD_GUEST_KERNEL", "/nonexistent"))
    if not list(folder.glob("boot/vmlinuz-*")):
        leave_out("OUTBOARD_GUEST_KERNEL names no folder with an unpacked kernel (docs/testing.md)")
    for tool in ("qemu-system-x86_64", "cpio", "busybox", "modprobe"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            leave_out(f"{tool} is not installed")
    return folder


def modules_of(kernel, version):
    """Files in the order in which they can be loaded."""
    root = kernel / "lib" / "modules" / version
    if not (root / "modules.dep").exists():
        subprocess.run(["depmod", "-b", kernel, version], check=True)
    needs = dict(line.split(":") for line in (root / "modules.dep").read_text().splitlines())
    ordered = []
    for name in MODULES:
        pattern = re.compile("/" + name.replace("_", "[-_]") + r"\.ko")
        for path in [path for path in needs if pattern.search(path)]:
            for one in [*reversed(needs[path].split()), path]:
                if one not in ordered:
                    ordered.append(one)
    return [root / one for one in ordered]


def make_memory_disk(folder, kernel, version, command):
    tree = folder / "tree"
    for name in ("bin", "proc", "sys", "dev", "modules.d"):
        (tree / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin" / "busybox")
    for applet in ("sh", "mount", "insmod", "mkdir", "ip", "cat", "chroot", "poweroff"):
        (tree / "bin" / applet).symlink_to("busybox")
    names = []
    for path in modules_of(kernel, version):
        shutil.copy(path, tree / "modules.d")
        names.append(f"/modules.d/{path.name}\n")
    (tree / "modules").write_text("".join(names))
    (tree / "command").write_text(command)
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    listed = subprocess.run(["find", "."], cwd=tree, check=True, capture_output=True).stdout
    packed = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=listed, check=True, capture_output=True)
    (folder / "disk").write_bytes(packed.stdout)
    return folder / "disk"


def command_for(name):
    kept = ("OUTBOARD_BUILD", "OUTBOARD_PRELOAD", "OUTBOARD_TOOLKIT")
    script = pathlib.Path(__file__).resolve().parent / f"{name}_test.py"
    lines = [f"export {key}='{os.environ[key]}'" for key in kept if key in os.environ]
    lines += ["export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp", "cd /tmp", f"'{sys.executable}' -B '{script}' -v 2>&1"]
    return "\n".join(lines) + "\n"


def main(name):
    kernel = kernel_folder()
    image = sorted(kernel.glob("boot/vmlinuz-*"))[-1]
    version = image.name.removeprefix("vmlinuz-")
    with tempfile.TemporaryDirectory(prefix="outboard-guest-") as folder:
        disk = make_memory_disk(pathlib.Path(folder), kernel, version, command_for(name))
        done = subprocess.run(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", str(MEMORY), "-kernel", image,
             "-initrd", disk, "-append", "console=ttyS0 panic=-1 quiet mitigations=off", "-nodefaults", "-no-user-config",
             "-display", "none", "-no-reboot", "-serial", "stdio",
             "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=SECONDS, errors="replace")
    print(done.stdout)
    ended = re.search(r"guest: status (\d+)", done.stdout)
    sys.exit(int(ended[1]) if ended else 1)


if __name__ == "__main__":
    main(sys.argv[1])
