"""GPUs of other machines for the CUDA programs of this process.

    import outboard
    outboard.connect("tcp:gpubox")   # before torch, jax, cupy
    import torch

The command `outboard run` does the same for whole programs, without a change of theirs."""
import ctypes
import importlib.metadata
import os
import pathlib
import sys

__version__ = importlib.metadata.version("outboard")
_here = pathlib.Path(__file__).resolve().parent
_loaded = []


def library_folder():
    """Where the libraries are that stand in for NVIDIA's driver."""
    return _here / "lib" / "outboard"


def main():
    """The command: this process becomes it."""
    os.execv(_here / "bin" / "outboard", ["outboard", *sys.argv[1:]])


def connect(server=None, token_file=None):
    """From now on CUDA (and NVML) in this process and in those that it starts is `server`'s.

    server      a URL, several with commas between, or None: what OUTBOARD_SERVER or the configuration says
    token_file  path of the file with the server's token, or None

    Call it before the first module that loads CUDA. RuntimeError: CUDA has been loaded already. Whether the server answers shows
    at the first call of CUDA."""
    folder = library_folder()
    if not _loaded:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            driver = next((line.split()[-1] for line in maps if "/libcuda.so" in line), None)
        if driver:
            raise RuntimeError(f"call outboard.connect() before {driver} is loaded")
    if server is not None:
        os.environ["OUTBOARD_SERVER"] = server
    if token_file is not None:
        os.environ["OUTBOARD_TOKEN_FILE"] = os.fspath(token_file)
    path = os.environ.get("LD_LIBRARY_PATH", "")
    if str(folder) not in path.split(":"):
        os.environ["LD_LIBRARY_PATH"] = f"{folder}:{path}" if path else str(folder)  # of processes that are started
    if not _loaded:
        # Who asks for a library of this name later gets the one that is there.
        for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libcupti.so.13", "libcupti.so.12"):
            if (folder / name).exists():
                _loaded.append(ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL))
