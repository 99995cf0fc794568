"""A virtual machine on this machine, for the duration of a with statement: QEMU (with KVM if possible), a kernel of the
distribution, and an initial file system made here from the programs, the libraries that they need, and busybox. Its
network card is one end of a tap device, so root is needed; the guest reaches this machine at HOST."""
import gzip
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import measuring

HOST, GUEST = "10.213.78.1", "10.213.78.2"

# The modules that a virtio network card needs, in order; those that a kernel has built in are not among its files.
MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover",
           "virtio_net"]

# Commands come over the second serial port, one per line; an answer is "STATUS BYTES" and that many bytes of output.
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
for module in /modules/*.ko; do insmod $module; done
ip link set lo up
ip addr add {GUEST}/24 dev eth0
ip link set eth0 up
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo ready >&3
while read -r line <&3; do
  sh -c "$line" >/tmp/output 2>&1
  status=$?
  echo "$status $(stat -c %s /tmp/output)" >&3
  cat /tmp/output >&3
done
"""


def newest_kernel():
    """(kernel, folder of its modules) of this machine's /boot, or None."""
    for kernel in sorted(pathlib.Path("/boot").glob("vmlinuz-*"), reverse=True):
        modules = pathlib.Path("/lib/modules") / kernel.name.removeprefix("vmlinuz-")
        if modules.is_dir():
            return kernel, modules
    return None


def linked(program):
    """The libraries that a program needs at its start, including the loader."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    words = [word for line in done.stdout.splitlines() for word in line.split() if word.startswith("/")]
    return [word for word in words if os.path.isfile(word)]


class Archive:
    """The newc format of cpio, as the kernel's Documentation/driver-api/early-userspace describes it."""

    def __init__(self):
        self.bytes, self.names = bytearray(), set()

    def add(self, name, data=b"", mode=0o100755):
        name = name.strip("/")
        if name in self.names:
            return
        if os.path.dirname(name):
            self.add(os.path.dirname(name), mode=0o040755)
        self.names.add(name)
        named = name.encode() + b"\0"
        fields = [len(self.names), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(named), 0]
        self.bytes += b"070701" + b"".join(b"%08X" % field for field in fields) + named
        self.bytes += b"\0" * (-len(self.bytes) % 4) + data
        self.bytes += b"\0" * (-len(self.bytes) % 4)

    def add_file(self, path, name=None):
        self.add(name or str(path), pathlib.Path(path).read_bytes())

    def packed(self):
        self.add("TRAILER!!!", mode=0)
        return gzip.compress(bytes(self.bytes), 1)


class Guest:
    def __init__(self, build, programs, kernel=None, modules=None, processors=2, megabytes=1024):
        if os.geteuid():
            raise measuring.Failed("it needs root")
        for tool in ("qemu-system-x86_64", "ip", "busybox"):
            if not shutil.which(tool):
                raise measuring.Failed(f"no `{tool}` here")
        if not kernel:
            found = newest_kernel()
            if not found:
                raise measuring.Failed("no kernel with modules in /boot (--guest-kernel and --guest-modules name one)")
            kernel, modules = found
        self.build, self.programs, self.kernel, self.modules = build, programs, kernel, modules
        self.processors, self.megabytes = processors, megabytes
        self.card, self.accelerated = f"obvm{os.getpid()}", True
        self.line = self.process = None

    def files(self):
        """The guest's only file system, packed. Outboard has the same paths as here."""
        archive = Archive()
        for folder in ("dev", "proc", "sys", "tmp", "bin"):
            archive.add(folder, mode=0o040755)
        archive.add("init", INIT.encode())
        archive.add_file(shutil.which("busybox"), "bin/busybox")
        for position, name in enumerate(MODULES):
            for file in sorted(pathlib.Path(self.modules).rglob(f"{name}.ko")):
                archive.add_file(file, f"modules/{position}-{name}.ko")
        # The names that the loader looks for, whatever they point to.
        libraries = [file for file in sorted(self.build.library.iterdir()) if file.is_file()]
        for file in [self.build.outboard, *libraries, *self.programs]:
            for each in [str(file), *linked(file)]:
                archive.add_file(os.path.realpath(each), each)
        return archive.packed()

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="outboard-guest-")
        try:
            pathlib.Path(f"{self.folder.name}/initial.gz").write_bytes(self.files())
            for words in (["tuntap", "add", self.card, "mode", "tap"], ["addr", "add", f"{HOST}/24", "dev", self.card],
                          ["link", "set", self.card, "up"]):
                done = subprocess.run(["ip", *words], capture_output=True, text=True)
                if done.returncode:
                    raise measuring.Failed(f"ip {' '.join(words)}: {done.stderr.strip()}")
            # KVM may exist and still be unable to run a guest, as in a virtual machine with incomplete nesting.
            if not (os.access("/dev/kvm", os.R_OK | os.W_OK) and self.boot(["kvm", "-cpu", "host"], 15)):
                self.accelerated = False
                if not self.boot(["tcg", "-cpu", "max"], 90):
                    raise measuring.Failed("the guest does not start" + self.said())
            return self
        except (OSError, measuring.Failed) as error:
            self.__exit__()
            raise measuring.Failed(str(error)) from None

    def boot(self, accelerator, patience):
        """Whether the guest is ready within that many seconds."""
        self.halt()
        serial = f"{self.folder.name}/serial"
        self.console = open(f"{self.folder.name}/console", "w+", encoding="utf-8", errors="replace")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", *accelerator, "-smp", str(self.processors), "-m", str(self.megabytes),
             "-nodefaults", "-no-reboot", "-display", "none",
             "-kernel", str(self.kernel), "-initrd", f"{self.folder.name}/initial.gz",
             "-append", "console=ttyS0 quiet panic=-1", "-serial", "stdio", "-serial", f"unix:{serial},server=on,wait=off",
             "-netdev", f"tap,id=net,ifname={self.card},script=no,downscript=no",
             "-device", "virtio-net-pci,netdev=net,romfile="],
            stdin=subprocess.DEVNULL, stdout=self.console, stderr=subprocess.STDOUT)
        self.line = socket.socket(socket.AF_UNIX)
        try:
            if not measuring.wait_until(lambda: os.path.exists(serial) or self.process.poll() is not None, 10):
                return False
            self.line.settimeout(patience)
            self.line.connect(serial)
            return self.read_line() == "ready"
        except (OSError, measuring.Failed):
            return False

    def halt(self):
        if self.line:
            self.line.close()
        if self.process:
            self.process.kill()
            self.process.wait()
            self.console.close()
        pathlib.Path(f"{self.folder.name}/serial").unlink(missing_ok=True)

    def about(self):
        return (f"QEMU {'with KVM' if self.accelerated else 'emulating the processor (no usable KVM)'}, {self.processors} processors, "
                f"{self.kernel.name}, a virtio card on a tap device")

    def said(self):
        """The end of what the guest wrote to its console."""
        self.console.seek(0)
        return "; its console: " + self.console.read()[-600:].strip()

    def __exit__(self, *_):
        self.halt()
        subprocess.run(["ip", "link", "del", self.card], capture_output=True)
        self.folder.cleanup()

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.line.recv(count - len(data))
            if not part:
                raise measuring.Failed("the guest ended" + self.said())
            data += part
        return data

    def read_line(self):
        line = b""
        while not line.endswith(b"\n"):
            line += self.read(1)
        return line.decode().strip()

    def run(self, command, timeout=300):
        """(seconds, output) of a command, which must succeed; its words contain no spaces."""
        self.line.settimeout(timeout)
        began = time.monotonic()
        self.line.sendall((" ".join(map(str, command)) + "\n").encode())
        try:
            status, size = map(int, self.read_line().split())
            seconds = time.monotonic() - began
            text = self.read(size).decode(errors="replace")
        except TimeoutError:
            raise measuring.Failed(f"{' '.join(map(str, command))}: no answer of the guest" + self.said()) from None
        if status:
            raise measuring.Failed(f"in the guest {' '.join(map(str, command))} ended with {status}: {text.strip()[-600:]}")
        return seconds, text
