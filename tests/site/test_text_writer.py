"""ch11/text_writer.js writes what the model in Python writes."""

import pytest
import torch

from annotated.decoding import keep_top_p, tempered
from annotated.gpt import GPT, GPTConfig
from annotated.page.frames import pack, unpack
from tests.site.explorer import results

pytestmark = pytest.mark.covers("11", "annotated/gpt.", "annotated/decoding.")

CHARACTERS = "abcdefg \n("
CONTEXT, HEADS, LAYERS = 8, 2, 2


def model() -> GPT:
    """Weights as the browser sees them."""
    torch.manual_seed(0)
    made = GPT(GPTConfig(len(CHARACTERS), 8, HEADS, LAYERS, 12, max_len=CONTEXT))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.7)
            parameter.copy_(unpack(pack(parameter)))
    return made.double().eval()


def write(gpt: GPT, prompt: str, draws, temperature, top_p):
    """What `sample(…, slide=True)` does, with draws that are given."""
    ids, first = [CHARACTERS.index(symbol) for symbol in prompt], None
    for draw in draws:
        with torch.no_grad():
            logits = gpt(torch.tensor([ids[-CONTEXT:]]))[0, -1]
        chances = tempered(logits, temperature)
        kept = keep_top_p(chances, top_p)
        if first is None:
            first = kept, int((kept > 0).sum())
        ids.append(int((kept.cumsum(0) > draw).int().argmax()))
    return first, "".join(CHARACTERS[i] for i in ids[len(prompt) :])


@pytest.mark.parametrize("prompt", ["a", "bad(", "a cab\n(fed bag"])
@pytest.mark.parametrize(("temperature", "top_p"), [(1, 1), (0.5, 0.6), (1.5, 0.9)])
def test_it_writes_what_python_writes(browser, prompt, temperature, top_p):
    gpt = model()
    draws = torch.rand(2, 12, generator=torch.Generator().manual_seed(1)).tolist()
    weights = {n: pack(p) for n, p in gpt.named_parameters()}
    data = {"weights": weights, "heads": HEADS, "layers": LAYERS, "context": CONTEXT}
    data |= {"characters": CHARACTERS, "draws": draws}
    state = {"prompt": prompt, "temperature": temperature, "top_p": top_p, "seed": 2}
    page = browser.new_page()
    [result] = results(page, "ch11/text_writer.js", [state], data)
    values = result["values"]
    page.close()
    (kept, count), written = write(gpt, prompt, draws[1], temperature, top_p)
    assert values["written"] == written and values["kept"] == count
    assert torch.allclose(torch.tensor(values["chances"]).double(), kept, atol=1e-6)
    assert len(set(written)) > 1


def test_a_character_it_never_met_is_named(browser):
    page = browser.new_page()
    state = {"prompt": "caf\u00e9", "temperature": 1, "top_p": 1, "seed": 1}
    gpt = model()
    data = {"weights": {n: pack(p) for n, p in gpt.named_parameters()}}
    data |= {"characters": CHARACTERS}
    [result] = results(page, "ch11/text_writer.js", [state], data)
    page.close()
    assert result["values"] == {"written": "", "strange": "\u00e9"}
    assert "never met the character “\u00e9”" in result["says"]
