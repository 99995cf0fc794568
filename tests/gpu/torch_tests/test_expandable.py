"""test_cuda.py with expandable segments, as PyTorch's test_cuda_expandable_segments.py runs it."""
import torch
from test_cuda import *  # noqa: F403
import test_cuda
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
TestCuda.expandable_segments = lambda _: True  # noqa: F405
TestBlockStateAbsorption.expandable_segments = lambda _: True  # noqa: F405
