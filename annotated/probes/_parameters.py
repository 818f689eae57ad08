"""The probe of parameters: gradients reach them, ties and states hold."""

import copy
import io
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotated.probes._calls import (
    Failed,
    NotAsked,
    Subject,
    difference,
)
from annotated.probes._held import modules_of

OPTIONAL = ("mask", "seg", "token_type")  # parameters of inputs that are optional


def parameters(s: Subject) -> str:
    """Every parameter gets a gradient, what is tied stays so, states can be loaded."""
    whole = isinstance(s.f, nn.Module)
    tops = [m for m in modules_of(s.f) if any(True for _ in m.parameters())]
    if not tops:
        raise NotAsked(
            "no module with parameters was found in f; pass the module itself"
        )
    if min(x.shape[1] for x in s.inputs) < 4:
        raise NotAsked("in texts of fewer than 4 tokens not every weight has a say")
    _registered(tops)
    said = [_gradients_reach(s, tops, whole), _ties(tops)]
    for top in tops:
        said.append(_loaded(s, top))
    if s.o.learn:
        said.append(_by_heart(s, tops))
    else:
        said.append("learning by heart not asked: learn=True would try it")
    return "; ".join(filter(None, said))


def _gradients_reach(s: Subject, tops: list[nn.Module], whole: bool) -> str:
    inputs, called = s.around(s.real(rows=min(2, s.rows))), set()
    named = {}
    for top in tops:
        for name, p in top.named_parameters():
            named.setdefault(id(p), (name, p))
    hooks = [
        m.register_forward_hook(lambda m, *_: called.add(id(m)))
        for top in tops
        for m in top.modules()
    ]
    try:
        more = {"token_type_ids": torch.zeros_like(inputs[0])}  # without, some rest
        more = more if "token_type_ids" in s.taken else {}
        output = s.call(inputs, grad=True, whole=True, **more)
    finally:
        for hook in hooks:
            hook.remove()
    found, noise = [], torch.Generator().manual_seed(61)

    def tensors(out: Any) -> None:
        if isinstance(out, Tensor) and out.is_floating_point() and out.requires_grad:
            found.append(out)
        elif isinstance(out, dict):
            tensors(list(out.values()))
        elif isinstance(out, (list, tuple)):
            for one in out[:50]:
                tensors(one)

    tensors(
        output
        if isinstance(output, (Tensor, dict, list, tuple))
        else list(vars(output).values())
    )
    if not found:
        raise Failed("no output has a gradient: all parameters are cut off")
    total = sum(
        (x.nan_to_num(0, 0, 0) * torch.randn(x.shape, generator=noise).to(x)).sum()
        for x in found
    )
    wanted = [(name, p) for name, p in named.values() if p.requires_grad and p.numel()]
    frozen = len(named) - len(wanted)
    gradients = torch.autograd.grad(total, [p for _, p in wanted], allow_unused=True)
    owners = {
        id(p): m
        for top in tops
        for m in top.modules()
        for p in m.parameters(recurse=False)
    }
    cut, idle = [], []
    for (name, p), g in zip(wanted, gradients, strict=True):
        if g is not None and g.any():
            continue
        if g is not None and (name.endswith("bias") or (p.dim() < 2 and p.numel() < 2)):
            continue  # a bias of keys has no say in a softmax
        if g is None and not whole and id(owners[id(p)]) not in called:
            idle.append(name)  # a head that this function doesn't ask
        elif any(word in name for word in OPTIONAL):
            idle.append(name)
        else:
            cut.append(name)
    if cut:
        more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
        raise Failed(
            f"{cut[0]}{more} gets no gradient: it has no say in the outputs",
            cut[0],
            cut,
        )
    said = f"all {len(wanted) - len(idle)} parameters get a gradient"
    if frozen:
        said += f", {frozen} are frozen"
    return said + (f", {len(idle)} aren't asked ({idle[0]})" if idle else "")


def _registered(tops: list[nn.Module]) -> None:
    """Raise if modules stand in a plain list, where no parameter is registered."""
    every = {id(m) for top in tops for m in top.modules()}
    for top in tops:
        for name, m in top.named_modules():
            for key, held in vars(m).items():
                if key.startswith("_") or not isinstance(held, (list, tuple, dict)):
                    continue
                for one in held.values() if isinstance(held, dict) else held:
                    lost = isinstance(one, nn.Module) and id(one) not in every
                    lost = lost or isinstance(one, nn.Parameter)
                    if lost and (
                        isinstance(one, Tensor) or any(True for _ in one.parameters())
                    ):
                        path = f"{name}.{key}" if name else key
                        raise Failed(
                            f"{path} is a plain {type(held).__name__}: what it "
                            "holds is no part of the model",
                            path,
                        )


def groups(top: nn.Module) -> set[frozenset[str]]:
    """Return the names that share one parameter."""
    names: dict[int, list[str]] = {}
    for name, p in top.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(name)
    return {frozenset(one) for one in names.values() if len(one) > 1}


def _ties(tops: list[nn.Module]) -> str:
    tied = 0
    for top in tops:
        places: dict[int, str] = {}
        seen: dict[int, int] = {}
        for name, p in top.named_parameters(remove_duplicate=False):
            at = p.data_ptr()
            if p.numel() and at in places and seen[at] != id(p):
                raise Failed(
                    f"{places[at]} and {name} share numbers, but are two "
                    "parameters: after moving or loading they part",
                    name,
                )
            places.setdefault(at, name)
            seen.setdefault(at, id(p))
        before = groups(top)
        tied += len(before)
        moved = copy.deepcopy(top)
        moved.bfloat16()
        if groups(moved) != before:
            lost = sorted(next(iter(before ^ groups(moved))))
            raise Failed(
                f"{' and '.join(lost)} aren't tied any more after moving", lost
            )
        _declared(top, before)
    return f"tied parameters stay tied ({tied})" if tied else ""


def _declared(top: nn.Module, before: set[frozenset[str]]) -> None:
    config = getattr(top, "config", None)
    says = [
        n
        for n in (
            "tied",
            "tie_weights",
            "tie_word_embeddings",
            "weight_tying",
            "tie_embeddings",
        )
        if getattr(config, n, None) is True or getattr(top, n, None) is True
    ]
    if not says:
        return
    together = {n for group in before for n in group}
    tables = [(n, m) for n, m in top.named_modules() if isinstance(m, nn.Embedding)]
    heads = [(n, m) for n, m in top.named_modules() if isinstance(m, nn.Linear)]
    for name, table in tables:
        for other, head in heads:
            alike = table.weight.shape == head.weight.shape
            if (alike and table.weight.shape[0] > 2 * table.weight.shape[1]) or (
                alike and any(w in other.lower() for w in ("head", "output", "out"))
            ):
                both = {f"{name}.weight", f"{other}.weight"}
                if table.weight is not head.weight and not both & together:
                    raise Failed(
                        f"{says[0]} is True, but {name} and {other} are two parameters",
                        name,
                    )


def _fresh(s: Subject, top: nn.Module) -> nn.Module | None:
    """Return another instance, with other numbers, if one can be made."""
    if callable(s.o.make):
        return s.o.make()
    config = getattr(top, "config", None)
    if config is None or (isinstance(config, dict) and not config):
        return None
    try:
        torch.manual_seed(99)
        other = type(top)(copy.deepcopy(config))
    except Exception:
        return None
    names = [[(n, type(m)) for n, m in one.named_modules()] for one in (top, other)]
    return other if names[0] == names[1] else None  # it may take more than a config


def _saved(top: nn.Module) -> dict[str, Tensor]:
    """Return the state dict, saved and read."""
    file = io.BytesIO()
    torch.save(top.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def _loaded(s: Subject, top: nn.Module) -> str:
    """Load the saved state into another instance, and compare outputs and ties."""
    inputs = s.around(s.real())
    if any(p.device.type == "meta" for p in top.parameters()):
        return ""
    state = _saved(top)
    other = _fresh(s, top) if top is s.f else None
    how = "another instance"
    if other is None:
        other, how = copy.deepcopy(top), "a copy with other numbers"
        with torch.no_grad():
            for p in other.parameters():
                if p.is_floating_point():
                    p.add_(torch.randn_like(p))
            for name, x in other.named_buffers():
                if name in other.state_dict() and x.is_floating_point():
                    x.add_(torch.randn_like(x))
    try:
        other.load_state_dict(state)
    except Exception as error:
        raise Failed(
            "a saved state dict can't be loaded: "
            f"{str(error).strip().splitlines()[-1].strip()[:160]}"
        ) from error
    del state
    device = next(top.parameters()).device
    other.to(device).eval()
    if groups(other) != groups(top):
        lost = sorted(next(iter(groups(other) ^ groups(top))))
        raise Failed(f"{' and '.join(lost)} aren't tied any more after loading", lost)
    if top is not s.f:
        return ""
    wanted, found = s.call(inputs), s.call(inputs, f=other)
    if s.apart(found, wanted) > 1:
        gap = difference(found, wanted).max().item()
        raise Failed(
            f"{how} that loads the state dict gives other logits (by {gap:.2g}): "
            "something that matters isn't in it",
            None,
            inputs[-1].tolist(),
        )
    return f"{how} that loads the state gives the same"


def _by_heart(s: Subject, tops: list[nn.Module]) -> str:
    """Learn one batch by heart, and put everything back."""
    inputs = s.around(s.real())
    if s.kind == "encoder":
        return "learning by heart is asked of causal models and translations"
    text = inputs[-1]
    every = [p for m in tops for p in m.parameters() if p.requires_grad]
    kept = [p.detach().clone() for p in every]
    optimizer, values = torch.optim.Adam(every, 3e-3), []
    s.afford(300)
    try:
        for _ in range(100):
            logits = s.call(inputs, grad=True).float()[:, :-1]
            value = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten().long())
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            values.append(value.item())
    finally:
        with torch.no_grad():
            for p, value in zip(every, kept, strict=True):
                p.copy_(value)
                p.grad = None
    if not values[-1] < 0.5 * values[0]:
        raise Failed(
            f"100 steps of Adam on one batch lower its loss from {values[0]:.3f} "
            f"to {values[-1]:.3f} only: it can't be learned by heart",
            None,
            text.tolist(),
        )
    return f"one batch is learned by heart ({values[0]:.2f} to {values[-1]:.2f})"
