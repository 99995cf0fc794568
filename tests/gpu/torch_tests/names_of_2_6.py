"""A pytest plug-in with names that PyTorch 2.6's tests import and that a newer torch.testing lacks or has renamed."""
import torch.nn.attention.flex_attention as flex_attention
import torch.testing._internal.common_cuda as common_cuda
import torch.testing._internal.common_mkldnn as common_mkldnn
import torch.testing._internal.common_nn as common_nn
import torch.testing._internal.common_utils as common_utils


def add(module, name, value):
    if not hasattr(module, name):
        setattr(module, name, value())


def abbreviations():
    from torch.utils._dtype_abbrs import dtype_abbrs
    return dtype_abbrs


add(common_cuda, "tf32_is_not_fp32", lambda: lambda: True)
add(common_mkldnn, "bf32_on_and_off", lambda: common_mkldnn.reduced_f32_on_and_off)
add(common_nn, "new_module_tests", lambda: common_nn.get_new_module_tests())
add(common_utils, "dtype_abbrs", abbreviations)
add(flex_attention, "create_nested_block_mask", lambda: None)
