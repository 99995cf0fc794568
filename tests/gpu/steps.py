"""Steps of three models, marked in a trace by a refused question (cuCtxGetLimit 7000 + n) before each (record_steps).
usage: steps.py [gpt] [token] [resnet]"""
import ctypes
import sys
import time

import torch

which = set(sys.argv[1:]) or {"gpt", "token", "resnet"}
driver = ctypes.CDLL("libcuda.so.1")
value = ctypes.c_size_t()


def mark(number):
    driver.cuCtxGetLimit(ctypes.byref(value), 7000 + number)


def steps(first, step, warm=4, marked=3):
    """Makes the marks first..first+marked; the last one comes after the last step."""
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    for n in range(marked):
        mark(first + n)
        step()
    mark(first + marked)
    torch.cuda.synchronize()


began = time.time()
torch.manual_seed(0)
device = "cuda"
torch.ones(8, device=device).sum().item()
print("versions", torch.__version__, torch.version.cuda, torch.backends.cudnn.version(), torch.cuda.get_device_name(), flush=True)

if which & {"gpt", "token"}:
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel
    print("transformers", transformers.__version__)
    model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=768, n_head=12, vocab_size=50257)).to(device)
    ids = torch.randint(0, 50257, (8, 256), device=device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def gpt_step(read=False):
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        return loss.item() if read else loss

    if "gpt" in which:
        steps(100, gpt_step)
        steps(110, lambda: gpt_step(True))
        print("gpt loss", gpt_step(True), time.time() - began, flush=True)
    if "token" in which:
        model.eval()
        tokens = [200]

        class Marker(transformers.LogitsProcessor):
            def __call__(self, input_ids, scores):
                if 230 <= tokens[0] <= 240:
                    mark(tokens[0])
                tokens[0] += 1
                return scores

        prompt = ids[:1, :16]
        with torch.inference_mode():
            for _ in range(2):
                tokens[0] = 0
                model.generate(prompt, max_new_tokens=64, do_sample=False, pad_token_id=0)
            tokens[0] = 200
            out = model.generate(prompt, max_new_tokens=64, do_sample=False, pad_token_id=0,
                                 logits_processor=transformers.LogitsProcessorList([Marker()]))
        print("tokens", out.sum().item(), time.time() - began, flush=True)

if "resnet" in which:
    import torchvision
    print("torchvision", torchvision.__version__)
    torch.manual_seed(0)
    model = torchvision.models.resnet50(weights=None).to(device).train()
    images = torch.randn(32, 3, 224, 224, device=device)
    labels = torch.randint(0, 1000, (32,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()

    def resnet_step(read=False):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item() if read else loss

    steps(300, resnet_step)
    steps(310, lambda: resnet_step(True))
    # A step fed by a loader: pinned memory, copied asynchronously.
    pinned = torch.randn(32, 3, 224, 224).pin_memory()

    def fed_step():
        images.copy_(pinned, non_blocking=True)
        return resnet_step(True)

    steps(320, fed_step)
    model.eval()
    with torch.inference_mode():
        one = images[:1]
        steps(330, lambda: model(one))
    print("resnet", one.shape, time.time() - began, flush=True)
print("PASS steps", time.time() - began)
