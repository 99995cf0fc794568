"""A GPT-2 with random weights trains for a few steps, then generates text with and without its KV cache; the cache must not
change the text."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(1)
model = GPT2LMHeadModel(GPT2Config(n_layer=4, n_embd=256, n_head=8, vocab_size=5000)).cuda()
ids = torch.randint(0, 5000, (4, 128), device="cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for _ in range(8):
    optimizer.zero_grad()
    loss = model(ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
model.eval()
prompt = ids[:2, :16]
with torch.inference_mode():
    cached = model.generate(prompt, max_new_tokens=48, do_sample=False, pad_token_id=0, use_cache=True)
    plain = model.generate(prompt, max_new_tokens=48, do_sample=False, pad_token_id=0, use_cache=False)
agree = (cached == plain).float().mean().item()
assert cached.shape == (2, 64) and agree > 0.95, agree
print("CHECK loss %.5f tokens %d" % (losses[-1], cached.sum().item()))
print("PASS torch_generate")
