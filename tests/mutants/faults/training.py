TESTS = ("training", "checkpoints")
TABLE = r"""
noam_rate
    warmup**-1.5 -> warmup**-1.0  # slope
    min(step**-0.5 -> min(step**-1.0  # falls faster
    factor * d_model -> d_model  # factor ignored
noam_schedule
    done + 1 -> max(done, 1)  # one step late
    warmup, factor)\n    ) -> warmup)\n    )  # factor ignored
    rates != {1.0} -> False  # rate of the optimiser unseen
LabelSmoothing.__init__
    spread: str = "others" -> spread: str = "all"  # spread by default
    else size - 2 -> else size - 1  # others are one more
    (self.share if spread == "all" else 0.0) -> 0.0  # own share forgotten
LabelSmoothing.distribution
    rows[..., self.pad] = 0.0 -> pass  # padding gets a share
    rows[..., self.pad] -> rows[..., 0]  # pad ignored
    .masked_fill((target == self.pad)[..., None], 0.0) ->  # padding counts
    require.ids(self.size, target=target) -> pass  # ids unchecked
LabelSmoothing.forward
    real.sum().clamp(min=1) -> target.numel()  # mean over padding too
    .clamp(min=1) ->  # nothing divided by nothing
    torch.where(real, divergence, 0.0) -> divergence  # padding counts
    math.log(self.own) - -> -  # own entropy left out
    (wanted - others) -> -others  # entropy of the others left out
    if self.share: -> if True:  # 0 times log 0
    self.size - apart.shape[-1] -> self.size - 2  # others counted alike
    if self.spread == "others": -> if True:  # padding never gets a share
    if self.spread == "others": -> if False:  # padding gets a share
    logs.scatter(-1, apart, 0.0).sum(dim=-1)
        (logs.sum(dim=-1) - logs.gather(-1, apart).sum(dim=-1))
            # minus infinity from minus infinity
    value=self.pad -> value=0  # pad ignored
    require.ids(self.size, target=target) -> pass  # ids unchecked
    torch.promote_types(logits.dtype, torch.float32)
        logits.dtype  # smoothed in half precision
        torch.float32  # double precision lost
evaluating
    \n    model.eval() ->  # with dropout
    torch.no_grad() -> torch.enable_grad()  # with gradients
    in model.modules()} -> in [model]}  # parts stay in evaluation
    module.training = mode -> module.train()  # frozen parts thawed
    finally:\n
        except ValueError:\n        raise\n    else:\n  # modes lost by an exception
evaluate
    total += size * loss -> total += loss  # weights ignored
    if size := weight(batch): -> if (size := weight(batch)) or True:  # 0 times NaN
    weight or getattr(loss, "batch_weight", lambda batch: 1.0)
        weight or (lambda batch: 1.0)  # a mean of means
    weight or getattr( -> getattr(  # weight ignored
    return total / counted -> return total  # a sum, no mean
    to_device(batch, device) -> batch  # batches not moved
    with evaluating(model): -> if True:  # in training mode
    require.that(counted, -> require.that(True,  # no batch
fit
    model.train()\n -> pass\n  # not in training mode
    if not model.training:\n -> if True:\n  # frozen parts thawed
    \n            optimizer.zero_grad() ->  # gradients add up
    * (size / whole) -> / len(weighed)  # weights ignored
    weight or getattr(loss, "batch_weight", lambda batch: 1.0)
        weight or (lambda batch: 1.0)  # a mean of means
    weight or getattr( -> getattr(  # weight ignored
    * (size / whole) -> * size  # not divided by the weights
    if (size := weight(b))] -> if (size := weight(b)) or True]  # 0 times NaN
    require.that(weighed, -> require.that(True,  # 0 divided by 0
    state["loss"] = loss if hasattr(loss, "state_dict") else None
        pass  # what the loss remembers is not saved
    mean += part -> mean = part  # loss of the last batch alone
    to_device(batch, device) -> batch  # batches not moved
    clip_grad_norm_(held, clip)
        clip_grad_norm_(held, math.inf)  # clip ignored
        clip_grad_norm_(held, min(clip, 1.0))  # always clipped
        clip_grad_norm_(model.parameters(), clip)  # gradient of the whole model
    {"gradient_norm": norm, -> {"gradient_norm": min(norm, clip),  # norm after clipping
    enabled=bool(precision) -> enabled=False  # precision ignored
    enabled=half -> enabled=False  # loss not scaled
    scaler.unscale_(optimizer) -> pass  # clips the scaled gradient
    scaler.get_scale() > 1 -> False  # a step that overflows is an error
    scaler.get_scale() > 1 -> half  # never stops overflowing
    not (math.isfinite(mean) and fits)
        not fits  # loss that is not finite
        not math.isfinite(mean)  # gradient that is not finite
    scaler.step(optimizer) -> pass  # no step
    \n            scaler.update() ->  # scale stays
    schedule.step()\n -> pass\n  # schedule forgotten
    and math.isfinite(norm): -> :  # schedule counts what was left out
    "learning_rate": rate
        "learning_rate": optimizer.param_groups[0]["lr"]  # rate of the next step
    time.process_time() - began -> time.process_time()  # seconds of all
    if all(parameter.grad is None
        if False and all(parameter.grad is None  # optimiser of another model
    with evaluating(model):\n -> if True:\n  # called in training mode
    , skip=remaining) -> )  # resumes with the batches that were used
    last["batches"], last["cpu_seconds"]
        0, last["cpu_seconds"]  # resumes with no batch used
    state["scaler"] = scaler if half else None
        state["scaler"] = None  # scale not saved
    "schedule": schedule} -> "schedule": None}  # schedule not saved
    if checkpoint is not None:\n        save
        if False:\n        save  # not saved at the end
    require.that(history, -> require.that(True,  # no batch
"""
